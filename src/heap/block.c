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
