// SPDX-License-Identifier: MIT
// Redirects calls of malloc and free in kernels from the driver's heap to the heap of src/kheap.
//
// A module that calls them gets the heap's functions, and the variable KHEAP_VARIABLE, which is also a symbol
// of the result. The host sets it to the address of the context's heap before a kernel runs. As long as it is
// 0, and where the heap's `plain` is set, the driver's functions are called as before. free decides by the
// address: a pointer outside the heap goes to the driver's free if the heap's `foreign` says that there may
// be such memory, else to the heap's free, which reports it. Modules that do not call these functions are
// left unchanged and have no such symbol.
//
// C++ new and delete are such calls already. Memory that must be aligned to more than 16 bytes comes from the
// driver, unless the heap can tell where such blocks are (kheap_plan_found).
#ifndef MOAT_PASS_PASS_KHEAP_H
#define MOAT_PASS_PASS_KHEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ptx/edit.h"

// Registers that the compiler may give to a thread in a rewritten module. A kernel must have room for the
// functions that it calls, and with so many it can be launched with blocks of any size.
enum { PASS_KHEAP_REGISTERS = 64 };

// The function that is called in place of free.
#define PASS_KHEAP_GIVE EDIT_PREFIX "kheap_give"

bool pass_kheap_is(struct str name);  // a function of the driver's that allocates or frees memory in kernels

uint64_t
pass_kheap_sum(void);  // hash of the added text and the limit: cached modules with another one are stale

#endif
