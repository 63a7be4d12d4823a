// SPDX-License-Identifier: MIT
// Registration, modules, launches, errors, the device.
#include "driver_route.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

// What a program registers from its static constructors, before anything here could be constructed.
struct route_wrapper {
    unsigned magic, version;
    const struct route_fatbin *fatbin;
};

struct route_fatbin {
    unsigned magic;
    unsigned short version, header_bytes;
    unsigned long long bytes;  // without the header
};

enum route_kind { KERNEL, VARIABLE, MANAGED };

struct route_symbol {
    route_kind kind;
    const void *host;
    const char *name;
    CUfunction function;
};

static const route_wrapper *wrapper;
static route_symbol symbols[100];
static int symbol_count;
static CUdevice device;
CUcontext route_context;
static CUmodule module;
unsigned long route_way;
static unsigned long launches;
static thread_local cudaError_t last_error;

// Errors of the runtime and the driver have the same numbers.
cudaError_t route_done(CUresult result)
{
    if (result)
        last_error = (cudaError_t)result;
    return (cudaError_t)result;
}

CUresult route_enter()
{
    CUcontext current = nullptr;
    const char *number = getenv("DRIVER_ROUTE");
    if (route_context) {
        ROUTE_TRY(cuCtxGetCurrent(&current));
        return current ? CUDA_SUCCESS : cuCtxPushCurrent(route_context);
    }
    launches = route_way = number ? strtoul(number, nullptr, 10) : 0;
    ROUTE_TRY(cuInit(0));
    ROUTE_TRY(cuDeviceGet(&device, 0));
#if CUDA_VERSION >= 13000
    return cuCtxCreate(&route_context, nullptr, CU_CTX_SCHED_AUTO | CU_CTX_MAP_HOST, device);
#else
    return cuCtxCreate(&route_context, CU_CTX_SCHED_AUTO | CU_CTX_MAP_HOST, device);
#endif
}

// Modules.

static size_t fatbin_bytes()
{
    return wrapper->fatbin->header_bytes + wrapper->fatbin->bytes;
}

static CUresult load_wrapper()
{
    return cuModuleLoadData(&module, wrapper);
}

static CUresult load_fatbin()
{
    return cuModuleLoadFatBinary(&module, wrapper->fatbin);
}

static CUresult load_with_log()
{
    char log[4000] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUresult result = cuModuleLoadDataEx(&module, wrapper->fatbin, 2, options, values);
    if (result)
        fprintf(stderr, "driver_route: the log: %s\n", log);
    return result;
}

static CUresult load_file()
{
    char path[40];
    int file = memfd_create("fatbin", 0);
    if (file < 0 || write(file, wrapper->fatbin, fatbin_bytes()) != (ssize_t)fatbin_bytes())
        return CUDA_ERROR_OPERATING_SYSTEM;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    CUresult result = cuModuleLoad(&module, path);
    close(file);
    return result;
}

static CUresult load_linked()
{
    CUlinkState state;
    void *image;
    size_t bytes;
    ROUTE_TRY(cuLinkCreate(0, nullptr, nullptr, &state));
    ROUTE_TRY(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, (void *)wrapper->fatbin, fatbin_bytes(), "program",
                            0, nullptr, nullptr));
    ROUTE_TRY(cuLinkComplete(state, &image, &bytes));
    ROUTE_TRY(cuModuleLoadData(&module, image));
    return cuLinkDestroy(state);
}

static CUresult (*const load_forms[])() = {load_wrapper, load_fatbin, load_with_log, load_file, load_linked};

// Loads on first use: the size of the device's heap is set before any code that uses it is loaded.
static CUresult load()
{
    return module ? CUDA_SUCCESS : load_forms[route_way % (sizeof load_forms / sizeof *load_forms)]();
}

static route_symbol *find(route_kind kind, const void *host)
{
    for (int i = 0; i < symbol_count; i++)
        if (symbols[i].kind == kind && symbols[i].host == host)
            return &symbols[i];
    return nullptr;
}

CUresult route_kernel(const void *host, CUfunction *function)
{
    route_symbol *symbol = find(KERNEL, host);
    if (!symbol)
        return CUDA_ERROR_NOT_FOUND;
    ROUTE_TRY(load());
    if (!symbol->function)
        ROUTE_TRY(cuModuleGetFunction(&symbol->function, module, symbol->name));
    *function = symbol->function;
    return CUDA_SUCCESS;
}

CUresult route_variable(const void *host, CUdeviceptr *address, size_t *size)
{
    route_symbol *symbol = find(VARIABLE, host);
    if (!symbol)
        return CUDA_ERROR_NOT_FOUND;
    ROUTE_TRY(load());
    return cuModuleGetGlobal(address, size, module, symbol->name);
}

// Prints to standard error and exits, from a constructor or while the program ends.
[[noreturn]] static void fail(const char *what)
{
    fflush(nullptr);
    fprintf(stderr, "driver_route: %s\n", what);
    _exit(1);
}

static void add(route_kind kind, const void *host, const char *name)
{
    if (symbol_count == sizeof symbols / sizeof *symbols)
        fail("too many symbols");
    symbols[symbol_count++] = {kind, host, name, nullptr};
}

extern "C" void **__cudaRegisterFatBinary(void *from)
{
    if (wrapper)
        fail("a program of the suite has one module");
    wrapper = (const route_wrapper *)from;
    return (void **)from;
}

extern "C" void __cudaRegisterFatBinaryEnd(void **)
{
}

// Output of kernels appears when their context is waited for. After an error the context is not used any
// more.
extern "C" void __cudaUnregisterFatBinary(void **)
{
    if (!route_context || cuCtxSynchronize())
        return;
    if (module && cuModuleUnload(module))
        fail("the module cannot be unloaded");
    if (cuCtxDestroy(route_context))
        fail("the context cannot be destroyed");
    route_context = nullptr;
}

extern "C" void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, void *,
                                       void *, void *, void *, int *)
{
    add(KERNEL, host, name);
}

extern "C" void __cudaRegisterVar(void **, char *host, char *, const char *name, int, size_t, int, int)
{
    add(VARIABLE, host, name);
}

extern "C" void __cudaRegisterManagedVar(void **, void **host, char *, const char *name, int, size_t, int,
                                         int)
{
    add(MANAGED, host, name);
}

// Called before the host uses a managed variable, which it does through a pointer.
static CUresult place_managed()
{
    ROUTE_TRY(load());
    for (int i = 0; i < symbol_count; i++) {
        CUdeviceptr address;
        if (symbols[i].kind != MANAGED)
            continue;
        ROUTE_TRY(cuModuleGetGlobal(&address, nullptr, module, symbols[i].name));
        *(CUdeviceptr *)symbols[i].host = address;
    }
    return CUDA_SUCCESS;
}

extern "C" char __cudaInitModule(void **)
{
    CUresult result = route_enter();
    return route_done(result ? result : place_managed()) == cudaSuccess;
}

// Launches. A kernel's handle is its CUfunction.

struct route_launch {
    CUfunction function;
    dim3 grid, block;
    unsigned shared;
    CUstream stream;
};

static thread_local route_launch configuration;

extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    configuration = {nullptr, grid, block, (unsigned)shared, stream};
    return 0;
}

extern "C" cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *(CUstream *)stream = configuration.stream;
    return cudaSuccess;
}

#define SHAPE(l) l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z, l.shared, l.stream

static CUresult launch_plain(const route_launch &l, void **arguments)
{
    return cuLaunchKernel(l.function, SHAPE(l), arguments, nullptr);
}

static CUresult launch_ex(const route_launch &l, void **arguments)
{
    CUlaunchConfig config = {SHAPE(l), nullptr, 0};
    return cuLaunchKernelEx(&config, l.function, arguments, nullptr);
}

// Lays the arguments out as the kernel's parameters lie in memory.
static CUresult pack(CUfunction function, void **arguments, char *buffer, size_t *bytes)
{
    size_t offset, size;
    *bytes = 0;
    for (size_t i = 0; cuFuncGetParamInfo(function, i, &offset, &size) == CUDA_SUCCESS; i++) {
        if (offset + size > 4096)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(buffer + offset, arguments[i], size);
        *bytes = offset + size;
    }
    return CUDA_SUCCESS;
}

static CUresult launch_packed(const route_launch &l, void **arguments)
{
    char buffer[4096];
    size_t bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    ROUTE_TRY(pack(l.function, arguments, buffer, &bytes));
    return cuLaunchKernel(l.function, SHAPE(l), nullptr, extra);
}

// The calls of the first CUDA, as far as they suffice.
static CUresult launch_legacy(const route_launch &l, void **arguments)
{
    char buffer[4096];
    size_t bytes;
    if (l.grid.z != 1 || l.stream)
        return launch_plain(l, arguments);
    ROUTE_TRY(pack(l.function, arguments, buffer, &bytes));
    ROUTE_TRY(cuFuncSetBlockShape(l.function, (int)l.block.x, (int)l.block.y, (int)l.block.z));
    ROUTE_TRY(cuFuncSetSharedSize(l.function, l.shared));
    ROUTE_TRY(cuParamSetSize(l.function, (unsigned)bytes));
    ROUTE_TRY(cuParamSetv(l.function, 0, buffer, (unsigned)bytes));
    return cuLaunchGrid(l.function, (int)l.grid.x, (int)l.grid.y);
}

static CUresult (*const launch_forms[])(const route_launch &, void **) = {launch_plain, launch_packed,
                                                                          launch_ex, launch_legacy};

static CUresult launch_next(const route_launch &l, void **arguments)
{
    return launch_forms[launches++ % (sizeof launch_forms / sizeof *launch_forms)](l, arguments);
}

static CUresult launch_cooperative(const void *host, route_launch l, void **arguments)
{
    ROUTE_TRY(route_kernel(host, &l.function));
    return cuLaunchCooperativeKernel(l.function, SHAPE(l), arguments);
}

static CUresult launch_with(const cudaLaunchConfig_t *c, const void *host, void **arguments)
{
    route_launch l = {nullptr, c->gridDim, c->blockDim, (unsigned)c->dynamicSmemBytes, c->stream};
    CUlaunchConfig config = {SHAPE(l), (CUlaunchAttribute *)c->attrs, c->numAttrs};
    ROUTE_TRY(route_kernel(host, &l.function));
    return cuLaunchKernelEx(&config, l.function, arguments, nullptr);
}

MAP(__cudaGetKernel, (cudaKernel_t * kernel, const void *host), route_kernel(host, (CUfunction *)kernel))
MAP(__cudaLaunchKernel,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
    launch_next({(CUfunction)kernel, grid, block, (unsigned)shared, stream}, arguments))
MAP(cudaLaunchCooperativeKernel,
    (const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
    launch_cooperative(host, {nullptr, grid, block, (unsigned)shared, stream}, arguments))
MAP(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *host, void **arguments),
    launch_with(config, host, arguments))
MAP(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
    cuLaunchHostFunc(stream, function, data))

// Kernels.

static CUresult get_attributes(cudaFuncAttributes *a, const void *host)
{
    CUfunction f;
    int shared, constant, local;
    *a = {};
    ROUTE_TRY(route_kernel(host, &f));
    ROUTE_TRY(cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    ROUTE_TRY(cuFuncGetAttribute(&constant, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, f));
    ROUTE_TRY(cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f));
    a->sharedSizeBytes = (size_t)shared;
    a->constSizeBytes = (size_t)constant;
    a->localSizeBytes = (size_t)local;
    ROUTE_TRY(cuFuncGetAttribute(&a->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    ROUTE_TRY(cuFuncGetAttribute(&a->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    ROUTE_TRY(cuFuncGetAttribute(&a->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    return cuFuncGetAttribute(&a->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, f);
}

static CUresult set_attribute(const void *host, cudaFuncAttribute attribute, int value)
{
    CUfunction f;
    ROUTE_TRY(route_kernel(host, &f));
    return cuFuncSetAttribute(f, (CUfunction_attribute)attribute, value);
}

static CUresult count_blocks(int *blocks, const void *host, int threads, size_t shared, unsigned flags)
{
    CUfunction f;
    ROUTE_TRY(route_kernel(host, &f));
    return flags ? cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, flags)
                 : cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}

MAP(cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void *host),
    get_attributes(attributes, host))
MAP(cudaFuncSetAttribute, (const void *host, cudaFuncAttribute attribute, int value),
    set_attribute(host, attribute, value))
MAP(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    (int *blocks, const void *host, int threads, size_t shared, unsigned flags),
    count_blocks(blocks, host, threads, shared, flags))

// Errors and the device.

extern "C" cudaError_t cudaGetLastError()
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

extern "C" const char *cudaGetErrorName(cudaError_t error)
{
    const char *name;
    return cuGetErrorName((CUresult)error, &name) ? "no name" : name;
}

extern "C" const char *cudaGetErrorString(cudaError_t error)
{
    const char *text;
    return cuGetErrorString((CUresult)error, &text) ? "no text" : text;
}

extern "C" cudaError_t cudaPeekAtLastError()
{
    return last_error;
}

MAP(cudaGetDevice, (int *ordinal), cuCtxGetDevice(ordinal))
MAP(cudaGetDeviceCount, (int *count), cuDeviceGetCount(count))
MAP(cudaSetDevice, (int ordinal), ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS)
MAP(cudaDeviceGetAttribute, (int *value, cudaDeviceAttr attribute, int),
    cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device))
MAP(cudaDeviceSetLimit, (cudaLimit limit, size_t value), cuCtxSetLimit((CUlimit)limit, value))
MAP(cudaDeviceSynchronize, (), cuCtxSynchronize())
