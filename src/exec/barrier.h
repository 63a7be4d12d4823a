// SPDX-License-Identifier: MIT
#ifndef MOAT_EXEC_BARRIER_H
#define MOAT_EXEC_BARRIER_H

#include "exec/warp.h"

enum barrier_flags {
    BARRIER_POPC = 1,
    BARRIER_AND = 2,
    BARRIER_OR = 3,
    BARRIER_KIND = 3,
    BARRIER_COUNTED = 4,  // b: number of threads
    BARRIER_NO_WAIT = 8,  // arrive
    BARRIER_VARIES = 16,  // lanes may name different barriers
};

// a: barrier number, b: threads, c: predicate, d: result.
exec_fn barrier_arrive;

#endif
