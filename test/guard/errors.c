// SPDX-License-Identifier: MIT
// Programs with one memory error each, and their twins without it: `errors bad NAME`, `errors good NAME`,
// `errors list`. A case is one function, in which only the error depends on `bad`.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

enum { SIZE = 1000, PITCHED = 64, ROWS = 5 };

static char host[1 << 16];

static CUdeviceptr plain(size_t size)
{
    CUdeviceptr p;
    NEED(d.cuMemAlloc_v2(&p, size));
    return p;
}

static void release(CUdeviceptr p)
{
    NEED(d.cuMemFree_v2(p));
}

static void *pinned(size_t size)
{
    void *p;
    NEED(d.cuMemHostAlloc(&p, size, 0));
    return p;
}

// Transfers that run past the end.

static void htod(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemcpyHtoD_v2(p, host, SIZE + bad));
    release(p);
}

static void htod_thread_stream(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemcpyHtoD_v2_ptds(p + 8, host, SIZE - 8 + bad));
    release(p);
}

static void htod_async(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemcpyHtoDAsync_v2(p, host, SIZE + 4 * bad, NULL));
    NEED(d.cuCtxSynchronize());
    release(p);
}

static void dtoh(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemcpyDtoH_v2(host, p + 1, SIZE - 1 + bad));
    release(p);
}

static void dtoh_pinned(int bad)
{
    CUdeviceptr p = plain(2 * SIZE);
    void *h = pinned(SIZE);
    TRY(d.cuMemcpyDtoH_v2(h, p, SIZE + bad));
    NEED(d.cuMemFreeHost(h));
    release(p);
}

static void dtod_source(int bad)
{
    CUdeviceptr p = plain(SIZE), q = plain(2 * SIZE);
    TRY(d.cuMemcpyDtoD_v2(q, p, SIZE + bad));
    release(p), release(q);
}

static void dtod_destination(int bad)
{
    CUdeviceptr p = plain(SIZE), q = plain(2 * SIZE);
    TRY(d.cuMemcpyDtoDAsync_v2(p, q, SIZE + 100 * bad, NULL));
    NEED(d.cuCtxSynchronize());
    release(p), release(q);
}

static void unified(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemcpy(p, (uintptr_t)host, SIZE + bad));
    release(p);
}

static void managed(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocManaged(&p, SIZE, CU_MEM_ATTACH_GLOBAL));
    TRY(d.cuMemcpyHtoD_v2(p, host, SIZE + bad));
    release(p);
}

static void pool(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync(&p, SIZE, NULL));
    TRY(d.cuMemcpyHtoDAsync_v2(p, host, SIZE + bad, NULL));
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuCtxSynchronize());
}

static void peer(int bad)
{
    CUdeviceptr p = plain(SIZE), q = plain(2 * SIZE);
    TRY(d.cuMemcpyPeer(p, context, q, context, SIZE + bad));
    release(p), release(q);
}

static void rows(int bad)
{
    CUdeviceptr p = plain(PITCHED * ROWS);
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = host,
                       .srcPitch = PITCHED,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = p,
                       .dstPitch = PITCHED,
                       .WidthInBytes = PITCHED - 8,
                       .Height = ROWS + bad};
    TRY(d.cuMemcpy2D_v2(&c));
    release(p);
}

static void rows_pitched(int bad)
{
    CUdeviceptr p;
    size_t pitch;
    NEED(d.cuMemAllocPitch_v2(&p, &pitch, PITCHED, ROWS, 4));
    TRY(d.cuMemsetD2D32_v2(p, pitch, 7, PITCHED / 4, ROWS + bad));
    release(p);
}

static void slices(int bad)
{
    CUdeviceptr p = plain(PITCHED * ROWS * 3);
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = p,
                       .srcPitch = PITCHED,
                       .srcHeight = ROWS,
                       .srcZ = (size_t)bad,
                       .dstMemoryType = CU_MEMORYTYPE_HOST,
                       .dstHost = host,
                       .dstPitch = PITCHED,
                       .dstHeight = ROWS,
                       .WidthInBytes = PITCHED,
                       .Height = ROWS,
                       .Depth = 3};
    TRY(d.cuMemcpy3D_v2(&c));
    release(p);
}

static void batch(int bad)
{
    CUdeviceptr p = plain(SIZE), q = plain(SIZE), to[2] = {p, q},
                from[2] = {(uintptr_t)host, (uintptr_t)host};
    size_t bytes[2] = {SIZE, SIZE + (size_t)bad}, which = 0;
    CUmemcpyAttributes a = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUstream stream;
    NEED(d.cuStreamCreate(&stream, 0));
    TRY(d.cuMemcpyBatchAsync_v2(to, from, bytes, 2, &a, &which, 1, stream));
    NEED(d.cuStreamSynchronize(stream));
    release(p), release(q);
}

static void memset_bytes(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemsetD8_v2(p, 1, SIZE + bad));
    release(p);
}

static void memset_words(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemsetD32Async(p, 1, SIZE / 4 + bad, NULL));
    NEED(d.cuCtxSynchronize());
    release(p);
}

static void memset_shorts(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemsetD16_v2(p + 2, 1, SIZE / 2 - 1 + bad));
    release(p);
}

static void variable(int bad)
{
    static const char text[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b8 table[100];\n";
    CUmodule module;
    CUdeviceptr p;
    size_t size;
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetGlobal_v2(&p, &size, module, "table"));
    TRY(d.cuMemcpyHtoD_v2(p, host, 100 + bad));
    NEED(d.cuModuleUnload(module));
}

// Two adjacent mappings may be copied as one; what lies behind may not.
static void mapped(int bad)
{
    enum { PIECE = 2 << 20 };
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr p;
    CUmemGenericAllocationHandle piece[2];
    NEED(d.cuMemAddressReserve(&p, 4 * PIECE, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        NEED(d.cuMemCreate(&piece[i], PIECE, &prop, 0));
        NEED(d.cuMemMap(p + (size_t)i * PIECE, PIECE, 0, piece[i], 0));
    }
    NEED(d.cuMemSetAccess(p, 2 * PIECE, &access, 1));
    TRY(d.cuMemsetD8_v2(p + PIECE - 100, 1, PIECE + 100 + bad));
    NEED(d.cuMemUnmap(p, 2 * PIECE));
    NEED(d.cuMemRelease(piece[0]));
    NEED(d.cuMemRelease(piece[1]));
    NEED(d.cuMemAddressFree(p, 4 * PIECE));
}

static void array(int bad)
{
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR desc = {.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    NEED(d.cuArrayCreate_v2(&a, &desc));
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = host,
                       .srcPitch = 64,
                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = a,
                       .dstY = (size_t)bad,
                       .WidthInBytes = 64,
                       .Height = 4};
    TRY(d.cuMemcpy2D_v2(&c));
    NEED(d.cuArrayDestroy(a));
}

static void graph_copy(int bad)
{
    CUdeviceptr p = plain(SIZE);
    CUgraph graph;
    CUgraphNode node;
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = host,
                       .srcPitch = 2 * SIZE,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = p,
                       .dstPitch = 2 * SIZE,
                       .WidthInBytes = SIZE + (size_t)bad,
                       .Height = 1,
                       .Depth = 1};
    NEED(d.cuGraphCreate(&graph, 0));
    TRY(d.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &c, context));
    NEED(d.cuGraphDestroy(graph));
    release(p);
}

static void graph_memset(int bad)
{
    CUdeviceptr p = plain(SIZE);
    CUgraph graph;
    CUgraphNode node;
    CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .elementSize = 4, .width = SIZE / 4 + (size_t)bad, .height = 1};
    NEED(d.cuGraphCreate(&graph, 0));
    TRY(d.cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
    NEED(d.cuGraphDestroy(graph));
    release(p);
}

// Transfers that start outside.

static void behind(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemcpyHtoD_v2(p + (bad ? SIZE + 8 : SIZE - 8), host, 8));
    release(p);
}

// A buffer of whole pages has no buffer of ours before it.
static void before(int bad)
{
    CUdeviceptr p = plain(2 << 20);
    TRY(d.cuMemcpyDtoH_v2(host, p - (bad ? 16 : 0), 32));
    release(p);
}

static void wild(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemcpyDtoH_v2(host, bad ? 0x12345678000 : p, 16));
    release(p);
}

static void null_pointer(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemsetD8_v2(bad ? 0 : p, 1, 16));
    release(p);
}

static void rows_to_null(int bad)
{
    CUdeviceptr p = plain(PITCHED * ROWS);
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = host,
                       .srcPitch = PITCHED,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = bad ? 0 : p,
                       .dstPitch = PITCHED,
                       .WidthInBytes = PITCHED,
                       .Height = ROWS};
    TRY(d.cuMemcpy2D_v2(&c));
    release(p);
}

// Transfers with memory that is gone.

static void freed(int bad)
{
    CUdeviceptr p = plain(SIZE);
    if (bad)
        release(p);
    TRY(d.cuMemcpyHtoD_v2(p, host, 16));
    if (!bad)
        release(p);
}

static void freed_inside(int bad)
{
    CUdeviceptr p = plain(SIZE);
    if (bad)
        release(p);
    TRY(d.cuMemsetD8_v2(p + 500, 0, 10));
    if (!bad)
        release(p);
}

static void freed_in_order(int bad)
{
    CUdeviceptr p;
    CUstream stream;
    NEED(d.cuStreamCreate(&stream, 0));
    NEED(d.cuMemAllocAsync(&p, SIZE, stream));
    if (bad)
        NEED(d.cuMemFreeAsync(p, stream));
    TRY(d.cuMemcpyDtoHAsync_v2(host, p, SIZE, stream));
    if (!bad)
        NEED(d.cuMemFreeAsync(p, stream));
    NEED(d.cuStreamSynchronize(stream));
}

// A context ends with its memory, but not with that of a pool, which belongs to the device.
static void freed_with_context(int bad)
{
    CUcontext other;
    CUdeviceptr p;
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    if (bad)
        p = plain(SIZE);
    else
        NEED(d.cuMemAllocAsync(&p, SIZE, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuCtxDestroy_v2(other));
    NEED(d.cuCtxSetCurrent(context));
    TRY(d.cuMemsetD8_v2(p, 1, SIZE));
    if (!bad)
        release(p);
}

// The last detach ends a context with its memory.
static void freed_by_detach(int bad)
{
    CUcontext other, same;
    CUdeviceptr p;
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    p = plain(SIZE);
    NEED(d.cuCtxAttach(&same, 0));
    NEED(d.cuCtxDetach(other));
    if (bad)
        NEED(d.cuCtxDetach(same));
    NEED(d.cuCtxSetCurrent(context));
    TRY(d.cuMemsetD8_v2(p, 1, SIZE));
}

// Addresses of managed memory return to the system when it is freed, and may become ordinary memory.
static void freed_managed(int bad)
{
    enum { BYTES = 64 << 20, PART = 1 << 16 };
    CUdeviceptr m, p = plain(SIZE);
    NEED(d.cuMemAllocManaged(&m, BYTES, CU_MEM_ATTACH_GLOBAL));
    NEED(d.cuMemFree_v2(m));
    void *at = (void *)(uintptr_t)m;
    if (!bad)
        at = mmap(at, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TRY(d.cuMemcpyHtoD_v2(p, at, SIZE));
    release(p);
}

static void unloaded(int bad)
{
    static const char text[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b8 table[100];\n";
    CUmodule module;
    CUdeviceptr p;
    size_t size;
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetGlobal_v2(&p, &size, module, "table"));
    if (bad)
        NEED(d.cuModuleUnload(module));
    TRY(d.cuMemcpyDtoH_v2(host, p, size));
    if (!bad)
        NEED(d.cuModuleUnload(module));
}

static void destroyed_array(int bad)
{
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR desc = {.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    NEED(d.cuArrayCreate_v2(&a, &desc));
    if (bad)
        NEED(d.cuArrayDestroy(a));
    TRY(d.cuMemcpyAtoH_v2(host, a, 0, 64));
    if (!bad)
        NEED(d.cuArrayDestroy(a));
}

// Frees.

static void twice(int bad)
{
    CUdeviceptr p = plain(SIZE), q = plain(SIZE);
    release(p);
    TRY(d.cuMemFree_v2(bad ? p : q));
    if (bad)
        release(q);
}

static void twice_host(int bad)
{
    void *p = pinned(SIZE), *q = pinned(SIZE);
    NEED(d.cuMemFreeHost(p));
    TRY(d.cuMemFreeHost(bad ? p : q));
    if (bad)
        NEED(d.cuMemFreeHost(q));
}

static void twice_in_order(int bad)
{
    CUdeviceptr p, q;
    NEED(d.cuMemAllocAsync(&p, SIZE, NULL));
    NEED(d.cuMemAllocAsync(&q, SIZE, NULL));
    NEED(d.cuMemFreeAsync(p, NULL));
    TRY(d.cuMemFreeAsync(bad ? p : q, NULL));
    if (bad)
        NEED(d.cuMemFreeAsync(q, NULL));
}

static void twice_registered(int bad)
{
    NEED(d.cuMemHostRegister_v2(host, 4096, 0));
    NEED(d.cuMemHostUnregister(host));
    if (!bad)
        NEED(d.cuMemHostRegister_v2(host, 4096, 0));
    TRY(d.cuMemHostUnregister(host));
}

static void twice_array(int bad)
{
    CUarray a, b;
    CUDA_ARRAY_DESCRIPTOR desc = {.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    NEED(d.cuArrayCreate_v2(&a, &desc));
    NEED(d.cuArrayCreate_v2(&b, &desc));
    NEED(d.cuArrayDestroy(a));
    TRY(d.cuArrayDestroy(bad ? a : b));
    if (bad)
        NEED(d.cuArrayDestroy(b));
}

static void free_inside(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemFree_v2(p + 256 * (unsigned)bad));
    if (bad)
        release(p);
}

static void free_wild(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemFree_v2(bad ? 0x12345678000 : p));
    if (bad)
        release(p);
}

static void free_host_variable(int bad)
{
    CUdeviceptr p = plain(SIZE);
    TRY(d.cuMemFree_v2(bad ? (uintptr_t)host : p));
    if (bad)
        release(p);
}

static void free_pinned_as_device(int bad)
{
    void *p = pinned(SIZE);
    if (bad)
        (void)d.cuMemFree_v2((uintptr_t)p);
    NEED(d.cuMemFreeHost(p));
}

static void free_device_as_pinned(int bad)
{
    CUdeviceptr p = plain(SIZE);
    if (bad)
        (void)d.cuMemFreeHost((void *)(uintptr_t)p);
    release(p);
}

static void unregister_pinned(int bad)
{
    void *p = pinned(SIZE);
    if (bad)
        (void)d.cuMemHostUnregister(p);
    NEED(d.cuMemFreeHost(p));
}

// Leaks.

static void leak(int bad)
{
    CUdeviceptr p = plain(SIZE);
    if (!bad)
        release(p);
}

static void leak_pinned(int bad)
{
    void *p = pinned(SIZE);
    if (!bad)
        NEED(d.cuMemFreeHost(p));
}

static void leak_in_order(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync(&p, SIZE, NULL));
    if (!bad)
        NEED(d.cuMemFreeAsync(p, NULL));
}

static void leak_managed(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocManaged(&p, SIZE, CU_MEM_ATTACH_GLOBAL));
    if (!bad)
        release(p);
}

static void leak_array(int bad)
{
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR desc = {.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    NEED(d.cuArrayCreate_v2(&a, &desc));
    if (!bad)
        NEED(d.cuArrayDestroy(a));
}

static void leak_with_context(int bad)
{
    CUcontext other;
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    CUdeviceptr p = plain(SIZE);
    if (!bad)
        release(p);
    NEED(d.cuCtxDestroy_v2(other));
}

static void leak_with_detach(int bad)
{
    CUcontext other;
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    CUdeviceptr p = plain(SIZE);
    if (!bad)
        release(p);
    NEED(d.cuCtxDetach(other));
}

// Memory that a process has when it forks is not the child's to free.
static void leak_beside_a_child(int bad)
{
    CUdeviceptr p = plain(SIZE);
    pid_t child = fork();
    if (!child)
        exit(0);
    waitpid(child, NULL, 0);
    if (!bad)
        release(p);
}

// Faults in kernels.

static const char store[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                            ".visible .entry store(.param .u64 at)\n{\n"
                            "\t.reg .b64 %rd<2>;\n"
                            "\tld.param.u64 %rd1, [at];\n"
                            "\tst.global.u32 [%rd1], 7;\n"
                            "\tret;\n}\n";

static void run_store(CUdeviceptr at, int bad)
{
    CUmodule module;
    CUfunction f;
    void *arguments[] = {&at};
    NEED(d.cuModuleLoadData(&module, store));
    NEED(d.cuModuleGetFunction(&f, module, "store"));
    NEED(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    TRY(d.cuCtxSynchronize());
}

static void kernel_null(int bad)
{
    CUdeviceptr p = plain(SIZE);
    run_store(bad ? 16 : p, bad);
}

static void kernel_misaligned(int bad)
{
    CUdeviceptr p = plain(SIZE);
    run_store(p + 2 * (unsigned)bad, bad);
}

static void kernel_wild(int bad)
{
    CUdeviceptr p = plain(SIZE);
    run_store(bad ? 0x12345678000 : p, bad);
}

static const char trapping[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry check(.param .u32 wrong)\n{\n"
                               "\t.reg .b32 %r<2>;\n\t.reg .pred %p<2>;\n"
                               "\tld.param.u32 %r1, [wrong];\n"
                               "\tsetp.ne.u32 %p1, %r1, 0;\n"
                               "\t@%p1 trap;\n"
                               "\tret;\n}\n";

static void kernel_trap(int bad)
{
    CUmodule module;
    CUfunction f;
    void *arguments[] = {&bad};
    NEED(d.cuModuleLoadData(&module, trapping));
    NEED(d.cuModuleGetFunction(&f, module, "check"));
    NEED(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    TRY(d.cuCtxSynchronize());
}

// Traits: leak: needs --leak-check; vague: on a GPU the type may be wild-access.
static const struct cases_row cases[] = {
    CASE(htod, "heap-buffer-overflow", ""),
    CASE(htod_thread_stream, "heap-buffer-overflow", ""),
    CASE(htod_async, "heap-buffer-overflow", ""),
    CASE(dtoh, "heap-buffer-overflow", ""),
    CASE(dtoh_pinned, "heap-buffer-overflow", ""),
    CASE(dtod_source, "heap-buffer-overflow", ""),
    CASE(dtod_destination, "heap-buffer-overflow", ""),
    CASE(unified, "heap-buffer-overflow", ""),
    CASE(managed, "heap-buffer-overflow", ""),
    CASE(pool, "heap-buffer-overflow", ""),
    CASE(peer, "heap-buffer-overflow", ""),
    CASE(rows, "heap-buffer-overflow", ""),
    CASE(rows_pitched, "heap-buffer-overflow", ""),
    CASE(slices, "heap-buffer-overflow", ""),
    CASE(batch, "heap-buffer-overflow", ""),
    CASE(memset_bytes, "heap-buffer-overflow", ""),
    CASE(memset_words, "heap-buffer-overflow", ""),
    CASE(memset_shorts, "heap-buffer-overflow", ""),
    CASE(variable, "global-buffer-overflow", ""),
    CASE(mapped, "heap-buffer-overflow", ""),
    CASE(array, "heap-buffer-overflow", ""),
    CASE(graph_copy, "heap-buffer-overflow", ""),
    CASE(graph_memset, "heap-buffer-overflow", ""),
    CASE(behind, "heap-buffer-overflow", ""),
    CASE(before, "heap-buffer-underflow", ""),
    CASE(wild, "wild-access", ""),
    CASE(null_pointer, "null-dereference", ""),
    CASE(rows_to_null, "null-dereference", ""),
    CASE(freed, "heap-use-after-free", ""),
    CASE(freed_inside, "heap-use-after-free", ""),
    CASE(freed_in_order, "heap-use-after-free", ""),
    CASE(freed_with_context, "heap-use-after-free", ""),
    CASE(freed_by_detach, "heap-use-after-free", ""),
    CASE(freed_managed, "heap-use-after-free", ""),
    CASE(unloaded, "heap-use-after-free", ""),
    CASE(destroyed_array, "heap-use-after-free", ""),
    CASE(twice, "double-free", ""),
    CASE(twice_host, "double-free", ""),
    CASE(twice_in_order, "double-free", ""),
    CASE(twice_registered, "double-free", ""),
    CASE(twice_array, "double-free", ""),
    CASE(free_inside, "bad-free", ""),
    CASE(free_wild, "bad-free", ""),
    CASE(free_host_variable, "bad-free", ""),
    CASE(free_pinned_as_device, "alloc-dealloc-mismatch", ""),
    CASE(free_device_as_pinned, "alloc-dealloc-mismatch", ""),
    CASE(unregister_pinned, "alloc-dealloc-mismatch", ""),
    CASE(leak, "memory-leak", "leak"),
    CASE(leak_pinned, "memory-leak", "leak"),
    CASE(leak_in_order, "memory-leak", "leak"),
    CASE(leak_managed, "memory-leak", "leak"),
    CASE(leak_array, "memory-leak", "leak"),
    CASE(leak_with_context, "memory-leak", "leak"),
    CASE(leak_with_detach, "memory-leak", "leak"),
    CASE(leak_beside_a_child, "memory-leak", "leak"),
    CASE(kernel_null, "null-dereference", "vague"),
    CASE(kernel_misaligned, "misaligned-address", "vague"),
    CASE(kernel_wild, "wild-access", "vague"),
    CASE(kernel_trap, "kernel-fault", "vague"),
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
