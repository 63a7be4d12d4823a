// SPDX-License-Identifier: MIT
// Runs of chunks, for blocks that are too large for slabs.
//
// A thread gathers chunks upwards, with one compare-and-swap each. When it meets a chunk in use, it gives up
// what it has gathered and continues behind it. Of two threads that meet, the upper one continues; the lower
// one, if it reaches the end without success, begins again if any other thread was gathering.
#ifndef MOAT_KHEAP_KRUN_H
#define MOAT_KHEAP_KRUN_H

#include "kheap/kslab.h"

enum { KRUN_TRIES = 64 };

KPRIM_FAR void krun_give_up(uint64_t heap, uint32_t first, uint32_t n)
{
    while (n--)
        kslab_free_chunk(heap, first + n, KLAYOUT_CLAIMED);
}

KPRIM void krun_settle(uint64_t heap, uint32_t first, uint32_t n)
{
    kprim_st32(KSLAB_FIELD(heap, runs) + (uint64_t)first * 4, n, KPRIM_RELAXED);
    for (uint32_t i = n; i--;)
        kprim_add64(kslab_state(heap, first + i),
                    (i ? KLAYOUT_BODY : KLAYOUT_RUN) - (uint64_t)KLAYOUT_CLAIMED, KPRIM_RELEASE);
}

// Makes one sweep over all chunks. Returns the run's first chunk + 1, or 0. A word of hints in which all 64
// chunks are taken is skipped at once.
KPRIM uint32_t krun_sweep(uint64_t heap, uint32_t n)
{
    uint64_t hints = KSLAB_FIELD(heap, free_hints);
    uint32_t chunks = KSLAB_FIELD32(heap, chunks), have = 0;
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        uint64_t taken = kprim_ld64(hints + (uint64_t)(chunk / 64) * 8, KPRIM_RELAXED);
        if (!(taken >> chunk % 64 & 1) && kslab_take_chunk(heap, chunk, KLAYOUT_CLAIMED)) {
            if (++have < n)
                continue;
            krun_settle(heap, chunk + 1 - n, n);
            return chunk + 2 - n;
        }
        krun_give_up(heap, chunk - have, have);
        have = 0;
        if (taken == ~(uint64_t)0)
            chunk |= 63;
    }
    krun_give_up(heap, chunks - have, have);
    return 0;
}

// Returns the run's first chunk + 1, or 0 if there is no run. A sweep without success is conclusive only if
// no other thread held chunks meanwhile that it gave up later.
KPRIM_FAR uint32_t krun_take(uint64_t heap, uint32_t n)
{
    uint64_t gatherers = heap + __builtin_offsetof(struct kheap, gatherers), ended = gatherers + 8;
    bool again = n <= KSLAB_FIELD32(heap, chunks);
    uint32_t found = 0;
    kprim_add64(gatherers, 1, KPRIM_ACQ_REL);
    for (uint32_t i = 0; !found && again && i < KRUN_TRIES; i++) {
        uint64_t before = kprim_ld64(ended, KPRIM_ACQUIRE);
        found = krun_sweep(heap, n);
        again = kprim_ld64(gatherers, KPRIM_ACQUIRE) > 1 || kprim_ld64(ended, KPRIM_ACQUIRE) != before;
    }
    kprim_add64(ended, 1, KPRIM_ACQ_REL);
    kprim_add64(gatherers, (uint64_t)-1, KPRIM_ACQ_REL);
    return found;
}

KPRIM uint32_t krun_length(uint64_t heap, uint32_t first)
{
    uint32_t n = kprim_ld32(KSLAB_FIELD(heap, runs) + (uint64_t)first * 4, KPRIM_RELAXED);
    uint32_t most = KSLAB_FIELD32(heap, chunks) - first;
    return n < most ? n : most;
}

KPRIM_FAR void krun_release(uint64_t heap, uint32_t first)
{
    for (uint32_t i = krun_length(heap, first); i--;)
        kslab_free_chunk(heap, first + i, i ? KLAYOUT_BODY : KLAYOUT_RUN);
}

#endif
