// SPDX-License-Identifier: MIT
// A thread of the program, as its allocations see it. The word of a block that it gets from the allocator below goes into a
// window of its own, a plain array; a block that goes back there while its word is still in the window is struck out, and nobody
// else ever hears of it. A full window moves, without what was struck out, into the thread's ring, to the deliverer. A block
// whose word has left the window ends by a second word, a notice. Blocks that are used anew (shelf.h) pass by all that.
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
// What holds between two operations of the thread (writer_valid):
//   window[i] for i < count is the word with place base + i, or 0; window[count - 1] is not 0
//   count <= WRITER_WINDOW
//   0 < base < 2^48, and base only grows: no place names two words
//   id = n 2^48, 0 < n < WRITER_MOST: no two records have the same
//   busy = WRITER_IDLE; steal is not WRITER_SERVED, and WRITER_TAKEN only while the deliverer has the window
#ifndef MOAT_HEAP_WRITER_H
#define MOAT_HEAP_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/checked.h"
#include "heap/block.h"
#include "heap/heap_wait.h"
#include "heap/ring.h"
#include "heap/shelf.h"

#ifndef WRITER_WINDOW
#define WRITER_WINDOW 4096
#endif
enum { WRITER_RING = 1024, WRITER_MOST = 1 << 14 };

// Places: where a block's word is. 16 bits name the thread, 48 its position; position 0: in a ring or further on.
#define WRITER_ELSEWHERE 0ull
#define WRITER_UNWATCHED (~0ull)  // nowhere

enum writer_steal { WRITER_NOT_ASKED, WRITER_ASKED, WRITER_TAKEN, WRITER_SERVED };
enum writer_busy { WRITER_IDLE, WRITER_IN_WINDOW, WRITER_IN_RING };
enum writer_state { WRITER_UNUSED, WRITER_ALIVE, WRITER_DEAD };

// Calls of the program, by return address and frame, and what site.h says about them: programs allocate at few places. An entry is
// the upper bits of a call's hash, and its site below them. It is where its hash says, or near: in the same line of the cache.
enum { WRITER_CALLERS_LOG2 = 14, WRITER_CALLERS_NEAR = 8 };

struct writer {
    _Atomic int busy;        // enum writer_busy, by the thread
    _Atomic int steal;       // enum writer_steal
    _Atomic uint32_t count;  // of words in the window; relaxed: its owner is settled by busy and steal
    uint64_t base;
    _Atomic uint64_t generation;  // of the next block; threads start far apart. Relaxed: others only count
    uint64_t id;                  // place's upper 16 bits, in place
    struct shelf shelf;
    uint8_t filled[SHELF_FINE_BINS];  // how many blocks a bin got from spans the last time, if there was room
    _Alignas(64) uint64_t callers[1 << WRITER_CALLERS_LOG2];
    uint32_t unwound;            // stacks, see site.h
    _Atomic uint32_t unwatched;  // blocks that could not be noted; relaxed
    uintptr_t stack_top;         // an address in the thread's outermost frames
    uint64_t window[WRITER_WINDOW];
    struct ring_list ring;
    struct heap_wait wait;         // blocks that were freed and not yet given back
    _Atomic pid_t tid;             // relaxed: whoever asks for a thread may get one that has ended
    _Atomic int state;             // enum writer_state
    struct writer *_Atomic older;  // list of all; never shrinks
};

// The next block's generation.
static inline uint64_t writer_generation(struct writer *w)
{
    uint64_t g = atomic_load_explicit(&w->generation, memory_order_relaxed);
    atomic_store_explicit(&w->generation, g + 1, memory_order_relaxed);
    return g;
}
uint64_t writer_made(const struct writer *w);  // blocks so far

// All threads that ever were, the youngest first.
struct writer *writer_all(void);

// A record for the calling thread; NULL when out of memory or numbers.
struct writer *writer_new(void);
void writer_retire(struct writer *w);  // the thread ends; the deliverer takes what is left

// How threads and the deliverer agree: true if the kernel helps, else both sides use fences.
void writer_set_barrier(bool membarrier);

void writer_close(void);  // words are dropped from now on: the process ends, or there is no memory left
bool writer_closed(void);

// What a thread does each time that it has filled its window: its part of the work, if we fall behind.
void writer_when_full(void (*call)(struct writer *w));

// In the child of a fork, for a thread that is not there any more: whatever it was doing is over.
void writer_bereave(struct writer *w);

// Puts the word of a block. First the place that it will have, which the block's head needs; then, when the head is
// whole, the word: whoever finds a word finds a valid head. Nothing but the dressing of the block lies in between.
static inline uint64_t writer_reserve(struct writer *w);
static inline void writer_commit(struct writer *w, uint64_t place, uint64_t word);

// The block whose word has this place is freed: strikes the word out or puts a notice. False if neither can be done now:
// then the block must stay allocated below us, marked as freed, for good.
static inline bool writer_strike(struct writer *w, uint64_t place, uint64_t word);

// The block whose word has this place is about to move, or to change its size: the window stays the thread's own until
// writer_let_go, and the caller may replace the word. NULL: the word has left the window; nothing was done.
static inline uint64_t *writer_hold(struct writer *w, uint64_t place, uint64_t word);
static inline void writer_let_go(struct writer *w);

// Deliverer. Asks for the windows of all threads that have words in them, or of all threads; makes sure that they know.
void writer_ask(bool all);
// Takes the window's words, if they were asked for and the thread has not put them into its ring: how many. -EAGAIN: the thread
// is in it now.
int writer_take(struct writer *w, uint64_t *words);

bool writer_valid(struct writer *w);  // when nobody is at work

// --- the thread's side, inline: it is part of every allocation ---

extern __attribute__((visibility("hidden"))) bool writer_kernel_helps;

// What the inline functions leave to writer.c: seldom, and slow. `where`: what writer_enter returned.
int writer_is_asked(struct writer *w);
uint64_t writer_reserve_slowly(struct writer *w, int where);
void writer_commit_slowly(struct writer *w, uint64_t place, uint64_t word);
bool writer_strike_slowly(struct writer *w, uint64_t word, int where);

// What the thread may use now: WRITER_IN_WINDOW, WRITER_IN_RING, or nothing, WRITER_IDLE, in a signal handler inside of this.
static inline __attribute__((always_inline)) int writer_enter(struct writer *w)
{
    if (__builtin_expect(atomic_load_explicit(&w->busy, memory_order_relaxed) != WRITER_IDLE, 0))
        return WRITER_IDLE;
    int steal;
    if (__builtin_expect(writer_kernel_helps, 1)) {
        atomic_store_explicit(&w->busy, WRITER_IN_WINDOW, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);  // with the membarrier in writer_ask
        // Acquire: with the release in writer_take.
        steal = atomic_load_explicit(&w->steal, memory_order_acquire);
    } else {
        // Sequentially consistent, both: with the exchange in writer_ask.
        atomic_exchange_explicit(&w->busy, WRITER_IN_WINDOW, memory_order_seq_cst);
        steal = atomic_load_explicit(&w->steal, memory_order_seq_cst);
    }
    return __builtin_expect(steal == WRITER_NOT_ASKED, 1) ? WRITER_IN_WINDOW : writer_is_asked(w);
}

// What holds, besides, for the thread while the window is its own.
static inline bool writer_window_valid(const struct writer *w)
{
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    return atomic_load_explicit(&w->busy, memory_order_relaxed) == WRITER_IN_WINDOW &&
           count <= WRITER_WINDOW && (!count || w->window[count - 1]);
}

static inline void writer_leave(struct writer *w)
{
    checked_assert(atomic_load_explicit(&w->busy, memory_order_relaxed) != WRITER_IDLE);
    atomic_store_explicit(&w->busy, WRITER_IDLE, memory_order_release);  // with the acquire in writer_take
}

static inline __attribute__((always_inline)) uint64_t writer_reserve(struct writer *w)
{
    int where = writer_enter(w);
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    if (__builtin_expect(where != WRITER_IN_WINDOW || count == WRITER_WINDOW, 0))
        return writer_reserve_slowly(w, where);
    return w->id | (w->base + count);
}

static inline __attribute__((always_inline)) void writer_commit(struct writer *w, uint64_t place,
                                                                uint64_t word)
{
    checked_assert(word && !(word & BLOCK_NOTICE));
    if (__builtin_expect(place + 1 <= 1, 0)) {  // WRITER_ELSEWHERE or WRITER_UNWATCHED
        writer_commit_slowly(w, place, word);
        return;
    }
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    checked_assert(count < WRITER_WINDOW && place == (w->id | (w->base + count)));
    w->window[count] = word;
    atomic_store_explicit(&w->count, count + 1, memory_order_relaxed);
    checked_assert(writer_window_valid(w));
    writer_leave(w);
}

static inline __attribute__((always_inline)) bool writer_strike(struct writer *w, uint64_t place,
                                                                uint64_t word)
{
    checked_assert(word && !(word & BLOCK_NOTICE));
    if (__builtin_expect(place == WRITER_UNWATCHED, 0))
        return true;
    int where = writer_enter(w);
    if (__builtin_expect(where != WRITER_IN_WINDOW, 0))
        return writer_strike_slowly(w, word, where);
    uint64_t i = place - (w->id | w->base);
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    if (i < count && w->window[i] == word) {
        w->window[i] = 0;
        while (count && !w->window[count - 1])
            count--;
    } else if (__builtin_expect(count < WRITER_WINDOW, 1)) {
        w->window[count++] = word | BLOCK_NOTICE;
    } else {
        return writer_strike_slowly(w, word, where);
    }
    atomic_store_explicit(&w->count, count, memory_order_relaxed);
    checked_assert(writer_window_valid(w));
    writer_leave(w);
    return true;
}

static inline __attribute__((always_inline)) uint64_t *writer_hold(struct writer *w, uint64_t place,
                                                                   uint64_t word)
{
    int where = writer_enter(w);
    if (__builtin_expect(where == WRITER_IN_WINDOW, 1)) {
        uint64_t i = place - (w->id | w->base);
        if (i < atomic_load_explicit(&w->count, memory_order_relaxed) && w->window[i] == word)
            return &w->window[i];
    }
    if (where != WRITER_IDLE)
        writer_leave(w);
    return NULL;
}

static inline void writer_let_go(struct writer *w)
{
    checked_assert(writer_window_valid(w));
    writer_leave(w);
}

#endif
