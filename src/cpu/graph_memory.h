// SPDX-License-Identifier: MIT
// Memory of allocation nodes. Its address is fixed when the node is made, and it has a piece of the device's
// memory from then on; only the application's allocation at that address comes and goes.
//
//   live    a launch has allocated it and nothing has freed it, in the order of the API calls
//   shown   launches that have allocated it and whose free has not run; its block is in the tree if shown > 0
//   refs    nodes, plus frees that have not run, plus one while it is live
#ifndef MOAT_CPU_GRAPH_MEMORY_H
#define MOAT_CPU_GRAPH_MEMORY_H

#include "cpu/memory.h"

struct graph_memory {
    struct memory_range node;  // first; the exact bounds
    struct memory_range *piece;
    struct memory_block *block;  // kept for the whole life
    unsigned refs, shown;
    bool live;
    uint64_t mark;  // scratch space of whoever holds capture_lock
};

// These functions take memory_lock themselves.
CUresult graph_memory_new(uint64_t size, int device, struct graph_memory **out);
struct graph_memory *graph_memory_find(uint64_t address);   // starts at address; with a reference; NULL: none
bool graph_memory_covers(uint64_t address, uint64_t size);  // whether the range lies in one, live or not
void graph_memory_keep(struct graph_memory *m);
void graph_memory_drop(struct graph_memory *m);  // NULL is fine
void graph_memory_show(struct graph_memory *m);
void graph_memory_hide(struct graph_memory *m);

// The allocation in the order of the API calls. memory_lock is held, and the caller has a reference.
// graph_memory_begin makes it live and shown; returns false if it was live already. graph_memory_end makes it
// not live, though it is shown until it is hidden; returns false if it was not live.
bool graph_memory_begin(struct graph_memory *m);
bool graph_memory_end(struct graph_memory *m);
void graph_memory_undo(struct graph_memory *m);     // undoes graph_memory_begin, unless it was freed since
void graph_memory_restore(struct graph_memory *m);  // undoes graph_memory_end

// cuMemFree and cuMemFreeAsync; memory_lock is held. For later calls the allocation is free at once, so that
// a launch may allocate it again. For pending work it is free when the stream reaches the free:
// graph_memory_retired is called then.
bool graph_memory_release(struct memory_block *b);                 // false: it was freed before
struct graph_memory *graph_memory_retire(struct memory_block *b);  // NULL: it was freed before
void graph_memory_retired(struct graph_memory *m);

struct graph_memory_use {
    uint64_t used, used_high, reserved, reserved_high;
};
void graph_memory_use(int device, struct graph_memory_use *out);
void graph_memory_reset_high(int device, bool used, bool reserved);
void graph_memory_trim(int device);

#endif
