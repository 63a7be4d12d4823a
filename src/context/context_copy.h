// SPDX-License-Identifier: MIT
// Copies between host and device, and waits, independent of the application's streams.
#ifndef MOAT_CONTEXT_CONTEXT_COPY_H
#define MOAT_CONTEXT_CONTEXT_COPY_H

#include "context/context.h"

// Copies that are complete when the call returns. The context of ctx must be current.
struct context_copy {
    CUdeviceptr address;
    void *bytes;
    uint32_t count;
};
CUresult context_write(struct context *ctx, const struct context_copy *copies, unsigned n);
// Sets bytes of device memory, and waits until that is done.
CUresult context_fill(struct context *ctx, CUdeviceptr to, unsigned char byte, size_t count);
CUresult context_read(struct context *ctx, const struct context_copy *copies, unsigned n);

// Copies rows of device memory to the host in stream order: by one copy, unless the pitch is too large for
// one.
CUresult context_copy_rows(CUstream stream, bool per_thread, CUdeviceptr from, size_t pitch, uint32_t width,
                           uint32_t rows, void *to);
// Copy two rows into or out of pinned memory and wait; faster than context_read and context_write.
CUresult context_read_rows(struct context *ctx, CUdeviceptr from, size_t pitch, uint32_t width, void *pinned);
// `more` is written behind the rows.
CUresult context_write_rows(struct context *ctx, CUdeviceptr to, size_t pitch, uint32_t width, void *pinned,
                            const struct context_copy *more);

// Waits for all work of ctx's context, which must be current, as cuMemFree does.
CUresult context_wait_as_free(struct context *ctx);

#endif
