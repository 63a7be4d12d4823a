// SPDX-License-Identifier: MIT
// Copies between the host and the device, and waits, apart from the streams of the application.
#ifndef MOAT_CONTEXT_HOME_COPY_H
#define MOAT_CONTEXT_HOME_COPY_H

#include "context/home.h"

// At once. The home's context is current.
struct home_copy {
    CUdeviceptr address;
    void *bytes;
    uint32_t count;
};
CUresult home_write(struct home *home, const struct home_copy *copies, unsigned n);
CUresult home_read(struct home *home, const struct home_copy *copies, unsigned n);

// Rows of device memory to the host, in the order of a stream: by one copy, unless they are too far apart for
// that.
CUresult home_copy_rows(CUstream stream, bool per_thread, CUdeviceptr from, size_t pitch, uint32_t width,
                        uint32_t rows, void *to);
// Two rows into pinned memory, or out of it, at once: quicker than home_read and home_write.
CUresult home_read_rows(struct home *home, CUdeviceptr from, size_t pitch, uint32_t width, void *pinned);
CUresult home_write_rows(struct home *home, CUdeviceptr to, size_t pitch, uint32_t width, void *pinned);

// Waits for all work of the home's context, which is current, as cuMemFree does.
CUresult home_wait_as_free(struct home *home);

#endif
