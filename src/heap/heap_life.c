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
#include "heap/apart.h"
#include "heap/block.h"
#include "heap/cruise.h"
#include "heap/cycle.h"
#include "heap/deliver.h"
#include "heap/gather.h"
#include "heap/heap.h"
#include "heap/heap_config.h"
#include "heap/heap_later.h"
#include "heap/heap_leaks.h"
#include "heap/heap_report.h"
#include "heap/last.h"
#include "heap/pace.h"
#include "heap/shelf.h"
#include "heap/site.h"
#include "heap/span.h"
#include "heap/still.h"
#include "heap/under.h"
#include "heap/writer.h"

enum {
    NICER = 10,
    SHORTEST_NS = 200000,
    LONGEST_NS = 1000000000,
    STOPPED_NS = 5000000,
    ROUND_NS = 4000000,
    BUSY_ROUND_NS = 16000000,  // where others want the core
    CALM_ROUND_NS = 48000000,  // and little is allocated
    FEW_WORDS = 1 << 10,
    DOZE_NS = 25000000,
    DELIVER_PERCENT = 50,
    START_NS = 4000000,  // many processes are over before that
    START_TRIES = 250,
    LEAST_BACKLOG = 1 << 17,
    LAST_LOOK_MS = 2000,
    CHILD_BLOCKS = 200000,
    CHILD_NS = 20000000
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
        int err = under_init();
        err = err ? err : site_init();
        shelf_start();
        writer_set_barrier(true);
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
    last_leaves();
}

void heap_life_thread_starts(struct writer *w)
{
    if (atomic_load_explicit(&has_key, memory_order_acquire))  // with heap_life_start's release
        pthread_setspecific(key, w);
}

// --- threads of ours ---

static struct heap_config config;
static _Atomic pid_t running_in;  // the process in which our threads run; 0: nowhere
static _Atomic pid_t home;        // whose memory this is: no vfork child's; relaxed: fork alone changes it
static atomic_bool ended;
static __thread bool lending __attribute__((tls_model("initial-exec")));  // this thread does work of ours

static bool must_end(void)
{
    return atomic_load_explicit(&ended, memory_order_relaxed) || writer_closed();
}

static bool is_behind(unsigned list)
{
    uint64_t backlog = cruise_backlog(list);
    return backlog > LEAST_BACKLOG && backlog > cruise_stats(list).known / 2;
}

static void begin_thread(struct pace *pace, const char *name, int nicer, unsigned percent)
{
    apart_leave();
    pace_become(pace, name, nicer, percent);
}

static void *monitor_loop(void *arg)
{
    unsigned list = (unsigned)(uintptr_t)arg;
    struct pace pace;
    struct still still;
    int64_t before = 0;  // when the cruise just before began, if it was whole
    bool whole = false, judged = false;
    apart_join();
    begin_thread(&pace, "moat-monitor", NICER, config.share);
    pace_start_low(&pace);  // many processes are over soon
    while (!must_end()) {
        pace_begin(&pace);
        if (before)
            cycle_note((uint64_t)(pace.began - before));
        if (whole && judged && still_is(&still)) {
            before = 0;
            pace_doze(&pace, SHORTEST_NS, DOZE_NS);
            continue;
        }
        still_begin(&still);
        cruise_lock(list);
        whole = cruise_once(list);
        judged = !cruise_has_suspects(list);
        cruise_unlock(list);
        before = whole ? pace.began : 0;
        if (is_behind(list))
            pace_rest(&pace, SHORTEST_NS, SHORTEST_NS);
        else
            pace_rest(&pace, whole ? SHORTEST_NS : STOPPED_NS, LONGEST_NS);
    }
    return NULL;
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

static void say_that_there_is_none(void)
{
    heap_report_note(
        "the heap's monitor cannot be started: blocks are checked only when they are freed and at the end");
}

// While another thread tries to execute a program, the kernel has no threads for us. If it succeeds, that was it.
static int start_monitor(unsigned list)
{
    int err = start_thread(monitor_loop, list);
    for (int i = 0; err == -EAGAIN && i < START_TRIES && !must_end(); i++) {
        pace_sleep(START_NS);
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
        say_that_there_is_none();
}

// Nobody is left who could call exit, nor has the files that it would write to.
static void end_alone(void)
{
    heap_life_end();
    syscall(SYS_exit_group, 0);
}

static int64_t next_pause(int64_t pause, bool idle)
{
    return !idle ? ROUND_NS : pause < 8 * ROUND_NS ? pause * 2 : pause;
}

// Rounds cost the program's threads an interrupt each, so they are as seldom as is bearable.
static void *deliver_loop(void *unused)
{
    struct pace pace;
    int64_t pause = ROUND_NS;
    apart_join();
    pace_sleep(START_NS);
    if (must_end())
        return NULL;
    start_monitors();
    begin_thread(&pace, "moat-deliver", 0, DELIVER_PERCENT);
    while (!must_end()) {
        pace_begin(&pace);
        deliver_lock();
        bool asked = deliver_exact_wanted();
        uint64_t words = deliver_round(asked);
        deliver_unlock();
        asked |= deliver_exact_wanted();
        if (!words && last_has_left())
            end_alone();
        pause = next_pause(pause, !words && !asked);
        pace_rest(&pace, pause, asked || words > FEW_WORDS ? BUSY_ROUND_NS : CALM_ROUND_NS);
    }
    return NULL;
}

static void start_threads(void)
{
    if (start_thread(deliver_loop, 0))
        say_that_there_is_none();
}

// --- when we fall behind ---

// A thread that has filled its window. Where all cores are busy, our threads get too little time for what the program does;
// then its threads do some of our work themselves, so that memory stays bounded. They wait for no lock.
static void lend_a_hand(struct writer *w)
{
    if (must_end() || lending)
        return;
    lending = true;
    if (ring_waiting(&w->ring) > LEAST_BACKLOG / 2 && deliver_trylock()) {
        deliver_rings();
        deliver_unlock();
    }
    for (unsigned i = 0; i < deliver_lists(); i++)
        if (is_behind(i) && cruise_trylock(i)) {
            cruise_sweep(i);
            cruise_unlock(i);
        }
    lending = false;
}

// --- fork ---

static void before_fork(void)
{
    cruise_hurry(true);
    deliver_lock();
    for (unsigned i = 0; i < deliver_lists(); i++)
        cruise_lock(i);
    checked_assert(cruise_all_valid());
    heap_report_before_fork();
    span_before_fork();
}

static void unlock_all(bool child)
{
    span_after_fork();
    heap_report_after_fork(child);
    for (unsigned i = deliver_lists(); i-- > 0;)
        cruise_unlock(i);
    deliver_unlock();
    cruise_hurry(false);
}

static void after_fork_in_parent(void)
{
    unlock_all(false);
}

// Most children become another program at once. Threads are started when one turns out to stay: when it allocates after a while.
static int64_t forked;  // when; only the child's first thread writes it
atomic_bool heap_life_alone;

void heap_life_consider(void)
{
    if (must_end() || lending || pace_now() - forked < CHILD_NS ||
        atomic_load_explicit(&home, memory_order_relaxed) != getpid())
        return;
    pid_t nowhere = 0;
    // Relaxed, both: whoever wins starts them.
    if (!atomic_compare_exchange_strong_explicit(&running_in, &nowhere, getpid(), memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    lending = true;
    atomic_store_explicit(&heap_life_alone, false, memory_order_relaxed);
    start_threads();
    lending = false;
}

static void after_fork_in_child(void)
{
    forked = pace_now();
    atomic_store_explicit(&heap_life_alone, true, memory_order_relaxed);
    atomic_store_explicit(&running_in, 0, memory_order_relaxed);
    atomic_store_explicit(&home, getpid(), memory_order_relaxed);
    deliver_after_fork(heap_self());
    apart_after_fork();
    shelf_after_fork();
    cycle_forget();
    unlock_all(true);
}

// --- the second step ---

static void leave_unwatched(const char *why)
{
    heap_report_note(why);
    writer_close();
}

void heap_life_start(void)
{
    static atomic_bool once;
    if (!heap_life_ready() || atomic_exchange(&once, true))
        return;
    heap_config_read(&config);
    heap_report_init(config.log_file, config.halt ? config.exitcode : -1);
    heap_set_lazy(config.lazy);
    heap_settings.wait_bytes = config.wait_bytes;
    site_set_depth(config.depth);
    if (!gather_works()) {
        leave_unwatched("the heap is not watched: this system does not let a process copy its own memory");
        return;
    }
    if (deliver_init(config.monitors) || cruise_init(config.monitors)) {
        leave_unwatched("the heap is not watched: out of memory");
        return;
    }
    if (pthread_key_create(&key, thread_ends) == 0) {
        atomic_store_explicit(&has_key, true, memory_order_release);  // with heap_life_thread_starts
        if (heap_self())                                              // it began before there was a key
            pthread_setspecific(key, heap_self());
    }
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    atomic_store_explicit(&running_in, getpid(), memory_order_relaxed);
    atomic_store_explicit(&home, getpid(), memory_order_relaxed);
    start_threads();
    writer_when_full(lend_a_hand);
}

// Whether this thread was interrupted while it had a lock of ours, or its window: nothing can be done then.
static bool is_inside(void)
{
    struct writer *w = heap_self();
    return lending || heap_report_is_busy() ||
           (w && atomic_load_explicit(&w->busy, memory_order_relaxed) != WRITER_IDLE);
}

void heap_life_end(void)
{
    if (!deliver_lists() || atomic_exchange(&ended, true) || writer_closed())
        return;
    if (is_inside()) {
        writer_close();
        return;
    }
    lending = true;
    if (!cruise_all_now())
        heap_report_note("the heap was not checked at the end, because its monitor did not answer");
    else if (config.leaks)
        heap_leaks_report();
    if (heap_settings.lazy)
        heap_later_check();
    heap_report_end();
    writer_close();
    lending = false;
}

// Another thread ends the process at the same time, and is looking at the heap: not too long.
static void await_end(void)
{
    for (int i = 0; i < LAST_LOOK_MS && !writer_closed(); i++)
        pace_sleep(1000000);
}

// A child that was forked from a large process and ends at once would look at all that it inherited.
static bool is_worth_it(void)
{
    uint64_t live = 0;
    for (unsigned i = 0; i < deliver_lists(); i++)
        live += cruise_stats(i).known;
    return atomic_load_explicit(&running_in, memory_order_relaxed) == getpid() || live < CHILD_BLOCKS;
}

void heap_life_end_here(void)
{
    int saved = errno;
    if (atomic_load_explicit(&home, memory_order_relaxed) != getpid() || is_inside())
        return;
    if (atomic_load_explicit(&ended, memory_order_relaxed))
        await_end();
    else if (is_worth_it())
        heap_life_end();
    errno = saved;
}
