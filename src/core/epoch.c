// SPDX-License-Identifier: MIT
// Open sections are counted, not listed, so threads need not register and may exit at any time. The counters
// are spread over stripes; a thread's stripe follows from the address of its stack. A section remembers its
// counter and leaves that one.
//
// Safety. A writer unlinks X by a seq_cst store U and retires it. X is released after each counter was seen
// to be zero by a seq_cst load that U happens before. A section that holds X has counted itself by a seq_cst
// addition A and then loaded the link, seq_cst, before U: in the single order of seq_cst operations A < link
// load < U < counter load. So the counter's load saw the section, unless the section had been left.
// Conversely, a section whose A comes after the counter load also loads the link after U, and does not find
// X. The counters may be seen zero at different times: each argument concerns one counter. Leaving is a
// release, and the load that sees zero is an acquire (all operations between are additions, so the release
// sequence is unbroken): every read of the section happens before X is written again.
//
// Progress. Under a steady flow of sections a counter may never be zero. So each stripe has two counters, and
// new sections use the one that `current` names. The other only drains; when it is zero in every stripe, the
// two swap roles. Safety does not depend on which of them a section uses, so `current` is read and written
// relaxed.
#include "core/epoch.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    STRIPES = 64,  // a 64-bit mask has a bit for each
    ATTEMPT = 32,  // retired objects between two attempts to release some
};

static struct stripe {
    _Alignas(64) _Atomic unsigned long open[2];
} stripes[STRIPES];

static _Atomic unsigned current;               // which counter new sections use
static _Atomic(struct epoch_node *) incoming;  // retired, not in a batch yet
static _Atomic size_t retired, released;       // objects so far; retired - released are waiting
static _Atomic bool busy;                      // a thread works on the batch; others do not wait for it

// The objects that wait together. Only the thread that has set `busy` accesses it.
static struct {
    struct epoch_node *first;
    uint64_t unseen[2];  // stripes whose counter was not yet seen to be zero
    unsigned used;       // value of `current` when the batch was made
} batch;

static unsigned stripe_of_thread(void)
{
    uint64_t place = (uintptr_t)__builtin_frame_address(0) >> 16;
    return (unsigned)(place * 0x9e3779b97f4a7c15u >> 58);
}

unsigned epoch_enter(void)
{
    unsigned slot = atomic_load_explicit(&current, memory_order_relaxed);
    unsigned stripe = stripe_of_thread();
    // seq_cst: pairs with the load in all_left.
    atomic_fetch_add_explicit(&stripes[stripe].open[slot], 1, memory_order_seq_cst);
    return stripe * 2 + slot;
}

void epoch_leave(unsigned section)
{
    // Release: pairs with the load in all_left.
    unsigned long open =
        atomic_fetch_sub_explicit(&stripes[section / 2].open[section % 2], 1, memory_order_release);
    assert(open > 0);
    (void)open;
}

// Returns whether every counter of this slot has been zero at some time since the batch was made.
static bool all_left(unsigned slot)
{
    for (uint64_t left = batch.unseen[slot]; left; left &= left - 1) {
        unsigned stripe = (unsigned)__builtin_ctzll(left);
        // seq_cst: pairs with the addition in epoch_enter, and as an acquire with epoch_leave.
        if (!atomic_load_explicit(&stripes[stripe].open[slot], memory_order_seq_cst))
            batch.unseen[slot] &= ~(UINT64_C(1) << stripe);
    }
    return !batch.unseen[slot];
}

static void release_batch(void)
{
    size_t n = 0;
    for (struct epoch_node *node = batch.first, *next; node; node = next, n++) {
        next = node->next;
        node->release(node);
    }
    batch.first = NULL;
    atomic_fetch_add_explicit(&released, n, memory_order_relaxed);
}

// Makes a batch if there is none, and releases it if no section can hold its objects. Returns true if it was
// released.
static bool advance(void)
{
    if (!batch.first) {
        // Acquire: pairs with the push in epoch_retire_list, so that the unlinking happens before our loads
        // of the counters.
        batch.first = atomic_exchange_explicit(&incoming, NULL, memory_order_acquire);
        if (!batch.first)
            return false;
        batch.unseen[0] = batch.unseen[1] = ~UINT64_C(0);
        batch.used = atomic_load_explicit(&current, memory_order_relaxed);
    }
    bool spare_empty = all_left(!batch.used);
    if (all_left(batch.used) && spare_empty) {
        release_batch();
        return true;
    }
    if (spare_empty)
        atomic_store_explicit(&current, !batch.used, memory_order_relaxed);
    return false;
}

static bool attempt(bool all)
{
    // Acquire and release pair with each other: one thread's batch is handed to the next.
    if (atomic_exchange_explicit(&busy, true, memory_order_acquire))
        return false;
    while (advance() && all)
        ;
    atomic_store_explicit(&busy, false, memory_order_release);
    return true;
}

void epoch_retire_list(struct epoch_node *first, struct epoch_node *last)
{
    size_t n = 1;
    for (struct epoch_node *node = first; node != last; node = node->next)
        n++;
    struct epoch_node *head = atomic_load_explicit(&incoming, memory_order_relaxed);
    // Release: pairs with the exchange in advance.
    do
        last->next = head;
    while (!atomic_compare_exchange_weak_explicit(&incoming, &head, first, memory_order_release,
                                                  memory_order_relaxed));
    size_t before = atomic_fetch_add_explicit(&retired, n, memory_order_relaxed);
    if (before / ATTEMPT != (before + n) / ATTEMPT)
        attempt(false);
}

void epoch_retire(struct epoch_node *node, void (*release)(struct epoch_node *))
{
    node->release = release;
    epoch_retire_list(node, node);
}

size_t epoch_reclaim(void)
{
    attempt(true);
    // The second attempt can succeed because the first may have swapped the counters.
    attempt(true);
    // Relaxed: the result is informative only. `released` is loaded first, so that the difference is not
    // negative.
    size_t done = atomic_load_explicit(&released, memory_order_relaxed);
    return atomic_load_explicit(&retired, memory_order_relaxed) - done;
}

static size_t length(const struct epoch_node *node)
{
    size_t n = 0;
    for (; node; node = node->next)
        n++;
    return n;
}

void epoch_after_fork(void)
{
    // Relaxed throughout: there is only one thread.
    for (unsigned i = 0; i < STRIPES * 2; i++)
        atomic_store_explicit(&stripes[i / 2].open[i % 2], 0, memory_order_relaxed);
    if (atomic_load_explicit(&busy, memory_order_relaxed))
        batch.first = NULL;
    atomic_store_explicit(&busy, false, memory_order_relaxed);
    // Another thread may have pushed objects without having added them to `retired`.
    size_t waiting = length(batch.first) + length(atomic_load_explicit(&incoming, memory_order_relaxed));
    atomic_store_explicit(&retired, waiting, memory_order_relaxed);
    atomic_store_explicit(&released, 0, memory_order_relaxed);
}
