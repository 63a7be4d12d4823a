// SPDX-License-Identifier: MIT
#include "explain/explain_times.h"

static uint64_t last_of(unsigned bin)
{
    if (bin < 8)
        return bin;
    unsigned shift = bin / 8 - 1;
    return (((8ull + bin % 8) << shift) - 1) + (1ull << shift);
}

uint64_t explain_times_part(const struct explain_times *t, unsigned thousandths)
{
    uint64_t seen = 0,
             wanted = (t->count / 1000 * thousandths) + (t->count % 1000 * thousandths + 999) / 1000;
    for (unsigned i = 0; t->count && i < EXPLAIN_TIMES_BINS; i++) {
        seen += t->bin[i];
        if (seen && seen >= wanted)
            return last_of(i);
    }
    return 0;
}
