// SPDX-License-Identifier: MIT
#include "heap/heap.h"

#include <errno.h>
#include <string.h>

#include "heap/foreign.h"
#include "heap/heap_life.h"
#include "heap/heap_report.h"
#include "heap/site.h"
#include "heap/under.h"
#include "heap/writer.h"

#define LARGEST ((size_t)PTRDIFF_MAX - (1 << 20))
#define IN_PLACE_FROM 1024u  // larger blocks are resized below us, which may move pages instead of bytes

struct heap_settings heap_settings = {.lazy = false, .wait_bytes = 256 << 10};

// Initial-exec: the dynamic model's accesses allocate.
static __thread struct writer *self __attribute__((tls_model("initial-exec")));

struct writer *heap_self(void)
{
    return self;
}

static __attribute__((noinline)) struct writer *join(void)
{
    if (!heap_life_ready())
        return NULL;
    self = writer_new();
    if (self)
        heap_life_thread_starts(self);
    return self;
}

static inline struct writer *writer_here(void)
{
    struct writer *w = self;
    return __builtin_expect(w != NULL, 1) ? w : join();
}

static __attribute__((noinline)) uint32_t find_site(struct writer *w, const void *from, const void *frame,
                                                    struct writer_caller *last)
{
    last->from = from;
    last->frame = frame;
    return last->site = site_of(from, w->stack_top - (uintptr_t)frame, &w->unwound, writer_made(w));
}

// Loops allocate at one place, over and over.
static inline uint32_t site_here(struct writer *w, const void *from, const void *frame,
                                 struct writer_caller *last)
{
    return __builtin_expect(last->from == from && last->frame == frame, 1) ? last->site
                                                                           : find_site(w, from, frame, last);
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

// --- allocating ---

// A block in what came from below. Without a record for the thread it gets canaries all the same.
static inline __attribute__((always_inline)) void *
dress_here(struct writer *w, const void *from, const void *frame, char *base, struct block_info info)
{
    char *block = base + ((size_t)1 << info.lead_log2);
    foreign_mark(block);
    if (__builtin_expect(!w, 0)) {
        block_dress(block, info, WRITER_UNWATCHED, 0);
        return block;
    }
    uint32_t site = site_here(w, from, frame, &w->last_made);
    uint64_t place = writer_reserve(w);
    uint64_t ticket = block_ticket(writer_generation(w), site);
    block_dress(block, info, place, ticket);
    writer_commit(w, place, block_word(block, ticket));
    return block;
}

static __attribute__((noinline)) void *dress(struct writer *w, const void *from, const void *frame,
                                             char *base, struct block_info info)
{
    return dress_here(w, from, frame, base, info);
}

static void *alloc_aligned(struct writer *w, const void *from, const void *frame, size_t size, size_t align,
                           enum block_kind kind)
{
    size_t lead = align > BLOCK_HEAD ? align : BLOCK_HEAD, total;
    void *base;
    if (__builtin_add_overflow(size, lead + BLOCK_TAIL, &total) || total > LARGEST ||
        under.posix_memalign(&base, align, total))
        return no_memory();
    return dress(w, from, frame, base, (struct block_info){size, (unsigned)__builtin_ctzll(lead), kind});
}

static __attribute__((noinline)) void *alloc_early(size_t size, size_t align)
{
    char *p = align <= BLOCK_ALIGN ? under_early(size) : under_early(size + align);
    return p && align > BLOCK_ALIGN ? p + (-(uintptr_t)p & (align - 1)) : p ? p : no_memory();
}

void *heap_alloc(const void *from, const void *frame, size_t size, size_t align, enum block_kind kind)
{
    struct writer *w = writer_here();
    if (__builtin_expect(!w && !heap_life_ready(), 0))
        return alloc_early(size, align);
    if (__builtin_expect(align > BLOCK_ALIGN, 0))
        return alloc_aligned(w, from, frame, size, align, kind);
    char *base = size <= LARGEST ? under.malloc(size + BLOCK_HEAD + BLOCK_TAIL) : NULL;
    if (__builtin_expect(!base, 0))
        return no_memory();
    return dress_here(w, from, frame, base, (struct block_info){size, 5, kind});
}

void *heap_calloc(const void *from, const void *frame, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > LARGEST)
        return no_memory();
    struct writer *w = writer_here();
    if (__builtin_expect(!w && !heap_life_ready(), 0))
        return alloc_early(bytes, 0);
    char *base = under.calloc(1, bytes + BLOCK_HEAD + BLOCK_TAIL);
    if (!base)
        return no_memory();
    return dress(w, from, frame, base, (struct block_info){bytes, 5, BLOCK_CALLOC});
}

// --- freeing ---

static void *base_of(void *block, struct block_info info)
{
    return (char *)block - ((size_t)1 << info.lead_log2);
}

// Gives a block back that is marked as freed. If nobody can be told now, it stays where it is.
static inline __attribute__((always_inline)) void give_back(struct writer *w, void *p, struct block_info info)
{
    struct block_head *h = block_head_of(p);
    if (writer_strike(w, h->place, block_word(p, h->ticket)))
        under.free(base_of(p, info));
}

static void check_waiting(void *p)
{
    struct block_head *h = block_head_of(p);
    uint64_t size = block_info_of(p, h).size;
    int64_t at = heap_wait_changed(p, size);
    if (at >= 0)
        heap_report_freed_write(p, h, at);
    else if (!block_tail_intact(p, size, block_live_canary((uint64_t)(uintptr_t)p, h)))
        heap_report_freed_write(p, h, (int64_t)size);
}

// Blocks leave while there are too many for one more of `room` bytes.
static void make_room(struct writer *w, uint64_t limit, uint64_t room)
{
    for (void *p; (p = heap_wait_oldest(&w->wait, limit, room));) {
        struct block_head *h = block_head_of(p);
        struct block_info info = block_info_of(p, h);
        if (!block_is_freed(p, h) || info.lead_log2 > 47) {
            heap_wait_drop(&w->wait, w->wait.bytes);
            heap_report_head(p, h);  // its size is not known any more: it stays
            continue;
        }
        check_waiting(p);
        heap_wait_drop(&w->wait, info.size + BLOCK_HEAD);
        give_back(w, p, info);
    }
}

static __attribute__((noinline)) void free_later(struct writer *w, void *p, struct block_info info)
{
    make_room(w, heap_settings.wait_bytes, info.size + BLOCK_HEAD);
    heap_wait_fill(p, info.size);
    if (heap_wait_add(&w->wait, p, info.size + BLOCK_HEAD))
        give_back(w, p, info);
}

// The tail is made whole: what happens to the block from now on is another matter.
static __attribute__((noinline)) void report_tail(void *p, struct block_head *h, const char *name)
{
    uint64_t size = block_info_of(p, h).size, tail, sound = block_tail_canary(h->canary);
    memcpy(&tail, (char *)p + size, sizeof tail);
    memcpy((char *)p + size, &sound, sizeof sound);
    if (heap_report_make_known(block_word(p, h->ticket)))
        heap_report_tail(p, h, tail, name);
}

static inline __attribute__((always_inline)) void free_ours(struct writer *w, const void *from,
                                                            const void *frame, void *p, const char *name)
{
    struct block_head *h = block_head_of(p);
    struct block_info info = block_info_of(p, h);
    if (__builtin_expect(!block_tail_intact(p, info.size, h->canary), 0))
        report_tail(p, h, name);
    block_mark_freed(p, site_here(w, from, frame, &w->last_freed));
    if (heap_settings.lazy && heap_wait_takes(info.size, heap_settings.wait_bytes))
        free_later(w, p, info);
    else
        give_back(w, p, info);
}

static __attribute__((noinline)) void free_strange(struct writer *w, const void *from, const void *frame,
                                                   void *p, const char *name)
{
    if (under_is_early(p))
        return;
    if (foreign_judge(p, name, site_here(w, from, frame, &w->last_freed)))
        under.free(p);
}

// There is no record for this thread, and no memory for one: its blocks are not looked after, only given back.
static __attribute__((noinline)) void free_without_record(void *p)
{
    if (!heap_life_ready() || under_is_early(p))
        return;
    struct block_head *h = block_head_of(p);
    if (!foreign_may_be_ours(p) || !block_is_live(p, h))
        under.free(p);
    else if (h->place == WRITER_UNWATCHED)
        under.free(base_of(p, block_info_of(p, h)));
    else
        block_mark_freed(p, 0);
}

void heap_free(const void *from, const void *frame, void *p, const char *name)
{
    if (__builtin_expect(!p, 0))
        return;
    struct writer *w = writer_here();
    if (__builtin_expect(!w, 0))
        free_without_record(p);
    else if (__builtin_expect(foreign_may_be_ours(p) && block_is_live(p, block_head_of(p)), 1))
        free_ours(w, from, frame, p, name);
    else
        free_strange(w, from, frame, p, name);
}

void heap_thread_ends(struct writer *w)
{
    make_room(w, 0, 1);
    self = NULL;
    writer_retire(w);
}

void heap_check_waiting(void)
{
    struct writer *w = self;
    for (uint32_t i = 0; w && i < w->wait.count; i++) {
        void *p = w->wait.blocks[(w->wait.first + i) % HEAP_WAIT_BLOCKS];
        if (block_is_freed(p, block_head_of(p)))
            check_waiting(p);
        else
            heap_report_head(p, block_head_of(p));
    }
}

// --- resizing ---

static void *move(const void *from, const void *frame, void *p, size_t old, size_t size)
{
    void *to = heap_alloc(from, frame, size, 0, BLOCK_REALLOC);
    if (to)
        memcpy(to, p, old < size ? old : size);
    return to;
}

// The block ends and another begins, which may lie at the same address.
static void *resize_below(struct writer *w, const void *from, const void *frame, void *p,
                          struct block_info info, size_t size)
{
    struct block_head *h = block_head_of(p);
    uint64_t place = h->place, word = block_word(p, h->ticket);
    uint32_t made_at = block_made_at(h->ticket);
    block_mark_freed(p, made_at);
    if (!writer_strike(w, place, word))
        return move(from, frame, p, info.size, size);
    char *base = under.realloc(base_of(p, info), size + BLOCK_HEAD + BLOCK_TAIL);
    bool failed = !base;
    if (failed)
        base = base_of(p, info);
    else
        info = (struct block_info){size, 5, BLOCK_REALLOC};
    void *to = dress(w, from, frame, base, info);
    return failed ? no_memory() : to;
}

static void *realloc_ours(struct writer *w, const void *from, const void *frame, void *p, size_t size)
{
    struct block_head *h = block_head_of(p);
    struct block_info info = block_info_of(p, h);
    if (__builtin_expect(!block_tail_intact(p, info.size, h->canary), 0))
        report_tail(p, h, "realloc");
    if (size > LARGEST)
        return no_memory();
    if (info.lead_log2 == 5 && (!heap_settings.lazy || info.size >= IN_PLACE_FROM))
        return resize_below(w, from, frame, p, info, size);
    void *to = move(from, frame, p, info.size, size);
    if (to)
        free_ours(w, from, frame, p, "realloc");
    return to;
}

static void *realloc_strange(struct writer *w, const void *from, const void *frame, void *p, size_t size)
{
    if (under_is_early(p))
        return move(from, frame, p, under_early_size(p), size);
    if (!w || foreign_judge(p, "realloc", site_here(w, from, frame, &w->last_freed)))
        return under.realloc(p, size);
    return no_memory();
}

static void *realloc_without_record(const void *from, const void *frame, void *p, size_t size)
{
    void *to = move(from, frame, p, block_info_of(p, block_head_of(p)).size, size);
    if (to)
        free_without_record(p);
    return to;
}

void *heap_realloc(const void *from, const void *frame, void *p, size_t size)
{
    if (!p)
        return heap_alloc(from, frame, size, 0, BLOCK_REALLOC);
    if (!size) {
        heap_free(from, frame, p, "realloc");
        return NULL;
    }
    struct writer *w = writer_here();
    if (foreign_may_be_ours(p) && block_is_live(p, block_head_of(p)))
        return w ? realloc_ours(w, from, frame, p, size) : realloc_without_record(from, frame, p, size);
    return realloc_strange(w, from, frame, p, size);
}

size_t heap_usable(void *p)
{
    if (!p)
        return 0;
    if (under_is_early(p))
        return under_early_size(p);
    if (foreign_may_be_ours(p) && block_is_live(p, block_head_of(p)))
        return block_info_of(p, block_head_of(p)).size;
    return under.malloc_usable_size ? under.malloc_usable_size(p) : 0;
}
