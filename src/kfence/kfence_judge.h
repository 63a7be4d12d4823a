// SPDX-License-Identifier: MIT
// The bodies of the functions of kfence.h. For global memory, the first that applies decides:
//
//   in the partition                         the access is made
//   where blocks of a grid synchronise       the access is made
//   between blocks that malloc gave          the access is made: the heap of kernels is one piece
//   inside one of the further ranges         the access is made
//   else                                     KFENCE_LEFT; the access goes to the sink
//
// An access that is made but not aligned is KFENCE_MISALIGNED, and made at the multiple below.
#ifndef MOAT_KFENCE_KFENCE_JUDGE_H
#define MOAT_KFENCE_KFENCE_JUDGE_H

#include "kfence/kfence.h"
#include "kfence/kfence_word.h"
#include "kprim/kprim.h"
#include "ring/error_ring_write.h"

#define KFENCE_IN(state, field) ((state) + __builtin_offsetof(struct kfence_state, field))
#define KFENCE_TABLE(table, field) ((table) + __builtin_offsetof(struct kfence_table, field))

// Returns whether [address, end) is inside the last range that begins at or before the address.
KPRIM_FAR bool kfence_judge_search(uint64_t table, uint64_t address, uint64_t end)
{
    uint64_t low = 0, high = kprim_ld64(KFENCE_TABLE(table, count), KPRIM_RELAXED);
    high = high < KFENCE_RANGES ? high : KFENCE_RANGES;
    while (low < high) {
        uint64_t middle = (low + high) / 2, at = KFENCE_TABLE(table, ranges) + 16 * middle;
        if (kprim_ld64(at, KPRIM_RELAXED) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && end <= kprim_ld64(KFENCE_TABLE(table, ranges) + 16 * low - 8, KPRIM_RELAXED);
}

KPRIM bool kfence_judge_is_listed(uint64_t state, uint64_t address, uint64_t end)
{
    for (;;) {
        uint64_t table = kprim_ld64(KFENCE_IN(state, current), KPRIM_ACQUIRE);
        uint64_t version = kprim_ld64(KFENCE_TABLE(table, version), KPRIM_ACQUIRE);
        bool listed = kfence_judge_search(table, address, end);
        kprim_fence();  // the ranges were read between two equal versions
        if (!(version & 1) && kprim_ld64(KFENCE_TABLE(table, version), KPRIM_RELAXED) == version)
            return listed;
    }
}

// Returns whether the address is in the memory by which the blocks of a cooperative launch synchronise. The
// driver passes it in two special registers.
KPRIM bool kfence_judge_is_grid(uint64_t address, uint64_t end)
{
    uint64_t at = kprim_grid_memory();
    return at && address >= at && end <= at + KFENCE_GRID;
}

KPRIM bool kfence_judge_may(const struct kfence_module *m, uint64_t address, uint64_t width)
{
    uint64_t end = address + width;
    if (!((address ^ m->base) & m->outside))
        return true;
    if (end < address)
        return false;
    // The search of the list takes longest.
    return kfence_judge_is_grid(address, end) ||
           (kprim_ld64(KFENCE_IN(m->state, heap_low), KPRIM_RELAXED) <= address &&
            end <= kprim_ld64(KFENCE_IN(m->state, heap_high), KPRIM_RELAXED)) ||
           kfence_judge_is_listed(m->state, address, end);
}

// --- objects -----------------------------------------------------------------------------------------------

KPRIM uint64_t kfence_judge_object(uint64_t state, uint64_t word)
{
    uint64_t place = kfence_hash(word), found;
    for (unsigned i = 0; state && i < KFENCE_OBJECTS; i++, place++) {
        uint64_t at = KFENCE_IN(state, objects) + place % KFENCE_OBJECTS * sizeof(struct kfence_object);
        found = kprim_ld64(at, KPRIM_RELAXED);
        if (found == word)
            return kprim_ld64(at + 8, KPRIM_RELAXED) + 1;
        if (!found)
            return 0;
    }
    return 0;
}

// --- records -----------------------------------------------------------------------------------------------

// Records the first error of its kind at a site; counts the others.
KPRIM_FAR void kfence_judge_record(uint64_t state, uint64_t number, uint64_t kind, uint64_t what,
                                   uint64_t address)
{
    if (kprim_get64(KFENCE_IN(state, silent)))
        return;
    kprim_add64(KFENCE_IN(state, faults), 1, KPRIM_RELAXED);
    uint32_t bit = (uint32_t)kfence_hash(number << 40 ^ kind << 32 ^ (uint32_t)what) % KFENCE_SEEN;
    uint64_t word = KFENCE_IN(state, seen) + bit / 32 * 4, place;
    uint32_t set = 1u << bit % 32;
    if (kprim_ld32(word, KPRIM_RELAXED) & set || kprim_or32(word, set, KPRIM_RELAXED) & set)
        return;
    uint64_t at = error_ring_write_begin(KFENCE_IN(state, errors),
                                         ERROR_RING_WHAT(ERROR_RING_FENCE, kind, what), address, &place);
    if (!at)
        return;
    error_ring_write_word(at, 0, what);
    error_ring_write_word(at, 1, number);
    error_ring_write_end(at, place);
}

// --- what kernels call -------------------------------------------------------------------------------------

// Returns the address that is accessed in place of this one.
KPRIM uint64_t kfence_judge_find(const struct kfence_module *m, uint64_t what, uint64_t address)
{
    uint64_t flags = what >> 48, width = (what >> 32 & 0xffff) | what >> 56 << 16;
    // What is neither in global memory nor in a space that was looked at before is constant memory: it may be
    // read.
    bool constant = flags & KFENCE_GENERIC && !kprim_is_global(address), writes = flags & KFENCE_WRITES;
    uint64_t low = flags & KFENCE_ALIGNED ? address & ((flags & KFENCE_WIDE ? 16 : width) - 1) : 0;
    if (constant && !writes && (!low || !m->state))
        return address - low;
    if (!m->state)
        return m->sink;
    if (constant && writes) {
        kfence_judge_record(m->state, m->number, KFENCE_LEFT, what, address);
        return m->sink;
    }
    if (!constant && !kfence_judge_may(m, address, width ? width : 1)) {
        kfence_judge_record(m->state, m->number, KFENCE_LEFT, what, address);
        return m->sink;
    }
    if (low)
        kfence_judge_record(m->state, m->number, KFENCE_MISALIGNED, what, address);
    return address - low;
}

KPRIM void kfence_judge_note(const struct kfence_module *m, uint64_t kind, uint64_t what, uint64_t address)
{
    if (m->state)
        kfence_judge_record(m->state, m->number, kind, what, address);
}

// malloc in a kernel returned this block.
KPRIM void kfence_judge_took(const struct kfence_module *m, uint64_t address, uint64_t bytes)
{
    if (!m->state || !address)
        return;
    kprim_min64(KFENCE_IN(m->state, heap_low), address);
    kprim_max64(KFENCE_IN(m->state, heap_high), address + bytes);
}

#endif
