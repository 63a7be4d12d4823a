// SPDX-License-Identifier: MIT
// A report of the fault that put a context into error, which our own libcuda offers beyond the driver API.
// The symbol is DRIVER_FAULT_SYMBOL; other libcudas do not have it.
#ifndef MOAT_DRIVER_DRIVER_FAULT_H
#define MOAT_DRIVER_DRIVER_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_types.h"

#define DRIVER_FAULT_SYMBOL "moat_driver_fault"

// A function that the thread was in; offsets in `texts`, 0 if unknown.
struct driver_fault_frame {
    uint16_t function, file;
    uint32_t line;
    bool inlined;  // into the following frame
};
enum { DRIVER_FAULT_FRAMES = 16 };

// Texts are cut to fit and end in NUL; unknown members are 0 or empty.
struct driver_fault {
    int result;        // sticky CUresult of the context
    uint64_t address;  // generic
    uint32_t bytes;
    bool write;
    uint32_t block[3], thread[3];
    uint32_t line, column;  // in the module's PTX
    uint32_t source_line;
    // "global", "shared", "local", "param", "generic", "stack"; a bad free: "heap", a second one: "freed";
    // "call": the address is that of a call, and has no function
    char space[16];
    char kernel[512], module[256], instruction[256], source_file[512];
    uint32_t nframes;  // innermost first; the last is the kernel, unless there were more
    struct driver_fault_frame frames[DRIVER_FAULT_FRAMES];
    char texts[8192];
};

// Reports the fault of a context; NULL: of the calling thread's current one. Returns
// CUDA_ERROR_INVALID_CONTEXT if it is no context, CUDA_ERROR_NOT_FOUND if it has not faulted.
typedef int driver_fault_fn(CUcontext context, struct driver_fault *out);

// Takes one of the faults that were skipped (--on-error=skip), in any context; the first that is left.
// Returns CUDA_ERROR_NOT_FOUND if there is none.
#define DRIVER_SKIPPED_SYMBOL "moat_driver_skipped"
typedef int driver_skipped_fn(struct driver_fault *out);

#endif
