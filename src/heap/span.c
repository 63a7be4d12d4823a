// SPDX-License-Identifier: MIT
#include "heap/span.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "heap/guarded.h"

enum {
    GRAIN = 1 << SPAN_GRAIN,
    MOST_REGION = 256 << 20,
    SPARE_PART = 8,
    // Idle spans to keep, plus this part of all. For some time more are kept, up to the larger part, since
    // programs that free most of what they have may soon allocate as much again.
    IDLE_SPANS = 16,
    IDLE_PART = 8,
    IDLE_PART_SOON = 2,
    IDLE_SECONDS = 1,
    LEVEL_LOG2 = 12,
    WORDS = (SPAN_MOST_BLOCKS + 63) / 64
};

struct span {
    char *start;
    struct span *next, *before;  // in its bin's list, or in `unused`
    uint64_t bits[WORDS];        // free blocks
    uint32_t generation;
    uint16_t most, cut, free;
    _Atomic uint16_t bin;  // relaxed, all: a monitor may read it while the span changes its bin
};

struct bin {
    struct span *some;     // spans with some free blocks, but not all
    struct span *idle;     // spans with all blocks free
    struct span *cutting;  // the span from which fresh blocks are cut
};

// The last of all locks: no other lock is taken while it is held. The program's threads take it, as they take
// the next allocator's lock, once for a batch of blocks.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside __attribute__((tls_model("initial-exec")));
static struct bin bins[THREAD_CACHE_FINE_BINS];
static struct span *unused;        // without a bin
static size_t used, idle;          // spans with a bin; those in lists of idle ones
static char *region, *region_end;  // the part of the last region that is not in use yet
static uint64_t mapped;
static size_t page_size;             // set once, with the first region
static struct timespec idle_since;   // when more than IDLE_PART became idle; all 0: they are not
static uint64_t spare, spare_after;  // bytes of free blocks in spans; the same when room was last made

// Takes the lock. Returns false if the calling thread was interrupted in here.
static bool enter(void)
{
    if (inside)
        return false;
    inside = true;
    pthread_mutex_lock(&lock);
    return true;
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
    inside = false;
}

// --- which span an address lies in ---

static struct span *_Atomic *_Atomic levels[1 << LEVEL_LOG2];
enum { LOWER_LOG2 = 47 - SPAN_GRAIN - LEVEL_LOG2 };

static struct span *spans_of(uint64_t address)
{
    uint64_t grain = address >> SPAN_GRAIN;
    if (grain >> (LEVEL_LOG2 + LOWER_LOG2))
        return NULL;
    // Acquire, both: with the releases in have_level and publish_grains.
    struct span *_Atomic *lower = atomic_load_explicit(&levels[grain >> LOWER_LOG2], memory_order_acquire);
    return lower ? atomic_load_explicit(&lower[grain % (1 << LOWER_LOG2)], memory_order_acquire) : NULL;
}

static struct span *_Atomic *_Atomic *level_of(const char *address)
{
    return &levels[(uint64_t)(uintptr_t)address >> (SPAN_GRAIN + LOWER_LOG2)];
}

static bool have_level(const char *address)
{
    struct span *_Atomic *_Atomic *level = level_of(address);
    if (!atomic_load_explicit(level, memory_order_relaxed))
        atomic_store_explicit(level, guarded_keep(sizeof **level << LOWER_LOG2), memory_order_release);
    return atomic_load_explicit(level, memory_order_relaxed);
}

// Makes the records of a region's spans available by address. Returns false, without effect, if out of
// memory.
static bool publish_grains(char *start, size_t size, struct span *spans)
{
    if (!have_level(start) || !have_level(start + size - 1))
        return false;
    for (size_t i = 0; i < size / SPAN_BYTES; i++)
        spans[i].start = start + i * SPAN_BYTES;
    for (size_t at = 0; at < size; at += GRAIN) {
        uint64_t grain = (uint64_t)(uintptr_t)(start + at) >> SPAN_GRAIN;
        struct span *_Atomic *lower = atomic_load_explicit(level_of(start + at), memory_order_relaxed);
        atomic_store_explicit(&lower[grain % (1 << LOWER_LOG2)], spans + at / SPAN_BYTES,
                              memory_order_release);
    }
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

// Maps whole grains between two inaccessible pages.
static char *map_grains(size_t size)
{
    // Threads that have a block read the size without the lock: it is written once, before the first block.
    if (!page_size)
        page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t page = page_size, all = size + GRAIN + page;
    char *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    char *start = p + page + (-(uintptr_t)(p + page) & (GRAIN - 1)), *end = start + size;
    if ((uintptr_t)end > BLOCK_HIGHEST || mprotect(start, size, PROT_READ | PROT_WRITE)) {
        munmap(p, all);
        return NULL;
    }
    if (start - page > p)
        munmap(p, (size_t)(start - page - p));
    if (end + page < p + all)
        munmap(end + page, (size_t)(p + all - (end + page)));
    return start;
}

static void unmap_grains(char *start, size_t size)
{
    if (start)
        munmap(start - page_size, size + 2 * page_size);
}

// Maps a region; with huge pages unless it is the first: in a small process they would be mostly empty.
static bool map_region(void)
{
    size_t size = mapped / 4 / GRAIN * GRAIN;
    size = size < GRAIN ? GRAIN : size < MOST_REGION ? size : MOST_REGION;
    size_t records = size / SPAN_BYTES * sizeof(struct span);
    struct span *spans = guarded_map(records);
    char *start = spans ? map_grains(size) : NULL;
    if (!start || !publish_grains(start, size, spans)) {
        unmap_grains(start, size);
        guarded_unmap(spans, records);
        return false;
    }
    if (mapped)
        madvise(start, size, MADV_HUGEPAGE);
    mapped += size;
    region = start, region_end = start + size;
    return true;
}

static struct span *fresh_span(bool may_map)
{
    if (region == region_end && (!may_map || !map_region()))
        return NULL;
    struct span *s = span_at((uint64_t)(uintptr_t)region);
    region += SPAN_BYTES;
    return s;
}

static size_t stride_of(size_t bin)
{
    return thread_cache_fine_room(bin) + BLOCK_HEAD + BLOCK_TAIL;
}

static size_t bin_of(const struct span *s)
{
    return atomic_load_explicit(&s->bin, memory_order_relaxed);
}

static struct span *new_span(size_t bin, bool may_map)
{
    struct span *s = unused;
    if (s)
        unused = s->next;
    else if (!(s = fresh_span(may_map)))
        return NULL;
    memset(s->bits, 0, sizeof s->bits);
    s->next = s->before = NULL;
    s->generation = (s->generation + 1) % (1u << BLOCK_GENERATION_BITS);
    s->most = (uint16_t)(SPAN_BYTES / stride_of(bin));
    s->cut = s->free = 0;
    atomic_store_explicit(&s->bin, (uint16_t)bin, memory_order_relaxed);
    used++;
    return s;
}

// --- blocks ---

size_t span_room(const void *p)
{
    const struct span *s = span_at((uint64_t)(uintptr_t)p);
    return s ? thread_cache_fine_room(bin_of(s)) : 0;
}

uint64_t span_word(const struct span *s, size_t i)
{
    char *block = s->start + i * stride_of(bin_of(s)) + BLOCK_HEAD;
    return block_word(block, block_ticket(s->generation, 0, 0));
}

char *span_before(const char *block)
{
    const struct span *s = span_at((uint64_t)(uintptr_t)block);
    size_t stride = stride_of(bin_of(s));
    return (size_t)(block - s->start) > stride ? (char *)(uintptr_t)(block - stride) : NULL;
}

// Returns whether the heads of two blocks lie in one page: a page's size is a power of two.
static bool share_page(const char *a, const char *b)
{
    return (((uintptr_t)a - BLOCK_HEAD) ^ ((uintptr_t)b - 1)) < page_size;
}

bool span_may_hold(size_t room, struct block_info info)
{
    size_t needs = info.step                           ? block_room(info.step)
                   : info.size <= THREAD_CACHE_LARGEST ? thread_cache_room(info.size)
                                                       : info.size;
    return info.lead_log2 == BLOCK_LEAD_LOG2 && needs <= room;
}

bool span_is_overwritten(const char *block)
{
    static const struct block_head blank;
    const char *before = span_before(block);
    return before && share_page(before, block) && memcmp(block - BLOCK_HEAD, &blank, sizeof blank) != 0;
}

static bool is_valid(const struct span *s)
{
    size_t bits = 0;
    for (size_t k = 0; k < WORDS; k++) {
        size_t cut = s->cut > k * 64 ? s->cut - k * 64 : 0;
        if (cut < 64 && s->bits[k] >> cut)
            return false;
        bits += (size_t)__builtin_popcountll(s->bits[k]);
    }
    return bits == s->free && s->free <= s->cut && s->cut <= s->most &&
           (s->cut == s->most || bins[bin_of(s)].cutting == s) && span_at((uint64_t)(uintptr_t)s->start) == s;
}

static bool all_are_valid(void);

static size_t number_of(const struct span *s, uint64_t word)
{
    return (size_t)(block_of_word(word) - BLOCK_HEAD - s->start) / stride_of(bin_of(s));
}

static bool is_idle(const struct span *s)
{
    return s->free == s->most;
}

static struct span **list_of(const struct span *s)
{
    struct bin *b = &bins[bin_of(s)];
    return is_idle(s) ? &b->idle : &b->some;
}

static void enter_list(struct span *s)
{
    struct span **first = list_of(s);
    idle += is_idle(s);
    s->before = NULL;
    s->next = *first;
    if (s->next)
        s->next->before = s;
    *first = s;
}

static void leave_list(struct span *s)
{
    idle -= is_idle(s);
    *(s->before ? &s->before->next : list_of(s)) = s->next;
    if (s->next)
        s->next->before = s->before;
}

// Takes the lowest blocks first, so that they lie together.
static size_t take_some(struct span *s, uint64_t *words, size_t most)
{
    size_t n = 0;
    leave_list(s);
    for (size_t k = 0; k < WORDS && n < most; k++)
        for (; s->bits[k] && n < most; s->bits[k] &= s->bits[k] - 1)
            words[n++] = span_word(s, k * 64 + (size_t)__builtin_ctzll(s->bits[k]));
    s->free -= (uint16_t)n;
    spare -= n * stride_of(bin_of(s));
    if (s->free)
        enter_list(s);
    checked_assert(is_valid(s));
    return n;
}

static size_t take_used(struct bin *b, uint64_t *words, size_t most)
{
    size_t n = 0;
    while (n < most && (b->some || b->idle))
        n += take_some(b->some ? b->some : b->idle, words + n, most - n);
    return n;
}

static size_t take_fresh(size_t bin, uint64_t *words, size_t most, bool may_map)
{
    struct bin *b = &bins[bin];
    if (!b->cutting || b->cutting->cut == b->cutting->most)
        b->cutting = new_span(bin, may_map);
    size_t n = 0;
    for (; b->cutting && b->cutting->cut < b->cutting->most && n < most; n++)
        words[n] = span_word(b->cutting, b->cutting->cut++);
    checked_assert(!b->cutting || is_valid(b->cutting));
    return n;
}

size_t span_take(size_t bin, uint64_t *words, size_t most, bool may_map, bool *fresh)
{
    checked_assert(bin < THREAD_CACHE_FINE_BINS);
    if (!enter())
        return 0;
    size_t n = take_used(&bins[bin], words, most);
    *fresh = !n;
    n = n ? n : take_fresh(bin, words, most, may_map);
    leave();
    return n;
}

size_t span_overwritten(struct span_overwritten found[THREAD_CACHE_FINE_BINS])
{
    size_t n = 0;
    if (!enter())
        return 0;
    // Nobody cuts a block meanwhile, and only who has cut it writes its head.
    for (size_t i = 0; i < THREAD_CACHE_FINE_BINS; i++) {
        const struct span *s = bins[i].cutting;
        char *block = s && s->cut < s->most ? block_of_word(span_word(s, s->cut)) : NULL;
        if (block && span_is_overwritten(block))
            found[n++] = (struct span_overwritten){block, *block_head_of(block)};
    }
    leave();
    return n;
}

static void take_out(struct span *s)
{
    checked_assert(is_idle(s));
    leave_list(s);
    spare -= s->most * stride_of(bin_of(s));
    if (bins[bin_of(s)].cutting == s)
        bins[bin_of(s)].cutting = NULL;
    checked_assert(all_are_valid());
}

// Puts one block back.
static void put(struct span *s, uint64_t word)
{
    size_t i = number_of(s, word);
    uint64_t bit = 1ull << i % 64;
    if (s->bits[i / 64] & bit)
        return;  // two threads freed it at once, which goes undetected
    bool moves = !s->free || s->free + 1 == s->most;
    if (moves && s->free)
        leave_list(s);
    s->bits[i / 64] |= bit;
    s->free++;
    spare += stride_of(bin_of(s));
    if (moves)
        enter_list(s);
    checked_assert(is_valid(s));
}

static struct span *any_idle(void)
{
    for (size_t i = 0; idle && i < THREAD_CACHE_FINE_BINS; i++)
        if (bins[i].idle)
            return bins[i].idle;
    return NULL;
}

// Returns whether a second has passed since more than IDLE_PART became idle; if they just have, it begins.
static bool is_idle_for_long(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now))
        return true;
    if (!idle_since.tv_sec && !idle_since.tv_nsec)
        idle_since = now;
    return now.tv_sec > idle_since.tv_sec + IDLE_SECONDS;
}

// Takes out an idle span if there are too many. Returns NULL if there are not.
static struct span *take_out_excess(void)
{
    if (idle <= IDLE_SPANS + used / IDLE_PART) {
        idle_since = (struct timespec){0};
        return NULL;
    }
    struct span *s = idle > IDLE_SPANS + used / IDLE_PART_SOON || is_idle_for_long() ? any_idle() : NULL;
    if (s)
        take_out(s);
    return s;
}

size_t span_put(const uint64_t *words, size_t n, struct span **out)
{
    *out = NULL;
    if (!enter())
        return 0;
    size_t i = 0;
    while (i < n) {
        struct span *s = span_at((uint64_t)(uintptr_t)block_of_word(words[i]));
        put(s, words[i++]);
        if (is_idle(s) && (*out = take_out_excess()))
            break;
    }
    leave();
    return i;
}

bool span_should_reclaim(uint64_t held)
{
    if (!enter())
        return false;
    bool worth = spare + held > spare_after + mapped / SPARE_PART;
    leave();
    return worth;
}

struct span *span_take_out(void)
{
    if (!enter())
        return NULL;
    struct span *s = any_idle();
    if (s)
        take_out(s);
    else
        spare_after = spare;
    leave();
    return s;
}

size_t span_blocks(const struct span *s)
{
    return s->most;
}

void span_give(struct span *s)
{
    int saved = errno;
    // Fails where the program has locked its memory.
    if (madvise(s->start, SPAN_BYTES, MADV_DONTNEED))
        memset(s->start, 0, SPAN_BYTES);
    errno = saved;
    if (!enter())
        return;
    s->most = s->cut = s->free = 0;
    s->next = unused;
    unused = s;
    used--;
    checked_assert(all_are_valid());
    leave();
}

// --- fork ---

// Code that runs before and after a fork may allocate, but not from spans. If a signal handler forks and its
// thread was in here, the lock is that thread's in both processes.
static __thread bool forking __attribute__((tls_model("initial-exec")));

void span_before_fork(void)
{
    forking = enter();
}

void span_after_fork(void)
{
    if (forking)
        leave();
}

uint64_t span_bytes(void)
{
    pthread_mutex_lock(&lock);
    uint64_t bytes = mapped;
    pthread_mutex_unlock(&lock);
    return bytes;
}

// Returns whether a bin's list is valid; adds up its idle spans and free bytes.
static bool list_is_valid(const struct span *s, size_t bin, bool idle_ones, size_t *count, uint64_t *bytes)
{
    bool valid = true;
    for (const struct span *before = NULL; s && valid; before = s, s = s->next) {
        valid = is_valid(s) && s->free && bin_of(s) == bin && s->before == before && is_idle(s) == idle_ones;
        *count += idle_ones;
        *bytes += s->free * stride_of(bin);
    }
    return valid;
}

static bool unused_are_valid(size_t *count)
{
    for (const struct span *s = unused; s; s = s->next, ++*count)
        if (s->most || s->cut || s->free)
            return false;
    return true;
}

// The lock must be held.
static bool all_are_valid(void)
{
    size_t count = 0, without = 0;
    uint64_t bytes = 0;
    bool valid = unused_are_valid(&without);
    for (size_t i = 0; i < THREAD_CACHE_FINE_BINS; i++)
        valid = valid && list_is_valid(bins[i].some, i, false, &count, &bytes) &&
                list_is_valid(bins[i].idle, i, true, &count, &bytes) &&
                (!bins[i].cutting || (bins[i].cutting->bin == i && is_valid(bins[i].cutting)));
    return valid && count == idle && bytes == spare &&
           mapped / SPAN_BYTES == used + without + (size_t)(region_end - region) / SPAN_BYTES;
}

bool span_valid(void)
{
    pthread_mutex_lock(&lock);
    bool valid = all_are_valid();
    pthread_mutex_unlock(&lock);
    return valid;
}
