// SPDX-License-Identifier: MIT
// A libcuda opened at run time, and the tables of its calls and results.
#ifndef MOAT_DRIVER_DRIVER_H
#define MOAT_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_api.h"

enum driver_flag {
    DRIVER_PTSZ = 1,      // stream 0 means the calling thread's own stream
    DRIVER_PTDS = 2,      // the same, for a call that takes no stream
    DRIVER_GRAPHICS = 4,  // OpenGL, EGL or VDPAU: declared outside cuda.h, absent from some stubs
    DRIVER_BARE = 8,      // no public signature
};

enum driver_id {
#define CALL(symbol, base, since, flags, result, parameters) DRIVER_##symbol,
#define BARE(symbol, base) DRIVER_##symbol,
#include "driver/calls.def"
    DRIVER_CALLS
};

struct driver_call {
    const char *symbol;
    const char *base;  // its name in cuGetProcAddress
    int since;         // CUDA version, 12040 for 12.4; 0 in a bare row
    unsigned flags;    // of enum driver_flag
};

typedef void (*driver_function)(void);

// A call that the library lacks is NULL.
struct driver {
    void *handle;
    union {
        struct {
#define CALL(symbol, base, since, flags, result, parameters) __typeof__(symbol) *symbol;
#define BARE(symbol, base) driver_function symbol;
#include "driver/calls.def"
        };
        driver_function call[DRIVER_CALLS];  // by enum driver_id
    };
};

// One entry for each enum driver_id.
extern const struct driver_call driver_calls[DRIVER_CALLS];

// Opens the library at path, or libcuda.so.1 if path is NULL. On failure leaves *driver empty, writes the
// reason to why (which may be NULL) and returns -ENOENT if the library cannot be loaded or -ENOSYS if it
// exports none of the calls.
int driver_open(struct driver *driver, const char *path, char *why, size_t size);

// Closing twice, or after a failed open, does nothing.
void driver_close(struct driver *driver);

// Returns what cuGetProcAddress returns for base to a program of that CUDA version, or NULL. per_thread is
// CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM. A driver also refuses versions above its own: that is left
// to the caller.
const struct driver_call *driver_call_for_version(const char *base, int version, bool per_thread);

// Returns the bytes of a channel of an array's element; 0 for formats whose rows do not consist of whole
// elements.
unsigned driver_format_bytes(CUarray_format format);

// Return NULL if the value is no CUresult of CUDA 13.0.
const char *driver_result_name(CUresult result);
const char *driver_result_text(CUresult result);

#endif
