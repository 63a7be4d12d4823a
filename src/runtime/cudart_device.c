// SPDX-License-Identifier: MIT
#include <string.h>

#include "runtime/rt.h"

// For the calls that name a device and need no context.
#define ON_DEVICE(index) RT_TRY(rt_check_device(index))

cudaError_t cudaRuntimeGetVersion(int *version)
{
    RT_REQUIRE(version);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

// The version is 0 if there is no driver.
cudaError_t cudaDriverGetVersion(int *version)
{
    RT_REQUIRE(version);
    *version = 0;
    if (rt_open() && !rt_driver.cuDriverGetVersion)
        return cudaSuccess;
    return RT_CALL(cuDriverGetVersion, version);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    RT_REQUIRE(count);
    *count = 0;
    RT_OPEN();
    *count = rt_device_count();
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    CUcontext current = NULL;

    RT_REQUIRE(device);
    RT_OPEN();
    if (rt_thread.device < 0 && !RT_RAW(cuCtxGetCurrent, &current) && !current) {
        *device = rt_first_device();
        return cudaSuccess;
    }
    RT_ENTER();
    return rt_return(rt_current_device(device, NULL));
}

cudaError_t cudaSetDevice(int device)
{
    return rt_return(rt_set_device(device));
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    CUcontext context;

    ON_DEVICE(device);
    RT_REQUIRE(!(flags & ~(unsigned)cudaInitDeviceFlagsAreValid));
    if (flags & cudaInitDeviceFlagsAreValid)
        RT_TRY(rt_error(RT_RAW(cuDevicePrimaryCtxSetFlags_v2, rt_device(device), device_flags)));
    return rt_return(rt_primary(device, &context));
}

cudaError_t cudaSetValidDevices(int *devices, int count)
{
    RT_OPEN();
    return rt_return(rt_set_valid(devices, count));
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    int device = rt_thread.device;

    RT_OPEN();
    if (device < 0)
        device = rt_first_device();
    return RT_CALL(cuDevicePrimaryCtxSetFlags_v2, rt_device(device), flags);
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    CUcontext current = NULL;
    int device = rt_thread.device, active;

    RT_REQUIRE(flags);
    RT_OPEN();
    if (device < 0)
        device = rt_first_device();
    if (!RT_RAW(cuCtxGetCurrent, &current) && current)
        RT_TRY(rt_error(RT_RAW(cuCtxGetFlags, flags)));
    else
        RT_TRY(rt_error(RT_RAW(cuDevicePrimaryCtxGetState, rt_device(device), flags, &active)));
    *flags |= CU_CTX_MAP_HOST;  // host memory is always mapped
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
    int device = rt_thread.device;

    RT_OPEN();
    if (device < 0)
        device = rt_first_device();
    return rt_return(rt_reset(device));
}

cudaError_t cudaDeviceSynchronize(void)
{
    CUcontext context;

    RT_ENTER();
    RT_TRY(rt_error(RT_RAW(cuCtxGetCurrent, &context)));
    return RT_CALL(cuCtxSynchronize_v2, context);
}

RT_THIN(cudaDeviceSetLimit, (cudaLimit limit, size_t value), cuCtxSetLimit, limit, value)
RT_THIN(cudaDeviceGetLimit, (size_t * value, cudaLimit limit), cuCtxGetLimit, value, limit)
RT_THIN(cudaDeviceSetCacheConfig, (cudaFuncCache config), cuCtxSetCacheConfig, config)
RT_THIN(cudaDeviceGetCacheConfig, (cudaFuncCache * config), cuCtxGetCacheConfig, config)
RT_THIN(cudaDeviceSetSharedMemConfig, (cudaSharedMemConfig config), cuCtxSetSharedMemConfig, config)
RT_THIN(cudaDeviceGetSharedMemConfig, (cudaSharedMemConfig * config), cuCtxGetSharedMemConfig, config)
RT_THIN(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), cuCtxGetStreamPriorityRange, least,
        greatest)
RT_THIN(cudaCtxResetPersistingL2Cache, (void), cuCtxResetPersistingL2Cache)
RT_THIN(cudaDeviceFlushGPUDirectRDMAWrites,
        (cudaFlushGPUDirectRDMAWritesTarget target, cudaFlushGPUDirectRDMAWritesScope scope),
        cuFlushGPUDirectRDMAWrites, target, scope)
RT_THIN(cudaProfilerStart, (void), cuProfilerStart)
RT_THIN(cudaProfilerStop, (void), cuProfilerStop)

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    ON_DEVICE(device);
    RT_REQUIRE(value);
    return RT_CALL(cuDeviceGetAttribute, value, attribute, rt_device(device));
}

// An attribute that the driver does not know leaves its field 0.
static void fill_attributes(cudaDeviceProp *prop, CUdevice device)
{
    int value;

#define PROPERTY(field, attribute)                                                      \
    value = 0;                                                                          \
    if (!RT_RAW(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_##attribute, device)) \
        prop->field = (__typeof__(prop->field))value;
#include "runtime/rt_properties.def"
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    ON_DEVICE(device);
    RT_REQUIRE(prop);
    memset(prop, 0, sizeof *prop);
    RT_TRY(rt_error(RT_RAW(cuDeviceGetName, prop->name, (int)sizeof prop->name, rt_device(device))));
    RT_TRY(rt_error(RT_RAW(cuDeviceTotalMem_v2, &prop->totalGlobalMem, rt_device(device))));
    RT_TRY(rt_error(RT_RAW(cuDeviceGetUuid_v2, &prop->uuid, rt_device(device))));
    // LUIDs exist on Windows only.
    if (rt_driver.cuDeviceGetLuid &&
        RT_RAW(cuDeviceGetLuid, prop->luid, &prop->luidDeviceNodeMask, rt_device(device)))
        memset(prop->luid, 0, sizeof prop->luid);
    fill_attributes(prop, rt_device(device));
    return cudaSuccess;
}

// Returns how many of the wishes that are not 0 a device meets.
static int suits(const cudaDeviceProp *wish, const cudaDeviceProp *have)
{
    return (wish->major && have->major == wish->major) + (wish->minor && have->minor == wish->minor) +
           (wish->totalGlobalMem && have->totalGlobalMem >= wish->totalGlobalMem) +
           (wish->multiProcessorCount && have->multiProcessorCount >= wish->multiProcessorCount) +
           (wish->sharedMemPerBlock && have->sharedMemPerBlock >= wish->sharedMemPerBlock) +
           (wish->maxThreadsPerBlock && have->maxThreadsPerBlock >= wish->maxThreadsPerBlock) +
           (wish->name[0] && strcmp(wish->name, have->name) == 0);
}

cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *prop)
{
    int best = -1;

    RT_OPEN();
    RT_REQUIRE(device && prop);
    for (int i = 0; i < rt_device_count(); i++) {
        cudaDeviceProp have;
        int score;

        RT_TRY(cudaGetDeviceProperties(&have, i));
        score = suits(prop, &have);
        if (score > best) {
            best = score;
            *device = i;
        }
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus_id)
{
    CUdevice found;

    RT_OPEN();
    RT_REQUIRE(device && bus_id);
    RT_TRY(rt_error(RT_RAW(cuDeviceGetByPCIBusId, &found, bus_id)));
    for (int i = 0; i < rt_device_count(); i++) {
        if (rt_device(i) == found) {
            *device = i;
            return cudaSuccess;
        }
    }
    return rt_return(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int length, int device)
{
    ON_DEVICE(device);
    RT_REQUIRE(bus_id);
    return RT_CALL(cuDeviceGetPCIBusId, bus_id, length, rt_device(device));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    ON_DEVICE(device);
    ON_DEVICE(peer);
    RT_REQUIRE(can);
    return RT_CALL(cuDeviceCanAccessPeer, can, rt_device(device), rt_device(peer));
}

// No device is its own peer.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    CUcontext context;
    int device;

    ON_DEVICE(peer);
    RT_ENTER();
    RT_TRY(rt_current_device(&device, NULL));
    if (device == peer)
        return rt_return(cudaErrorPeerAccessUnsupported);
    RT_TRY(rt_primary(peer, &context));
    return RT_CALL(cuCtxEnablePeerAccess, context, flags);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext context;
    int device;

    ON_DEVICE(peer);
    RT_ENTER();
    RT_TRY(rt_current_device(&device, NULL));
    if (device == peer)
        return rt_return(cudaErrorPeerAccessNotEnabled);
    RT_TRY(rt_primary(peer, &context));
    return RT_CALL(cuCtxDisablePeerAccess, context);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int from, int to)
{
    ON_DEVICE(from);
    ON_DEVICE(to);
    return RT_CALL(cuDeviceGetP2PAttribute, value, attribute, rt_device(from), rt_device(to));
}

cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                                const cudaAtomicOperation *operations, unsigned int count,
                                                int device)
{
    ON_DEVICE(device);
    return RT_CALL(cuDeviceGetHostAtomicCapabilities, capabilities, operations, count, rt_device(device));
}

cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                               const cudaAtomicOperation *operations, unsigned int count,
                                               int from, int to)
{
    ON_DEVICE(from);
    ON_DEVICE(to);
    return RT_CALL(cuDeviceGetP2PAtomicCapabilities, capabilities, operations, count, rt_device(from),
                   rt_device(to));
}

cudaError_t cudaDeviceGetNvSciSyncAttributes(void *list, int device, int flags)
{
    ON_DEVICE(device);
    return RT_CALL(cuDeviceGetNvSciSyncAttributes, list, rt_device(device), flags);
}

// These calls report a device that does not exist as an invalid value.
#define POOL_OF(index)                                           \
    do {                                                         \
        RT_OPEN();                                               \
        RT_REQUIRE((index) >= 0 && (index) < rt_device_count()); \
    } while (0)

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    POOL_OF(device);
    return RT_CALL(cuDeviceGetDefaultMemPool, pool, rt_device(device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    POOL_OF(device);
    return RT_CALL(cuDeviceGetMemPool, pool, rt_device(device));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    POOL_OF(device);
    return RT_CALL(cuDeviceSetMemPool, rt_device(device), pool);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value)
{
    ON_DEVICE(device);
    return RT_CALL(cuDeviceGetGraphMemAttribute, rt_device(device), attribute, value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value)
{
    ON_DEVICE(device);
    return RT_CALL(cuDeviceSetGraphMemAttribute, rt_device(device), attribute, value);
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
    ON_DEVICE(device);
    return RT_CALL(cuDeviceGraphMemTrim, rt_device(device));
}

cudaError_t cudaDeviceRegisterAsyncNotification(int device, cudaAsyncCallback callback, void *data,
                                                cudaAsyncCallbackHandle_t *handle)
{
    ON_DEVICE(device);
    return RT_CALL(cuDeviceRegisterAsyncNotification, rt_device(device), callback, data, handle);
}

cudaError_t cudaDeviceUnregisterAsyncNotification(int device, cudaAsyncCallbackHandle_t handle)
{
    ON_DEVICE(device);
    return RT_CALL(cuDeviceUnregisterAsyncNotification, rt_device(device), handle);
}

// Finds the entry point for the default stream that the caller's code was compiled for.
static cudaError_t entry_point(const char *symbol, void **function, int version, unsigned long long flags,
                               cudaDriverEntryPointQueryResult *status)
{
    CUresult result;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    RT_REQUIRE(symbol && function && flags <= cudaEnablePerThreadDefaultStream);
    RT_OPEN();
    *function = NULL;
    result = RT_RAW(cuGetProcAddress_v2, symbol, function, version, flags, &found);
    if (status) {
        *status = found;
        if (result == CUDA_ERROR_NOT_FOUND)
            result = CUDA_SUCCESS;
    }
    return rt_return(result == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound : rt_error(result));
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, function, CUDART_VERSION, flags ? flags : cudaEnableLegacyStream, status);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, unsigned long long flags,
                                         cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, function, CUDART_VERSION, flags ? flags : cudaEnablePerThreadDefaultStream,
                       status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, function, (int)version, flags ? flags : cudaEnableLegacyStream, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned int version,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult *status)
{
    return entry_point(symbol, function, (int)version, flags ? flags : cudaEnablePerThreadDefaultStream,
                       status);
}
