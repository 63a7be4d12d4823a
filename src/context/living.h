// SPDX-License-Identifier: MIT
// The contexts that the program has. A library comes into any of them without a word, when one of its kernels is launched
// there, and in each it has counters of its own.
#ifndef MOAT_CONTEXT_LIVING_H
#define MOAT_CONTEXT_LIVING_H

#include <stdbool.h>

#include "driver/driver.h"

enum { LIVING_MOST = 256 };

void living_begun(CUcontext context);  // made or retained; no green one
void living_ended(CUcontext context);
bool living_lives(CUcontext context);  // false: it does not, or there was no room for it

// How many there are. *all is false once there were more than fit.
unsigned living_list(CUcontext list[LIVING_MOST], bool *all);

void living_after_fork(void);

#endif
