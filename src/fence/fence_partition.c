// SPDX-License-Identifier: MIT
#include "fence/fence_partition.h"

#include "core/guard.h"

#define UNIT ((uint64_t)FENCE_PARTITION_UNIT)
#define ZONE ((uint64_t)KFENCE_ZONE)

enum {
    LEAST_BITS = 32,  // of the size: the upper halves of its addresses differ from all others
    SHARE = 4,        // a growth adds this part of the memory that there is
};

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuMemAddressReserve && d->cuMemAddressFree && d->cuMemCreate && d->cuMemMap && d->cuMemUnmap &&
           d->cuMemSetAccess && d->cuMemRelease;
}

// --- addresses ---------------------------------------------------------------------------------------------

// Reserves [base - ZONE, base + size + ZONE) with base at a multiple of size.
static CUresult reserve(uint64_t size, uint64_t *base)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = 0;
    // Wherever this begins, a multiple of size lies in it with room on either side.
    CUresult r = d->cuMemAddressReserve(&at, 2 * size + 2 * ZONE, 0, 0, 0);
    *base = (at + ZONE + size - 1) & ~(size - 1);
    return r;
}

static uint64_t power_above(uint64_t n)
{
    uint64_t power = (uint64_t)1 << LEAST_BITS;
    while (power < n)
        power *= 2;
    return power;
}

// --- sinks -------------------------------------------------------------------------------------------------

static CUresult create(CUdevice device, uint64_t bytes, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return guard.real.cuMemCreate(handle, bytes, &prop, 0);
}

static CUresult open_to_kernels(CUdevice device, uint64_t base, uint64_t bytes)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return guard.real.cuMemSetAccess(base, bytes, &access, 1);
}

static CUresult map_sinks(const struct fence_partition *p, uint64_t from, uint64_t to)
{
    CUresult r = CUDA_SUCCESS;
    uint64_t at = from;
    for (; at < to && !r; at += UNIT)
        r = guard.real.cuMemMap(at, UNIT, 0, p->sink, 0);
    return r || from == to ? r : open_to_kernels(p->device, from, to - from);
}

CUresult fence_partition_make(struct fence_partition *p, struct context *ctx)
{
    const struct context_device *device = context_device_of(ctx->device);
    if (!has_calls() || !device || !device->mappable)
        return CUDA_ERROR_NOT_SUPPORTED;
    // Twice the memory of the device: freed and taken memory does not always fit together.
    *p = (struct fence_partition){.device = ctx->device, .most = power_above(2 * device->memory)};
    uint64_t size = (uint64_t)1 << LEAST_BITS, base = 0;
    CUresult r = create(p->device, UNIT, &p->sink);
    if (!r)
        r = reserve(p->most, &base);
    if (!r)
        r = map_sinks(p, base - ZONE, base + size + ZONE);
    if (r)
        return r;
    p->base = base;
    p->size = size;
    p->top = base + ZONE;
    p->generation = 1;
    return CUDA_SUCCESS;
}

// Maps sinks behind the partition, up to twice its size.
static CUresult enlarge(struct fence_partition *p)
{
    if (p->size == p->most)
        return CUDA_ERROR_OUT_OF_MEMORY;
    // The zone behind the partition is mapped already; that behind the last size was reserved too.
    CUresult r = map_sinks(p, p->base + p->size + ZONE, p->base + 2 * p->size + ZONE);
    if (r)
        return r;
    p->size *= 2;
    p->generation++;
    return CUDA_SUCCESS;
}

static CUresult put_memory(struct fence_partition *p, uint64_t bytes)
{
    CUmemGenericAllocationHandle handle;
    CUresult r = create(p->device, bytes, &handle);
    if (r)
        return r;
    for (uint64_t at = p->top; at < p->top + bytes && !r; at += UNIT)
        r = guard.real.cuMemUnmap(at, UNIT);
    if (!r)
        r = guard.real.cuMemMap(p->top, bytes, 0, handle, 0);
    if (!r)
        r = open_to_kernels(p->device, p->top, bytes);
    guard.real.cuMemRelease(handle);  // the mapping keeps it
    if (r)
        map_sinks(p, p->top, p->top + bytes);  // whatever failed, nothing may be left unmapped
    if (r || !fence_space_add(&p->space, p->top, bytes))
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    p->top += bytes;
    return CUDA_SUCCESS;
}

CUresult fence_partition_grow(struct fence_partition *p, uint64_t bytes)
{
    uint64_t need = (bytes + UNIT - 1) / UNIT * UNIT, more = (p->top - p->base) / SHARE / UNIT * UNIT;
    CUresult r = CUDA_SUCCESS;
    if (need < bytes || need > p->most)
        return CUDA_ERROR_OUT_OF_MEMORY;
    more = more > need ? more : need;
    while (!r && p->top + more + ZONE > p->base + p->size)
        r = enlarge(p);
    if (!r)
        r = put_memory(p, more);
    return r && more > need ? put_memory(p, need) : r;
}

void fence_partition_describe(const struct fence_partition *p, struct kfence_module *m)
{
    m->base = p->base;
    m->mask = p->size - 1;
    m->outside = ~m->mask;
    m->sink = p->base + p->size - ZONE / 2;
    m->pages = p->size >> 21;
}
