// SPDX-License-Identifier: MIT
// A heap in the memory of a test.
#ifndef MOAT_KHEAP_KHEAP_TESTING_H
#define MOAT_KHEAP_KHEAP_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "kheap/kalloc.h"

struct kheap_testing {
    struct kheap plan;
    struct error_ring *ring;
    uint8_t *memory;
    uint64_t heap;
};

static inline void kheap_testing_reset(struct kheap_testing *t)
{
    memset(t->memory, 0, t->plan.clear);
    memcpy(t->memory, &t->plan, sizeof t->plan);
    memset(t->ring, 0, kheap_ring_bytes());
}

static inline void kheap_testing_make(struct kheap_testing *t, uint32_t chunks, __typeof__(kheap_plan) *plan)
{
    const uint64_t keys[KHEAP_KEYS] = {0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u,
                                       0x082efa98ec4e6c89u};
    memset(t, 0, sizeof *t);
    if (plan(&t->plan, 8 << 20, KHEAP_ARRAYS, keys))
        abort();
    t->memory = aligned_alloc(256, (t->plan.bytes + 255) / 256 * 256);
    t->ring = calloc(1, kheap_ring_bytes());
    if (!t->memory || !t->ring)
        abort();
    t->heap = (uintptr_t)t->memory;
    kheap_place(&t->plan, t->heap, (uintptr_t)t->ring);
    if (chunks) {
        t->plan.chunks = chunks;
        t->plan.buckets = 1;
        t->plan.hint_words = (chunks + 63) / 64;
    }
    kheap_testing_reset(t);
}

// Makes a heap with so many chunks; 0: as many as a limit of 8 MiB gives.
static inline void kheap_testing_new(struct kheap_testing *t, uint32_t chunks)
{
    kheap_testing_make(t, chunks, kheap_plan);
}

// The same for one in which blocks can be found by any address.
static inline void kheap_testing_new_found(struct kheap_testing *t, uint32_t chunks)
{
    kheap_testing_make(t, chunks, kheap_plan_found);
}

static inline void kheap_testing_free(struct kheap_testing *t)
{
    free(t->memory);
    free(t->ring);
}

static inline void kheap_testing_scan(struct kheap_testing *t)
{
    kscan_all(t->heap, 0, 1, kscan_team(1));
}

// Returns the number of records.
static inline uint64_t kheap_testing_records(const struct kheap_testing *t)
{
    return kprim_ld64(t->heap + __builtin_offsetof(struct kheap, errors.next), KPRIM_ACQUIRE);
}

static inline uint64_t kheap_testing_waits(const struct kheap_testing *t)
{
    return kprim_ld64(KSCAN_PENDING(t->heap), KPRIM_ACQUIRE);
}

// Returns the chunks that are free or whole: when nothing is in use, all but those of grown arrays.
static inline uint32_t kheap_testing_whole(const struct kheap_testing *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->plan.chunks; i++)
        n += kslab_whole(kprim_ld64(kslab_state(t->heap, i), KPRIM_ACQUIRE));
    return n;
}

#endif
