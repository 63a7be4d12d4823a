// SPDX-License-Identifier: MIT
#include "heap/writer.h"

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

static struct writer *_Atomic all;
static _Atomic uint32_t writers;
bool writer_kernel_helps;
static atomic_bool closed;
static void (*_Atomic when_full)(struct writer *);

void writer_set_barrier(bool membarrier)
{
#ifdef UNDER_TSAN
    membarrier = false;  // it does not know what the kernel's barrier does
#endif
    writer_kernel_helps =
        membarrier && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void writer_close(void)
{
    atomic_store_explicit(&closed, true, memory_order_relaxed);  // late is fine: only memory is at stake
}

bool writer_closed(void)
{
    return atomic_load_explicit(&closed, memory_order_relaxed);
}

struct writer *writer_all(void)
{
    return atomic_load_explicit(&all, memory_order_acquire);  // with join_list's release
}

// --- threads that come and go ---

static void join_list(struct writer *w)
{
    struct writer *old = atomic_load_explicit(&all, memory_order_relaxed);
    do
        atomic_store_explicit(&w->older, old, memory_order_relaxed);
    // Release: with the acquire in writer_all.
    while (!atomic_compare_exchange_weak_explicit(&all, &old, w, memory_order_release, memory_order_relaxed));
}

static uint64_t first_generation(uint64_t id)
{
    return (id >> 48) * 0x9e3779b9u;
}

uint64_t writer_made(const struct writer *w)
{
    return atomic_load_explicit(&w->generation, memory_order_relaxed) - first_generation(w->id);
}

static struct writer *reuse(void)
{
    for (struct writer *w = writer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        int unused = WRITER_UNUSED;
        // Acquire: with the deliverer's release when it was done with the thread that had it before.
        if (atomic_compare_exchange_strong_explicit(&w->state, &unused, WRITER_ALIVE, memory_order_acquire,
                                                    memory_order_relaxed))
            return w;
    }
    return NULL;
}

struct writer *writer_new(void)
{
    struct writer *w = reuse();
    if (!w) {
        uint32_t number = atomic_fetch_add_explicit(&writers, 1, memory_order_relaxed) + 1;
        w = number < WRITER_MOST ? guarded_map(sizeof *w) : NULL;
        if (!w)
            return NULL;
        if (ring_init(&w->ring, WRITER_RING)) {
            guarded_unmap(w, sizeof *w);
            return NULL;
        }
        shelf_init(&w->shelf);
        w->id = (uint64_t)number << 48;
        w->base = 1;
        atomic_store_explicit(&w->generation, first_generation(w->id), memory_order_relaxed);
        atomic_store_explicit(&w->state, WRITER_ALIVE, memory_order_relaxed);
        join_list(w);
    }
    atomic_store_explicit(&w->tid, (pid_t)syscall(SYS_gettid), memory_order_relaxed);
    w->unwound = 0;
    w->stack_top = (uintptr_t)__builtin_frame_address(0);
    return w;
}

void writer_retire(struct writer *w)
{
    // Release: with the acquire in the deliverer's round; it takes over the window and both ends of the ring.
    atomic_store_explicit(&w->state, WRITER_DEAD, memory_order_release);
}

void writer_bereave(struct writer *w)
{
    atomic_store_explicit(&w->steal, WRITER_NOT_ASKED, memory_order_relaxed);
    atomic_store_explicit(&w->busy, WRITER_IDLE, memory_order_relaxed);
    ring_bereave(&w->ring);
    heap_wait_forget(&w->wait);  // blocks that it had freed stay as they are
    shelf_forget(&w->shelf);
    if (atomic_load_explicit(&w->state, memory_order_relaxed) == WRITER_ALIVE)
        writer_retire(w);
}

// --- the thread ---

// Whether the word is in good hands; after the end nobody needs it.
static bool push(struct writer *w, uint64_t word)
{
    return writer_closed() || ring_push(&w->ring, word) == 0;
}

// Words that left the window cannot be kept when there is no memory for a larger ring: then nothing is known for
// certain any more, and the watch ends.
static __attribute__((noinline)) void empty_window(struct writer *w, uint32_t count)
{
    checked_assert(count == atomic_load_explicit(&w->count, memory_order_relaxed));
    for (uint32_t i = 0; i < count; i++)
        if (w->window[i] && !push(w, w->window[i]))
            writer_close();
    w->base += count;
    atomic_store_explicit(&w->count, 0, memory_order_relaxed);
    checked_assert(writer_window_valid(w) && w->base >> 48 == 0);
}

int writer_is_asked(struct writer *w)
{
    int asked = WRITER_ASKED;
    // Acquire: with the release in writer_take, which may have been just before.
    if (atomic_compare_exchange_strong_explicit(&w->steal, &asked, WRITER_SERVED, memory_order_acquire,
                                                memory_order_acquire)) {
        empty_window(w, atomic_load_explicit(&w->count, memory_order_relaxed));
        // Release: with the acquire in writer_take; the words are in the ring.
        atomic_store_explicit(&w->steal, WRITER_NOT_ASKED, memory_order_release);
        return WRITER_IN_WINDOW;
    }
    if (asked == WRITER_NOT_ASKED)
        return WRITER_IN_WINDOW;
    atomic_store_explicit(&w->busy, WRITER_IN_RING, memory_order_release);
    return WRITER_IN_RING;
}

void writer_when_full(void (*call)(struct writer *w))
{
    atomic_store_explicit(&when_full, call,
                          memory_order_relaxed);  // called at any time after; nothing depends on it
}

uint64_t writer_reserve_slowly(struct writer *w, int where)
{
    if (where == WRITER_IN_RING)
        return WRITER_ELSEWHERE;
    if (where == WRITER_IDLE) {
        atomic_fetch_add_explicit(&w->unwatched, 1, memory_order_relaxed);
        return WRITER_UNWATCHED;
    }
    void (*call)(struct writer *) = atomic_load_explicit(&when_full, memory_order_relaxed);
    empty_window(w, WRITER_WINDOW);
    if (!call)
        return w->id | w->base;
    // What is called may allocate, so it must find us outside.
    writer_leave(w);
    call(w);
    return writer_reserve(w);
}

void writer_commit_slowly(struct writer *w, uint64_t place, uint64_t word)
{
    if (place == WRITER_UNWATCHED)
        return;
    if (!push(w, word))
        writer_close();
    writer_leave(w);
}

bool writer_strike_slowly(struct writer *w, uint64_t word, int where)
{
    bool done = true;
    if (where == WRITER_IDLE)
        return false;
    if (where == WRITER_IN_RING) {
        done = push(w, word | BLOCK_NOTICE);
    } else {
        empty_window(w, WRITER_WINDOW);
        w->window[0] = word | BLOCK_NOTICE;
        atomic_store_explicit(&w->count, 1, memory_order_relaxed);
    }
    writer_leave(w);
    return done;
}

// --- the deliverer ---

void writer_ask(bool everyone)
{
    bool any = false;
    for (struct writer *w = writer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        if (!everyone && !atomic_load_explicit(&w->count, memory_order_relaxed))
            continue;
        any = true;
        int not_asked = WRITER_NOT_ASKED;
        // Sequentially consistent: with writer_enter, where the kernel does not help.
        atomic_compare_exchange_strong_explicit(&w->steal, &not_asked, WRITER_ASKED, memory_order_seq_cst,
                                                memory_order_relaxed);
    }
    if (any && writer_kernel_helps)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

// Whether the window is the deliverer's now; -EAGAIN: not yet.
static int claim(struct writer *w)
{
    // Acquire: with the release in writer_is_asked.
    int steal = atomic_load_explicit(&w->steal, memory_order_acquire);
    if (steal == WRITER_NOT_ASKED)
        return 0;
    // Acquire: with writer_leave. Sequentially consistent where the kernel does not help: with writer_enter.
    int busy = atomic_load_explicit(&w->busy, memory_order_seq_cst);
    int state = atomic_load_explicit(&w->state, memory_order_acquire);  // with writer_retire
    if (steal == WRITER_SERVED || (busy == WRITER_IN_WINDOW && state != WRITER_DEAD))
        return -EAGAIN;
    // Acquire: the thread may have served and left since.
    return atomic_compare_exchange_strong_explicit(&w->steal, &steal, WRITER_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed)
               ? 1
               : -EAGAIN;
}

int writer_take(struct writer *w, uint64_t *words)
{
    int mine = claim(w);
    if (mine <= 0)
        return mine;
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    checked_assert(count <= WRITER_WINDOW && (!count || w->window[count - 1]));
    int n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (w->window[i])
            words[n++] = w->window[i];
    w->base += count;
    atomic_store_explicit(&w->count, 0, memory_order_relaxed);
    // Release: with the acquire in writer_enter.
    atomic_store_explicit(&w->steal, WRITER_NOT_ASKED, memory_order_release);
    return n;
}

bool writer_valid(struct writer *w)
{
    // Relaxed, all: nobody is at work.
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    int steal = atomic_load_explicit(&w->steal, memory_order_relaxed);
    uint64_t number = w->id >> 48;
    return count <= WRITER_WINDOW && (!count || w->window[count - 1]) && w->base && w->base >> 48 == 0 &&
           number && number < WRITER_MOST && w->id << 16 == 0 &&
           atomic_load_explicit(&w->busy, memory_order_relaxed) == WRITER_IDLE &&
           (steal == WRITER_NOT_ASKED || steal == WRITER_ASKED) && ring_valid(&w->ring) &&
           shelf_valid(&w->shelf) && heap_wait_valid(&w->wait);
}
