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
    ASK(cuDeviceGetName(name, 0, 0));
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
    ASK(cuGetErrorName(CUDA_SUCCESS, NULL));
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

// --- modules and launches ------------------------------------------------------------------------------------------

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

static void group_functions(void)
{
    CUmodule module = answers_module();
    CUfunction two, wide;
    const char *name = NULL;
    size_t offset = 0, size = 0;
    int value = -1;
    NEED(cuModuleGetFunction(&two, module, "two"));
    NEED(cuModuleGetFunction(&wide, module, "wide"));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, two));
    SHOW(value);
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, wide));
    SHOW(value);
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
    ASK(cuLaunchCooperativeKernel(none, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    ASK(cuLaunchCooperativeKernel(none, 1000000, 1, 1, 1, 1, 1, 0, NULL, NULL));
    ASK(cuLaunchKernelEx(NULL, none, NULL, NULL));
    ASK(cuCtxSynchronize());
}

// What a fault leaves behind: each call answers with it, a few do all the same.
static void group_after_a_fault(void)
{
    CUmodule module = answers_module();
    CUfunction two;
    CUdeviceptr p, nowhere = 64;
    CUcontext c;
    CUstream stream = answers_stream();
    unsigned value = 1, flags;
    int version;
    void *parameters[] = {&nowhere, &value};
    NEED(cuModuleGetFunction(&two, module, "two"));
    ASK_LAUNCH(two, 1, 1, 1, 1, 1, 1, 0, parameters, NULL);
    ASK(cuCtxSynchronize());
    ASK(cuCtxSynchronize());
    ASK(cuStreamQuery(stream));
    ASK(cuMemAlloc_v2(&p, 4));
    ASK(cuMemFree_v2(small));
    ASK(cuMemcpyHtoD_v2(small, pageable, 4));
    ASK(cuModuleUnload(module));
    ASK(cuStreamDestroy_v2(stream));
    ASK(cuCtxGetCurrent(&c));
    ASK(cuCtxGetFlags(&flags));
    ASK(cuDriverGetVersion(&version));
    ASK(cuCtxCreate_v2(&c, 0, 0));
    ASK(cuDevicePrimaryCtxReset_v2(0));
    ASK_AS("cuMemAlloc_v2 after the reset", cuMemAlloc_v2(&p, 4));
}

#endif
