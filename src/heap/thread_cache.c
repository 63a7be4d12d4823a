// SPDX-License-Identifier: MIT
#include "heap/thread_cache.h"

#include <stdatomic.h>
#include <string.h>

#include "heap/guarded.h"

enum {
    MOST_WORDS = 1 << 18,
    DEEP_BYTES = 32 << 20,
    // For sizes above THREAD_CACHE_FINE: memory kept for them is not available to other sizes.
    COARSE_DEEP_BYTES = 1 << 18,
    STEP = 128,
    OVERHEAD = 48,
    FIRST_BYTES = 4096,
    FIRST_LEAST = 6
};

static _Atomic uint64_t granted;  // bytes granted to all threads; relaxed: only a sum

static size_t bytes_of(size_t number)
{
    size_t room = number < THREAD_CACHE_FINE_BINS
                      ? thread_cache_fine_room(number)
                      : (THREAD_CACHE_FINE / THREAD_CACHE_STEP + number - THREAD_CACHE_FINE_BINS + 1) *
                            THREAD_CACHE_STEP;
    return room + OVERHEAD;
}

// Returns the words that a grown bin may have. There is one more before them, which is 0, and one behind
// them, as a signal handler may have filled the bin since its thread saw that it was not full.
static size_t most_words(size_t number)
{
    size_t n = (number < THREAD_CACHE_FINE_BINS ? DEEP_BYTES : COARSE_DEEP_BYTES) / bytes_of(number);
    return n < MOST_WORDS ? n : MOST_WORDS;
}

static size_t first_end(size_t number)
{
    size_t n = FIRST_LEAST + FIRST_BYTES / bytes_of(number);
    return n < THREAD_CACHE_SMALL - 2 ? n : THREAD_CACHE_SMALL - 2;
}

void thread_cache_init(struct thread_cache *s)
{
    for (size_t i = 0; i < THREAD_CACHE_BINS; i++) {
        struct thread_cache_bin *b = &s->bins[i];
        b->low = b->top = s->small[i] + 1;
        b->end = b->last = b->low + first_end(i);
    }
}

void thread_cache_forget(struct thread_cache *s)
{
    atomic_fetch_sub_explicit(&granted, s->held, memory_order_relaxed);
    s->held = 0;
    thread_cache_init(s);
}

static uint64_t *place_of(struct thread_cache *s, size_t number)
{
    size_t before = 0, all = 0;
    for (size_t i = 0; i < THREAD_CACHE_BINS; i++) {
        before += i < number ? most_words(i) + 2 : 0;
        all += most_words(i) + 2;
    }
    if (!s->grown)
        s->grown = guarded_map(all * sizeof *s->grown);
    return s->grown ? s->grown + before + 1 : NULL;
}

static bool move(struct thread_cache *s, struct thread_cache_bin *b, size_t number)
{
    uint64_t *to = place_of(s, number);
    if (!to)
        return false;
    size_t count = (size_t)(b->top - b->low), room = (size_t)(b->end - b->low);
    memcpy(to, b->low, count * sizeof *to);
    *b = (struct thread_cache_bin){to + count, to + room, to, to + most_words(number)};
    return true;
}

static bool bin_is_valid(const struct thread_cache *s, const struct thread_cache_bin *b)
{
    size_t number = (size_t)(b - s->bins);
    bool is_small = b->low == s->small[number] + 1;
    if (b->low > b->top || b->top > b->end + 1 || b->end > b->last || b->low[-1])
        return false;
    for (const uint64_t *w = b->low; w < b->top; w++)
        if (!*w)
            return false;
    return is_small ? b->end == b->last && b->end == b->low + first_end(number)
                    : s->grown && b->low > s->grown && b->last == b->low + most_words(number);
}

static bool grow(struct thread_cache *s, struct thread_cache_bin *b)
{
    size_t number = (size_t)(b - s->bins), bytes;
    bool is_small = b->low == s->small[number] + 1;
    size_t left = is_small ? most_words(number) - (size_t)(b->end - b->low) : (size_t)(b->last - b->end);
    size_t step = left < STEP ? left : STEP;
    bytes = step * bytes_of(number);
    if (!step || s->held + bytes > THREAD_CACHE_THREAD_BYTES)
        return false;
    if (atomic_fetch_add_explicit(&granted, bytes, memory_order_relaxed) + bytes > THREAD_CACHE_ALL_BYTES ||
        (is_small && !move(s, b, number))) {
        atomic_fetch_sub_explicit(&granted, bytes, memory_order_relaxed);
        return false;
    }
    s->held += bytes;
    b->end += step;
    checked_assert(thread_cache_valid(s));
    return true;
}

// --- the depot ---

enum { DEPOT_WORDS = 512, DEPOT_BYTES = 1 << 16, BATCH = 64 };

struct depot_bin {
    _Alignas(64) _Atomic bool locked;  // nobody waits: a thread that does not get it does without
    _Atomic bool wanted;               // relaxed: a hint that a thread found it empty
    _Atomic uint32_t count;            // relaxed: only the lock's holder writes it and relies on it
    uint64_t *words;                   // DEPOT_WORDS; separate, as most programs never touch them
};

static struct depot_bin *depot;  // THREAD_CACHE_BINS; NULL: no depot

void thread_cache_start(void)
{
    struct depot_bin *bins = guarded_keep(THREAD_CACHE_BINS * sizeof *bins);
    uint64_t *words = guarded_keep(THREAD_CACHE_BINS * DEPOT_WORDS * sizeof *words);
    for (size_t i = 0; bins && i < THREAD_CACHE_BINS; i++)
        bins[i].words = words + i * DEPOT_WORDS;
    depot = words ? bins : NULL;
}

void thread_cache_after_fork(void)
{
    for (size_t i = 0; depot && i < THREAD_CACHE_BINS; i++) {
        // Relaxed, all: there is one thread. The holder of a lock may have been interrupted, so the words are
        // dropped.
        atomic_store_explicit(&depot[i].count, 0, memory_order_relaxed);
        atomic_store_explicit(&depot[i].locked, false, memory_order_relaxed);
    }
}

static size_t depot_most(size_t number)
{
    size_t most = DEPOT_BYTES / bytes_of(number);
    return most < DEPOT_WORDS ? most : DEPOT_WORDS;
}

// The lock must be held.
static bool depot_is_valid(const struct depot_bin *d)
{
    uint32_t count = atomic_load_explicit(&d->count, memory_order_relaxed);
    if (count > depot_most((size_t)(d - depot)))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!d->words[i])
            return false;
    return true;
}

static bool lock(struct depot_bin *d)
{
    return !atomic_exchange_explicit(&d->locked, true, memory_order_acquire);  // with unlock's release
}

static void unlock(struct depot_bin *d)
{
    checked_assert(depot_is_valid(d));
    atomic_store_explicit(&d->locked, false, memory_order_release);  // with lock's acquire
}

bool thread_cache_refill(struct thread_cache *s, struct thread_cache_bin *b)
{
    struct depot_bin *d = depot ? &depot[b - s->bins] : NULL;
    if (!d)
        return false;
    if (!atomic_load_explicit(&d->count, memory_order_relaxed) || !lock(d)) {
        if (!atomic_load_explicit(&d->wanted, memory_order_relaxed))
            atomic_store_explicit(&d->wanted, true, memory_order_relaxed);
        return false;
    }
    uint32_t count = atomic_load_explicit(&d->count, memory_order_relaxed);
    size_t room = (size_t)(b->end - b->top), n = count < BATCH ? count : BATCH;
    n = n < room ? n : room;
    memcpy(b->top, d->words + count - n, n * sizeof *d->words);
    atomic_store_explicit(&d->count, count - (uint32_t)n, memory_order_relaxed);
    unlock(d);
    b->top += n;
    checked_assert(bin_is_valid(s, b));
    return n;
}

static void drop_oldest(struct thread_cache_bin *b, size_t gone)
{
    checked_assert(gone <= (size_t)(b->top - b->low));
    size_t left = (size_t)(b->top - b->low) - gone;
    memmove(b->low, b->low + gone, left * sizeof *b->low);
    b->top = b->low + left;
}

static bool give_to_depot(struct thread_cache *s, struct thread_cache_bin *b)
{
    size_t number = (size_t)(b - s->bins), most = depot_most(number), n = thread_cache_older(b);
    struct depot_bin *d = depot ? &depot[number] : NULL;
    if (!d || !atomic_load_explicit(&d->wanted, memory_order_relaxed) || !lock(d))
        return false;
    uint32_t count = atomic_load_explicit(&d->count, memory_order_relaxed);
    n = n < BATCH ? n : BATCH;
    n = count >= most ? 0 : n < most - count ? n : most - count;
    memcpy(d->words + count, b->low, n * sizeof *d->words);
    atomic_store_explicit(&d->count, count + (uint32_t)n, memory_order_relaxed);
    if (count + n >= most)
        atomic_store_explicit(&d->wanted, false, memory_order_relaxed);
    unlock(d);
    drop_oldest(b, n);
    checked_assert(bin_is_valid(s, b));
    return n;
}

bool thread_cache_make_room(struct thread_cache *s, struct thread_cache_bin *b)
{
    return give_to_depot(s, b) || grow(s, b);
}

size_t thread_cache_older(const struct thread_cache_bin *b)
{
    return (size_t)(b->top - b->low + 1) / 2;
}

void thread_cache_drop_older(struct thread_cache_bin *b)
{
    drop_oldest(b, thread_cache_older(b));
}

uint64_t thread_cache_bytes(const struct thread_cache *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < THREAD_CACHE_FINE_BINS; i++)
        bytes += (uint64_t)(s->bins[i].top - s->bins[i].low) * bytes_of(i);
    return bytes;
}

bool thread_cache_valid(const struct thread_cache *s)
{
    uint64_t held = 0;
    for (size_t i = 0; i < THREAD_CACHE_BINS; i++) {
        const struct thread_cache_bin *b = &s->bins[i];
        if (!bin_is_valid(s, b))
            return false;
        if (b->low != s->small[i] + 1)
            held += ((size_t)(b->end - b->low) - first_end(i)) * bytes_of(i);
    }
    return held == s->held && held <= THREAD_CACHE_THREAD_BYTES;
}
