// SPDX-License-Identifier: MIT
//
// What the runtime says to unusual calls, one line each. behaviour.expected is what NVIDIA's runtime 13.0
// printed on an H200; ours must print the same. Nothing here depends on the device, on addresses or on time.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

__device__ int device_variable = 7;
__device__ int device_array[10];
__constant__ float constant_array[4];
__managed__ int managed_variable = 11;

__global__ void add(int *to, int value)
{
    to[threadIdx.x] += value + device_variable;
}

__global__ void __launch_bounds__(64) bounded(int *to)
{
    to[0] = 1;
}

template <typename T> __global__ void templated(T *to, T value)
{
    *to = value;
}

__global__ void wild(int *to)
{
    *to = 1;
}

static int not_a_kernel;

static void say(const char *what, cudaError_t error)
{
    cudaError_t peek = cudaPeekAtLastError(), last = cudaGetLastError(), again = cudaGetLastError();
    printf("%s: %s, last %s %s %s\n", what, cudaGetErrorName(error),
           peek == last ? "same" : cudaGetErrorName(peek), cudaGetErrorName(last), cudaGetErrorName(again));
}

#define SAY(call) say(#call, call)

static const void *function_address(void (*f)(int *, int))
{
    return (const void *)f;
}

static void devices()
{
    int value = -1, device = -1;
    cudaDeviceProp prop;

    SAY(cudaRuntimeGetVersion(&value));
    printf("runtime %d\n", value);
    SAY(cudaRuntimeGetVersion(nullptr));
    SAY(cudaDriverGetVersion(nullptr));
    SAY(cudaGetDeviceCount(nullptr));
    SAY(cudaGetDevice(&device));
    printf("device %d\n", device);
    SAY(cudaGetDevice(nullptr));
    SAY(cudaSetDevice(-1));
    SAY(cudaSetDevice(1000));
    SAY(cudaSetDevice(0));
    SAY(cudaGetDeviceProperties(&prop, 1000));
    SAY(cudaGetDeviceProperties(nullptr, 0));
    SAY(cudaGetDeviceProperties(&prop, 0));
    SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    printf("warp %d %d, grid y %d, threads %d\n", value, prop.warpSize, prop.maxGridSize[1],
           prop.maxThreadsPerBlock);
    SAY(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)100000, 0));
    SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -3));
    SAY(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
    SAY(cudaDeviceCanAccessPeer(&value, 0, 0));
    SAY(cudaDeviceEnablePeerAccess(0, 0));
    SAY(cudaDeviceDisablePeerAccess(0));
    SAY(cudaDeviceSetLimit((cudaLimit)1000, 1));
    SAY(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    SAY(cudaChooseDevice(&device, &prop));
    printf("chosen %d\n", device);
    SAY(cudaSetValidDevices(&value, 1000));
    device = 0;
    SAY(cudaSetValidDevices(&device, 1));
    SAY(cudaSetValidDevices(nullptr, 0));
}

static void errors()
{
    printf("%s, %s\n", cudaGetErrorName((cudaError_t)11), cudaGetErrorString((cudaError_t)11));
    printf("%s, %s\n", cudaGetErrorName((cudaError_t)-1), cudaGetErrorString((cudaError_t)12345));
    // The last error stays until it is asked for, and a success does not clear it.
    cudaSetDevice(-1);
    cudaDeviceSynchronize();
    say("success after failure", cudaSuccess);
    cudaSetDevice(-1);
    cudaMalloc((void **)nullptr, 16);
    say("two failures", cudaSuccess);
}

static void memory()
{
    void *p = &not_a_kernel, *q = nullptr;
    size_t pitch = 1, total = 0, unused = 0;
    cudaPitchedPtr pitched;
    unsigned flags = 99;

    SAY(cudaMalloc(&p, 0));
    printf("null %d\n", p == nullptr);
    SAY(cudaMalloc((void **)nullptr, 16));
    SAY(cudaMalloc(&p, (size_t)1 << 60));
    SAY(cudaFree(nullptr));
    SAY(cudaFree(&not_a_kernel));
    SAY(cudaMalloc(&p, 100));
    SAY(cudaFree((char *)p + 4));
    SAY(cudaFree(p));
    SAY(cudaFree(p));
    SAY(cudaMallocHost(&p, 0));
    printf("null %d\n", p == nullptr);
    SAY(cudaFreeHost(nullptr));
    SAY(cudaFreeHost(&not_a_kernel));
    SAY(cudaHostAlloc(&p, 100, 1000));
    SAY(cudaHostAlloc(&p, 100, cudaHostAllocMapped));
    SAY(cudaHostGetFlags(&flags, p));
    printf("mapped %d\n", (flags & cudaHostAllocMapped) != 0);
    SAY(cudaHostGetDevicePointer(&q, p, 0));
    SAY(cudaHostGetDevicePointer(&q, &not_a_kernel, 0));
    SAY(cudaHostGetDevicePointer(&q, p, 1));
    SAY(cudaFree(p));
    SAY(cudaFreeHost(p));
    SAY(cudaMallocManaged(&p, 0));
    SAY(cudaMallocManaged(&p, 64, 77));
    SAY(cudaMallocManaged(&p, 64));
    SAY(cudaFreeHost(p));
    SAY(cudaFree(p));
    SAY(cudaMallocPitch(&p, &pitch, 0, 10));
    printf("null %d pitch %zu\n", p == nullptr, pitch);
    SAY(cudaMallocPitch(&p, &pitch, 33, 0));
    printf("null %d pitch %zu\n", p == nullptr, pitch);
    SAY(cudaMalloc3D(&pitched, make_cudaExtent(40, 3, 2)));
    printf("xsize %zu ysize %zu\n", pitched.xsize, pitched.ysize);
    SAY(cudaMemset3D(pitched, 1, make_cudaExtent(40, 3, 2)));
    SAY(cudaMemset3D(pitched, 1, make_cudaExtent(40, 2, 2)));
    SAY(cudaFree(pitched.ptr));
    SAY(cudaMemGetInfo(&unused, &total));
    printf("total %d\n", total >= unused && total > 0);
    SAY(cudaMemset(nullptr, 0, 0));
    SAY(cudaMemset(nullptr, 0, 4));
    SAY(cudaHostRegister(nullptr, 4, 0));
    SAY(cudaHostUnregister(&not_a_kernel));
    SAY(cudaMallocAsync(&p, 0, 0));
    SAY(cudaFreeAsync(nullptr, 0));
}

static void attributes(const char *what, const void *p)
{
    cudaPointerAttributes a;
    memset(&a, 0x55, sizeof a);
    cudaError_t e = cudaPointerGetAttributes(&a, p);
    printf("%s: %s type %d device %d devicePointer %s hostPointer %s\n", what, cudaGetErrorName(e),
           (int)a.type, a.device,
           a.devicePointer == p ? "same"
           : a.devicePointer    ? "other"
                                : "null",
           a.hostPointer == p ? "same"
           : a.hostPointer    ? "other"
                              : "null");
    say("after", e);
}

static void pointers()
{
    void *device, *host, *managed;
    static char registered[8192];

    cudaMalloc(&device, 100);
    cudaMallocHost(&host, 100);
    cudaMallocManaged(&managed, 100);
    cudaHostRegister(registered, sizeof registered, cudaHostRegisterDefault);
    attributes("device", device);
    attributes("inside device", (char *)device + 10);
    attributes("host", host);
    attributes("managed", managed);
    attributes("registered", registered);
    attributes("plain", &not_a_kernel);
    attributes("null", nullptr);
    SAY(cudaPointerGetAttributes(nullptr, device));
    SAY(cudaHostUnregister(registered));
    attributes("unregistered", registered);
    cudaFree(device);
    cudaFreeHost(host);
    cudaFree(managed);
}

static void copies()
{
    char host[64] = "abc", other[64] = "";
    void *p;

    cudaMalloc(&p, 64);
    SAY(cudaMemcpy(p, host, 64, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(other, p, 64, cudaMemcpyDefault));
    printf("%s\n", other);
    SAY(cudaMemcpy(other, host, 64, cudaMemcpyHostToHost));
    SAY(cudaMemcpy(other, host, 64, cudaMemcpyDefault));
    SAY(cudaMemcpy(other, host, 64, (cudaMemcpyKind)5));
    SAY(cudaMemcpy(other, host, 64, (cudaMemcpyKind)-1));
    SAY(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(p, nullptr, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(host, p, 64, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(p, host, 64, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpyAsync(p, host, 64, (cudaMemcpyKind)9, 0));
    SAY(cudaMemcpyAsync(p, host, 0, cudaMemcpyHostToDevice, 0));
    SAY(cudaMemcpy2D(p, 4, host, 8, 8, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(p, 8, host, 4, 8, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(p, 8, host, 8, 8, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(p, 8, host, 8, 0, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(p, 8, host, 8, 8, 2, (cudaMemcpyKind)7));
    SAY(cudaMemset2D(p, 4, 0, 8, 2));
    SAY(cudaMemset2D(p, 8, 0, 8, 2));
    SAY(cudaMemset2D(p, 8, 0, 0, 2));
    SAY(cudaMemcpy3D(nullptr));
    cudaMemcpy3DParms parms = {};
    SAY(cudaMemcpy3D(&parms));
    parms.srcPtr = make_cudaPitchedPtr(host, 8, 8, 2);
    parms.dstPtr = make_cudaPitchedPtr(p, 8, 8, 2);
    parms.kind = cudaMemcpyHostToDevice;
    SAY(cudaMemcpy3D(&parms));
    parms.extent = make_cudaExtent(8, 2, 2);
    SAY(cudaMemcpy3D(&parms));
    parms.kind = (cudaMemcpyKind)8;
    SAY(cudaMemcpy3D(&parms));
    SAY(cudaMemcpyPeer(p, 0, host, 1000, 4));
    cudaFree(p);
}

static void symbols()
{
    int value = 0, four[4] = {1, 2, 3, 4};
    size_t size = 0;
    void *p = nullptr;

    SAY(cudaMemcpyFromSymbol(&value, device_variable, 4));
    printf("value %d\n", value);
    value = 8;
    SAY(cudaMemcpyToSymbol(device_variable, &value, 4));
    SAY(cudaMemcpyToSymbol(device_variable, &value, 8));
    SAY(cudaMemcpyToSymbol(device_array, four, 16, 24));
    SAY(cudaMemcpyToSymbol(device_array, four, 16, 28));
    SAY(cudaMemcpyToSymbol(device_array, four, 16, (size_t)-8));
    SAY(cudaMemcpyToSymbol(device_array, four, 16, 0, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpyToSymbol(device_array, four, 16, 0, (cudaMemcpyKind)9));
    SAY(cudaMemcpyToSymbol(device_array, four, 16, 0, cudaMemcpyDefault));
    SAY(cudaMemcpyFromSymbol(four, device_array, 16, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToSymbol(constant_array, four, 16));
    SAY(cudaMemcpyToSymbol((const void *)&not_a_kernel, four, 4));
    SAY(cudaMemcpyToSymbol((const void *)nullptr, four, 4));
    SAY(cudaGetSymbolSize(&size, device_array));
    printf("size %zu\n", size);
    SAY(cudaGetSymbolAddress(&p, constant_array));
    printf("null %d\n", p == nullptr);
    SAY(cudaGetSymbolAddress(&p, (const void *)&not_a_kernel));
    SAY(cudaGetSymbolSize(&size, (const void *)function_address(add)));
    printf("managed %d\n", managed_variable);
    managed_variable = 12;
    SAY(cudaMemcpyFromSymbol(&value, managed_variable, 4));
    printf("managed %d\n", value);
    SAY(cudaGetSymbolAddress(&p, managed_variable));
    printf("same %d\n", p == (void *)&managed_variable);
}

static void launches()
{
    int *p = nullptr, host[2] = {0, 0}, value = 5;
    void *args[] = {&p, &value};
    cudaStream_t stream;
    cudaFuncAttributes a;

    cudaMalloc(&p, 256);
    cudaMemset(p, 0, 256);
    add<<<1, 2>>>(p, 1);
    say("launch", cudaSuccess);
    SAY(cudaMemcpy(host, p, 8, cudaMemcpyDeviceToHost));
    printf("%d %d\n", host[0], host[1]);
    SAY(cudaLaunchKernel(function_address(add), dim3(1), dim3(2), args, 0, 0));
    SAY(cudaDeviceSynchronize());
    SAY(cudaMemcpy(host, p, 8, cudaMemcpyDeviceToHost));
    printf("%d %d\n", host[0], host[1]);
    SAY(cudaLaunchKernel((const void *)&not_a_kernel, dim3(1), dim3(1), args, 0, 0));
    SAY(cudaLaunchKernel((const void *)nullptr, dim3(1), dim3(1), args, 0, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(0), dim3(2), args, 0, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(1), dim3(0), args, 0, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(1), dim3(2048), args, 0, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(1), dim3(1, 1, 65), args, 0, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(1), dim3(32, 32, 2), args, 0, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(1, 65536), dim3(1), args, 0, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(1), dim3(1), args, 1 << 20, 0));
    SAY(cudaLaunchKernel(function_address(add), dim3(1), dim3(1), args, 50000, 0));
    SAY(cudaLaunchKernel((const void *)bounded, dim3(1), dim3(65), args, 0, 0));
    SAY(cudaLaunchCooperativeKernel(function_address(add), dim3(1000000), dim3(32), args, 0, 0));
    SAY(cudaLaunchCooperativeKernel(function_address(add), dim3(0), dim3(32), args, 0, 0));
    SAY(cudaLaunchCooperativeKernel(function_address(add), dim3(1), dim3(2), args, 0, 0));
    templated<<<1, 1>>>((float *)p, 1.5f);
    say("template", cudaSuccess);
    add<<<0, 1>>>(p, 1);
    say("empty grid", cudaSuccess);
    cudaLaunchConfig_t config = {};
    SAY(cudaLaunchKernelExC(&config, function_address(add), args));
    config.gridDim = config.blockDim = dim3(1);
    SAY(cudaLaunchKernelExC(&config, function_address(add), args));
    SAY(cudaFuncGetAttributes(&a, (const void *)bounded));
    printf("threads %d ptx %d binary %d\n", a.maxThreadsPerBlock, a.ptxVersion, a.binaryVersion);
    SAY(cudaFuncGetAttributes(&a, (const void *)&not_a_kernel));
    SAY(cudaFuncGetAttributes(nullptr, (const void *)bounded));
    SAY(cudaFuncSetAttribute((const void *)bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    SAY(cudaFuncSetAttribute((const void *)bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24));
    SAY(cudaFuncSetAttribute((const void *)bounded, (cudaFuncAttribute)100, 1));
    const char *name = nullptr;
    SAY(cudaFuncGetName(&name, (const void *)bounded));
    printf("%s\n", name ? name : "none");
    size_t offset = 99, size = 99;
    SAY(cudaFuncGetParamInfo(function_address(add), 1, &offset, &size));
    printf("offset %zu size %zu\n", offset, size);
    SAY(cudaFuncGetParamInfo(function_address(add), 2, &offset, &size));
    cudaKernel_t kernel = nullptr;
    SAY(cudaGetKernel(&kernel, function_address(add)));
    SAY(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(2), args, 0, 0));
    SAY(cudaDeviceSynchronize());
    int blocks = -1;
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_address(add), 32, 0));
    printf("some %d\n", blocks > 0);
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_address(add), 0, 0));
    SAY(cudaStreamCreate(&stream));
    SAY(cudaStreamCreate(nullptr));
    SAY(cudaStreamCreateWithFlags(&stream, 77));
    SAY(cudaStreamSynchronize(stream));
    SAY(cudaStreamQuery(stream));
    SAY(cudaStreamDestroy(stream));
    SAY(cudaStreamDestroy(nullptr));
    SAY(cudaStreamSynchronize(cudaStreamPerThread));
    SAY(cudaStreamSynchronize(cudaStreamLegacy));
    SAY(cudaLaunchHostFunc(0, nullptr, nullptr));
    cudaFree(p);
}

static void events()
{
    cudaEvent_t a, b;
    float ms = -1;

    SAY(cudaEventCreate(nullptr));
    SAY(cudaEventCreate(&a));
    SAY(cudaEventCreateWithFlags(&b, cudaEventDisableTiming));
    SAY(cudaEventQuery(a));
    SAY(cudaEventSynchronize(a));
    SAY(cudaEventElapsedTime(&ms, a, a));
    SAY(cudaEventRecord(a, 0));
    SAY(cudaEventRecord(b, 0));
    SAY(cudaEventSynchronize(a));
    SAY(cudaEventElapsedTime(&ms, a, b));
    SAY(cudaEventElapsedTime(&ms, a, a));
    printf("zero %d\n", ms == 0);
    SAY(cudaEventElapsedTime(nullptr, a, a));
    SAY(cudaEventDestroy(a));
    SAY(cudaEventDestroy(nullptr));
    SAY(cudaEventCreateWithFlags(&a, 77));
}

static void arrays()
{
    cudaArray_t array = nullptr;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float2>(), found;
    cudaExtent extent;
    unsigned flags;

    SAY(cudaMallocArray(&array, &desc, 16, 8));
    SAY(cudaArrayGetInfo(&found, &extent, &flags, array));
    printf("%d %d %d %d %d, %zu %zu %zu, %u\n", found.x, found.y, found.z, found.w, (int)found.f,
           extent.width, extent.height, extent.depth, flags);
    SAY(cudaFreeArray(array));
    SAY(cudaFreeArray(nullptr));
    desc.x = 7;
    SAY(cudaMallocArray(&array, &desc, 16, 8));
    desc = cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat);
    SAY(cudaMallocArray(&array, &desc, 16, 8));
    SAY(cudaMallocArray(&array, nullptr, 16, 8));
}

static void entry_points()
{
    void *f = nullptr;
    cudaDriverEntryPointQueryResult status;

    SAY(cudaGetDriverEntryPointByVersion("cuMemAlloc", &f, 13000, cudaEnableDefault, &status));
    printf("found %d status %d\n", f != nullptr, (int)status);
    SAY(cudaGetDriverEntryPointByVersion("cuNoSuchCall", &f, 13000, cudaEnableDefault, &status));
    printf("found %d status %d\n", f != nullptr, (int)status);
    SAY(cudaGetDriverEntryPointByVersion("cuNoSuchCall", &f, 13000, cudaEnableDefault, nullptr));
    SAY(cudaGetDriverEntryPointByVersion("cuMemPrefetchAsync", &f, 5000, cudaEnableDefault, &status));
    printf("found %d status %d\n", f != nullptr, (int)status);
}

static void faults()
{
    int *p, host = 0;

    cudaMalloc(&p, 4);
    wild<<<1, 1>>>((int *)16);
    say("wild launch", cudaSuccess);
    SAY(cudaDeviceSynchronize());
    say("afterwards", cudaSuccess);
    SAY(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
    SAY(cudaMalloc(&p, 4));
    SAY(cudaFree(nullptr));
    wild<<<1, 1>>>(p);
    say("launch", cudaSuccess);
    int device;
    SAY(cudaGetDevice(&device));
}

static void CUDART_CB count_call(void *data)
{
    ++*(int *)data;
}

static void CUDART_CB count_status(cudaStream_t stream, cudaError_t error, void *data)
{
    *(int *)data += error == cudaSuccess ? 10 : 1000;
}

static void graphs()
{
    cudaGraph_t graph = nullptr, captured = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaGraphNode_t kernel_node, copy_node, host_node, fill_node;
    cudaStream_t stream;
    cudaGraphNodeType type;
    int *p, host = 0, value = 5, calls = 0;
    size_t count = 0;
    void *args[] = {&p, &value};

    cudaStreamCreate(&stream);
    cudaMalloc(&p, 4);
    SAY(cudaGraphCreate(&graph, 0));
    SAY(cudaGraphCreate(nullptr, 0));
    SAY(cudaGraphCreate(&captured, 7));
    cudaMemsetParams fill = {};
    fill.dst = p;
    fill.elementSize = 1;
    fill.width = 4;
    fill.height = 1;
    SAY(cudaGraphAddMemsetNode(&fill_node, graph, nullptr, 0, &fill));
    cudaKernelNodeParams params = {}, found = {};
    params.func = (void *)function_address(add);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = args;
    SAY(cudaGraphAddKernelNode(&kernel_node, graph, &fill_node, 1, &params));
    SAY(cudaGraphKernelNodeGetParams(kernel_node, &found));
    printf("stub %d grid %u\n", found.func == params.func, found.gridDim.x);
    params.func = &not_a_kernel;
    SAY(cudaGraphAddKernelNode(&kernel_node, graph, &fill_node, 1, &params));
    SAY(cudaGraphAddMemcpyNode1D(&copy_node, graph, &kernel_node, 1, &host, p, 4, cudaMemcpyDeviceToHost));
    SAY(cudaGraphAddMemcpyNode1D(&copy_node, graph, &kernel_node, 1, &host, p, 4, (cudaMemcpyKind)9));
    cudaMemcpy3DParms copy = {};
    SAY(cudaGraphMemcpyNodeGetParams(copy_node, &copy));
    printf("src %d dst %d width %zu %zu %zu kind %d\n", copy.srcPtr.ptr == p, copy.dstPtr.ptr == &host,
           copy.extent.width, copy.extent.height, copy.extent.depth, (int)copy.kind);
    cudaHostNodeParams host_params = {count_call, &calls};
    SAY(cudaGraphAddHostNode(&host_node, graph, &copy_node, 1, &host_params));
    SAY(cudaGraphNodeGetType(copy_node, &type));
    printf("type %d\n", (int)type);
    SAY(cudaGraphGetNodes(graph, nullptr, &count));
    printf("nodes %zu\n", count);
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    SAY(cudaGraphLaunch(exec, stream));
    SAY(cudaStreamSynchronize(stream));
    printf("result %d calls %d\n", host, calls);
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(graph));
    SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<1, 1, 0, stream>>>(p, 1);
    say("captured launch", cudaSuccess);
    SAY(cudaStreamEndCapture(stream, &captured));
    SAY(cudaGraphGetNodes(captured, nullptr, &count));
    printf("nodes %zu\n", count);
    SAY(cudaGraphDestroy(captured));
    SAY(cudaStreamEndCapture(stream, &captured));
    SAY(cudaStreamAddCallback(stream, count_status, &calls, 0));
    SAY(cudaStreamSynchronize(stream));
    printf("calls %d\n", calls);
    SAY(cudaStreamAddCallback(stream, count_status, &calls, 5));
    SAY(cudaStreamAddCallback(stream, nullptr, &calls, 0));
    cudaFree(p);
    cudaStreamDestroy(stream);
}

static void array_copies()
{
    cudaArray_t array;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
    int host[32], back[32];
    cudaMemcpy3DParms copy = {};

    for (int i = 0; i < 32; i++)
        host[i] = i, back[i] = -1;
    SAY(cudaMallocArray(&array, &desc, 8, 4));
    SAY(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DFromArray(back, 8, array, 4, 1, 8, 2, cudaMemcpyDeviceToHost));
    printf("%d %d %d %d %d\n", back[0], back[1], back[2], back[3], back[4]);
    SAY(cudaMemcpyToArray(array, 8, 1, host, 40, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyFromArray(back, array, 0, 0, 128, cudaMemcpyDeviceToHost));
    printf("%d %d %d %d %d %d\n", back[9], back[10], back[15], back[16], back[19], back[20]);
    SAY(cudaMemcpy2DToArray(array, 0, 0, host, 16, 32, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(array, 4, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, (cudaMemcpyKind)7));
    copy.srcArray = array;
    copy.srcPos = make_cudaPos(2, 1, 0);
    copy.dstPtr = make_cudaPitchedPtr(back, 16, 4, 2);
    copy.extent = make_cudaExtent(3, 2, 1);
    copy.kind = cudaMemcpyDeviceToHost;
    SAY(cudaMemcpy3D(&copy));
    printf("%d %d %d %d %d\n", back[0], back[1], back[2], back[4], back[6]);
    copy.srcPtr = make_cudaPitchedPtr(host, 16, 4, 2);
    SAY(cudaMemcpy3D(&copy));
    SAY(cudaFreeArray(array));
}

static void pools()
{
    cudaMemPool_t pool = nullptr, other = nullptr;
    void *p = nullptr;
    unsigned long long threshold = 1;

    SAY(cudaDeviceGetDefaultMemPool(&pool, 0));
    SAY(cudaDeviceGetMemPool(&other, 0));
    printf("same %d\n", pool == other);
    SAY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    printf("threshold %llu\n", threshold);
    SAY(cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)99, &threshold));
    SAY(cudaMallocAsync(&p, 100, 0));
    SAY(cudaFreeAsync(p, 0));
    SAY(cudaMallocFromPoolAsync(&p, 100, pool, 0));
    SAY(cudaFree(p));
    SAY(cudaMallocFromPoolAsync(&p, 100, nullptr, 0));
    SAY(cudaMallocFromPoolAsync(&p, 0, pool, 0));
    SAY(cudaMemPoolTrimTo(pool, 0));
    SAY(cudaDeviceGetMemPool(&other, 99));
}

static void reset()
{
    int *p;

    SAY(cudaDeviceReset());
    SAY(cudaMalloc(&p, 4));
    SAY(cudaMemset(p, 0, 4));
    wild<<<1, 1>>>(p);
    SAY(cudaDeviceSynchronize());
    SAY(cudaFree(p));
}

static const struct {
    const char *name;
    void (*run)();
} parts[] = {
    {"devices", devices},   {"errors", errors},
    {"memory", memory},     {"pointers", pointers},
    {"copies", copies},     {"symbols", symbols},
    {"launches", launches}, {"events", events},
    {"arrays", arrays},     {"entry_points", entry_points},
    {"graphs", graphs},     {"array_copies", array_copies},
    {"pools", pools},       {"reset", reset},
    {"faults", faults},
};

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IONBF, 0);
    for (auto &part : parts)
        if (argc == 2 && strcmp(argv[1], part.name) == 0)
            part.run();
    return 0;
}
