// SPDX-License-Identifier: MIT
// What KCHECK_ACCESS writes: the counters that keep equal errors apart, and the ring's writer. In device
// memory, one for each context. And what KCHECK_ENTER writes: which launch the blocks that run belong to.
//
// Errors of one site with one block share a counter, and only one of them is a record in the ring. A counter
// is claimed by a compare-and-swap of its key and never released, so that its number identifies it.
//
//   key == 0    the counter is free; count == 0
//   written     0: no record is in the ring; KCHECK_WRITING: a thread is writing it; KCHECK_WRITTEN: it is
//               there. A thread that finds the ring full sets it back to 0, so that a later error tries again
//
// A block notes its launch in launches[its number + its grid's, modulo KCHECK_LAUNCHES], where a later block
// may take its place. With key of kcheck_judge_who:
//
//   check ^ launch == key    the launch is that of the block with this key
//   else                     another block's, or one of several that wrote at once: unknown
#ifndef MOAT_KCHECK_KCHECK_STATE_H
#define MOAT_KCHECK_KCHECK_STATE_H

#include <stdint.h>

#include "ring/error_ring.h"

enum {
    KCHECK_COUNTERS = 1 << 13,  // a power of two
    KCHECK_PROBES = 32,         // most counters that an error looks at; then it is recorded without one
    KCHECK_RING = 4096,         // records of the ring
    KCHECK_LAUNCHES = 1 << 14,  // a power of two, more than the blocks that run at a time
    KCHECK_WRITING = 1,
    KCHECK_WRITTEN = 2,
};

struct kcheck_counter {
    uint64_t key;
    uint64_t count;
    uint64_t written;
    uint64_t unused;
};

struct kcheck_launch {
    uint64_t check, launch;
};

struct kcheck_state {
    struct error_ring_writer errors;
    uint64_t trap;     // 1: an error stops the kernel
    uint64_t crowded;  // errors that found no counter
    uint64_t unused[14];
    struct kcheck_counter counters[KCHECK_COUNTERS];
    struct kcheck_launch launches[KCHECK_LAUNCHES];  // the last member: the host does not read it
};

#endif
