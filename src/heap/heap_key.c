// SPDX-License-Identifier: MIT
#include "heap/heap_key.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "base/canary_shape.h"

_Alignas(HEAP_KEY_PAGE) struct heap_key heap_key;

// Used where getrandom is forbidden: mixes what differs between two runs, so that the program is monitored
// all the same.
static void fill_without_help(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t seed = (uint64_t)t.tv_nsec ^ (uint64_t)(uintptr_t)&t ^ (uint64_t)(uintptr_t)&heap_key;
    for (int i = 0; i < HEAP_KEY_WORDS; i++) {
        seed = heap_key_mix(seed + 0x9e3779b97f4a7c15u, 0xd1342543de82ef95u);
        heap_key.word[i] = seed;
    }
}

void heap_key_init(void)
{
    if (getrandom(heap_key.word, sizeof heap_key.word, 0) != (long)sizeof heap_key.word)
        fill_without_help();
    uint64_t filler = (canary_shape(heap_key.word[HEAP_KEY_FILLER]) & 0xff) * 0x0101010101010101u;
    heap_key.word[HEAP_KEY_FILLER] = heap_key.word[HEAP_KEY_FILLER + 1] = filler;
    // The pages around it are not PROT_NONE, because garbage collectors read all of a library's data.
    mprotect(&heap_key, sizeof heap_key, PROT_READ);
}
