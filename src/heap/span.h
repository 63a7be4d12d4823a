// SPDX-License-Identifier: MIT
// Where small blocks come from: spans, pieces of memory that are cut into blocks of one of the shelf's fine bins, one close behind
// the other. What the allocator below puts before each block is not needed there, and the memory can be asked for in huge pages: small blocks with
// canaries then lie nearly as close to each other as they would without us.
//
// Fresh blocks are cut off in order. A shelf that overflows puts its blocks back into their spans; the words of these stay where they are known,
// because a span's blocks keep their generation as long as the span keeps its bin. When all blocks of a span are back and too many
// spans are like that, it is taken out: the caller puts a notice for each block, and gives the span for any bin.
//
// What is known of spans is not in them: no stray write of the program reaches it. What holds while nobody
// has the lock, of each span that has a bin (span_valid), unless two threads freed one block at once:
//   free <= cut <= most; free is the number of bits; bits only of blocks < cut
//   0 < free < most: it is in its bin's list `some`; free = most: in `idle`, or taken out; free = 0: in none
//   cut < most: it is the one that its bin cuts now
// and of all together:
//   idle = sum of the lengths of the lists `idle`
//   spare = sum of free times a block's bytes over all spans that are in lists
//   mapped / SPAN_BYTES = used + |unused| + spans of the last tract that were not given out
#ifndef MOAT_HEAP_SPAN_H
#define MOAT_HEAP_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/block.h"
#include "heap/thread_cache.h"

enum {
    SPAN_BYTES = 1 << 16,
    SPAN_MOST_BLOCKS = SPAN_BYTES / (THREAD_CACHE_LEAST + BLOCK_HEAD + BLOCK_TAIL),
};

struct span;

// Whether an address lies in memory of spans. Of any thread, at any time.
bool span_has(const void *p);
size_t span_room(const void *p);  // of a block there

// The words of up to `most` blocks for a bin; 0: there is no memory, or the calling thread was interrupted in here. They were used
// before and are marked as freed, or they are fresh: then they have no heads, and nobody knows their words. may_map: else there are
// none, rather than that more memory is asked for.
size_t span_take(size_t bin, uint64_t *words, size_t most, bool may_map, bool *fresh);

// Blocks that are marked as freed go back into their spans. How many: fewer, if the calling thread was interrupted in here. A span that is taken
// out by that is in *out, or NULL: then the rest must be put in another call.
size_t span_put(const uint64_t *words, size_t n, struct span **out);

// Before more memory is asked for: whether it is worth while to put blocks of so many bytes back first, and to take idle spans out, one
// by one until there is none. It is not if that was done lately, and what was put back since is little.
bool span_is_worth_it(uint64_t held);
struct span *span_take_out(void);

// Of a span that was taken out: how many blocks it has, and their words. When nobody will look for them there any more, the span is given.
size_t span_blocks(const struct span *s);
uint64_t span_word(const struct span *s, size_t i);
void span_give(struct span *s);

void span_before_fork(void);
void span_after_fork(void);  // in both

uint64_t span_bytes(void);  // that have been mapped
bool span_valid(void);

#endif
