// SPDX-License-Identifier: MIT
// Exports every symbol of libcuda as one jump through a table. A slot holds the driver's own function or, if
// hooks.def names the call, the guard's. Until the first call each slot holds a stub that starts the guard: a
// process that never uses CUDA pays nothing and opens nothing.
#ifndef MOAT_GUARD_FORWARD_H
#define MOAT_GUARD_FORWARD_H

#include "driver/driver.h"

// Indexed by enum driver_id.
extern driver_function forward_slots[DRIVER_CALLS];

// The function in the slots of calls that the driver lacks, or of all calls if there is no driver.
CUresult forward_missing(void);

#endif
