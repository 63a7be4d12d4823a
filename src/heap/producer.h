// SPDX-License-Identifier: MIT
// A producer is the record of a thread of the program. When the thread gets a block from the next allocator,
// it puts the block's word into its window, a plain array. If the block is given back while its word is still
// in the window, the word is removed there and nobody else learns of the block. A full window moves, without
// removed words, into the thread's ring to the deliverer. The end of a block whose word has left the window
// is announced by a second word, a notice. Blocks that are reused (thread_cache.h) bypass all this.
//
// So that the words of a thread that allocates little do not stay in its window, the deliverer empties
// windows too, without the thread's cooperation. That takes no locked instruction in the thread, only a
// membarrier in the deliverer:
//
//   thread:     busy = 1; [compiler]; read steal, use the window; busy = 0 (release)
//   deliverer:  steal = ASKED; [membarrier: every thread]; if busy == 0 and steal goes from ASKED to TAKEN,
//               the window is the deliverer's
//
// Either the deliverer sees busy = 1 behind the barrier, or the thread sees the new steal. If that is ASKED,
// the thread tries to make it SERVED, empties the window into its ring and continues, so a preempted
// deliverer blocks nobody. If it is TAKEN, the thread puts its words directly into the ring until the
// deliverer is done. The thread never waits. Where the kernel has no membarrier, both sides use sequentially
// consistent operations. A signal handler that allocates while its thread is in here finds busy set; it
// leaves its block unwatched and counts it.
//
// What holds between two operations of the thread (producer_valid):
//   window[i] for i < count is the word with place base + i, or 0; window[count - 1] is not 0
//   count <= PRODUCER_WINDOW
//   0 < base < 2^48, and base only grows: no place names two words
//   id = n 2^48, 0 < n < PRODUCER_MOST: no two records have the same id
//   busy = PRODUCER_IDLE; steal is not PRODUCER_SERVED
//   steal = PRODUCER_TAKEN only while the deliverer has the window
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

// A place says where a block's word is: 16 bits name the thread, 48 the position; position 0: in a ring or
// beyond.
#define PRODUCER_ELSEWHERE 0ull
#define PRODUCER_UNWATCHED (~0ull)  // no word exists

enum producer_steal { PRODUCER_NOT_ASKED, PRODUCER_ASKED, PRODUCER_TAKEN, PRODUCER_SERVED };
enum producer_busy { PRODUCER_IDLE, PRODUCER_IN_WINDOW, PRODUCER_IN_RING };
enum producer_state { PRODUCER_UNUSED, PRODUCER_ALIVE, PRODUCER_DEAD };

// A cache of the program's calls, by return address and frame, with their sites (site.h), as programs
// allocate at few places. An entry is the upper bits of a call's hash with the site below them. It is in the
// slot of its hash or near it: in the same cache line.
enum { PRODUCER_CALLERS_LOG2 = 14, PRODUCER_CALLERS_NEAR = 8 };

struct producer {
    _Atomic int busy;        // enum producer_busy, written by the thread
    _Atomic int steal;       // enum producer_steal
    _Atomic uint32_t count;  // words in the window; relaxed: busy and steal decide who owns it
    uint64_t base;
    _Atomic uint64_t generation;  // of the next block; threads start far apart; relaxed: a count for others
    uint64_t id;                  // the upper 16 bits of a place, in position
    struct thread_cache cache;
    // How many blocks the last refill of a bin from spans asked for, bounds aside.
    uint8_t filled[THREAD_CACHE_FINE_BINS];
    _Alignas(64) uint64_t callers[1 << PRODUCER_CALLERS_LOG2];
    uint32_t unwound;            // stacks unwound so far (site.h)
    _Atomic uint32_t unwatched;  // blocks that could not be recorded; relaxed
    uintptr_t stack_top;         // an address in the thread's outermost frames
    uint64_t window[PRODUCER_WINDOW];
    struct ring_list ring;
    struct heap_quarantine quarantine;  // freed blocks that are not reused or given back yet
    _Atomic pid_t tid;                  // relaxed: a reader may get the id of a thread that has ended
    _Atomic int state;                  // enum producer_state
    struct producer *_Atomic older;     // list of all records; never shrinks
};

// Returns the next block's generation.
static inline uint64_t producer_generation(struct producer *w)
{
    uint64_t g = atomic_load_explicit(&w->generation, memory_order_relaxed);
    atomic_store_explicit(&w->generation, g + 1, memory_order_relaxed);
    return g;
}
uint64_t producer_made(const struct producer *w);  // blocks made so far

// Returns the list of all records, youngest first.
struct producer *producer_all(void);

// Returns a record for the calling thread; NULL if out of memory or numbers.
struct producer *producer_new(void);
void producer_retire(struct producer *w);  // the thread ends; the deliverer takes the remaining words

// Chooses how threads and the deliverer synchronize: by membarrier if the kernel has it, else by sequentially
// consistent operations.
void producer_set_barrier(bool membarrier);

void producer_close(void);  // words are dropped from now on: at exit, or if out of memory
bool producer_closed(void);

// Sets a function that a thread calls each time it has filled its window: it does part of our work if we fall
// behind.
void producer_when_full(void (*call)(struct producer *w));

// In the child of a fork: resets the record of a thread that no longer exists, whatever it was doing.
void producer_owner_died(struct producer *w);

// Puts the word of a block. producer_reserve returns the place that the word will have, which the block's
// head needs; producer_commit puts the word once the head is complete, so whoever finds a word finds a valid
// head. Between the two, only the block's head and tail are written.
static inline uint64_t producer_reserve(struct producer *w);
static inline void producer_commit(struct producer *w, uint64_t place, uint64_t word);

// For a block that is given back: removes its word from the window or puts a notice. Returns false if neither
// is possible now; then the block must stay allocated below us, marked as freed, for good.
static inline bool producer_remove(struct producer *w, uint64_t place, uint64_t word);

// For a block that is about to move or to be resized: keeps the window in the thread's hands until
// producer_let_go and returns the word's slot, which the caller may overwrite. Returns NULL, without effect,
// if the word has left the window.
static inline uint64_t *producer_hold(struct producer *w, uint64_t place, uint64_t word);
static inline void producer_let_go(struct producer *w);

// Deliverer: requests the windows of all threads that have words in them, or of all threads, and makes the
// request visible to them.
void producer_ask(bool all);
// Deliverer: takes the window's words if they were requested and the thread has not put them into its ring.
// Returns how many, or -EAGAIN if the thread is using the window now.
int producer_take(struct producer *w, uint64_t *words);

bool producer_valid(struct producer *w);  // only while nobody is at work

// --- the thread's side, inline: it is part of every allocation ---

extern __attribute__((visibility("hidden"))) bool producer_kernel_helps;

// Slow paths of the inline functions, in producer.c. `where`: what producer_enter returned.
int producer_answer(struct producer *w);
uint64_t producer_reserve_slowly(struct producer *w, int where);
void producer_commit_slowly(struct producer *w, uint64_t place, uint64_t word);
bool producer_remove_slowly(struct producer *w, uint64_t word, int where);

// Returns what the thread may use now: PRODUCER_IN_WINDOW, PRODUCER_IN_RING, or PRODUCER_IDLE for nothing, in
// a signal handler that interrupted this code.
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
    return __builtin_expect(steal == PRODUCER_NOT_ASKED, 1) ? PRODUCER_IN_WINDOW : producer_answer(w);
}

// What also holds for the thread while it owns the window.
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

static inline __attribute__((always_inline)) bool producer_remove(struct producer *w, uint64_t place,
                                                                  uint64_t word)
{
    checked_assert(word && !(word & BLOCK_NOTICE));
    if (__builtin_expect(place == PRODUCER_UNWATCHED, 0))
        return true;
    int where = producer_enter(w);
    if (__builtin_expect(where != PRODUCER_IN_WINDOW, 0))
        return producer_remove_slowly(w, word, where);
    uint64_t i = place - (w->id | w->base);
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    if (i < count && w->window[i] == word) {
        w->window[i] = 0;
        while (count && !w->window[count - 1])
            count--;
    } else if (__builtin_expect(count < PRODUCER_WINDOW, 1)) {
        w->window[count++] = word | BLOCK_NOTICE;
    } else {
        return producer_remove_slowly(w, word, where);
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
