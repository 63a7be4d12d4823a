// SPDX-License-Identifier: MIT
#include "heap/producer.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/guarded.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif

static struct producer *_Atomic all;
static _Atomic uint32_t producers;
bool producer_kernel_helps;
static atomic_bool closed;
static void (*_Atomic when_full)(struct producer *);

void producer_set_barrier(bool membarrier)
{
#ifdef UNDER_TSAN
    membarrier = false;  // ThreadSanitizer does not know the kernel's barrier
#endif
    producer_kernel_helps =
        membarrier && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void producer_close(void)
{
    atomic_store_explicit(&closed, true, memory_order_relaxed);  // relaxed: a late effect only costs memory
}

bool producer_closed(void)
{
    return atomic_load_explicit(&closed, memory_order_relaxed);
}

struct producer *producer_all(void)
{
    return atomic_load_explicit(&all, memory_order_acquire);  // with join_list's release
}

// --- threads that come and go ---

static void join_list(struct producer *w)
{
    struct producer *old = atomic_load_explicit(&all, memory_order_relaxed);
    do
        atomic_store_explicit(&w->older, old, memory_order_relaxed);
    // Release: with the acquire in producer_all.
    while (!atomic_compare_exchange_weak_explicit(&all, &old, w, memory_order_release, memory_order_relaxed));
}

static uint64_t first_generation(uint64_t id)
{
    return (id >> 48) * 0x9e3779b9u;
}

uint64_t producer_made(const struct producer *w)
{
    return atomic_load_explicit(&w->generation, memory_order_relaxed) - first_generation(w->id);
}

static struct producer *reuse(void)
{
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        int unused = PRODUCER_UNUSED;
        // Acquire: with the deliverer's release when it was done with the thread that had it before.
        if (atomic_compare_exchange_strong_explicit(&w->state, &unused, PRODUCER_ALIVE, memory_order_acquire,
                                                    memory_order_relaxed))
            return w;
    }
    return NULL;
}

struct producer *producer_new(void)
{
    struct producer *w = reuse();
    if (!w) {
        uint32_t number = atomic_fetch_add_explicit(&producers, 1, memory_order_relaxed) + 1;
        w = number < PRODUCER_MOST ? guarded_map(sizeof *w) : NULL;
        if (!w)
            return NULL;
        if (ring_init(&w->ring, PRODUCER_RING)) {
            guarded_unmap(w, sizeof *w);
            return NULL;
        }
        thread_cache_init(&w->cache);
        w->id = (uint64_t)number << 48;
        w->base = 1;
        atomic_store_explicit(&w->generation, first_generation(w->id), memory_order_relaxed);
        atomic_store_explicit(&w->state, PRODUCER_ALIVE, memory_order_relaxed);
        join_list(w);
    }
    atomic_store_explicit(&w->tid, (pid_t)syscall(SYS_gettid), memory_order_relaxed);
    w->unwound = 0;
    w->stack_top = (uintptr_t)__builtin_frame_address(0);
    return w;
}

void producer_retire(struct producer *w)
{
    // Release: with the acquire in the deliverer's round; it takes over the window and both ends of the ring.
    atomic_store_explicit(&w->state, PRODUCER_DEAD, memory_order_release);
}

void producer_owner_died(struct producer *w)
{
    atomic_store_explicit(&w->steal, PRODUCER_NOT_ASKED, memory_order_relaxed);
    atomic_store_explicit(&w->busy, PRODUCER_IDLE, memory_order_relaxed);
    ring_producer_died(&w->ring);
    heap_quarantine_forget(&w->quarantine);  // the blocks stay allocated, marked as freed
    thread_cache_forget(&w->cache);
    if (atomic_load_explicit(&w->state, memory_order_relaxed) == PRODUCER_ALIVE)
        producer_retire(w);
}

// --- the thread ---

// Returns whether the word is stored or no longer needed, as after producer_close.
static bool push(struct producer *w, uint64_t word)
{
    return producer_closed() || ring_push(&w->ring, word) == 0;
}

// Moves all words of the window into the ring. If there is no memory for a larger ring, words are lost and
// nothing is certain any more, so the monitoring ends.
static __attribute__((noinline)) void empty_window(struct producer *w, uint32_t count)
{
    checked_assert(count == atomic_load_explicit(&w->count, memory_order_relaxed));
    for (uint32_t i = 0; i < count; i++)
        if (w->window[i] && !push(w, w->window[i]))
            producer_close();
    w->base += count;
    atomic_store_explicit(&w->count, 0, memory_order_relaxed);
    checked_assert(producer_window_valid(w) && w->base >> 48 == 0);
}

int producer_answer(struct producer *w)
{
    int asked = PRODUCER_ASKED;
    // Acquire: with the release in producer_take, which may have happened just before.
    if (atomic_compare_exchange_strong_explicit(&w->steal, &asked, PRODUCER_SERVED, memory_order_acquire,
                                                memory_order_acquire)) {
        empty_window(w, atomic_load_explicit(&w->count, memory_order_relaxed));
        // Release: with the acquire in producer_take; the words are in the ring.
        atomic_store_explicit(&w->steal, PRODUCER_NOT_ASKED, memory_order_release);
        return PRODUCER_IN_WINDOW;
    }
    if (asked == PRODUCER_NOT_ASKED)
        return PRODUCER_IN_WINDOW;
    atomic_store_explicit(&w->busy, PRODUCER_IN_RING, memory_order_release);
    return PRODUCER_IN_RING;
}

void producer_when_full(void (*call)(struct producer *w))
{
    atomic_store_explicit(&when_full, call,
                          memory_order_relaxed);  // relaxed: it may be called at any time after
}

uint64_t producer_reserve_slowly(struct producer *w, int where)
{
    if (where == PRODUCER_IN_RING)
        return PRODUCER_ELSEWHERE;
    if (where == PRODUCER_IDLE) {
        atomic_fetch_add_explicit(&w->unwatched, 1, memory_order_relaxed);
        return PRODUCER_UNWATCHED;
    }
    void (*call)(struct producer *) = atomic_load_explicit(&when_full, memory_order_relaxed);
    empty_window(w, PRODUCER_WINDOW);
    if (!call)
        return w->id | w->base;
    // The callee may allocate, so it must be called outside.
    producer_leave(w);
    call(w);
    return producer_reserve(w);
}

void producer_commit_slowly(struct producer *w, uint64_t place, uint64_t word)
{
    if (place == PRODUCER_UNWATCHED)
        return;
    if (!push(w, word))
        producer_close();
    producer_leave(w);
}

bool producer_remove_slowly(struct producer *w, uint64_t word, int where)
{
    bool done = true;
    if (where == PRODUCER_IDLE)
        return false;
    if (where == PRODUCER_IN_RING) {
        done = push(w, word | BLOCK_NOTICE);
    } else {
        empty_window(w, PRODUCER_WINDOW);
        w->window[0] = word | BLOCK_NOTICE;
        atomic_store_explicit(&w->count, 1, memory_order_relaxed);
    }
    producer_leave(w);
    return done;
}

// --- the deliverer ---

void producer_ask(bool everyone)
{
    bool any = false;
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        if (!everyone && !atomic_load_explicit(&w->count, memory_order_relaxed))
            continue;
        any = true;
        int not_asked = PRODUCER_NOT_ASKED;
        // Sequentially consistent: with producer_enter, where the kernel does not help.
        atomic_compare_exchange_strong_explicit(&w->steal, &not_asked, PRODUCER_ASKED, memory_order_seq_cst,
                                                memory_order_relaxed);
    }
    if (any && producer_kernel_helps)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

// Claims the window for the deliverer. Returns 1 if it is the deliverer's now, 0 if there is nothing to take,
// -EAGAIN if the thread is using it.
static int claim(struct producer *w)
{
    // Acquire: with the release in producer_answer.
    int steal = atomic_load_explicit(&w->steal, memory_order_acquire);
    if (steal == PRODUCER_NOT_ASKED)
        return 0;
    // Acquire: with producer_leave. Without membarrier, sequentially consistent: with producer_enter.
    int busy = atomic_load_explicit(&w->busy, memory_order_seq_cst);
    int state = atomic_load_explicit(&w->state, memory_order_acquire);  // with producer_retire
    if (steal == PRODUCER_SERVED || (busy == PRODUCER_IN_WINDOW && state != PRODUCER_DEAD))
        return -EAGAIN;
    // Acquire: the thread may have served the request and left since.
    return atomic_compare_exchange_strong_explicit(&w->steal, &steal, PRODUCER_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed)
               ? 1
               : -EAGAIN;
}

int producer_take(struct producer *w, uint64_t *words)
{
    int mine = claim(w);
    if (mine <= 0)
        return mine;
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    checked_assert(count <= PRODUCER_WINDOW && (!count || w->window[count - 1]));
    int n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (w->window[i])
            words[n++] = w->window[i];
    w->base += count;
    atomic_store_explicit(&w->count, 0, memory_order_relaxed);
    // Release: with the acquire in producer_enter.
    atomic_store_explicit(&w->steal, PRODUCER_NOT_ASKED, memory_order_release);
    return n;
}

bool producer_valid(struct producer *w)
{
    // Relaxed, all: nobody is at work.
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    int steal = atomic_load_explicit(&w->steal, memory_order_relaxed);
    uint64_t number = w->id >> 48;
    return count <= PRODUCER_WINDOW && (!count || w->window[count - 1]) && w->base && w->base >> 48 == 0 &&
           number && number < PRODUCER_MOST && w->id << 16 == 0 &&
           atomic_load_explicit(&w->busy, memory_order_relaxed) == PRODUCER_IDLE &&
           (steal == PRODUCER_NOT_ASKED || steal == PRODUCER_ASKED) && ring_valid(&w->ring) &&
           thread_cache_valid(&w->cache) && heap_quarantine_valid(&w->quarantine);
}
