// SPDX-License-Identifier: MIT
// Memory of our own, from the system and not from the heap that we watch, with a page before and behind it that
// nobody can touch: a stray write of the program does not reach what watches it.
#ifndef MOAT_HEAP_GUARDED_H
#define MOAT_HEAP_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *guarded_map(size_t size);  // zeroed; NULL when out of memory
void guarded_unmap(void *p, size_t size);
void *guarded_keep(size_t size);  // the like for what lives as long as the process: many have one mapping

bool guarded_is(uint64_t start);  // whether a mapping of ours starts there

// Objects of one size that live as long as the process, many to a mapping. One thread at a time.
struct guarded_pool {
    size_t size;  // of an object
    char *next, *end;
};
void *guarded_take(struct guarded_pool *pool);  // zeroed; NULL when out of memory

#endif
