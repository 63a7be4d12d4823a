// SPDX-License-Identifier: MIT
// Launches of --mode=fence: a kernel that was fenced is launched as it is; one that was not is refused, unless
// --uncovered=allow.
#ifndef MOAT_FENCE_FENCE_LAUNCH_H
#define MOAT_FENCE_FENCE_LAUNCH_H

#include <stdbool.h>

#include "driver/driver.h"

struct launch_call;

int fence_launch_start(void);  // 0 or -ENOMEM
void fence_launch_found(const void *handle, const void *owner, const char *name);
void fence_launch_function_of(CUfunction function, CUkernel kernel);
void fence_launch(const struct launch_call *l);

#endif
