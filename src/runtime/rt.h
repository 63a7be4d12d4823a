// SPDX-License-Identifier: MIT
// State that all calls of the runtime share: the driver, the devices, the calling thread's device and last
// error.
//
// The driver is opened by the first call that needs it. A thread has a current context from its first call
// that needs one: the context that is current in the driver already, or else the primary context of the
// thread's device.
#ifndef MOAT_RUNTIME_RT_H
#define MOAT_RUNTIME_RT_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "runtime/cudart_api.h"
#include "runtime/rt_missing.h"

enum { RT_DEVICES = 64, RT_CONFIGS = 16 };

struct rt_config {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

struct rt_thread {
    cudaError_t last;
    int device;      // chosen by cudaSetDevice; -1: none
    unsigned epoch;  // value of epoch when this thread's context was made current; 0: never
    unsigned configs;
    struct rt_config config[RT_CONFIGS];  // between a <<<>>> and the kernel's stub
};

extern _Thread_local struct rt_thread rt_thread;
extern struct driver rt_driver;

// Opens the driver; no context is needed. Returns 0, or an error that is the same for every call.
cudaError_t rt_open(void);

// Calls rt_open and makes a context current.
cudaError_t rt_enter(void);

int rt_device_count(void);               // after rt_open
int rt_first_device(void);               // for threads that chose none; after rt_open
CUdevice rt_device(int index);           // index must be valid
cudaError_t rt_check_device(int index);  // calls rt_open; an error if there is no such device
cudaError_t rt_current_device(int *index, CUdevice *device);  // after rt_enter; either may be NULL
cudaError_t rt_set_device(int index);
cudaError_t rt_set_valid(const int *devices, int count);
cudaError_t rt_primary(int index, CUcontext *context);  // retained once for all
cudaError_t rt_reset(int index);                        // destroys the primary context

// Every call returns through this: an error becomes the thread's last one.
static inline cudaError_t rt_return(cudaError_t error)
{
    if (error)
        rt_thread.last = error;
    return error;
}

// Codes that both APIs have are equal.
static inline cudaError_t rt_error(CUresult result)
{
    return (cudaError_t)result;
}

// Returns CUDA_ERROR_NOT_SUPPORTED; reports once on standard error that the driver lacks the call.
CUresult rt_absent(enum driver_id call);

// Calls the driver; a call that the driver lacks is CUDA_ERROR_NOT_SUPPORTED.
#define RT_RAW(call, ...) (rt_driver.call ? rt_driver.call(__VA_ARGS__) : rt_absent(DRIVER_##call))
#define RT_CALL(call, ...) rt_return(rt_error(RT_RAW(call, __VA_ARGS__)))

#define RT_OPEN()                          \
    do {                                   \
        cudaError_t rt_failed = rt_open(); \
        if (rt_failed)                     \
            return rt_return(rt_failed);   \
    } while (0)

#define RT_ENTER()                          \
    do {                                    \
        cudaError_t rt_failed = rt_enter(); \
        if (rt_failed)                      \
            return rt_return(rt_failed);    \
    } while (0)

// Returns from the calling function if the expression is an error.
#define RT_TRY(expression)                    \
    do {                                      \
        cudaError_t rt_failed = (expression); \
        if (rt_failed)                        \
            return rt_return(rt_failed);      \
    } while (0)

#define RT_REQUIRE(condition) RT_TRY((condition) ? cudaSuccess : cudaErrorInvalidValue)

// Defines a call of the runtime that is one call of the driver.
#define RT_THIN(name, parameters, call, ...) \
    cudaError_t name parameters              \
    {                                        \
        RT_ENTER();                          \
        return RT_CALL(call, __VA_ARGS__);   \
    }

static inline CUdeviceptr rt_ptr(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static inline void *rt_host(CUdeviceptr pointer)
{
    return (void *)(uintptr_t)pointer;
}

// Returns the meaning of stream 0 in code compiled with a default stream for each thread.
static inline cudaStream_t rt_own_stream(cudaStream_t stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

#endif
