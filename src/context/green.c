// SPDX-License-Identifier: MIT
#include "context/green.h"

#include <pthread.h>
#include <stddef.h>

enum { GREENS = 256 };

// What does not fit is taken for an ordinary context whose end nobody tells: what is made in it stays in the books.
static struct row {
    CUgreenCtx green;  // NULL: free
    CUcontext context, primary;
    CUdevice device;
} rows[GREENS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of the rows; a leaf

_Atomic bool green_used;

void green_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

// Under the lock. NULL finds a free one.
static struct row *row_of(CUgreenCtx green)
{
    for (struct row *r = rows; r < rows + GREENS; r++)
        if (r->green == green)
            return r;
    return NULL;
}

void green_made(CUgreenCtx green, CUdevice device, CUcontext primary)
{
    pthread_mutex_lock(&lock);
    struct row *r = row_of(green);
    if (green && (r || (r = row_of(NULL))))
        *r = (struct row){.green = green, .primary = primary, .device = device};
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&green_used, true, memory_order_relaxed);
}

void green_current_as(CUgreenCtx green, CUcontext context)
{
    pthread_mutex_lock(&lock);
    struct row *r = green ? row_of(green) : NULL;
    if (r)
        r->context = context;
    pthread_mutex_unlock(&lock);
}

CUcontext green_gone(CUgreenCtx green)
{
    pthread_mutex_lock(&lock);
    struct row *r = green ? row_of(green) : NULL;
    CUcontext context = r ? r->context : NULL;
    if (r)
        *r = (struct row){.green = NULL};
    pthread_mutex_unlock(&lock);
    return context;
}

void green_primary_gone(CUcontext primary)
{
    pthread_mutex_lock(&lock);
    for (struct row *r = rows; r < rows + GREENS; r++)
        if (r->green && r->primary == primary)
            *r = (struct row){.green = NULL};
    pthread_mutex_unlock(&lock);
}

CUdevice green_device(CUgreenCtx green)
{
    pthread_mutex_lock(&lock);
    struct row *r = green ? row_of(green) : NULL;
    CUdevice device = r ? r->device : -1;
    pthread_mutex_unlock(&lock);
    return device;
}

CUcontext green_primary(CUcontext context)
{
    CUcontext primary = NULL;
    pthread_mutex_lock(&lock);
    for (struct row *r = rows; context && r < rows + GREENS; r++)
        if (r->context == context)
            primary = r->primary;
    pthread_mutex_unlock(&lock);
    return primary;
}
