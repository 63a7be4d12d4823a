// SPDX-License-Identifier: MIT
// Green contexts: partitions of a device's multiprocessors, each with a handle that can be made current.
// Memory and modules made while one is current belong to the primary context: they stay when the green
// context is destroyed.
#ifndef MOAT_CONTEXT_GREEN_H
#define MOAT_CONTEXT_GREEN_H

#include <stdatomic.h>

#include "driver/driver.h"

extern _Atomic bool green_used;  // relaxed: set before the program gets the first handle

// Records a green context, which holds the primary context of its device.
void green_made(CUgreenCtx green, CUdevice device, CUcontext primary);
// Records the handle by which the green context is made current.
void green_current_as(CUgreenCtx green, CUcontext context);
// Forgets a destroyed green context. Returns its handle; NULL if the program never asked for one, or if the
// green context is unknown.
CUcontext green_gone(CUgreenCtx green);
// Forgets the green contexts of a primary context that has ended.
void green_primary_gone(CUcontext primary);
// Returns -1 if the green context is unknown.
CUdevice green_device(CUgreenCtx green);

CUcontext green_primary(CUcontext context);  // NULL: not the handle of a green context
void green_after_fork(void);

// Returns the context that owns what is made while `context` is current.
static inline CUcontext green_owner(CUcontext context)
{
    if (__builtin_expect(!atomic_load_explicit(&green_used, memory_order_relaxed), 1))
        return context;
    CUcontext primary = green_primary(context);
    return primary ? primary : context;
}

#endif
