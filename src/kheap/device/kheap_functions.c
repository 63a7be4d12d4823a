// SPDX-License-Identifier: MIT
// The functions that replace malloc and free in a module. Weak: linked modules share one copy.
#include "kheap/kalloc.h"

__attribute__((address_space(1), weak)) uint64_t moat_kheap_base;

uint64_t moat_kheap_malloc(uint64_t size);
uint64_t moat_kheap_aligned(uint64_t size, uint64_t align);
void moat_kheap_free(uint64_t pointer);

__attribute__((weak)) uint64_t moat_kheap_malloc(uint64_t size)
{
    return kalloc_malloc(moat_kheap_base, size);
}

__attribute__((weak)) uint64_t moat_kheap_aligned(uint64_t size, uint64_t align)
{
    return kalloc_aligned(moat_kheap_base, size, align);
}

__attribute__((weak)) void moat_kheap_free(uint64_t pointer)
{
    kalloc_free(moat_kheap_base, pointer);
}
