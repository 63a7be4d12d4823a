// SPDX-License-Identifier: MIT
// driver_ptx.h in libmoat.so: PTX is kept for the modes that rewrite and passed on to the CPU device.
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "core/guard.h"
#include "driver/driver_ptx.h"
#include "guard/guard_start.h"
#include "image/ptx_registry.h"
#include "rewrite/rewrite.h"

#pragma GCC visibility push(default)
driver_ptx_fn moat_driver_ptx;
driver_host_fn moat_driver_host;
#pragma GCC visibility pop

// Finds a function of the CPU device. Returns NULL on a GPU.
static void *of_device(const char *symbol)
{
    return guard.real.handle && guard.real_fault ? dlsym(guard.real.handle, symbol) : NULL;
}

int moat_driver_ptx(const void *code, size_t code_size, const char *ptx, size_t ptx_size)
{
    driver_ptx_fn *next;
    guard_start();
    if (!code || !ptx)
        return -EINVAL;
    if (!guard.options.jit_ptx)
        return 0;
    int err = rewrite_on ? ptx_registry_add((struct str){code, code_size}, (struct str){ptx, ptx_size}) : 0;
    void *symbol = of_device(DRIVER_PTX_SYMBOL);
    memcpy(&next, &symbol, sizeof next);
    int err2 = next ? next(code, code_size, ptx, ptx_size) : 0;
    return err ? err : err2;
}

uint64_t moat_driver_host(uint64_t address, size_t size)
{
    driver_host_fn *next;
    guard_start();
    void *symbol = of_device(DRIVER_HOST_SYMBOL);
    memcpy(&next, &symbol, sizeof next);
    return next ? next(address, size) : 0;
}
