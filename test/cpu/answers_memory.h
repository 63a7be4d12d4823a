// SPDX-License-Identifier: MIT
// Groups of answers.c: allocation, what a pointer is, copies and memsets, host memory.
#ifndef ANSWERS_MEMORY_H
#define ANSWERS_MEMORY_H

#include <sys/mman.h>

#include "answers.h"

static void group_uninitialised(void)
{
    CUdeviceptr p;
    CUmemoryPool pool;
    ASK(cuMemAlloc_v2(&p, 4));
    NEED(cuInit(0));
    ASK(cuMemAlloc_v2(&p, 4));
    ASK(cuMemPoolTrimTo(NULL, 0));
    ASK(cuDeviceGetDefaultMemPool(&pool, 0));
    ASK(cuDeviceGetDefaultMemPool(&pool, 7));
    ASK(cuDeviceGetDefaultMemPool(NULL, 0));
}

static void group_allocation(void)
{
    CUdeviceptr p;
    size_t unused, total, left;
    answers_start();
    ASK(cuMemAlloc_v2(&p, 0));
    ASK(cuMemAlloc_v2(NULL, 4));
    ASK(cuMemAlloc_v2(&p, (size_t)1 << 45));
    ASK(cuMemAlloc_v2(&p, SIZE_MAX));
    ASK(cuMemGetInfo_v2(NULL, NULL));
    ASK(cuMemGetInfo_v2(&unused, NULL));
    ASK(cuMemGetInfo_v2(NULL, &total));
    CUdeviceptr longer = answers_alloc(513), after = answers_alloc(1);
    SHOW(next - small);
    SHOW(after - longer);
    CUdeviceptr big = answers_alloc(3000000), bigger = answers_alloc(5000000);
    SHOW(big % (2 * MIB));
    SHOW(bigger % (2 * MIB));
    NEED(cuMemGetInfo_v2(&left, &total));
    SHOW(unused - left);
    ASK(cuMemFree_v2(small + 4));
    ASK(cuMemFree_v2(small));
    ASK(cuMemFree_v2(small));
    ASK(cuMemFree_v2(0));
    ASK(cuMemFree_v2(0x1234));
    ASK(cuMemFree_v2(AS_ADDRESS(pageable)));
    ASK(cuMemcpyHtoD_v2(small, pageable, 4));
}

static void group_pitch(void)
{
    CUdeviceptr p;
    size_t pitch, size;
    answers_start();
    ASK(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 4));
    SHOW(pitch);
    ASK(cuMemAllocPitch_v2(&p, &pitch, 1000, 10, 16));
    SHOW(pitch);
    ASK(cuMemAllocPitch_v2(&p, &pitch, 513, 2, 8));
    SHOW(pitch);
    NEED(cuMemGetAddressRange_v2(&p, &size, p));
    SHOW(size);
    ASK(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 3));
    ASK(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 0));
    ASK(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 32));
    ASK(cuMemAllocPitch_v2(&p, &pitch, 0, 10, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, 10, 0, 4));
    ASK(cuMemAllocPitch_v2(NULL, &pitch, 10, 1, 4));
    ASK(cuMemAllocPitch_v2(&p, NULL, 10, 1, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX - 5, (size_t)1 << 40, 4));
}

static void group_address_range(void)
{
    CUdeviceptr base;
    size_t size;
    answers_start();
    ASK(cuMemGetAddressRange_v2(&base, &size, small + 99));
    SHOW(base - small);
    SHOW(size);
    ASK(cuMemGetAddressRange_v2(&base, &size, small + 100));
    ASK(cuMemGetAddressRange_v2(&base, &size, small + 511));
    ASK(cuMemGetAddressRange_v2(NULL, NULL, small));
    ASK(cuMemGetAddressRange_v2(&base, &size, AS_ADDRESS(pageable)));
    ASK(cuMemGetAddressRange_v2(&base, &size, 0));
    ASK(cuMemGetAddressRange_v2(NULL, NULL, 0));
}

// --- what a pointer is ------------------------------------------------------------------------------------

enum answers_kind {
    NUMBER,  // four bytes
    WIDE,    // eight bytes
    PLACE,   // an address, printed relative to the queried one
    HOLDS,   // an address; only printed whether it is not above
    UNIQUE,  // a number; only printed whether it is not 0
    CONTEXT,
};

#define ROW(name, kind)                          \
    {                                            \
        CU_POINTER_ATTRIBUTE_##name, #name, kind \
    }
static const struct {
    CUpointer_attribute attribute;
    const char *name;
    enum answers_kind kind;
} answers_attributes[] = {
    ROW(CONTEXT, CONTEXT),
    ROW(MEMORY_TYPE, NUMBER),
    ROW(DEVICE_POINTER, PLACE),
    ROW(HOST_POINTER, PLACE),
    ROW(P2P_TOKENS, WIDE),
    ROW(SYNC_MEMOPS, NUMBER),
    ROW(BUFFER_ID, UNIQUE),
    ROW(IS_MANAGED, NUMBER),
    ROW(DEVICE_ORDINAL, NUMBER),
    ROW(IS_LEGACY_CUDA_IPC_CAPABLE, NUMBER),
    ROW(RANGE_START_ADDR, PLACE),
    ROW(RANGE_SIZE, WIDE),
    ROW(MAPPED, NUMBER),
    ROW(ALLOWED_HANDLE_TYPES, WIDE),
    ROW(IS_GPU_DIRECT_RDMA_CAPABLE, NUMBER),
    ROW(ACCESS_FLAGS, NUMBER),
    ROW(MEMPOOL_HANDLE, UNIQUE),
    ROW(MAPPING_SIZE, WIDE),
    ROW(MAPPING_BASE_ADDR, HOLDS),
    ROW(MEMORY_BLOCK_ID, UNIQUE),
    ROW(IS_HW_DECOMPRESS_CAPABLE, NUMBER),
};
#undef ROW

static void answers_attribute(enum answers_kind kind, const unsigned char *bytes, CUdeviceptr p)
{
    int32_t number;
    uint64_t wide;
    memcpy(&number, bytes, sizeof number);
    memcpy(&wide, bytes, sizeof wide);
    switch (kind) {
    case NUMBER: printf("%d%s\n", number, bytes[4] == 0xee ? "" : " and more"); break;
    case WIDE: printf("%llu\n", (unsigned long long)wide); break;
    case PLACE: printf("%+lld\n", (long long)(wide - p)); break;
    case HOLDS: printf("%s\n", wide <= p ? "not above" : "above"); break;
    case UNIQUE: printf("%s\n", wide ? "not 0" : "0"); break;
    case CONTEXT:
        printf("%s\n", !wide ? "none" : wide == AS_ADDRESS(context) ? "the context" : "another");
        break;
    }
}

static void answers_pointer(const char *what, CUdeviceptr p)
{
    printf("-- %s\n", what);
    for (unsigned i = 0; i < sizeof answers_attributes / sizeof *answers_attributes; i++) {
        unsigned char bytes[64];
        memset(bytes, 0xee, sizeof bytes);
        printf("  %s: ", answers_attributes[i].name);
        CUresult r = cu.cuPointerGetAttribute(bytes, answers_attributes[i].attribute, p);
        if (r)
            answers_result(r);
        else
            answers_attribute(answers_attributes[i].kind, bytes, p);
    }
}

static void group_pointers(void)
{
    CUpointer_attribute list[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    CUcontext owner = (CUcontext)7;
    unsigned type = 7, managed = 7;
    int ordinal = 7, one = 1;
    void *data[] = {&owner, &type, &ordinal, &managed};
    answers_start();
    answers_pointer("small", small);
    answers_pointer("small + 50", small + 50);
    answers_pointer("behind small", small + 100);
    answers_pointer("pageable", AS_ADDRESS(pageable));
    answers_pointer("null", 0);
    ASK(cuPointerGetAttributes(4, list, data, AS_ADDRESS(pageable)));
    SHOW(owner == NULL);
    SHOW(type);
    SHOW(ordinal);
    SHOW(managed);
    ASK(cuPointerGetAttributes(0, list, data, large));
    list[3] = (CUpointer_attribute)99;
    ASK_AS("cuPointerGetAttributes of which one is unknown", cuPointerGetAttributes(4, list, data, large));
    ASK(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, large));
    ASK(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, large + 8));
    ASK(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_CONTEXT, large));
    ASK(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, AS_ADDRESS(pageable)));
}

// --- copies and memsets -----------------------------------------------------------------------------------

static void group_copies(void)
{
    CUdeviceptr host = AS_ADDRESS(pageable);
    answers_start();
    ASK(cuMemcpyHtoD_v2(small, pageable, 100));
    ASK(cuMemcpyHtoD_v2(small, pageable, 101));
    ASK(cuMemcpyHtoD_v2(small, pageable, 512));
    ASK(cuMemcpyHtoD_v2(small, pageable, 1024));
    ASK(cuMemcpyHtoD_v2(small + 50, pageable, 50));
    ASK(cuMemcpyHtoD_v2(small + 50, pageable, 51));
    ASK(cuMemcpyHtoD_v2(small + 100, pageable, 1));
    ASK(cuMemcpyHtoD_v2(small + 200, pageable, 1));
    ASK(cuMemcpyHtoD_v2(large, pageable, 3000000));
    ASK(cuMemcpyHtoD_v2(large, pageable, 3000001));
    ASK(cuMemcpyHtoD_v2(large, pageable, 4 * MIB));
    ASK(cuMemcpyHtoD_v2(0, pageable, 4));
    ASK(cuMemcpyHtoD_v2(0, pageable, 0));
    ASK(cuMemcpyHtoD_v2(0x1234, pageable, 0));
    ASK(cuMemcpyHtoD_v2(0x123400000, pageable, 4));
    ASK(cuMemcpyHtoD_v2(small, NULL, 4));
    ASK(cuMemcpyHtoD_v2(small, NULL, 0));
    ASK(cuMemcpyDtoH_v2(pageable, 0, 4));
    ASK(cuMemcpyDtoH_v2(NULL, small, 4));
    ASK(cuMemcpyDtoH_v2(NULL, small, 0));
    ASK(cuMemcpyDtoH_v2(pageable, host + 100, 4));
    ASK(cuMemcpyHtoD_v2(host, pageable + 100, 4));
    ASK(cuMemcpyHtoD_v2(small, AS_POINTER(next), 4));
    ASK(cuMemcpyDtoH_v2(AS_POINTER(small), next, 4));
    ASK(cuMemcpyDtoD_v2(small, next, 100));
    ASK(cuMemcpyDtoD_v2(small, next, 101));
    ASK(cuMemcpyDtoD_v2(host, next, 10));
    ASK(cuMemcpyDtoD_v2(next, host, 10));
    ASK(cuMemcpyDtoD_v2(large, large + 8, 100));
    ASK(cuMemcpy(small, host, 4));
    ASK(cuMemcpy(host, small, 4));
    ASK(cuMemcpy(host, host + 8, 4));
    ASK(cuMemcpy(small, next, 101));
    ASK(cuMemcpy(0, small, 4));
    ASK(cuMemcpy(small, 0, 4));
    ASK(cuMemcpy(small, 0x123400000, 0));
}

static void group_memsets(void)
{
    answers_start();
    ASK(cuMemsetD8_v2(small, 1, 100));
    ASK(cuMemsetD8_v2(small, 1, 101));
    ASK(cuMemsetD8_v2(small, 1, 513));
    ASK(cuMemsetD8_v2(large, 1, 3000001));
    ASK(cuMemsetD8_v2(large, 1, 4 * MIB));
    ASK(cuMemsetD8_v2(large, 1, 4 * MIB + 1));
    ASK(cuMemsetD8_v2(0x1000, 1, 1));
    ASK(cuMemsetD8_v2(0, 1, 0));
    ASK(cuMemsetD8_v2(0x1000, 1, 0));
    ASK(cuMemsetD8_v2(AS_ADDRESS(pageable), 1, 1));
    ASK(cuMemsetD16_v2(small + 1, 1, 1));
    ASK(cuMemsetD32_v2(small + 2, 1, 1));
    ASK(cuMemsetD2D8_v2(small, 10, 1, 10, 10));
    ASK(cuMemsetD2D8_v2(small, 9, 1, 10, 10));
    ASK(cuMemsetD2D8_v2(small, 9, 1, 10, 1));
    ASK(cuMemsetD2D8_v2(small, 0, 1, 10, 1));
    ASK(cuMemsetD2D8_v2(small, 10, 1, 10, 11));
    ASK(cuMemsetD2D8_v2(small, 10, 1, 0, 11));
    ASK(cuMemsetD2D8_v2(small, 10, 1, 10, 0));
    ASK(cuMemsetD2D8_v2(small, 100, 1, 100, 1));
    ASK(cuMemsetD2D8_v2(small, 60, 1, 40, 2));
    ASK(cuMemsetD2D16_v2(small, 3, 1, 1, 2));
    ASK(cuMemsetD2D16_v2(small, 3, 1, 1, 1));
    ASK(cuCtxSynchronize());
}

// --- host memory ------------------------------------------------------------------------------------------

static void group_pinned(void)
{
    char *pinned;
    void *p;
    unsigned flags = 0;
    CUdeviceptr device;
    answers_start();
    ASK(cuMemHostAlloc((void **)&pinned, 100, 0));
    ASK(cuMemAllocHost_v2(&p, 100));
    ASK(cuMemHostAlloc(&p, 0, 0));
    ASK(cuMemAllocHost_v2(&p, 0));
    ASK(cuMemHostAlloc(NULL, 10, 0));
    ASK(cuMemHostAlloc(&p, 10, 8));
    ASK(cuMemHostAlloc(&p, 10, 64));
    ASK(cuMemHostAlloc(&p, (size_t)1 << 46, 0));
    answers_pointer("pinned", AS_ADDRESS(pinned));
    ASK(cuMemHostGetFlags(&flags, pinned));
    SHOW(flags);
    ASK(cuMemHostGetFlags(&flags, pinned + 4));
    ASK(cuMemHostGetFlags(&flags, pageable));
    ASK(cuMemHostGetDevicePointer_v2(&device, pinned, 0));
    SHOW(device - AS_ADDRESS(pinned));
    ASK(cuMemHostGetDevicePointer_v2(&device, pinned + 5, 0));
    SHOW(device - AS_ADDRESS(pinned));
    ASK(cuMemHostGetDevicePointer_v2(&device, pinned + 100, 0));
    ASK(cuMemHostGetDevicePointer_v2(&device, pinned, 1));
    ASK(cuMemHostGetDevicePointer_v2(&device, pageable, 0));
    ASK(cuMemHostGetDevicePointer_v2(NULL, pinned, 0));
    ASK(cuMemHostGetDevicePointer_v2(&device, NULL, 0));
    ASK(cuMemcpyHtoD_v2(large, pinned, 100));
    ASK(cuMemcpyHtoD_v2(large, pinned, 101));
    ASK(cuMemcpyHtoD_v2(large, pinned, 8192));
    ASK(cuMemcpyHtoD_v2(AS_ADDRESS(pinned), pageable, 100));
    ASK(cuMemcpyHtoD_v2(AS_ADDRESS(pinned), pageable, 101));
    ASK(cuMemcpyDtoD_v2(large, AS_ADDRESS(pinned), 100));
    ASK(cuMemsetD8_v2(AS_ADDRESS(pinned), 7, 100));
    ASK(cuMemsetD8_v2(AS_ADDRESS(pinned), 7, 101));
    ASK(cuCtxSynchronize());
    SHOW(pinned[99]);
    ASK(cuMemFreeHost(pinned + 4));
    ASK(cuMemHostUnregister(pinned));
    ASK(cuMemFree_v2(AS_ADDRESS(pinned)));
    ASK(cuMemFreeHost(pinned));
    ASK(cuMemFreeHost(pinned));
    ASK(cuMemFreeHost(NULL));
    ASK(cuMemFreeHost(pageable));
    ASK(cuMemFreeHost(AS_POINTER(small)));
}

static void group_registered(void)
{
    char *page = aligned_alloc(4096, 1 << 16);
    char *none = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *read_only = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned flags = 0;
    CUdeviceptr device;
    answers_start();
    memset(page, 0, 1 << 16);
    ASK(cuMemHostRegister_v2(page + 10, 100, 0));
    ASK(cuMemHostRegister_v2(page + 10, 100, 0));
    ASK(cuMemHostRegister_v2(page + 50, 100, 0));
    ASK(cuMemHostRegister_v2(page + 200, 100, 0));
    ASK(cuMemHostRegister_v2(page + 4096, 4096, 0));
    ASK(cuMemHostRegister_v2(page + 8192, 5000, CU_MEMHOSTREGISTER_DEVICEMAP));
    ASK(cuMemHostRegister_v2(page + 16384, 0, 0));
    ASK(cuMemHostRegister_v2(NULL, 10, 0));
    ASK(cuMemHostRegister_v2((void *)0x10000, 10, 0));
    ASK(cuMemHostRegister_v2(page + 20480, 100, 0x10));
    ASK(cuMemHostRegister_v2(page + 20480, 100, CU_MEMHOSTREGISTER_READ_ONLY));
    ASK(cuMemHostRegister_v2(AS_POINTER(small), 100, 0));
    ASK(cuMemHostRegister_v2(none, 4096, 0));
    ASK(cuMemHostRegister_v2(read_only, 4096, 0));
    ASK(cuMemHostRegister_v2(read_only, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
    answers_pointer("registered + 40", AS_ADDRESS(page + 50));
    answers_pointer("beside it, in the same page", AS_ADDRESS(page + 120));
    ASK(cuMemcpyHtoD_v2(large, page + 10, 100));
    ASK(cuMemcpyHtoD_v2(large, page + 10, 101));
    ASK(cuMemcpyHtoD_v2(large, page + 10, 30000));
    ASK(cuMemcpyHtoD_v2(large, page + 4096, 4097));
    ASK(cuMemcpyHtoD_v2(large, page, 30000));
    ASK(cuMemHostGetFlags(&flags, page + 10));
    SHOW(flags);
    ASK(cuMemHostGetDevicePointer_v2(&device, page + 10, 0));
    SHOW(device - AS_ADDRESS(page));
    ASK(cuMemHostGetDevicePointer_v2(&device, page + 120, 0));
    ASK(cuMemFreeHost(page + 10));
    ASK(cuMemHostUnregister(page + 11));
    ASK(cuMemHostUnregister(page + 10));
    ASK(cuMemHostUnregister(page + 10));
    ASK(cuMemHostUnregister(NULL));
    ASK(cuMemHostUnregister(pageable));
}

#endif
