// SPDX-License-Identifier: MIT
// Groups of answers.c: virtual memory management.
#ifndef ANSWERS_MAP_H
#define ANSWERS_MAP_H

#include <unistd.h>

#include "answers_memory.h"

#define UNIT (2 * MIB)  // the granularity

static CUmemAllocationProp answers_physical(void)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = this_device;
    return prop;
}

static CUmemGenericAllocationHandle answers_create(size_t size, CUmemAllocationHandleType shared)
{
    CUmemAllocationProp prop = answers_physical();
    CUmemGenericAllocationHandle handle = 0;
    prop.requestedHandleTypes = shared;
    NEED(cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static void group_create(void)
{
    CUmemAllocationProp prop = answers_physical();
    CUmemGenericAllocationHandle handle;
    size_t granularity = 0;
    answers_start();
    ASK(cuMemCreate(&handle, 100, &prop, 0));
    ASK(cuMemCreate(&handle, 0, &prop, 0));
    ASK(cuMemCreate(&handle, UNIT, &prop, 1));
    ASK(cuMemCreate(NULL, UNIT, &prop, 0));
    ASK(cuMemCreate(&handle, UNIT, NULL, 0));
    ASK(cuMemCreate(&handle, (size_t)1 << 45, &prop, 0));
    ASK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    SHOW(granularity);
    ASK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    SHOW(granularity);
    ASK(cuMemGetAllocationGranularity(&granularity, &prop, (CUmemAllocationGranularity_flags)2));
    ASK(cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ASK(cuMemGetAllocationGranularity(&granularity, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    ASK_AS("memory that can be shared by fabric", cuMemCreate(&handle, UNIT, &prop, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    ASK_AS("memory that Windows can share", cuMemCreate(&handle, UNIT, &prop, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    ASK_AS("memory of no type", cuMemCreate(&handle, UNIT, &prop, 0));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = no_device;
    ASK_AS("memory of a device that is not there", cuMemCreate(&handle, UNIT, &prop, 0));
    prop.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    ASK_AS("memory of nowhere", cuMemCreate(&handle, UNIT, &prop, 0));
    prop.location = the_host;
    ASK_AS("memory of the host", cuMemCreate(&handle, UNIT, &prop, 0));
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    ASK_AS("memory of the host's node 0", cuMemCreate(&handle, UNIT, &prop, 0));
}

static void group_reserve(void)
{
    CUdeviceptr place, other;
    answers_start();
    ASK(cuMemAddressReserve(&place, 4096, 0, 0, 0));
    ASK(cuMemAddressReserve(&place, UNIT + 4096, 0, 0, 0));
    ASK(cuMemAddressReserve(&place, 100, 0, 0, 0));
    ASK(cuMemAddressReserve(&place, 0, 0, 0, 0));
    ASK(cuMemAddressReserve(&place, UNIT, 3, 0, 0));
    ASK(cuMemAddressReserve(&place, UNIT, 0, 0, 1));
    ASK(cuMemAddressReserve(NULL, UNIT, 0, 0, 0));
    ASK(cuMemAddressReserve(&place, (size_t)1 << 47, 0, 0, 0));
    ASK(cuMemAddressReserve(&place, 8 * UNIT, 4096, 0, 0));
    ASK(cuMemAddressReserve(&place, 8 * UNIT, 1 << 30, 0, 0));
    SHOW(place % (1 << 30));
    ASK(cuMemAddressReserve(&other, UNIT, 0, place, 0));
    SHOW(other == place);
    ASK(cuMemAddressReserve(&other, UNIT, 0, place + 100, 0));
    ASK(cuMemAddressFree(place, UNIT));
    ASK(cuMemAddressFree(place + UNIT, UNIT));
    ASK(cuMemAddressFree(place, 8 * UNIT));
    ASK(cuMemAddressFree(place, 8 * UNIT));
    ASK(cuMemAddressFree(0, 0));
}

// Maps five units of eight: two and two of one handle, one of another, without access.
static CUdeviceptr answers_place(CUmemGenericAllocationHandle *two, CUmemGenericAllocationHandle *one)
{
    CUdeviceptr place = 0;
    answers_start();
    NEED(cuMemAddressReserve(&place, 8 * UNIT, 0, 0, 0));
    *two = answers_create(2 * UNIT, CU_MEM_HANDLE_TYPE_NONE);
    *one = answers_create(UNIT, CU_MEM_HANDLE_TYPE_NONE);
    NEED(cuMemMap(place, 2 * UNIT, 0, *two, 0));
    NEED(cuMemMap(place + 2 * UNIT, 2 * UNIT, 0, *two, 0));
    NEED(cuMemMap(place + 4 * UNIT, UNIT, 0, *one, 0));
    return place;
}

static void group_map(void)
{
    CUmemGenericAllocationHandle two, one;
    CUdeviceptr place = answers_place(&two, &one), free = place + 5 * UNIT;
    ASK(cuMemMap(free, UNIT, 0, two, 0));
    ASK(cuMemMap(free, UNIT, UNIT, two, 0));
    ASK(cuMemMap(free, 3 * UNIT, 0, two, 0));
    ASK(cuMemMap(free + 4096, 2 * UNIT, 0, two, 0));
    ASK(cuMemMap(free, 2 * UNIT, 0, two, 1));
    ASK(cuMemMap(free, 2 * UNIT, 0, 0, 0));
    ASK(cuMemMap(place, 2 * UNIT, 0, two, 0));
    ASK(cuMemMap(place + UNIT, 2 * UNIT, 0, two, 0));
    ASK(cuMemMap(small, UNIT, 0, one, 0));
    ASK(cuMemcpyHtoD_v2(place, pageable, 100));
    ASK(cuMemsetD8_v2(place, 1, 100));
    answers_pointer("mapped, no access", place + 100);
}

static CUresult answers_allow(CUdeviceptr p, size_t size, CUmemLocation whom, int flags)
{
    CUmemAccessDesc access = {whom, (CUmemAccess_flags)flags};
    return cu.cuMemSetAccess(p, size, &access, 1);
}
#define ASK_ALLOW(p, size, whom, flags)                                     \
    (answers_call("cuMemSetAccess: " #p ", " #size ", " #whom ", " #flags), \
     answers_result(answers_allow(p, size, whom, flags)))

static void group_access(void)
{
    CUmemGenericAllocationHandle two, one;
    CUdeviceptr place = answers_place(&two, &one), base;
    CUmemAccessDesc access = {this_device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned long long flags = 0;
    size_t size;
    ASK_ALLOW(place, UNIT, this_device, 3);
    ASK_ALLOW(place, 2 * UNIT, this_device, 3);
    ASK_ALLOW(place, 3 * UNIT, this_device, 3);
    ASK_ALLOW(place, 5 * UNIT, this_device, 3);
    ASK_ALLOW(place, 6 * UNIT, this_device, 3);
    ASK_ALLOW(place + 4096, 2 * UNIT, this_device, 3);
    ASK_ALLOW(place, 2 * UNIT, no_device, 3);
    ASK_ALLOW(place, 2 * UNIT, the_host, 3);
    ASK_ALLOW(place, 2 * UNIT, this_device, 2);
    ASK_ALLOW(place, 0, this_device, 3);
    ASK(cuMemSetAccess(place, 2 * UNIT, &access, 0));
    answers_pointer("mapped, with access", place + 100);
    ASK(cuMemcpyHtoD_v2(place, pageable, 100));
    ASK(cuMemcpyDtoD_v2(place, place + 2 * UNIT - 8, 16));
    ASK(cuMemcpyDtoD_v2(place, place + 3 * UNIT, 2 * UNIT));
    ASK(cuMemcpyDtoD_v2(place, place + 3 * UNIT, 2 * UNIT + 1));
    ASK(cuMemsetD8_v2(place, 1, 5 * UNIT));
    ASK(cuMemsetD8_v2(place, 1, 5 * UNIT + 1));
    ASK(cuMemsetD8_v2(place + 5 * UNIT, 1, 1));
    ASK(cuMemGetAddressRange_v2(&base, &size, place + UNIT));
    SHOW(base - place);
    SHOW(size);
    ASK(cuMemGetAddressRange_v2(&base, &size, place + 5 * UNIT));
    ASK(cuMemGetAccess(&flags, &this_device, place));
    SHOW(flags);
    ASK(cuMemGetAccess(&flags, &this_device, place + 5 * UNIT));
    ASK(cuMemGetAccess(&flags, &no_device, place));
    ASK(cuMemGetAccess(&flags, &the_host, place));
    ASK(cuMemGetAccess(&flags, &this_device, large));
    ASK(cuMemGetAccess(NULL, &this_device, place));
    ASK_ALLOW(place, 2 * UNIT, this_device, 1);
    ASK(cuMemcpyHtoD_v2(place, pageable, 8));
    ASK(cuMemcpyDtoH_v2(pageable, place, 8));
    ASK(cuMemsetD8_v2(place, 1, 8));
    ASK_ALLOW(place, 2 * UNIT, this_device, 0);
    ASK(cuMemcpyDtoH_v2(pageable, place, 8));
    ASK(cuCtxSynchronize());
}

static void group_handles(void)
{
    CUmemGenericAllocationHandle two, one, handle, shared, imported;
    CUdeviceptr place = answers_place(&two, &one);
    CUmemAllocationProp prop;
    int file = -1;
    ASK(cuMemRetainAllocationHandle(&handle, AS_POINTER(place + 5)));
    SHOW(handle == two);
    ASK(cuMemRetainAllocationHandle(&handle, AS_POINTER(large)));
    ASK(cuMemRetainAllocationHandle(&handle, AS_POINTER(place + 5 * UNIT)));
    ASK(cuMemRetainAllocationHandle(NULL, AS_POINTER(place)));
    ASK(cuMemGetAllocationPropertiesFromHandle(&prop, two));
    SHOW(prop.location.type);
    ASK(cuMemGetAllocationPropertiesFromHandle(NULL, two));
    ASK(cuMemExportToShareableHandle(&file, two, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    shared = answers_create(UNIT, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ASK(cuMemExportToShareableHandle(&file, shared, CU_MEM_HANDLE_TYPE_WIN32, 0));
    ASK(cuMemExportToShareableHandle(&file, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    void *descriptor = AS_POINTER(file);
    ASK(cuMemImportFromShareableHandle(&imported, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    SHOW(imported == shared);
    ASK(cuMemImportFromShareableHandle(&imported, (void *)9999, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ASK(cuMemImportFromShareableHandle(&imported, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(file);
    ASK_AS("cuMemRelease of what was retained", cuMemRelease(two));
    ASK_AS("cuMemRelease of what was created", cuMemRelease(two));
    ASK_AS("cuMemMap of what is only mapped", cuMemMap(place + 5 * UNIT, 2 * UNIT, 0, two, 0));
    ASK(cuMemRetainAllocationHandle(&handle, AS_POINTER(place)));
    SHOW(handle == two);
    ASK_AS("cuMemRelease of what was retained again", cuMemRelease(two));
    ASK(cuMemRelease(0));
}

static void group_unmap(void)
{
    CUmemGenericAllocationHandle two, one;
    CUdeviceptr place = answers_place(&two, &one);
    ASK(cuMemFree_v2(place));
    ASK(cuMemUnmap(place, UNIT));
    ASK(cuMemUnmap(place + UNIT, UNIT));
    ASK(cuMemUnmap(place + 100, UNIT));
    ASK(cuMemUnmap(place, 3 * UNIT));
    ASK(cuMemUnmap(place, 0));
    ASK(cuMemAddressFree(place, 8 * UNIT));
    ASK(cuMemUnmap(place + 5 * UNIT, UNIT));
    ASK(cuMemUnmap(place, 6 * UNIT));
    ASK(cuMemUnmap(place, 5 * UNIT));
    ASK(cuMemUnmap(place, 2 * UNIT));
    ASK(cuMemAddressFree(place, 8 * UNIT));
    ASK(cuMemRelease(two));
    ASK(cuMemRelease(one));
    ASK(cuMemRelease(one));
}

// One call each, because NVIDIA's driver crashes on made-up handles.

static void group_made_up_map(void)
{
    CUdeviceptr place;
    answers_start();
    NEED(cuMemAddressReserve(&place, 8 * UNIT, 0, 0, 0));
    ASK(cuMemMap(place, 2 * UNIT, 0, 12345, 0));
}

static void group_made_up_properties(void)
{
    CUmemAllocationProp prop;
    answers_start();
    ASK(cuMemGetAllocationPropertiesFromHandle(&prop, 77));
}

static void group_made_up_release(void)
{
    answers_start();
    ASK(cuMemRelease(12345));
}

#endif
