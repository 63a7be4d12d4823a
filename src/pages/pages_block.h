// SPDX-License-Identifier: MIT
// Buffers of --mode=pages.
//
//   addresses:  | mapped: memory.bytes, whole units                      | unmapped: the gap |
//               | slack | canary | buffer: [base, base + size) | canary  |
//
// A large buffer ends at most one alignment before the end of the mapped range; all bytes in between are
// canary. Before it, only the last bytes of the slack are canary; the others are not checked. Small buffers
// have no canaries: their neighbours in memory are other buffers.
#ifndef MOAT_PAGES_PAGES_BLOCK_H
#define MOAT_PAGES_PAGES_BLOCK_H

#include "core/canary_bytes.h"
#include "core/index.h"
#include "pages/pages_memory.h"

// A packed buffer (pages_packed.h) is the start of its slot, which is its range; it has no canaries and no
// units. For all others, from their creation until they are disposed of:
//
//   range.base and range.size are multiples of a unit; units > range.size in units: there is a gap
//   range.base <= base, 0 < size, and base + size + tail <= range.base + range.size
//
// and until another block takes over its memory, which leaves memory.handle == 0:
//
//   range.size == memory.bytes, base == range.base + memory.offset, size == memory.asked
//   head <= memory.offset; head == tail == 0 if memory.slab != NULL
struct pages_block {
    struct index_item range;  // first member; the mapped range
    uint64_t base, size;      // the program's buffer
    uint32_t units;           // of addresses, with the gap
    uint32_t front;           // units before it that are free for its redzone
    CUdevice device;
    // The context that was current; NULL: destroyed, and the buffer is a pool's. Relaxed: it stands alone.
    _Atomic(CUcontext) context;
    CUmemoryPool pool;  // NULL: not stream-ordered memory
    struct pages_memory memory;
    struct canary_seed seed;  // of the canaries
    uint32_t head, tail;      // bytes of the canaries before and behind; 0: none
    _Atomic(bool) reported;   // changed canaries have been reported
    // For a block that waits for the stream in which it was freed; see pages_order.c.
    struct pages_block *next;
    CUevent event;
    uint64_t stream;  // its id; 0: not known
    enum driver_id freed_by;
};

void pages_block_after_fork(void);

// Creates a buffer that pages_block_find does not find yet. Returns NULL if plain memory must do. same: a
// block of the same size whose memory and canaries are taken over, or NULL. Requires ctx to be current.
struct pages_block *pages_block_make(struct context *ctx, uint64_t size, const struct pages_block *same);

bool pages_block_valid(const struct pages_block *b);  // whether the equations above hold

// Makes the block known to pages_block_find. Returns false if out of memory.
bool pages_block_publish(struct pages_block *b);

// Returns the block whose mapped range holds the address. Call it in an epoch section.
struct pages_block *pages_block_find(uint64_t address);
// Withdraws the block of the buffer that starts at `pointer`, so that it is no longer found, and returns it;
// NULL if there is none.
struct pages_block *pages_block_withdraw(uint64_t pointer);
// Withdraws any block of a context that is not a pool's.
struct pages_block *pages_block_withdraw_any(CUcontext context);

// Reads the canaries and reports changes, once. Requires the block's context to be current. call:
// DRIVER_CALLS at exit.
void pages_block_check(struct context *ctx, struct pages_block *b, enum driver_id call, const char *note);
// Unmaps a withdrawn block that nothing uses any more, and gives back its memory and addresses.
void pages_block_dispose(struct pages_block *b);

// Clears the context of pool buffers, which outlive it.
void pages_block_orphan(CUcontext context);

// Sets the access of other devices to the blocks of a context, or of a pool if pool != NULL.
void pages_block_set_access(CUcontext context, CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count);
int pages_block_each(int (*f)(struct index_item *, void *), void *context);
size_t pages_block_count(void);

#endif
