// SPDX-License-Identifier: MIT
// Memory of our own, mapped from the system and not taken from the heap that we watch, with an inaccessible
// page before and behind it, so that stray writes of the program do not reach it.
#ifndef MOAT_HEAP_GUARDED_H
#define MOAT_HEAP_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *guarded_map(size_t size);  // zeroed; NULL when out of memory
void guarded_unmap(void *p, size_t size);
void *guarded_keep(size_t size);  // zeroed, never freed; many objects share a mapping

bool guarded_is(uint64_t start);  // whether one of our mappings starts there

// Objects of one size that live as long as the process; many share a mapping. For one thread at a time.
struct guarded_pool {
    size_t size;  // of an object
    char *next, *end;
};
void *guarded_take(struct guarded_pool *pool);  // zeroed; NULL when out of memory

#endif
