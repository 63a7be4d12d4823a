// SPDX-License-Identifier: MIT
// The devices: initialisation and properties. They share the pool's threads and the address space; each has
// contexts and an amount of memory of its own.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mutex.h"
#include "cpu/config.h"
#include "cpu/cpu.h"
#include "cpu/logs.h"
#include "cpu/pool.h"
#include "cpu/say.h"
#include "driver/driver.h"
#include "exec/space.h"

enum state { NOT_READY, READY, FORKED };

// A forked child has the memory but not the threads: as with a GPU, no call works there any more.
static atomic_int state;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUresult first_result;

static void after_fork(void)
{
    int ready = READY;
    atomic_compare_exchange_strong(&state, &ready, FORKED);
}

// The device reserves addresses once, of which it uses few; the limit counts them all.
static void say_why_no_space(void)
{
    struct rlimit limit;
    if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
        say("the CPU device needs some 40 GiB of addresses, not memory, and `ulimit -v` allows %llu MiB: "
            "every CUDA call runs out of memory",
            (unsigned long long)limit.rlim_cur >> 20);
}

static void init_held(void)
{
    const struct config *config = config_get();

    if (space_init() || pthread_atfork(NULL, NULL, after_fork)) {
        say_why_no_space();
        first_result = CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    if (config->lanes && exec_lanes_force(config->lanes))
        say("cpu-lanes=%s: this processor does not have them; %s is used", config->lanes, exec_lanes_name());
    pool_limit(config->threads);
    atomic_store_explicit(&state, READY, memory_order_release);  // partner: device_ready
}

// Other threads wait for this one.
static void init(void)
{
    mutex_hold();
    init_held();
    mutex_release();
}

CUresult device_init(void)
{
    if (atomic_load_explicit(&state, memory_order_acquire) == FORKED)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_once(&once, init);
    logs_notify();
    return first_result;
}

CUresult device_ready(void)
{
    return atomic_load_explicit(&state, memory_order_acquire) == READY ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_NOT_INITIALIZED;
}

unsigned device_count(void)
{
    return config_get()->devices;
}

unsigned device_sm_count(void)
{
    return config_get()->threads;
}

int device_capability(void)
{
    return config_get()->capability;
}

uint64_t device_memory(void)
{
    return config_get()->memory;
}

static bool find_attribute(CUdevice_attribute a, CUdevice device, int *value)
{
    switch ((int)a) {
#define ATTRIBUTE(name, answer)      \
    case CU_DEVICE_ATTRIBUTE_##name: \
        *value = answer;             \
        return true;
#include "cpu/attributes.def"
    }
    return false;
}

int device_attribute(CUdevice_attribute a)
{
    int value;
    return find_attribute(a, 0, &value) ? value : -1;
}

CUresult device_check(CUdevice device)
{
    CUresult r = device_ready();
    return r ? r : (unsigned)device < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuInit(unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : device_init();
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult r = device_ready();
    if (r || !count)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *count = (int)device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult r = device_ready();
    if (r || !device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)ordinal >= device_count())
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult r = device_ready();
    if (r || !value)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (device_check(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return find_attribute(attribute, device, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Copies as much of a text as fits, and a NUL.
static CUresult copy_text(char *to, int size, const char *from)
{
    if (!to || size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(to, (size_t)size, "%s", from);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    char text[80];
    CUresult r = device_check(device);
    if (r)
        return r;
    snprintf(text, sizeof text, "moat CPU device (sm_%d, %u %s, %s)", device_capability(), device_sm_count(),
             device_sm_count() == 1 ? "core" : "cores", exec_lanes_name());
    return copy_text(name, size, text);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult r = device_check(device);
    if (r || !bytes)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *bytes = device_memory();
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t all;
    CUresult r = cuDeviceTotalMem_v2(bytes ? &all : NULL, device);
    if (!r)
        *bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned int)all;
    return r;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    CUresult r = device_check(device);
    if (r || !major || !minor)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *major = device_capability() / 10;
    *minor = device_capability() % 10;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *p, CUdevice device)
{
    CUresult r = device_check(device);
    if (r || !p)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *p = (CUdevprop){
        .maxThreadsPerBlock = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .maxThreadsDim = {device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                          device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                          device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
        .maxGridSize = {device_attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                        device_attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                        device_attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
        .sharedMemPerBlock = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = device_attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = device_attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .memPitch = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        .regsPerBlock = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        .clockRate = device_attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .textureAlign = device_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    };
    return CUDA_SUCCESS;
}

// Each device is alone on a bus.
CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    char text[sizeof "0000:00:00.0"];
    CUresult r = device_check(device);
    snprintf(text, sizeof text, "0000:%02x:00.0", (unsigned)device & 0xff);
    if (!r)
        r = copy_text(id, size, text);
    return r ? r : (size_t)size < sizeof text ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Parses domain, bus, device and function; the first and the last may be missing.
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    unsigned domain = 0, bus = CONFIG_DEVICES, slot = 1, function = 0;
    CUresult r = device_ready();
    if (r || !device || !id)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (sscanf(id, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        if (sscanf(id, "%2x:%2x.%1x", &bus, &slot, &function) < 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (domain || bus >= device_count() || slot || function)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = (CUdevice)bus;
    return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *uuid, CUdevice device)
{
    CUresult r = device_check(device);
    if (r || !uuid)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, "moat-cpu-device", sizeof uuid->bytes);
    uuid->bytes[sizeof uuid->bytes - 1] = (char)device;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return get_uuid(uuid, device);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return get_uuid(uuid, device);
}

// LUIDs exist on Windows only.
CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice device)
{
    CUresult r = device_check(device);
    return r ? r : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice device)
{
    CUresult r = device_check(device);
    if (r || !supported)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *supported = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format, unsigned int channels,
                                            CUdevice device)
{
    CUresult r = device_check(device);
    size_t bytes = driver_format_bytes(format);
    if (r || !width || !bytes || (channels != 1 && channels != 2 && channels != 4))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *width = ((size_t)1 << 32) / (bytes * channels);
    return CUDA_SUCCESS;
}

// No capability is reported, as for HOST_NATIVE_ATOMIC_SUPPORTED.
CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                           unsigned int count, CUdevice device)
{
    CUresult r = device_check(device);
    if (r || !capabilities || !operations || !count)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    memset(capabilities, 0, count * sizeof *capabilities);
    return CUDA_SUCCESS;
}
