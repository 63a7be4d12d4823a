// SPDX-License-Identifier: MIT
// Green contexts: parts of a device's multiprocessors, each with a handle that can be made current. Memory and modules that
// are made meanwhile are the primary context's: they stay when the green one goes.
#ifndef MOAT_CONTEXT_GREEN_H
#define MOAT_CONTEXT_GREEN_H

#include <stdatomic.h>

#include "driver/driver.h"

extern _Atomic bool green_used;  // relaxed: set before the program has a handle that it is about

// One was made on a device, and holds that device's primary context.
void green_made(CUgreenCtx green, CUdevice device, CUcontext primary);
// The handle by which it is made current.
void green_current_as(CUgreenCtx green, CUcontext context);
// It is no more. NULL: nobody asked for a handle, or it is not known.
CUcontext green_gone(CUgreenCtx green);
// A primary context has ended, and all that held it.
void green_primary_gone(CUcontext primary);
// -1: it is not known.
CUdevice green_device(CUgreenCtx green);

CUcontext green_primary(CUcontext context);  // NULL: it is no green one's
void green_after_fork(void);

// To whom things belong that are made while a context is current.
static inline CUcontext green_owner(CUcontext context)
{
    if (__builtin_expect(!atomic_load_explicit(&green_used, memory_order_relaxed), 1))
        return context;
    CUcontext primary = green_primary(context);
    return primary ? primary : context;
}

#endif
