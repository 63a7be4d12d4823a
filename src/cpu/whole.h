// SPDX-License-Identifier: MIT
// For programs that link the device from our archive and not as a library: tests, fuzzers. Including this makes the
// linker take all of it, so that no call falls to its stub; see unsupported.c.
#ifndef MOAT_CPU_WHOLE_H
#define MOAT_CPU_WHOLE_H

#include "cpu/cpu.h"
#include "driver/driver.h"

// Every call of the driver API, by enum driver_id.
extern const driver_function api_functions[DRIVER_CALLS];

static const driver_function *const whole_device __attribute__((used)) = api_functions;

#endif
