// SPDX-License-Identifier: MIT
#include "check/check_stray.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/host_memory.h"
#include "context/context.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "mode/mode.h"
#include "track/track.h"

// Relaxed: it is set before a kernel is launched that may use such memory, and read after the kernel's
// record.
static _Atomic(bool) unseen;

void check_stray_unseen(void)
{
    atomic_store_explicit(&unseen, true, memory_order_relaxed);
}

// Returns whether memory may be there of which neither moat nor the driver says anything.
static bool may_be_unseen(void)
{
    return atomic_load_explicit(&unseen, memory_order_relaxed) ||
           atomic_load_explicit(&guard.was_paused, memory_order_relaxed) ||
           atomic_load_explicit(&guard.counts[GUARD_CHECK_BARE], memory_order_relaxed);
}

// Returns whether moat knows the memory, though the table on the device does not: it may be new, or the table
// too small.
static bool is_tracked(uint64_t address)
{
    unsigned section = epoch_enter();
    bool tracked = track_live(address) || track_announced(address) || track_freed(address);
    epoch_leave(section);
    return tracked;
}

// Returns whether kernels may access memory of the process that no call has made accessible.
static bool reads_host(const struct context *ctx)
{
    const struct driver *d = &guard.real;
    int reads = 1;
    return !d->cuDeviceGetAttribute ||
           d->cuDeviceGetAttribute(&reads, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, ctx->device) || reads;
}

// Returns whether a range of the driver's is one that a mode has mapped, where there are only its buffers.
static bool is_placed(CUdeviceptr base, size_t size)
{
    struct mode_answer answer;
    unsigned section = epoch_enter();
    const struct track_block *b = track_after(base - 1, base + size);
    bool placed = b && mode_ask(b->range.base, &answer) == MODE_BUFFER && answer.mapped;
    epoch_leave(section);
    return placed;
}

// Requires the context to be current. After a fault the driver answers nothing.
static enum check_stray ask_driver(uint64_t address, bool *placed)
{
    const struct driver *d = &guard.real;
    CUmemorytype type;
    CUdeviceptr base;
    size_t size;
    if (!d->cuPointerGetAttribute || !d->cuMemGetAddressRange_v2)
        return CHECK_STRAY_UNKNOWN;
    CUresult r = d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    CUresult range = d->cuMemGetAddressRange_v2(&base, &size, address);
    *placed = !range && is_placed(base, size);
    r = r == CUDA_ERROR_INVALID_VALUE ? range : r;
    return *placed                                                      ? CHECK_STRAY_NOBODYS
           : !r                                                         ? CHECK_STRAY_DRIVERS
           : r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_NOT_FOUND ? CHECK_STRAY_NOBODYS
                                                                        : CHECK_STRAY_UNKNOWN;
}

enum check_stray check_stray_ask(const struct error_ring_record *r, const struct context *ctx)
{
    char name[300];
    bool pushed;
    if (is_tracked(r->address) ||
        !context_enter(atomic_load_explicit(&ctx->handle, memory_order_relaxed), &pushed))
        return CHECK_STRAY_UNKNOWN;
    bool placed = false;
    enum check_stray is = ask_driver(r->address, &placed);
    bool host = is == CHECK_STRAY_NOBODYS && !placed && reads_host(ctx);
    context_leave(pushed);
    if (host)  // the program may have released it since
        return host_memory_name(r->address, name, sizeof name) ? CHECK_STRAY_HOST : CHECK_STRAY_UNKNOWN;
    // A device that skips wrong accesses itself reports those that it notices.
    bool unknown = guard.real_skipped || may_be_unseen();
    return is == CHECK_STRAY_NOBODYS && !placed && unknown ? CHECK_STRAY_UNKNOWN : is;
}
