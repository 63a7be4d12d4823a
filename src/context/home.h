// SPDX-License-Identifier: MIT
// What the modes that place buffers themselves know of devices and of the contexts that buffers belong to.
#ifndef MOAT_CONTEXT_HOME_H
#define MOAT_CONTEXT_HOME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum {
    HOME_DEVICES = 64,
    HOME_CONTEXTS = 64,
    HOME_GRANULE = 2 << 20,  // bytes in which memory is mapped
};

// Asked of the driver once.
struct home_device {
    bool mappable;         // memory can be made and mapped, in units of 2 MiB
    bool rdma;             // and be reached by other devices of the bus, as plain memory can
    bool exportable;       // and be given to other processes by a file descriptor
    bool alone;            // the process sees no other device
    size_t alignment;      // that textures ask of linear memory, at least 256: plain memory has it
    size_t memory;         // bytes in all
    _Atomic size_t pitch;  // rows of cuMemAllocPitch start at multiples of it; 0: not asked yet
};

// A context. Found as long as it lives; a place in the table is used again.
struct home {
    _Atomic(CUcontext) context;  // NULL: no context's place
    CUdevice device;
    _Atomic(CUstream) stream;  // of our own; NULL: not made yet
    _Atomic uint64_t anchor;   // plain memory that stays, see home.c; 0: none yet
    _Atomic uint64_t peers;    // devices that the program let reach this context's memory
};

// NULL: none is current, or a green one (green.h), or calls that all modes need are missing.
struct home *home_current(void);
// The same for any context, the current one for NULL; *pushed says that it was made current, and home_leave must follow.
struct home *home_enter(CUcontext context, bool *pushed);
// The same for the context to which belongs what the program makes now: a green one's things are the primary one's.
struct home *home_enter_owner(bool *pushed);
void home_leave(bool pushed);
// Of one that was found before; NULL: it is gone.
struct home *home_find(CUcontext context);
unsigned home_number(const struct home *home);  // below HOME_CONTEXTS
struct home *home_of_number(unsigned number);   // NULL: no context's place
// A context is no more.
void home_forget(CUcontext context);
void home_after_fork(void);

const struct home_device *home_device(CUdevice device);  // NULL: there is no such device
// One part in so many of the memory of its device, between these.
uint64_t home_memory_part(const struct home *home, uint64_t part, uint64_t least, uint64_t most);
// The granule of pitches; 0 if the driver does not tell. A context of the device is current.
size_t home_pitch(CUdevice device);

// Calls of ours in between are allowed whatever the application is capturing, and do not disturb it.
CUstreamCaptureMode home_calm(void);
void home_stir(CUstreamCaptureMode mode);

// Between the host and the device, at once and apart from the streams of the application. The home's context is current.
struct home_copy {
    CUdeviceptr address;
    void *bytes;
    uint32_t count;
};
CUresult home_write(struct home *home, const struct home_copy *copies, unsigned n);
CUresult home_read(struct home *home, const struct home_copy *copies, unsigned n);

// Rows of device memory to the host, in the order of a stream: by one copy, unless they are too far apart for that.
CUresult home_copy_rows(CUstream stream, bool per_thread, CUdeviceptr from, size_t pitch, uint32_t width,
                        uint32_t rows, void *to);
// Two rows into pinned memory, or out of it, at once: quicker than home_read and home_write.
CUresult home_read_rows(struct home *home, CUdeviceptr from, size_t pitch, uint32_t width, void *pinned);
CUresult home_write_rows(struct home *home, CUdeviceptr to, size_t pitch, uint32_t width, void *pinned);

// Waits for all work of the home's context, which is current, as cuMemFree does.
CUresult home_wait_as_free(struct home *home);

#endif
