// SPDX-License-Identifier: MIT
//
// The runtime over a driver that only writes down what it is asked. The first argument chooses: `calls` is
// with such a driver, `error CODE` expects the first call to fail with CODE.
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "runtime/cudart_api.h"

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

// The driver was asked exactly this since the last time.
#define ASKED(expected)                                                                             \
    do {                                                                                            \
        if (strcmp(fake_log(), expected) != 0) {                                                    \
            printf("%s:%d: expected %s\n    asked %s\n", __FILE__, __LINE__, expected, fake_log()); \
            exit(1);                                                                                \
        }                                                                                           \
        fake_clear();                                                                               \
    } while (0)

static const char *(*fake_log)(void);
static void (*fake_clear)(void);
static void (*fake_fail)(CUresult);

static const dim3 one = {1, 1, 1}, two = {2, 1, 1};
static char stub, other_stub, bad_stub, no_stub, variable, stranger;
static int *managed;

static cudaError_t launch(const void *func)
{
    return cudaLaunchKernel(func, one, two, NULL, 8, NULL);
}

static void **add_module(const char *image)
{
    void **module = __cudaRegisterFatBinary((void *)(uintptr_t)image);

    CHECK(module);
    return module;
}

static void add_kernel(void **module, const void *host, char *name)
{
    __cudaRegisterFunction(module, host, name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

static void find_fake(void)
{
    void *fake = dlopen("libcuda.so.1", RTLD_NOW);

    CHECK(fake);
    *(void **)&fake_log = dlsym(fake, "fake_log");
    *(void **)&fake_clear = dlsym(fake, "fake_clear");
    *(void **)&fake_fail = dlsym(fake, "fake_fail");
    CHECK(fake_log && fake_clear && fake_fail);
}

static void test_launch(void)
{
    void **module = add_module("image");

    add_kernel(module, &stub, "k");
    add_kernel(module, &no_stub, "none");
    __cudaRegisterVar(module, &variable, "v", "v", 0, 16, 0, 0);
    __cudaRegisterFatBinaryEnd(module);
    ASKED("");
    CHECK(launch(&stub) == cudaSuccess);
    ASKED("cuInit cuDevicePrimaryCtxRetain(0) cuCtxSetCurrent(0) cuLibraryLoadData(image) "
          "cuLibraryGetKernel(k) "
          "cuLaunchKernel(k,1,2,8,0) ");
    CHECK(launch(&stub) == cudaSuccess);
    ASKED("cuLaunchKernel(k,1,2,8,0) ");
    CHECK(cudaLaunchKernel_ptsz(&stub, one, two, NULL, 0, NULL) == cudaSuccess);
    ASKED("cuLaunchKernel(k,1,2,0,2) ");
    CHECK(cudaLaunchKernel_ptsz(&stub, one, two, NULL, 0, CU_STREAM_LEGACY) == cudaSuccess);
    ASKED("cuLaunchKernel(k,1,2,0,1) ");
    CHECK(launch(&no_stub) == cudaErrorInvalidDeviceFunction);
    CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction && cudaGetLastError() == cudaSuccess);
    ASKED("cuLibraryGetKernel(none) ");
    CHECK(launch(&stranger) == cudaErrorInvalidResourceHandle);
    CHECK(launch(&variable) == cudaErrorInvalidResourceHandle);
    CHECK(cudaLaunchKernel(&stub, one, two, NULL, (size_t)1 << 32, NULL) == cudaErrorInvalidValue);
    ASKED("");
}

// What a stub that the compiler made does.
static void test_stub(void)
{
    cudaKernel_t kernel = NULL;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;

    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaErrorMissingConfiguration);
    CHECK(__cudaPushCallConfiguration(one, two, 5, NULL) == 0);
    CHECK(__cudaPushCallConfiguration(two, one, 6, CU_STREAM_LEGACY) == 0);
    CHECK(__cudaGetKernel(&kernel, &stub) == cudaSuccess);
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess);
    CHECK(grid.x == 2 && block.x == 1 && shared == 6 && stream == CU_STREAM_LEGACY);
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess);
    CHECK(__cudaLaunchKernel(kernel, grid, block, NULL, shared, stream) == cudaSuccess);
    CHECK(launch(kernel) == cudaSuccess);
    ASKED("cuLaunchKernel(k,1,2,5,0) cuLaunchKernel(k,1,2,8,0) ");
}

// A module without code for the device is tried once; its kernels are launched as NULL afterwards.
static void test_bad_module(void)
{
    void **module = add_module("bad");
    cudaKernel_t kernel = NULL;

    add_kernel(module, &bad_stub, "k");
    CHECK(__cudaGetKernel(&kernel, &bad_stub) == cudaErrorNoKernelImageForDevice && !kernel);
    CHECK(__cudaLaunchKernel(kernel, one, one, NULL, 0, NULL) == cudaErrorNoKernelImageForDevice);
    CHECK(launch(&bad_stub) == cudaErrorNoKernelImageForDevice);
    ASKED("cuLibraryLoadData(bad) ");
    __cudaUnregisterFatBinary(module);
    CHECK(launch(&bad_stub) == cudaErrorInvalidResourceHandle);
    ASKED("");
}

static void test_variables(void)
{
    void **module = add_module("managed");
    char value[32];
    void *address = NULL;

    __cudaRegisterManagedVar(module, (void **)&managed, "m", "m", 0, 4, 0, 0);
    CHECK(!managed);
    CHECK(__cudaInitModule(module) == 1);
    CHECK(managed && *managed == 42);
    ASKED("cuLibraryLoadData(managed) cuLibraryGetManaged(m) ");
    CHECK(cudaGetSymbolAddress(&address, managed) == cudaSuccess && address == managed);
    ASKED("cuLibraryGetManaged(m) ");
    CHECK(cudaMemcpyToSymbol(&variable, value, 12, 4, cudaMemcpyHostToDevice) == cudaSuccess);
    ASKED("cuLibraryGetGlobal(v) cuMemcpyHtoD(5004,12) ");
    CHECK(cudaMemcpyToSymbol(&variable, value, 12, 5, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyToSymbol(&variable, value, 1, SIZE_MAX, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyToSymbol(&stub, value, 1, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidSymbol);
    CHECK(cudaMemcpyToSymbol(NULL, value, 1, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidSymbol);
    fake_clear();
    __cudaUnregisterFatBinary(module);
    ASKED("cuLibraryUnload(managed) ");
    CHECK(cudaGetSymbolAddress(&address, managed) == cudaErrorInvalidSymbol);
}

// A template's stub is registered by every module that uses it.
static void test_same_stub(void)
{
    void **first = add_module("first"), **second = add_module("second");

    add_kernel(first, &other_stub, "t");
    add_kernel(second, &other_stub, "t");
    CHECK(launch(&other_stub) == cudaSuccess);
    ASKED("cuLibraryLoadData(first) cuLibraryGetKernel(t) cuLaunchKernel(t,1,2,8,0) ");
    __cudaUnregisterFatBinary(second);
    CHECK(launch(&other_stub) == cudaSuccess);
    __cudaUnregisterFatBinary(first);
    CHECK(launch(&other_stub) == cudaErrorInvalidResourceHandle);
    fake_clear();
}

enum { MANY = 5000 };
static char many[MANY], names[MANY][8];

// The table grows under them, and forgets them.
static void test_many(void)
{
    for (int round = 0; round < 3; round++) {
        void **module = add_module("many");

        for (int i = 0; i < MANY; i++) {
            snprintf(names[i], sizeof names[i], "k%d", i);
            add_kernel(module, &many[i], names[i]);
        }
        for (int i = 0; i < MANY; i++) {
            cudaKernel_t kernel;
            CHECK(cudaGetKernel(&kernel, &many[i]) == cudaSuccess && (char *)kernel == names[i]);
        }
        __cudaUnregisterFatBinary(module);
        for (int i = 0; i < MANY; i += 7)
            CHECK(launch(&many[i]) == cudaErrorInvalidResourceHandle);
    }
    CHECK(launch(&stub) == cudaSuccess);
    fake_clear();
}

// Whatever cannot be had in the middle of it, nothing worse happens than that a kernel is not found.
static void test_no_memory(void)
{
    for (int n = 0; n < 40; n++) {
        void **module;

        mem_fail_after(n);
        module = __cudaRegisterFatBinary("scarce");
        for (int i = 0; i < 30; i++)
            add_kernel(module, &many[i], "s");
        launch(&many[0]);
        CHECK(__cudaInitModule(module) == (module != NULL));
        __cudaUnregisterFatBinary(module);
        mem_fail_after(-1);
    }
    fake_clear();
}

// Closes libraries while others launch.
static void *load_and_unload(void *unused)
{
    static char own[64];

    for (int round = 0; round < 200; round++) {
        void **module = add_module("passing");

        for (int i = 0; i < 64; i++)
            add_kernel(module, &own[i], "p");
        CHECK(launch(&own[round % 64]) == cudaSuccess);
        __cudaUnregisterFatBinary(module);
    }
    return NULL;
}

static void *launch_many(void *module)
{
    for (int i = 0; i < 200; i++)
        CHECK(launch(&many[i % 10]) == cudaSuccess);
    CHECK(launch(&stranger) == cudaErrorInvalidResourceHandle);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidResourceHandle);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[8], closer;
    void **module = add_module("shared");
    const char *load;

    cudaGetLastError();
    for (int i = 0; i < 10; i++)
        add_kernel(module, &many[i], "s");
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, launch_many, module) == 0);
    CHECK(pthread_create(&closer, NULL, load_and_unload, NULL) == 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    pthread_join(closer, NULL);
    load = strstr(fake_log(), "cuLibraryLoadData(shared)");
    CHECK(load && !strstr(load + 1, "cuLibraryLoadData(shared)"));
    CHECK(cudaGetLastError() == cudaSuccess);
    __cudaUnregisterFatBinary(module);
    fake_clear();
}

static void test_devices(void)
{
    int device = -1;

    CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
    CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaGetDevice(&device) == cudaSuccess && device == 1);
    ASKED("cuDevicePrimaryCtxRetain(1) cuCtxSetCurrent(1) ");
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaDeviceReset() == cudaSuccess);
    ASKED("cuCtxSetCurrent(0) cuDevicePrimaryCtxReset(0) ");
    CHECK(launch(&stub) == cudaSuccess);
    ASKED("cuDevicePrimaryCtxRetain(0) cuCtxSetCurrent(0) cuLaunchKernel(k,1,2,8,0) ");
}

static void test_results(void)
{
    cudaPitchedPtr pitched = {(void *)0x100, 64, 60, 10};

    fake_fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(launch(&stub) == cudaErrorIllegalAddress);
    CHECK(cudaFree(NULL) == cudaErrorIllegalAddress);
    fake_fail(CUDA_SUCCESS);
    CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaErrorIllegalAddress);
    fake_clear();
    CHECK(cudaMemcpy_ptds((void *)0x10, "", 1, cudaMemcpyHostToDevice) == cudaSuccess);
    ASKED("cuMemcpyHtoDAsync(10,1,2) cuStreamSynchronize(2) ");
    CHECK(cudaMemcpyAsync_ptsz((void *)0x10, "", 1, cudaMemcpyHostToDevice, NULL) == cudaSuccess);
    ASKED("cuMemcpyHtoDAsync(10,1,2) ");
    CHECK(cudaMemset3D(pitched, 3, (cudaExtent){5, 10, 4}) == cudaSuccess);
    ASKED("cuMemsetD2D8(100,64,3,5,40) ");
    CHECK(cudaMemset3D(pitched, 3, (cudaExtent){5, 2, 2}) == cudaSuccess);
    ASKED("cuMemsetD2D8(100,64,3,5,2) cuMemsetD2D8(380,64,3,5,2) ");
    // The first is not in this driver, the second not in this runtime; both say so once.
    for (int i = 0; i < 2; i++) {
        CHECK(cudaCtxResetPersistingL2Cache() == cudaErrorNotSupported);
        CHECK(cudaGLSetGLDevice(0) == cudaErrorNotSupported);
    }
}

static void test_errors(void)
{
#define ERROR(name, value, text)                       \
    CHECK(strcmp(cudaGetErrorName(name), #name) == 0); \
    CHECK(strlen(cudaGetErrorString(name)) > 5 &&      \
          strcmp(cudaGetErrorString(name), "unrecognized error code") != 0);
#include "driver/cudart_errors.def"
    CHECK(strcmp(cudaGetErrorName((cudaError_t)11), "unrecognized error code") == 0);
}

static int expect_error(cudaError_t expected)
{
    int count = -1, version = -1;
    void *pointer;
    void **module = add_module("image");

    add_kernel(module, &stub, "k");
    CHECK(cudaGetDeviceCount(&count) == expected && count == 0);
    CHECK(cudaMalloc(&pointer, 4) == expected);
    CHECK(launch(&stub) == expected && cudaGetLastError() == expected);
    CHECK(__cudaInitModule(module) == 0);
    CHECK(cudaDriverGetVersion(&version) == cudaSuccess);
    CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess && version == 13000);
    __cudaUnregisterFatBinary(module);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "error") == 0)
        return expect_error((cudaError_t)atoi(argv[2]));
    if (argc != 2 || strcmp(argv[1], "calls") != 0)
        return 2;
    find_fake();
    test_launch();
    test_stub();
    test_bad_module();
    test_variables();
    test_same_stub();
    test_many();
    test_no_memory();
    test_threads();
    test_devices();
    test_results();
    test_errors();
    return 0;
}
