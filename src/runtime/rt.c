// SPDX-License-Identifier: MIT
#include "runtime/rt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mutex.h"
#include "runtime/rt_exit.h"

_Thread_local struct rt_thread rt_thread = {.device = -1};
struct driver rt_driver;

struct device {
    CUdevice device;
    CUcontext primary;  // NULL: not retained
};

// Guards the devices and the list of valid ones, and makes the first caller open the driver. No code of the
// program runs under it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[RT_DEVICES];
static int device_count;
static int valid[RT_DEVICES], valid_count;

// 0: not opened. Written with release after everything that rt_open fills, read with acquire.
static atomic_int opened;
static cudaError_t open_error;

// Grows when a primary context is destroyed, so that threads that had it current take another. Written under
// the lock; a thread that reads an old value loses a race with cudaDeviceReset, as it would in any runtime.
static atomic_uint epoch = 1;

static CUresult find_devices(void)
{
    CUresult result = RT_RAW(cuDeviceGetCount, &device_count);

    if (result)
        return result;
    if (device_count > RT_DEVICES)
        device_count = RT_DEVICES;
    for (int i = 0; i < device_count; i++) {
        result = RT_RAW(cuDeviceGet, &devices[i].device, i);
        if (result)
            return result;
    }
    return device_count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static cudaError_t open_driver(void)
{
    CUresult result;
    int version = 0;

    // A test that has the driver in its own program has filled the table.
    if (!rt_driver.handle && driver_open(&rt_driver, NULL, NULL, 0))
        return cudaErrorInsufficientDriver;
    if (RT_RAW(cuDriverGetVersion, &version) || version < CUDART_VERSION)
        return cudaErrorInsufficientDriver;
    result = RT_RAW(cuInit, 0);
    return rt_error(result ? result : find_devices());
}

cudaError_t rt_open(void)
{
    if (!atomic_load_explicit(&opened, memory_order_acquire)) {
        mutex_lock(&lock);
        if (!atomic_load_explicit(&opened, memory_order_relaxed)) {
            open_error = open_driver();
            rt_exit_watch();
            atomic_store_explicit(&opened, 1, memory_order_release);
        }
        mutex_unlock(&lock);
    }
    return open_error;
}

int rt_device_count(void)
{
    return device_count;
}

int rt_first_device(void)
{
    return valid_count ? valid[0] : 0;
}

CUdevice rt_device(int index)
{
    return devices[index].device;
}

cudaError_t rt_check_device(int index)
{
    cudaError_t error = rt_open();

    if (error)
        return error;
    return index >= 0 && index < device_count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t rt_primary(int index, CUcontext *context)
{
    CUresult result = CUDA_SUCCESS;

    mutex_lock(&lock);
    if (!devices[index].primary)
        result = RT_RAW(cuDevicePrimaryCtxRetain, &devices[index].primary, devices[index].device);
    if (result)
        devices[index].primary = NULL;
    *context = devices[index].primary;
    mutex_unlock(&lock);
    return rt_error(result);
}

static cudaError_t bind(int index)
{
    unsigned now = atomic_load_explicit(&epoch, memory_order_relaxed);
    CUcontext context;
    cudaError_t error = rt_primary(index, &context);

    if (!error)
        error = rt_error(RT_RAW(cuCtxSetCurrent, context));
    if (!error)
        rt_thread.epoch = now;
    return error;
}

// Binds a thread without a chosen device to the first valid device that has room for us.
static cudaError_t bind_first(void)
{
    cudaError_t error = cudaErrorNoDevice;
    int count = valid_count ? valid_count : device_count;

    if (rt_thread.device >= 0)
        return bind(rt_thread.device);
    for (int i = 0; i < count; i++) {
        int index = valid_count ? valid[i] : i;
        error = bind(index);
        if (!error) {
            rt_thread.device = index;
            return cudaSuccess;
        }
    }
    return error;
}

cudaError_t rt_enter(void)
{
    cudaError_t error = rt_open();
    CUcontext current = NULL;

    if (error)
        return error;
    // A context that the program made current itself is used; one that cudaDeviceReset destroyed is not.
    if (!rt_thread.epoch || rt_thread.epoch == atomic_load_explicit(&epoch, memory_order_relaxed)) {
        error = rt_error(RT_RAW(cuCtxGetCurrent, &current));
        if (error || current)
            return error;
    }
    return bind_first();
}

cudaError_t rt_current_device(int *index, CUdevice *device)
{
    CUdevice found;
    cudaError_t error = rt_error(RT_RAW(cuCtxGetDevice, &found));

    if (error)
        return error;
    if (device)
        *device = found;
    for (int i = 0; i < device_count; i++) {
        if (devices[i].device == found) {
            if (index)
                *index = i;
            return cudaSuccess;
        }
    }
    return cudaErrorIncompatibleDriverContext;
}

cudaError_t rt_set_device(int index)
{
    cudaError_t error = rt_check_device(index);

    if (error)
        return error;
    rt_thread.device = index;
    return bind(index);
}

cudaError_t rt_set_valid(const int *list, int count)
{
    cudaError_t error = cudaSuccess;

    if (count < 0 || count > device_count || (count && !list))
        return cudaErrorInvalidValue;
    for (int i = 0; i < count && !error; i++)
        error = rt_check_device(list[i]);
    if (error)
        return error;
    mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        valid[i] = list[i];
    valid_count = count;
    mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t rt_reset(int index)
{
    CUresult result;

    mutex_lock(&lock);
    result = RT_RAW(cuDevicePrimaryCtxReset_v2, devices[index].device);
    if (!result) {
        devices[index].primary = NULL;
        atomic_fetch_add_explicit(&epoch, 1, memory_order_relaxed);
    }
    mutex_unlock(&lock);
    return rt_error(result);
}

static void say(const char *who, const char *symbol)
{
    char line[200];
    int length = snprintf(line, sizeof line, "moat: %s does not have %s\n", who, symbol);

    // There is nowhere to report that standard error is gone.
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

cudaError_t rt_missing(const char *symbol, bool *said)
{
    if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
        say("this CUDA runtime", symbol);
    return rt_return(cudaErrorNotSupported);
}

CUresult rt_absent(enum driver_id call)
{
    static bool said[DRIVER_CALLS];

    if (!__atomic_exchange_n(&said[call], true, __ATOMIC_RELAXED))
        say("the CUDA driver", driver_calls[call].symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}
