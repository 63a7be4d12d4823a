// SPDX-License-Identifier: MIT
// Virtual memory management: reserve, create, map, rights, two mappings of one handle.
#include "driver_check.h"

static CUmemAllocationProp properties(void)
{
    CUmemAllocationProp p;
    memset(&p, 0, sizeof p);
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return p;
}

static CUresult allow(CUdeviceptr p, size_t size, CUmemAccess_flags flags)
{
    CUmemAccessDesc access;
    memset(&access, 0, sizeof access);
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = flags;
    return cuMemSetAccess(p, size, &access, 1);
}

static size_t granularity(void)
{
    CUmemAllocationProp prop = properties();
    size_t g = 0;
    TRY(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(g >= 4096 && !(g & (g - 1)));
    return g;
}

static void two_mappings(CUmodule module, size_t g)
{
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = properties();
    TRY(cuMemAddressReserve(&p, 4 * g, 0, 0, 0));
    TRY(cuMemCreate(&handle, g, &prop, 0));
    TRY(cuMemMap(p, g, 0, handle, 0));
    TRY(cuMemMap(p + 2 * g, g, 0, handle, 0));
    TRY(allow(p, g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    TRY(allow(p + 2 * g, g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    TRY(cuMemRelease(handle));  // stays while it is mapped
    TRY(cuMemsetD32_v2(p, 4, 256));
    unsigned k = 1, turns = 0, value = 0;
    CUdeviceptr second = p + 2 * g;
    TRY(LAUNCH(check_function(module, "step"), 1, 256, 0, NULL, &second, &k, &turns));
    TRY(cuMemcpyDtoH_v2(&value, p, 4));
    EQUAL(value, 13);
    unsigned long long flags = 0;
    CUmemLocation location;
    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    TRY(cuMemGetAccess(&flags, &location, p));
    EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, g, 0, handle, 0));  // released, and the range is taken
    TRY(cuMemUnmap(p, g));
    TRY(cuMemcpyDtoH_v2(&value, second, 4));
    EQUAL(value, 13);
    TRY(cuMemUnmap(second, g));
    TRY(cuMemAddressFree(p, 4 * g));
}

static void wrong_use(size_t g)
{
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = properties();
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, g + 1, 0, 0, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 1, &prop, 0));
    TRY(cuMemAddressReserve(&p, g, 0, 0, 0));
    TRY(cuMemCreate(&handle, g, &prop, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, allow(p, g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    TRY(cuMemMap(p, g, 0, handle, 0));
    TRY(cuMemUnmap(p, g));
    TRY(cuMemRelease(handle));
    TRY(cuMemAddressFree(p, g));
}

static CUresult end_of(CUfunction f, CUdeviceptr a, CUdeviceptr b)
{
    TRY(LAUNCH(f, 3, 64, 0, NULL, &a, &b));
    return cuCtxSynchronize();
}

// A kernel that writes read-only memory, or accesses what is mapped without access, ends with error 700.
static void rights(size_t g, CUmemAccess_flags flags, bool write, CUresult expected)
{
    CUdeviceptr p, out;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = properties();
    CUcontext context;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module = check_module("faults.ptx");
    out = check_zeroed(4);
    TRY(cuMemAddressReserve(&p, g, 0, 0, 0));
    TRY(cuMemCreate(&handle, g, &prop, 0));
    TRY(cuMemMap(p, g, 0, handle, 0));
    if (flags)
        TRY(allow(p, g, flags));
    EXPECT(expected, end_of(check_function(module, write ? "write" : "read"), p, out));
    cuCtxDestroy_v2(context);
    cuMemUnmap(p, g);
    cuMemRelease(handle);
    cuMemAddressFree(p, g);
}

int main(int argc, char **argv)
{
    CUcontext context = check_context();
    CUmodule module = check_module("basic.ptx");
    size_t g = granularity();
    two_mappings(module, g);
    wrong_use(g);
    TRY(cuModuleUnload(module));
    TRY(cuCtxDestroy_v2(context));
    rights(g, CU_MEM_ACCESS_FLAGS_PROT_READ, false, CUDA_SUCCESS);
    rights(g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, true, CUDA_SUCCESS);
    // On a GPU, a process cannot use the device after a fault.
    bool second = argc > 1;
    if (!second || !check_on_gpu())
        rights(g, CU_MEM_ACCESS_FLAGS_PROT_READ, true, CUDA_ERROR_ILLEGAL_ADDRESS);
    if (second || !check_on_gpu())
        rights(g, CU_MEM_ACCESS_FLAGS_PROT_NONE, false, CUDA_ERROR_ILLEGAL_ADDRESS);
    return check_end("driver_vmm");
}
