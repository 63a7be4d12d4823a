// SPDX-License-Identifier: MIT
// A queue of words from one thread to another. The producer never waits and never drops words: when its ring
// is full it makes one twice as large and continues there; the consumer empties the old one, frees it and
// follows.
//
// What holds between two operations, for each ring (ring_valid):
//   mask + 1 is a power of two
//   taken_seen <= taken <= put <= taken_seen + mask + 1
//   slots [taken, put) modulo mask + 1 hold the words that were put and not taken, oldest first
//   next != NULL: the producer never touches this ring again; next->mask + 1 = 2 (mask + 1)
//   taken = 0 unless the ring is `out`
// `in` is the last of the list that starts at `out`, and its next is NULL. Each side may rely on what it
// writes itself: the producer on put and taken_seen of `in`, the consumer on taken of `out`. What the other
// side writes only grows.
#ifndef MOAT_HEAP_RING_H
#define MOAT_HEAP_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    uint64_t mask;
    struct ring *_Atomic next;
    _Alignas(64) _Atomic uint64_t put;    // written by the producer
    uint64_t taken_seen;                  // what the producer last read of `taken`
    _Alignas(64) _Atomic uint64_t taken;  // written by the consumer
    _Alignas(64) _Atomic uint64_t slots[];
};

struct ring_list {
    struct ring *in;   // the producer's
    struct ring *out;  // the consumer's
};

// `slots`: of the first ring, a power of two. Returns 0 or -ENOMEM.
int ring_init(struct ring_list *l, size_t slots);
void ring_free(struct ring_list *l);  // only while neither side is at work

// Producer. Returns 0, or -ENOMEM if the ring is full and there is no memory for another; then the word was
// not put.
int ring_push(struct ring_list *l, uint64_t word);

// Consumer. Takes up to `most` words and returns how many; 0 if there are none.
size_t ring_pop(struct ring_list *l, uint64_t *words, size_t most);

// Consumer. Returns whether no words wait; the producer may be adding some.
bool ring_empty(const struct ring_list *l);

// Repairs the list after the producer stopped in the middle of a push for good.
void ring_producer_died(struct ring_list *l);

// Returns the number of words in the producer's present ring; an estimate.
uint64_t ring_waiting(const struct ring_list *l);

bool ring_valid(const struct ring_list *l);  // only while neither side is at work

#endif
