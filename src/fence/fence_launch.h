// SPDX-License-Identifier: MIT
// Launches of --mode=fence: a kernel that was fenced is launched as it is, or, where all pointers among its
// parameters are in the partition, its variant with the mask. Where a proof says that no access of the launch
// leaves the partition, the program's own code is launched. A kernel that was not fenced is refused, unless
// --uncovered=allow.
#ifndef MOAT_FENCE_FENCE_LAUNCH_H
#define MOAT_FENCE_FENCE_LAUNCH_H

#include <stdbool.h>

#include "driver/driver.h"

struct launch_call;

int fence_launch_start(void);  // 0 or -ENOMEM
void fence_launch_found(const void *handle, const void *owner, const char *name);
void fence_launch_function_of(CUfunction function, CUkernel kernel);
// Returns the n-th variant, from 0, that may be launched in place of this kernel; NULL: there are no more.
const void *fence_launch_variant(const void *handle, unsigned n);
void fence_launch(const struct launch_call *l);

#endif
