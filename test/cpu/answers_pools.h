// SPDX-License-Identifier: MIT
// Groups of answers.c: managed memory, memory of pools.
#ifndef ANSWERS_POOLS_H
#define ANSWERS_POOLS_H

#include "answers_memory.h"

// --- managed memory ---------------------------------------------------------------------------------------

static CUdeviceptr answers_managed(void)
{
    CUdeviceptr p = 0;
    answers_start();
    NEED(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL));
    return p;
}

static void group_managed(void)
{
    CUdeviceptr p, device, managed = answers_managed();
    unsigned flags;
    ASK(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_HOST));
    ASK(cuMemAllocManaged(&p, 100, 0));
    ASK(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_SINGLE));
    ASK(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
    ASK(cuMemAllocManaged(NULL, 10, CU_MEM_ATTACH_GLOBAL));
    answers_pointer("managed", managed);
    ASK(cuMemcpyHtoD_v2(managed, pageable, 100));
    ASK(cuMemcpyHtoD_v2(managed, pageable, 101));
    ASK(cuMemcpyHtoD_v2(large, AS_POINTER(managed), 101));
    ASK(cuMemcpyDtoH_v2(pageable, managed, 513));
    ASK(cuMemHostGetDevicePointer_v2(&device, AS_POINTER(managed), 0));
    ASK(cuMemHostGetFlags(&flags, AS_POINTER(managed)));
    ASK(cuStreamAttachMemAsync(answers_stream(), large, 0, CU_MEM_ATTACH_SINGLE));
    ASK(cuMemFreeHost(AS_POINTER(managed)));
    ASK(cuMemFree_v2(managed + 8));
    ASK(cuMemFree_v2(managed));
}

static void group_prefetch(void)
{
    CUdeviceptr managed = answers_managed();
    ASK(cuMemPrefetchAsync_v2(managed, 100, this_device, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(managed, 101, this_device, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(managed, 8192, this_device, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(managed, 3 * MIB, this_device, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(managed, 0, this_device, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(managed, 100, no_device, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(managed, 100, the_host, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(managed, 100, this_device, 1, NULL));
    ASK(cuMemPrefetchAsync_v2(small, 100, this_device, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(AS_ADDRESS(pageable), 100, this_device, 0, NULL));
    ASK(cuCtxSynchronize());
}

static void group_advice(void)
{
    CUdeviceptr managed = answers_managed();
    int value[4];
    ASK(cuMemAdvise_v2(managed, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, this_device));
    ASK(cuMemAdvise_v2(managed, 100, (CUmem_advise)9, this_device));
    ASK(cuMemAdvise_v2(managed, 101, CU_MEM_ADVISE_SET_READ_MOSTLY, this_device));
    ASK(cuMemAdvise_v2(small, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, this_device));
    ASK(cuMemAdvise_v2(managed, 100, CU_MEM_ADVISE_SET_ACCESSED_BY, no_device));
    ASK(cuMemAdvise_v2(managed, 100, CU_MEM_ADVISE_SET_ACCESSED_BY, this_device));
    ASK(cuMemAdvise_v2(managed, 100, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, the_host));
    ASK(cuMemAdvise_v2(managed, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, this_device));
    for (int i = 1; i <= 8; i++) {
        memset(value, 0xee, sizeof value);
        size_t size = i == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY ? 16 : 4;
        printf("  attribute %d of the range: ", i);
        answers_result(cu.cuMemRangeGetAttribute(value, size, (CUmem_range_attribute)i, managed, 100));
        SHOW(value[0]);
        if (size > 4)
            SHOW(value[1]);
    }
    ASK(cuMemRangeGetAttribute(value, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 100));
    ASK(cuMemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 101));
    ASK(cuMemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, small, 100));
    ASK(cuMemRangeGetAttribute(value, 4, (CUmem_range_attribute)9, managed, 100));
    ASK(cuMemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 0));
    ASK(cuMemRangeGetAttribute(value, 2, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed, 100));
}

// --- pools ------------------------------------------------------------------------------------------------

static void answers_pool(CUmemoryPool pool)
{
    for (int i = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES; i <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; i++) {
        unsigned long long value = 0;
        printf("  attribute %d of the pool: ", i);
        answers_result(cu.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)i, &value));
        SHOW(value);
    }
}

static void group_default_pool(void)
{
    CUmemoryPool pool, current;
    CUdeviceptr p, first, second;
    unsigned long long value = 5;
    answers_start();
    CUstream stream = answers_stream();
    NEED(cuDeviceGetDefaultMemPool(&pool, 0));
    NEED(cuDeviceGetMemPool(&current, 0));
    SHOW(pool == current);
    ASK(cuMemAllocAsync(&first, 100, stream));
    ASK(cuMemAllocAsync(&second, 100, stream));
    SHOW(second - first);
    ASK(cuMemAllocAsync(&p, 0, stream));
    ASK(cuMemAllocAsync(NULL, 10, stream));
    ASK(cuMemAllocAsync(&p, (size_t)1 << 45, stream));
    ASK(cuMemAllocFromPoolAsync(&p, 10, NULL, stream));
    answers_pool(pool);
    answers_pointer("of the pool", first);
    ASK(cuMemcpyHtoD_v2(first, pageable, 101));
    ASK(cuMemFreeAsync(first + 4, stream));
    ASK(cuMemFreeAsync(first, stream));
    ASK(cuMemcpyHtoD_v2(first, pageable, 100));
    ASK(cuStreamSynchronize(stream));
    ASK(cuMemcpyHtoD_v2(first, pageable, 100));
    ASK(cuMemFreeAsync(0, stream));
    ASK(cuMemFreeAsync(AS_ADDRESS(pageable), stream));
    ASK(cuStreamSynchronize(stream));
    answers_pool(pool);
    ASK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    ASK_AS("the highest reserved, to 5",
           cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
    value = 0;
    ASK_AS("the highest reserved, to 0",
           cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
    ASK(cuMemPoolSetAttribute(pool, (CUmemPool_attribute)9, &value));
    ASK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    ASK(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)0, &value));
    ASK(cuMemPoolDestroy(pool));
    ASK(cuMemPoolDestroy(NULL));
    ASK(cuMemPoolTrimTo(pool, 0));
}

static void group_create_pool(void)
{
    CUmemoryPool pool;
    CUdeviceptr p;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_INVALID};
    answers_start();
    CUstream stream = answers_stream();
    ASK_AS("a pool of nothing", cuMemPoolCreate(&pool, &props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    ASK_AS("a pool of nowhere", cuMemPoolCreate(&pool, &props));
    props.location = no_device;
    ASK_AS("a pool of a device that is not there", cuMemPoolCreate(&pool, &props));
    props.location = this_device;
    ASK(cuMemPoolCreate(NULL, &props));
    ASK(cuMemPoolCreate(&pool, NULL));
    props.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    ASK_AS("a pool that can be shared by fabric", cuMemPoolCreate(&pool, &props));
    props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    props.maxSize = MIB;
    ASK_AS("a pool of at most 1 MiB", cuMemPoolCreate(&pool, &props));
    ASK(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, stream));
    ASK(cuMemAllocFromPoolAsync(&p, 40 * MIB, pool, stream));
    props = (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = the_host};
    ASK_AS("a pool of the host", cuMemPoolCreate(&pool, &props));
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    ASK_AS("a pool of the host's node 0", cuMemPoolCreate(&pool, &props));
}

static void group_own_pool(void)
{
    CUmemoryPool pool, all, current;
    CUdeviceptr p;
    CUmemAccess_flags flags;
    CUmemAccessDesc access = {this_device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = this_device};
    answers_start();
    CUstream stream = answers_stream();
    NEED(cuMemPoolCreate(&pool, &props));
    NEED(cuDeviceGetDefaultMemPool(&all, 0));
    ASK(cuMemPoolGetAccess(&flags, pool, &this_device));
    SHOW(flags);
    ASK(cuMemPoolGetAccess(&flags, pool, &the_host));
    ASK(cuMemPoolGetAccess(&flags, pool, &no_device));
    ASK_AS("its own device may write", cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ASK_AS("its own device may not", cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    ASK_AS("its own device may read", cuMemPoolSetAccess(pool, &access, 1));
    access = (CUmemAccessDesc){no_device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASK_AS("a device that is not there may write", cuMemPoolSetAccess(pool, &access, 1));
    ASK(cuMemAllocFromPoolAsync(&p, 100, pool, stream));
    ASK(cuDeviceSetMemPool(0, pool));
    ASK(cuMemPoolDestroy(pool));
    NEED(cuDeviceGetMemPool(&current, 0));
    SHOW(current == all);
    ASK(cuMemFreeAsync(p, stream));
    ASK(cuDeviceSetMemPool(0, NULL));
    ASK(cuStreamSynchronize(stream));
}

#endif
