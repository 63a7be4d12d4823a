// SPDX-License-Identifier: MIT
#include "track/encoded_map.h"

#include <string.h>
#include <xxhash.h>

#include "core/lock.h"

enum { PROBES = 8, WORDS = ENCODED_MAP_BYTES / 8 };
// The bit that CUTLASS and Triton clear.
enum { CHANGED_WORD = 1, CHANGED_BIT = 21 };

// A map is in one of PROBES places from the one on that its bytes hash to.
static struct lock lock = LOCK_INIT(ENCODED_MAPS);
static struct {
    uint64_t words[WORDS];
    struct encoded_map about;
    uint64_t age;  // 0: empty
} maps[ENCODED_MAP_MOST];
static uint64_t added;  // so far

void encoded_map_after_fork(void)
{
    lock_after_fork(&lock);
}

void encoded_map_measure(struct encoded_map *about)
{
    uint64_t bytes = about->element;
    bool known = about->element && about->rank && about->rank <= ENCODED_MAP_RANK;
    for (uint32_t i = 0; i < about->rank && known; i++) {
        uint64_t part;
        known = about->size[i] && !__builtin_mul_overflow(about->size[i] - 1, about->stride[i], &part) &&
                !__builtin_add_overflow(bytes, part, &bytes);
    }
    about->bytes = known ? bytes : 0;
}

uint32_t encoded_map_reach(const struct encoded_map *about)
{
    if (!about->box_bytes || about->box_row >= about->box_span)
        return about->box_bytes;
    uint64_t rows = about->box_bytes / about->box_row;
    uint64_t bytes = (rows - 1) * about->box_span + about->box_row;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

uint32_t encoded_map_span(CUtensorMapSwizzle swizzle)
{
    switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE: return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
    default: return 128;
    }
}

static uint64_t normalize(const void *bytes, uint64_t words[WORDS])
{
    memcpy(words, bytes, ENCODED_MAP_BYTES);
    words[CHANGED_WORD] &= ~((uint64_t)1 << CHANGED_BIT);
    return XXH3_64bits(words, ENCODED_MAP_BYTES);
}

void encoded_map_add(const void *bytes, const struct encoded_map *about)
{
    uint64_t words[WORDS], hash = normalize(bytes, words);
    unsigned best = (unsigned)(hash % ENCODED_MAP_MOST);
    lock_take(&lock);
    for (unsigned i = 0; i < PROBES; i++) {
        unsigned at = (unsigned)((hash + i) % ENCODED_MAP_MOST);
        if (maps[at].age && !memcmp(maps[at].words, words, sizeof words)) {
            best = at;
            break;
        }
        if (maps[at].age < maps[best].age)
            best = at;
    }
    memcpy(maps[best].words, words, sizeof words);
    maps[best].about = *about;
    maps[best].age = ++added;
    lock_give(&lock);
}

bool encoded_map_find(const void *bytes, struct encoded_map *out)
{
    uint64_t words[WORDS], hash = normalize(bytes, words);
    bool found = false;
    lock_take(&lock);
    for (unsigned i = 0; i < PROBES && !found; i++) {
        unsigned at = (unsigned)((hash + i) % ENCODED_MAP_MOST);
        found = maps[at].age && !memcmp(maps[at].words, words, sizeof words);
        if (found)
            *out = maps[at].about;
    }
    lock_give(&lock);
    return found;
}

bool encoded_map_find_address(uint64_t address, struct encoded_map *out)
{
    uint64_t age = 0;
    lock_take(&lock);
    for (unsigned i = 0; i < ENCODED_MAP_MOST; i++)
        if (maps[i].age > age && maps[i].about.address == address) {
            age = maps[i].age;
            *out = maps[i].about;
        }
    lock_give(&lock);
    return age;
}
