// SPDX-License-Identifier: MIT
#include <string.h>

#include "heap/foreign.h"
#include "heap/heap.h"
#include "heap/heap_fast.h"
#include "heap/heap_report.h"
#include "heap/under.h"

enum { SPARE_LEAST = 64, SPARE_MOST = 1 << 13 };

// A block that is resized again is likely to grow on.
static bool grows_on(struct block_info info, size_t size)
{
    return size > info.size && (info.kind & (BLOCK_UNWATCHED - 1)) == BLOCK_REALLOC;
}

// How many bytes a block shall have room for: one that grows on gets as much again.
static size_t room_for(struct block_info info, size_t size)
{
    size_t room = size + (grows_on(info, size) ? size < SPARE_MOST ? size : SPARE_MOST : 0);
    if (size > SHELF_LARGEST)
        return room;
    size_t most = shelf_room(size) + BLOCK_MOST_SPARE * 16;
    most = most < SHELF_LARGEST ? most : SHELF_LARGEST;
    return shelf_room(room) < most ? shelf_room(room) : most;
}

// What a block of that size is that has room for so many bytes.
static struct block_info resized(size_t size, size_t room)
{
    size_t spare = size > SHELF_LARGEST || room > SHELF_LARGEST ? 0 : (room - shelf_room(size)) / 16;
    return (struct block_info){size, BLOCK_LEAD_LOG2, BLOCK_REALLOC, (uint16_t)spare};
}

// Another block with what is in this one. Both sizes are those of blocks that the shelf has: the other way is slower.
static void *move_on_shelf(struct writer *w, const void *from, const void *frame, void *p,
                           struct block_info info, size_t size)
{
    size_t room = room_for(info, size);
    uint32_t site = heap_fast_site(w, from, frame);
    uint64_t word = shelf_take(&w->shelf, room);
    char *base = word ? NULL : under.malloc(room + BLOCK_HEAD + BLOCK_TAIL);
    if (!word && !base)
        return heap_no_memory();
    void *to = word ? heap_fast_dress(w, word, resized(size, room), site)
                    : heap_dress(w, from, frame, base, resized(size, room));
    return memcpy(to, p, info.size < size ? info.size : size);
}

static void *move(const void *from, const void *frame, void *p, size_t old, size_t size)
{
    void *to = heap_fast_alloc(from, frame, size, BLOCK_REALLOC);
    if (to)
        memcpy(to, p, old < size ? old : size);
    return to;
}

// A block that is marked as freed becomes another one, for whoever looks at it. Returns its word.
static uint64_t dress_again(struct writer *w, void *p, struct block_info info, uint64_t place,
                            uint64_t generation, uint32_t site)
{
    uint64_t ticket = block_ticket(generation, site, writer_generation(w));
    block_dress(p, info, place, ticket);
    return block_word(p, ticket);
}

// The block has room for it.
static void *resize_here(struct writer *w, const void *from, const void *frame, void *p,
                         struct block_info info)
{
    struct block_head *h = block_head_of(p);
    uint32_t site = heap_fast_site(w, from, frame);
    block_mark_freed(p, site);
    dress_again(w, p, info, h->place, block_generation(h->ticket), site);
    return p;
}

// Nobody but this thread knows of the block: the allocator below may move it, and its word follows. NULL and *known: somebody does.
static void *resize_in_window(struct writer *w, const void *from, const void *frame, void *p,
                              struct block_info info, size_t size, bool *known)
{
    struct block_head *h = block_head_of(p);
    uint32_t site = heap_fast_site(w, from, frame);
    uint64_t place = h->place, generation = block_generation(h->ticket);
    uint64_t *word = writer_hold(w, place, block_word(p, h->ticket));
    *known = !word;
    if (!word)
        return NULL;
    block_mark_freed(p, site);
    size_t room = room_for(info, size);
    char *base = under.realloc((char *)p - BLOCK_HEAD, room + BLOCK_HEAD + BLOCK_TAIL);
    void *to = base ? base + BLOCK_HEAD : p;
    foreign_mark(to);
    info = base ? resized(size, room) : info;
    *word = dress_again(w, to, info, place, generation, site);
    writer_let_go(w);
    return base ? to : heap_no_memory();
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
    char *below = (char *)p - BLOCK_HEAD,
         *base = under.realloc(below, room_for(info, size) + BLOCK_HEAD + BLOCK_TAIL);
    info.kind &= BLOCK_UNWATCHED - 1;
    struct block_info now = base ? resized(size, 0) : info;
    void *to = heap_dress(w, from, frame, base ? base : below, now);
    return base ? to : heap_no_memory();
}

// The bytes that the block has room for where it is, as far as that is worth knowing for a new size.
static size_t room_of(void *p, struct block_info info, size_t size)
{
    if (info.size <= SHELF_LARGEST)
        return shelf_room(info.size) + info.spare * 16;
    size_t room = under.malloc_usable_size((char *)p - BLOCK_HEAD) - BLOCK_HEAD - BLOCK_TAIL;
    return size <= SHELF_LARGEST ? 0 : room;  // such a one goes to a shelf, which must know its room
}

// Whether it can stay there, and does not keep too much.
static bool has_room(size_t room, struct block_info info, size_t size)
{
    return size <= room && (size >= info.size || room / 2 <= size + SPARE_LEAST);
}

// Whether the allocator below is to do it. What is small comes from the shelf, and goes there or waits; unless it grows on, and
// the shelf has nothing for it.
static bool is_for_below(struct writer *w, struct block_info info, size_t size)
{
    if (info.size > SHELF_LARGEST)
        return size > SHELF_LARGEST;
    return !heap_settings.lazy && grows_on(info, size) &&
           (size > SHELF_LARGEST || shelf_is_empty(&w->shelf, room_for(info, size)));
}

static void *realloc_ours(struct writer *w, const void *from, const void *frame, void *p, size_t size)
{
    struct block_info info = block_info_of(p, block_head_of(p));
    if (__builtin_expect(!heap_fast_sound(p, block_head_of(p), info, BLOCK_MALLOC), 0))
        heap_check_block(w, from, frame, p, BLOCK_MALLOC, "realloc");
    bool plain = block_is_plain(block_packed(p, block_head_of(p))), known;
    if (size > HEAP_LARGEST)
        return heap_no_memory();
    size_t room = plain ? room_of(p, info, size) : 0;
    if (has_room(room, info, size))
        return resize_here(w, from, frame, p, resized(size, room));
    if (plain && is_for_below(w, info, size)) {
        void *to = resize_in_window(w, from, frame, p, info, size, &known);
        if (!known)
            return to;
        if (info.size > SHELF_LARGEST)
            return resize_below(w, from, frame, p, info, size);
    }
    void *to = size <= SHELF_LARGEST && info.size <= SHELF_LARGEST
                   ? move_on_shelf(w, from, frame, p, info, size)
                   : move(from, frame, p, info.size, size);
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
