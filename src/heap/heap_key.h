// SPDX-License-Identifier: MIT
// The secret that canaries depend on: random words on pages of their own, read-only once they are filled, as
// are the pages around them. They lie in the library itself, so that reading them needs no pointer.
#ifndef MOAT_HEAP_KEY_H
#define MOAT_HEAP_KEY_H

#include <stdint.h>

enum { HEAP_KEY_WORDS = 10, HEAP_KEY_PAGE = 65536 };  // the largest page size we support
// This word and the next consist of one byte repeated, the fill pattern of freed blocks.
enum { HEAP_KEY_FILLER = 8 };

struct heap_key {
    char before[HEAP_KEY_PAGE];
    union {
        uint64_t word[HEAP_KEY_WORDS];
        char page[HEAP_KEY_PAGE];
    };
    char behind[HEAP_KEY_PAGE];
};
extern __attribute__((visibility("hidden"))) struct heap_key heap_key;

void heap_key_init(void);  // once, before anything else

// Mixes a and b into 64 bits that cannot be predicted without knowing the key mixed into them. Not
// cryptography: it resists programs that overwrite memory by mistake, and exploits that cannot read our keys.
static inline uint64_t heap_key_mix(uint64_t a, uint64_t b)
{
#ifdef __x86_64__
    // For a 128-bit product gcc saves registers without need.
    __asm__("mulq %1" : "+a"(a), "+d"(b) : : "cc");
    return a ^ b;
#else
    unsigned __int128 m = (unsigned __int128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
#endif
}

#endif
