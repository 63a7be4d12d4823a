// SPDX-License-Identifier: MIT
// Stacks that were walked lately, by where on a thread's stack they were. Programs allocate from the same places again
// and again; to see that a stack is one already known is to compare its return addresses, a hundred times faster than to
// unwind it.
#ifndef MOAT_TRACK_STACK_CACHE_H
#define MOAT_TRACK_STACK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum { STACK_CACHE_FRAMES = 32 };

// A walk from the frame of the function that calls, whose __builtin_frame_address(0) `frame` is: each return address, and
// where on the stack it lies.
struct stack_cache_walk {
    const uint64_t *frame;
    unsigned depth;  // asked for
    unsigned count;
    uint64_t pc[STACK_CACHE_FRAMES];
    uint32_t offset[STACK_CACHE_FRAMES];  // bytes from `frame`
    bool too_much;                        // more frames, or one that is not as others: it cannot be kept
};

void stack_cache_start(struct stack_cache_walk *walk, const void *frame, unsigned depth);

// The next frame outwards: it returns to pc, and its callee's frame ends at `cfa`, the canonical frame address.
void stack_cache_add(struct stack_cache_walk *walk, uint64_t pc, uint64_t cfa);

// The id that was kept for the stack that is there now; 0: none. Never waits.
uint32_t stack_cache_find(const void *frame, unsigned depth);

// Keeps the id of a walk, unless another thread does at the same place.
void stack_cache_keep(const struct stack_cache_walk *walk, uint32_t id);

// For tests: forgets all.
void stack_cache_clear(void);

#endif
