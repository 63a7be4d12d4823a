// SPDX-License-Identifier: MIT
#include <string.h>

#include "heap/foreign.h"
#include "heap/heap.h"
#include "heap/heap_fast.h"
#include "heap/heap_report.h"
#include "heap/under.h"

enum { SPARE_LEAST = 64, SPARE_DOUBLE = 1 << 13, SPARE_MOST = 1 << 16 };  // the latter: with the block

// In what units a block's head says what it has room for. One that may go to the shelf must know it exactly, others about.
static inline unsigned unit_log2(size_t size)
{
    return size <= SHELF_LARGEST ? 4 : 59u - (unsigned)__builtin_clzll(size);
}

static inline size_t least_room(size_t size)
{
    return size <= SHELF_LARGEST ? shelf_room(size) : size;
}

static inline size_t room_of(size_t size, size_t spare)
{
    return least_room(size) + (spare << unit_log2(size));
}

// What a block of that size is that has room for so many bytes.
static inline struct block_info resized(size_t size, size_t room)
{
    size_t spare = (room - least_room(size)) >> unit_log2(size);
    spare = spare < BLOCK_MOST_SPARE ? spare : BLOCK_MOST_SPARE;
    return (struct block_info){size, BLOCK_LEAD_LOG2, BLOCK_REALLOC, (uint16_t)spare};
}

// Whether a block that has room for so many bytes can stay where it is, and does not keep too much. None becomes one for the shelf,
// or ceases to be: the shelf must know what it has room for.
static inline bool stays(size_t room, size_t old, size_t size)
{
    return size <= room && (size >= old || room / 2 <= size + SPARE_LEAST) &&
           (size <= SHELF_LARGEST) == (old <= SHELF_LARGEST);
}

// A block that lives becomes another one, for whoever looks at it.
static inline __attribute__((always_inline)) void dress_again(struct writer *w, void *p,
                                                              struct block_info info, uint32_t site)
{
    struct block_head *h = block_head_of(p);
    uint64_t place = h->place, ticket = block_ticket(block_generation(h->ticket), site, writer_generation(w));
    block_mark_freed(p, site);
    block_dress(p, info, place, ticket);
}

// What is to become of a block.
struct resize {
    size_t size, room;  // room: how many bytes it shall have room for
    uint32_t site;      // of the call
};

// A block that is resized again is likely to grow on.
static bool grows_on(struct block_info info, size_t size)
{
    return size > info.size && (info.kind & (BLOCK_UNWATCHED - 1)) == BLOCK_REALLOC;
}

// As much again for a small one, half as much for a larger one. Allocators map what is very large, at a price: no block shall be
// that for our sake.
static size_t spare_for(size_t size)
{
    size_t half = size / 2 < SPARE_MOST - size ? size / 2 : SPARE_MOST - size;
    if (size < SPARE_DOUBLE)
        return size;
    return size > SPARE_MOST || half < SPARE_DOUBLE ? SPARE_DOUBLE : half;
}

// How many bytes a block shall have room for.
static size_t room_for(struct block_info info, size_t size)
{
    size_t room = size + (grows_on(info, size) ? spare_for(size) : 0);
    if (size > SHELF_LARGEST)
        return room;
    size_t most = shelf_room(size) + BLOCK_MOST_SPARE * 16;
    most = most < SHELF_LARGEST ? most : SHELF_LARGEST;
    return shelf_room(room) < most ? shelf_room(room) : most;
}

// Another block with what is in this one. Both sizes are those of blocks that the shelf has: the other way is slower.
static void *move_on_shelf(struct writer *w, const void *from, const void *frame, void *p, size_t old,
                           struct resize to)
{
    uint64_t word = shelf_take(&w->shelf, to.room);
    char *base = word ? NULL : under.malloc(to.room + BLOCK_HEAD + BLOCK_TAIL);
    if (!word && !base)
        return heap_no_memory();
    struct block_info info = resized(to.size, to.room);
    void *block = word ? heap_fast_dress(w, word, info, to.site) : heap_dress(w, from, frame, base, info);
    return memcpy(block, p, old < to.size ? old : to.size);
}

static void *move(const void *from, const void *frame, void *p, size_t old, size_t size)
{
    void *to = heap_fast_alloc(from, frame, size, BLOCK_REALLOC);
    if (to)
        memcpy(to, p, old < size ? old : size);
    return to;
}

// Nobody but this thread knows of the block: the allocator below may move it, and its word follows. NULL and *known: somebody does.
static void *resize_in_window(struct writer *w, void *p, struct block_info info, struct resize to,
                              bool *known)
{
    struct block_head *h = block_head_of(p);
    uint64_t place = h->place, generation = block_generation(h->ticket);
    uint64_t *word = writer_hold(w, place, block_word(p, h->ticket));
    *known = !word;
    if (!word)
        return NULL;
    block_mark_freed(p, to.site);
    char *base = under.realloc((char *)p - BLOCK_HEAD, to.room + BLOCK_HEAD + BLOCK_TAIL);
    void *block = base ? base + BLOCK_HEAD : p;
    uint64_t ticket = block_ticket(generation, to.site, writer_generation(w));
    foreign_mark(block);
    block_dress(block, base ? resized(to.size, to.room) : info, place, ticket);
    *word = block_word(block, ticket);
    writer_let_go(w);
    return base ? block : heap_no_memory();
}

// The block ends and another begins, which may lie at the same address.
static void *resize_below(struct writer *w, const void *from, const void *frame, void *p,
                          struct block_info info, struct resize to)
{
    struct block_head *h = block_head_of(p);
    uint64_t place = h->place, word = block_word(p, h->ticket);
    block_mark_freed(p, block_made_at(h->ticket));
    if (!writer_strike(w, place, word))
        return move(from, frame, p, info.size, to.size);
    char *below = (char *)p - BLOCK_HEAD, *base = under.realloc(below, to.room + BLOCK_HEAD + BLOCK_TAIL);
    info.kind &= BLOCK_UNWATCHED - 1;
    struct block_info now = base ? resized(to.size, to.room) : info;
    void *block = heap_dress(w, from, frame, base ? base : below, now);
    return base ? block : heap_no_memory();
}

// Whether the allocator below is to do it. What is small comes from the shelf, and goes there or waits; unless it outgrows it.
static bool is_for_below(struct block_info info, struct resize to)
{
    if (info.size > SHELF_LARGEST)
        return to.size > SHELF_LARGEST;
    return !heap_settings.lazy && to.size > SHELF_LARGEST && grows_on(info, to.size);
}

static void *move_ours(struct writer *w, const void *from, const void *frame, void *p, struct block_info info,
                       struct resize to)
{
    void *block = to.size <= SHELF_LARGEST && info.size <= SHELF_LARGEST
                      ? move_on_shelf(w, from, frame, p, info.size, to)
                      : move(from, frame, p, info.size, to.size);
    if (block)
        heap_free_ours(w, from, frame, p, info);
    return block;
}

// The block is sound, but cannot stay where it is.
static __attribute__((noinline)) void *go_elsewhere(struct writer *w, const void *from, const void *frame,
                                                    void *p, size_t size)
{
    struct block_info info = block_info_of(p, block_head_of(p));
    if (size > HEAP_LARGEST)
        return heap_no_memory();
    struct resize to = {size, room_for(info, size), heap_fast_site(w, from, frame)};
    if (block_is_plain(block_pack(info)) && is_for_below(info, to)) {
        bool known;
        void *block = resize_in_window(w, p, info, to, &known);
        if (!known)
            return block;
        if (info.size > SHELF_LARGEST)
            return resize_below(w, from, frame, p, info, to);
    }
    return move_ours(w, from, frame, p, info, to);
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

// All that is seldom.
static __attribute__((noinline)) void *realloc_slowly(const void *from, const void *frame, void *p,
                                                      size_t size)
{
    if (!p)
        return heap_fast_alloc(from, frame, size, BLOCK_REALLOC);
    if (!size) {
        heap_free(from, frame, p, BLOCK_MALLOC, "realloc");
        return NULL;
    }
    struct writer *w = heap_join();
    if (!foreign_may_be_ours(p) || !block_is_live(p, block_head_of(p)))
        return realloc_strange(w, from, frame, p, size);
    if (!w)
        return realloc_without_record(from, frame, p, size);
    heap_check_block(w, from, frame, p, BLOCK_MALLOC, "realloc");
    return go_elsewhere(w, from, frame, p, size);
}

void *heap_realloc(const void *from, const void *frame, void *p, size_t size)
{
    struct writer *w = heap_writer;
    if (__builtin_expect(!w || !size || !foreign_may_be_ours(p) || !block_is_live(p, block_head_of(p)), 0))
        return realloc_slowly(from, frame, p, size);
    struct block_head *h = block_head_of(p);
    uint64_t packed = block_packed(p, h), old = packed & BLOCK_SIZE_MASK;
    if (__builtin_expect(!heap_fast_sound(p, h, block_unpack(packed), BLOCK_MALLOC), 0))
        return realloc_slowly(from, frame, p, size);
    size_t room = room_of(old, packed >> BLOCK_SPARE_SHIFT);
    if (!block_is_plain(packed) || !stays(room, old, size))
        return go_elsewhere(w, from, frame, p, size);
    dress_again(w, p, resized(size, room), heap_fast_site(w, from, frame));
    return p;
}
