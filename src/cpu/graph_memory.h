// SPDX-License-Identifier: MIT
// Memory of allocation nodes. Its address is fixed when the node is made, and it has its piece of the device's memory
// from then on; what comes and goes is the application's allocation there.
//
//   live    an allocation in the order of the calls: a launch has made it and nothing has freed it
//   shown   launches that have made it and whose free has not run yet; the block is in the tree while shown > 0
//   refs    nodes, frees on their way, and one while it is live
#ifndef MOAT_CPU_GRAPH_MEMORY_H
#define MOAT_CPU_GRAPH_MEMORY_H

#include "cpu/memory.h"

struct graph_memory {
    struct memory_range node;  // first; the exact bounds
    struct memory_range *piece;
    struct memory_block *block;  // kept for as long as it lives
    unsigned refs, shown;
    bool live;
    uint64_t mark;  // for the one who has the graphs' lock
};

// These take memory_lock themselves.
CUresult graph_memory_new(uint64_t size, int device, struct graph_memory **out);
struct graph_memory *graph_memory_find(uint64_t address);   // that starts there, with a reference; NULL
bool graph_memory_covers(uint64_t address, uint64_t size);  // whether it lies in some, live or not
void graph_memory_keep(struct graph_memory *m);
void graph_memory_drop(struct graph_memory *m);  // NULL is fine
void graph_memory_show(struct graph_memory *m);
void graph_memory_hide(struct graph_memory *m);

// The allocation as calls see it, with memory_lock held and a reference of the caller's. Whether it was not live and is now,
// shown, too; whether it was and is not any more, though shown until somebody hides it.
bool graph_memory_begin(struct graph_memory *m);
bool graph_memory_end(struct graph_memory *m);
void graph_memory_undo(struct graph_memory *m);     // of graph_memory_begin, if nobody has freed it since
void graph_memory_restore(struct graph_memory *m);  // of graph_memory_end

// cuMemFree and cuMemFreeAsync, with memory_lock held. To the calls that follow it is free at once, so a launch may make it
// again; to what is on its way only when the stream comes to the free, and graph_memory_retired is called then.
bool graph_memory_release(struct memory_block *b);                 // false: it has been freed
struct graph_memory *graph_memory_retire(struct memory_block *b);  // NULL: as that
void graph_memory_retired(struct graph_memory *m);

struct graph_memory_use {
    uint64_t used, used_high, reserved, reserved_high;
};
void graph_memory_use(int device, struct graph_memory_use *out);
void graph_memory_reset_high(int device, bool used, bool reserved);
void graph_memory_trim(int device);

#endif
