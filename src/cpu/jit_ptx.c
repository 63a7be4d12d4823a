// SPDX-License-Identifier: MIT
// What the CPU device offers to run-time compilers and to PyTorch: driver_ptx.h.
#include <errno.h>

#include "cpu/memory.h"
#include "driver/driver_ptx.h"
#include "exec/space.h"
#include "image/ptx_registry.h"

#pragma GCC visibility push(default)
driver_ptx_fn moat_driver_ptx;
driver_host_fn moat_driver_host;
#pragma GCC visibility pop

int moat_driver_ptx(const void *code, size_t code_size, const char *ptx, size_t ptx_size)
{
    if (!code || !ptx)
        return -EINVAL;
    return ptx_registry_add((struct str){code, code_size}, (struct str){ptx, ptx_size});
}

uint64_t moat_driver_host(uint64_t address, size_t size)
{
    if (space_init() || !space_allows(address, size, SPACE_READ))
        return 0;
    return (uintptr_t)space_host(address);
}
