// SPDX-License-Identifier: MIT
// Lazy frees: what happens to blocks before they wait (heap_quarantine.h), and when they have waited long enough.
#ifndef MOAT_HEAP_HEAP_LAZY_FREE_H
#define MOAT_HEAP_HEAP_LAZY_FREE_H

#include <stddef.h>
#include <stdint.h>

struct producer;

// A block that lives, is sound, and is for one of the shelf's fine bins joins those that wait; and any other.
void heap_lazy_free_free(struct producer *w, void *p, uint64_t size, size_t bin, uint32_t site);
void heap_lazy_free_queue(struct producer *w, char *p, uint64_t packed, uint32_t site);
// What free does, in one piece.
void heap_lazy_free_free_usual(const void *from, const void *frame, void *p);

void heap_lazy_free_end(struct producer *w);  // the thread ends: none of its blocks waits any longer

// Blocks that wait, of all threads: looked at once more.
void heap_lazy_free_check(void);

#endif
