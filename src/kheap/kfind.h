// SPDX-License-Identifier: MIT
// Which block of the heap an address is in, for checks of every access: the exact bounds of live blocks, and
// of those that were freed and not given out again. Only heaps that were planned for it keep what this needs,
// a word for each place where a block can begin:
//
//   0                    no block ever began there
//   size + 1             the block that malloc gave out last, of that many bytes
//   | n << KFIND_SHIFT   it begins 16 * n bytes behind its place, for its alignment
//   | KFIND_FREED        the same; it was freed
//   KFIND_BODY | n       at the start of a chunk that is not the first of a run: the first is n chunks before
//
// The word is set before malloc returns and before the mark of free, so that a thread that got the pointer
// finds it. Where a chunk was cut in another way before, words of places without a block may be stale: no
// block lies there, so an access is wrong all the same.
#ifndef MOAT_KHEAP_KFIND_H
#define MOAT_KHEAP_KFIND_H

#include "kheap/kslab.h"

#define KFIND_FREED ((uint64_t)1 << 63)
#define KFIND_BODY ((uint64_t)1 << 62)
enum { KFIND_SHIFT = 48 };
#define KFIND_NUMBER (((uint64_t)1 << KFIND_SHIFT) - 1)
#define KFIND_OFFSET(word) (((word) >> KFIND_SHIFT & (KHEAP_ALIGN_MOST / 16 - 1)) * 16)

struct kfind {
    uint64_t base, size;  // base 0: no block
    bool freed;
    uint32_t offset;  // of the block from its place
};

KPRIM uint64_t kfind_word(uint64_t bounds, uint32_t chunk, uint32_t index)
{
    return bounds + ((uint64_t)chunk * KLAYOUT_BLOCKS + index) * 8;
}

// Returns what the word says of a block of at most `room` bytes.
KPRIM struct kfind kfind_read(uint64_t word, uint64_t base, uint64_t room)
{
    uint64_t size = (word & KFIND_NUMBER) - 1;
    if (!(word & KFIND_NUMBER) || word & KFIND_BODY)
        return (struct kfind){0, 0, false, 0};
    return (struct kfind){base + KFIND_OFFSET(word), size < room ? size : room, (word & KFIND_FREED) != 0,
                          (uint32_t)KFIND_OFFSET(word)};
}

// Finds the block of a run, or of one that was released.
KPRIM struct kfind kfind_run(uint64_t heap, uint64_t bounds, uint32_t chunk, uint32_t what)
{
    struct kfind none = {0, 0, false, 0};
    uint64_t word = kprim_ld64(kfind_word(bounds, chunk, 0), KPRIM_RELAXED);
    if (word & KFIND_BODY) {
        uint64_t before = word & KFIND_NUMBER;
        if (before > chunk)
            return none;
        chunk -= (uint32_t)before;
        word = kprim_ld64(kfind_word(bounds, chunk, 0), KPRIM_RELAXED);
    }
    if (what == KLAYOUT_CLAIMED || (what == KLAYOUT_FREE && !(word & KFIND_FREED)))
        return none;
    return kfind_read(word, KSLAB_FIELD(heap, pool) + (uint64_t)chunk * KLAYOUT_CHUNK + KLAYOUT_HEAD,
                      KFIND_NUMBER);
}

// Returns the block whose place the address is in; it may lie outside the block, behind it or before it.
KPRIM struct kfind kfind_look(uint64_t heap, uint64_t address)
{
    uint64_t offset = address - KSLAB_FIELD(heap, pool), bounds = KSLAB_FIELD(heap, bounds);
    if (!bounds || offset >= (uint64_t)KSLAB_FIELD32(heap, chunks) * KLAYOUT_CHUNK)
        return (struct kfind){0, 0, false, 0};
    uint32_t within = offset % KLAYOUT_CHUNK, chunk = (uint32_t)(offset / KLAYOUT_CHUNK);
    uint32_t what = kslab_what(kprim_ld64(kslab_state(heap, chunk), KPRIM_RELAXED));
    if (!kslab_is_class(what))
        return kfind_run(heap, bounds, chunk, what);
    uint32_t bytes = kslab_size(what), index = within / bytes;
    return kfind_read(kprim_ld64(kfind_word(bounds, chunk, index), KPRIM_RELAXED),
                      address - within + index * bytes + KLAYOUT_HEAD, bytes - KLAYOUT_HEAD - KLAYOUT_TAIL);
}

// Returns (address - base) << 32 | size of the live block of a slab that contains the address. 0: there is
// none, or kfind_look knows better. Its loads may be answered from the nearest cache: they may miss a malloc
// or free of another thread unless something has ordered that before the call.
KPRIM uint64_t kfind_quick(uint64_t heap, uint64_t address)
{
    uint64_t offset = address - KSLAB_FIELD(heap, pool), bounds = KSLAB_FIELD(heap, bounds);
    if (!bounds || offset >= (uint64_t)KSLAB_FIELD32(heap, chunks) * KLAYOUT_CHUNK)
        return 0;
    uint32_t within = offset % KLAYOUT_CHUNK, chunk = (uint32_t)(offset / KLAYOUT_CHUNK);
    uint32_t what = kslab_what(kprim_get64(kslab_state(heap, chunk)));
    if (!kslab_is_class(what))
        return 0;
    uint32_t bytes = kslab_size(what), index = within / bytes;
    uint64_t word = kprim_get64(kfind_word(bounds, chunk, index));
    uint64_t size = (word & KFIND_NUMBER) - 1, room = bytes - KLAYOUT_HEAD - KLAYOUT_TAIL;
    uint64_t distance = (uint64_t)within - index * bytes - KLAYOUT_HEAD - KFIND_OFFSET(word);
    size = size < room ? size : room;
    bool live = (word & KFIND_NUMBER) && !(word & (KFIND_FREED | KFIND_BODY));
    return live && distance < size ? distance << 32 | size : 0;
}

// Records a block that malloc is about to return, at place `index` of a chunk; runs: of so many chunks.
// offset: of the block from its place, a multiple of 16 below KHEAP_ALIGN_MOST.
KPRIM void kfind_set(uint64_t heap, uint32_t chunk, uint32_t index, uint64_t size, uint32_t offset,
                     uint32_t runs)
{
    uint64_t bounds = KSLAB_FIELD(heap, bounds);
    if (!bounds)
        return;
    for (uint32_t i = 1; i < runs; i++)
        kprim_st64(kfind_word(bounds, chunk + i, 0), KFIND_BODY | i, KPRIM_RELAXED);
    kprim_st64(kfind_word(bounds, chunk, index), (size + 1) | (uint64_t)(offset / 16) << KFIND_SHIFT,
               KPRIM_RELAXED);
}

// Records that a block is being freed. Requires that the caller has found it live.
KPRIM void kfind_set_freed(uint64_t heap, uint32_t chunk, uint32_t index)
{
    uint64_t bounds = KSLAB_FIELD(heap, bounds);
    if (bounds)
        kprim_or64(kfind_word(bounds, chunk, index), KFIND_FREED, KPRIM_RELAXED);
}

#endif
