// SPDX-License-Identifier: MIT
// For programs that link the device from our archive instead of as a library: tests, fuzzers. Including this
// header makes the linker take all of the archive, so that no call resolves to its stub; see unsupported.c.
#ifndef MOAT_CPU_WHOLE_H
#define MOAT_CPU_WHOLE_H

#include "cpu/cpu.h"
#include "driver/driver.h"

// Every call of the driver API, by enum driver_id.
extern const driver_function api_functions[DRIVER_CALLS];

static const driver_function *const whole_device __attribute__((used)) = api_functions;

#endif
