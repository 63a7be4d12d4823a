// SPDX-License-Identifier: MIT
// cuGetProcAddress: the driver answers, because only it knows its versions and per-thread variants; if the
// function is one that the guard wraps, the program gets the wrapper.
#include <string.h>

#include "core/guard.h"
#include "hook/hook.h"

static void replace(CUresult r, void **function)
{
    if (r || !function || !*function)
        return;
    driver_function f;
    memcpy(&f, function, sizeof f);
    f = hook_instead_of(f);
    memcpy(function, &f, sizeof f);
}

CUresult hook_cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    CUresult r = guard.real.cuGetProcAddress(name, function, version, flags);
    replace(r, function);
    return r;
}

CUresult hook_cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status)
{
    CUresult r = guard.real.cuGetProcAddress_v2(name, function, version, flags, status);
    replace(r, function);
    return r;
}
