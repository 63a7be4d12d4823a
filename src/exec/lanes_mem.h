// SPDX-License-Identifier: MIT
#ifndef MOAT_EXEC_LANES_MEM_H
#define MOAT_EXEC_LANES_MEM_H

#include "exec/access.h"

// Indexed by space and log2 of the element's size.
struct lanes_mem {
    exec_fn *load[ACCESS_SPACES][5];
    exec_fn *store[ACCESS_SPACES][5];
};

#define LANES_MEM_NAME(isa) LANES_MEM_NAME_(isa)
#define LANES_MEM_NAME_(isa) lanes_mem_##isa

extern const struct lanes_mem lanes_mem_plain, lanes_mem_avx2, lanes_mem_avx512;

#endif
