// SPDX-License-Identifier: MIT
// What stands in for calls of the driver API: hook_SYMBOL for each row of hooks.def, with the call's own type.
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

// Points the slots at the driver's functions, and at the hooks where there are some. With `all`, each call comes back.
void hook_install(const struct driver *real, const struct hook_forwarder *f, bool all);

// What stands in for a function of the driver; the function itself if nothing does.
driver_function hook_instead_of(driver_function f);

// The driver has no memory, and modes that hold some back have given of it: it is worth to try again.
bool hook_reclaim(CUresult r);

// The same around a call that allocates as a side effect, and seldom fails: it waits for nothing.
#define HOOK_TRY_AGAIN(r, call)                                                         \
    do {                                                                                \
        if (__builtin_expect((r) == CUDA_ERROR_OUT_OF_MEMORY, 0) && mode_reclaim(true)) \
            (r) = (call);                                                               \
    } while (0)

#endif
