// SPDX-License-Identifier: MIT
// The byte arrays, in which every live block is recorded with 9 bytes, so that a scan finds it.
//
// An array's control word counts entries in use and hands out tickets, in one addition. A thread that finds
// fewer in use than there are entries is due one: the ticket says where to start the search for a header that
// is 0. The thread claims it by setting TAKEN, writes the address, and sets LIVE last, with release. Only a
// scan that holds the entry's group (BUSY) reads the entry; it clears the header when the block is released,
// and then decrements the count. So
//
//     headers that are not 0  <=  entries in use
//
// always holds, and the search ends. An array that is four fifths full gets another segment as large as all
// it has: nothing ever moves, so there is no old array that another thread could still be writing to.
// Released entries are reused in place.
#ifndef MOAT_KHEAP_KENTRY_H
#define MOAT_KHEAP_KENTRY_H

#include "kheap/krun.h"

enum {
    KENTRY_TAKEN = 1,
    KENTRY_LIVE = 2,
    KENTRY_REPORTED = 4,  // an error is reported once
    KENTRY_BUSY = 128,    // in the first header of a group: it is being scanned
    KENTRY_ALL = 7,
    KENTRY_PATIENCE = 1 << 16,
};

struct kentry_place {
    uint64_t address, header;  // their addresses; the header's is that of a word of four
    uint32_t shift;            // of the header in its word
};

KPRIM uint64_t kentry_array(uint64_t heap, uint32_t array)
{
    return KSLAB_FIELD(heap, arrays_at) + (uint64_t)array * sizeof(struct klayout_array);
}

#define KENTRY_AT(array, field) ((array) + __builtin_offsetof(struct klayout_array, field))

KPRIM uint32_t kentry_count(uint32_t level)
{
    return (uint32_t)KLAYOUT_ENTRIES << level;
}

// Returns the array's level. Pairs with the release in kentry_grow: segments up to that level exist.
KPRIM uint32_t kentry_level(uint64_t at)
{
    uint32_t level = kprim_ld32(KENTRY_AT(at, level), KPRIM_RELAXED);
    if (level)
        level = kprim_ld32(KENTRY_AT(at, level), KPRIM_ACQUIRE);
    return level < KLAYOUT_LEVELS ? level : 0;
}

KPRIM struct kentry_place kentry_place(uint64_t heap, uint32_t array, uint64_t at, uint32_t i)
{
    uint64_t segment;
    uint32_t n = KLAYOUT_ENTRIES;
    if (i < n) {
        segment = KSLAB_FIELD(heap, entries) + (uint64_t)array * KLAYOUT_SEGMENT_BYTES;
    } else {
        uint32_t level = 32 - (uint32_t)__builtin_clz(i / KLAYOUT_ENTRIES);
        segment = kprim_get64(KENTRY_AT(at, segment) + (uint64_t)level * 8);
        n = kentry_count(level - 1);
        i -= n;
    }
    uint64_t headers = segment + (uint64_t)n * 8;
    return (struct kentry_place){segment + (uint64_t)i * 8, headers + i / 4 * 4, i % 4 * 8};
}

// --- growing -----------------------------------------------------------------------------------------------

// Returns memory for a segment; 0 if there is none.
KPRIM uint64_t kentry_memory(uint64_t heap, uint64_t bytes)
{
    uint64_t pool = KSLAB_FIELD(heap, pool), bits;
    if (bytes > KLAYOUT_SLAB_MOST) {
        uint32_t run = krun_take(heap, (uint32_t)((bytes + KLAYOUT_CHUNK - 1) / KLAYOUT_CHUNK));
        return run ? pool + (uint64_t)(run - 1) * KLAYOUT_CHUNK : 0;
    }
    uint32_t class = kslab_class((uint32_t)bytes);
    struct kslab_due due = kslab_unpack(kslab_take(heap, class, 1));
    if (!due.n)
        return 0;
    uint32_t word = kslab_find(heap, class, &due, &bits);
    uint64_t offset = (word + (uint32_t)__builtin_ctzll(bits)) * (uint64_t)kslab_size(class);
    return pool + (uint64_t)due.chunk * KLAYOUT_CHUNK + offset;
}

// Waits for another thread that is adding the next level, and shares its result: that thread only takes
// memory and writes a segment. The wait is bounded in case the heap was overwritten. Returns 1 if the array
// has grown, 0 if it has not, -1 if the caller must add the level.
KPRIM int kentry_wait(uint64_t at, uint32_t level)
{
    uint64_t growing = KENTRY_AT(at, growing), now = KENTRY_AT(at, level);
    if (!kprim_ld32(growing, KPRIM_RELAXED) && !kprim_cas32(growing, 0, 1))
        return -1;
    for (uint32_t i = 0; i < KENTRY_PATIENCE && kprim_ld32(growing, KPRIM_RELAXED); i++)
        if (kprim_ld32(now, KPRIM_RELAXED) != level)
            return 1;
        else
            kprim_pause();
    return kprim_ld32(now, KPRIM_RELAXED) != level;
}

// Grows the array from `level` to the next. Returns false if out of memory.
KPRIM_FAR bool kentry_grow(uint64_t heap, uint64_t at, uint32_t level)
{
    uint64_t growing = KENTRY_AT(at, growing), now = KENTRY_AT(at, level);
    if (level + 1 >= KLAYOUT_LEVELS)
        return false;
    int others = kentry_wait(at, level);
    if (others >= 0)
        return others;
    if (kprim_ld32(now, KPRIM_RELAXED) == level) {
        uint32_t n = kentry_count(level);
        uint64_t segment = kentry_memory(heap, (uint64_t)n * 9);
        if (segment) {
            for (uint32_t i = 0; i < n; i += 8)
                kprim_put64(segment + (uint64_t)n * 8 + i, 0);
            kprim_put64(KENTRY_AT(at, segment) + (level + 1) * (uint64_t)8, segment);
            kprim_st32(now, level + 1, KPRIM_RELEASE);
        }
    }
    bool grown = kprim_ld32(now, KPRIM_RELAXED) != level;
    kprim_st32(growing, 0, KPRIM_RELEASE);
    return grown;
}

// --- inserting ---------------------------------------------------------------------------------------------

// Claims an entry, searching from entry `i` on. Returns false if two complete turns found none, which means
// that headers were overwritten.
KPRIM bool kentry_claim(uint64_t heap, uint32_t array, uint64_t at, uint32_t count, uint32_t i,
                        struct kentry_place *place)
{
    for (uint32_t turns = 0, four = 0; turns <= 2 * count; turns += 4) {
        *place = kentry_place(heap, array, at, i);
        // The first is tried without reading it, as it is most likely unused.
        if (turns)
            four = kprim_ld32(place->header, KPRIM_RELAXED);
        for (; place->shift < 32; place->shift += 8) {
            uint32_t bit = (uint32_t)KENTRY_TAKEN << place->shift;
            if (!(four & bit) && !(kprim_or32(place->header, bit, KPRIM_ACQUIRE) & bit)) {
                place->address += (place->shift - i % 4 * 8);
                return true;
            }
        }
        i = (i & ~3u) + 4 < count ? (i & ~3u) + 4 : 0;
    }
    return false;
}

// Records a block. Returns false if the array is full. What was written to the block before is visible to
// whoever finds the entry.
KPRIM_FAR bool kentry_insert(uint64_t heap, uint32_t array, uint64_t block)
{
    uint64_t at = kentry_array(heap, array);
    uint64_t control = kprim_add64(KENTRY_AT(at, control), (uint64_t)1 << 32 | 1, KPRIM_RELAXED);
    uint32_t used = (uint32_t)control, ticket = (uint32_t)(control >> 32);
    uint32_t level = kentry_level(at), count = kentry_count(level);
    // One thread grows the array in time; threads that find no entry left must wait for it.
    if (used == count - count / 5)
        kentry_grow(heap, at, level);
    while (used >= (count = kentry_count(level = kentry_level(at))) && kentry_grow(heap, at, level))
        continue;
    struct kentry_place place;
    if (used >= count || !kentry_claim(heap, array, at, count, ticket % count, &place)) {
        kprim_add64(KENTRY_AT(at, control), (uint64_t)-1, KPRIM_RELEASE);
        return false;
    }
    kprim_put64(place.address, block);
    kprim_or32(place.header, (uint32_t)KENTRY_LIVE << place.shift, KPRIM_RELEASE);
    return true;
}

// Makes the entry unused. The caller must hold the group (BUSY).
KPRIM void kentry_expire(uint64_t heap, uint32_t array, const struct kentry_place *place)
{
    kprim_and32(place->header, ~((uint32_t)KENTRY_ALL << place->shift), KPRIM_RELEASE);
    kprim_add64(KENTRY_AT(kentry_array(heap, array), control), (uint64_t)-1, KPRIM_RELEASE);
}

// --- groups ------------------------------------------------------------------------------------------------

KPRIM uint32_t kentry_groups(uint64_t heap, uint32_t array)
{
    return kentry_count(kentry_level(kentry_array(heap, array))) / KLAYOUT_GROUP;
}

// Returns whether the group is ours now. Pairs with kentry_unlock of its last holder.
KPRIM bool kentry_lock(uint64_t heap, uint32_t array, uint32_t group)
{
    struct kentry_place p = kentry_place(heap, array, kentry_array(heap, array), group * KLAYOUT_GROUP);
    return !(kprim_or32(p.header, KENTRY_BUSY, KPRIM_ACQUIRE) & KENTRY_BUSY);
}

KPRIM void kentry_unlock(uint64_t heap, uint32_t array, uint32_t group)
{
    struct kentry_place p = kentry_place(heap, array, kentry_array(heap, array), group * KLAYOUT_GROUP);
    kprim_and32(p.header, ~(uint32_t)KENTRY_BUSY, KPRIM_RELEASE);
}

#endif
