// SPDX-License-Identifier: MIT
// The secret that canaries depend on: random words on pages of their own, read-only once they are filled, as are the pages
// around them. They lie in the library itself, so that a canary needs no pointer to them.
#ifndef MOAT_HEAP_KEY_H
#define MOAT_HEAP_KEY_H

#include <stdint.h>

enum { HEAP_KEY_WORDS = 10, HEAP_KEY_PAGE = 65536 };  // as large as pages get on machines we know
// This word and the next are one byte, over and over: what freed blocks are filled with.
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

// 64 bits of a and b that nobody can foretell without knowing what was mixed into them. Not cryptography: it resists
// programs that overwrite what they do not mean to, and exploits that cannot read our keys.
static inline uint64_t heap_key_mix(uint64_t a, uint64_t b)
{
#ifdef __x86_64__
    // For a product of 128 bits gcc saves registers that it then makes no use of.
    __asm__("mulq %1" : "+a"(a), "+d"(b) : : "cc");
    return a ^ b;
#else
    unsigned __int128 m = (unsigned __int128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
#endif
}

#endif
