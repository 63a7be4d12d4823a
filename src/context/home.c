// SPDX-License-Identifier: MIT
#include "context/home.h"

#include <pthread.h>

#include "context/green.h"
#include "core/guard.h"

enum {
    LEAST_ALIGNMENT = 256,
    MOST_ALIGNMENT = 4096,
    TOKEN = 256,  // bytes of the allocation that is freed to wait
};

static struct home_device devices[HOME_DEVICES];
static _Atomic(bool) asked[HOME_DEVICES];
static struct home homes[HOME_CONTEXTS];
// Of additions to the table and of questions about devices; a leaf.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void home_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

static int attribute(CUdevice device, CUdevice_attribute a)
{
    int value = 0;
    return guard.real.cuDeviceGetAttribute && !guard.real.cuDeviceGetAttribute(&value, a, device) ? value : 0;
}

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuCtxGetCurrent && d->cuCtxGetDevice && d->cuCtxPushCurrent_v2 && d->cuCtxPopCurrent_v2 &&
           d->cuDeviceTotalMem_v2 && d->cuStreamCreate && d->cuStreamSynchronize && d->cuMemcpyHtoDAsync_v2 &&
           d->cuMemcpyDtoHAsync_v2 && d->cuMemAlloc_v2 && d->cuMemFree_v2 && d->cuEventCreate &&
           d->cuEventRecord && d->cuEventQuery && d->cuEventDestroy_v2;
}

static bool can_map(void)
{
    const struct driver *d = &guard.real;
    return d->cuMemAddressReserve && d->cuMemCreate && d->cuMemRelease && d->cuMemMap && d->cuMemUnmap &&
           d->cuMemSetAccess && d->cuMemGetAllocationGranularity;
}

static void ask(struct home_device *d, CUdevice device)
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
                  granularity && HOME_GRANULE % granularity == 0;
}

const struct home_device *home_device(CUdevice device)
{
    if (device < 0 || device >= HOME_DEVICES)
        return NULL;
    struct home_device *d = &devices[device];
    // Acquire pairs with the release below: who sees it asked sees the answers.
    if (!atomic_load_explicit(&asked[device], memory_order_acquire)) {
        struct home_device answers = {.mappable = false};
        ask(&answers, device);
        pthread_mutex_lock(&lock);
        if (!atomic_load_explicit(&asked[device], memory_order_relaxed)) {
            d->mappable = answers.mappable;
            d->rdma = answers.rdma;
            d->exportable = answers.exportable;
            d->alone = answers.alone;
            d->alignment = answers.alignment;
            d->memory = answers.memory;
            atomic_store_explicit(&asked[device], true, memory_order_release);
        }
        pthread_mutex_unlock(&lock);
    }
    return d;
}

uint64_t home_memory_part(const struct home *home, uint64_t part, uint64_t least, uint64_t most)
{
    const struct home_device *d = home_device(home->device);
    uint64_t bytes = d ? d->memory / part : 0;
    return bytes < least ? least : bytes > most ? most : bytes;
}

// A row of one byte tells. It is freed again, which waits for the device: once.
size_t home_pitch(CUdevice device)
{
    struct home_device *d = &devices[device];
    // Relaxed: it is one number, and every thread would find the same.
    size_t pitch = atomic_load_explicit(&d->pitch, memory_order_relaxed);
    CUdeviceptr p = 0;
    if (!pitch && guard.real.cuMemAllocPitch_v2 && !guard.real.cuMemAllocPitch_v2(&p, &pitch, 1, 1, 4)) {
        guard.real.cuMemFree_v2(p);
        pitch = pitch & (pitch - 1) ? 0 : pitch;
        atomic_store_explicit(&d->pitch, pitch, memory_order_relaxed);
    }
    return pitch;
}

struct home *home_find(CUcontext context)
{
    // Acquire pairs with the release in add: who finds the context sees its device.
    for (unsigned i = 0; i < HOME_CONTEXTS; i++)
        if (atomic_load_explicit(&homes[i].context, memory_order_acquire) == context)
            return &homes[i];
    return NULL;
}

unsigned home_number(const struct home *home)
{
    return (unsigned)(home - homes);
}

struct home *home_of_number(unsigned number)
{
    return atomic_load_explicit(&homes[number].context, memory_order_acquire) ? &homes[number] : NULL;
}

static struct home *add(CUcontext context, CUdevice device)
{
    pthread_mutex_lock(&lock);
    struct home *h = home_find(context);
    if (!h && (h = home_find(NULL))) {
        h->device = device;
        atomic_store_explicit(&h->stream, NULL, memory_order_relaxed);
        atomic_store_explicit(&h->anchor, 0, memory_order_relaxed);
        atomic_store_explicit(&h->peers, 0, memory_order_relaxed);
        atomic_store_explicit(&h->context, context, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return h;
}

struct home *home_current(void)
{
    CUcontext context = NULL;
    CUdevice device;
    if (!guard.real.cuCtxGetCurrent || guard.real.cuCtxGetCurrent(&context) || !context)
        return NULL;
    // A stream that we made in a green one would go with it.
    if (green_owner(context) != context)
        return NULL;
    struct home *h = home_find(context);
    if (h)
        return h;
    if (!has_calls() || guard.real.cuCtxGetDevice(&device) || !home_device(device))
        return NULL;
    return add(context, device);
}

struct home *home_enter(CUcontext context, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (!guard.real.cuCtxGetCurrent || guard.real.cuCtxGetCurrent(&current))
        return NULL;
    if (context && current != context) {
        if (guard.real.cuCtxPushCurrent_v2(context))
            return NULL;
        *pushed = true;
    }
    struct home *h = home_current();
    if (!h)
        home_leave(*pushed);
    *pushed &= h != NULL;
    return h;
}

struct home *home_enter_owner(bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (!guard.real.cuCtxGetCurrent || guard.real.cuCtxGetCurrent(&current) || !current)
        return NULL;
    return home_enter(green_owner(current), pushed);
}

void home_leave(bool pushed)
{
    CUcontext context;
    if (pushed)
        guard.real.cuCtxPopCurrent_v2(&context);
}

void home_forget(CUcontext context)
{
    struct home *h = context ? home_find(context) : NULL;
    if (h)
        atomic_store_explicit(&h->context, NULL, memory_order_release);
}

CUstreamCaptureMode home_calm(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (guard.real.cuThreadExchangeStreamCaptureMode)
        guard.real.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

void home_stir(CUstreamCaptureMode mode)
{
    if (guard.real.cuThreadExchangeStreamCaptureMode)
        guard.real.cuThreadExchangeStreamCaptureMode(&mode);
}

static CUstream stream_of(struct home *h)
{
    // Acquire and release pair with each other: a thread uses only a stream that is made.
    CUstream stream = atomic_load_explicit(&h->stream, memory_order_acquire), none = NULL;
    if (stream || guard.real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return stream;
    if (atomic_compare_exchange_strong_explicit(&h->stream, &none, stream, memory_order_release,
                                                memory_order_acquire))
        return stream;
    if (guard.real.cuStreamDestroy_v2)
        guard.real.cuStreamDestroy_v2(stream);
    return none;
}

static CUresult copy(struct home *h, const struct home_copy *copies, unsigned n, bool to_device)
{
    CUstreamCaptureMode mode = home_calm();
    CUstream stream = stream_of(h);
    CUresult r = stream ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    for (unsigned i = 0; i < n && !r; i++) {
        const struct home_copy *c = &copies[i];
        if (!c->count)
            continue;
        r = to_device ? guard.real.cuMemcpyHtoDAsync_v2(c->address, c->bytes, c->count, stream)
                      : guard.real.cuMemcpyDtoHAsync_v2(c->bytes, c->address, c->count, stream);
    }
    if (!r)
        r = guard.real.cuStreamSynchronize(stream);
    home_stir(mode);
    return r;
}

CUresult home_write(struct home *home, const struct home_copy *copies, unsigned n)
{
    return copy(home, copies, n, true);
}

CUresult home_read(struct home *home, const struct home_copy *copies, unsigned n)
{
    return copy(home, copies, n, false);
}

// Rows of device memory from or to the host.
struct rows {
    CUdeviceptr device;
    size_t pitch;
    uint32_t width, count;
    uint8_t *host;
    bool to_device;
};

static CUresult copy_row(const struct rows *r, uint32_t number, CUstream stream, bool per_thread)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = r->device + number * r->pitch;
    uint8_t *host = r->host + (size_t)number * r->width;
    if (r->to_device)
        return (per_thread ? d->cuMemcpyHtoDAsync_v2_ptsz : d->cuMemcpyHtoDAsync_v2)(at, host, r->width,
                                                                                     stream);
    return (per_thread ? d->cuMemcpyDtoHAsync_v2_ptsz : d->cuMemcpyDtoHAsync_v2)(host, at, r->width, stream);
}

// By one copy, unless they are too far apart for that.
static CUresult copy_rows(const struct rows *rows, CUstream stream, bool per_thread)
{
    const struct driver *d = &guard.real;
    CUresult r = CUDA_SUCCESS;
    for (uint32_t i = 0; rows->pitch > INT32_MAX && i < rows->count && !r; i++)
        r = copy_row(rows, i, stream, per_thread);
    if (rows->pitch > INT32_MAX)
        return r;
    CUDA_MEMCPY2D c = {.WidthInBytes = rows->width, .Height = rows->count};
    if (rows->to_device) {
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = rows->host;
        c.srcPitch = rows->width;
        c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        c.dstDevice = rows->device;
        c.dstPitch = rows->pitch;
    } else {
        c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        c.srcDevice = rows->device;
        c.srcPitch = rows->pitch;
        c.dstMemoryType = CU_MEMORYTYPE_HOST;
        c.dstHost = rows->host;
        c.dstPitch = rows->width;
    }
    return (per_thread ? d->cuMemcpy2DAsync_v2_ptsz : d->cuMemcpy2DAsync_v2)(&c, stream);
}

CUresult home_copy_rows(CUstream stream, bool per_thread, CUdeviceptr from, size_t pitch, uint32_t width,
                        uint32_t rows, void *to)
{
    return copy_rows(&(struct rows){from, pitch, width, rows, to, false}, stream, per_thread);
}

static CUresult copy_rows_now(struct home *home, const struct rows *rows)
{
    CUstreamCaptureMode mode = home_calm();
    CUstream stream = stream_of(home);
    CUresult r = stream ? copy_rows(rows, stream, false) : CUDA_ERROR_NOT_READY;
    if (!r)
        r = guard.real.cuStreamSynchronize(stream);
    home_stir(mode);
    return r;
}

CUresult home_read_rows(struct home *home, CUdeviceptr from, size_t pitch, uint32_t width, void *pinned)
{
    return copy_rows_now(home, &(struct rows){from, pitch, width, 2, pinned, false});
}

CUresult home_write_rows(struct home *home, CUdeviceptr to, size_t pitch, uint32_t width, void *pinned)
{
    return copy_rows_now(home, &(struct rows){to, pitch, width, 2, pinned, true});
}

// The driver takes 2 MiB for the first small allocation of a context and gives them back with the last. One that stays
// saves it that work at every free: of a small buffer 64 of 83 us on an H200.
static void drop_anchor(struct home *home)
{
    CUdeviceptr p;
    // Relaxed: it is only ever looked at for whether there is one.
    if (atomic_load_explicit(&home->anchor, memory_order_relaxed) || guard.real.cuMemAlloc_v2(&p, TOKEN))
        return;
    if (atomic_exchange_explicit(&home->anchor, p, memory_order_relaxed))
        guard.real.cuMemFree_v2(p);
}

CUresult home_wait_as_free(struct home *home)
{
    CUdeviceptr token;
    drop_anchor(home);
    CUresult r = guard.real.cuMemAlloc_v2(&token, TOKEN);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return guard.real.cuCtxSynchronize();
    return r ? r : guard.real.cuMemFree_v2(token);
}
