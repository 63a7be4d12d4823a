// SPDX-License-Identifier: MIT
// The list of all arrays and references, newest first.
#include "cpu/array.h"

#include "base/mutex.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank: inside a context's lock
static struct array_head *all;

bool array_is(const void *handle, enum array_kind kind)
{
    return handle && handle_is(handle, HANDLE_IMAGE) && ((const struct array_head *)handle)->kind == kind;
}

struct CUarray_st *array_get(CUarray handle)
{
    return array_is(handle, ARRAY_PLAIN) || array_is(handle, ARRAY_LEVEL) ? handle : NULL;
}

CUresult array_register(struct array_head *h, enum array_kind kind, struct CUctx_st *ctx)
{
    h->kind = kind;
    h->ctx = ctx;
    if (handle_add(h, HANDLE_IMAGE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    mutex_lock(&lock);
    h->next = all;
    all = h;
    mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

bool array_unregister(struct array_head *h)
{
    bool found = false;
    mutex_lock(&lock);
    for (struct array_head **at = &all; *at && !found; at = found ? at : &(*at)->next)
        if (*at == h) {
            found = true;
            *at = h->next;
        }
    mutex_unlock(&lock);
    if (found)
        handle_remove(h);
    return found;
}

struct array_head *array_reference(enum array_kind kind, uint64_t address)
{
    mutex_lock(&lock);
    struct array_head *h = all;
    while (h && (h->kind != kind || h->reference != address))
        h = h->next;
    mutex_unlock(&lock);
    return h;
}

struct array_head *array_of(const struct CUctx_st *ctx)
{
    mutex_lock(&lock);
    struct array_head *h = all;
    while (h && h->ctx != ctx)
        h = h->next;
    mutex_unlock(&lock);
    return h;
}
