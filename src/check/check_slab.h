// SPDX-License-Identifier: MIT
// Small buffers of --mode=check: packed into slabs of 2 MiB, at least 256 bytes apart, at addresses that are
// not used again.
//
//   slab      2 MiB of memory, in slots of one size
//   mapping   2 MiB of addresses at which a slab's memory is mapped. Each of its slots is given out at most
//             once. When the newest mapping has no slot left, but the slab has free ones, the same memory is
//             mapped at new addresses; the old mapping stays while a buffer in it is live.
//   retired   addresses of mappings that are gone. A size has at most CHECK_SLAB_RETIRED of them; then the
//             oldest are used again, and that is counted.
//
// Invariants, whenever the lock is free; check_slab_valid checks them:
//   free slots of a slab + `live` of all its mappings = slots; `live` counts buffers that wait for a stream
//   a slot that is live in a mapping is not free
//   slots at and behind `next` of a mapping were never given out there
#ifndef MOAT_CHECK_CHECK_SLAB_H
#define MOAT_CHECK_CHECK_SLAB_H

#include <stdbool.h>
#include <stdint.h>

#include "context/context.h"
#include "driver/driver.h"

enum {
    CHECK_SLAB_APART = 256,                             // least bytes between two buffers
    CHECK_SLAB_LARGEST = (1 << 20) - CHECK_SLAB_APART,  // larger buffers are not small
    CHECK_SLAB_RETIRED = 256,
};

void check_slab_after_fork(void);

// Returns the distance of slots for buffers of a size: a multiple of `alignment`, a power of two of at least
// 256.
uint32_t check_slab_stride(uint64_t size, uint32_t alignment);

// Allocates a buffer. Requires ctx to be current. Returns 0, or -ENOMEM: then the driver must allocate it.
int check_slab_alloc(struct context *ctx, uint64_t size, uint64_t *pointer);

struct check_slab_buffer {
    uint64_t base, size;
    CUcontext context;
    CUmemGenericAllocationHandle handle;  // of the slab
    uint64_t offset;                      // of the buffer in it
};
// Finds the live buffer at an address. Returns false if it is in no mapping; base == 0: it is between
// buffers.
bool check_slab_find(uint64_t address, struct check_slab_buffer *b);

// Frees the buffer that starts there, which no kernel uses any more. Returns false if there is none.
bool check_slab_free(uint64_t pointer);
// Frees it when the stream has come so far.
CUresult check_slab_free_in_order(uint64_t pointer, CUstream stream, bool per_thread);

void check_slab_context_gone(CUcontext context);
void check_slab_set_access(CUcontext context, const CUmemAccessDesc *desc);
bool check_slab_valid(void);  // for tests

#endif
