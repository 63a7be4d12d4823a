// SPDX-License-Identifier: MIT
// A histogram of durations, exact to an eighth.
#ifndef MOAT_EXPLAIN_EXPLAIN_TIMES_H
#define MOAT_EXPLAIN_EXPLAIN_TIMES_H

#include <stdint.h>

enum { EXPLAIN_TIMES_BINS = 496 };

struct explain_times {
    uint64_t count;
    uint64_t bin[EXPLAIN_TIMES_BINS];  // their sum is `count`
};

// Bins 0 to 7 hold one value each; then eight bins share each power of two.
static inline unsigned explain_times_bin(uint64_t v)
{
    if (v < 8)
        return (unsigned)v;
    unsigned e = 63 - (unsigned)__builtin_clzll(v);
    return (e - 2) * 8 + (unsigned)(v >> (e - 3) & 7);
}

static inline void explain_times_add(struct explain_times *t, uint64_t ns)
{
    t->count++;
    t->bin[explain_times_bin(ns)]++;
}

// Returns the largest value of the bin that the part of all values falls into, in thousandths: 500 for
// the median. Returns 0 if there are no values.
uint64_t explain_times_part(const struct explain_times *t, unsigned thousandths);

#endif
