// SPDX-License-Identifier: MIT
// The fencing pass: kernels and functions are rewritten in place, so that each access of global memory lies
// in the partition, in a range that the host has listed, or in the sink (kfence/kfence.h).
//
// In front of an access, the upper half of its pointer is compared with that of the partition; offsets of the
// instruction are left out, since KFENCE_ZONE bytes around the partition are mapped. What differs, or is not
// aligned, goes to KFENCE_FIND, and the access is made at the address that this returns. Nothing else of the
// program's code changes: kernels keep their names and parameters, and need no variant of themselves, so that
// every way to launch them, also from a graph or from another kernel, launches fenced code.
//
// A trap becomes a record and the end of the thread. A module with an instruction that ops.def does not know
// is refused as a whole: -ENOTSUP.
//
// The result has sites, as that of pass_check, and no kernels.
#ifndef MOAT_PASS_PASS_FENCE_H
#define MOAT_PASS_PASS_FENCE_H

#include <stdint.h>

#include "kfence/kfence.h"

uint64_t pass_fence_sum(void);  // hash of the added text: cached modules with another one are stale

#endif
