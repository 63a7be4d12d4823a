// SPDX-License-Identifier: MIT
// For tests of modes that place buffers, with the CPU device linked in: a guard around them, and driver calls
// that fail on request.
#ifndef MOAT_MODE_MODE_TESTING_H
#define MOAT_MODE_MODE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/guard.h"
#include "track/guard_report.h"
#include "launch/launch_ring.h"

struct guard guard;
static CUcontext context;
static _Atomic unsigned findings;
static char blamed[600];        // the kernel that the last finding blames; empty: none
static enum driver_id told_by;  // the call in which it was found
static _Atomic int calls_left;  // until one fails; < 0: none fails

void guard_report_finding(const struct guard_finding *f)
{
    snprintf(blamed, sizeof blamed, "%s", f->fault ? f->fault->kernel : "");
    told_by = f->call;
    atomic_fetch_add(&findings, 1);
}

void guard_report_note(const char *fmt, ...)
{
}

const char launch_ring_unknown[] = "unknown";

size_t launch_ring_print(char *text, size_t size, size_t used, const char *introduction,
                         const char *const *names, unsigned count)
{
    return used;
}

static bool fails(void)
{
    return atomic_fetch_sub(&calls_left, 1) == 0;
}

#define WRAP(symbol, parameters, arguments)                           \
    static CUresult try_##symbol parameters                           \
    {                                                                 \
        return fails() ? CUDA_ERROR_OUT_OF_MEMORY : symbol arguments; \
    }
#define REAL(symbol) guard.real.symbol = symbol
#define TRIED(symbol) guard.real.symbol = try_##symbol

WRAP(cuMemAlloc_v2, (CUdeviceptr * p, size_t n), (p, n))
WRAP(cuMemAllocPitch_v2, (CUdeviceptr * p, size_t *pitch, size_t w, size_t h, unsigned e),
     (p, pitch, w, h, e))
WRAP(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void *s, size_t n, CUstream q), (d, s, n, q))
WRAP(cuMemcpyDtoHAsync_v2, (void *d, CUdeviceptr s, size_t n, CUstream q), (d, s, n, q))
WRAP(cuStreamCreate, (CUstream * q, unsigned f), (q, f))
WRAP(cuEventCreate, (CUevent * e, unsigned f), (e, f))
WRAP(cuEventRecord, (CUevent e, CUstream q), (e, q))

// The calls that every such mode uses; the test sets others itself.
static void use_cpu_device(void)
{
    REAL(cuDeviceGetAttribute), REAL(cuCtxGetCurrent), REAL(cuCtxGetDevice), REAL(cuCtxPushCurrent_v2);
    REAL(cuCtxPopCurrent_v2), REAL(cuDeviceTotalMem_v2), REAL(cuStreamSynchronize), REAL(cuMemFree_v2);
    REAL(cuEventQuery), REAL(cuEventDestroy_v2), REAL(cuCtxSynchronize), REAL(cuStreamDestroy_v2);
    TRIED(cuMemAlloc_v2), TRIED(cuMemAllocPitch_v2), TRIED(cuMemcpyHtoDAsync_v2), TRIED(cuMemcpyDtoHAsync_v2);
    TRIED(cuStreamCreate), TRIED(cuEventCreate), TRIED(cuEventRecord);
    atomic_store(&calls_left, -1);
    guard.watching = true;
}

static inline size_t available(void)
{
    size_t n, all;
    assert_int_equal(cuMemGetInfo_v2(&n, &all), 0);
    return n;
}

#endif
