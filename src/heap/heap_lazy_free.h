// SPDX-License-Identifier: MIT
// Lazy frees: how freed blocks enter the quarantine (heap_quarantine.h), and what happens when they leave it.
#ifndef MOAT_HEAP_HEAP_LAZY_FREE_H
#define MOAT_HEAP_HEAP_LAZY_FREE_H

#include <stddef.h>
#include <stdint.h>

struct producer;

// Quarantines a live, intact block: one that belongs to a fine bin of the thread cache; any other.
void heap_lazy_free_lane(struct producer *w, void *p, uint64_t size, size_t bin, uint32_t site);
void heap_lazy_free_queue(struct producer *w, char *p, uint64_t packed, uint32_t site);
// The whole of free() for the lazy setting, as one function.
void heap_lazy_free_entry(const void *from, const void *frame, void *p);

void heap_lazy_free_end(struct producer *w);  // the thread ends: its quarantine is emptied

// Checks the quarantined blocks of all threads once more.
void heap_lazy_free_check(void);

#endif
