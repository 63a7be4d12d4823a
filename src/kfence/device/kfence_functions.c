// SPDX-License-Identifier: MIT
// The functions that fenced kernels call. Weak: linked modules share one copy.
#include "kfence/kfence_judge.h"

__attribute__((address_space(4), weak)) struct kfence_module __moat_fence_module = {.outside = UINT64_MAX};

uint64_t moat_fence_find(uint64_t what, uint64_t address);
void moat_fence_note(uint64_t what, uint64_t address);
void moat_fence_shared(uint64_t what, uint64_t address);
void moat_fence_took(uint64_t address, uint64_t bytes);
uint64_t moat_fence_object(uint64_t word);
uint64_t moat_fence_map(uint64_t address);

__attribute__((weak)) uint64_t moat_fence_find(uint64_t what, uint64_t address)
{
    struct kfence_module m = __moat_fence_module;
    return kfence_judge_find(&m, what, address);
}

__attribute__((weak)) void moat_fence_note(uint64_t what, uint64_t address)
{
    struct kfence_module m = __moat_fence_module;
    kfence_judge_note(&m, what >> 56, what, address);
}

__attribute__((weak)) void moat_fence_shared(uint64_t what, uint64_t address)
{
    struct kfence_module m = __moat_fence_module;
    kfence_judge_note(&m, KFENCE_OUT_OF_SHARED, what, address);
}

__attribute__((weak)) void moat_fence_took(uint64_t address, uint64_t bytes)
{
    struct kfence_module m = __moat_fence_module;
    kfence_judge_took(&m, address, bytes);
}

__attribute__((weak)) uint64_t moat_fence_object(uint64_t word)
{
    struct kfence_module m = __moat_fence_module;
    return kfence_judge_object(m.state, word);
}

__attribute__((weak)) uint64_t moat_fence_map(uint64_t address)
{
    struct kfence_module m = __moat_fence_module;
    return kfence_judge_object(m.state, kfence_map_word((const volatile uint64_t *)address));
}
