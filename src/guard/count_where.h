// SPDX-License-Identifier: MIT
// The contexts that the program has. A library comes into any of them without a word, when one of its kernels is launched
// there, and in each it has counters of its own.
#ifndef MOAT_GUARD_COUNT_WHERE_H
#define MOAT_GUARD_COUNT_WHERE_H

#include <stdbool.h>

#include "driver/driver.h"

enum { COUNT_WHERE = 256 };

void count_where_begun(CUcontext context);  // made or retained; no green one
void count_where_ended(CUcontext context);
bool count_where_lives(CUcontext context);  // false: it does not, or there was no room for it

// How many there are. *all is false once there were more than fit.
unsigned count_where_list(CUcontext list[COUNT_WHERE], bool *all);

void count_where_after_fork(void);

#endif
