// SPDX-License-Identifier: MIT
// The hooks: hook_SYMBOL replaces a call of the driver API for each row of hooks.def, with the call's own
// type.
#ifndef MOAT_HOOK_HOOK_H
#define MOAT_HOOK_HOOK_H

#include <stdbool.h>

#include "driver/driver.h"
#include "mode/mode.h"

#define HOOK(symbol) __typeof__(symbol) hook_##symbol;
#include "hook/hooks.def"
#undef HOOK

// Points the forwarder's slots at the hooks, at the driver's functions where there is no hook, and at
// `missing` where the driver lacks the call.
void hook_install(const struct driver *real, driver_function *slots, driver_function missing);

// Returns the hook of a driver function; the function itself if it has none.
driver_function hook_instead_of(driver_function f);

// If the driver is out of memory, lets modes release what they hold; returns true if the call should be tried
// again.
bool hook_reclaim(CUresult r);

// Repeats a call that allocates as a side effect, if it was out of memory and modes could release some
// without waiting for kernels.
#define HOOK_TRY_AGAIN(r, call)                                                         \
    do {                                                                                \
        if (__builtin_expect((r) == CUDA_ERROR_OUT_OF_MEMORY, 0) && mode_reclaim(true)) \
            (r) = (call);                                                               \
    } while (0)

#endif
