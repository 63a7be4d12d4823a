// SPDX-License-Identifier: MIT
// The devices: what the driver says of them, and who holds their primary contexts.
#ifndef MOAT_CONTEXT_CONTEXT_DEVICE_H
#define MOAT_CONTEXT_CONTEXT_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum {
    CONTEXT_DEVICES = 64,
    CONTEXT_GRANULE = 2 << 20,  // bytes in which memory is mapped
};

// Asked of the driver once.
struct context_device {
    bool mappable;         // memory can be made and mapped, in units of CONTEXT_GRANULE
    bool rdma;             // and be reached by other devices of the bus, as plain memory can
    bool exportable;       // and be given to other processes by a file descriptor
    bool alone;            // the process sees no other device
    size_t alignment;      // that textures ask of linear memory, at least 256: plain memory has it
    size_t memory;         // bytes in all
    _Atomic size_t pitch;  // rows of cuMemAllocPitch start at multiples of it; 0: not asked yet
};

const struct context_device *context_device_of(CUdevice device);  // NULL: there is no such device
// One part in so many of the memory of the device, between these.
uint64_t context_device_part(CUdevice device, uint64_t part, uint64_t least, uint64_t most);
// The granule of pitches; 0 if the driver does not tell. A context of the device is current.
size_t context_device_pitch(CUdevice device);

// The primary context, which the program or a green context of its has retained. NULL: nobody did yet.
CUcontext context_device_primary(CUdevice device);
void context_device_retained(CUdevice device, CUcontext context);  // NULL: the one that is known, once more
bool context_device_releases(
    CUdevice device);  // once less; true: as far as is known nobody holds it any more

void context_device_after_fork(void);

#endif
