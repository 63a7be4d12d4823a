// SPDX-License-Identifier: MIT
// Buffers of --mode=pages.
//
//   addresses:  | mapped: memory.bytes, whole units                      | unmapped: the gap |
//               | slack | canary | buffer: [base, base + size) | canary  |
//
// A large buffer ends at most one alignment before the end of what is mapped; what lies between is all canary. Before
// it, only the last bytes of the slack are: one word further away is not looked at. Small buffers have no canaries:
// their neighbours in memory are other buffers.
#ifndef MOAT_PAGES_PAGES_BLOCK_H
#define MOAT_PAGES_PAGES_BLOCK_H

#include "core/canary_bytes.h"
#include "core/index.h"
#include "pages/pages_memory.h"

// From when it is made until it is disposed of:
//
//   range.base and range.size are multiples of a unit; units > range.size in units: there is a gap
//   range.base <= base, 0 < size, and base + size + tail <= range.base + range.size
//
// and until another block takes its memory over, which leaves memory.handle == 0:
//
//   range.size == memory.bytes, base == range.base + memory.offset, size == memory.asked
//   head <= memory.offset; head == tail == 0 if memory.slab != NULL
struct pages_block {
    struct index_item range;  // first; what is mapped
    uint64_t base, size;      // what the program has
    uint32_t units;           // of addresses, with the gap
    CUdevice device;
    _Atomic(CUcontext)
        context;        // that was current; NULL: it is gone, and the buffer is a pool's. Relaxed: a word
    CUmemoryPool pool;  // NULL: not stream-ordered memory
    struct pages_memory memory;
    struct canary_seed seed;  // of the canaries
    uint32_t head, tail;      // their bytes before and behind; 0: none
    _Atomic(bool) told;       // that they were changed
    // While it waits for the stream in which it was freed; see pages_order.c.
    struct pages_block *next;
    CUevent event;
    uint64_t stream;  // its id; 0: not known
    enum driver_id freed_by;
};

void pages_block_after_fork(void);

// A buffer, or NULL: plain memory must do. The context's context is current. same: memory to use again and its canaries,
// of a block of the same size, or NULL. It is not known to pages_block_find yet.
struct pages_block *pages_block_make(struct context *ctx, uint64_t size, const struct pages_block *same);

bool pages_block_valid(const struct pages_block *b);  // whether the equations above hold

// From now on it is found; false: it cannot be.
bool pages_block_publish(struct pages_block *b);

// The block whose mapped range holds the address. Inside an epoch section.
struct pages_block *pages_block_find(uint64_t address);
// The block that the program knows by this pointer, which then is no longer found; NULL: there is none.
struct pages_block *pages_block_withdraw(uint64_t pointer);
// Any block of a context, withdrawn.
struct pages_block *pages_block_withdraw_any(CUcontext context);

// Reads the canaries and reports those that were changed. The block's context is current. call: DRIVER_CALLS at exit.
void pages_block_check(struct context *ctx, struct pages_block *b, enum driver_id call, const char *note);
// Unmaps it and gives all back. Nothing uses it any more, and it is not found.
void pages_block_dispose(struct pages_block *b);

// A context is gone: what pools gave out in it stays.
void pages_block_orphan(CUcontext context);

// Gives other devices the right to use what a context, or a pool, has made.
void pages_block_let(CUcontext context, CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count);
int pages_block_each(int (*f)(struct index_item *, void *), void *context);
size_t pages_block_count(void);

#endif
