// SPDX-License-Identifier: MIT
// The fast paths of allocation and free, inline in the functions that programs call: a block of the thread
// cache (thread_cache.h) gets a new head and tail, or is checked and put there. All other cases are left to
// heap.c and heap_resize.c, by tail calls, so that no registers need saving.
#ifndef MOAT_HEAP_FAST_H
#define MOAT_HEAP_FAST_H

#include "heap/block.h"
#include "heap/foreign.h"
#include "heap/heap.h"
#include "heap/heap_lazy_free.h"
#include "heap/thread_cache.h"
#include "heap/producer.h"

// Initial-exec: accesses of the dynamic model may allocate.
extern
    __attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread struct producer *heap_producer;

uint32_t heap_find_site(struct producer *w, const void *from, const void *frame, uint64_t hash);

static inline __attribute__((always_inline)) uint64_t heap_fast_hash(const void *from, const void *frame)
{
    return ((uint64_t)(uintptr_t)from ^ (uint64_t)(uintptr_t)frame << 16) * 0x9e3779b97f4a7c15u;
}

// Returns whether the thread knows the call's site; if not, heap_find_site finds it.
static inline __attribute__((always_inline)) bool heap_fast_is_known(const struct producer *w, uint64_t hash,
                                                                     uint32_t *site)
{
    uint64_t entry = w->callers[hash >> (64 - PRODUCER_CALLERS_LOG2)];
    *site = entry & BLOCK_SITE_MASK;
    return __builtin_expect((entry ^ hash) >> BLOCK_SITE_BITS == 0, 1);
}

// Returns the call's site. To be called before the thread cache is touched: finding a site may allocate.
static inline __attribute__((always_inline)) uint32_t heap_fast_site(struct producer *w, const void *from,
                                                                     const void *frame)
{
    uint64_t hash = heap_fast_hash(from, frame);
    uint32_t site;
    return heap_fast_is_known(w, hash, &site) ? site : heap_find_site(w, from, frame, hash);
}

// Makes a block of the thread cache live. Its generation comes from the word in the cache, as nothing in the
// old head can be trusted.
static inline __attribute__((always_inline)) void *heap_fast_reuse(struct producer *w, uint64_t word,
                                                                   struct block_info info, uint32_t site)
{
    char *block = block_of_word(word);
    uint64_t ticket = block_ticket(block_generation_of_word(word), site, producer_generation(w));
    block_make_live_as(block, info, w->id, ticket, true);
    return block;
}

static inline __attribute__((always_inline)) void *heap_fast_alloc(const void *from, const void *frame,
                                                                   size_t size, enum block_kind kind)
{
    struct producer *w = heap_producer;
    if (__builtin_expect(w && size <= THREAD_CACHE_FINE, 1)) {
        uint32_t site;
        uint64_t word;
        if (__builtin_expect(heap_fast_is_known(w, heap_fast_hash(from, frame), &site) &&
                                 (word = thread_cache_take(&w->cache.bins[thread_cache_fine_number(size)])),
                             1))
            return heap_fast_reuse(w, word, (struct block_info){size, BLOCK_LEAD_LOG2, kind, 0}, site);
    }
    return heap_alloc(from, frame, size, 0, kind);
}

// Returns the bytes that a block has room for, at least.
static inline size_t heap_fast_room(struct block_info info)
{
    return info.step                           ? block_room(info.step)
           : info.size <= THREAD_CACHE_LARGEST ? thread_cache_room(info.size)
                                               : info.size;
}

// Returns whether the thread cache has a bin for the block's room.
static inline bool heap_fast_is_small(struct block_info info)
{
    return heap_fast_room(info) <= THREAD_CACHE_LARGEST;
}

// Returns whether nothing is wrong with a live block that is passed to a call; heap_check_block reports what
// is.
static inline bool heap_fast_sound(const void *p, const struct block_head *h, struct block_info info,
                                   enum block_kind family)
{
    return block_tail_intact(p, info.size, info.step, h->canary) &&
           (info.kind & BLOCK_FAMILY) == (unsigned)family;
}

// Returns whether a block is of the common case: live, intact, of a fine bin's size and the call's family,
// watched, and freed from a site that the thread knows.
static inline __attribute__((always_inline)) bool heap_fast_is_usual(struct producer *w, const void *from,
                                                                     const void *frame, void *p,
                                                                     enum block_kind family, uint64_t *size,
                                                                     uint32_t *site)
{
    if (__builtin_expect(!w || !foreign_may_be_ours(p), 0))
        return false;
    struct block_head *h = block_head_of(p);
    uint64_t canary = h->canary, packed = block_packed(p, h);
    // A block of another family, lead or step, or one that is unwatched, has bits above those of a size.
    *size = (packed ^ block_pack((struct block_info){0, BLOCK_LEAD_LOG2, family, 0})) & ~BLOCK_SMALL_KINDS;
    return *size <= THREAD_CACHE_FINE && heap_fast_is_known(w, heap_fast_hash(from, frame), site) &&
           block_is_live(p, h) && block_tail_intact(p, *size, 0, canary);
}

// `family`: that of the call, as in enum block_kind.
static inline __attribute__((always_inline)) void heap_fast_free(const void *from, const void *frame, void *p,
                                                                 enum block_kind family, const char *name)
{
    struct producer *w = heap_producer;
    uint64_t size;
    uint32_t site;
    if (__builtin_expect(heap_fast_is_usual(w, from, frame, p, family, &size, &site), 1)) {
        struct thread_cache_bin *b = &w->cache.bins[thread_cache_fine_number(size)];
        if (__builtin_expect(heap_settings.lazy, 0)) {
            heap_lazy_free_lane(w, p, size, thread_cache_fine_number(size), site);
            return;
        }
        if (__builtin_expect(!thread_cache_is_full(b), 1)) {
            block_mark_freed(p, site);
            thread_cache_put(b, block_word(p, block_head_of(p)->ticket));
            return;
        }
    }
    heap_free(from, frame, p, family, name);
}

// --- resizing ---

enum { HEAP_FAST_SPARE = 48 };  // bytes that a block may keep above its need, however small it is

// Returns whether a block with this room can be resized in place without keeping too much memory.
static inline bool heap_fast_stays(size_t room, size_t old, size_t size)
{
    return size <= room && (size >= old || room / 2 <= size + HEAP_FAST_SPARE);
}

// Grows a block in place if it was resized before and has room. All other cases are left to heap_resize.c.
static inline __attribute__((always_inline)) void *heap_fast_realloc(const void *from, const void *frame,
                                                                     void *p, size_t size)
{
    struct producer *w = heap_producer;
    if (__builtin_expect(!w || !size || !foreign_may_be_ours(p), 0))
        return heap_realloc(from, frame, p, size);
    struct block_head head = *block_head_of(p);
    uint64_t constant = block_constant((uint64_t)(uintptr_t)p, head.place);
    uint64_t canary = block_canary(constant, head.size, head.ticket);
    if (__builtin_expect(head.canary != canary, 0))
        return heap_realloc(from, frame, p, size);
    // A block of another kind or lead has bits above those of a size. One without a step, which would have a
    // wide tail, has no room.
    uint64_t packed = block_packed(p, &head) ^ (uint64_t)BLOCK_REALLOC << BLOCK_KIND_SHIFT;
    uint64_t old = packed & ((1ull << BLOCK_STEP_SHIFT) - 1);
    uint32_t site;
    if (__builtin_expect(size < old || size > block_room(packed >> BLOCK_STEP_SHIFT) ||
                             !block_tail_intact(p, old, BLOCK_LAST_STEP, canary) ||
                             !heap_fast_is_known(w, heap_fast_hash(from, frame), &site),
                         0))
        return heap_resize(w, from, frame, p, size);
    block_change(p, head, constant, old ^ size, size, false, site, producer_generation(w));
    return p;
}

#endif
