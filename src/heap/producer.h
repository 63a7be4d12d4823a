// SPDX-License-Identifier: MIT
// A thread of the program, as its allocations see it. The word of a block that it gets from the allocator below goes into a
// window of its own, a plain array; a block that goes back there while its word is still in the window is struck out, and nobody
// else ever hears of it. A full window moves, without what was struck out, into the thread's ring, to the deliverer. A block
// whose word has left the window ends by a second word, a notice. Blocks that are used anew (thread_cache.h) pass by all that.
//
// A thread that allocates little must not keep its window for itself: the deliverer empties windows too, of threads that know
// nothing of it. The two sides need no locked instruction for that, only the kernel's help on the deliverer's side:
//
//   thread:     busy = 1; [compiler]; look at steal, use the window; busy = 0 (release)
//   deliverer:  steal = ASKED; [membarrier: every thread]; if (busy == 0 and steal goes from ASKED to TAKEN) the window is mine
//
// Either the thread's busy = 1 is seen behind the barrier, or the thread sees what steal is. If it is ASKED, the thread tries to
// make it SERVED, empties the window into its ring and goes on: so a deliverer that has lost its core stops nobody. If it is
// TAKEN, the thread puts its words directly into the ring until the deliverer is done. It never waits. Where the kernel has no
// membarrier, both sides use sequentially consistent operations. A signal handler that allocates inside of this finds busy set
// and leaves its block unwatched, and counts it.
//
// What holds between two operations of the thread (producer_valid):
//   window[i] for i < count is the word with place base + i, or 0; window[count - 1] is not 0
//   count <= PRODUCER_WINDOW
//   0 < base < 2^48, and base only grows: no place names two words
//   id = n 2^48, 0 < n < PRODUCER_MOST: no two records have the same
//   busy = PRODUCER_IDLE; steal is not PRODUCER_SERVED, and PRODUCER_TAKEN only while the deliverer has the window
#ifndef MOAT_HEAP_PRODUCER_H
#define MOAT_HEAP_PRODUCER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/checked.h"
#include "heap/block.h"
#include "heap/heap_quarantine.h"
#include "heap/ring.h"
#include "heap/thread_cache.h"

#ifndef PRODUCER_WINDOW
#define PRODUCER_WINDOW 4096
#endif
enum { PRODUCER_RING = 1024, PRODUCER_MOST = 1 << 14 };

// Places: where a block's word is. 16 bits name the thread, 48 its position; position 0: in a ring or further on.
#define PRODUCER_ELSEWHERE 0ull
#define PRODUCER_UNWATCHED (~0ull)  // nowhere

enum producer_steal { PRODUCER_NOT_ASKED, PRODUCER_ASKED, PRODUCER_TAKEN, PRODUCER_SERVED };
enum producer_busy { PRODUCER_IDLE, PRODUCER_IN_WINDOW, PRODUCER_IN_RING };
enum producer_state { PRODUCER_UNUSED, PRODUCER_ALIVE, PRODUCER_DEAD };

// Calls of the program, by return address and frame, and what site.h says about them: programs allocate at few places. An entry is
// the upper bits of a call's hash, and its site below them. It is where its hash says, or near: in the same line of the cache.
enum { PRODUCER_CALLERS_LOG2 = 14, PRODUCER_CALLERS_NEAR = 8 };

struct producer {
    _Atomic int busy;        // enum producer_busy, by the thread
    _Atomic int steal;       // enum producer_steal
    _Atomic uint32_t count;  // of words in the window; relaxed: its owner is settled by busy and steal
    uint64_t base;
    _Atomic uint64_t generation;  // of the next block; threads start far apart. Relaxed: others only count
    uint64_t id;                  // place's upper 16 bits, in place
    struct thread_cache shelf;
    uint8_t filled
        [THREAD_CACHE_FINE_BINS];  // how many blocks a bin got from spans the last time, if there was room
    _Alignas(64) uint64_t callers[1 << PRODUCER_CALLERS_LOG2];
    uint32_t unwound;            // stacks, see site.h
    _Atomic uint32_t unwatched;  // blocks that could not be noted; relaxed
    uintptr_t stack_top;         // an address in the thread's outermost frames
    uint64_t window[PRODUCER_WINDOW];
    struct ring_list ring;
    struct heap_quarantine wait;     // blocks that were freed and not yet given back
    _Atomic pid_t tid;               // relaxed: whoever asks for a thread may get one that has ended
    _Atomic int state;               // enum producer_state
    struct producer *_Atomic older;  // list of all; never shrinks
};

// The next block's generation.
static inline uint64_t producer_generation(struct producer *w)
{
    uint64_t g = atomic_load_explicit(&w->generation, memory_order_relaxed);
    atomic_store_explicit(&w->generation, g + 1, memory_order_relaxed);
    return g;
}
uint64_t producer_made(const struct producer *w);  // blocks so far

// All threads that ever were, the youngest first.
struct producer *producer_all(void);

// A record for the calling thread; NULL when out of memory or numbers.
struct producer *producer_new(void);
void producer_retire(struct producer *w);  // the thread ends; the deliverer takes what is left

// How threads and the deliverer agree: true if the kernel helps, else both sides use fences.
void producer_set_barrier(bool membarrier);

void producer_close(void);  // words are dropped from now on: the process ends, or there is no memory left
bool producer_closed(void);

// What a thread does each time that it has filled its window: its part of the work, if we fall behind.
void producer_when_full(void (*call)(struct producer *w));

// In the child of a fork, for a thread that is not there any more: whatever it was doing is over.
void producer_bereave(struct producer *w);

// Puts the word of a block. First the place that it will have, which the block's head needs; then, when the head is
// whole, the word: whoever finds a word finds a valid head. Nothing but the dressing of the block lies in between.
static inline uint64_t producer_reserve(struct producer *w);
static inline void producer_commit(struct producer *w, uint64_t place, uint64_t word);

// The block whose word has this place is freed: strikes the word out or puts a notice. False if neither can be done now:
// then the block must stay allocated below us, marked as freed, for good.
static inline bool producer_strike(struct producer *w, uint64_t place, uint64_t word);

// The block whose word has this place is about to move, or to change its size: the window stays the thread's own until
// producer_let_go, and the caller may replace the word. NULL: the word has left the window; nothing was done.
static inline uint64_t *producer_hold(struct producer *w, uint64_t place, uint64_t word);
static inline void producer_let_go(struct producer *w);

// Deliverer. Asks for the windows of all threads that have words in them, or of all threads; makes sure that they know.
void producer_ask(bool all);
// Takes the window's words, if they were asked for and the thread has not put them into its ring: how many. -EAGAIN: the thread
// is in it now.
int producer_take(struct producer *w, uint64_t *words);

bool producer_valid(struct producer *w);  // when nobody is at work

// --- the thread's side, inline: it is part of every allocation ---

extern __attribute__((visibility("hidden"))) bool producer_kernel_helps;

// What the inline functions leave to producer.c: seldom, and slow. `where`: what producer_enter returned.
int producer_is_asked(struct producer *w);
uint64_t producer_reserve_slowly(struct producer *w, int where);
void producer_commit_slowly(struct producer *w, uint64_t place, uint64_t word);
bool producer_strike_slowly(struct producer *w, uint64_t word, int where);

// What the thread may use now: PRODUCER_IN_WINDOW, PRODUCER_IN_RING, or nothing, PRODUCER_IDLE, in a signal handler inside of this.
static inline __attribute__((always_inline)) int producer_enter(struct producer *w)
{
    if (__builtin_expect(atomic_load_explicit(&w->busy, memory_order_relaxed) != PRODUCER_IDLE, 0))
        return PRODUCER_IDLE;
    int steal;
    if (__builtin_expect(producer_kernel_helps, 1)) {
        atomic_store_explicit(&w->busy, PRODUCER_IN_WINDOW, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);  // with the membarrier in producer_ask
        // Acquire: with the release in producer_take.
        steal = atomic_load_explicit(&w->steal, memory_order_acquire);
    } else {
        // Sequentially consistent, both: with the exchange in producer_ask.
        atomic_exchange_explicit(&w->busy, PRODUCER_IN_WINDOW, memory_order_seq_cst);
        steal = atomic_load_explicit(&w->steal, memory_order_seq_cst);
    }
    return __builtin_expect(steal == PRODUCER_NOT_ASKED, 1) ? PRODUCER_IN_WINDOW : producer_is_asked(w);
}

// What holds, besides, for the thread while the window is its own.
static inline bool producer_window_valid(const struct producer *w)
{
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    return atomic_load_explicit(&w->busy, memory_order_relaxed) == PRODUCER_IN_WINDOW &&
           count <= PRODUCER_WINDOW && (!count || w->window[count - 1]);
}

static inline void producer_leave(struct producer *w)
{
    checked_assert(atomic_load_explicit(&w->busy, memory_order_relaxed) != PRODUCER_IDLE);
    atomic_store_explicit(&w->busy, PRODUCER_IDLE,
                          memory_order_release);  // with the acquire in producer_take
}

static inline __attribute__((always_inline)) uint64_t producer_reserve(struct producer *w)
{
    int where = producer_enter(w);
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    if (__builtin_expect(where != PRODUCER_IN_WINDOW || count == PRODUCER_WINDOW, 0))
        return producer_reserve_slowly(w, where);
    return w->id | (w->base + count);
}

static inline __attribute__((always_inline)) void producer_commit(struct producer *w, uint64_t place,
                                                                  uint64_t word)
{
    checked_assert(word && !(word & BLOCK_NOTICE));
    if (__builtin_expect(place + 1 <= 1, 0)) {  // PRODUCER_ELSEWHERE or PRODUCER_UNWATCHED
        producer_commit_slowly(w, place, word);
        return;
    }
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    checked_assert(count < PRODUCER_WINDOW && place == (w->id | (w->base + count)));
    w->window[count] = word;
    atomic_store_explicit(&w->count, count + 1, memory_order_relaxed);
    checked_assert(producer_window_valid(w));
    producer_leave(w);
}

static inline __attribute__((always_inline)) bool producer_strike(struct producer *w, uint64_t place,
                                                                  uint64_t word)
{
    checked_assert(word && !(word & BLOCK_NOTICE));
    if (__builtin_expect(place == PRODUCER_UNWATCHED, 0))
        return true;
    int where = producer_enter(w);
    if (__builtin_expect(where != PRODUCER_IN_WINDOW, 0))
        return producer_strike_slowly(w, word, where);
    uint64_t i = place - (w->id | w->base);
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    if (i < count && w->window[i] == word) {
        w->window[i] = 0;
        while (count && !w->window[count - 1])
            count--;
    } else if (__builtin_expect(count < PRODUCER_WINDOW, 1)) {
        w->window[count++] = word | BLOCK_NOTICE;
    } else {
        return producer_strike_slowly(w, word, where);
    }
    atomic_store_explicit(&w->count, count, memory_order_relaxed);
    checked_assert(producer_window_valid(w));
    producer_leave(w);
    return true;
}

static inline __attribute__((always_inline)) uint64_t *producer_hold(struct producer *w, uint64_t place,
                                                                     uint64_t word)
{
    int where = producer_enter(w);
    if (__builtin_expect(where == PRODUCER_IN_WINDOW, 1)) {
        uint64_t i = place - (w->id | w->base);
        if (i < atomic_load_explicit(&w->count, memory_order_relaxed) && w->window[i] == word)
            return &w->window[i];
    }
    if (where != PRODUCER_IDLE)
        producer_leave(w);
    return NULL;
}

static inline void producer_let_go(struct producer *w)
{
    checked_assert(producer_window_valid(w));
    producer_leave(w);
}

#endif
