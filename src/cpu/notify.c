// SPDX-License-Identifier: MIT
// Notifications of a device that a process uses more memory than its share. The CPU device has no shares, so
// no callback is ever called.
#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/cpu.h"

struct CUasyncCallbackEntry_st {
    struct CUasyncCallbackEntry_st *next;
    CUdevice device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUasyncCallbackEntry_st *entries;

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback fn, void *data,
                                           CUasyncCallbackHandle *out)
{
    CUresult r = device_check(device);
    if (r || !fn || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct CUasyncCallbackEntry_st *e = mem_alloc(sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mutex_lock(&lock);
    *e = (struct CUasyncCallbackEntry_st){entries, device};
    entries = e;
    mutex_unlock(&lock);
    *out = e;
    return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle handle)
{
    CUresult r = device_check(device);
    if (r)
        return r;
    mutex_lock(&lock);
    struct CUasyncCallbackEntry_st **at = &entries, *found;
    while (*at && (*at != handle || (*at)->device != device))
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    mutex_unlock(&lock);
    mem_free(found);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
