// SPDX-License-Identifier: MIT
// Three devices with 64 MiB each, requested from the CPU device by the options of test/cpu/devices.sh: what
// each has for itself, and what they do together. Returns 0, or 1 after printing what was wrong.
#include <unistd.h>

#include "driver_check.h"

enum { DEVICES = 3, MIB = 1 << 20, N = 1000 };

static CUcontext contexts[DEVICES];

static void use(int device)
{
    TRY(cuCtxSetCurrent(contexts[device]));
}

static CUdeviceptr alloc_on(int device, size_t size)
{
    use(device);
    return check_zeroed(size);
}

static int ordinal(CUdeviceptr p)
{
    int n = -9;
    TRY(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    return n;
}

static size_t room(int device)
{
    size_t n;
    use(device);
    TRY(cuMemGetInfo_v2(&n, NULL));
    return n;
}

static void names(void)
{
    int count = 0, bus;
    CUdevice device;
    CUuuid uuid[DEVICES];
    char id[DEVICES][20];
    TRY(cuDeviceGetCount(&count));
    EQUAL(count, DEVICES);
    for (int i = 0; i < DEVICES; i++) {
        TRY(cuDeviceGet(&device, i));
        TRY(cuDeviceGetUuid_v2(&uuid[i], device));
        TRY(cuDeviceGetPCIBusId(id[i], sizeof id[i], device));
        TRY(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
        EQUAL(bus, strtoul(id[i] + 5, NULL, 16));
        TRY(cuDeviceGetByPCIBusId(&device, id[i]));
        EQUAL(device, i);
        for (int j = 0; j < i; j++)
            CHECK(memcmp(&uuid[i], &uuid[j], sizeof *uuid) != 0 && strcmp(id[i], id[j]) != 0);
    }
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, DEVICES));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:03:00.0"));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&contexts[0], DEVICES));
}

static void primary_contexts(void)
{
    CUcontext again;
    CUdevice device;
    unsigned flags;
    int active[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        TRY(cuDevicePrimaryCtxRetain(&contexts[i], i));
        use(i);
        TRY(cuCtxGetDevice(&device));
        EQUAL(device, i);
    }
    CHECK(contexts[0] != contexts[1] && contexts[1] != contexts[2] && contexts[0] != contexts[2]);
    TRY(cuDevicePrimaryCtxRelease_v2(1));
    for (int i = 0; i < DEVICES; i++) {
        TRY(cuDevicePrimaryCtxGetState(i, &flags, &active[i]));
        EQUAL(active[i], i != 1);
    }
    use(1);
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    TRY(cuDevicePrimaryCtxRetain(&again, 1));
    CHECK(again == contexts[1]);
    TRY(cuCtxSynchronize());
}

static void memory(void)
{
    CUdeviceptr p[DEVICES], more;
    size_t before[DEVICES];
    CUcontext owner;
    for (int i = 0; i < DEVICES; i++)
        before[i] = room(i);
    // Each has its own 64 MiB.
    for (int i = 0; i < DEVICES; i++) {
        p[i] = alloc_on(i, 40 * MIB);
        EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&more, 40 * MIB));
        EQUAL(ordinal(p[i]), i);
        TRY(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p[i]));
        CHECK(owner == contexts[i]);
        for (int j = 0; j < DEVICES; j++)
            EQUAL(before[j] - room(j), j <= i ? 40 * MIB : 0);
    }
    // Whichever context is current.
    use(0);
    for (int i = 0; i < DEVICES; i++)
        TRY(cuMemFree_v2(p[i]));
    for (int i = 0; i < DEVICES; i++)
        EQUAL(before[i], room(i));
}

static void peers(void)
{
    int can = -1, value = -1;
    unsigned what = 0;
    CUatomicOperation add = CU_ATOMIC_OPERATION_INTEGER_ADD;
    TRY(cuDeviceCanAccessPeer(&can, 0, 1));
    EQUAL(can, 1);
    TRY(cuDeviceCanAccessPeer(&can, 1, 1));
    EQUAL(can, 0);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, DEVICES));
    TRY(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2, 1));
    EQUAL(value, 1);
    EXPECT(CUDA_ERROR_INVALID_DEVICE,
           cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&value, 99, 2, 1));
    TRY(cuDeviceGetP2PAtomicCapabilities(&what, &add, 1, 0, 2));
    CHECK(what & CU_ATOMIC_CAPABILITY_SCALAR_32);

    use(0);
    EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(contexts[1], 1));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(NULL, 0));
    EXPECT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(contexts[0], 0));
    TRY(cuCtxEnablePeerAccess(contexts[1], 0));
    EXPECT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(contexts[1], 0));
    TRY(cuCtxEnablePeerAccess(contexts[2], 0));
    TRY(cuCtxDisablePeerAccess(contexts[1]));
    EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    // Access is one-directional.
    use(2);
    EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[0]));
    use(0);
    TRY(cuCtxDisablePeerAccess(contexts[2]));
}

static unsigned char pattern(size_t i, int salt)
{
    return (unsigned char)(i * 7 + (size_t)salt);
}

static void fill(CUdeviceptr p, int salt)
{
    unsigned char bytes[N];
    for (size_t i = 0; i < N; i++)
        bytes[i] = pattern(i, salt);
    TRY(cuMemcpyHtoD_v2(p, bytes, N));
}

static bool holds(CUdeviceptr p, int salt)
{
    unsigned char bytes[N];
    size_t n = 0;
    TRY(cuMemcpyDtoH_v2(bytes, p, N));
    while (n < N && bytes[n] == pattern(n, salt))
        n++;
    return n == N;
}

static void copies(void)
{
    CUstream s;
    CUdeviceptr p[DEVICES];
    for (int i = 0; i < DEVICES; i++)
        p[i] = alloc_on(i, N);
    use(0);
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    fill(p[0], 1);
    TRY(cuMemcpyPeer(p[1], contexts[1], p[0], contexts[0], N));
    CHECK(holds(p[1], 1));
    fill(p[1], 2);
    TRY(cuMemcpyPeerAsync(p[2], contexts[2], p[1], contexts[1], N, s));
    TRY(cuStreamSynchronize(s));
    CHECK(holds(p[2], 2));
    fill(p[2], 3);
    TRY(cuMemcpyDtoD_v2(p[0], p[2], N));
    CHECK(holds(p[0], 3));
    CUDA_MEMCPY3D_PEER c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = p[0],
                            .srcContext = contexts[0],
                            .srcPitch = N / 10,
                            .srcHeight = 10,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = p[1],
                            .dstContext = contexts[1],
                            .dstPitch = N / 10,
                            .dstHeight = 10,
                            .WidthInBytes = N / 10,
                            .Height = 10,
                            .Depth = 1};
    TRY(cuMemcpy3DPeer(&c));
    CHECK(holds(p[1], 3));
    fill(p[0], 4);
    TRY(cuMemcpy3DPeerAsync(&c, s));
    TRY(cuStreamSynchronize(s));
    CHECK(holds(p[1], 4));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(p[1], (CUcontext)(uintptr_t)77, p[0], contexts[0], N));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(p[1], contexts[1], p[0], contexts[0], N + 1));
    TRY(cuStreamDestroy_v2(s));
    for (int i = 0; i < DEVICES; i++)
        TRY(cuMemFree_v2(p[i]));
}

// Kernels of one device in the memory of another, and modules of each.
static void kernels(void)
{
    enum { COUNT = 256 };
    CUmodule module[2];
    CUstream s[2];
    CUevent e;
    float a[COUNT], b[COUNT], c[COUNT];
    unsigned n = COUNT;
    CUdeviceptr in[2], out, variable[2];
    for (int i = 0; i < 2; i++) {
        in[i] = alloc_on(i, sizeof a);
        module[i] = check_module("basic.ptx");
        TRY(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        TRY(cuModuleGetGlobal_v2(&variable[i], NULL, module[i], "counter"));
        EQUAL(ordinal(variable[i]), i);
    }
    CHECK(variable[0] != variable[1]);
    out = alloc_on(2, sizeof a);
    for (unsigned i = 0; i < COUNT; i++) {
        a[i] = (float)i;
        b[i] = (float)(1000 * i);
    }
    use(0);
    TRY(cuMemcpyHtoD_v2(in[0], a, sizeof a));
    TRY(cuMemcpyHtoD_v2(in[1], b, sizeof b));
    TRY(cuCtxEnablePeerAccess(contexts[1], 0));
    TRY(cuCtxEnablePeerAccess(contexts[2], 0));
    CUfunction add = check_function(module[0], "add");
    TRY(LAUNCH(add, 2, 128, 0, s[0], &in[0], &in[1], &out, &n));
    // A stream and an event belong to one device; others may wait for the event.
    EXPECT(CUDA_ERROR_INVALID_HANDLE, LAUNCH(add, 2, 128, 0, s[1], &in[0], &in[1], &out, &n));
    TRY(cuEventCreate(&e, 0));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(e, s[1]));
    TRY(cuEventRecord(e, s[0]));
    use(1);
    TRY(cuStreamWaitEvent(s[1], e, 0));
    TRY(cuMemcpyDtoHAsync_v2(c, out, sizeof c, s[1]));
    TRY(cuStreamSynchronize(s[1]));
    for (unsigned i = 0; i < COUNT; i++)
        check_need(CHECK(c[i] == a[i] + b[i]));
    use(0);
    TRY(cuCtxDisablePeerAccess(contexts[1]));
    TRY(cuCtxDisablePeerAccess(contexts[2]));
    TRY(cuEventDestroy_v2(e));
    for (int i = 0; i < 2; i++) {
        use(i);
        TRY(cuStreamDestroy_v2(s[i]));
        TRY(cuModuleUnload(module[i]));
        TRY(cuMemFree_v2(in[i]));
    }
    TRY(cuMemFree_v2(out));
}

// A copy in the legacy stream comes after earlier work of either device, and before later work.
static void order(void)
{
    CUstream s;
    CUdeviceptr flag, from, to;
    unsigned *word, side = 1, turns = 1;
    from = alloc_on(0, 4);
    use(1);
    CUmodule module = check_module("talk.ptx");
    CUfunction ping = check_function(module, "ping");
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    TRY(cuMemHostAlloc((void **)&word, 8, CU_MEMHOSTALLOC_PORTABLE));
    word[0] = word[1] = 0;
    flag = (uintptr_t)word;
    to = alloc_on(1, 4);
    TRY(LAUNCH(ping, 1, 1, 0, s, &flag, &side, &turns));
    TRY(cuMemsetD32Async(to, 5, 1, s));
    use(0);
    TRY(cuMemsetD32_v2(from, 6, 1));
    TRY(cuMemcpyPeerAsync(to, contexts[1], from, contexts[0], 4, NULL));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    use(1);
    TRY(cuMemcpyDtoHAsync_v2(word + 1, to, 4, s));
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    TRY(cuStreamSynchronize(s));
    EQUAL(word[1], 6);
    TRY(cuStreamDestroy_v2(s));
    TRY(cuMemFreeHost(word));
    TRY(cuModuleUnload(module));
    TRY(cuMemFree_v2(from));
    TRY(cuMemFree_v2(to));
}

static void pools(void)
{
    CUmemoryPool pool[DEVICES], other;
    CUdeviceptr p;
    CUmemAccess_flags flags;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 1}, there = {CU_MEM_LOCATION_TYPE_DEVICE, 2};
    CUmemAccessDesc access = {there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = there};
    for (int i = 0; i < DEVICES; i++)
        TRY(cuDeviceGetDefaultMemPool(&pool[i], i));
    CHECK(pool[0] != pool[1] && pool[1] != pool[2]);
    use(1);
    TRY(cuMemAllocAsync(&p, 1000, NULL));
    EQUAL(ordinal(p), 1);
    TRY(cuMemFreeAsync(p, NULL));
    TRY(cuMemPoolGetAccess(&flags, pool[1], &here));
    EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    TRY(cuMemPoolGetAccess(&flags, pool[1], &there));
    EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    TRY(cuMemPoolSetAccess(pool[1], &access, 1));
    TRY(cuMemPoolGetAccess(&flags, pool[1], &there));
    EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    TRY(cuMemPoolSetAccess(pool[1], &access, 1));
    TRY(cuMemPoolCreate(&other, &props));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(1, other));
    TRY(cuDeviceSetMemPool(2, other));
    use(2);
    TRY(cuMemAllocAsync(&p, 1000, NULL));
    EQUAL(ordinal(p), 2);
    TRY(cuMemFree_v2(p));
    TRY(cuMemPoolDestroy(other));
}

static void mapped(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 2}};
    CUmemAccessDesc access[2] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 2}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                 {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ}};
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    unsigned long long flags = 9;
    size_t before[2] = {room(0), room(2)};
    TRY(cuMemCreate(&h, 2 * MIB, &prop, 0));
    EQUAL(room(0), before[0]);
    EQUAL(room(2), before[1] - 2 * MIB);
    TRY(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    TRY(cuMemMap(p, 2 * MIB, 0, h, 0));
    TRY(cuMemSetAccess(p, 2 * MIB, access, 2));
    EQUAL(ordinal(p), 2);
    TRY(cuMemsetD8_v2(p, 1, 100));
    for (int i = 0; i < 2; i++) {
        TRY(cuMemGetAccess(&flags, &access[i].location, p));
        EQUAL(flags, access[i].flags);
    }
    TRY(cuMemGetAccess(&flags, &(CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 1}, p));
    EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    TRY(cuMemUnmap(p, 2 * MIB));
    TRY(cuMemAddressFree(p, 2 * MIB));
    TRY(cuMemRelease(h));
    prop.location.id = DEVICES;
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&h, 2 * MIB, &prop, 0));
}

static void managed(void)
{
    CUdeviceptr p;
    int by[4], last;
    use(1);
    TRY(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    EQUAL(ordinal(p), 1);
    TRY(cuMemAdvise(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 2));
    TRY(cuMemAdvise(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    TRY(cuMemRangeGetAttribute(by, sizeof by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4096));
    CHECK(by[0] == 0 && by[1] == 2 && by[2] == CU_DEVICE_INVALID);
    TRY(cuMemPrefetchAsync(p, 4096, 2, NULL));
    TRY(cuMemRangeGetAttribute(&last, sizeof last, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 4096));
    EQUAL(last, 2);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(p, 4096, DEVICES, NULL));
    TRY(cuMemFree_v2(p));
}

// A fault on one device does not affect the others.
static void faults(void)
{
    use(1);
    CUmodule module = check_module("faults.ptx");
    CUdeviceptr nowhere = 0;
    TRY(LAUNCH(check_function(module, "write"), 3, 64, 0, NULL, &nowhere));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    use(0);
    TRY(cuCtxSynchronize());
    TRY(cuMemFree_v2(alloc_on(0, 100)));
}

int main(void)
{
    alarm(250);
    TRY(cuInit(0));
    names();
    primary_contexts();
    memory();
    peers();
    copies();
    kernels();
    order();
    pools();
    mapped();
    managed();
    faults();
    return check_end("device_peers");
}
