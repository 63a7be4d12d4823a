// SPDX-License-Identifier: MIT
#include "heap/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "heap/own_fds.h"
#include "heap/foreign.h"
#include "heap/unmapped.h"
#include "heap/heap_fast.h"
#include "heap/heap_lazy_free.h"
#include "heap/heap_life.h"
#include "heap/heap_report.h"
#include "heap/site.h"
#include "heap/span.h"
#include "heap/next_malloc.h"

struct heap_settings heap_settings = {.quarantine_bytes = 256 << 10};

__thread struct producer *heap_producer;

struct producer *heap_self(void)
{
    return heap_producer;
}

void heap_set_lazy(bool lazy)
{
    heap_settings.lazy = lazy;
}

static __attribute__((noinline)) struct producer *join(void)
{
    if (!heap_life_ready() || own_fds_is_our_thread())
        return NULL;
    heap_producer = producer_new();
    if (heap_producer)
        heap_life_thread_starts(heap_producer);
    return heap_producer;
}

struct producer *heap_join(void)
{
    return heap_producer ? heap_producer : join();
}

// Finds the site of a call whose slot has another entry. If the call's entry is in a near slot, the two swap
// places. If it is in none, it is made; the other entries move one slot on, and the last one is dropped.
uint32_t heap_find_site(struct producer *w, const void *from, const void *frame, uint64_t hash)
{
    size_t i = hash >> (64 - PRODUCER_CALLERS_LOG2), near = 1;
    while (near < PRODUCER_CALLERS_NEAR && (w->callers[i ^ near] ^ hash) >> BLOCK_SITE_BITS)
        near++;
    uint64_t entry;
    if (near < PRODUCER_CALLERS_NEAR) {
        entry = w->callers[i ^ near];
    } else {
        entry = (hash & ~(uint64_t)BLOCK_SITE_MASK) |
                site_of(from, w->stack_top - (uintptr_t)frame, &w->unwound, producer_made(w));
        while (--near > 1)
            w->callers[i ^ near] = w->callers[i ^ (near - 1)];
    }
    w->callers[i ^ near] = w->callers[i];
    w->callers[i] = entry;
    return entry & BLOCK_SITE_MASK;
}

void *heap_no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

// --- spans ---

// Removes the words of a span that was taken out and gives it back. If a word cannot be removed now, the span
// stays unused for good.
static void retire_span(struct producer *w, struct span *s)
{
    bool removed = true;
    for (size_t i = 0; i < span_blocks(s); i++)
        removed &= producer_remove(w, PRODUCER_ELSEWHERE, span_word(s, i));
    if (removed)
        span_give(s);
}

// Puts blocks that are marked as freed into their spans. Those that cannot be put now stay unused for good.
static void put_into_spans(struct producer *w, const uint64_t *words, size_t n)
{
    struct span *out;
    for (size_t done; n && (done = span_put(words, n, &out)); words += done, n -= done)
        if (out)
            retire_span(w, out);
}

// Gives a block of the thread cache back to the next allocator. Its head may have been overwritten since, so
// its place is not trusted: a wrong place only causes a notice where the word could have been removed from
// the window; PRODUCER_UNWATCHED, which would do neither, is ignored.
static void give_back_word(struct producer *w, uint64_t word)
{
    char *p = block_of_word(word);
    uint64_t place = block_head_of(p)->place;
    if (producer_remove(w, place == PRODUCER_UNWATCHED ? PRODUCER_ELSEWHERE : place, word))
        next_malloc.free(p - BLOCK_HEAD);
}

static __attribute__((noinline)) void empty_bin(struct producer *w, struct thread_cache_bin *b, size_t count)
{
    size_t i = 0, in_spans = 0;
    for (; i < count; i++) {
        uint64_t word = b->low[i];
        if (span_has(block_of_word(word)))
            b->low[in_spans++] = word;
        else
            give_back_word(w, word);
    }
    put_into_spans(w, b->low, in_spans);
}

static void empty_bins(struct producer *w, size_t bins)
{
    for (struct thread_cache_bin *b = w->cache.bins; b < w->cache.bins + bins; b++) {
        size_t count = (size_t)(b->top - b->low);
        b->top = b->low;
        empty_bin(w, b, count);
    }
}

// --- allocating ---

enum { FILL_STEP = 2, FILL_MOST = 18, FILL_BYTES = 2048 };  // blocks and bytes per refill of a bin

void heap_mark(const void *block, size_t size)
{
    if (size >= UNMAPPED_LEAST && unmapped_may_be(block)) {
        unmapped_forget(block);
        foreign_mark_in(foreign_mapped_map, block);
    } else {
        foreign_mark(block);
    }
}

void *heap_make_block(struct producer *w, const void *from, const void *frame, char *base,
                      struct block_info info)
{
    char *block = base + ((size_t)1 << info.lead_log2);
    if (__builtin_expect(atomic_load_explicit(&heap_life_unmonitored, memory_order_relaxed), 0))
        heap_life_maybe_start();
    heap_mark(block, info.size);
    uint32_t site = w ? heap_fast_site(w, from, frame) : 0;
    uint64_t place = w ? producer_reserve(w) : PRODUCER_UNWATCHED;
    uint64_t turn = w ? producer_generation(w) : 0, ticket = block_ticket(turn, site, turn);
    if (place == PRODUCER_UNWATCHED)
        info.kind |= BLOCK_UNWATCHED;
    block_make_live(block, info, place, ticket);
    if (w)
        producer_commit(w, place, block_word(block, ticket));
    return block;
}

// Rounds up to the bin's room, as the block may end in the thread cache.
size_t heap_room_below(size_t room)
{
    return room <= THREAD_CACHE_LARGEST ? thread_cache_room(room) : room;
}

// Makes a fresh block of a span watched: writes its head, marked as freed, and puts its word.
static void make_known(struct producer *w, uint64_t word)
{
    const char *block = block_of_word(word);
    if (__builtin_expect(span_is_overwritten(block), 0) && heap_report_make_known(word))
        heap_report_unused_head(block, block_head_of(block_of_word(word)), span_before(block));
    uint64_t place = producer_reserve(w);
    foreign_mark(block);
    // The place as a reused block has it, so that the monitor knows its low bits: notices remove a span's
    // words, wherever these are.
    block_make_freed(block_of_word(word), place == PRODUCER_UNWATCHED ? place : w->id, word);
    producer_commit(w, place, word);
}

// Puts the whole thread cache back into spans, so that idle spans can serve other sizes.
static void make_room(struct producer *w)
{
    if (!span_should_reclaim(thread_cache_bytes(&w->cache)))
        return;
    empty_bins(w, THREAD_CACHE_FINE_BINS);
    for (struct span *s; (s = span_take_out());)
        retire_span(w, s);
}

// Returns how many blocks to take. Few at first, as many threads need few blocks of a size.
static size_t fill_of(struct producer *w, const struct thread_cache_bin *b, size_t number)
{
    size_t most = 1 + FILL_BYTES / thread_cache_fine_room(number), room = (size_t)(b->end - b->top);
    if (w->filled[number] < FILL_MOST)
        w->filled[number] += FILL_STEP;
    most = most < room ? most : room;
    return w->filled[number] < most ? w->filled[number] : most;
}

// Fills an empty bin from spans, a few blocks at a time.
static bool fill_from_spans(struct producer *w, struct thread_cache_bin *b)
{
    uint64_t words[FILL_MOST];
    size_t number = (size_t)(b - w->cache.bins);
    bool fresh;
    if (number >= THREAD_CACHE_FINE_BINS)
        return false;
    if (__builtin_expect(atomic_load_explicit(&heap_life_unmonitored, memory_order_relaxed), 0))
        heap_life_maybe_start();
    size_t most = fill_of(w, b, number), n = span_take(number, words, most, false, &fresh);
    if (!n) {
        make_room(w);
        n = span_take(number, words, most, true, &fresh);
    }
    for (size_t i = 0; fresh && i < n; i++)
        make_known(w, words[i]);
    // Reversed, so that the lowest block is used next. A signal handler may have filled the bin meanwhile.
    while (n && !thread_cache_is_full(b))
        thread_cache_put(b, words[--n]);
    put_into_spans(w, words, n);
    return !thread_cache_is_empty(b);
}

uint64_t heap_take(struct producer *w, size_t room)
{
    if (room > THREAD_CACHE_LARGEST)
        return 0;
    struct thread_cache_bin *b = &w->cache.bins[thread_cache_number(room)];
    return thread_cache_is_empty(b) && !thread_cache_refill(&w->cache, b) && !fill_from_spans(w, b)
               ? 0
               : thread_cache_take(b);
}

static void *alloc_from_cache(struct producer *w, const void *from, const void *frame, size_t size,
                              enum block_kind kind)
{
    uint32_t site = heap_fast_site(w, from, frame);
    uint64_t word = heap_take(w, size);
    return word ? heap_fast_reuse(w, word, (struct block_info){size, BLOCK_LEAD_LOG2, kind, 0}, site) : NULL;
}

static void *alloc_aligned(struct producer *w, const void *from, const void *frame, size_t size, size_t align,
                           enum block_kind kind)
{
    size_t lead = align > BLOCK_HEAD ? align : BLOCK_HEAD, total;
    void *base;
    if (__builtin_add_overflow(heap_room_below(size), lead + BLOCK_TAIL, &total) || total > HEAP_LARGEST ||
        next_malloc.posix_memalign(&base, align, total))
        return heap_no_memory();
    return heap_make_block(w, from, frame, base,
                           (struct block_info){size, (unsigned)__builtin_ctzll(lead), kind, 0});
}

static __attribute__((noinline)) void *alloc_early(size_t size, size_t align)
{
    char *p = align <= BLOCK_ALIGN ? next_malloc_early(size) : next_malloc_early(size + align);
    return p && align > BLOCK_ALIGN ? p + (-(uintptr_t)p & (align - 1)) : p ? p : heap_no_memory();
}

void *heap_alloc(const void *from, const void *frame, size_t size, size_t align, enum block_kind kind)
{
    struct producer *w = heap_join();
    if (__builtin_expect(!w && !heap_life_ready(), 0))
        return alloc_early(size, align);
    if (__builtin_expect(align > BLOCK_ALIGN, 0))
        return alloc_aligned(w, from, frame, size, align, kind);
    // Not only an empty bin leads here: large sizes and calls with an alignment have not tried the cache yet.
    void *block = size <= THREAD_CACHE_LARGEST && w ? alloc_from_cache(w, from, frame, size, kind) : NULL;
    if (block)
        return block;
    char *base =
        size <= HEAP_LARGEST ? next_malloc.malloc(heap_room_below(size) + BLOCK_HEAD + BLOCK_TAIL) : NULL;
    if (__builtin_expect(!base, 0))
        return heap_no_memory();
    return heap_make_block(w, from, frame, base, (struct block_info){size, BLOCK_LEAD_LOG2, kind, 0});
}

void *heap_calloc(const void *from, const void *frame, size_t bytes)
{
    struct producer *w = heap_join();
    if (__builtin_expect(!w && !heap_life_ready(), 0))
        return alloc_early(bytes, 0);
    void *block =
        bytes <= THREAD_CACHE_LARGEST && w ? alloc_from_cache(w, from, frame, bytes, BLOCK_CALLOC) : NULL;
    if (block)
        return memset(block, 0, bytes);
    char *base = bytes <= HEAP_LARGEST
                     ? next_malloc.calloc(1, heap_room_below(bytes) + BLOCK_HEAD + BLOCK_TAIL)
                     : NULL;
    if (!base)
        return heap_no_memory();
    return heap_make_block(w, from, frame, base,
                           (struct block_info){bytes, BLOCK_LEAD_LOG2, BLOCK_CALLOC, 0});
}

// --- freeing ---

static void *base_of(void *block, struct block_info info)
{
    return (char *)block - ((size_t)1 << info.lead_log2);
}

void heap_give_back(struct producer *w, void *p, struct block_info info)
{
    struct block_head *h = block_head_of(p);
    uint64_t word = block_word(p, h->ticket);
    if (span_has(p)) {
        put_into_spans(w, &word, 1);
    } else if (info.kind & BLOCK_UNWATCHED || producer_remove(w, h->place, word)) {
        unmapped_note(p, *h, block_freed_at(p, h));
        next_malloc.free(base_of(p, info));
    }
}

void heap_put_into_bin(struct producer *w, void *p, struct thread_cache_bin *b)
{
    if (thread_cache_is_full(b) && !thread_cache_make_room(&w->cache, b)) {
        empty_bin(w, b, thread_cache_older(b));
        thread_cache_drop_older(b);
    }
    thread_cache_put(b, block_word(p, block_head_of(p)->ticket));
}

// Returns whether the thread cache takes such blocks.
static bool is_for_cache(struct block_info info)
{
    return heap_fast_is_small(info) && info.lead_log2 == BLOCK_LEAD_LOG2 && !(info.kind & BLOCK_UNWATCHED);
}

void heap_put_away(struct producer *w, void *p, struct block_info info)
{
    if (is_for_cache(info))
        heap_put_into_bin(w, p, &w->cache.bins[thread_cache_number(heap_fast_room(info))]);
    else
        heap_give_back(w, p, info);
}

// Reports a damaged tail and restores it, so that later damage is reported separately.
static void report_tail(void *p, struct block_head *h, const char *name)
{
    struct block_info info = block_info_of(p, h);
    uint64_t sound = block_tail_canary(h->canary);
    char tail[BLOCK_TAIL_MOST];
    memcpy(tail, (char *)p + info.size, block_tail_bytes(info.size, info.step));
    if (block_tail_is_wide(info.size, info.step))
        block_fill_slack(p, info.size);
    memcpy((char *)p + info.size, &sound, sizeof sound);
    if (heap_report_make_known(block_name(p, h->ticket)))
        heap_report_tail(p, h, tail, name);
}

// Returns whether operator new is ours: a program with an operator new of its own, over malloc, may leave
// delete to us.
static bool has_our_new(void)
{
    Dl_info ours, found;
    void *symbol = dlsym(RTLD_DEFAULT, "_Znwm");
    return symbol && dladdr(symbol, &found) && dladdr(&heap_settings, &ours) &&
           found.dli_fbase == ours.dli_fbase;
}

void heap_check_block(struct producer *w, const void *from, const void *frame, void *p,
                      enum block_kind family, const char *name)
{
    struct block_head *h = block_head_of(p);
    struct block_info info = block_info_of(p, h);
    if (!block_tail_intact(p, info.size, info.step, h->canary))
        report_tail(p, h, name);
    if ((info.kind & BLOCK_FAMILY) != (unsigned)family && has_our_new())
        heap_report_mismatch(p, h, name, heap_fast_site(w, from, frame));
}

void heap_free_ours(struct producer *w, void *p, struct block_info info, uint32_t site)
{
    if (heap_settings.lazy && heap_quarantine_admits(info.size, heap_settings.quarantine_bytes)) {
        size_t room = heap_fast_room(info);
        if (is_for_cache(info) && room <= THREAD_CACHE_FINE)
            heap_lazy_free_lane(w, p, info.size, thread_cache_fine_number(room), site);
        else
            heap_lazy_free_queue(w, p, block_pack(info), site);
        return;
    }
    block_mark_freed(p, site);
    heap_put_away(w, p, info);
}

static __attribute__((noinline)) void free_strange(struct producer *w, const void *from, const void *frame,
                                                   void *p, const char *name)
{
    if (next_malloc_is_early(p))
        return;
    if (foreign_judge(p, name, heap_fast_site(w, from, frame)))
        next_malloc.free(p);
}

bool heap_is_unmapped(struct producer *w, const void *from, const void *frame, void *p, const char *name)
{
    struct block_head head;
    if (!unmapped_may_be(p) || !unmapped_is(p, &head))
        return false;
    heap_report_unmapped_free(p, &head, name, heap_fast_site(w, from, frame));
    return true;
}

// Frees without a record for the thread, which could not be made. A watched block is only marked as freed and
// stays allocated, as its word cannot be removed.
void heap_free_without_record(void *p)
{
    if (!heap_life_ready() || next_malloc_is_early(p))
        return;
    struct block_head *h = block_head_of(p);
    if (span_has(p) && !block_is_live(p, h))
        return;
    if (!foreign_may_be_any(p) || !block_is_live(p, h))
        next_malloc.free(p);
    else if (h->place == PRODUCER_UNWATCHED)
        next_malloc.free(base_of(p, block_info_of(p, h)));
    else
        block_mark_freed(p, 0);
}

void heap_free(const void *from, const void *frame, void *p, enum block_kind family, const char *name)
{
    if (!p)
        return;
    struct producer *w = heap_join();
    if (__builtin_expect(!w, 0)) {
        heap_free_without_record(p);
    } else if (heap_is_unmapped(w, from, frame, p, name)) {
        return;
    } else if (__builtin_expect(foreign_may_be_any(p) && block_is_live(p, block_head_of(p)), 1)) {
        struct block_info info = block_info_of(p, block_head_of(p));
        if (__builtin_expect(!heap_fast_sound(p, block_head_of(p), info, family), 0))
            heap_check_block(w, from, frame, p, family, name);
        heap_free_ours(w, p, info, heap_fast_site(w, from, frame));
    } else {
        free_strange(w, from, frame, p, name);
    }
}

void heap_thread_ends(struct producer *w)
{
    heap_lazy_free_end(w);
    empty_bins(w, THREAD_CACHE_BINS);
    thread_cache_forget(&w->cache);
    heap_producer = NULL;
    producer_retire(w);
}

size_t heap_usable(void *p)
{
    if (!p)
        return 0;
    if (next_malloc_is_early(p))
        return next_malloc_early_size(p);
    if (foreign_may_be_any(p) && block_is_live(p, block_head_of(p)))
        return block_info_of(p, block_head_of(p)).size;
    return next_malloc.malloc_usable_size ? next_malloc.malloc_usable_size(p) : 0;
}
