// SPDX-License-Identifier: MIT
// What the CPU device offers to run-time compilers, to PyTorch and to libmoat.so: driver_ptx.h.
#include <errno.h>

#include "cpu/config.h"
#include "cpu/cpu.h"
#include "cpu/memory.h"
#include "driver/driver_ptx.h"
#include "exec/space.h"
#include "image/ptx_registry.h"

#pragma GCC visibility push(default)
driver_ptx_fn moat_driver_ptx;
driver_host_fn moat_driver_host;
driver_kernel_heap_fn moat_driver_kernel_heap;
driver_native_fn moat_driver_native;
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

bool moat_driver_kernel_heap(uint64_t *base, uint64_t *size)
{
    struct CUctx_st *ctx = NULL;
    cpu_context_current_any(&ctx);
    return ctx && memory_heap_place(ctx, base, size);
}

bool moat_driver_native(const struct native_row *rows, unsigned n, struct native_space *native_space)
{
    return config_get()->native && !exec_native_add(rows, n, native_space);
}
