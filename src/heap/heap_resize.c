// SPDX-License-Identifier: MIT
#include <string.h>

#include "heap/foreign.h"
#include "heap/heap.h"
#include "heap/heap_fast.h"
#include "heap/heap_report.h"
#include "heap/under.h"

static void *move(const void *from, const void *frame, void *p, size_t old, size_t size)
{
    void *to = heap_fast_alloc(from, frame, size, BLOCK_REALLOC);
    if (to)
        memcpy(to, p, old < size ? old : size);
    return to;
}

// The block has room for it. Another one all the same, for whoever looks at it.
static void *resize_here(struct writer *w, const void *from, const void *frame, void *p, size_t size)
{
    struct block_head *h = block_head_of(p);
    uint32_t site = heap_fast_site(w, from, frame);
    uint64_t word = block_word(p, h->ticket), place = h->place;
    uint64_t ticket = block_ticket(block_generation_of_word(word), site, writer_generation(w));
    block_mark_freed(p, site);
    block_dress(p, (struct block_info){size, BLOCK_LEAD_LOG2, BLOCK_REALLOC}, place, ticket);
    return p;
}

// The block ends and another begins, which may lie at the same address.
static void *resize_below(struct writer *w, const void *from, const void *frame, void *p,
                          struct block_info info, size_t size)
{
    struct block_head *h = block_head_of(p);
    uint64_t place = h->place, word = block_word(p, h->ticket);
    block_mark_freed(p, block_made_at(h->ticket));
    if (!writer_strike(w, place, word))
        return move(from, frame, p, info.size, size);
    char *below = (char *)p - BLOCK_HEAD, *base = under.realloc(below, size + BLOCK_HEAD + BLOCK_TAIL);
    info.kind &= ~(unsigned)BLOCK_UNWATCHED;
    struct block_info now = base ? (struct block_info){size, BLOCK_LEAD_LOG2, BLOCK_REALLOC} : info;
    void *to = heap_dress(w, from, frame, base ? base : below, now);
    return base ? to : heap_no_memory();
}

static void *realloc_ours(struct writer *w, const void *from, const void *frame, void *p, size_t size)
{
    struct block_info info = block_info_of(p, block_head_of(p));
    if (__builtin_expect(!heap_fast_sound(p, block_head_of(p), info, BLOCK_MALLOC), 0))
        heap_check_block(w, from, frame, p, BLOCK_MALLOC, "realloc");
    bool plain = info.lead_log2 == BLOCK_LEAD_LOG2 && !(info.kind & BLOCK_UNWATCHED);
    if (size > HEAP_LARGEST)
        return heap_no_memory();
    if (plain && info.size <= SHELF_LARGEST && shelf_number(size) == shelf_number(info.size))
        return resize_here(w, from, frame, p, size);
    if (plain && size > SHELF_LARGEST && info.size > SHELF_LARGEST)
        return resize_below(w, from, frame, p, info, size);
    void *to = move(from, frame, p, info.size, size);
    if (to)
        heap_free_ours(w, from, frame, p, info);
    return to;
}

static void *realloc_strange(struct writer *w, const void *from, const void *frame, void *p, size_t size)
{
    if (under_is_early(p))
        return move(from, frame, p, under_early_size(p), size);
    if (!w || foreign_judge(p, "realloc", heap_fast_site(w, from, frame)))
        return under.realloc(p, size);
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
    struct writer *w = heap_writer ? heap_writer : heap_join();
    if (foreign_may_be_ours(p) && block_is_live(p, block_head_of(p)))
        return w ? realloc_ours(w, from, frame, p, size) : realloc_without_record(from, frame, p, size);
    return realloc_strange(w, from, frame, p, size);
}
