// SPDX-License-Identifier: MIT
// A cache of recently unwound stacks, by their place on a thread's stack. Programs allocate from the same
// places again and again; comparing return addresses with those of a known stack is a hundred times faster
// than unwinding.
#ifndef MOAT_TRACK_STACK_CACHE_H
#define MOAT_TRACK_STACK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum { STACK_CACHE_FRAMES = 32 };

// A walk from the calling function, whose __builtin_frame_address(0) is `frame`: each return address, and
// where on the stack it lies.
struct stack_cache_walk {
    const uint64_t *frame;
    unsigned depth;  // as requested
    unsigned count;
    uint64_t pc[STACK_CACHE_FRAMES];
    uint32_t offset[STACK_CACHE_FRAMES];  // bytes from `frame`
    bool uncacheable;  // too many frames, or one of another form: the walk cannot be cached
};

void stack_cache_start(struct stack_cache_walk *walk, const void *frame, unsigned depth);

// Adds the next frame outwards: it returns to pc, and its callee's canonical frame address is `cfa`.
void stack_cache_add(struct stack_cache_walk *walk, uint64_t pc, uint64_t cfa);

// Returns the id that was cached for the stack as it is now, or 0. Never waits.
uint32_t stack_cache_find(const void *frame, unsigned depth);

// Caches the id of a walk, unless another thread is writing the same entry.
void stack_cache_keep(const struct stack_cache_walk *walk, uint32_t id);

// For tests: empties the cache.
void stack_cache_clear(void);

#endif
