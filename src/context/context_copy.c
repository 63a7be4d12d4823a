// SPDX-License-Identifier: MIT
#include "context/context_copy.h"

#include "core/guard.h"

enum { TOKEN = 256 };  // bytes of the allocation that is freed in order to wait

static CUstream stream_of(struct context *ctx)
{
    // Acquire and release pair with each other: a thread uses only a stream whose creation is complete.
    CUstream stream = atomic_load_explicit(&ctx->stream, memory_order_acquire), none = NULL;
    if (stream || guard.real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return stream;
    if (atomic_compare_exchange_strong_explicit(&ctx->stream, &none, stream, memory_order_release,
                                                memory_order_acquire))
        return stream;
    if (guard.real.cuStreamDestroy_v2)
        guard.real.cuStreamDestroy_v2(stream);
    return none;
}

static CUresult copy(struct context *ctx, const struct context_copy *copies, unsigned n, bool to_device)
{
    CUstreamCaptureMode mode = context_capture_relax();
    CUstream stream = stream_of(ctx);
    CUresult r = stream ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    for (unsigned i = 0; i < n && !r; i++) {
        const struct context_copy *c = &copies[i];
        if (!c->count)
            continue;
        r = to_device ? guard.real.cuMemcpyHtoDAsync_v2(c->address, c->bytes, c->count, stream)
                      : guard.real.cuMemcpyDtoHAsync_v2(c->bytes, c->address, c->count, stream);
    }
    if (!r)
        r = guard.real.cuStreamSynchronize(stream);
    context_capture_restore(mode);
    return r;
}

CUresult context_write(struct context *ctx, const struct context_copy *copies, unsigned n)
{
    return copy(ctx, copies, n, true);
}

CUresult context_fill(struct context *ctx, CUdeviceptr to, unsigned char byte, size_t count)
{
    if (!guard.real.cuMemsetD8Async)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUstreamCaptureMode mode = context_capture_relax();
    CUstream stream = stream_of(ctx);
    CUresult r = stream ? guard.real.cuMemsetD8Async(to, byte, count, stream) : CUDA_ERROR_NOT_READY;
    if (!r)
        r = guard.real.cuStreamSynchronize(stream);
    context_capture_restore(mode);
    return r;
}

CUresult context_read(struct context *ctx, const struct context_copy *copies, unsigned n)
{
    return copy(ctx, copies, n, false);
}

// Rows of device memory, copied from or to the host.
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

// Uses one copy, unless the pitch is too large for one.
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

CUresult context_copy_rows(CUstream stream, bool per_thread, CUdeviceptr from, size_t pitch, uint32_t width,
                           uint32_t rows, void *to)
{
    return copy_rows(&(struct rows){from, pitch, width, rows, to, false}, stream, per_thread);
}

static CUresult copy_rows_now(struct context *ctx, const struct rows *rows, const struct context_copy *more)
{
    CUstreamCaptureMode mode = context_capture_relax();
    CUstream stream = stream_of(ctx);
    CUresult r = stream ? copy_rows(rows, stream, false) : CUDA_ERROR_NOT_READY;
    if (!r && more && more->count)
        r = guard.real.cuMemcpyHtoDAsync_v2(more->address, more->bytes, more->count, stream);
    if (!r)
        r = guard.real.cuStreamSynchronize(stream);
    context_capture_restore(mode);
    return r;
}

CUresult context_read_rows(struct context *ctx, CUdeviceptr from, size_t pitch, uint32_t width, void *pinned)
{
    return copy_rows_now(ctx, &(struct rows){from, pitch, width, 2, pinned, false}, NULL);
}

CUresult context_write_rows(struct context *ctx, CUdeviceptr to, size_t pitch, uint32_t width, void *pinned,
                            const struct context_copy *more)
{
    return copy_rows_now(ctx, &(struct rows){to, pitch, width, 2, pinned, true}, more);
}

// The driver takes 2 MiB for the first small allocation of a context and returns them with the last. One that
// stays allocated saves the driver that work at every free: 64 of 83 us for a small buffer on an H200.
static void keep_anchor(struct context *ctx)
{
    CUdeviceptr p;
    // Relaxed: it is only tested for being nonzero.
    if (atomic_load_explicit(&ctx->anchor, memory_order_relaxed) || guard.real.cuMemAlloc_v2(&p, TOKEN))
        return;
    if (atomic_exchange_explicit(&ctx->anchor, p, memory_order_relaxed))
        guard.real.cuMemFree_v2(p);
}

CUresult context_wait_as_free(struct context *ctx)
{
    CUdeviceptr token;
    keep_anchor(ctx);
    CUresult r = guard.real.cuMemAlloc_v2(&token, TOKEN);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return guard.real.cuCtxSynchronize();
    return r ? r : guard.real.cuMemFree_v2(token);
}
