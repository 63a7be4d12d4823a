// SPDX-License-Identifier: MIT
#include "heap/block_list.h"

#include <errno.h>

#include "base/checked.h"

void block_list_init(struct block_list *w)
{
    w->pool.size = sizeof(struct block_list_node);
}

static struct block_list_node *next_of(struct block_list_node *n)
{
    // Acquire: with the release in add_node; a node is seen with its contents.
    return atomic_load_explicit(&n->next, memory_order_acquire);
}

// --- the deliverer ---

static struct block_list_node *take_spare(struct block_list *w)
{
    if (!w->own_spare)
        // The exchange takes all spare nodes at once, so no ABA problem arises. Acquire: with the release in
        // give_back.
        w->own_spare = atomic_exchange_explicit(&w->spare, NULL, memory_order_acquire);
    struct block_list_node *n = w->own_spare;
    if (n)
        w->own_spare = atomic_load_explicit(&n->next, memory_order_relaxed);
    return n;
}

static struct block_list_node *add_node(struct block_list *w, struct block_list_node *first)
{
    struct block_list_node *n = take_spare(w);
    if (!n) {
        n = guarded_take(&w->pool);
        if (!n)
            return NULL;
        w->nodes++;
    }
    atomic_store_explicit(&n->count, 0, memory_order_relaxed);
    atomic_store_explicit(&n->next, first, memory_order_relaxed);
    // Release: with the acquire in next_of.
    atomic_store_explicit(&w->head.next, n, memory_order_release);
    return n;
}

int block_list_add(struct block_list *w, uint64_t word)
{
    checked_assert(word);
    // Relaxed: only this thread writes head.next, and only it appends to the first node.
    struct block_list_node *first = atomic_load_explicit(&w->head.next, memory_order_relaxed);
    uint64_t count = first ? atomic_load_explicit(&first->count, memory_order_relaxed) : BLOCK_LIST_ROOM;
    if (count == BLOCK_LIST_ROOM) {
        first = add_node(w, first);
        if (!first)
            return -ENOMEM;
        count = 0;
    }
    checked_assert(count < BLOCK_LIST_ROOM);
    atomic_store_explicit(&first->words[count], word, memory_order_relaxed);
    // Release: with the acquire in count_of; whoever sees the count sees the word.
    atomic_store_explicit(&first->count, count + 1, memory_order_release);
    return 0;
}

// --- the monitor ---

static size_t count_of(struct block_list_node *n)
{
    return (size_t)atomic_load_explicit(&n->count, memory_order_acquire);  // with block_list_add's release
}

static void give_back(struct block_list *w, struct block_list_node *n)
{
    struct block_list_node *old = atomic_load_explicit(&w->spare, memory_order_relaxed);
    do
        atomic_store_explicit(&n->next, old, memory_order_relaxed);
    // Release: with the acquire in take_spare.
    while (!atomic_compare_exchange_weak_explicit(&w->spare, &old, n, memory_order_release,
                                                  memory_order_relaxed));
}

// Both functions are only for nodes that are the monitor's, therefore relaxed.
static uint64_t word_at(struct block_list_node *n, size_t i)
{
    return atomic_load_explicit(&n->words[i], memory_order_relaxed);
}

static void set_word(struct block_list_node *n, size_t i, uint64_t word)
{
    atomic_store_explicit(&n->words[i], word, memory_order_relaxed);
}

// Sorts by address, so that blocks that are visited together lie together. In place, as stacks may be small.
static void sort(struct block_list_node *n, size_t count)
{
    static const size_t steps[] = {301, 132, 57, 23, 10, 4, 1};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (size_t step = steps[s], i = step; i < count; i++) {
            uint64_t word = word_at(n, i);
            size_t to = i;
            for (; to >= step && word_at(n, to - step) << BLOCK_LIST_KEY_SHIFT > word << BLOCK_LIST_KEY_SHIFT;
                 to -= step)
                set_word(n, to, word_at(n, to - step));
            set_word(n, to, word);
        }
}

// Moves the remaining words of a node to its front, sorted by address if they are to be. Returns how many.
static size_t close_gaps(struct block_list_node *n, bool wanted)
{
    size_t count = count_of(n), kept = 0;
    uint64_t before = 0;
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = word_at(n, i);
        if (!word)
            continue;
        sorted &= before << BLOCK_LIST_KEY_SHIFT <= word << BLOCK_LIST_KEY_SHIFT;
        before = word;
        set_word(n, kept++, word);
    }
    if (!sorted && wanted)
        sort(n, kept);
    atomic_store_explicit(&n->count, kept, memory_order_relaxed);
    return kept;
}

static void unlink_next(struct block_list *w, struct block_list_node *before, struct block_list_node *n)
{
    // Relaxed: the deliverer never reads the `next` of a node that is linked.
    atomic_store_explicit(&before->next, next_of(n), memory_order_relaxed);
    give_back(w, n);
}

// Appends the words of n to those of `before`, which must have room, and removes n.
static void merge(struct block_list *w, struct block_list_node *before, struct block_list_node *n,
                  size_t count)
{
    size_t at = count_of(before);
    checked_assert(at + count <= BLOCK_LIST_ROOM);
    for (size_t i = 0; i < count; i++)
        set_word(before, at + i, word_at(n, i));
    atomic_store_explicit(&before->count, at + count, memory_order_relaxed);
    unlink_next(w, before, n);
}

// Returns whether what must hold behind `first` after a complete pass does. These nodes are the monitor's
// alone.
static bool passed_is_valid(struct block_list_node *first)
{
    size_t before = BLOCK_LIST_ROOM;
    for (struct block_list_node *n = next_of(first); n; n = next_of(n)) {
        size_t count = count_of(n);
        if (!count || count > BLOCK_LIST_ROOM || before + count <= BLOCK_LIST_ROOM)
            return false;
        for (size_t i = 0; i < count; i++)
            if (!word_at(n, i))
                return false;
        before = count;
    }
    return true;
}

bool block_list_pass(struct block_list *w, block_list_visitor *visit, void *ctx)
{
    struct block_list_node *first = next_of(&w->head), *before = first;
    if (!first)
        return true;
    if (!visit(ctx, first->words, count_of(first)))
        return false;
    for (struct block_list_node *n; (n = next_of(before));) {
        if (!visit(ctx, n->words, count_of(n)))
            return false;
        size_t kept = close_gaps(n, !w->unsorted);
        if (kept == 0)
            unlink_next(w, before, n);
        else if (before != first && count_of(before) + kept <= BLOCK_LIST_ROOM)
            merge(w, before, n, kept);
        else
            before = n;
    }
    checked_assert(passed_is_valid(first));
    return true;
}

static size_t length(struct block_list_node *n)
{
    size_t nodes = 0;
    for (; n; n = atomic_load_explicit(&n->next, memory_order_relaxed))
        nodes++;
    return nodes;
}

bool block_list_valid(const struct block_list *w)
{
    // Relaxed, all: nobody is at work.
    struct block_list_node *first = atomic_load_explicit(&w->head.next, memory_order_relaxed);
    for (struct block_list_node *n = first; n; n = atomic_load_explicit(&n->next, memory_order_relaxed)) {
        uint64_t count = atomic_load_explicit(&n->count, memory_order_relaxed);
        if (!count || count > BLOCK_LIST_ROOM)
            return false;
    }
    return length(first) + length(atomic_load_explicit(&w->spare, memory_order_relaxed)) +
               length(w->own_spare) ==
           w->nodes;
}
