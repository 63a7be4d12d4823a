// SPDX-License-Identifier: MIT
// Wrong use of the API: the documented error, never a crash.
#include "driver_check.h"

static void before_init(void)
{
    CUdeviceptr p;
    CUdevice device;
    int count;
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&device, 0));
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&p, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    TRY(cuInit(0));
}

static void without_context(void)
{
    CUdeviceptr p;
    CUmodule module;
    CUcontext context = (CUcontext)1;
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&p, 4));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuModuleLoadData(&module, ".version 7.0\n"));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    TRY(cuCtxGetCurrent(&context));
    CHECK(!context);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v2(&context, 0, 99));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(NULL, 0, 0));
}

static void devices(void)
{
    CUdevice device;
    char name[100];
    int value, count = 0, version = 0;
    size_t bytes;
    TRY(cuDriverGetVersion(&version));
    CHECK(version >= 12000);
    TRY(cuDeviceGetCount(&count));
    CHECK(count >= 1);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, count));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
    TRY(cuDeviceGetName(name, sizeof name, 0));
    CHECK(*name);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof name, 99));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)99999, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    TRY(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    EQUAL(value, 32);
    TRY(cuDeviceTotalMem_v2(&bytes, 0));
    CHECK(bytes > 1 << 20);
    const char *text = NULL;
    TRY(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    CHECK(text && *text);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
}

static void memory(void)
{
    CUdeviceptr p, base;
    size_t size;
    char bytes[16] = {0};
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&p, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 4));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, (size_t)1 << 50));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(0));
    TRY(cuMemAlloc_v2(&p, 100));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p + 4));
    TRY(cuMemGetAddressRange_v2(&base, &size, p + 40));
    EQUAL(base, p);
    EQUAL(size, 100);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, NULL, 4));
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoD_v2(p, bytes, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(bytes, (CUdeviceptr)0x10, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(p + 2, 0, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2((CUdeviceptr)0x10, 0, 1));
    TRY(cuMemFree_v2(p));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)0x10));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(bytes));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(bytes));
}

static void images(void)
{
    static const char head[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
    char text[400];
    CUmodule module;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "nonsense"));
    EXPECT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "test/cpu/absent.ptx"));
    snprintf(text, sizeof text, "%s.visible .entry f() { frobnicate; ret; }\n", head);
    EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, text));
    snprintf(text, sizeof text, "%s.visible .entry f() { .reg .b32 %%r; mov.u32 %%r, %%q; ret; }\n", head);
    char log[500] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, text, 2, options, values));
    CHECK(*log);
    snprintf(text, sizeof text, "%s.extern .func g(); .visible .entry f() { call.uni g; ret; }\n", head);
    CHECK(cuModuleLoadData(&module, text) != CUDA_SUCCESS);
    TRY(cuModuleLoad(&module, "test/cpu/basic.ptx"));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(NULL, module, "add"));
    TRY(cuModuleUnload(module));
}

// NVIDIA's driver follows some of these pointers and crashes.
static void handles(void)
{
    CUfunction f;
    CUdeviceptr p;
    size_t size;
    int x;
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&f, (CUmodule)&x, "add"));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetGlobal_v2(&p, &size, (CUmodule)&x, "add"));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload((CUmodule)&x));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize((CUstream)&x));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize((CUevent)&x));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel((CUfunction)&x, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2((CUcontext)&x));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)&x));
}

static void procedures(void)
{
    void *p = NULL;
    CUdriverProcAddressQueryResult found;
    TRY(cuGetProcAddress_v2("cuMemAlloc", &p, 12000, 0, &found));
    CHECK(p && found == CU_GET_PROC_ADDRESS_SUCCESS);
    TRY(cuGetProcAddress_v2("cuNoSuchCall", &p, 12000, 0, &found));
    CHECK(!p && found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    if (!check_on_gpu())
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2(NULL, &p, 12000, 0, &found));
}

int main(void)
{
    before_init();
    without_context();
    devices();
    CUcontext context;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    memory();
    images();
    if (!check_on_gpu())
        handles();
    procedures();
    TRY(cuCtxDestroy_v2(context));
    return check_end("driver_bad");
}
