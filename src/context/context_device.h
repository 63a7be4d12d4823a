// SPDX-License-Identifier: MIT
// The devices: their properties, and who holds their primary contexts.
#ifndef MOAT_CONTEXT_CONTEXT_DEVICE_H
#define MOAT_CONTEXT_CONTEXT_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum {
    CONTEXT_DEVICES = 64,
    CONTEXT_GRANULE = 2 << 20,  // bytes; memory is mapped in multiples of it
};

// Queried from the driver once.
struct context_device {
    bool mappable;         // memory can be created and mapped in units of CONTEXT_GRANULE
    bool rdma;             // mapped memory can be accessed by other PCIe devices, as plain memory can
    bool exportable;       // mapped memory can be exported to other processes as a file descriptor
    bool alone;            // the process sees no other device
    size_t alignment;      // what textures require of linear memory, at least 256; plain memory has it
    size_t memory;         // total bytes
    _Atomic size_t pitch;  // rows of cuMemAllocPitch start at multiples of it; 0: not queried yet
};

const struct context_device *context_device_of(CUdevice device);  // NULL: there is no such device
// Returns the device's memory divided by `part`, clamped to [least, most].
uint64_t context_device_part(CUdevice device, uint64_t part, uint64_t least, uint64_t most);
// Returns the granularity of pitches, or 0 if the driver does not reveal it. A context of the device must be
// current.
size_t context_device_pitch(CUdevice device);

// The primary context, once the program or one of its green contexts has retained it; NULL until then.
CUcontext context_device_primary(CUdevice device);
// Records a retain; a context of NULL means the known one.
void context_device_retained(CUdevice device, CUcontext context);
// Records a release. Returns true if, as far as moat knows, nobody holds the primary context any more.
bool context_device_releases(CUdevice device);

void context_device_after_fork(void);

#endif
