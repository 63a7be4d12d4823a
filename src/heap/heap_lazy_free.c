// SPDX-License-Identifier: MIT
#include "heap/heap_lazy_free.h"

#include "base/checked.h"
#include "heap/safe_read.h"
#include "heap/heap.h"
#include "heap/heap_fast.h"
#include "heap/heap_report.h"

static uint64_t size_of(struct heap_quarantine_entry e)
{
    return e.packed & BLOCK_SIZE_MASK;
}

// Returns the tail canary that belongs to the head.
static uint64_t tail_of(struct heap_quarantine_entry e, const struct block_head *h)
{
    return block_tail_canary(block_live_canary((uint64_t)(uintptr_t)e.block, h));
}

// Reports what has changed since the block was freed; returns whether its head is intact. at: its first
// changed byte, or -1.
static bool check_entry(struct heap_quarantine_entry e, const struct block_head *h, uint64_t tail, int64_t at)
{
    // The sum covers an intact tail: a head with any changed byte yields another tail.
    bool sound = block_sum(h, tail_of(e, h)) == e.sum;
    if (!sound) {
        if (heap_report_make_known(block_word(e.block, h->ticket)))  // the monitor may have seen it
            heap_report_head(e.block, h);
    } else if (at >= 0) {
        heap_report_freed_write(e.block, h, at);
    } else if (tail != tail_of(e, h)) {
        heap_report_freed_write(e.block, h, (int64_t)size_of(e));
    }
    return sound;
}

// Takes three values, not a struct, which would be passed through memory.
static __attribute__((noinline)) bool check_again_slowly(char *block, uint64_t packed, uint64_t sum)
{
    struct heap_quarantine_entry e = {block, packed, sum};
    uint64_t size = size_of(e);
    return check_entry(e, block_head_of(block), block_tail(block, size),
                       heap_quarantine_first_change(block, size));
}

static inline bool check_again(struct heap_quarantine_entry e)
{
    return check_again_slowly(e.block, e.packed, e.sum);
}

static inline __attribute__((always_inline)) bool is_unchanged(struct heap_quarantine_entry e, uint64_t size)
{
    return block_sum(block_head_of(e.block), block_tail(e.block, size)) == e.sum &&
           heap_quarantine_is_filled(e.block, size);
}

// Releases a block from the queue. A block with an overwritten head stays allocated for good.
static inline __attribute__((always_inline)) void leave_queue(struct producer *w,
                                                              struct heap_quarantine_entry e)
{
    if (is_unchanged(e, size_of(e)) || check_again(e))
        heap_put_away(w, e.block, block_unpack(e.packed));
}

// The slow path of leave_lane: the block has changed or its bin is full.
static __attribute__((noinline)) void leave_lane_slowly(struct producer *w, struct thread_cache_bin *b,
                                                        char *block, uint64_t size, uint64_t sum)
{
    struct heap_quarantine_entry e = {block, size, sum};
    if (is_unchanged(e, size) || check_again(e))
        heap_put_into_bin(w, block, b);
}

static inline __attribute__((always_inline)) void leave_lane(struct producer *w, struct thread_cache_bin *b,
                                                             struct heap_quarantine_entry e)
{
    if (__builtin_expect(is_unchanged(e, e.packed) && !thread_cache_is_full(b), 1))
        thread_cache_put(b, block_word(e.block, block_head_of(e.block)->ticket));
    else
        leave_lane_slowly(w, b, e.block, e.packed, e.sum);
}

// Marks and fills a block that enters the quarantine, and returns its entry.
static inline __attribute__((always_inline)) struct heap_quarantine_entry enter(char *p, uint64_t packed,
                                                                                uint64_t size, uint32_t site)
{
    block_mark_freed(p, site);
    heap_quarantine_fill(p, size);
    return (struct heap_quarantine_entry){p, packed, block_sum(block_head_of(p), block_tail(p, size))};
}

// Evicts others while there are too many.
void heap_lazy_free_queue(struct producer *w, char *p, uint64_t packed, uint32_t site)
{
    uint64_t room = heap_quarantine_cost(packed);
    for (struct heap_quarantine_entry old;
         heap_quarantine_evict(&w->quarantine, heap_settings.quarantine_bytes, room, &old);)
        leave_queue(w, old);
    if (heap_quarantine_add(&w->quarantine, enter(p, packed, packed & BLOCK_SIZE_MASK, site)))
        heap_give_back(w, p, block_unpack(packed));
    checked_assert(heap_quarantine_valid(&w->quarantine));
}

static __attribute__((noinline)) void put_without_lanes(struct producer *w, char *p, uint64_t size,
                                                        size_t bin, uint32_t site)
{
    if (heap_quarantine_lanes(&w->quarantine, heap_settings.quarantine_bytes))
        heap_lazy_free_lane(w, p, size, bin, site);
    else
        heap_lazy_free_queue(w, p, block_packed(p, block_head_of(p)), site);
}

// Any call is a tail call, so that no registers need saving.
static inline __attribute__((always_inline)) void put_in_lane(struct producer *w, char *p, uint64_t size,
                                                              size_t bin, uint32_t site)
{
    // Relaxed: the thread's own lanes.
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->quarantine.lanes, memory_order_relaxed);
    if (__builtin_expect(!lanes, 0)) {
        put_without_lanes(w, p, size, bin, site);
        return;
    }
    struct heap_quarantine_entry old =
        heap_quarantine_replace_oldest(&lanes[bin], enter(p, size, size, site));
    if (__builtin_expect(old.block != NULL, 1))
        leave_lane(w, &w->cache.bins[bin], old);
}

void heap_lazy_free_lane(struct producer *w, void *p, uint64_t size, size_t bin, uint32_t site)
{
    put_in_lane(w, p, size, bin, site);
}

void heap_lazy_free_entry(const void *from, const void *frame, void *p)
{
    struct producer *w = heap_producer;
    uint64_t size;
    uint32_t site;
    if (__builtin_expect(heap_fast_is_usual(w, from, frame, p, BLOCK_MALLOC, &size, &site), 1))
        put_in_lane(w, p, size, thread_cache_fine_number(size), site);
    else
        heap_free(from, frame, p, BLOCK_MALLOC, "free");
}

void heap_lazy_free_end(struct producer *w)
{
    struct heap_quarantine_entry old;
    while (heap_quarantine_evict(&w->quarantine, 0, 1, &old))
        leave_queue(w, old);
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->quarantine.lanes, memory_order_relaxed);
    for (size_t i = 0; lanes && i < HEAP_QUARANTINE_LANES; i++)
        for (struct heap_quarantine_slot *s = lanes[i].first; s < lanes[i].end; s++)
            if ((old = heap_quarantine_replace_oldest(&lanes[i], (struct heap_quarantine_entry){0})).block)
                leave_lane(w, &w->cache.bins[i], old);
    checked_assert(heap_quarantine_valid(&w->quarantine) && !w->quarantine.bytes);
}

// --- the last check of quarantined blocks ---

// A copy of a block in quarantine, taken while its thread may be at work: it counts only if the block is
// still in quarantine afterwards.
struct last_look {
    struct block_head head;
    uint64_t tail;
    unsigned char bytes[HEAP_QUARANTINE_COPY];
};

static bool copy_block(struct heap_quarantine_entry e, struct last_look *l)
{
    uint64_t size = size_of(e);
    return safe_read_one(e.block - BLOCK_HEAD, sizeof l->head, &l->head) &&
           safe_read_one(e.block + size, sizeof l->tail, &l->tail) &&
           heap_quarantine_copy(e.block, size, l->bytes);
}

static void check_copy(struct heap_quarantine_entry e, const struct last_look *l)
{
    check_entry(e, &l->head, l->tail, heap_quarantine_copied_changed(l->bytes, size_of(e)));
}

static void check_lane(struct heap_quarantine_lane *lane, struct last_look *l)
{
    struct heap_quarantine_entry e;
    for (struct heap_quarantine_slot *s = lane->first; s < lane->end; s++)
        if (heap_quarantine_entry_in(s, &e) && copy_block(e, l) && heap_quarantine_is_in_slot(s, &e))
            check_copy(e, l);
}

static void check_others(struct producer *w)
{
    static struct last_look l;  // static: only the thread that ends the process gets here
    struct heap_quarantine_entry e;
    for (uint64_t i = atomic_load_explicit(&w->quarantine.taken, memory_order_relaxed);
         heap_quarantine_entry_at(&w->quarantine, i, &e); i++)
        if (copy_block(e, &l) && heap_quarantine_is_queued(&w->quarantine, i))
            check_copy(e, &l);
    // Acquire: with the release in heap_quarantine_lanes_start.
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->quarantine.lanes, memory_order_acquire);
    for (size_t i = 0; lanes && i < HEAP_QUARANTINE_LANES; i++)
        check_lane(&lanes[i], &l);
}

// For the calling thread's own blocks, which nobody else changes, so they need not be copied. There may be
// thousands.
static void check_own_lane(struct heap_quarantine_lane *lane)
{
    struct heap_quarantine_entry e;
    for (struct heap_quarantine_slot *s = lane->first; s < lane->end; s++)
        if (heap_quarantine_entry_in(s, &e) && !is_unchanged(e, size_of(e)))
            check_again(e);
}

static void check_own(struct producer *w)
{
    struct heap_quarantine_entry e;
    for (uint64_t i = atomic_load_explicit(&w->quarantine.taken, memory_order_relaxed);
         heap_quarantine_entry_at(&w->quarantine, i, &e); i++)
        if (!is_unchanged(e, size_of(e)))
            check_again(e);
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->quarantine.lanes, memory_order_relaxed);
    for (size_t i = 0; lanes && i < HEAP_QUARANTINE_LANES; i++)
        check_own_lane(&lanes[i]);
}

void heap_lazy_free_check(void)
{
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed))
        if (w == heap_producer)
            check_own(w);
        else
            check_others(w);
}
