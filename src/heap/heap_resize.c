// SPDX-License-Identifier: MIT
#include <string.h>

#include "heap/foreign.h"
#include "heap/unmapped.h"
#include "heap/heap.h"
#include "heap/heap_fast.h"
#include "heap/heap_report.h"
#include "heap/span.h"
#include "heap/next_malloc.h"

// STEP_BELOW is the last step that allocators do not serve by mmap, which is expensive: no block shall be
// mapped because of its spare room. From STEP_MAPPED on blocks are mapped anyway.
enum { STEP_PAGE = 1 << 12, STEP_BELOW = 3 << 15, STEP_MAPPED = 1 << 17 };

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static unsigned log2_of(size_t n)
{
    return 63 ^ (unsigned)__builtin_clzll(n);
}

// Returns the first step with room for n bytes, n > HEAP_FAST_SPARE; 0 if there is none.
static unsigned step_above(size_t n)
{
    unsigned log2 = log2_of(n - 1), step = n <= 3ull << (log2 - 1) ? 2 * log2 - 9 : 2 * log2 - 8;
    return step <= BLOCK_LAST_STEP ? step : 0;
}

// Returns the last step whose room is at most n bytes; 0 if there is none.
static unsigned step_below(size_t n)
{
    if (n < HEAP_FAST_SPARE)
        return 0;
    unsigned log2 = log2_of(n), step = n >= 3ull << (log2 - 1) ? 2 * log2 - 9 : 2 * log2 - 10;
    return step < BLOCK_LAST_STEP ? step : BLOCK_LAST_STEP;
}

// The target of a resize.
struct resize {
    struct block_info info;
    size_t room;    // bytes that the block shall have room for
    uint32_t site;  // of the call
};

// Returns whether to expect more growth: a block that realloc made grows again.
static bool grows_on(struct block_info info, size_t size)
{
    return size > info.size && (info.kind & (BLOCK_UNWATCHED - 1)) == BLOCK_REALLOC;
}

// Returns the step for a growing block: room for twice its size; for four times from a page on, as untouched
// pages cost nothing, but at most STEP_BELOW; for an eighth more from STEP_MAPPED on; none in between.
static unsigned step_for(size_t size)
{
    if (size < HEAP_FAST_SPARE)
        return step_above(size + HEAP_FAST_SPARE);
    if (size <= STEP_BELOW)
        return step_above(smaller(size < STEP_PAGE ? 2 * size : 4 * size, STEP_BELOW));
    return size < STEP_MAPPED ? 0 : step_above(size + size / 8);
}

static struct resize resize_to(struct block_info info, size_t size, uint32_t site)
{
    unsigned step = grows_on(info, size) ? step_for(size) : 0;
    struct resize to = {.info = {size, BLOCK_LEAD_LOG2, BLOCK_REALLOC, (uint16_t)step}, .site = site};
    to.room = heap_fast_room(to.info);
    return to;
}

// Allocates another block and copies the contents; NULL if out of memory.
static void *move_to_room(struct producer *w, const void *from, const void *frame, void *p, size_t old,
                          struct resize to)
{
    uint64_t word = heap_take(w, to.room);
    char *base = word ? NULL : next_malloc.malloc(heap_room_below(to.room) + BLOCK_HEAD + BLOCK_TAIL);
    if (!word && !base)
        return heap_no_memory();
    void *block =
        word ? heap_fast_reuse(w, word, to.info, to.site) : heap_make_block(w, from, frame, base, to.info);
    return memcpy(block, p, smaller(old, to.info.size));
}

static void *move(const void *from, const void *frame, void *p, size_t old, size_t size)
{
    void *to = heap_fast_alloc(from, frame, size, BLOCK_REALLOC);
    if (to)
        memcpy(to, p, smaller(old, size));
    return to;
}

// Resizes a block that only this thread knows: the next allocator may move it, and its word follows. Sets
// *known and returns NULL if the word has left the window; the block is then unchanged.
static void *resize_in_window(struct producer *w, void *p, struct block_info info, struct resize to,
                              bool *known)
{
    struct block_head *h = block_head_of(p);
    uint64_t place = h->place, generation = block_generation(h->ticket);
    uint64_t *word = producer_hold(w, place, block_word(p, h->ticket));
    *known = !word;
    if (!word)
        return NULL;
    struct block_head was = *h;
    block_mark_freed(p, to.site);
    char *base = next_malloc.realloc((char *)p - BLOCK_HEAD, to.room + BLOCK_HEAD + BLOCK_TAIL);
    void *block = base ? base + BLOCK_HEAD : p;
    if (block != p)
        unmapped_note(p, was, to.site);
    uint64_t ticket = block_ticket(generation, to.site, producer_generation(w));
    heap_mark(block, base ? to.info.size : info.size);
    block_make_live(block, base ? to.info : info, place, ticket);
    *word = block_word(block, ticket);
    producer_let_go(w);
    return base ? block : heap_no_memory();
}

// Ends the block and makes another one, which may lie at the same address.
static void *resize_below(struct producer *w, const void *from, const void *frame, void *p,
                          struct block_info info, struct resize to)
{
    struct block_head *h = block_head_of(p);
    uint64_t place = h->place, word = block_word(p, h->ticket);
    block_mark_freed(p, block_made_at(h->ticket));
    if (!producer_remove(w, place, word))
        return move(from, frame, p, info.size, to.info.size);
    struct block_head was = *h;
    char *below = (char *)p - BLOCK_HEAD,
         *base = next_malloc.realloc(below, to.room + BLOCK_HEAD + BLOCK_TAIL);
    if (base && base != below)
        unmapped_note(p, was, to.site);
    info.kind &= BLOCK_UNWATCHED - 1;
    void *block = heap_make_block(w, from, frame, base ? base : below, base ? to.info : info);
    return base ? block : heap_no_memory();
}

// Small blocks come from the thread cache and go there or into quarantine, unless they outgrow it.
static bool is_small(struct block_info info)
{
    return heap_fast_room(info) <= THREAD_CACHE_FINE;
}

// Returns whether the next allocator's realloc is to be used.
static bool is_for_below(const void *p, struct block_info info, struct resize to)
{
    if (to.room <= THREAD_CACHE_FINE || span_has(p))
        return false;
    return !is_small(info) || (!heap_settings.lazy && grows_on(info, to.info.size));
}

static void *move_ours(struct producer *w, const void *from, const void *frame, void *p,
                       struct block_info info, struct resize to)
{
    // A block that shrinks needs no more room than others of its size.
    void *block = to.info.size > info.size ? move_to_room(w, from, frame, p, info.size, to)
                                           : move(from, frame, p, info.size, to.info.size);
    if (block)
        heap_free_ours(w, p, info, to.site);
    return block;
}

// `packed`: what the block becomes.
static inline void *change(struct producer *w, void *p, struct block_head head, uint64_t packed,
                           uint32_t site)
{
    uint64_t constant = block_constant((uint64_t)(uintptr_t)p, head.place), size = packed & BLOCK_SIZE_MASK;
    bool wide = block_tail_is_wide(size, (unsigned)(packed >> BLOCK_STEP_SHIFT));
    block_change(p, head, constant, block_packed(p, &head) ^ packed, size, wide, site,
                 producer_generation(w));
    return p;
}

// Resizes in place. The block keeps its room, rounded down to a step.
static void *stay(struct producer *w, void *p, struct block_info info, struct resize to)
{
    to.info.step = info.step ? info.step : (uint16_t)step_below(heap_fast_room(info));
    if (block_room(to.info.step) <= thread_cache_room(to.info.size))
        to.info.step = 0;
    return change(w, p, *block_head_of(p), block_pack(to.info), to.site);
}

static __attribute__((noinline)) void *resize(struct producer *w, const void *from, const void *frame,
                                              void *p, size_t size)
{
    struct block_info info = block_info_of(p, block_head_of(p));
    if (__builtin_expect(!heap_fast_sound(p, block_head_of(p), info, BLOCK_MALLOC), 0))
        heap_check_block(w, from, frame, p, BLOCK_MALLOC, "realloc");
    if (size > HEAP_LARGEST)
        return heap_no_memory();
    struct resize to = resize_to(info, size, heap_fast_site(w, from, frame));
    if (block_is_plain(block_packed(p, block_head_of(p)), info.kind & BLOCK_FAMILY)) {
        if (heap_fast_stays(heap_fast_room(info), info.size, size))
            return stay(w, p, info, to);
        if (is_for_below(p, info, to)) {
            bool known;
            void *block = resize_in_window(w, p, info, to, &known);
            if (!known)
                return block;
            if (!is_small(info))
                return resize_below(w, from, frame, p, info, to);
        }
    }
    return move_ours(w, from, frame, p, info, to);
}

// Returns whether only the size of the block changes.
static bool stays_as_it_is(uint64_t packed, size_t size)
{
    size_t old = packed & BLOCK_SIZE_MASK, room = block_room((unsigned)(packed >> BLOCK_STEP_SHIFT));
    if (!block_is_plain(packed, BLOCK_MALLOC))
        return false;
    return room ? heap_fast_stays(room, old, size)
                : old <= THREAD_CACHE_LARGEST && size <= THREAD_CACHE_LARGEST &&
                      thread_cache_number(old) == thread_cache_number(size);
}

void *heap_resize(struct producer *w, const void *from, const void *frame, void *p, size_t size)
{
    struct block_head head = *block_head_of(p);
    uint64_t packed = block_packed(p, &head);
    uint32_t site;
    if (!stays_as_it_is(packed, size) ||
        !block_tail_intact(p, packed & BLOCK_SIZE_MASK, packed >> BLOCK_STEP_SHIFT, head.canary) ||
        !heap_fast_is_known(w, heap_fast_hash(from, frame), &site))
        return resize(w, from, frame, p, size);
    // The family is malloc's, so these bits can be replaced.
    uint64_t now = (packed & ~(BLOCK_SIZE_MASK | BLOCK_SMALL_KINDS)) |
                   (uint64_t)BLOCK_REALLOC << BLOCK_KIND_SHIFT | size;
    return change(w, p, head, now, site);
}

static void *realloc_strange(struct producer *w, const void *from, const void *frame, void *p, size_t size)
{
    if (next_malloc_is_early(p))
        return move(from, frame, p, next_malloc_early_size(p), size);
    if (!w || foreign_judge(p, "realloc", heap_fast_site(w, from, frame)))
        return next_malloc.realloc(p, size);
    return heap_no_memory();
}

static void *realloc_without_record(const void *from, const void *frame, void *p, size_t size)
{
    void *to = move(from, frame, p, block_info_of(p, block_head_of(p)).size, size);
    if (to)
        heap_free_without_record(p);
    return to;
}

void *heap_realloc(const void *from, const void *frame, void *p, size_t size)
{
    if (!p)
        return heap_fast_alloc(from, frame, size, BLOCK_REALLOC);
    if (!size) {
        heap_free(from, frame, p, BLOCK_MALLOC, "realloc");
        return NULL;
    }
    struct producer *w = heap_join();
    if (w && heap_is_unmapped(w, from, frame, p, "realloc"))
        return heap_no_memory();
    if (!foreign_may_be_any(p) || !block_is_live(p, block_head_of(p)))
        return realloc_strange(w, from, frame, p, size);
    if (!w)
        return realloc_without_record(from, frame, p, size);
    return heap_resize(w, from, frame, p, size);
}
