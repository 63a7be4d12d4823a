// SPDX-License-Identifier: MIT
#include "context/green.h"

#include "core/lock.h"

#include <stddef.h>

enum { GREENS = 256 };

// A green context that finds no row is taken for an ordinary context whose end is never seen: what is made in
// it stays recorded.
static struct row {
    CUgreenCtx green;  // NULL: the row is free
    CUcontext context, primary;
    CUdevice device;
} rows[GREENS];
static struct lock lock = LOCK_INIT(GREEN);  // protects the rows; a leaf

_Atomic bool green_used;

void green_after_fork(void)
{
    lock_after_fork(&lock);
}

// Requires the lock. NULL finds a free row.
static struct row *row_of(CUgreenCtx green)
{
    for (struct row *r = rows; r < rows + GREENS; r++)
        if (r->green == green)
            return r;
    return NULL;
}

void green_made(CUgreenCtx green, CUdevice device, CUcontext primary)
{
    lock_take(&lock);
    struct row *r = row_of(green);
    if (green && (r || (r = row_of(NULL))))
        *r = (struct row){.green = green, .primary = primary, .device = device};
    lock_give(&lock);
    atomic_store_explicit(&green_used, true, memory_order_relaxed);
}

void green_current_as(CUgreenCtx green, CUcontext context)
{
    lock_take(&lock);
    struct row *r = green ? row_of(green) : NULL;
    if (r)
        r->context = context;
    lock_give(&lock);
}

CUcontext green_gone(CUgreenCtx green)
{
    lock_take(&lock);
    struct row *r = green ? row_of(green) : NULL;
    CUcontext context = r ? r->context : NULL;
    if (r)
        *r = (struct row){.green = NULL};
    lock_give(&lock);
    return context;
}

void green_primary_gone(CUcontext primary)
{
    lock_take(&lock);
    for (struct row *r = rows; r < rows + GREENS; r++)
        if (r->green && r->primary == primary)
            *r = (struct row){.green = NULL};
    lock_give(&lock);
}

CUdevice green_device(CUgreenCtx green)
{
    lock_take(&lock);
    struct row *r = green ? row_of(green) : NULL;
    CUdevice device = r ? r->device : -1;
    lock_give(&lock);
    return device;
}

CUcontext green_primary(CUcontext context)
{
    CUcontext primary = NULL;
    lock_take(&lock);
    for (struct row *r = rows; context && r < rows + GREENS; r++)
        if (r->context == context)
            primary = r->primary;
    lock_give(&lock);
    return primary;
}
