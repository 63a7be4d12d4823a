// SPDX-License-Identifier: MIT
#include "heap/span.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap/foreign.h"
#include "heap/guarded.h"

enum {
    GRAIN = 1 << FOREIGN_GRAIN,
    IN_GRAIN = GRAIN / SPAN_BYTES,
    MOST_TRACT = 64 << 20,
    IDLE_SPANS = 16,  // whose blocks are all back, and a part of all
    IDLE_PART = 8,
    LEVEL_LOG2 = 12,
    WORDS = (SPAN_MOST_BLOCKS + 63) / 64
};

struct span {
    char *start;
    struct span *next, *before;  // of its bin, or of those that have none
    uint64_t bits[WORDS];        // blocks that are here
    uint32_t generation;
    uint16_t most, cut, free;
    uint16_t bin;
    bool is_taken_out;
};

struct bin {
    struct span *first;  // of those with blocks that are here
    struct span *now;    // the one that is cut
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside __attribute__((tls_model("initial-exec")));
static struct bin bins[SHELF_FINE_BINS];
static struct span *unused;      // without a bin
static size_t used, idle;        // with one; of these, all blocks are here and they are not taken out
static char *tract, *tract_end;  // of memory that has not been given out
static uint64_t mapped;

// --- which span an address lies in ---

static struct span *_Atomic *_Atomic levels[1 << LEVEL_LOG2];
enum { LOWER_LOG2 = 47 - FOREIGN_GRAIN - LEVEL_LOG2 };

static struct span *spans_of(uint64_t address)
{
    uint64_t grain = address >> FOREIGN_GRAIN;
    if (grain >> (LEVEL_LOG2 + LOWER_LOG2))
        return NULL;
    // Acquire, both: with the releases in know_grain.
    struct span *_Atomic *lower = atomic_load_explicit(&levels[grain >> LOWER_LOG2], memory_order_acquire);
    return lower ? atomic_load_explicit(&lower[grain % (1 << LOWER_LOG2)], memory_order_acquire) : NULL;
}

static bool know_grain(char *start)
{
    uint64_t grain = (uint64_t)(uintptr_t)start >> FOREIGN_GRAIN;
    struct span *_Atomic *lower = atomic_load_explicit(&levels[grain >> LOWER_LOG2], memory_order_relaxed);
    struct span *spans = guarded_keep(IN_GRAIN * sizeof *spans);
    if (!lower && spans) {
        lower = guarded_keep(sizeof *lower << LOWER_LOG2);
        atomic_store_explicit(&levels[grain >> LOWER_LOG2], lower, memory_order_release);
    }
    if (!lower || !spans)
        return false;
    for (size_t i = 0; i < IN_GRAIN; i++)
        spans[i].start = start + i * SPAN_BYTES;
    atomic_store_explicit(&lower[grain % (1 << LOWER_LOG2)], spans, memory_order_release);
    foreign_mark(start + BLOCK_HEAD);
    return true;
}

static struct span *span_at(uint64_t address)
{
    struct span *spans = spans_of(address);
    return spans ? &spans[address % GRAIN / SPAN_BYTES] : NULL;
}

bool span_has(const void *p)
{
    return spans_of((uint64_t)(uintptr_t)p);
}

// --- memory ---

// Whole grains between two pages that nobody can touch. Of huge pages, if there are many: in a small process they would be empty.
static bool map_tract(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = mapped / 4 / GRAIN * GRAIN;
    size = size < GRAIN ? GRAIN : size < MOST_TRACT ? size : MOST_TRACT;
    size_t all = size + GRAIN + page;
    char *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    char *start = p + page + (-(uintptr_t)(p + page) & (GRAIN - 1)), *end = start + size;
    if ((uintptr_t)end > BLOCK_HIGHEST || mprotect(start, size, PROT_READ | PROT_WRITE)) {
        munmap(p, all);
        return false;
    }
    if (start - page > p)
        munmap(p, (size_t)(start - page - p));
    if (end + page < p + all)
        munmap(end + page, (size_t)(p + all - (end + page)));
    if (mapped)
        madvise(start, size, MADV_HUGEPAGE);
    mapped += size;
    tract = start, tract_end = end;
    return true;
}

static struct span *fresh_span(void)
{
    if (tract == tract_end && !map_tract())
        return NULL;
    if ((uintptr_t)tract % GRAIN == 0 && !know_grain(tract))
        return NULL;
    struct span *s = span_at((uint64_t)(uintptr_t)tract);
    tract += SPAN_BYTES;
    return s;
}

static size_t stride_of(size_t bin)
{
    return shelf_fine_room(bin) + BLOCK_HEAD + BLOCK_TAIL;
}

static struct span *new_span(size_t bin)
{
    struct span *s = unused;
    if (s)
        unused = s->next;
    else if (!(s = fresh_span()))
        return NULL;
    *s = (struct span){.start = s->start,
                       .generation = (s->generation + 1) % (1u << BLOCK_GENERATION_BITS),
                       .most = (uint16_t)(SPAN_BYTES / stride_of(bin)),
                       .bin = (uint16_t)bin};
    used++;
    return s;
}

// --- blocks ---

size_t span_room(const void *p)
{
    return shelf_fine_room(span_at((uint64_t)(uintptr_t)p)->bin);
}

uint64_t span_word(const struct span *s, size_t i)
{
    char *block = s->start + i * stride_of(s->bin) + BLOCK_HEAD;
    return block_word(block, block_ticket(s->generation, 0, 0));
}

static size_t number_of(const struct span *s, uint64_t word)
{
    return (size_t)(block_of_word(word) - BLOCK_HEAD - s->start) / stride_of(s->bin);
}

static void enter_list(struct span *s)
{
    struct bin *b = &bins[s->bin];
    s->before = NULL;
    s->next = b->first;
    if (s->next)
        s->next->before = s;
    b->first = s;
}

static void leave_list(struct span *s)
{
    *(s->before ? &s->before->next : &bins[s->bin].first) = s->next;
    if (s->next)
        s->next->before = s->before;
}

static bool is_idle(const struct span *s)
{
    return s->free == s->most;
}

// The lowest first: they lie together.
static size_t take_used(struct bin *b, uint64_t *words, size_t most)
{
    size_t n = 0;
    for (struct span *s; n < most && (s = b->first);) {
        idle -= is_idle(s);
        for (size_t k = 0; k < WORDS && n < most; k++)
            for (; s->bits[k] && n < most; s->bits[k] &= s->bits[k] - 1) {
                words[n++] = span_word(s, k * 64 + (size_t)__builtin_ctzll(s->bits[k]));
                s->free--;
            }
        if (!s->free)
            leave_list(s);
    }
    return n;
}

static size_t take_fresh(size_t bin, uint64_t *words, size_t most)
{
    struct bin *b = &bins[bin];
    if (!b->now || b->now->cut == b->now->most)
        b->now = new_span(bin);
    size_t n = 0;
    for (; b->now && b->now->cut < b->now->most && n < most; n++)
        words[n] = span_word(b->now, b->now->cut++);
    return n;
}

size_t span_take(size_t bin, uint64_t *words, size_t most, bool *fresh)
{
    if (inside)
        return 0;
    inside = true;
    pthread_mutex_lock(&lock);
    size_t n = take_used(&bins[bin], words, most);
    *fresh = !n;
    n = n ? n : take_fresh(bin, words, most);
    pthread_mutex_unlock(&lock);
    inside = false;
    return n;
}

// Whether the span must be taken out.
static bool put(struct span *s, uint64_t word)
{
    size_t i = number_of(s, word);
    s->bits[i / 64] |= 1ull << i % 64;
    if (!s->free++)
        enter_list(s);
    if (!is_idle(s) || ++idle <= IDLE_SPANS + used / IDLE_PART)
        return false;
    leave_list(s);
    idle--;
    if (bins[s->bin].now == s)
        bins[s->bin].now = NULL;
    s->is_taken_out = true;
    return true;
}

size_t span_put(const uint64_t *words, size_t n, struct span **out)
{
    *out = NULL;
    if (inside)
        return 0;
    inside = true;
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < n && !*out) {
        struct span *s = span_at((uint64_t)(uintptr_t)block_of_word(words[i]));
        if (put(s, words[i++]))
            *out = s;
    }
    pthread_mutex_unlock(&lock);
    inside = false;
    return i;
}

size_t span_blocks(const struct span *s)
{
    return s->most;
}

void span_give(struct span *s)
{
    madvise(s->start, SPAN_BYTES, MADV_DONTNEED);
    inside = true;
    pthread_mutex_lock(&lock);
    s->is_taken_out = false;
    s->most = s->cut = s->free = 0;
    s->next = unused;
    unused = s;
    used--;
    pthread_mutex_unlock(&lock);
    inside = false;
}

// --- fork ---

void span_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

void span_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

uint64_t span_bytes(void)
{
    pthread_mutex_lock(&lock);
    uint64_t bytes = mapped;
    pthread_mutex_unlock(&lock);
    return bytes;
}

static bool is_valid(const struct span *s)
{
    size_t bits = 0;
    for (size_t i = 0; i < WORDS * 64; i++)
        if (s->bits[i / 64] >> i % 64 & 1) {
            bits++;
            if (i >= s->cut)
                return false;
        }
    return bits == s->free && s->free && s->free <= s->cut && s->cut <= s->most && !s->is_taken_out;
}

bool span_valid(void)
{
    size_t idle_ones = 0;
    bool valid = true;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < SHELF_FINE_BINS; i++)
        for (struct span *s = bins[i].first, *before = NULL; s; before = s, s = s->next) {
            valid &= is_valid(s) && s->bin == i && s->before == before;
            idle_ones += is_idle(s);
        }
    valid &= idle_ones == idle;
    pthread_mutex_unlock(&lock);
    return valid;
}
