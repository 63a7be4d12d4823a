// SPDX-License-Identifier: MIT
#include "heap/deliver.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "heap/block.h"
#include "heap/guarded.h"
#include "heap/producer.h"

enum { BATCH = PRODUCER_WINDOW };

static struct block_list *warehouses[DELIVER_MOST_LISTS];
static unsigned lists;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank 1: before monitor.c's
static _Atomic uint64_t exact_wanted, exact_done;
static uint64_t buffer[BATCH];  // not on stacks, which may be small; who holds the lock has it
static _Atomic uint64_t
    notices[DELIVER_MOST_LISTS];    // relaxed: for estimates; only who holds the lock writes
static _Atomic uint64_t delivered;  // words; only who holds the lock writes

int deliver_init(unsigned count)
{
    for (lists = 0; lists < count; lists++) {
        warehouses[lists] = guarded_keep(sizeof **warehouses);
        if (!warehouses[lists])
            return -ENOMEM;
        block_list_init(warehouses[lists]);
    }
    return 0;
}

unsigned deliver_lists(void)
{
    return lists;
}

struct block_list *deliver_list(unsigned i)
{
    return warehouses[i];
}

void deliver_lock(void)
{
    pthread_mutex_lock(&lock);
}

bool deliver_trylock(void)
{
    return pthread_mutex_trylock(&lock) == 0;
}

// Whether somebody has the lock.
static bool is_locked(void)
{
    return pthread_mutex_trylock(&lock) == EBUSY;
}

void deliver_unlock(void)
{
    checked_assert(deliver_valid());
    pthread_mutex_unlock(&lock);
}

// A block's word and its notice go to the same list, whoever frees it.
static void store(const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t list = ((words[i] & ~BLOCK_NOTICE) * 0x9e3779b97f4a7c15u >> 32) % lists;
        // Counted before a monitor can meet it: monitor_backlog relies on that.
        if (words[i] & BLOCK_NOTICE)
            atomic_store_explicit(&notices[list],
                                  atomic_load_explicit(&notices[list], memory_order_relaxed) + 1,
                                  memory_order_relaxed);
        if (block_list_add(warehouses[list], words[i]))
            producer_close();
    }
    // Release: with the acquire in deliver_words; whoever knows of them finds them.
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

static void breathe(void)
{
    struct timespec t = {.tv_nsec = 20000};
    if (sched_yield())
        return;
    nanosleep(&t, NULL);
}

// Window before ring: a thread that was asked may have emptied its window into the ring.
static uint64_t visit(struct producer *w)
{
    int n;
    while ((n = producer_take(w, buffer)) == -EAGAIN)
        breathe();
    store(buffer, (size_t)n);
    return drain_ring(w) + (uint64_t)n;
}

static void bury(struct producer *w)
{
    if (atomic_load_explicit(&w->count, memory_order_relaxed))
        return;  // the next round has it
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
        // Before the visit: with producer_retire's release.
        int state = atomic_load_explicit(&w->state, memory_order_acquire);
        all += visit(w);
        if (state == PRODUCER_DEAD)
            bury(w);
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
    // Release: with the acquire in deliver_round; what the asker read lies before the round.
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
    // Relaxed, all: `exact_wanted` only grows, and who has the lock writes the others.
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
            producer_bereave(w);
}
