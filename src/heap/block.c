// SPDX-License-Identifier: MIT
#include "heap/block.h"

const char *block_kind_name(unsigned kind)
{
    static const char *const names[] = {
        [BLOCK_MALLOC] = "malloc",         [BLOCK_CALLOC] = "calloc", [BLOCK_REALLOC] = "realloc",
        [BLOCK_ALIGNED] = "aligned_alloc", [BLOCK_NEW] = "new",       [BLOCK_NEW_ARRAY] = "new[]",
    };
    kind &= ~(unsigned)BLOCK_UNWATCHED;
    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "an allocation";
}

// A table, because a load is faster than a shift by a loaded value.
#define POWER(log2) 2ull << (log2), 3ull << (log2)
#define POWERS(log2) POWER(log2), POWER((log2) + 1), POWER((log2) + 2), POWER((log2) + 3), POWER((log2) + 4)
const uint64_t block_rooms[BLOCK_LAST_STEP + 1] = {0, 3ull << 4, POWERS(5), POWERS(10), POWERS(15)};
