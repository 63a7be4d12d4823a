// SPDX-License-Identifier: MIT
// The partition of a device: addresses of which every one is mapped (kfence/kfence.h).
//
//   reserved:  | around | zone | memory: what buffers are cut from | sinks            | around | ...
//                sinks    sinks  [base + zone, top)                  [top, base + size)  sinks   for growth
//                       base
//   around: KFENCE_FAR and a zone
//
// Sinks are one handle of FENCE_PARTITION_UNIT bytes, mapped over and over: what kernels write there is lost,
// and what they read means nothing. Memory replaces sinks only while no kernel of the process runs, since
// unmapping does not wait, and a hole would end everyone who shares the context.
//
// Memory lies in pieces, each one handle. A piece without buffers can be given back to the driver: sinks take
// its place, again only while no kernel runs, and later memory comes there first.
//
// A partition that is full doubles: the new half is mapped before any kernel gets the larger mask.
#ifndef MOAT_FENCE_FENCE_PARTITION_H
#define MOAT_FENCE_FENCE_PARTITION_H

#include "base/vec.h"
#include "context/context.h"
#include "fence/fence_space.h"
#include "kfence/kfence.h"

enum { FENCE_PARTITION_UNIT = 64 << 20 };  // bytes; memory and sinks are multiples of it
_Static_assert(FENCE_PARTITION_UNIT == (int)KFENCE_ZONE, "a zone is one sink");

struct fence_piece {
    uint64_t base, bytes;
    bool there;  // false: sinks
};

struct fence_partition {
    CUdevice device;
    uint64_t base, size;  // size 0: there is none
    uint64_t most;        // that it can grow to; base is a multiple of it
    uint64_t top;         // end of the memory
    uint64_t held;        // bytes of memory: the pieces that are there
    VEC(struct fence_piece) pieces;
    uint64_t generation;  // changes with size
    CUmemGenericAllocationHandle sink;
    struct fence_space space;
};

// Makes the partition of ctx's device; ctx is current. Returns what the driver says.
CUresult fence_partition_make(struct fence_partition *p, struct context *ctx);
// Adds memory for a buffer of `bytes`. No kernel of the process may run, and none may be launched, until it
// returns. Requires a context of the device to be current.
CUresult fence_partition_grow(struct fence_partition *p, uint64_t bytes);
// Whether some piece lies in a free extent and has at most so many bytes.
bool fence_partition_has_free(const struct fence_partition *p, const struct fence_extent *e, uint64_t most);
// Gives pieces that lie in a free extent back to the driver, at most so many bytes. Requires what
// fence_partition_grow requires. Returns the bytes.
uint64_t fence_partition_give_back(struct fence_partition *p, struct fence_extent *e, uint64_t most);
void fence_partition_forget(struct fence_partition *p);  // in a child: the driver does not work there
// Returns whether the address is in the partition, or in a zone beside it.
static inline bool fence_partition_has(const struct fence_partition *p, uint64_t address)
{
    return p->size && address - p->base < p->size;
}
// Fills in what a module of the partition's program gets, but for state and number.
void fence_partition_describe(const struct fence_partition *p, struct kfence_module *m);

#endif
