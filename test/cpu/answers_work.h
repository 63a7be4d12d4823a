// SPDX-License-Identifier: MIT
// Groups of answers.c: contexts, streams, events, modules, launches.
#ifndef ANSWERS_WORK_H
#define ANSWERS_WORK_H

#include "answers.h"

static void group_devices(void)
{
    CUdevice device = -1;
    char name[8], bus[16];
    int value = -1;
    size_t bytes;
    const char *text;
    ASK(cuInit(1));
    ASK(cuDeviceGet(&device, 0));
    ASK(cuDriverGetVersion(NULL));
    NEED(cuInit(0));
    ASK(cuDeviceGet(&device, -1));
    ASK(cuDeviceGet(&device, 99));
    ASK(cuDeviceGet(NULL, 0));
    ASK(cuDeviceGetCount(NULL));
    ASK(cuDeviceGetName(name, 1, 0));
    ASK(cuDeviceGetName(NULL, 8, 0));
    ASK(cuDeviceGetName(name, 8, 99));
    ASK(cuDeviceTotalMem_v2(NULL, 0));
    ASK(cuDeviceTotalMem_v2(&bytes, 99));
    ASK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    SHOW(value);
    ASK(cuDeviceGetAttribute(&value, (CUdevice_attribute)99999, 0));
    ASK(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0));
    ASK(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ASK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
    ASK(cuDeviceGetPCIBusId(bus, 4, 0));
    ASK(cuDeviceGetPCIBusId(NULL, 16, 0));
    ASK(cuDeviceGetByPCIBusId(&device, "nonsense"));
    ASK(cuDeviceGetByPCIBusId(&device, NULL));
    ASK(cuGetErrorName((CUresult)12345, &text));
    ASK(cuGetErrorString((CUresult)12345, &text));
}

static void group_no_context(void)
{
    CUcontext c = (CUcontext)7;
    CUdevice device;
    CUstream stream;
    CUevent event;
    CUmodule module;
    unsigned flags = 7;
    int active = 7;
    size_t limit;
    NEED(cuInit(0));
    ASK(cuCtxGetCurrent(&c));
    SHOW(c == NULL);
    ASK(cuCtxGetCurrent(NULL));
    ASK(cuCtxGetDevice(&device));
    ASK(cuCtxSynchronize());
    ASK(cuCtxPopCurrent_v2(&c));
    ASK(cuCtxPopCurrent_v2(NULL));
    ASK(cuCtxGetFlags(&flags));
    ASK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    ASK(cuStreamCreate(&stream, 0));
    ASK(cuEventCreate(&event, 0));
    ASK(cuModuleLoadData(&module, ".version 7.0"));
    ASK(cuCtxSetCurrent(NULL));
    ASK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    SHOW(flags);
    SHOW(active);
    ASK(cuDevicePrimaryCtxGetState(99, &flags, &active));
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    ASK(cuDevicePrimaryCtxRetain(NULL, 0));
    ASK(cuDevicePrimaryCtxRetain(&c, 99));
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, 0x4));
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, 0x3));
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, 0x1000));
}

static void group_contexts(void)
{
    CUcontext second, c = NULL;
    CUdevice device = -1;
    unsigned flags = 0, version = 0;
    unsigned long long id = 0, other = 0;
    int least, greatest;
    answers_start();
    ASK(cuCtxCreate_v2(NULL, 0, 0));
    ASK(cuCtxCreate_v2(&second, 0, 99));
    ASK(cuCtxCreate_v2(&second, 0x1000, 0));
    ASK(cuCtxCreate_v2(&second, 3, 0));
    ASK(cuCtxCreate_v2(&second, CU_CTX_SCHED_YIELD, 0));
    ASK(cuCtxGetFlags(&flags));
    SHOW(flags);
    ASK(cuCtxGetFlags(NULL));
    ASK(cuCtxGetDevice(&device));
    SHOW(device);
    ASK(cuCtxGetDevice(NULL));
    ASK(cuCtxGetApiVersion(second, &version));
    SHOW(version);
    ASK(cuCtxGetApiVersion(NULL, &version));
    SHOW(version);
    ASK(cuCtxGetApiVersion(second, NULL));
    ASK(cuCtxGetId(second, &id));
    ASK(cuCtxGetId(context, &other));
    SHOW(id != other);
    ASK(cuCtxGetId(second, NULL));
    ASK(cuCtxGetStreamPriorityRange(&least, &greatest));
    SHOW(least);
    SHOW(greatest);
    ASK(cuCtxGetStreamPriorityRange(NULL, NULL));
    ASK(cuCtxPushCurrent_v2(NULL));
    ASK(cuCtxPushCurrent_v2(second));
    ASK(cuCtxPopCurrent_v2(&c));
    SHOW(c == second);
    ASK(cuCtxPopCurrent_v2(NULL));
    NEED(cuCtxGetCurrent(&c));
    SHOW(c == context);
    ASK(cuCtxDestroy_v2(NULL));
    ASK(cuCtxDestroy_v2(second));
    ASK(cuCtxDestroy_v2(context));
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    ASK_AS("cuCtxSynchronize in a primary context that nobody retains", cuCtxSynchronize());
}

static void group_limits(void)
{
    answers_start();
    for (int i = 0; i <= CU_LIMIT_MAX; i++) {
        size_t value = 0;
        printf("  limit %d: ", i);
        answers_result(cu.cuCtxGetLimit(&value, (CUlimit)i));
        SHOW(value);
    }
    size_t value = 0;
    ASK(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    ASK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
    NEED(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    SHOW(value);
    ASK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1 << 40));
    ASK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1));
    NEED(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    SHOW(value);
    ASK(cuCtxSetLimit((CUlimit)99, 1));
}

static void answers_callback(CUstream stream, CUresult status, void *data)
{
    *(int *)data += status == CUDA_SUCCESS;
}

static void answers_host(void *data)
{
    ++*(int *)data;
}

static void group_streams(void)
{
    CUstream stream, high, last;
    CUcontext c = NULL;
    unsigned flags = 7;
    int priority = 7, called = 0;
    unsigned long long id = 0;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    answers_start();
    ASK(cuStreamCreate(NULL, 0));
    ASK(cuStreamCreate(&stream, 2));
    ASK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASK(cuStreamCreateWithPriority(&high, 0, -99));
    ASK(cuStreamGetPriority(high, &priority));
    SHOW(priority);
    ASK(cuStreamCreateWithPriority(&last, 0, 99));
    ASK(cuStreamGetPriority(last, &priority));
    SHOW(priority);
    ASK(cuStreamGetPriority(NULL, &priority));
    SHOW(priority);
    ASK(cuStreamGetPriority(stream, NULL));
    ASK(cuStreamGetFlags(stream, &flags));
    SHOW(flags);
    ASK(cuStreamGetFlags(NULL, &flags));
    SHOW(flags);
    ASK(cuStreamGetFlags(CU_STREAM_PER_THREAD, &flags));
    SHOW(flags);
    ASK(cuStreamGetFlags(stream, NULL));
    ASK(cuStreamGetCtx(stream, &c));
    SHOW(c == context);
    ASK(cuStreamGetCtx(stream, NULL));
    ASK(cuStreamGetId(stream, &id));
    ASK(cuStreamGetId(stream, NULL));
    ASK(cuStreamQuery(stream));
    ASK(cuStreamQuery(NULL));
    ASK(cuStreamIsCapturing(stream, &capture));
    SHOW(capture);
    ASK(cuStreamIsCapturing(NULL, &capture));
    ASK(cuStreamAddCallback(stream, answers_callback, &called, 0));
    ASK(cuStreamAddCallback(stream, answers_callback, &called, 1));
    ASK(cuStreamAddCallback(stream, NULL, &called, 0));
    ASK(cuLaunchHostFunc(stream, answers_host, &called));
    ASK(cuLaunchHostFunc(stream, NULL, &called));
    ASK(cuStreamSynchronize(stream));
    SHOW(called);
    ASK(cuStreamWaitEvent(stream, NULL, 0));
    ASK(cuStreamDestroy_v2(NULL));
    ASK(cuStreamDestroy_v2(CU_STREAM_LEGACY));
    ASK(cuStreamDestroy_v2(CU_STREAM_PER_THREAD));
    ASK(cuStreamDestroy_v2(stream));
}

static void group_stream_values(void)
{
    unsigned got = 0;
    answers_start();
    CUstream stream = answers_stream();
    ASK(cuStreamWriteValue32_v2(stream, small, 7, 0));
    ASK(cuStreamWriteValue32_v2(stream, small + 2, 7, 0));
    ASK(cuStreamWriteValue32_v2(stream, small + 100, 7, 0));
    ASK(cuStreamWriteValue32_v2(stream, 0, 7, 0));
    ASK(cuStreamWriteValue32_v2(stream, AS_ADDRESS(pageable), 7, 0));
    ASK(cuStreamWriteValue32_v2(stream, small, 7, 0x10));
    ASK(cuStreamWriteValue64_v2(stream, small + 8, 7, 0));
    ASK(cuStreamWriteValue64_v2(stream, small + 4, 7, 0));
    ASK(cuStreamWaitValue32_v2(stream, small, 7, CU_STREAM_WAIT_VALUE_EQ));
    ASK(cuStreamWaitValue32_v2(stream, small, 7, 0x10));
    ASK(cuStreamWaitValue64_v2(stream, small + 8, 3, CU_STREAM_WAIT_VALUE_GEQ));
    ASK(cuStreamBatchMemOp_v2(stream, 0, NULL, 0));
    ASK(cuStreamSynchronize(stream));
    NEED(cuMemcpyDtoH_v2(&got, small, 4));
    SHOW(got);
}

static void group_events(void)
{
    CUevent event, other, timeless;
    float ms = -1;
    answers_start();
    CUstream stream = answers_stream();
    ASK(cuEventCreate(NULL, 0));
    ASK(cuEventCreate(&event, 0x100));
    ASK(cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    ASK(cuEventCreate(&event, 0));
    NEED(cuEventCreate(&other, 0));
    NEED(cuEventCreate(&timeless, CU_EVENT_DISABLE_TIMING));
    ASK(cuEventQuery(event));
    ASK(cuEventSynchronize(event));
    ASK(cuEventElapsedTime(&ms, event, other));
    ASK(cuStreamWaitEvent(stream, event, 0));
    ASK(cuEventRecord(event, stream));
    ASK(cuEventElapsedTime(&ms, event, other));
    ASK(cuEventRecord(other, stream));
    ASK(cuEventRecord(timeless, stream));
    ASK(cuEventRecord(NULL, stream));
    ASK(cuEventRecordWithFlags(other, stream, 2));
    ASK(cuStreamSynchronize(stream));
    ASK(cuEventElapsedTime(&ms, event, other));
    SHOW(ms >= 0);
    ASK(cuEventElapsedTime(&ms, event, timeless));
    ASK(cuEventElapsedTime(NULL, event, other));
    ASK(cuEventElapsedTime(&ms, NULL, other));
    ASK(cuEventQuery(NULL));
    ASK(cuEventSynchronize(NULL));
    ASK(cuStreamWaitEvent(stream, event, 2));
    ASK(cuEventDestroy_v2(NULL));
    ASK(cuEventDestroy_v2(event));
}

// --- modules and launches ---------------------------------------------------------------------------------

static const char answers_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 number = 5;\n"
    ".visible .const .align 4 .u32 fixed = 6;\n"
    ".visible .entry two(.param .u64 to, .param .u32 value)\n"
    "{\n\t.reg .b64 %a;\n\t.reg .b32 %v;\n"
    "\tld.param.u64 %a, [to];\n\tld.param.u32 %v, [value];\n\tst.global.u32 [%a], %v;\n\tret;\n}\n"
    ".visible .entry none()\n{\n\tret;\n}\n"
    ".visible .entry wide() .reqntid 64, 2, 1\n{\n\tret;\n}\n"
    ".visible .entry most() .maxntid 128, 1, 1\n{\n\tret;\n}\n";

static CUmodule answers_module(void)
{
    CUmodule module = NULL;
    answers_start();
    NEED(cuModuleLoadData(&module, answers_ptx));
    return module;
}

static void group_modules(void)
{
    CUmodule module, bad;
    CUfunction f;
    CUdeviceptr p;
    size_t size = 0;
    unsigned count = 0;
    answers_start();
    ASK(cuModuleLoadData(NULL, answers_ptx));
    ASK(cuModuleLoadData(&bad, NULL));
    ASK(cuModuleLoadData(&bad, "nonsense"));
    ASK(cuModuleLoadData(&bad,
                         ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { nonsense; }"));
    ASK(cuModuleLoadData(&bad, ".version 7.0\n.target sm_999\n.address_size 64\n"));
    ASK(cuModuleLoadData(&bad, ".version 99.0\n.target sm_75\n.address_size 64\n"));
    ASK(cuModuleLoad(&bad, "/nowhere/at.all"));
    ASK(cuModuleLoad(&bad, NULL));
    ASK(cuModuleLoadData(&module, answers_ptx));
    ASK(cuModuleGetFunction(&f, module, "two"));
    ASK(cuModuleGetFunction(&f, module, "absent"));
    ASK(cuModuleGetFunction(&f, module, "number"));
    ASK(cuModuleGetFunction(&f, module, NULL));
    ASK(cuModuleGetFunction(NULL, module, "two"));
    ASK(cuModuleGetFunction(&f, NULL, "two"));
    ASK(cuModuleGetGlobal_v2(&p, &size, module, "number"));
    SHOW(size);
    ASK(cuModuleGetGlobal_v2(&p, NULL, module, "fixed"));
    ASK(cuModuleGetGlobal_v2(NULL, &size, module, "fixed"));
    ASK(cuModuleGetGlobal_v2(NULL, NULL, module, "fixed"));
    ASK(cuModuleGetGlobal_v2(&p, &size, module, "absent"));
    ASK(cuModuleGetGlobal_v2(&p, &size, module, "two"));
    ASK(cuModuleGetGlobal_v2(&p, &size, module, NULL));
    ASK(cuModuleGetFunctionCount(&count, module));
    SHOW(count);
    ASK(cuModuleGetFunctionCount(NULL, module));
    ASK(cuModuleUnload(NULL));
    ASK(cuModuleUnload(module));
}

static void group_libraries(void)
{
    CUlibrary library = NULL, bad;
    CUkernel kernel;
    CUmodule module;
    CUfunction f;
    CUdeviceptr p;
    size_t size = 0;
    unsigned count = 0;
    int value = -1;
    const char *name = NULL;
    answers_start();
    ASK(cuLibraryLoadData(NULL, answers_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadData(&bad, NULL, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadData(&bad, "nonsense", NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadFromFile(&bad, "/nowhere/at.all", NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadData(&library, answers_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryGetKernel(&kernel, library, "absent"));
    ASK(cuLibraryGetKernel(&kernel, library, NULL));
    ASK(cuLibraryGetKernel(NULL, library, "two"));
    ASK(cuLibraryGetKernel(&kernel, library, "two"));
    ASK(cuLibraryGetKernelCount(&count, library));
    SHOW(count);
    ASK(cuLibraryGetKernelCount(NULL, library));
    ASK(cuLibraryGetModule(&module, library));
    ASK(cuLibraryGetModule(NULL, library));
    ASK(cuLibraryGetGlobal(&p, &size, library, "number"));
    SHOW(size);
    ASK(cuLibraryGetGlobal(NULL, NULL, library, "number"));
    ASK(cuLibraryGetGlobal(&p, &size, library, "absent"));
    ASK(cuLibraryGetGlobal(&p, &size, library, "two"));
    ASK(cuLibraryGetManaged(&p, &size, library, "number"));
    ASK(cuLibraryGetManaged(&p, &size, library, "absent"));
    ASK(cuKernelGetFunction(&f, kernel));
    ASK(cuKernelGetFunction(NULL, kernel));
    ASK(cuKernelGetName(&name, kernel));
    SHOW(name && !strcmp(name, "two"));
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    SHOW(value);
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 99));
    ASK(cuKernelGetAttribute(NULL, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    ASK(cuKernelGetParamInfo(kernel, 2, &size, &size));
    ASK(cuLibraryUnload(library));
}

static void group_links(void)
{
    CUlinkState link = NULL, other = NULL;
    CUmodule module;
    void *image = NULL, *text = (void *)answers_ptx;
    size_t size = 0;
    answers_start();
    ASK(cuLinkCreate_v2(0, NULL, NULL, NULL));
    ASK(cuLinkCreate_v2(0, NULL, NULL, &link));
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, NULL, 10, "null", 0, NULL, NULL));
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, text, 0, "empty", 0, NULL, NULL));
    ASK(cuLinkAddData_v2(link, (CUjitInputType)99, text, sizeof answers_ptx, "unknown", 0, NULL, NULL));
    ASK(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, "/nowhere/at.all", 0, NULL, NULL));
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, text, sizeof answers_ptx, NULL, 0, NULL, NULL));
    ASK(cuLinkComplete(link, &image, &size));
    SHOW(image && size);
    ASK(cuModuleLoadData(&module, image));
    ASK(cuLinkDestroy(link));
    NEED(cuLinkCreate_v2(0, NULL, NULL, &other));
    ASK_AS("cuLinkAddData_v2 of nonsense",
           cuLinkAddData_v2(other, CU_JIT_INPUT_PTX, "nonsense", 9, "nonsense", 0, NULL, NULL));
    ASK_AS("cuLinkDestroy after that", cuLinkDestroy(other));
}

static void group_functions(void)
{
    CUmodule module = answers_module();
    CUfunction two, wide, most;
    const char *name = NULL;
    size_t offset = 0, size = 0;
    int value = -1;
    NEED(cuModuleGetFunction(&two, module, "two"));
    NEED(cuModuleGetFunction(&wide, module, "wide"));
    NEED(cuModuleGetFunction(&most, module, "most"));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, two));
    SHOW(value);
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, wide));
    SHOW(value);
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, most));
    SHOW(value);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, wide, 64, 0));
    SHOW(value);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, wide, 256, 0));
    SHOW(value);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, most, 256, 0));
    SHOW(value);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, two, 0, 0));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, two, 32, 0));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, two, 32, 300000));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, two));
    SHOW(value);
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, two));
    SHOW(value);
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, two));
    SHOW(value);
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, two));
    SHOW(value);
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, two));
    SHOW(value);
    ASK(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, two));
    ASK(cuFuncGetAttribute(&value, (CUfunction_attribute)99, two));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    ASK(cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    ASK(cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000000));
    ASK(cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
    ASK(cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    ASK(cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -2));
    ASK(cuFuncSetAttribute(two, CU_FUNC_ATTRIBUTE_NUM_REGS, 10));
    ASK(cuFuncSetCacheConfig(two, (CUfunc_cache)9));
    ASK(cuFuncGetName(&name, two));
    SHOW(name && !strcmp(name, "two"));
    ASK(cuFuncGetName(NULL, two));
    ASK(cuFuncGetParamInfo(two, 1, &offset, &size));
    SHOW(offset);
    SHOW(size);
    ASK(cuFuncGetParamInfo(two, 2, &offset, &size));
    ASK(cuFuncGetParamInfo(two, 0, NULL, &size));
}

#define ASK_LAUNCH(f, gx, gy, gz, bx, by, bz, shared, parameters, extra)                        \
    ASK_AS("cuLaunchKernel: " #f ", " #gx " " #gy " " #gz ", " #bx " " #by " " #bz ", " #shared \
           ", " #parameters ", " #extra,                                                        \
           cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, NULL, parameters, extra))

static void group_launches(void)
{
    CUmodule module = answers_module();
    CUfunction two, none, wide, most;
    unsigned value = 9, got = 0;
    void *parameters[] = {&small, &value};
    struct {
        CUdeviceptr to;
        unsigned value;
    } packed = {small, 10};
    size_t whole = 12, part = 8;
    void *buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &whole,
                      CU_LAUNCH_PARAM_END};
    void *too_short[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &part,
                         CU_LAUNCH_PARAM_END};
    NEED(cuModuleGetFunction(&two, module, "two"));
    NEED(cuModuleGetFunction(&none, module, "none"));
    NEED(cuModuleGetFunction(&wide, module, "wide"));
    NEED(cuModuleGetFunction(&most, module, "most"));
    ASK_LAUNCH(two, 1, 1, 1, 1, 1, 1, 0, parameters, NULL);
    ASK_LAUNCH(two, 1, 1, 1, 1, 1, 1, 0, NULL, buffer);
    NEED(cuMemcpyDtoH_v2(&got, small, 4));
    SHOW(got);
    ASK_LAUNCH(two, 1, 1, 1, 1, 1, 1, 0, NULL, too_short);
    ASK_LAUNCH(two, 1, 1, 1, 1, 1, 1, 0, parameters, buffer);
    ASK_LAUNCH(two, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(none, 0, 1, 1, 1, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 0, 1, 1, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 1, 1, 1, 1, 0, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 1, 1, 1024, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 1, 1, 32, 32, 2, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 1, 1, 1, 1, 65, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(none, 0x80000000, 1, 1, 1, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(none, 1, 1, 1, 1, 1, 1, 48 << 10, NULL, NULL);
    ASK_LAUNCH(none, 1, 1, 1, 1, 1, 1, (48 << 10) + 1, NULL, NULL);
    ASK_LAUNCH(wide, 1, 1, 1, 64, 2, 1, 0, NULL, NULL);
    ASK_LAUNCH(wide, 1, 1, 1, 128, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(wide, 1, 1, 1, 32, 2, 1, 0, NULL, NULL);
    ASK_LAUNCH(most, 1, 1, 1, 128, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(most, 1, 1, 1, 129, 1, 1, 0, NULL, NULL);
    ASK_LAUNCH(most, 1, 1, 1, 1, 64, 2, 0, NULL, NULL);
    ASK(cuLaunchCooperativeKernel(none, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    ASK(cuLaunchCooperativeKernel(none, 1000000, 1, 1, 1, 1, 1, 0, NULL, NULL));
    ASK(cuLaunchKernelEx(NULL, none, NULL, NULL));
    ASK(cuCtxSynchronize());
}

static void answers_fault(CUmodule module)
{
    CUfunction two;
    CUdeviceptr nowhere = 64;
    unsigned value = 1;
    void *parameters[] = {&nowhere, &value};
    NEED(cuModuleGetFunction(&two, module, "two"));
    NEED(cuLaunchKernel(two, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    ASK(cuCtxSynchronize());
}

// What a fault leaves behind: almost every call returns it, a few succeed nonetheless.
static void group_after_a_fault(void)
{
    CUmodule module = answers_module();
    CUdeviceptr p;
    CUcontext c;
    CUstream stream = answers_stream();
    CUevent event;
    unsigned flags;
    int value, active;
    size_t size;
    NEED(cuEventCreate(&event, 0));
    answers_fault(module);
    ASK(cuCtxSynchronize());
    ASK(cuStreamQuery(stream));
    ASK(cuStreamSynchronize(stream));
    ASK(cuEventRecord(event, stream));
    ASK(cuEventQuery(event));
    ASK(cuMemAlloc_v2(&p, 4));
    ASK(cuMemFree_v2(small));
    ASK(cuMemGetInfo_v2(&size, &size));
    ASK(cuMemcpyHtoD_v2(small, pageable, 4));
    ASK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, small));
    ASK(cuModuleUnload(module));
    ASK(cuEventDestroy_v2(event));
    ASK(cuStreamDestroy_v2(stream));
    ASK(cuCtxGetCurrent(&c));
    ASK(cuCtxGetFlags(&flags));
    ASK(cuCtxGetDevice(&value));
    ASK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ASK(cuDriverGetVersion(&value));
    ASK(cuCtxCreate_v2(&c, 0, 0));
    ASK(cuDevicePrimaryCtxRetain(&c, 0));
    ASK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ASK(cuDevicePrimaryCtxReset_v2(0));
    ASK_AS("after the reset, cuMemAlloc_v2", cuMemAlloc_v2(&p, 4));
    ASK_AS("after the reset, cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&c, 0));
    ASK_AS("after the reset, cuCtxSetCurrent", cuCtxSetCurrent(c));
    ASK_AS("retained again, cuMemAlloc_v2", cuMemAlloc_v2(&p, 4));
}

// What a fault leaves in other contexts of the process.
static void group_a_fault_elsewhere(void)
{
    CUcontext second, third;
    CUmodule module;
    CUdeviceptr p;
    answers_start();
    NEED(cuCtxCreate_v2(&second, 0, 0));
    NEED(cuModuleLoadData(&module, answers_ptx));
    answers_fault(module);
    NEED(cuCtxSetCurrent(context));
    ASK_AS("in the first context, cuCtxSynchronize", cuCtxSynchronize());
    ASK_AS("in the first context, cuMemAlloc_v2", cuMemAlloc_v2(&p, 4));
    ASK_AS("in the first context, cuMemcpyHtoD_v2", cuMemcpyHtoD_v2(small, pageable, 4));
    ASK_AS("in the first context, cuCtxCreate_v2", cuCtxCreate_v2(&third, 0, 0));
    NEED(cuCtxSetCurrent(NULL));
    ASK_AS("with no current context, cuCtxCreate_v2", cuCtxCreate_v2(&third, 0, 0));
    NEED(cuCtxSetCurrent(second));
    ASK_AS("in the second context, cuCtxSynchronize", cuCtxSynchronize());
    ASK(cuCtxDestroy_v2(second));
}

#endif
