// SPDX-License-Identifier: MIT
// Advice and prefetches of managed memory: checked and stored, but nothing moves. They are stored for the
// whole allocation, whatever part of it the call names.
#include <string.h>

#include "base/mutex.h"
#include "cpu/memory.h"
#include "cpu/stream.h"

CUresult memory_managed_location(CUmemLocationType type, int id, bool *host)
{
    switch (type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *host = false;
        return (unsigned)id < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: *host = true; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUmemLocation of_device(CUdevice d)
{
    bool cpu = d == CU_DEVICE_CPU;
    return (CUmemLocation){cpu ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, cpu ? 0 : d};
}

// Returns the managed allocation that holds all of [p, p + size), or NULL.
static struct memory_block *managed(uint64_t p, uint64_t size)
{
    struct memory_block *b = memory_block_at(p);
    bool good = b && b->kind == MEMORY_MANAGED && size && size <= memory_range_end(&b->node) - p;
    return good ? b : NULL;
}

// --- prefetch ----------------------------------------------------------------------------------------------

static CUresult prefetch(CUdeviceptr p, size_t size, CUmemLocation to, unsigned flags, CUstream stream,
                         bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = stream_get(stream, per_thread, &s);
    bool host;
    if (r)
        return r;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    r = memory_managed_location(to.type, to.id, &host);
    if (r)
        return r;
    mutex_lock(&memory_lock);
    struct memory_block *b = managed(p, size);
    if (b)
        b->prefetched = to;
    mutex_unlock(&memory_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t size, CUdevice to, CUstream stream)
{
    return prefetch(p, size, of_device(to), 0, stream, false);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr p, size_t size, CUdevice to, CUstream stream)
{
    return prefetch(p, size, of_device(to), 0, stream, true);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t size, CUmemLocation to, unsigned int flags,
                               CUstream stream)
{
    return prefetch(p, size, to, flags, stream, false);
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr p, size_t size, CUmemLocation to, unsigned int flags,
                                    CUstream stream)
{
    return prefetch(p, size, to, flags, stream, true);
}

// Checks a batch: to[k] is the destination of the ranges from first[k] up to first[k + 1].
static CUresult check_batch(const CUdeviceptr *p, const size_t *sizes, size_t count, const CUmemLocation *to,
                            const size_t *first, size_t nto)
{
    if (!p || !sizes || !count || !to || !first || !nto || nto > count || first[0])
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 1; k < nto; k++) {
        if (first[k] <= first[k - 1] || first[k] >= count)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult prefetch_batch(CUdeviceptr *p, size_t *sizes, size_t count, CUmemLocation *to, size_t *first,
                               size_t nto, unsigned long long flags, CUstream stream, bool per_thread)
{
    CUresult r = check_batch(p, sizes, count, to, first, nto);
    if (flags)
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0, k = 0; i < count && !r; i++) {
        if (k + 1 < nto && first[k + 1] == i)
            k++;
        r = prefetch(p[i], sizes[i], to[k], 0, stream, per_thread);
    }
    return r;
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *p, size_t *sizes, size_t count, CUmemLocation *to,
                                 size_t *first, size_t nto, unsigned long long flags, CUstream stream)
{
    return prefetch_batch(p, sizes, count, to, first, nto, flags, stream, false);
}

CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr *p, size_t *sizes, size_t count, CUmemLocation *to,
                                      size_t *first, size_t nto, unsigned long long flags, CUstream stream)
{
    return prefetch_batch(p, sizes, count, to, first, nto, flags, stream, true);
}

// Discarded memory may keep its contents, so nothing is done.
static CUresult discard(CUdeviceptr *p, size_t *sizes, size_t count, unsigned long long flags,
                        CUstream stream, bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = stream_get(stream, per_thread, &s);
    if (!r && (!p || !sizes || !count || flags))
        r = CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    for (size_t i = 0; !r && i < count; i++) {
        if (!managed(p[i], sizes[i]))
            r = CUDA_ERROR_INVALID_VALUE;
    }
    mutex_unlock(&memory_lock);
    return r;
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr *p, size_t *sizes, size_t count, unsigned long long flags,
                                CUstream stream)
{
    return discard(p, sizes, count, flags, stream, false);
}

CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr *p, size_t *sizes, size_t count, unsigned long long flags,
                                     CUstream stream)
{
    return discard(p, sizes, count, flags, stream, true);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *p, size_t *sizes, size_t count, CUmemLocation *to,
                                           size_t *first, size_t nto, unsigned long long flags,
                                           CUstream stream)
{
    return prefetch_batch(p, sizes, count, to, first, nto, flags, stream, false);
}

CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr *p, size_t *sizes, size_t count,
                                                CUmemLocation *to, size_t *first, size_t nto,
                                                unsigned long long flags, CUstream stream)
{
    return prefetch_batch(p, sizes, count, to, first, nto, flags, stream, true);
}

// --- advice ------------------------------------------------------------------------------------------------

static unsigned accessor(CUmemLocation l, bool host)
{
    return 1u << (host ? CONFIG_DEVICES : l.id);
}

static void apply(struct memory_block *b, CUmem_advise advice, CUmemLocation l, bool host)
{
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: b->read_mostly = true; break;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: b->read_mostly = false; break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: b->preferred = l; break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        b->preferred = (CUmemLocation){CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID};
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY: b->accessed_by |= accessor(l, host); break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY: b->accessed_by &= ~accessor(l, host); break;
    }
}

static CUresult advise(CUdeviceptr p, size_t size, CUmem_advise advice, CUmemLocation l)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    bool host = false;
    if (r)
        return r;
    // These three kinds of advice name no location.
    bool place = advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                 advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY ||
        (place && memory_managed_location(l.type, l.id, &host)))
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    struct memory_block *b = managed(p, size);
    if (b)
        apply(b, advice, l, host);
    mutex_unlock(&memory_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise(CUdeviceptr p, size_t size, CUmem_advise advice, CUdevice device)
{
    return advise(p, size, advice, of_device(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr p, size_t size, CUmem_advise advice, CUmemLocation l)
{
    return advise(p, size, advice, l);
}

// --- what was advised --------------------------------------------------------------------------------------

// Converts a location to the value of the older attributes.
static int device_of(const CUmemLocation *l)
{
    if (l->type == CU_MEM_LOCATION_TYPE_INVALID)
        return CU_DEVICE_INVALID;
    return l->type == CU_MEM_LOCATION_TYPE_DEVICE ? l->id : CU_DEVICE_CPU;
}

static int value_of(const struct memory_block *b, CUmem_range_attribute a)
{
    switch (a) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: return b->read_mostly;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return device_of(&b->preferred);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return (int)b->preferred.type;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: return device_of(&b->prefetched);
    default: return (int)b->prefetched.type;
    }
}

static void accessed_by(const struct memory_block *b, int *out, size_t n)
{
    size_t used = 0;
    for (int i = 0; i <= CONFIG_DEVICES && used < n; i++) {
        if (b->accessed_by >> i & 1)
            out[used++] = i < CONFIG_DEVICES ? i : CU_DEVICE_CPU;
    }
    while (used < n)
        out[used++] = CU_DEVICE_INVALID;
}

static CUresult get_attribute(const struct memory_block *b, void *data, size_t size, CUmem_range_attribute a)
{
    if (!data || !size || a < CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ||
        a > CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID)
        return CUDA_ERROR_INVALID_VALUE;
    if (a == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        if (size % sizeof(int))
            return CUDA_ERROR_INVALID_VALUE;
        accessed_by(b, data, size / sizeof(int));
        return CUDA_SUCCESS;
    }
    if (size != sizeof(int))
        return CUDA_ERROR_INVALID_VALUE;
    int value = value_of(b, a);
    memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes, size_t count,
                                 CUdeviceptr p, size_t size)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!data || !sizes || !attributes || !count)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    const struct memory_block *b = managed(p, size);
    if (!b)
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !r; i++)
        r = get_attribute(b, data[i], sizes[i], attributes[i]);
    mutex_unlock(&memory_lock);
    return r;
}

CUresult cuMemRangeGetAttribute(void *data, size_t data_size, CUmem_range_attribute a, CUdeviceptr p,
                                size_t size)
{
    return cuMemRangeGetAttributes(&data, &data_size, &a, 1, p, size);
}

// --- streams -----------------------------------------------------------------------------------------------

static CUresult attach(CUstream stream, CUdeviceptr p, size_t size, unsigned flags, bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = stream_get(stream, per_thread, &s);
    if (r)
        return r;
    bool one = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    if (!one || (flags == CU_MEM_ATTACH_SINGLE && s->legacy))
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    struct memory_block *b = memory_block_at(p);
    // Only a whole allocation can be attached.
    bool good = b && b->kind == MEMORY_MANAGED && b->node.base == p && (!size || size == b->node.size);
    mutex_unlock(&memory_lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr p, size_t size, unsigned int flags)
{
    return attach(stream, p, size, flags, false);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr p, size_t size, unsigned int flags)
{
    return attach(stream, p, size, flags, true);
}
