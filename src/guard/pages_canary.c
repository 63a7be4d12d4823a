// SPDX-License-Identifier: MIT
#include "guard/pages_canary.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

uint64_t pages_canary_seed(void)
{
    static _Atomic uint64_t counter;
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        // Relaxed: any number that no other call gets will do.
        uint64_t n = atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
        seed = scramble((uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u + n + (uintptr_t)&now);
    }
    return seed;
}

void pages_canary_make(uint64_t seed, unsigned side, uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = scramble(seed + side * 0x9e3779b97f4a7c15u + i / 8 + 1);
        // Programs clear memory more often than anything else: no byte of a canary is 0.
        uint8_t byte = (uint8_t)(word >> i % 8 * 8);
        bytes[i] = byte ? byte : 0xa5;
    }
}

uint32_t pages_canary_compare(uint64_t seed, unsigned side, const uint8_t *bytes, uint32_t count,
                              uint8_t *touched, uint32_t *first, uint32_t *last)
{
    uint8_t expected[PAGES_CANARY_MOST];
    uint32_t changed = 0;
    assert(count <= PAGES_CANARY_MOST);
    pages_canary_make(seed, side, expected, count);
    memset(touched, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] == expected[i])
            continue;
        touched[i / 8] |= (uint8_t)(1 << i % 8);
        *last = i;
        if (!changed++)
            *first = i;
    }
    return changed;
}
