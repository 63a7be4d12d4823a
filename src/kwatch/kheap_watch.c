// SPDX-License-Identifier: MIT
#include "kwatch/kheap_watch.h"

#include <stddef.h>
#include <time.h>

#include "canary/canary.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "kwatch/kheap_host.h"
#include "kwatch/kheap_report.h"
#include "context/context_copy.h"
#include "launch/launch_ring.h"

enum {
    SHARE = 10,     // pauses last at least so many times as long as a scan
    MOST_COST = 5,  // assumed milliseconds of a scan at most: it may have waited for a free multiprocessor
    QUIET = 64,     // scans in a row without a launch, after which pauses are longer ...
    IDLE = 16,      // ... by this factor
    SHORT = 50,     // milliseconds that a program waits for a scan at most, if it goes on
    LONG = 2000,    // the same before the end of a context or of the process
};

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// --- the ring ----------------------------------------------------------------------------------------------

// Reports the records in the ring. Returns how many were read.
static unsigned take_records(struct kheap_host *h, const struct context *ctx,
                             const struct canary_occasion *occasion)
{
    struct error_ring_record from;
    struct kheap_record r;
    unsigned n = 0;
    for (; error_ring_take(&h->reader, &from); n++)
        if (kheap_record_read(&from, &r))
            kheap_report_record(&r, ctx, h, occasion);
    return n;
}

void kheap_watch_read(struct context *ctx, const struct canary_occasion *occasion)
{
    struct kheap_host *h = kheap_host_of(ctx);
    if (h && take_records(h, ctx, occasion))
        h->before = h->clean;  // the running scan can no longer declare kernels clean
}

// --- scans -------------------------------------------------------------------------------------------------

static CUresult launch(struct kheap_host *h)
{
    const struct driver *d = &guard.real;
    uint64_t base = h->about.base;
    uint32_t zero = 0;
    void *arguments[] = {&base, &zero};
    h->before = atomic_load_explicit(&canary_scan_ended, memory_order_relaxed);
    h->seen = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    h->launched = now();
    CUresult r = d->cuLaunchKernel(h->scan, KHEAP_SCAN_BLOCKS, 1, 1, KHEAP_SCAN_THREADS, 1, 1, 0, h->stream,
                                   arguments, NULL);
    if (!r)
        r = d->cuEventRecord(h->done, h->stream);
    h->running = !r;
    return r;
}

// A scan has ended: reports what it found, and determines when the next one is due.
static void scan_ended(struct kheap_host *h, struct context *ctx, const struct canary_occasion *occasion)
{
    const uint64_t pause = (uint64_t)guard.options.canary_interval * 1000, most = MOST_COST * 1000000;
    uint64_t at = now(), cost = at - h->launched;
    cost = cost < most ? cost : most;
    h->running = false;
    guard_count(GUARD_KHEAP_SCANS);
    if (!take_records(h, ctx, occasion))
        h->clean = h->before > h->clean ? h->before : h->clean;
    h->quiet = h->seen != atomic_load_explicit(&launch_ring.count, memory_order_relaxed) ? 0 : h->quiet + 1;
    uint64_t least = cost * SHARE > pause ? cost * SHARE : pause;
    h->due = at + (h->quiet < QUIET ? least : least * IDLE);
}

// Returns CUDA_ERROR_NOT_READY if the scan has not ended after `patience` milliseconds.
static CUresult await(struct kheap_host *h, unsigned patience)
{
    uint64_t end = now() + (uint64_t)patience * 1000000;
    struct timespec pause = {.tv_nsec = 10000};
    CUresult r;
    while ((r = guard.real.cuEventQuery(h->done)) == CUDA_ERROR_NOT_READY && now() < end) {
        nanosleep(&pause, NULL);
        pause.tv_nsec += pause.tv_nsec < 500000 ? pause.tv_nsec / 2 : 0;
    }
    return r;
}

static CUresult scan_now(struct kheap_host *h, struct context *ctx, const struct canary_occasion *occasion,
                         unsigned patience)
{
    CUresult r = CUDA_SUCCESS;
    // A running scan began before what this one must see, so another one follows.
    for (bool again = h->running; !r; again = false) {
        if (!h->running)
            r = launch(h);
        if (!r)
            r = await(h, patience);
        if (!r)
            scan_ended(h, ctx, occasion);
        if (!again)
            break;
    }
    return r;
}

// If all kernels had ended before the last scan, there is nothing left to find.
static bool is_due(const struct kheap_host *h)
{
    uint64_t launches = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    return (h->clean < launches || h->seen != launches) && now() >= h->due;
}

static CUresult poll_scan(struct kheap_host *h, struct context *ctx, const struct canary_occasion *occasion)
{
    CUresult r = CUDA_SUCCESS;
    if (!h->running && is_due(h))
        r = launch(h);
    if (!r && h->running)
        r = guard.real.cuEventQuery(h->done);
    if (!r && h->running)
        scan_ended(h, ctx, occasion);
    return r;
}

// Adds what is new since the last call to the summary.
static void count(struct kheap_host *h, struct context *ctx)
{
    struct kheap_counts counts[KHEAP_COUNTS];
    struct error_ring_writer errors = {0};
    uint64_t mallocs = 0;
    const struct context_copy copies[] = {
        {h->about.counts, counts, sizeof counts},
        {h->about.base + offsetof(struct kheap, errors), &errors, sizeof errors},
    };
    if (context_read(ctx, copies, 2))
        return;
    for (unsigned i = 0; i < KHEAP_COUNTS; i++)
        mallocs += counts[i].mallocs;
    guard_add(GUARD_KHEAP_BUFFERS, mallocs - h->mallocs);
    guard_add(GUARD_KHEAP_LOST, errors.lost - h->lost);
    h->mallocs = mallocs;
    h->lost = errors.lost;
}

CUresult kheap_watch_context(struct context *ctx, const struct canary_occasion *occasion)
{
    struct kheap_host *h = kheap_host_of(ctx);
    bool monitor = occasion->call == DRIVER_CALLS && !occasion->call_name;
    CUresult r = CUDA_SUCCESS;
    if (!h)
        return r;
    kheap_watch_read(ctx, occasion);
    CUstreamCaptureMode mode = context_capture_relax();
    if (!monitor)
        r = scan_now(h, ctx, occasion, occasion->all ? LONG : SHORT);
    else
        r = poll_scan(h, ctx, occasion);
    if (!monitor && occasion->all)
        count(h, ctx);
    context_capture_restore(mode);
    return r;
}

// --- without a monitor -------------------------------------------------------------------------------------

static void read_one(struct context *ctx, const struct canary_occasion *occasion, bool all)
{
    struct kheap_host *h = kheap_host_of(ctx);
    bool pushed;
    if (!h || h->ending)
        return;
    kheap_watch_read(ctx, occasion);
    CUcontext context = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
    if (!all || !context_enter(context, &pushed))
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    count(h, ctx);
    context_capture_restore(mode);
    context_leave(pushed);
}

static bool closed;  // under the scan lock

void kheap_watch_close(void)
{
    canary_monitor_lock();
    closed = true;
    canary_monitor_unlock();
}

void kheap_watch_read_all(bool all)
{
    const struct canary_occasion occasion = {DRIVER_CALLS, NULL, "found while the program ran", true, false};
    if (canary_on || !kheap_host_any())
        return;
    if (all)
        canary_monitor_lock();
    else if (!canary_monitor_trylock())
        return;
    for (unsigned i = 0; !closed && i < CONTEXT_CONTEXTS; i++) {
        struct context *ctx = context_of_number(i);
        if (ctx)
            read_one(ctx, &occasion, all);
    }
    canary_monitor_unlock();
}

void kheap_watch_ending(const struct context *ctx, bool ending)
{
    canary_monitor_lock();
    struct kheap_host *h = ctx ? kheap_host_of(ctx) : NULL;
    if (h)
        h->ending = ending;
    canary_monitor_unlock();
}
