// SPDX-License-Identifier: MIT
// What pages mode knows of devices and of the contexts that buffers belong to.
#ifndef MOAT_GUARD_PAGES_HOME_H
#define MOAT_GUARD_PAGES_HOME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum { PAGES_HOME_DEVICES = 64, PAGES_HOME_CONTEXTS = 64 };

// Asked of the driver once.
struct pages_device {
    bool usable;           // memory can be made and mapped, in units of 2 MiB
    bool rdma;             // and reached by other devices of the bus, as plain memory can
    size_t alignment;      // that textures ask of linear memory, at least 256: plain memory has it
    size_t memory;         // bytes in all
    _Atomic size_t pitch;  // rows of cuMemAllocPitch start at multiples of it; 0: not asked yet
};

// A context. Found as long as it lives; a place in the table is used again.
struct pages_home {
    _Atomic(CUcontext) context;  // NULL: no context's place
    CUdevice device;
    _Atomic(CUstream) stream;  // of our own; NULL: not made yet
    _Atomic uint64_t anchor;   // plain memory that stays, see pages.c; 0: none yet
    _Atomic uint64_t peers;    // devices that the program let reach this context's memory
};

// NULL: none is current, or pages cannot be had for it.
struct pages_home *pages_home_current(void);
// The same for any context, the current one for NULL; *pushed says that it was made current, and pages_home_leave must follow.
struct pages_home *pages_home_enter(CUcontext context, bool *pushed);
void pages_home_leave(bool pushed);
// Of one that was found before; NULL: it is gone.
struct pages_home *pages_home_find(CUcontext context);
// A context is no more.
void pages_home_forget(CUcontext context);
void pages_home_after_fork(void);

const struct pages_device *pages_home_device(CUdevice device);  // NULL: not usable
// The granule of pitches; 0 if the driver does not tell. A context of the device is current.
size_t pages_home_pitch(CUdevice device);

// Calls of ours in between are allowed whatever the application is capturing, and do not disturb it.
CUstreamCaptureMode pages_home_calm(void);
void pages_home_stir(CUstreamCaptureMode mode);

// Between the host and the device, at once and apart from the streams of the application. The home's context is current.
struct pages_copy {
    CUdeviceptr address;
    void *bytes;
    uint32_t count;
};
CUresult pages_home_write(struct pages_home *home, const struct pages_copy *copies, unsigned n);
CUresult pages_home_read(struct pages_home *home, const struct pages_copy *copies, unsigned n);

#endif
