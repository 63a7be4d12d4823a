// SPDX-License-Identifier: MIT
#include "heap/deliver.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/checked.h"
#include "heap/block.h"
#include "heap/guarded.h"
#include "heap/producer.h"

enum { BATCH = PRODUCER_WINDOW };

static struct block_list *block_lists[DELIVER_MOST_LISTS];
static unsigned lists;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank 1: before monitor.c's
static _Atomic uint64_t exact_wanted, exact_done;
static uint64_t buffer[BATCH];  // not on stacks, which may be small; the lock's holder owns it
static _Atomic uint64_t notices[DELIVER_MOST_LISTS];  // relaxed: for estimates; only the lock's holder writes
static _Atomic uint64_t delivered;                    // words; only the lock's holder writes

int deliver_init(unsigned count)
{
    for (lists = 0; lists < count; lists++) {
        block_lists[lists] = guarded_keep(sizeof **block_lists);
        if (!block_lists[lists])
            return -ENOMEM;
        block_list_init(block_lists[lists]);
    }
    return 0;
}

unsigned deliver_lists(void)
{
    return lists;
}

struct block_list *deliver_list(unsigned i)
{
    return block_lists[i];
}

void deliver_lock(void)
{
    pthread_mutex_lock(&lock);
}

bool deliver_trylock(void)
{
    return pthread_mutex_trylock(&lock) == 0;
}

// Returns whether any thread has the lock.
static bool is_locked(void)
{
    return pthread_mutex_trylock(&lock) == EBUSY;
}

void deliver_unlock(void)
{
    checked_assert(deliver_valid());
    pthread_mutex_unlock(&lock);
}

// Adds words to the lists. A block's word and its notice go to the same list, whichever thread frees it.
static void store(const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t list = ((words[i] & ~BLOCK_NOTICE) * 0x9e3779b97f4a7c15u >> 32) % lists;
        // Counted before a monitor can meet the notice, as monitor_backlog requires.
        if (words[i] & BLOCK_NOTICE)
            atomic_store_explicit(&notices[list],
                                  atomic_load_explicit(&notices[list], memory_order_relaxed) + 1,
                                  memory_order_relaxed);
        if (block_list_add(block_lists[list], words[i]))
            producer_close();
    }
    // Release: with the acquire in deliver_words; whoever reads the count finds the words.
    if (n)
        atomic_store_explicit(&delivered, atomic_load_explicit(&delivered, memory_order_relaxed) + n,
                              memory_order_release);
}

static uint64_t drain_ring(struct producer *w)
{
    uint64_t *words = buffer, all = 0;
    for (size_t n; (n = ring_pop(&w->ring, words, BATCH)); all += n)
        store(words, n);
    return all;
}

static void back_off(void)
{
    struct timespec t = {.tv_nsec = 20000};
    if (sched_yield())
        return;
    cancel_hold();
    nanosleep(&t, NULL);
    cancel_release();
}

// Takes a thread's words. The window before the ring: a thread that was asked may have emptied its window
// into the ring.
static uint64_t visit(struct producer *w)
{
    int n;
    while ((n = producer_take(w, buffer)) == -EAGAIN)
        back_off();
    store(buffer, (size_t)n);
    return drain_ring(w) + (uint64_t)n;
}

static void release_record(struct producer *w)
{
    if (atomic_load_explicit(&w->count, memory_order_relaxed))
        return;  // left to the next round
    // Release: with the acquire in producer.c's reuse.
    atomic_store_explicit(&w->state, PRODUCER_UNUSED, memory_order_release);
}

uint64_t deliver_round(bool exact)
{
    checked_assert(is_locked());
    // Acquire: with deliver_ask_exact's release.
    uint64_t wanted = atomic_load_explicit(&exact_wanted, memory_order_acquire), all = 0;
    producer_ask(exact);
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        // Read before the visit. Acquire: with producer_retire's release.
        int state = atomic_load_explicit(&w->state, memory_order_acquire);
        all += visit(w);
        if (state == PRODUCER_DEAD)
            release_record(w);
    }
    if (exact)
        // Release: with the acquire in deliver_exact_done.
        atomic_store_explicit(&exact_done, wanted, memory_order_release);
    return all;
}

void deliver_rings(void)
{
    checked_assert(is_locked());
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed))
        drain_ring(w);
}

uint64_t deliver_notices(unsigned list)
{
    return atomic_load_explicit(&notices[list], memory_order_relaxed);
}

uint64_t deliver_words(void)
{
    return atomic_load_explicit(&delivered, memory_order_acquire);  // with store's release
}

uint64_t deliver_ask_exact(void)
{
    // Release: with the acquire in deliver_round; what the caller read lies before the round.
    return atomic_fetch_add_explicit(&exact_wanted, 1, memory_order_acq_rel) + 1;
}

bool deliver_exact_wanted(void)
{
    return atomic_load_explicit(&exact_wanted, memory_order_relaxed) !=
           atomic_load_explicit(&exact_done, memory_order_relaxed);
}

uint64_t deliver_exact_done(void)
{
    return atomic_load_explicit(&exact_done, memory_order_acquire);  // with deliver_round's release
}

bool deliver_valid(void)
{
    uint64_t done = atomic_load_explicit(&exact_done, memory_order_relaxed), sum = 0;
    // Relaxed, all: `exact_wanted` only grows, and the lock's holder writes the others.
    for (unsigned i = 0; i < lists; i++)
        sum += atomic_load_explicit(&notices[i], memory_order_relaxed);
    return is_locked() && done <= atomic_load_explicit(&exact_wanted, memory_order_relaxed) &&
           sum <= atomic_load_explicit(&delivered, memory_order_relaxed);
}

void deliver_after_fork(struct producer *mine)
{
    if (mine)
        atomic_store_explicit(&mine->tid, (pid_t)syscall(SYS_gettid), memory_order_relaxed);
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed))
        if (w != mine)
            producer_owner_died(w);
}
