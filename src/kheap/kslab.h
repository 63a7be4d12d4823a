// SPDX-License-Identifier: MIT
// Slabs of 64 KiB with blocks of 36 classes.
//
// A chunk's state is one word: the signed number of available blocks, above the chunk's use (klayout.h). A
// thread that wants n blocks subtracts n from the number; if they were available, it is due n bits of the
// slab's bitmap. A thread that gives a block back first sets its bit and then adds to the number. So
//
//     bits set in the bitmap  >=  number + blocks that were subtracted and whose bits were not cleared yet
//
// and the search for a bit that is due ends. A thread that finds the number too small, or the chunk of
// another use by now, adds back what it subtracted; until then the number is too low, never too high. A chunk
// changes from free or whole to another use only by a compare-and-swap on that one word, from exactly "all
// blocks are available", so no thread can be searching for bits in it.
//
// Hints say where to search: a bit for each chunk that is free or whole, and for each class one for each slab
// with available blocks. A hint may be wrong in one way only, set without need: it is set after the state
// says so, and a thread that clears it reads the state again. All are acquire-release operations: if the
// clearing of a hint saw it being set, it sees the state too.
#ifndef MOAT_KHEAP_KSLAB_H
#define MOAT_KHEAP_KSLAB_H

#include "kheap/kheap.h"
#include "kheap/klayout.h"
#include "kprim/kprim.h"

#define KSLAB_FIELD(heap, name) kprim_get64((heap) + __builtin_offsetof(struct kheap, name))
#define KSLAB_FIELD32(heap, name) kprim_get32((heap) + __builtin_offsetof(struct kheap, name))

enum { KSLAB_PATIENCE = 1 << 12 };  // times to wait for slabs that other threads make

// n blocks of a chunk whose bits are still to be found, searching from bit `from` on.
struct kslab_due {
    uint32_t chunk, n, from;
};

// Packed into one word, to be returned in a register; 0: no blocks.
KPRIM uint64_t kslab_pack(uint32_t chunk, uint32_t n, uint32_t from)
{
    return (uint64_t)chunk << 32 | n << 16 | from;
}

KPRIM struct kslab_due kslab_unpack(uint64_t due)
{
    return (struct kslab_due){(uint32_t)(due >> 32), (uint32_t)due >> 16, (uint32_t)due & 0xffff};
}

// --- classes -----------------------------------------------------------------------------------------------

// Classes are numbered from KLAYOUT_CLASS_FIRST: steps of 16 up to 128, four steps for each doubling up to
// 8192, then the sizes that fit a chunk 6, 5, 4, 3 and 2 times.
KPRIM uint32_t kslab_size(uint32_t class)
{
    uint32_t c = class - KLAYOUT_CLASS_FIRST;
    if (c < 7)
        return 32 + 16 * c;
    c -= 7;
    if (c < 24)
        return (128u << c / 4) + (c % 4 + 1) * (32u << c / 4);
    return KLAYOUT_CHUNK / (30 - c) / 16 * 16;
}

KPRIM uint32_t kslab_blocks(uint32_t class)
{
    return KLAYOUT_CHUNK / kslab_size(class);
}

// Requires bytes <= KLAYOUT_SLAB_MOST.
KPRIM uint32_t kslab_class(uint32_t bytes)
{
    if (bytes <= 32)
        return KLAYOUT_CLASS_FIRST;
    if (bytes <= 128)
        return KLAYOUT_CLASS_FIRST + (bytes + 15) / 16 - 2;
    if (bytes <= 8192) {
        uint32_t log = 31 - (uint32_t)__builtin_clz(bytes - 1);
        return KLAYOUT_CLASS_FIRST + 7 + (log - 7) * 4 + ((bytes - 1) >> (log - 2) & 3);
    }
    uint32_t c = KLAYOUT_CLASS_FIRST + 31;
    while (kslab_size(c) < bytes)
        c++;
    return c;
}

KPRIM bool kslab_is_class(uint32_t what)
{
    return what - KLAYOUT_CLASS_FIRST < KLAYOUT_CLASSES;
}

// --- states ------------------------------------------------------------------------------------------------

KPRIM uint32_t kslab_what(uint64_t state)
{
    return (uint32_t)state;
}

KPRIM int32_t kslab_number(uint64_t state)
{
    return (int32_t)(state >> 32);
}

KPRIM uint64_t kslab_state(uint64_t heap, uint32_t chunk)
{
    return KSLAB_FIELD(heap, states) + (uint64_t)chunk * 8;
}

KPRIM uint64_t kslab_bitmap(uint64_t heap, uint32_t chunk)
{
    return KSLAB_FIELD(heap, bitmaps) + (uint64_t)chunk * (KLAYOUT_BITMAP * 8);
}

// Returns whether nothing in the chunk is in use.
KPRIM bool kslab_whole(uint64_t state)
{
    uint32_t what = kslab_what(state);
    if (what == KLAYOUT_FREE)
        return kslab_number(state) == 0;
    return kslab_is_class(what) && kslab_number(state) == (int32_t)kslab_blocks(what);
}

// --- hints -------------------------------------------------------------------------------------------------

// In the hints of free chunks a set bit means "not free", so that zeroed memory is a heap in which all is
// free.
KPRIM void kslab_free_hint(uint64_t heap, uint32_t chunk, bool is_free)
{
    uint64_t at = KSLAB_FIELD(heap, free_hints) + (uint64_t)(chunk / 64) * 8, bit = (uint64_t)1 << chunk % 64;
    if (is_free)
        kprim_and64(at, ~bit, KPRIM_ACQ_REL);
    else
        kprim_or64(at, bit, KPRIM_ACQ_REL);
}

KPRIM uint64_t kslab_class_hints(uint64_t heap, uint32_t class)
{
    return KSLAB_FIELD(heap, class_hints) +
           (uint64_t)(class - KLAYOUT_CLASS_FIRST) * KSLAB_FIELD32(heap, hint_words) * 8;
}

KPRIM void kslab_class_hint(uint64_t heap, uint32_t class, uint32_t chunk, bool has)
{
    uint64_t at = kslab_class_hints(heap, class) + (uint64_t)(chunk / 64) * 8,
             bit = (uint64_t)1 << chunk % 64;
    if (has)
        kprim_or64(at, bit, KPRIM_ACQ_REL);
    else
        kprim_and64(at, ~bit, KPRIM_ACQ_REL);
}

// Clears the hint unless the chunk is free or whole. A free chunk whose number is off for a moment stays
// hinted, as nobody else would set the hint again.
KPRIM void kslab_unhint_free(uint64_t heap, uint32_t chunk)
{
    kslab_free_hint(heap, chunk, false);
    uint64_t state = kprim_ld64(kslab_state(heap, chunk), KPRIM_ACQUIRE);
    if (kslab_what(state) == KLAYOUT_FREE || kslab_whole(state))
        kslab_free_hint(heap, chunk, true);
}

KPRIM void kslab_unhint_class(uint64_t heap, uint32_t class, uint32_t chunk)
{
    kslab_class_hint(heap, class, chunk, false);
    uint64_t state = kprim_ld64(kslab_state(heap, chunk), KPRIM_ACQUIRE);
    if (kslab_what(state) == class && kslab_number(state) > 0)
        kslab_class_hint(heap, class, chunk, true);
}

// --- giving back -------------------------------------------------------------------------------------------

// Makes n more blocks available: their bits are set, or they were subtracted in error. The release pairs with
// kslab_reserve.
KPRIM void kslab_give(uint64_t heap, uint32_t chunk, uint32_t n)
{
    uint64_t state = kprim_add64(kslab_state(heap, chunk), (uint64_t)n << 32, KPRIM_RELEASE);
    uint32_t what = kslab_what(state);
    if (!kslab_is_class(what))
        return;
    int32_t now = kslab_number(state) + (int32_t)n;
    if (kslab_number(state) <= 0 && now > 0)
        kslab_class_hint(heap, what, chunk, true);
    if (now == (int32_t)kslab_blocks(what))
        kslab_free_hint(heap, chunk, true);
}

// Releases a block. The release pairs with the acquire in kslab_find: what was done with the block comes
// before its next use.
KPRIM void kslab_release(uint64_t heap, uint32_t chunk, uint32_t block)
{
    kprim_or64(kslab_bitmap(heap, chunk) + (uint64_t)(block / 64) * 8, (uint64_t)1 << block % 64,
               KPRIM_RELEASE);
    kslab_give(heap, chunk, 1);
}

// --- taking ------------------------------------------------------------------------------------------------

// Returns the position of the n-th set bit of x, from 0; 64 if there are not so many.
KPRIM uint32_t kslab_nth(uint64_t x, uint32_t n)
{
    uint32_t at = 0;
    if (n >= (uint32_t)__builtin_popcountll(x))
        return 64;
    for (uint32_t step = 32; step; step /= 2) {
        uint32_t below = (uint32_t)__builtin_popcountll(x >> at & (((uint64_t)1 << step) - 1));
        if (n >= below) {
            n -= below;
            at += step;
        }
    }
    return at;
}

// Subtracts up to `want` blocks from the chunk and returns them packed, if it is a slab of that class. The
// acquire pairs with kslab_give: the bits that the number counts are visible, and so is the bitmap that
// kslab_make wrote.
KPRIM uint64_t kslab_reserve(uint64_t heap, uint32_t chunk, uint32_t class, uint32_t want)
{
    uint64_t state =
        kprim_add64(kslab_state(heap, chunk), (uint64_t)0 - ((uint64_t)want << 32), KPRIM_ACQUIRE);
    int32_t number = kslab_what(state) == class ? kslab_number(state) : 0;
    uint32_t n = number <= 0 ? 0 : (uint32_t)number < want ? (uint32_t)number : want;
    if (n < want)
        kslab_give(heap, chunk, want - n);
    return n ? kslab_pack(chunk, n, kslab_blocks(class) - (uint32_t)number) : 0;
}

// Takes at least one of the due blocks, all from one word: sets *bits and returns the number of that word's
// first bit. The search begins where the bits of a slab are that was only taken from, and tries these without
// reading. The acquire pairs with kslab_release.
KPRIM uint32_t kslab_find(uint64_t heap, uint32_t class, struct kslab_due *due, uint64_t *bits)
{
    uint64_t map = kslab_bitmap(heap, due->chunk);
    uint32_t words = (kslab_blocks(class) + 63) / 64, w = due->from / 64;
    uint64_t pick = (((uint64_t)1 << due->n) - 1) << due->from % 64;
    for (;;) {
        uint64_t got = pick ? kprim_and64(map + w * 8, ~pick, KPRIM_ACQUIRE) & pick : 0;
        if (got) {
            due->n -= (uint32_t)__builtin_popcountll(got);
            due->from = (w + 1 < words ? w + 1 : 0) * 64;
            *bits = got;
            return w * 64;
        }
        w = w + 1 < words ? w + 1 : 0;
        uint64_t there = kprim_ld64(map + w * 8, KPRIM_RELAXED);
        uint32_t end = kslab_nth(there, due->n);
        pick = end < 64 ? there & (((uint64_t)1 << end) - 1) : there;
    }
}

KPRIM uint64_t kslab_slabs(uint64_t heap, uint32_t class)
{
    return KSLAB_FIELD(heap, actives) + (uint64_t)(class - KLAYOUT_CLASS_FIRST) * 4;
}

// Takes the chunk if nothing in it is in use, for use as `what`, with no available blocks. Returns whether it
// did.
KPRIM bool kslab_take_chunk(uint64_t heap, uint32_t chunk, uint32_t what)
{
    uint64_t at = kslab_state(heap, chunk), state = kprim_ld64(at, KPRIM_RELAXED);
    if (!kslab_whole(state))
        return false;
    if (kprim_cas64(at, state, what) != state)
        return false;
    kslab_free_hint(heap, chunk, false);
    if (kslab_is_class(kslab_what(state))) {
        kprim_add32(kslab_slabs(heap, kslab_what(state)), (uint32_t)-1, KPRIM_RELAXED);
        kslab_class_hint(heap, kslab_what(state), chunk, false);
    }
    return true;
}

// Frees a chunk in use as `what`, in which no block is in use.
KPRIM void kslab_free_chunk(uint64_t heap, uint32_t chunk, uint32_t what)
{
    kprim_add64(kslab_state(heap, chunk), KLAYOUT_FREE - (uint64_t)what, KPRIM_ACQ_REL);
    kslab_free_hint(heap, chunk, true);
}

// Makes a slab of a chunk that was taken; the first `want` of its blocks are due.
KPRIM uint64_t kslab_make(uint64_t heap, uint32_t chunk, uint32_t class, uint32_t want)
{
    uint32_t blocks = kslab_blocks(class), n = want < blocks ? want : blocks;
    uint64_t map = kslab_bitmap(heap, chunk);
    for (uint32_t w = 0; w < (blocks + 63) / 64; w++) {
        uint32_t left = blocks - w * 64;
        kprim_st64(map + w * 8, left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0, KPRIM_RELAXED);
    }
    if (blocks > n)
        kslab_give(heap, chunk, blocks - n);
    else
        kprim_add64(kslab_state(heap, chunk), 0, KPRIM_RELEASE);
    // Pairs with kslab_fresh: a thread that counts the slab can find it.
    kprim_add32(kslab_slabs(heap, class), 1, KPRIM_RELEASE);
    return kslab_pack(chunk, n, 0);
}

// --- where to look -----------------------------------------------------------------------------------------

// Searches slabs of the class with at least `least` available blocks; looks at no more than `patience` of
// them.
KPRIM_FAR uint64_t kslab_search_class(uint64_t heap, uint32_t class, uint32_t want, uint32_t least,
                                      uint32_t patience, uint32_t start)
{
    uint64_t hints = kslab_class_hints(heap, class), due;
    uint32_t words = KSLAB_FIELD32(heap, hint_words);
    for (uint32_t i = 0; i < words; i++) {
        uint32_t w = start + i < words ? start + i : start + i - words;
        uint64_t there = kprim_ld64(hints + (uint64_t)w * 8, KPRIM_RELAXED);
        for (; there; there &= there - 1) {
            if (!patience--)
                return 0;
            uint32_t chunk = w * 64 + (uint32_t)__builtin_ctzll(there);
            uint64_t state = kprim_ld64(kslab_state(heap, chunk), KPRIM_RELAXED);
            if (kslab_what(state) != class || kslab_number(state) <= 0)
                kslab_unhint_class(heap, class, chunk);
            else if (kslab_number(state) >= (int32_t)least && (due = kslab_reserve(heap, chunk, class, want)))
                return due;
        }
    }
    return 0;
}

// Takes a chunk in which nothing was in use, and returns its number + 1; 0 if there is none.
KPRIM_FAR uint32_t kslab_search_free(uint64_t heap, uint32_t what, uint32_t start)
{
    uint64_t hints = KSLAB_FIELD(heap, free_hints);
    uint32_t words = KSLAB_FIELD32(heap, hint_words), chunks = KSLAB_FIELD32(heap, chunks);
    for (uint32_t i = 0; i < words; i++) {
        uint32_t w = start + i < words ? start + i : start + i - words;
        uint64_t there = ~kprim_ld64(hints + (uint64_t)w * 8, KPRIM_RELAXED);
        for (; there; there &= there - 1) {
            uint32_t chunk = w * 64 + (uint32_t)__builtin_ctzll(there);
            if (chunk >= chunks)
                break;
            if (kslab_take_chunk(heap, chunk, what))
                return chunk + 1;
            kslab_unhint_free(heap, chunk);
        }
    }
    return 0;
}

// Returns where the slab to use next is recorded, for each class and bucket. Bucket 0 is shared by all.
KPRIM uint64_t kslab_active(uint64_t heap, uint32_t class, uint32_t bucket)
{
    uint64_t row = (uint64_t)(class - KLAYOUT_CLASS_FIRST) * KSLAB_FIELD32(heap, buckets);
    return KSLAB_FIELD(heap, actives) + (KLAYOUT_CLASSES + row + bucket) * 4;
}

KPRIM uint64_t kslab_makers(uint64_t heap, uint32_t class)
{
    return KSLAB_FIELD(heap, actives) +
           (KLAYOUT_CLASSES * (1 + (uint64_t)KSLAB_FIELD32(heap, buckets)) + class - KLAYOUT_CLASS_FIRST) * 4;
}

// Returns whether the caller may make a slab now: no more threads than there are buckets do so at a time.
// Otherwise each warp of a starting grid would take a chunk for itself.
KPRIM bool kslab_begin(uint64_t heap, uint32_t class)
{
    uint64_t makers = kslab_makers(heap, class);
    // Acquire: pairs with kslab_end; what others have made before is visible.
    if (kprim_add32(makers, 1, KPRIM_ACQUIRE) < KSLAB_FIELD32(heap, buckets))
        return true;
    kprim_add32(makers, (uint32_t)-1, KPRIM_RELAXED);
    return false;
}

KPRIM void kslab_end(uint64_t heap, uint32_t class)
{
    kprim_add32(kslab_makers(heap, class), (uint32_t)-1, KPRIM_RELEASE);
}

// Takes blocks of the slab that was used last.
KPRIM uint64_t kslab_last(uint64_t heap, uint32_t class, uint32_t want)
{
    uint32_t last = kprim_ld32(kslab_active(heap, class, kprim_smid() & (KSLAB_FIELD32(heap, buckets) - 1)),
                               KPRIM_RELAXED);
    uint32_t common = kprim_ld32(kslab_active(heap, class, 0), KPRIM_RELAXED);
    uint64_t due = last ? kslab_reserve(heap, last - 1, class, want) : 0;
    if (!due && common && common != last)
        due = kslab_reserve(heap, common - 1, class, want);
    return due;
}

KPRIM uint64_t kslab_new(uint64_t heap, uint32_t class, uint32_t want, uint32_t start)
{
    uint32_t chunk = kslab_search_free(heap, class, start);
    return chunk ? kslab_make(heap, chunk - 1, class, want) : 0;
}

// Takes blocks of a slab with a quarter of its blocks available, or of a new one. A thread that may not make
// one waits for those that do, and one that may searches again if a slab was made meanwhile. The wait is
// bounded: the makers may be in a warp that does not run.
KPRIM uint64_t kslab_fresh(uint64_t heap, uint32_t class, uint32_t want, uint32_t start)
{
    uint32_t least = kslab_blocks(class) / 4 + 1;
    for (uint32_t i = 0;; i++) {
        uint32_t slabs = kprim_ld32(kslab_slabs(heap, class), KPRIM_ACQUIRE);
        uint64_t due = i ? kslab_last(heap, class, want) : 0;
        if (due || (due = kslab_search_class(heap, class, want, least, 16, start)))
            return due;
        bool may = kslab_begin(heap, class);
        bool make =
            i >= KSLAB_PATIENCE || (may && kprim_ld32(kslab_slabs(heap, class), KPRIM_RELAXED) == slabs);
        if (make)
            due = kslab_new(heap, class, want, start);
        if (may)
            kslab_end(heap, class);
        if (make)
            return due;
        if (!may)
            kprim_pause();
    }
}

// Searches slabs with a quarter of their blocks available; then free chunks; then any slab with an available
// block. While the class has few slabs, all buckets share one.
KPRIM_FAR uint64_t kslab_search(uint64_t heap, uint32_t class, uint32_t want)
{
    uint32_t buckets = KSLAB_FIELD32(heap, buckets), mine = kprim_smid() & (buckets - 1);
    uint32_t start = (uint32_t)((uint64_t)mine * KSLAB_FIELD32(heap, hint_words) / buckets);
    uint64_t due = kslab_fresh(heap, class, want, start);
    if (!due)
        return kslab_search_class(heap, class, want, 1, UINT32_MAX, start);
    bool few = kprim_ld32(kslab_slabs(heap, class), KPRIM_RELAXED) < buckets;
    kprim_st32(kslab_active(heap, class, few ? 0 : mine), kslab_unpack(due).chunk + 1, KPRIM_RELAXED);
    if (few && mine)
        kprim_st32(kslab_active(heap, class, mine), 0, KPRIM_RELAXED);
    return due;
}

// Takes at least one block of the class, up to `want`, and returns them packed; 0 if there is none.
KPRIM uint64_t kslab_take(uint64_t heap, uint32_t class, uint32_t want)
{
    uint64_t due = kslab_last(heap, class, want);
    return due ? due : kslab_search(heap, class, want);
}

#endif
