// SPDX-License-Identifier: MIT
// Calls of the malloc and free that the driver gives to kernels, redirected to the heap of src/kheap.
//
// A module that calls them gets the heap's functions as its own, and the variable KHEAP_VARIABLE, which is also a symbol of
// the result and which the host sets to the address of the context's heap before a kernel runs. As long as it is 0, and
// where the heap's `plain` is set, the driver's functions are called as before. free goes by the address: what does not lie
// in the heap is the driver's, if there can be such memory, as the heap's `foreign` says, or else nobody's. Modules that do
// not call them are left as they are and have no such symbol.
//
// C++ new and delete are such calls already. Memory that must be aligned to more than 16 bytes stays the driver's.
#ifndef MOAT_PASS_PASS_KHEAP_H
#define MOAT_PASS_PASS_KHEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

// Registers that a compiler may give to a thread in a rewritten module: a kernel must have room for the functions that it calls,
// and with so many it can be launched with blocks of any size.
enum { PASS_KHEAP_REGISTERS = 64 };

bool pass_kheap_is(struct str name);  // a function of the driver's that gives or takes memory in kernels

uint64_t pass_kheap_sum(
    void);  // of the text that is added and of the limit: what caches hold is stale where it is another

#endif
