// SPDX-License-Identifier: MIT
#include "heap/ring.h"

#include <errno.h>

#include "base/checked.h"
#include "heap/guarded.h"

static size_t bytes_of(size_t slots)
{
    return sizeof(struct ring) + slots * sizeof(uint64_t);
}

static struct ring *ring_new(size_t slots)
{
    struct ring *r = guarded_map(bytes_of(slots));
    if (r)
        r->mask = slots - 1;
    return r;
}

int ring_init(struct ring_list *l, size_t slots)
{
    checked_assert(slots && !(slots & (slots - 1)));
    l->in = l->out = ring_new(slots);
    return l->in ? 0 : -ENOMEM;
}

static void release(struct ring *r)
{
    guarded_unmap(r, bytes_of(r->mask + 1));
}

void ring_free(struct ring_list *l)
{
    for (struct ring *r = l->out; r;) {
        // Relaxed: nobody is at work.
        struct ring *next = atomic_load_explicit(&r->next, memory_order_relaxed);
        release(r);
        r = next;
    }
    l->in = l->out = NULL;
}

static bool is_full(struct ring *r, uint64_t put)
{
    if (put - r->taken_seen <= r->mask)
        return false;
    // Acquire: with the consumer's release in ring_pop; it has read the slots before they are written again.
    r->taken_seen = atomic_load_explicit(&r->taken, memory_order_acquire);
    return put - r->taken_seen > r->mask;
}

// Returns whether what the producer can check of the ring it writes to holds, while the consumer is at work.
static bool in_is_valid(const struct ring *r)
{
    uint64_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&r->taken, memory_order_acquire);  // with ring_pop's release
    return r->taken_seen <= taken && taken <= put && put - r->taken_seen <= r->mask + 1 &&
           !atomic_load_explicit(&r->next, memory_order_relaxed);
}

// The same for the consumer's ring, while the producer is at work.
static bool out_is_valid(const struct ring *r)
{
    uint64_t put = atomic_load_explicit(&r->put, memory_order_acquire);  // with ring_push's release
    uint64_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);
    return taken <= put && put - taken <= r->mask + 1;
}

int ring_push(struct ring_list *l, uint64_t word)
{
    struct ring *r = l->in;
    // Relaxed: only this thread writes it.
    uint64_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
    if (is_full(r, put)) {
        struct ring *larger = ring_new((r->mask + 1) * 2);
        if (!larger)
            return -ENOMEM;
        // Release: with the acquire in ring_pop; the consumer sees the last `put` of this ring before it
        // leaves it.
        atomic_store_explicit(&r->next, larger, memory_order_release);
        l->in = r = larger;
        put = 0;
    }
    atomic_store_explicit(&r->slots[put & r->mask], word, memory_order_relaxed);
    // Release: with the acquire in ring_pop; whoever sees the count sees the slot.
    atomic_store_explicit(&r->put, put + 1, memory_order_release);
    checked_assert(in_is_valid(r));
    return 0;
}

size_t ring_pop(struct ring_list *l, uint64_t *words, size_t most)
{
    size_t n = 0;
    while (n < most) {
        struct ring *r = l->out;
        // `next` is read first: a ring that has one gets no more words, so the `put` read after it is final.
        struct ring *next = atomic_load_explicit(&r->next, memory_order_acquire);  // with ring_push's release
        uint64_t put = atomic_load_explicit(&r->put, memory_order_acquire);        // with ring_push's release
        uint64_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);    // only we write it
        for (; n < most && taken < put; taken++)
            words[n++] = atomic_load_explicit(&r->slots[taken & r->mask], memory_order_relaxed);
        // Release: with the acquire in is_full.
        atomic_store_explicit(&r->taken, taken, memory_order_release);
        if (taken < put || !next)
            break;
        l->out = next;
        release(r);
    }
    checked_assert(out_is_valid(l->out));
    return n;
}

bool ring_empty(const struct ring_list *l)
{
    const struct ring *r = l->out;
    return !atomic_load_explicit(&r->next, memory_order_acquire) &&
           atomic_load_explicit(&r->put, memory_order_acquire) ==
               atomic_load_explicit(&r->taken, memory_order_relaxed);
}

void ring_producer_died(struct ring_list *l)
{
    for (struct ring *r; (r = atomic_load_explicit(&l->in->next, memory_order_relaxed));)
        l->in = r;
}

uint64_t ring_waiting(const struct ring_list *l)
{
    // Relaxed: an estimate.
    return atomic_load_explicit(&l->in->put, memory_order_relaxed) -
           atomic_load_explicit(&l->in->taken, memory_order_relaxed);
}

bool ring_valid(const struct ring_list *l)
{
    const struct ring *last = NULL;
    for (const struct ring *r = l->out; r; r = atomic_load_explicit(&r->next, memory_order_relaxed)) {
        uint64_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
        uint64_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);
        if (taken > put || put - r->taken_seen > r->mask + 1 || r->taken_seen > taken ||
            (r->mask & (r->mask + 1)))
            return false;
        if (last && (taken || r->mask != 2 * last->mask + 1))
            return false;
        last = r;
    }
    return last && last == l->in;
}
