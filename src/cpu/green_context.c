// SPDX-License-Identifier: MIT
// Green contexts: parts of a device's multiprocessors. Each is built on the device's primary context, which
// it retains: memory, modules and streams that are made while the green context is current belong to the
// primary context. The number of multiprocessors can only be queried: work in its streams runs on any thread
// of the pool.
//
// The handle of a green context is also the CUcontext that makes it current.
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/stream.h"

struct CUgreenCtx_st {
    struct CUgreenCtx_st *next;
    CUdevice device;
    struct CUctx_st *base;
    unsigned sms;
    unsigned long long id;
};

// The descriptor of a resource or of a list of resources. There is one for each device and number; they are
// never freed, as no call returns them.
struct CUdevResourceDesc_st {
    struct CUdevResourceDesc_st *next;
    CUdevice device;
    unsigned sms;
};

// Guards both lists. A leaf.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUgreenCtx_st *greens;
static struct CUdevResourceDesc_st *descs;
static unsigned long long last_id;

// --- resources ---------------------------------------------------------------------------------------------

// Our data in the part of a resource that is reserved for the driver.
struct own {
    uint32_t mark;
    CUdevice device;
};
enum { MARK = 0x6d6f6174 };

static void fill(CUdevResource *r, CUdevice device, unsigned sms)
{
    struct own own = {MARK, device};
    memset(r, 0, sizeof *r);
    if (!sms)
        return;
    r->type = CU_DEV_RESOURCE_TYPE_SM;
    memcpy(r->_internal_padding, &own, sizeof own);
    r->sm = (CUdevSmResource){.smCount = sms, .minSmPartitionSize = 1, .smCoscheduledAlignment = 1};
}

// Checks that a resource was filled by us, and stores its device.
static CUresult read(const CUdevResource *r, CUdevice *device)
{
    struct own own;
    memcpy(&own, r->_internal_padding, sizeof own);
    if (r->type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *device = own.device;
    return own.mark != MARK || device_check(own.device) || r->sm.smCount > device_sm_count()
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

static CUresult give(CUdevResource *out, CUdevResourceType type, CUdevice device, unsigned sms)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    fill(out, device, sms);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
    CUresult r = device_check(device);
    return r ? r : give(out, type, device, device_sm_count());
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups, const CUdevResource *input,
                                     CUdevResource *remaining, unsigned int flags, unsigned int least)
{
    CUdevice device;
    CUresult r = device_ready();
    if (r || !groups || !input)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = read(input, &device);
    unsigned all = input->sm.smCount, each = least ? least : 1;
    if (r || least > all ||
        flags & ~(unsigned)(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                            CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    unsigned n = all / each;
    if (result && *groups < n)
        n = *groups;
    for (unsigned i = 0; result && i < n; i++)
        fill(&result[i], device, each);
    if (remaining)
        fill(remaining, device, all - n * each);
    *groups = n;
    return CUDA_SUCCESS;
}

// Finds or makes a descriptor. Returns NULL if out of memory. The lock must be held.
static struct CUdevResourceDesc_st *find_desc(CUdevice device, unsigned sms)
{
    struct CUdevResourceDesc_st *d = descs;
    while (d && (d->device != device || d->sms != sms))
        d = d->next;
    if (d || !(d = mem_alloc(sizeof *d)))
        return d;
    *d = (struct CUdevResourceDesc_st){descs, device, sms};
    return descs = d;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources, unsigned int count)
{
    CUresult r = device_ready();
    CUdevice device = 0, own;
    unsigned sms = 0;
    if (r || !out || !resources || !count)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        r = read(&resources[i], &own);
        if (r)
            return r;
        if (i && own != device)
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        device = own;
        sms += resources[i].sm.smCount;
        if (sms > device_sm_count())
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    mutex_lock(&lock);
    *out = find_desc(device, sms);
    mutex_unlock(&lock);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// --- contexts ----------------------------------------------------------------------------------------------

// The lock must be held.
static struct CUgreenCtx_st **find(CUgreenCtx handle)
{
    struct CUgreenCtx_st **at = &greens;
    while (*at && *at != handle)
        at = &(*at)->next;
    return at;
}

// Copies the green context that the application names.
static CUresult get(CUgreenCtx handle, struct CUgreenCtx_st *out)
{
    CUresult r = device_ready();
    if (r)
        return r;
    mutex_lock(&lock);
    const struct CUgreenCtx_st *g = *find(handle);
    if (g)
        *out = *g;
    mutex_unlock(&lock);
    return g ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct CUctx_st *green_context_base(CUcontext handle, unsigned long long *id)
{
    struct CUgreenCtx_st g;
    if (!handle || get((CUgreenCtx)handle, &g))
        return NULL;
    if (id)
        *id = g.id;
    return g.base;
}

CUgreenCtx green_context_of(unsigned long long id)
{
    mutex_lock(&lock);
    struct CUgreenCtx_st *g = greens;
    while (g && g->id != id)
        g = g->next;
    mutex_unlock(&lock);
    return g;
}

static bool desc_is(CUdevResourceDesc handle)
{
    mutex_lock(&lock);
    const struct CUdevResourceDesc_st *d = descs;
    while (d && d != handle)
        d = d->next;
    mutex_unlock(&lock);
    return d;
}

CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device, unsigned int flags)
{
    CUresult r = device_check(device);
    if (r || !out || flags != CU_GREEN_CTX_DEFAULT_STREAM || !desc_is(desc) || desc->device != device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct CUgreenCtx_st *g = mem_zalloc(1, sizeof *g);
    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = cuDevicePrimaryCtxRetain(&g->base, device);
    if (r) {
        mem_free(g);
        return r;
    }
    g->device = device;
    g->sms = desc->sms;
    mutex_lock(&lock);
    g->id = ++last_id;
    g->next = greens;
    greens = g;
    mutex_unlock(&lock);
    *out = g;
    return CUDA_SUCCESS;
}

// The streams of a destroyed green context remain and their work runs to its end. They can neither be used
// nor destroyed any more; they are freed with the primary context.
CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
    CUresult r = device_ready();
    if (r)
        return r;
    mutex_lock(&lock);
    struct CUgreenCtx_st **at = find(handle), *g = *at;
    if (g)
        *at = g->next;
    mutex_unlock(&lock);
    if (!g)
        return CUDA_ERROR_INVALID_VALUE;
    CUdevice device = g->device;
    mem_free(g);
    return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx handle)
{
    struct CUgreenCtx_st g;
    CUresult r = get(handle, &g);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)handle;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *out, CUdevResourceType type)
{
    struct CUgreenCtx_st g;
    CUresult r = get(handle, &g);
    return r ? r : give(out, type, g.device, g.sms);
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *out, CUdevResourceType type)
{
    struct CUctx_st *current = NULL;
    CUresult r = handle ? device_ready() : cpu_context_current_any(&current);
    if (r)
        return r;
    if (!handle)
        handle = cpu_context_green() ? (CUcontext)green_context_of(cpu_context_green()) : current;
    if (handle_is(handle, HANDLE_CONTEXT))
        return give(out, type, handle->device, device_sm_count());
    r = cuGreenCtxGetDevResource((CUgreenCtx)handle, out, type);
    return r == CUDA_ERROR_INVALID_VALUE && out ? CUDA_ERROR_INVALID_CONTEXT : r;
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long *id)
{
    struct CUgreenCtx_st g;
    CUresult r = get(handle, &g);
    if (r || !id)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *id = g.id;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx handle, unsigned int flags, int priority)
{
    struct CUgreenCtx_st g;
    if (pool_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult r = get(handle, &g);
    if (!r)
        r = stream_error(g.base);
    if (r || !out || flags != CU_STREAM_NON_BLOCKING)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return stream_create(out, g.base, g.id, flags, priority);
}

// Records an event for all work of the primary context, which includes the green context's; the wait below
// does the same.
CUresult cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event)
{
    struct CUgreenCtx_st g;
    CUresult r = get(handle, &g);
    return r ? r : cuCtxRecordEvent(g.base, event);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event)
{
    struct CUgreenCtx_st g;
    CUresult r = get(handle, &g);
    return r ? r : cuCtxWaitEvent(g.base, event);
}
