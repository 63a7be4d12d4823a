// SPDX-License-Identifier: MIT
// Every heap allocation of moat goes through these functions, so that a test can make the n-th one fail.
#ifndef MOAT_BASE_MEM_H
#define MOAT_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);                 // uninitialised; NULL when out of memory
void *mem_zalloc(size_t count, size_t size);  // zeroed; NULL also when count * size overflows
void *mem_realloc(void *old, size_t count, size_t size);
void mem_free(void *ptr);

// Makes the allocation after n successful ones fail, and every later one too. n < 0: no allocation fails.
void mem_fail_after(long n);

#endif
