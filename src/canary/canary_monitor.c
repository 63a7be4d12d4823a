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
    SHARE = 5,         // a scan may take one part in so many of the monitor's time ...
    PATIENCE = 1500,   // ... but no pause need be longer for it than so many microseconds
    CALL = 2500,       // nanoseconds of a copy's call, in which the program's own calls may wait ...
    CALL_SHARE = 10,   // ... and which take one part in so many of the time, ...
    LAUNCHES = 4,      // ... or, while it launches more kernels than this in a millisecond, ...
    GRAPH = 8,         // ... a graph for so many, ...
    BUSY_SHARE = 100,  // ... one in so many, ...
    BUSY = 5000,       // ... with pauses of so many microseconds at least, ...
    EACH =
        120,  // ... and so many for each of them: a program that does nothing but launch loses 0.15 ms to a scan
    COPIES = 4,     // transfers of the program's in a millisecond, beyond which it is in a hurry itself ...
    HURRY = 50000,  // ... and pauses have so many microseconds: a copy of ours holds up its own
    SYNC_SHARE = 2000,  // of the program's time, where it waits for the scan itself
    THOROUGH = 64,      // one scan in so many is, and looks at managed memory too
    QUIET = 20000,      // scans in a row with nothing launched, after which pauses are IDLE times as long ...
    ENDED = 20,         // ... and each counts for so many if all that was launched is known to have ended
    IDLE = 4,
    FIRST_COST = 100000,  // nanoseconds that a scan is taken to cost before there was one
    DRAIN_SECONDS = 2,    // at exit
    RING = 1000,  // microseconds at most until what kernels' heaps tell is read: their rings are small
};
static const uint64_t kept = 500000000;  // nanoseconds that places wait for buffers like those they had

static struct lock scan_lock = LOCK_INIT(SCAN);             // before all others of ours
static bool closing[HOME_CONTEXTS], failed[HOME_CONTEXTS];  // under scan_lock
static _Atomic uint64_t seen;  // launches before the last whole scan. Relaxed: whether one is worth while

// What the monitor is told; under wake_lock.
static struct lock wake_lock = LOCK_INIT(MONITOR);
static pthread_cond_t wake;
static bool running, ending, drained;

static bool nothing_more(void)
{
    return false;
}

static void read_nothing(struct home *home, const struct canary_occasion *occasion)
{
}

static CUresult look_at_nothing(struct home *home, const struct canary_occasion *occasion)
{
    return CUDA_SUCCESS;
}

static const struct canary_companion nobody = {nothing_more, read_nothing, look_at_nothing};
static const struct canary_companion *companion = &nobody;

void canary_monitor_accompany(const struct canary_companion *who)
{
    companion = who;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void canary_monitor_hold(void)
{
    lock_take(&scan_lock);
}

void canary_monitor_go_on(void)
{
    lock_give(&scan_lock);
}

bool canary_monitor_try_hold(void)
{
    return lock_try(&scan_lock);
}

bool canary_monitor_watches(const struct home *home)
{
    return !closing[home_number(home)] && !failed[home_number(home)];
}

bool canary_monitor_is_idle(void)
{
    return atomic_load_explicit(&launch_ring.count, memory_order_relaxed) ==
           atomic_load_explicit(&canary_scan_ended, memory_order_relaxed);
}

// --- scans --------------------------------------------------------------------------------------------------

// Under scan_lock.
static void scan_home(struct home *home, bool thorough, const struct canary_occasion *occasion)
{
    unsigned n = home_number(home);
    bool pushed;
    if (closing[n])
        return;
    companion->read(home, occasion);
    if (failed[n])
        return;
    CUcontext context = atomic_load_explicit(&home->context, memory_order_relaxed);
    struct home *entered = context ? home_enter(context, &pushed) : NULL;
    if (!entered)
        return;
    // First what was read of buffers that are gone: until then nobody looks at those in their places.
    canary_order_settle(home);
    CUresult r = canary_scan_home(home, thorough, thorough, occasion);
    if (r == CUDA_SUCCESS) {
        canary_store_tidy(home);
        canary_let_go(home, kept);
        canary_free_postponed(home);
        canary_free_trim(home, canary_monitor_is_idle());
    }
    if (r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY)
        r = companion->look(home, occasion);
    // A context in error stays so; kernel_fault tells of it when the program hears.
    failed[n] = r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY && r != CUDA_ERROR_NOT_READY;
    home_leave(pushed);
    guard_count(GUARD_CANARY_SCANS);
}

static void scan_all(bool thorough, const struct canary_occasion *occasion)
{
    uint64_t launches = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    for (unsigned i = 0; i < HOME_CONTEXTS; i++) {
        struct home *home = home_of_number(i);
        if (home)
            scan_home(home, thorough, occasion);
    }
    atomic_store_explicit(&seen, launches, memory_order_relaxed);
}

// What kernels' heaps have told, which takes no call of the driver's. Not where a scan is under way: that does it too.
static void read_rings(const struct canary_occasion *occasion)
{
    if (!companion->any() || !lock_try(&scan_lock))
        return;
    for (unsigned i = 0; i < HOME_CONTEXTS; i++) {
        struct home *home = closing[i] ? NULL : home_of_number(i);
        if (home)
            companion->read(home, occasion);
    }
    lock_give(&scan_lock);
}

void canary_monitor_check(struct home *home, struct canary_slab *slab, const struct canary_occasion *occasion)
{
    // One that is under way looks at it too.
    if (!lock_try(&scan_lock))
        return;
    unsigned n = home_number(home);
    if (!closing[n] && !failed[n] && canary_store_find(slab->base) == slab)
        canary_scan_slab(home, slab, occasion);
    lock_give(&scan_lock);
}

void canary_monitor_synced(enum driver_id call, uint64_t ended)
{
    if (ended)
        atomic_store_explicit(&canary_scan_ended, ended, memory_order_relaxed);
    static _Atomic uint64_t next;  // when one may be made again. Relaxed: a bound on the cost, not on order
    uint64_t launches = atomic_load_explicit(&launch_ring.count, memory_order_relaxed), from;
    const struct canary_occasion occasion = {call, NULL, "found when the program waited for its kernels",
                                             false, false};
    bool kernels = companion->any();  // their heaps' scans end later than they begin
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

// --- the thread ---------------------------------------------------------------------------------------------

// Until it is time, or the end. Under wake_lock.
static void rest(uint64_t ns)
{
    uint64_t at = now() + ns;
    struct timespec t = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
    while (!ending && pthread_cond_timedwait(&wake, &wake_lock.mutex, &t) != ETIMEDOUT)
        ;
}

// The same, with a look at the rings now and then.
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

// All that the program launched, with nothing of ours held: this may take for ever.
static void drain(void)
{
    CUstreamCaptureMode mode = home_calm();
    for (unsigned i = 0; i < HOME_CONTEXTS; i++) {
        struct home *home = home_of_number(i);
        bool pushed;
        lock_take(&scan_lock);
        bool usable = home && !closing[i] && !failed[i];
        lock_give(&scan_lock);
        if (usable && home_enter(atomic_load_explicit(&home->context, memory_order_relaxed), &pushed)) {
            guard.real.cuCtxSynchronize();
            home_leave(pushed);
        }
    }
    home_stir(mode);
}

// What a scan costs, out of what the last ones took. One that took long is an exception until others do too.
static uint64_t learn(uint64_t cost, uint64_t took)
{
    took = took > 2 * cost ? 2 * cost : took;
    return (cost * 3 + took) / 4 + 1;
}

// What the program did since the last time, beyond what is usual.
struct pace {
    bool copying;  // it may wait for each transfer, and on an H200 loses some 300 us to each scan in between
    uint64_t launches;  // in a millisecond
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

// calls: about how many copies' calls the last scan made.
static uint64_t pause_after(uint64_t cost, uint64_t calls, bool idle, uint64_t pause)
{
    const uint64_t most = PATIENCE * 1000;
    uint64_t wanted = cost * (SHARE - 1), by_calls = calls * CALL * (CALL_SHARE - 1);
    wanted = wanted < most ? wanted : most;
    wanted = wanted < by_calls ? by_calls : wanted;
    wanted = wanted < pause ? pause : wanted;
    return wanted * (idle ? IDLE : 1);
}

// What a program that is in a hurry wants it to be at least.
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
    uint64_t told = atomic_load_explicit(&canary_look_told, memory_order_relaxed), from = now();
    scan_all(thorough, &occasion);
    uint64_t took = now() - from;
    told = atomic_load_explicit(&canary_look_told, memory_order_relaxed) - told;
    lock_give(&scan_lock);
    return told < took ? took - told : 0;
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
        if (canary_store_slabs() || companion->any())
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

// --- ends ---------------------------------------------------------------------------------------------------

void canary_monitor_context_ends(CUcontext context, enum driver_id call)
{
    struct home *home = context ? home_find(context) : NULL;
    if (!home)
        return;
    const struct canary_occasion occasion = {call, NULL, "found when the context ended", false, true};
    lock_take(&scan_lock);
    scan_home(home, true, &occasion);
    scan_home(home, true, &occasion);
    closing[home_number(home)] = true;
    lock_give(&scan_lock);
}

void canary_monitor_context_stays(CUcontext context)
{
    struct home *home = context ? home_find(context) : NULL;
    if (!home)
        return;
    lock_take(&scan_lock);
    closing[home_number(home)] = false;
    lock_give(&scan_lock);
}

void canary_monitor_context_gone(struct home *home)
{
    closing[home_number(home)] = failed[home_number(home)] = false;
}

static void await_drain(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += DRAIN_SECONDS;
    lock_take(&wake_lock);
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
    await_drain();
    lock_take(&scan_lock);
    scan_all(true, &occasion);
    scan_all(true, &occasion);
    lock_give(&scan_lock);
}
