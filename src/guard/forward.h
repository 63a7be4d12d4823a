// SPDX-License-Identifier: MIT
// Every symbol of libcuda, exported as one jump through a table. A slot holds the driver's own function or, where
// hooks.def names the call, the guard's. Until the first call each slot holds a stub that starts the guard: a process
// that never uses CUDA pays nothing and opens nothing.
#ifndef MOAT_GUARD_FORWARD_H
#define MOAT_GUARD_FORWARD_H

#include "driver/driver.h"

// By enum driver_id.
extern driver_function forward_slots[DRIVER_CALLS];

// What a slot holds where the driver has no such function, or there is no driver.
CUresult forward_missing(void);

#endif
