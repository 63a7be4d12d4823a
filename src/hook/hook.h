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

// The forwarder's tables, by enum driver_id, and its functions.
struct hook_forwarder {
    driver_function *slots;          // where a call of the program's jumps to
    driver_function *behind;         // what `watched` calls, for slots that hold it
    const driver_function *entries;  // the symbols that the library exports
    driver_function watched;         // calls what is behind its slot, and comes back
    driver_function missing;         // for what the driver lacks
};

// Points the slots at the hooks, at the driver's functions where there is no hook, and at `missing` where the
// driver lacks the call. With `all`, every call returns through `watched`.
void hook_install(const struct driver *real, const struct hook_forwarder *f, bool all);

// Leaves out the hooks that only look, or puts them back; `all` as above.
void hook_pause(const struct driver *real, const struct hook_forwarder *f, bool on, bool all);

// Returns what replaces a driver function; the function itself if nothing does.
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
