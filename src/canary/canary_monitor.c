// SPDX-License-Identifier: MIT
#include "canary/canary_monitor.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "canary/canary.h"
#include "canary/canary_free.h"
#include "canary/canary_order.h"
#include "core/lock.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "launch/launch_ring.h"
#include "core/own_thread.h"

enum {
    SHARE = 5,         // scans take at most 1/SHARE of the monitor's time, ...
    PATIENCE = 1500,   // ... but need no longer pauses for that than so many microseconds
    CALL = 2500,       // assumed nanoseconds of a copy call, during which calls of the program may wait
    CALL_SHARE = 10,   // copy calls take at most 1/CALL_SHARE of the time
    LAUNCHES = 4,      // launches per millisecond, beyond which the program is busy
    GRAPH = 8,         // a graph launch counts as so many
    BUSY_SHARE = 100,  // busy: copy calls take at most 1/BUSY_SHARE of the time
    BUSY = 5000,       // busy: least pause in microseconds
    // Busy: microseconds of pause for each launch per millisecond. A program that only launches loses 0.15 ms
    // to a scan.
    EACH = 120,
    COPIES = 4,     // transfers per millisecond, beyond which our copies delay the program's
    HURRY = 50000,  // pause in microseconds while there are more; the longest pause for a busy program, too
    SYNC_SHARE = 2000,  // scans that the program waits for take at most 1/SYNC_SHARE of its time
    THOROUGH = 64,      // one scan in so many is whole, and includes managed memory
    QUIET = 20000,      // scans in a row without a launch, after which pauses are IDLE times as long; ...
    ENDED = 20,         // ... a scan counts for so many if all that was launched is known to have ended
    IDLE = 4,
    FIRST_COST = 100000,  // assumed cost of a scan in nanoseconds, before the first one
    DRAIN_SECONDS = 2,    // wait for running kernels at exit
    RING = 1000,          // microseconds at most between reads of the kernels' heap rings, which are small
};
static const uint64_t kept = 500000000;  // nanoseconds for which places stay in the cache

static struct lock scan_lock = LOCK_INIT(SCAN);                   // before all others of ours
static bool closing[CONTEXT_CONTEXTS], failed[CONTEXT_CONTEXTS];  // under scan_lock
static _Atomic uint64_t seen;  // launches before the last scan of all contexts. Relaxed: a hint

// Signals to the monitor, under wake_lock.
static struct lock wake_lock = LOCK_INIT(MONITOR);
static pthread_cond_t wake;
static bool running, ending, drained;

static bool nothing_more(void)
{
    return false;
}

static void read_nothing(struct context *ctx, const struct canary_occasion *occasion)
{
}

static CUresult check_nothing(struct context *ctx, const struct canary_occasion *occasion)
{
    return CUDA_SUCCESS;
}

static const struct canary_companion nobody = {nothing_more, read_nothing, check_nothing};
static const struct canary_companion *companion = &nobody;

void canary_monitor_set_companion(const struct canary_companion *who)
{
    companion = who;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void canary_monitor_lock(void)
{
    lock_take(&scan_lock);
}

void canary_monitor_unlock(void)
{
    lock_give(&scan_lock);
}

bool canary_monitor_trylock(void)
{
    return lock_try(&scan_lock);
}

bool canary_monitor_watches(const struct context *ctx)
{
    return !closing[context_number(ctx)] && !failed[context_number(ctx)];
}

bool canary_monitor_is_idle(void)
{
    return atomic_load_explicit(&launch_ring.count, memory_order_relaxed) ==
           atomic_load_explicit(&canary_scan_ended, memory_order_relaxed);
}

// --- scans -------------------------------------------------------------------------------------------------

// Requires scan_lock.
static void scan_context(struct context *ctx, bool thorough, const struct canary_occasion *occasion)
{
    unsigned n = context_number(ctx);
    bool pushed;
    if (closing[n])
        return;
    companion->read(ctx, occasion);
    if (failed[n])
        return;
    CUcontext context = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
    struct context *entered = context ? context_enter(context, &pushed) : NULL;
    if (!entered)
        return;
    // First the readbacks of freed buffers: until they are verified, scans skip their places.
    canary_order_verify(ctx);
    CUresult r = canary_scan_context(ctx, thorough, thorough, occasion);
    if (r == CUDA_SUCCESS) {
        canary_store_tidy(ctx);
        canary_drop_cached(ctx, kept);
        canary_free_postponed(ctx);
        canary_free_trim(ctx, canary_monitor_is_idle());
    }
    if (r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY)
        r = companion->check(ctx, occasion);
    // A context in error remains so; kernel_fault reports it when the program sees the error.
    failed[n] = r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY && r != CUDA_ERROR_NOT_READY;
    context_leave(pushed);
    guard_count(GUARD_CANARY_SCANS);
}

static void scan_all(bool thorough, const struct canary_occasion *occasion)
{
    uint64_t launches = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++) {
        struct context *ctx = context_of_number(i);
        if (ctx)
            scan_context(ctx, thorough, occasion);
    }
    atomic_store_explicit(&seen, launches, memory_order_relaxed);
}

// Reads what kernels' heaps have sent, without a driver call. Skipped if a scan is running, which does it
// too.
static void read_rings(const struct canary_occasion *occasion)
{
    if (!companion->any() || !lock_try(&scan_lock))
        return;
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++) {
        struct context *ctx = closing[i] ? NULL : context_of_number(i);
        if (ctx)
            companion->read(ctx, occasion);
    }
    lock_give(&scan_lock);
}

void canary_monitor_check(struct context *ctx, struct canary_slab *slab,
                          const struct canary_occasion *occasion)
{
    // A running scan verifies it too.
    if (!lock_try(&scan_lock))
        return;
    unsigned n = context_number(ctx);
    if (!closing[n] && !failed[n] && canary_store_find(slab->base) == slab)
        canary_scan_slab(ctx, slab, occasion);
    lock_give(&scan_lock);
}

void canary_monitor_synced(enum driver_id call, uint64_t ended)
{
    if (ended)
        atomic_store_explicit(&canary_scan_ended, ended, memory_order_relaxed);
    static _Atomic uint64_t next;  // earliest time of the next one. Relaxed: bounds the cost, orders nothing
    uint64_t launches = atomic_load_explicit(&launch_ring.count, memory_order_relaxed), from;
    const struct canary_occasion occasion = {call, NULL, "found when the program waited for its kernels",
                                             false, false};
    bool kernels = companion->any();  // scans of their heaps complete later than they begin
    read_rings(&occasion);
    if ((launches == atomic_load_explicit(&seen, memory_order_relaxed) && !kernels) ||
        !(canary_store_slabs() || kernels) ||
        (from = now()) < atomic_load_explicit(&next, memory_order_relaxed) || !lock_try(&scan_lock))
        return;
    scan_all(true, &occasion);
    lock_give(&scan_lock);
    uint64_t end = now();
    atomic_store_explicit(&next, end + SYNC_SHARE * (end - from), memory_order_relaxed);
}

// --- the thread --------------------------------------------------------------------------------------------

// Sleeps for `ns` nanoseconds, or until `ending`. Requires wake_lock.
static void rest(uint64_t ns)
{
    uint64_t at = now() + ns;
    struct timespec t = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
    while (!ending && pthread_cond_timedwait(&wake, &wake_lock.mutex, &t) != ETIMEDOUT)
        ;
}

// Sleeps likewise, and reads the rings now and then.
static void rest_and_read(uint64_t ns)
{
    const struct canary_occasion occasion = {DRIVER_CALLS, NULL, "found by a scan while the program ran",
                                             true, false};
    const uint64_t step = RING * 1000;
    const uint64_t end = now() + ns;
    while (!ending && companion->any() && now() + step < end) {
        rest(step);
        lock_give(&wake_lock);
        read_rings(&occasion);
        lock_take(&wake_lock);
    }
    uint64_t at = now();
    rest(at < end ? end - at : 0);
}

// Waits for all that the program launched, with no lock of ours held: this may take for ever.
static void drain(void)
{
    CUstreamCaptureMode mode = context_capture_relax();
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++) {
        struct context *ctx = context_of_number(i);
        bool pushed;
        lock_take(&scan_lock);
        bool usable = ctx && !closing[i] && !failed[i];
        lock_give(&scan_lock);
        if (usable && context_enter(atomic_load_explicit(&ctx->handle, memory_order_relaxed), &pushed)) {
            guard.real.cuCtxSynchronize();
            context_leave(pushed);
        }
    }
    context_capture_restore(mode);
}

// Estimates the cost of a scan from those so far. A slow scan counts as twice the estimate at most, until
// others follow.
static uint64_t learn(uint64_t cost, uint64_t took)
{
    took = took > 2 * cost ? 2 * cost : took;
    return (cost * 3 + took) / 4 + 1;
}

// What the program has done since the last call.
struct pace {
    // more transfers than COPIES: it may wait for each, and on an H200 loses some 300 us to each scan in
    // between
    bool copying;
    uint64_t launches;  // per millisecond
};

static struct pace pace_now(void)
{
    static uint64_t transfers, launches, at;
    uint64_t copied = atomic_load_explicit(&guard.counts[GUARD_TRANSFERS], memory_order_relaxed);
    uint64_t launched = atomic_load_explicit(&launch_ring.count, memory_order_relaxed) +
                        (GRAPH - 1) * atomic_load_explicit(&launch_ring.graphs, memory_order_relaxed);
    uint64_t time = now();
    struct pace pace = {.copying = (copied - transfers) * 1000000 > (time - at) * COPIES,
                        .launches = (launched - launches) * 1000000 / (time - at + 1)};
    transfers = copied;
    launches = launched;
    at = time;
    return pace;
}

// Returns the pause after a scan of this cost, in nanoseconds. calls: about how many copy calls the scan
// made.
static uint64_t pause_after(uint64_t cost, uint64_t calls, bool idle, uint64_t pause)
{
    const uint64_t most = PATIENCE * 1000;
    uint64_t wanted = cost * (SHARE - 1), by_calls = calls * CALL * (CALL_SHARE - 1);
    wanted = wanted < most ? wanted : most;
    wanted = wanted < by_calls ? by_calls : wanted;
    wanted = wanted < pause ? pause : wanted;
    return wanted * (idle ? IDLE : 1);
}

// Returns the least pause for a program that copies or launches a lot.
static uint64_t pause_for(struct pace pace, uint64_t calls)
{
    const uint64_t hurry = HURRY * 1000, busy = BUSY * 1000;
    uint64_t by_calls = calls * CALL * (BUSY_SHARE - 1), by_launches = pace.launches * EACH * 1000;
    if (pace.copying)
        return hurry;
    if (pace.launches <= LAUNCHES)
        return 0;
    uint64_t wanted = by_calls < by_launches ? by_launches : by_calls;
    return wanted < busy ? busy : wanted < hurry ? wanted : hurry;
}

static uint64_t scan_once(bool thorough)
{
    const struct canary_occasion occasion = {DRIVER_CALLS, NULL, "found by a scan while the program ran",
                                             true, thorough};
    lock_take(&scan_lock);
    uint64_t report_ns = atomic_load_explicit(&canary_verify_report_ns, memory_order_relaxed), from = now();
    scan_all(thorough, &occasion);
    uint64_t took = now() - from;
    report_ns = atomic_load_explicit(&canary_verify_report_ns, memory_order_relaxed) - report_ns;
    lock_give(&scan_lock);
    return report_ns < took ? took - report_ns : 0;
}

static void *monitor(void *unused)
{
    const uint64_t pause = (uint64_t)guard.options.canary_interval * 1000;
    uint64_t cost = FIRST_COST, calls = 0, before = 0;
    unsigned quiet = 0;
    lock_take(&wake_lock);
    for (unsigned n = 1; !ending; n++) {
        uint64_t usual = pause_after(cost, calls, quiet == QUIET, pause),
                 least = pause_for(pace_now(), calls);
        rest_and_read(usual < least ? least : usual);
        if (ending)
            break;
        lock_give(&wake_lock);
        uint64_t launches = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
        uint64_t ended = atomic_load_explicit(&canary_scan_ended, memory_order_relaxed);
        quiet = launches != before ? 0 : quiet + (launches == ended ? ENDED : 1);
        quiet = quiet < QUIET ? quiet : QUIET;
        before = launches;
        calls = atomic_load_explicit(&canary_scan_calls, memory_order_relaxed);
        if (!atomic_load_explicit(&guard.paused, memory_order_relaxed) &&
            (canary_store_slabs() || companion->any()))
            cost = learn(cost, scan_once(n % THOROUGH == 0));
        calls = atomic_load_explicit(&canary_scan_calls, memory_order_relaxed) - calls;
        lock_take(&wake_lock);
    }
    lock_give(&wake_lock);
    drain();
    lock_take(&wake_lock);
    drained = true;
    pthread_cond_broadcast(&wake);
    lock_give(&wake_lock);
    return NULL;
}

void canary_monitor_start(void)
{
    pthread_condattr_t cond;
    pthread_condattr_init(&cond);
    pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &cond);
    pthread_condattr_destroy(&cond);
    running = own_thread(monitor);
    if (!running)
        guard_report_note(
            "canary: the monitor thread cannot be started: canaries are checked only when the program waits, "
            "frees or ends");
}

void canary_monitor_after_fork(void)
{
    lock_after_fork(&scan_lock);
    lock_after_fork(&wake_lock);
    running = false;
}

// --- ends --------------------------------------------------------------------------------------------------

void canary_monitor_context_ends(CUcontext context, enum driver_id call)
{
    struct context *ctx = context ? context_find(context) : NULL;
    if (!ctx)
        return;
    const struct canary_occasion occasion = {call, NULL, "found when the context ended", false, true};
    lock_take(&scan_lock);
    scan_context(ctx, true, &occasion);
    scan_context(ctx, true, &occasion);
    closing[context_number(ctx)] = true;
    lock_give(&scan_lock);
}

void canary_monitor_context_stays(CUcontext context)
{
    struct context *ctx = context ? context_find(context) : NULL;
    if (!ctx)
        return;
    lock_take(&scan_lock);
    closing[context_number(ctx)] = false;
    lock_give(&scan_lock);
}

void canary_monitor_context_gone(struct context *ctx)
{
    closing[context_number(ctx)] = failed[context_number(ctx)] = false;
}

// Requires wake_lock, and gives it back.
static void await_drain(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += DRAIN_SECONDS;
    ending = true;
    pthread_cond_broadcast(&wake);
    while (running && !drained && pthread_cond_timedwait(&wake, &wake_lock.mutex, &t) != ETIMEDOUT)
        ;
    lock_give(&wake_lock);
}

void canary_monitor_end(void)
{
    const struct canary_occasion occasion = {DRIVER_CALLS, "the end of the program",
                                             "found when the program ended", true, true};
    lock_take(&wake_lock);
    await_drain();
    lock_take(&scan_lock);
    scan_all(true, &occasion);
    scan_all(true, &occasion);
    lock_give(&scan_lock);
}

// Takes a lock within as long as running kernels are waited for. Returns false if that fails.
static bool take_in_time(struct lock *l)
{
    const uint64_t end = now() + (uint64_t)DRAIN_SECONDS * 1000000000u;
    while (!lock_try(l)) {
        if (now() > end)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return true;
}

void canary_monitor_aborts(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    const struct canary_occasion occasion = {DRIVER_CALLS, "abort", "found when the program called abort",
                                             true, true};
    // Relaxed: of several threads that call abort, one looks.
    if (atomic_flag_test_and_set_explicit(&begun, memory_order_relaxed) || !take_in_time(&wake_lock))
        return;
    await_drain();
    if (!take_in_time(&scan_lock))
        return;
    scan_all(true, &occasion);
    lock_give(&scan_lock);
}
