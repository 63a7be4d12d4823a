// SPDX-License-Identifier: MIT
// What the tests of pages mode share: the CPU device, whose mapping calls fail on request, and pages mode.
#ifndef MOAT_PAGES_PAGES_TESTING_H
#define MOAT_PAGES_PAGES_TESTING_H

#include "launch/kernel_fault.h"
#include "mode/mode_testing.h"
#include "pages/pages.h"

CUresult (*kernel_fault_contained)(bool launch);

void kernel_fault_report(CUresult r)
{
}

unsigned launch_ring_recent(const char **names, unsigned most)
{
    return 0;
}

WRAP(cuMemAddressReserve, (CUdeviceptr * p, size_t n, size_t a, CUdeviceptr at, unsigned long long f),
     (p, n, a, at, f))
WRAP(cuMemCreate,
     (CUmemGenericAllocationHandle * h, size_t n, const CUmemAllocationProp *p, unsigned long long f),
     (h, n, p, f))
WRAP(cuMemMap, (CUdeviceptr p, size_t n, size_t o, CUmemGenericAllocationHandle h, unsigned long long f),
     (p, n, o, h, f))
WRAP(cuMemSetAccess, (CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t count), (p, n, d, count))

// Starts pages mode with the options that the test has set and these. Returns 0, or -1 if it cannot.
static inline int pages_testing_start(uint64_t budget)
{
    use_cpu_device();
    REAL(cuMemRelease), REAL(cuMemUnmap), REAL(cuMemGetAllocationGranularity), REAL(cuEventSynchronize);
    REAL(cuDeviceGetMemPool), REAL(cuDeviceGetDefaultMemPool), REAL(cuStreamGetId), REAL(cuMemAddressFree);
    TRIED(cuMemAddressReserve), TRIED(cuMemCreate), TRIED(cuMemMap), TRIED(cuMemSetAccess);
    guard.options.mode = 1 << OPTION_MODE_PAGES;
    guard.options.pages_own = 1 << 20;
    guard.options.pages_budget = budget;
    pages_start();
    if (!pages_on || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return -1;
    // The first free allocates memory that stays.
    CUdeviceptr p;
    CUresult r;
    bool good = pages_alloc(&p, 1000, &r) && pages_free(p, DRIVER_cuMemFree_v2, &r) && !r;
    pages_reclaim();
    return good ? 0 : -1;
}

#endif
