// SPDX-License-Identifier: MIT
#include "guard/torch_alloc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "context/green.h"
#include "core/guard.h"
#include "guard/guard_start.h"
#include "guard/script_calls.h"
#include "track/guard_report.h"
#include "hook/hook.h"
#include "track/track.h"

enum { DEVICES = 64 };

// Compared by address: memory that a graph may use whenever it runs.
static const char graph_memory[] = "memory of a CUDA graph";

// Whether what this thread allocates is memory of a graph that will be captured.
static __thread bool keeps __attribute__((tls_model("initial-exec")));

void torch_alloc_note(void)
{
    static const struct {
        const char *framework, *variable, *value;
    } rows[] = {
#define POOL(framework, variable, value) {framework, variable, value},
#include "base/pools.def"
#undef POOL
    };
    char off[160] = "";
    size_t used = 0;
    if (guard.options.torch_alloc)
        guard_report_note("--torch-alloc: moat replaces PyTorch's allocator when torch is imported");
    for (size_t i = 0; guard.options.unpool && i < sizeof rows / sizeof *rows; i++) {
        const char *value = getenv(rows[i].variable);
        if (value && strcmp(value, rows[i].value) == 0 && used < sizeof off)
            used += (size_t)snprintf(off + used, sizeof off - used, " %s=%s", rows[i].variable, value);
        else
            guard_report_note("--unpool: %s's pool is left on, because the environment sets %s=%.60s",
                              rows[i].framework, rows[i].variable, value ? value : "(not set)");
    }
    if (used)
        guard_report_note("--unpool: pools are turned off:%s", off);
}

__attribute__((visibility("default"))) void moat_tell_note(const char *text)
{
    guard_start();
    if (guard.watching && text)
        guard_report_note("%s", text);
}

__attribute__((visibility("default"))) void moat_explain_with(guard_report_explain_fn *explain)
{
    guard_report_explain_with(explain);
}

// PyTorch passes a device of its choice, on threads that may have no context yet. The primary context is
// retained for good, as the CUDA runtime does.
static CUcontext primary(int device)
{
    static _Atomic(CUcontext) contexts[DEVICES];
    CUdevice d;
    if (device < 0 || device >= DEVICES)
        return NULL;
    // Relaxed: the handle is the driver's, and no memory of moat's is read through it.
    CUcontext context = atomic_load_explicit(&contexts[device], memory_order_relaxed);
    if (context || guard.real.cuInit(0) || guard.real.cuDeviceGet(&d, device) ||
        guard.real.cuDevicePrimaryCtxRetain(&context, d))
        return context;
    atomic_store_explicit(&contexts[device], context, memory_order_relaxed);
    return context;
}

// The thread's state before a call of moat's, restored after it.
struct place {
    bool pushed;
    CUstreamCaptureMode mode;
};

// Makes the device's context current, and selects the capture mode in which allocations do not break a
// capture, of which they are no part.
static struct place enter(int device)
{
    struct place place = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    CUdevice d;
    if (guard.real.cuCtxGetDevice(&d) || d != device) {
        CUcontext context = primary(device);
        place.pushed = context && !guard.real.cuCtxPushCurrent_v2(context);
    }
    guard.real.cuThreadExchangeStreamCaptureMode(&place.mode);
    return place;
}

static void leave(struct place place)
{
    CUcontext context;
    guard.real.cuThreadExchangeStreamCaptureMode(&place.mode);
    if (place.pushed)
        guard.real.cuCtxPopCurrent_v2(&context);
}

static bool is_capturing(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return !guard.real.cuStreamIsCapturing(stream, &status) && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult allocate(CUdeviceptr *p, size_t size, CUstream stream)
{
    CUcontext context = NULL;
    if (!keeps && !is_capturing(stream))
        return hook_cuMemAlloc_v2(p, size);
    CUresult r = guard.real.cuMemAlloc_v2(p, size);
    guard.real.cuCtxGetCurrent(&context);
    if (!r && guard.watching)
        track_made_for(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, *p, size, green_owner(context), graph_memory);
    return r;
}

// PyTorch takes whatever it gets for memory. A failure must be raised as the exception that the C++ library
// throws for it, which becomes one of Python's. No frame of moat's that needs unwinding lies between here and
// PyTorch's code.
static void refuse(size_t size, CUresult r)
{
    static atomic_flag noted = ATOMIC_FLAG_INIT;
    void (*throw_bad_alloc)(void) = NULL;
    if (!atomic_flag_test_and_set_explicit(&noted, memory_order_relaxed))
        guard_report_note("PyTorch asked for %zu bytes, and the driver refused with %d", size, r);
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "_ZSt17__throw_bad_allocv") : NULL;
    memcpy(&throw_bad_alloc, &symbol, sizeof symbol);
    if (throw_bad_alloc)
        throw_bad_alloc();
}

static bool have_driver(void)
{
    guard_start();
    return guard.real.handle && guard.real.cuDevicePrimaryCtxRetain && guard.real.cuStreamIsCapturing &&
           guard.real.cuThreadExchangeStreamCaptureMode;
}

__attribute__((visibility("default"))) void *moat_torch_alloc(ssize_t size, int device, CUstream stream)
{
    static atomic_flag noted = ATOMIC_FLAG_INIT;
    CUdeviceptr p = 0;
    if (size <= 0 || !have_driver())
        return NULL;
    // Only now is it certain that the process uses CUDA and this allocator.
    if (guard.watching && !atomic_flag_test_and_set_explicit(&noted, memory_order_relaxed))
        guard_report_note("PyTorch allocates through moat: each tensor is a separate buffer");
    bool entered = script_calls_enter(true);
    struct place place = enter(device);
    CUresult r = allocate(&p, (size_t)size, stream);
    leave(place);
    script_calls_leave(entered);
    if (r) {
        refuse((size_t)size, r);
        return NULL;
    }
    return (void *)(uintptr_t)p;
}

__attribute__((visibility("default"))) void moat_torch_keep(int keep)
{
    keeps = keep;
}

static bool is_graphs(uint64_t pointer)
{
    unsigned section = epoch_enter();
    const struct track_block *b = track_live(pointer);
    bool yes = b && b->facts.name == graph_memory;
    epoch_leave(section);
    return yes;
}

// PyTorch's own allocator keeps a graph's memory as long as the graph; this interface does not reveal when
// the graph ends, so the memory is never freed.
__attribute__((visibility("default"))) void moat_torch_free(void *pointer, ssize_t size, int device,
                                                            CUstream stream)
{
    if (!pointer || !have_driver() || is_graphs((uintptr_t)pointer))
        return;
    bool entered = script_calls_enter(false);
    struct place place = enter(device);
    hook_cuMemFree_v2((uintptr_t)pointer);
    leave(place);
    script_calls_leave(entered);
}
