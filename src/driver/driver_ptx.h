// SPDX-License-Identifier: MIT
// What our own libcudas offer beyond the driver API to those who compile kernels at run time (sitecustomize.py
// for Triton and PyTorch, jit_hook.h for NVRTC). Other libcudas have none of it. libmoat.so passes the calls on.
#ifndef MOAT_DRIVER_DRIVER_PTX_H
#define MOAT_DRIVER_DRIVER_PTX_H

#include <stddef.h>
#include <stdint.h>

// Tells from which PTX machine code was made, before it is loaded (ptx_registry.h). Both are copied as far as
// they are kept. Returns 0 or a negative code.
#define DRIVER_PTX_SYMBOL "moat_driver_ptx"
typedef int driver_ptx_fn(const void *code, size_t code_size, const char *ptx, size_t ptx_size);

// Returns the address at which the host may read and write device memory of the CPU device; 0: no memory of
// the application begins or continues there, or fewer than size bytes of it do.
#define DRIVER_HOST_SYMBOL "moat_driver_host"
typedef uint64_t driver_host_fn(uint64_t address, size_t size);

#endif
