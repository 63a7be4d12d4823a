// SPDX-License-Identifier: MIT
#include "heap/heap_life.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "heap/own_fds.h"
#include "heap/block.h"
#include "heap/monitor.h"
#include "heap/cycle.h"
#include "heap/deliver.h"
#include "heap/safe_read.h"
#include "heap/heap.h"
#include "heap/heap_config.h"
#include "heap/heap_lazy_free.h"
#include "heap/heap_leaks.h"
#include "heap/heap_report.h"
#include "heap/heap_signals.h"
#include "heap/last_thread.h"
#include "heap/throttle.h"
#include "heap/thread_cache.h"
#include "heap/site.h"
#include "heap/span.h"
#include "heap/idle.h"
#include "heap/next_malloc.h"
#include "heap/producer.h"

enum {
    NICER = 10,
    SHORTEST_NS = 200000,
    LONGEST_NS = 1000000000,
    STOPPED_NS = 5000000,
    ROUND_NS = 4000000,
    BUSY_ROUND_NS = 16000000,   // while others compete for cores
    QUIET_ROUND_NS = 48000000,  // and little is allocated
    FEW_WORDS = 1 << 10,
    DOZE_NS = 25000000,
    DELIVER_PERCENT = 50,
    START_NS = 4000000,  // many processes end before that
    START_TRIES = 250,
    LEAST_BACKLOG = 1 << 17,
    LAST_LOOK_MS = 2000,
    CHILD_BLOCKS = 200000,
    CHILD_NS = 20000000,
    LEAST_STACK = 32 << 10  // bytes that a check needs
};

// --- the first step ---

enum early { UNTOUCHED, UNDER_WAY, READY, FAILED };
static _Atomic int early;
static __thread bool in_first_step __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) bool first_step(void)
{
    int untouched = UNTOUCHED;
    if (in_first_step)
        return false;
    if (atomic_compare_exchange_strong(&early, &untouched, UNDER_WAY)) {
        in_first_step = true;
        heap_key_init();
        int err = next_malloc_init();
        err = err ? err : site_init();
        thread_cache_start();
        producer_set_barrier(true);
        in_first_step = false;
        // Release: with the acquire in heap_life_ready.
        atomic_store_explicit(&early, err ? FAILED : READY, memory_order_release);
    }
    while (atomic_load_explicit(&early, memory_order_acquire) == UNDER_WAY)
        sched_yield();
    return atomic_load_explicit(&early, memory_order_acquire) == READY;
}

bool heap_life_ready(void)
{
    // Acquire: with first_step's release.
    return __builtin_expect(atomic_load_explicit(&early, memory_order_acquire) == READY, 1) || first_step();
}

// --- threads of the program ---

static pthread_key_t key;
static atomic_bool has_key;

static void thread_ends(void *writer)
{
    heap_thread_ends(writer);
    last_thread_leaves();
}

void heap_life_thread_starts(struct producer *w)
{
    if (atomic_load_explicit(&has_key, memory_order_acquire))  // with heap_life_start's release
        pthread_setspecific(key, w);
}

// --- threads of ours ---

static struct heap_config config;
static _Atomic pid_t running_in;  // the process in which our threads run; 0: none
static _Atomic pid_t owner_pid;   // the owner of this memory, no vfork child; relaxed: only fork changes it
static atomic_bool ended;
static __thread bool helping __attribute__((tls_model("initial-exec")));  // this thread is doing our work

static bool must_end(void)
{
    return atomic_load_explicit(&ended, memory_order_relaxed) || producer_closed();
}

static bool is_behind(unsigned list)
{
    uint64_t backlog = monitor_backlog(list);
    return backlog > LEAST_BACKLOG && backlog > monitor_stats(list).known / 2;
}

static void begin_thread(struct throttle *throttle, const char *name, int nicer, unsigned percent)
{
    own_fds_unshare();
    throttle_become(throttle, name, nicer, percent);
}

// Waits, within bounds, for another thread that is ending the process and making the last check.
static void await_end(void)
{
    for (int i = 0; i < LAST_LOOK_MS && !producer_closed(); i++)
        throttle_sleep(1000000);
}

// Ends a thread of ours, not before the last check: the C library frees memory of threads that end, and the
// search for leaks would meet that.
static void *end_thread(void)
{
    await_end();
    return NULL;
}

static void *monitor_loop(void *arg)
{
    unsigned list = (unsigned)(uintptr_t)arg;
    struct throttle throttle;
    struct idle idle;
    int64_t before = 0;  // start of the previous pass; 0: it was not complete
    bool whole = false, judged = false;
    own_fds_register();
    begin_thread(&throttle, "moat-monitor", NICER, config.share);
    throttle_start_low(&throttle);  // many processes end soon
    while (!must_end()) {
        throttle_begin(&throttle);
        if (before)
            cycle_note((uint64_t)(throttle.began - before));
        if (whole && judged && idle_is(&idle)) {
            before = 0;
            throttle_doze(&throttle, SHORTEST_NS, DOZE_NS);
            continue;
        }
        idle_begin(&idle);
        monitor_lock(list);
        whole = monitor_once(list);
        judged = !monitor_has_suspects(list);
        monitor_unlock(list);
        before = whole ? throttle.began : 0;
        if (is_behind(list))
            throttle_rest(&throttle, SHORTEST_NS, SHORTEST_NS);
        else
            throttle_rest(&throttle, whole ? SHORTEST_NS : STOPPED_NS, LONGEST_NS);
    }
    return end_thread();
}

static int start_thread(void *(*run)(void *), unsigned arg)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    int err = pthread_attr_init(&attr);
    if (err)
        return -err;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    // Signals are for the program's own threads.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&thread, &attr, run, (void *)(uintptr_t)arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return -err;
}

static void report_no_monitor(void)
{
    heap_report_note(
        "the heap's monitor cannot be started: blocks are checked only when they are freed and at the end");
}

// Starts a monitor. While another thread is inside execve, the kernel refuses new threads with EAGAIN; so
// this is tried again, unless the exec succeeds.
static int start_monitor(unsigned list)
{
    int err = start_thread(monitor_loop, list);
    for (int i = 0; err == -EAGAIN && i < START_TRIES && !must_end(); i++) {
        throttle_sleep(START_NS);
        err = start_thread(monitor_loop, list);
    }
    return err;
}

static void start_monitors(void)
{
    int err = 0;
    for (unsigned i = 0; !err && i < deliver_lists(); i++)
        err = start_monitor(i);
    if (err && !must_end())
        report_no_monitor();
}

// Ends the process when no thread is left that could call exit, nor holds the files that it would write to.
static void end_alone(void)
{
    heap_life_end();
    syscall(SYS_exit_group, 0);
}

static int64_t next_pause(int64_t pause, bool idle)
{
    return !idle ? ROUND_NS : pause < 8 * ROUND_NS ? pause * 2 : pause;
}

// Each round interrupts the program's threads, so rounds are as rare as tolerable.
static void *deliver_loop(void *unused)
{
    struct throttle throttle;
    int64_t pause = ROUND_NS;
    own_fds_register();
    throttle_sleep(START_NS);
    if (must_end())
        return end_thread();
    start_monitors();
    begin_thread(&throttle, "moat-deliver", 0, DELIVER_PERCENT);
    while (!must_end()) {
        throttle_begin(&throttle);
        deliver_lock();
        bool asked = deliver_exact_wanted();
        uint64_t words = deliver_round(asked);
        deliver_unlock();
        asked |= deliver_exact_wanted();
        if (!words && last_thread_has_left())
            end_alone();
        pause = next_pause(pause, !words && !asked);
        throttle_rest(&throttle, pause, asked || words > FEW_WORDS ? BUSY_ROUND_NS : QUIET_ROUND_NS);
    }
    return end_thread();
}

static void start_threads(void)
{
    heap_report_before_threads();
    if (start_thread(deliver_loop, 0))
        report_no_monitor();
}

// --- when we fall behind ---

// Called by a thread that has filled its window. If all cores are busy and our threads get too little time,
// the program's threads do some of our work themselves, so that memory stays bounded. They wait for no lock.
static void help(struct producer *w)
{
    if (must_end() || helping)
        return;
    helping = true;
    if (ring_waiting(&w->ring) > LEAST_BACKLOG / 2 && deliver_trylock()) {
        deliver_rings();
        deliver_unlock();
    }
    for (unsigned i = 0; i < deliver_lists(); i++)
        if (is_behind(i) && monitor_trylock(i)) {
            monitor_sweep(i);
            monitor_unlock(i);
        }
    helping = false;
}

// --- fork ---

static void before_fork(void)
{
    monitor_hurry(true);
    deliver_lock();
    for (unsigned i = 0; i < deliver_lists(); i++)
        monitor_lock(i);
    checked_assert(monitor_all_valid());
    heap_report_before_fork();
    span_before_fork();
}

static void unlock_all(bool child)
{
    span_after_fork();
    heap_report_after_fork(child);
    for (unsigned i = deliver_lists(); i-- > 0;)
        monitor_unlock(i);
    deliver_unlock();
    monitor_hurry(false);
}

static void after_fork_in_parent(void)
{
    unlock_all(false);
}

// Most children exec another program at once. Our threads are started when a child turns out to stay: when it
// allocates after a while.
static int64_t forked;  // time of the fork; only the child's first thread writes it
atomic_bool heap_life_unmonitored;

void heap_life_maybe_start(void)
{
    if (must_end() || helping || throttle_now() - forked < CHILD_NS ||
        atomic_load_explicit(&owner_pid, memory_order_relaxed) != getpid())
        return;
    pid_t nowhere = 0;
    // Relaxed, both: exactly one thread succeeds and starts them.
    if (!atomic_compare_exchange_strong_explicit(&running_in, &nowhere, getpid(), memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    helping = true;
    atomic_store_explicit(&heap_life_unmonitored, false, memory_order_relaxed);
    start_threads();
    helping = false;
}

static void after_fork_in_child(void)
{
    forked = throttle_now();
    atomic_store_explicit(&heap_life_unmonitored, true, memory_order_relaxed);
    atomic_store_explicit(&running_in, 0, memory_order_relaxed);
    atomic_store_explicit(&owner_pid, getpid(), memory_order_relaxed);
    deliver_after_fork(heap_self());
    own_fds_after_fork();
    thread_cache_after_fork();
    cycle_forget();
    unlock_all(true);
}

// --- signals ---

// Returns whether this thread is on a stack for signals that has no room for a check.
static bool is_on_small_stack(void)
{
    stack_t s;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return sigaltstack(NULL, &s) == 0 && s.ss_flags & SS_ONSTACK && here - (uintptr_t)s.ss_sp < LEAST_STACK;
}

// Returns whether this thread was interrupted while it had one of our locks or its window; then no check is
// possible.
static bool is_inside(void)
{
    struct producer *w = heap_self();
    return helping || heap_report_is_busy() ||
           (w && atomic_load_explicit(&w->busy, memory_order_relaxed) != PRODUCER_IDLE);
}

// Checks the heap once more, in a signal handler of a process that may go on.
static void look(void)
{
    if (atomic_load_explicit(&owner_pid, memory_order_relaxed) != getpid() || is_inside() || must_end() ||
        is_on_small_stack())
        return;
    helping = true;
    monitor_all_now();
    helping = false;
}

// --- the second step ---

static void leave_unwatched(const char *why)
{
    heap_report_note(why);
    producer_close();
}

void heap_life_start(void)
{
    static atomic_bool once;
    if (!heap_life_ready() || atomic_exchange(&once, true))
        return;
    heap_config_read(&config);
    heap_report_init(config.log_file, config.halt ? config.exitcode : -1);
    heap_set_lazy(config.lazy);
    heap_settings.quarantine_bytes = config.quarantine_bytes;
    site_set_depth(config.depth);
    if (!safe_read_works()) {
        leave_unwatched("the heap is not watched: this system does not let a process copy its own memory");
        return;
    }
    if (deliver_init(config.monitors) || monitor_init(config.monitors)) {
        leave_unwatched("the heap is not watched: out of memory");
        return;
    }
    if (pthread_key_create(&key, thread_ends) == 0) {
        atomic_store_explicit(&has_key, true, memory_order_release);  // with heap_life_thread_starts
        if (heap_self())  // this thread began before there was a key
            pthread_setspecific(key, heap_self());
    }
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    atomic_store_explicit(&running_in, getpid(), memory_order_relaxed);
    atomic_store_explicit(&owner_pid, getpid(), memory_order_relaxed);
    start_threads();
    producer_when_full(help);
    if (config.signals)
        heap_signals_start(look, heap_life_end_here);
}

// Reports writes past the end of blocks behind which nothing was cut off their span yet.
static void check_uncut(void)
{
    static struct span_overwritten found[THREAD_CACHE_FINE_BINS];  // one thread ends the process
    size_t n = span_overwritten(found);
    for (size_t i = 0; i < n; i++)
        heap_report_unused_head(found[i].block, &found[i].head, span_before(found[i].block));
}

void heap_life_end(void)
{
    if (!deliver_lists() || atomic_exchange(&ended, true) || producer_closed())
        return;
    if (is_inside()) {
        producer_close();
        return;
    }
    helping = true;
    if (!monitor_all_now())
        heap_report_note("the heap was not checked at the end, because its monitor did not answer");
    else if (config.leaks)
        heap_leaks_report();
    check_uncut();
    if (heap_settings.lazy)
        heap_lazy_free_check();
    heap_report_end();
    producer_close();
    helping = false;
}

// Returns whether to check at the end: a child that was forked from a large process and ends at once would
// check all that it inherited.
static bool should_check_at_exit(void)
{
    uint64_t live = 0;
    for (unsigned i = 0; i < deliver_lists(); i++)
        live += monitor_stats(i).known;
    return atomic_load_explicit(&running_in, memory_order_relaxed) == getpid() || live < CHILD_BLOCKS;
}

void heap_life_end_here(void)
{
    int saved = errno;
    if (atomic_load_explicit(&owner_pid, memory_order_relaxed) != getpid() || is_inside() ||
        is_on_small_stack())
        return;
    if (atomic_load_explicit(&ended, memory_order_relaxed))
        await_end();
    else if (should_check_at_exit())
        heap_life_end();
    errno = saved;
}
