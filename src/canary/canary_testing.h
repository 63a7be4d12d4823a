// SPDX-License-Identifier: MIT
// Helpers for tests of canary mode, besides mode_testing.h: free a buffer, change a byte next to it, and
// scan.
#ifndef MOAT_CANARY_CANARY_TESTING_H
#define MOAT_CANARY_CANARY_TESTING_H

#include "canary/canary.h"
#include "canary/canary_order.h"
#include "canary/canary_cache.h"
#include "mode/mode_testing.h"

struct launch_ring launch_ring;

static uint64_t blamed_since;  // the last report names only later kernels

unsigned launch_ring_since(uint64_t count, const char **names, unsigned most)
{
    blamed_since = count;
    return 0;
}

// Does what the hooks do when a context has been destroyed.
static inline void forget_context(CUcontext gone)
{
    canary_context_gone(gone);
    context_forget(gone);
}

static void free_now(CUdeviceptr p)
{
    CUresult r = CUDA_ERROR_UNKNOWN;
    assert_true(canary_free(p, DRIVER_cuMemFree_v2, &r));
    assert_int_equal(r, 0);
}

static void scan(bool whole)
{
    static const struct canary_occasion occasion = {DRIVER_CALLS, NULL, "in a test", true, true};
    canary_monitor_lock();
    CUresult r = canary_scan_context(context_current(), true, whole, &occasion);
    canary_order_verify(context_current());
    canary_monitor_unlock();
    assert_int_equal(r, 0);
    assert_true(canary_store_valid(context_current()));
    assert_true(canary_cache_valid(context_current()));
    assert_true(canary_order_valid(context_current()));
}

static void change(CUdeviceptr p)
{
    uint8_t byte;
    assert_int_equal(cuMemcpyDtoH_v2(&byte, p, 1), 0);
    byte ^= 0x20;
    assert_int_equal(cuMemcpyHtoD_v2(p, &byte, 1), 0);
}

#endif
