// SPDX-License-Identifier: MIT
// Which rows of ops.def are covered, by how many combinations.
#ifndef MOAT_TEST_GOLDEN_COVERAGE_H
#define MOAT_TEST_GOLDEN_COVERAGE_H

#include <stdio.h>

#include "combos.h"

struct tally {
    unsigned right, wrong;
};

// NULL: the row is covered.
static const char *const coverage_reasons[PTX_OP_COUNT] = {
#define UNCOVERED(first, last, reason) [PTX_OP_##first... PTX_OP_##last] = reason,
#include "coverage.def"
};

static void coverage_count(const struct tally tally[PTX_OP_COUNT], unsigned *right, unsigned *wrong)
{
    for (unsigned i = 0; i < PTX_OP_COUNT; i++) {
        *right += tally[i].right;
        *wrong += tally[i].wrong;
    }
}

static unsigned coverage_rows(const struct tally tally[PTX_OP_COUNT])
{
    unsigned rows = 0;
    for (unsigned i = PTX_OP_UNKNOWN + 1; i < PTX_OP_COUNT; i++)
        rows += tally[i].right || tally[i].wrong;
    return rows;
}

static void coverage_print(const struct tally tally[PTX_OP_COUNT])
{
    for (unsigned i = PTX_OP_UNKNOWN + 1; i < PTX_OP_COUNT; i++)
        if (tally[i].right || tally[i].wrong)
            printf(STR_FMT ": %u of %u agree\n", STR_ARG(ptx_ops[i].name), tally[i].right,
                   tally[i].right + tally[i].wrong);
        else
            printf(STR_FMT ": not covered: %s\n", STR_ARG(ptx_ops[i].name),
                   coverage_reasons[i] ? coverage_reasons[i] : "nothing recorded");
}

#endif
