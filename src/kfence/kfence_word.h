// SPDX-License-Identifier: MIT
// How kernels and the host find a kfence_object.
#ifndef MOAT_KFENCE_KFENCE_WORD_H
#define MOAT_KFENCE_KFENCE_WORD_H

#include "kfence/kfence.h"

static inline __attribute__((always_inline)) uint64_t kfence_hash(uint64_t v)
{
    v = (v ^ v >> 32) * 0x9e3779b97f4a7c15u;
    return v ^ v >> 29;
}

// Returns the word of a tensor map. Maps that differ have different words unless somebody looks for others.
static inline __attribute__((always_inline)) uint64_t kfence_map_word(const volatile uint64_t *words)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < KFENCE_MAP_WORDS; i++)
        sum = kfence_hash(sum ^ words[i]) + i;
    return KFENCE_OBJECT(KFENCE_MAP, sum);
}

#endif
