// SPDX-License-Identifier: MIT
// Lazy frees: what happens to blocks before they wait (heap_wait.h), and when they have waited long enough.
#ifndef MOAT_HEAP_LATER_H
#define MOAT_HEAP_LATER_H

#include <stddef.h>
#include <stdint.h>

struct writer;

// A block that lives, is sound, and is for one of the shelf's fine bins joins those that wait; and any other.
void heap_later_free(struct writer *w, void *p, uint64_t size, size_t bin, uint32_t site);
void heap_later_queue(struct writer *w, char *p, uint64_t packed, uint32_t site);
// What free does, in one piece.
void heap_later_free_usual(const void *from, const void *frame, void *p);

void heap_later_end(struct writer *w);  // the thread ends: none of its blocks waits any longer

// Blocks that wait, of all threads: looked at once more.
void heap_later_check(void);

#endif
