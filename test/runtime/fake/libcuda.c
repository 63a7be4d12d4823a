// SPDX-License-Identifier: MIT
//
// A driver that does nothing but write down what it is asked, for fake_driver.c. Built by fake_driver.sh.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/cuda_api.h"

void fake_clear(void);
const char *fake_log(void);
void fake_fail(CUresult result);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 20];
static size_t length;
static CUresult failing;
static int managed_value = 42;
static _Thread_local CUcontext current;

#define PRIMARY ((CUcontext)0x1000)

void fake_clear(void)
{
    pthread_mutex_lock(&lock);
    text[length = 0] = '\0';
    pthread_mutex_unlock(&lock);
}

const char *fake_log(void)
{
    return text;
}

// What launches and frees return from now on.
void fake_fail(CUresult result)
{
    failing = result;
}

#define NOTE(...)                                                                                          \
    do {                                                                                                   \
        pthread_mutex_lock(&lock);                                                                         \
        length +=                                                                                          \
            (size_t)snprintf(text + length, length < sizeof text ? sizeof text - length : 0, __VA_ARGS__); \
        pthread_mutex_unlock(&lock);                                                                       \
    } while (0)

CUresult cuInit(unsigned int flags)
{
    NOTE("cuInit ");
    return getenv("FAKE_NO_DEVICE") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    const char *old = getenv("FAKE_VERSION");
    *version = old ? atoi(old) : 13000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 2;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int index)
{
    *device = index;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    NOTE("cuDevicePrimaryCtxRetain(%d) ", device);
    *context = (CUcontext)((char *)PRIMARY + device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    NOTE("cuDevicePrimaryCtxReset(%d) ", device);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    NOTE("cuCtxSetCurrent(%d) ", context ? (int)((char *)context - (char *)PRIMARY) : -1);
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = (int)((char *)current - (char *)PRIMARY);
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values,
                           unsigned int jit_count, CUlibraryOption *options, void **values,
                           unsigned int count)
{
    NOTE("cuLibraryLoadData(%s) ", (const char *)image);
    if (strcmp(image, "shared") == 0)
        usleep(20000);  // so that other threads want it meanwhile
    if (strcmp(image, "bad") == 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *library = (CUlibrary)(uintptr_t)image;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    NOTE("cuLibraryUnload(%s) ", (const char *)library);
    return CUDA_SUCCESS;
}

// A kernel is its name.
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    NOTE("cuLibraryGetKernel(%s) ", name);
    if (strcmp(name, "none") == 0)
        return CUDA_ERROR_NOT_FOUND;
    *kernel = (CUkernel)(uintptr_t)name;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
    NOTE("cuLibraryGetManaged(%s) ", name);
    *address = (CUdeviceptr)(uintptr_t)&managed_value;
    *size = sizeof managed_value;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
    NOTE("cuLibraryGetGlobal(%s) ", name);
    *address = 0x5000;
    *size = 16;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void **args, void **extra)
{
    NOTE("cuLaunchKernel(%s,%u,%u,%u,%d) ", (const char *)function, gx, bx, shared, (int)(intptr_t)stream);
    return failing;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
    NOTE("cuMemcpyHtoD(%llx,%zu) ", dst, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
    NOTE("cuMemcpyHtoDAsync(%llx,%zu,%d) ", dst, size, (int)(intptr_t)stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    NOTE("cuStreamSynchronize(%d) ", (int)(intptr_t)stream);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    NOTE("cuMemFree(%llx) ", pointer);
    return failing;
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height)
{
    NOTE("cuMemsetD2D8(%llx,%zu,%d,%zu,%zu) ", dst, pitch, value, width, height);
    return CUDA_SUCCESS;
}
