// SPDX-License-Identifier: MIT
// In-kernel malloc and free: a heap for each context, whose size is the context's limit at the first use.
// Kernels can write all of the heap, as on a GPU; so no metadata are kept in it.
//
//   pages   ── of the heap, taken in runs (heap_pages.c): a span, or one block of more than SMALL bytes
//   span    ── pages that are cut into blocks of one class; one bit for each block says whether it is in use
//   shard   ── spans under one lock. A thread allocates from one shard until that needs pages, then from
//              another, so that threads which free blocks of others seldom meet; it frees into the shard of
//              the block
//
// The mallocs of a warp are served together under one lock, and so are its frees of blocks of one shard.
//
// The tag of a page defines the meaning of a free in it: none, the start of a large block, or a span with its
// shard and class. So a free is validated without reading memory that a kernel could have written.
#include <assert.h>
#include <sched.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/heap_pages.h"
#include "cpu/memory.h"

enum {
    GRANULE = 16,
    SMALL = 8192,  // size of the largest class
    SHORT_SPAN = 4,
    LONG_SPAN = 16,  // pages, for classes above SHORT_SPAN_MOST
    SHORT_SPAN_MOST = 1024,
    WORDS = HEAP_PAGE / GRANULE / 64,  // of bits for each page
    MOST_SHARDS = 32,
    PAGES_PER_SHARD = 128,
    MOST_LOOKS = 200,
    NEXT_SHARD = 7,  // step from a thread's shard to its next: odd, so that it reaches all
};

#define SPAN_PAGES(size) ((size) <= SHORT_SPAN_MOST ? SHORT_SPAN : LONG_SPAN)
#define CLASS(size)                                                                            \
    {                                                                                          \
        size, SPAN_PAGES(size), SPAN_PAGES(size) * HEAP_PAGE / (size), UINT32_MAX / (size) + 1 \
    }
// Size classes: powers of two, and one between each and the next.
static const struct class
{
    uint16_t size, pages, blocks;  // bytes of a block; of a span
    uint32_t inverse;  // 2^32 / size, rounded up: the product is the exact quotient for offsets in a span
} classes[] = {
    CLASS(16),   CLASS(32),   CLASS(48),   CLASS(64),   CLASS(96),   CLASS(128),
    CLASS(192),  CLASS(256),  CLASS(384),  CLASS(512),  CLASS(768),  CLASS(1024),
    CLASS(1536), CLASS(2048), CLASS(3072), CLASS(4096), CLASS(6144), CLASS(8192),
};
enum { CLASSES = sizeof classes / sizeof *classes };

// Bits of a tag: the kind; for a span also its class, its shard, and the number of its pages before this one.
enum { TAG_LARGE = 1, TAG_SPAN = 2, TAG_CLASS = 2, TAG_SHARD = 8, TAG_BACK = 16 };

#define FOR_LANES(lanes)                                                                       \
    for (uint32_t left_ = (lanes), l = 0; left_ && (l = (uint32_t)__builtin_ctz(left_), true); \
         left_ &= left_ - 1)

struct shard {
    atomic_bool lock;                // rank: outside the pages' lock
    struct heap_list room[CLASSES];  // spans with a free block
    uint32_t spans;                  // that were ever added
    char apart[64];                  // padding to the next cache line
};

//   a bit is set <=> its block is in use; used of a span == number of its set bits
//   a span is in its shard's list <=> used < blocks of its class
//   words of bits before the span's hint are full
struct memory_heap {
    uint64_t base, size;
    struct heap_pages pages;
    uint64_t *bits;  // WORDS for each page
    struct memory_range *piece;
    int device;
    struct shard *shards;
    uint32_t shard_mask;
};

static struct memory_slabs slabs[CONFIG_DEVICES] = {
    [0 ... CONFIG_DEVICES - 1] = {.granule = MEMORY_UNIT, .chunk = MEMORY_UNIT},
};
static pthread_mutex_t make_lock = PTHREAD_MUTEX_INITIALIZER;  // rank: outside memory_lock

// --- classes -----------------------------------------------------------------------------------------------

static unsigned class_of(uint64_t size)
{
    unsigned n = (unsigned)(size + GRANULE - 1) / GRANULE;
    if (n == 1)
        return 0;
    unsigned b = 31 - (unsigned)__builtin_clz(n - 1);  // n is in (2^b, 2^(b+1)]
    return 2 * b + (2 * n > 3u << b);
}

// A spin lock, held for less time than a sleep takes; a waiting thread yields now and then.
static void shard_lock(struct shard *s)
{
    // Pairs with shard_unlock.
    for (unsigned n = 1; atomic_exchange_explicit(&s->lock, true, memory_order_acquire); n++) {
        if (n % MOST_LOOKS)
            __builtin_ia32_pause();
        else
            sched_yield();
    }
}

static void shard_unlock(struct shard *s)
{
    atomic_store_explicit(&s->lock, false, memory_order_release);
}

// --- spans: all under the lock of their shard --------------------------------------------------------------

static uint32_t span_tag(const struct memory_heap *h, const struct shard *s, unsigned class)
{
    return TAG_SPAN | class << TAG_CLASS | (uint32_t)(s - h->shards) << TAG_SHARD;
}

static void set_tag(struct memory_heap *h, uint32_t page, uint32_t tag)
{
    if (!tag)
        h->pages.page[page].last = h->pages.page[page].tag;
    // Pairs with the load in free_block.
    atomic_store_explicit(&h->pages.page[page].tag, tag, memory_order_release);
}

static bool add_span(struct memory_heap *h, struct shard *s, unsigned class)
{
    uint32_t n = classes[class].pages, first = heap_pages_take(&h->pages, n);
    if (first == HEAP_NO_PAGE)
        return false;
    h->pages.page[first].used = h->pages.page[first].hint = 0;
    for (uint32_t i = 0; i < n; i++)
        set_tag(h, first + i, span_tag(h, s, class) | i << TAG_BACK);
    heap_list_push(&h->pages, &s->room[class], first);
    s->spans++;
    return true;
}

static void remove_span(struct memory_heap *h, struct shard *s, unsigned class, uint32_t first)
{
    assert(!h->pages.page[first].used);
    heap_list_remove(&h->pages, &s->room[class], first);
    for (uint32_t i = 0; i < classes[class].pages; i++)
        set_tag(h, first + i, 0);
    heap_pages_give(&h->pages, first);
}

static uint64_t take_block(struct memory_heap *h, struct shard *s, unsigned class)
{
    uint32_t first = s->room[class].first - 1, word;
    struct heap_page *span = &h->pages.page[first];
    uint64_t *bits = h->bits + (uint64_t)first * WORDS;
    for (word = span->hint; !~bits[word];)
        word++;
    uint32_t bit = (uint32_t)__builtin_ctzll(~bits[word]);
    bits[word] |= (uint64_t)1 << bit;
    span->hint = (uint16_t)word;
    if (++span->used == classes[class].blocks)
        heap_list_remove(&h->pages, &s->room[class], first);
    return h->base + (uint64_t)first * HEAP_PAGE + (word * 64 + bit) * classes[class].size;
}

// Frees the block at offset from the start of its span. Returns false if the block is not in use. An empty
// span is removed unless it is the shard's last one with room: otherwise a program that allocates and frees
// one block at a time would make and remove it each time.
static bool give_block(struct memory_heap *h, struct shard *s, unsigned class, uint32_t first,
                       uint32_t offset)
{
    struct heap_page *span = &h->pages.page[first];
    uint32_t i = (uint32_t)((uint64_t)offset * classes[class].inverse >> 32), word = i / 64;
    uint64_t *bits = h->bits + (uint64_t)first * WORDS, mask = (uint64_t)1 << i % 64;
    if (i * classes[class].size != offset || !(bits[word] & mask))
        return false;
    bits[word] &= ~mask;
    if (word < span->hint)
        span->hint = (uint16_t)word;
    if (span->used-- == classes[class].blocks)
        heap_list_push(&h->pages, &s->room[class], first);
    else if (!span->used && (span->next || span->prev))
        remove_span(h, s, class, first);
    return true;
}

// --- allocation --------------------------------------------------------------------------------------------

static _Thread_local uint32_t mine;  // shard to allocate from, modulo their number; from 1

static struct shard *own_shard(struct memory_heap *h)
{
    static _Atomic uint32_t threads;
    if (!mine)
        mine = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    return &h->shards[mine & h->shard_mask];
}

// Allocates a block of a class. more: may take pages for a new span. The lock must be held.
static uint64_t small(struct memory_heap *h, struct shard *s, unsigned class, bool more)
{
    return s->room[class].first || (more && add_span(h, s, class)) ? take_block(h, s, class) : 0;
}

static uint64_t large(struct memory_heap *h, uint64_t size)
{
    if (size > h->size)
        return 0;
    uint32_t first = heap_pages_take(&h->pages, (uint32_t)((size + HEAP_PAGE - 1) >> HEAP_PAGE_BITS));
    if (first == HEAP_NO_PAGE)
        return 0;
    set_tag(h, first, TAG_LARGE);
    return h->base + (uint64_t)first * HEAP_PAGE;
}

static uint64_t small_of(struct memory_heap *h, struct shard *s, unsigned class, bool more)
{
    shard_lock(s);
    uint64_t at = small(h, s, class, more);
    shard_unlock(s);
    return at;
}

// Each class has at most one empty span: see give_block.
static void remove_empty_spans(struct memory_heap *h, struct shard *s)
{
    shard_lock(s);
    for (unsigned class = 0; class < CLASSES; class ++) {
        for (uint32_t i = s->room[class].first, next; i; i = next) {
            next = h->pages.page[i - 1].next;
            if (!h->pages.page[i - 1].used)
                remove_span(h, s, class, i - 1);
        }
    }
    shard_unlock(s);
}

// Allocates when no pages are left for a new span: frees empty spans, then tries other shards, larger
// classes, and finally whole pages.
static uint64_t alloc_when_full(struct memory_heap *h, struct shard *s, uint64_t size)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i <= h->shard_mask; i++)
        remove_empty_spans(h, &h->shards[i]);
    if (size <= SMALL) {
        at = small_of(h, s, class_of(size), true);
        for (unsigned class = class_of(size); !at && class < CLASSES; class ++) {
            for (uint32_t i = 0; !at && i <= h->shard_mask; i++)
                at = small_of(h, &h->shards[i], class, false);
        }
    }
    return at ? at : large(h, size);
}

// --- the heap of a context ---------------------------------------------------------------------------------

static void unmake(struct memory_heap *h)
{
    if (h->piece) {
        mutex_lock(&memory_lock);
        memory_slab_give(memory_slab_of(slabs, h->device), h->piece);
        mutex_unlock(&memory_lock);
    }
    heap_pages_free(&h->pages);
    mem_free(h->shards);
    mem_free(h->bits);
    mem_free(h);
}

static struct memory_heap *make(int device, uint64_t size)
{
    struct memory_heap *h = mem_zalloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->device = device;
    mutex_lock(&memory_lock);
    h->piece = memory_slab_take(memory_slab_of(slabs, device), size, MEMORY_UNIT);
    mutex_unlock(&memory_lock);
    if (!h->piece || h->piece->size / HEAP_PAGE >= HEAP_NO_PAGE) {
        unmake(h);
        return NULL;
    }
    h->base = h->piece->base;
    h->size = h->piece->size;
    uint32_t count = (uint32_t)(h->size / HEAP_PAGE), shards = MOST_SHARDS;
    while (shards > 1 && count / shards < PAGES_PER_SHARD)
        shards /= 2;
    h->bits = mem_zalloc(count, WORDS * sizeof *h->bits);
    h->shards = mem_zalloc(shards, sizeof *h->shards);
    h->shard_mask = shards - 1;
    if (heap_pages_init(&h->pages, count) || !h->bits || !h->shards) {
        unmake(h);
        return NULL;
    }
    return h;
}

static struct memory_heap *make_once(struct CUctx_st *ctx)
{
    uint64_t size = cpu_context_limit_now(ctx, CU_LIMIT_MALLOC_HEAP_SIZE);
    mutex_lock(&make_lock);
    struct memory_heap *h = atomic_load_explicit(&ctx->heap, memory_order_relaxed);
    if (!h && size) {
        h = make(ctx->device, size);
        atomic_store_explicit(&ctx->heap, h, memory_order_release);  // pairs with heap_of
    }
    mutex_unlock(&make_lock);
    return h;
}

static struct memory_heap *heap_of(struct CUctx_st *ctx)
{
    return atomic_load_explicit(&ctx->heap, memory_order_acquire);  // pairs with make_once
}

void memory_heap_alloc(struct CUctx_st *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at)
{
    uint32_t left = 0;
    FOR_LANES(lanes)
    {
        at[l] = 0;
        left |= (uint32_t)(sizes[l] != 0) << l;
    }
    struct memory_heap *h = heap_of(ctx);
    if (!left || (!h && !(h = make_once(ctx))))
        return;
    struct shard *s = own_shard(h);
    shard_lock(s);
    uint32_t spans = s->spans;
    FOR_LANES(left)
    {
        at[l] = sizes[l] <= SMALL ? small(h, s, class_of(sizes[l]), true) : large(h, sizes[l]);
    }
    mine += s->spans != spans ? NEXT_SHARD : 0;
    shard_unlock(s);
    FOR_LANES(left)
    {
        if (!at[l])
            at[l] = alloc_when_full(h, s, sizes[l]);
    }
}

enum freed { FREED, NO_BLOCK, ANOTHER_SHARD };

// Frees the block at addr. *held: the shard whose lock is held, or NULL; for a small block *held is its shard
// afterwards.
static enum freed free_block(struct memory_heap *h, uint64_t addr, struct shard **held)
{
    if (addr - h->base >= h->size)
        return NO_BLOCK;
    uint32_t page = (uint32_t)((addr - h->base) / HEAP_PAGE);
    _Atomic uint32_t *where = &h->pages.page[page].tag;
    for (;;) {
        uint32_t tag = atomic_load_explicit(where, memory_order_acquire);  // pairs with set_tag
        if (tag == TAG_LARGE && addr % HEAP_PAGE == 0) {
            // Exactly one of several threads that free the block succeeds.
            if (!atomic_compare_exchange_strong(where, &tag, 0))
                continue;
            h->pages.page[page].last = TAG_LARGE;
            heap_pages_give(&h->pages, page);
            return FREED;
        }
        if (!(tag & TAG_SPAN))
            return NO_BLOCK;
        struct shard *s = &h->shards[tag >> TAG_SHARD & 0xff];
        if (!*held) {
            shard_lock(s);
            *held = s;
            continue;
        }
        if (*held != s)
            return ANOTHER_SHARD;
        uint32_t first = page - (tag >> TAG_BACK);
        uint64_t offset = addr - h->base - (uint64_t)first * HEAP_PAGE;
        return give_block(h, s, tag >> TAG_CLASS & 0x3f, first, (uint32_t)offset) ? FREED : NO_BLOCK;
    }
}

uint32_t memory_heap_free(struct CUctx_st *ctx, uint32_t lanes, const uint64_t *at)
{
    struct memory_heap *h = heap_of(ctx);
    uint32_t bad = 0, later;
    for (uint32_t left = lanes; left; left = later) {
        struct shard *held = NULL;
        later = 0;
        FOR_LANES(left)
        {
            enum freed f = !at[l] ? FREED : h ? free_block(h, at[l], &held) : NO_BLOCK;
            bad |= (uint32_t)(f == NO_BLOCK) << l;
            later |= (uint32_t)(f == ANOTHER_SHARD) << l;
        }
        if (held)
            shard_unlock(held);
    }
    return bad;
}

bool memory_heap_was_block(struct CUctx_st *ctx, uint64_t at)
{
    struct memory_heap *h = heap_of(ctx);
    if (!h || at - h->base >= h->size)
        return false;
    uint32_t page = (uint32_t)((at - h->base) / HEAP_PAGE);
    uint32_t tag = h->pages.page[page].tag;
    tag = tag ? tag : h->pages.page[page].last;
    if (tag == TAG_LARGE)
        return at % HEAP_PAGE == 0;
    if (!(tag & TAG_SPAN))
        return false;
    uint32_t first = page - (tag >> TAG_BACK);
    return (at - h->base - (uint64_t)first * HEAP_PAGE) % classes[tag >> TAG_CLASS & 0x3f].size == 0;
}

void memory_heap_context_free(struct CUctx_st *ctx)
{
    struct memory_heap *h = atomic_exchange(&ctx->heap, NULL);
    if (h)
        unmake(h);
}

// --- for tests ---------------------------------------------------------------------------------------------

static bool span_valid(const struct memory_heap *h, uint32_t first)
{
    const struct heap_page *span = &h->pages.page[first];
    uint32_t tag = span->tag, used = 0;
    unsigned class = tag >> TAG_CLASS & 0x3f;
    if (class >= CLASSES || span->taken != classes[class].pages || span->used > classes[class].blocks)
        return false;
    for (uint32_t i = 0; i < span->taken; i++) {
        if (span[i].tag != (tag | i << TAG_BACK))
            return false;
    }
    const uint64_t *bits = h->bits + (uint64_t)first * WORDS;
    for (uint32_t i = 0; i < classes[class].blocks; i++) {
        bool set = bits[i / 64] >> i % 64 & 1;
        if (!set && i / 64 < span->hint)
            return false;
        used += set;
    }
    bool in_list = false;
    const struct shard *s = &h->shards[tag >> TAG_SHARD & 0xff];
    for (uint32_t i = s->room[class].first; i; i = h->pages.page[i - 1].next)
        in_list |= i - 1 == first;
    return used == span->used && in_list == (used < classes[class].blocks);
}

bool memory_heap_valid(struct CUctx_st *ctx)
{
    struct memory_heap *h = heap_of(ctx);
    if (!h)
        return true;
    uint64_t set = 0, used = 0;
    bool valid = heap_pages_valid(&h->pages);
    for (uint64_t i = 0; i < (uint64_t)h->pages.count * WORDS; i++)
        set += (uint64_t)__builtin_popcountll(h->bits[i]);
    for (uint32_t i = 0; valid && i < h->pages.count;) {
        const struct heap_page *at = &h->pages.page[i];
        bool span = at->tag & TAG_SPAN;
        valid = span ? span_valid(h, i) : at->tag == (at->free ? 0 : TAG_LARGE);
        used += span ? at->used : 0;
        i += at->free ? at->free : at->taken;
    }
    return valid && used == set;
}

bool memory_heap_place(struct CUctx_st *ctx, uint64_t *base, uint64_t *size)
{
    // Pairs with make_once.
    const struct memory_heap *h = atomic_load_explicit(&ctx->heap, memory_order_acquire);
    if (!h)
        return false;
    *base = h->base;
    *size = h->size;
    return true;
}
