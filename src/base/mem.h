// SPDX-License-Identifier: MIT
// Every heap allocation of moat goes through these, so that a test can make the n-th one fail.
#ifndef MOAT_BASE_MEM_H
#define MOAT_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);                 // uninitialised; NULL when out of memory
void *mem_zalloc(size_t count, size_t size);  // zeroed; NULL also when count * size overflows
void *mem_realloc(void *old, size_t count, size_t size);
void mem_free(void *ptr);

// The allocation after n successful ones fails, and so does every later one. n < 0: never.
void mem_fail_after(long n);

#endif
