// SPDX-License-Identifier: MIT
// What our own libcudas offer to Python (moat_link.py) and to libmoat.so beyond the driver API. Other
// libcudas have none of it. libmoat.so passes the calls on to the CPU device, except the last two, which it
// makes.
#ifndef MOAT_DRIVER_DRIVER_PTX_H
#define MOAT_DRIVER_DRIVER_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/native_rows.h"

// Receives the PTX that machine code was made from, before the machine code is loaded (ptx_registry.h). The
// text is copied. Returns 0 or a negative code.
#define DRIVER_PTX_SYMBOL "moat_driver_ptx"
typedef int driver_ptx_fn(const void *code, size_t code_size, const char *ptx, size_t ptx_size);

// Returns the address at which the host can read and write size bytes of the CPU device's memory; 0 if
// kernels may not read all of them.
#define DRIVER_HOST_SYMBOL "moat_driver_host"
typedef uint64_t driver_host_fn(uint64_t address, size_t size);

// Stores where the memory lies that kernels of the calling thread's context take from malloc. Returns false
// if no kernel has called malloc there yet.
#define DRIVER_KERNEL_HEAP_SYMBOL "moat_driver_kernel_heap"
typedef bool driver_kernel_heap_fn(uint64_t *base, uint64_t *size);

// Offers functions in C for functions in PTX, as exec_native_add does. Returns false if there is no memory,
// or if the option cpu-native says no.
#define DRIVER_NATIVE_SYMBOL "moat_driver_native"
typedef bool driver_native_fn(const struct native_row *rows, unsigned n, struct native_space *space);

#endif
