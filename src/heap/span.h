// SPDX-License-Identifier: MIT
// Spans, from which small blocks come: ranges of memory that are cut into blocks of one fine bin of the
// thread cache, closely packed. Such blocks need no header of the next allocator, and the memory can use huge
// pages, so small blocks with canaries lie nearly as close together as they would without us.
//
// Fresh blocks are cut in order. A thread cache that overflows puts its blocks back into their spans; their
// words stay in the block lists, because a span's blocks keep their generation as long as the span keeps its
// bin. When all blocks of a span are back and too many spans are idle like that, the span is taken out: the
// caller puts a notice for each block, and gives the span back for use by any bin.
//
// The records of spans are outside of them, where no stray write of the program reaches them. What holds
// while nobody has the lock, for each span that has a bin (span_valid), unless two threads freed one block at
// once:
//   free <= cut <= most; free is the number of bits set; bits are set only for blocks < cut
//   0 < free < most: in its bin's list `some`; free = most: in `idle`, or taken out; free = 0: in no list
//   cut < most: it is its bin's span `cutting`
// and for all together:
//   idle = sum of the lengths of the lists `idle`
//   spare = sum over all listed spans of free times a block's bytes
//   mapped / SPAN_BYTES = used + |unused| + spans of the last region that are not in use yet
#ifndef MOAT_HEAP_SPAN_H
#define MOAT_HEAP_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/block.h"
#include "heap/thread_cache.h"

enum {
    SPAN_BYTES = 1 << 16,
    SPAN_GRAIN = 22,  // log2 of the bytes that are mapped at a time, and aligned
    SPAN_MOST_BLOCKS = SPAN_BYTES / (THREAD_CACHE_LEAST + BLOCK_HEAD + BLOCK_TAIL),
};

struct span;

// Returns whether an address lies in a span. For any thread, at any time.
bool span_has(const void *p);
size_t span_room(const void *p);  // of the block at p; 0 if that is in no span

// Returns the block before this one in its span, or NULL if it is the first.
char *span_before(const char *block);

// Returns whether a block of a span whose blocks have this room, live or freed, can have such a head.
bool span_may_hold(size_t room, struct block_info info);

// Returns whether a fresh block's head holds anything but zeros, as a write past the end of the block before
// it leaves. Returns false without reading if the head of that block lies in another page: a read would touch
// memory that may never be needed.
bool span_is_overwritten(const char *block);
// Copies the heads of all blocks for which that is true among those that the bins would cut next. Returns how
// many, 0 if the calling thread was interrupted in here.
struct span_overwritten {
    const char *block;
    struct block_head head;
};
size_t span_overwritten(struct span_overwritten found[THREAD_CACHE_FINE_BINS]);

// Takes up to `most` blocks for a bin; writes their words and returns how many. Returns 0 if out of memory,
// if the calling thread was interrupted in here, or if more memory would have to be mapped and may_map is
// false. *fresh says whether the blocks are fresh: then they have no heads and their words are in no list;
// else they are marked as freed.
size_t span_take(size_t bin, uint64_t *words, size_t most, bool may_map, bool *fresh);

// Puts blocks that are marked as freed back into their spans. Returns how many were put, 0 if the calling
// thread was interrupted in here. If a span is taken out by that, the function stops, stores it to *out, and
// the rest must be put by another call; else *out is NULL.
size_t span_put(const uint64_t *words, size_t n, struct span **out);

// To be called before more memory is mapped. Returns whether it is worthwhile to put back `held` bytes of
// blocks first, and then to take out idle spans one by one until span_take_out returns NULL. It is not if
// that was done recently and little was put back since.
bool span_should_reclaim(uint64_t held);
struct span *span_take_out(void);

// For a span that was taken out: the number of its blocks, and their words. When these are in no list any
// more, span_give makes the span available to all bins.
size_t span_blocks(const struct span *s);
uint64_t span_word(const struct span *s, size_t i);
void span_give(struct span *s);

void span_before_fork(void);  // takes the lock
void span_after_fork(void);   // releases it, in parent and child

uint64_t span_bytes(void);  // mapped so far
bool span_valid(void);

#endif
