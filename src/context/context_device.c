// SPDX-License-Identifier: MIT
#include "context/context_device.h"

#include "context/context.h"
#include "core/lock.h"
#include "core/guard.h"

enum {
    LEAST_ALIGNMENT = 256,
    MOST_ALIGNMENT = 4096,
};

static struct context_device devices[CONTEXT_DEVICES];
static _Atomic(bool) asked[CONTEXT_DEVICES];
static struct lock lock = LOCK_INIT(CONTEXT_DEVICE);  // protects the answers; a leaf

// The primary context of each device, once somebody has retained it. Relaxed: it never changes to another.
static _Atomic(CUcontext) primary[CONTEXT_DEVICES];
// How often it was retained. Relaxed: it only shows when a release may be the last.
static _Atomic(int) retained[CONTEXT_DEVICES];

void context_device_after_fork(void)
{
    lock_after_fork(&lock);
}

static int attribute(CUdevice device, CUdevice_attribute a)
{
    int value = 0;
    return guard.real.cuDeviceGetAttribute && !guard.real.cuDeviceGetAttribute(&value, a, device) ? value : 0;
}

static bool can_map(void)
{
    const struct driver *d = &guard.real;
    return d->cuMemAddressReserve && d->cuMemCreate && d->cuMemRelease && d->cuMemMap && d->cuMemUnmap &&
           d->cuMemSetAccess && d->cuMemGetAllocationGranularity;
}

static void ask(struct context_device *d, CUdevice device)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
    };
    size_t granularity = 0;
    int alignment = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    d->alignment = LEAST_ALIGNMENT;
    while (d->alignment < (size_t)alignment && d->alignment < MOST_ALIGNMENT)
        d->alignment *= 2;
    d->rdma = attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    d->exportable = guard.real.cuMemExportToShareableHandle &&
                    attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    int count = 0;
    d->alone = guard.real.cuDeviceGetCount && !guard.real.cuDeviceGetCount(&count) && count == 1;
    if (guard.real.cuDeviceTotalMem_v2(&d->memory, device))
        d->memory = 0;
    d->mappable = can_map() && d->memory &&
                  attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
                  !guard.real.cuMemGetAllocationGranularity(&granularity, &prop,
                                                            CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) &&
                  granularity && CONTEXT_GRANULE % granularity == 0;
}

const struct context_device *context_device_of(CUdevice device)
{
    if (device < 0 || device >= CONTEXT_DEVICES)
        return NULL;
    struct context_device *d = &devices[device];
    // Acquire: pairs with the release below, so that a thread that sees the flag sees the answers.
    if (!atomic_load_explicit(&asked[device], memory_order_acquire)) {
        struct context_device answers = {.mappable = false};
        ask(&answers, device);
        lock_take(&lock);
        if (!atomic_load_explicit(&asked[device], memory_order_relaxed)) {
            d->mappable = answers.mappable;
            d->rdma = answers.rdma;
            d->exportable = answers.exportable;
            d->alone = answers.alone;
            d->alignment = answers.alignment;
            d->memory = answers.memory;
            atomic_store_explicit(&asked[device], true, memory_order_release);
        }
        lock_give(&lock);
    }
    return d;
}

uint64_t context_device_part(CUdevice device, uint64_t part, uint64_t least, uint64_t most)
{
    const struct context_device *d = context_device_of(device);
    uint64_t bytes = d ? d->memory / part : 0;
    return bytes < least ? least : bytes > most ? most : bytes;
}

// Learns the pitch from an allocation of one row of one byte. It is freed again, which waits for the device,
// but only once.
size_t context_device_pitch(CUdevice device)
{
    struct context_device *d = &devices[device];
    // Relaxed: it is one number, and every thread finds the same.
    size_t pitch = atomic_load_explicit(&d->pitch, memory_order_relaxed);
    CUdeviceptr p = 0;
    if (!pitch && guard.real.cuMemAllocPitch_v2 && !guard.real.cuMemAllocPitch_v2(&p, &pitch, 1, 1, 4)) {
        guard.real.cuMemFree_v2(p);
        pitch = pitch & (pitch - 1) ? 0 : pitch;
        atomic_store_explicit(&d->pitch, pitch, memory_order_relaxed);
    }
    return pitch;
}

// --- primary contexts --------------------------------------------------------------------------------------

static bool is_device(CUdevice device)
{
    return device >= 0 && device < CONTEXT_DEVICES;
}

CUcontext context_device_primary(CUdevice device)
{
    return is_device(device) ? atomic_load_explicit(&primary[device], memory_order_relaxed) : NULL;
}

void context_device_retained(CUdevice device, CUcontext context)
{
    if (!is_device(device))
        return;
    if (context)
        atomic_store_explicit(&primary[device], context, memory_order_relaxed);
    atomic_fetch_add_explicit(&retained[device], 1, memory_order_relaxed);
}

bool context_device_releases(CUdevice device)
{
    return is_device(device) && atomic_fetch_sub_explicit(&retained[device], 1, memory_order_relaxed) <= 1;
}
