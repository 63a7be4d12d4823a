// SPDX-License-Identifier: MIT
// All words that were delivered: one list for each monitor, with a deliverer on one side and the monitor on the other,
// and no operation that either could wait for.
//
//   head ──▶ first ──▶ node ──▶ node ──▶ NULL        newest words first
//   └ the deliverer's ┘ └─── the monitor's ───┘
//
// The head holds no words and is never removed. Only the deliverer writes head.next, and it appends words only to the
// node that is first; when that is full it puts a new one between head and first. The monitor removes nodes, but never
// the first: so nobody but the monitor writes the `next` of a node once it is linked. It may clear words of any
// node, the first included: the deliverer writes only behind `count`. Nodes that the monitor removes go back to the
// deliverer through `spare`.
//
// What holds between two operations:
//   words [0, count) of a node are words or 0; those behind are nobody's business
//   words of a node that the monitor has passed are sorted by address, unless it was merged then
//   count of every node but the first and its successor pairs sums to more than a node's room (neighbours are merged)
#ifndef MOAT_HEAP_WAREHOUSE_H
#define MOAT_HEAP_WAREHOUSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/guarded.h"

enum { WAREHOUSE_KEY_SHIFT = 21 };  // words are sorted by the bits below the uppermost 21: their addresses

#ifndef WAREHOUSE_ROOM
#define WAREHOUSE_ROOM 510  // words of a node: a page with its two other fields
#endif

struct warehouse_node {
    struct warehouse_node *_Atomic next;
    _Atomic uint64_t count;
    _Atomic uint64_t words[WAREHOUSE_ROOM];
};

struct warehouse {
    struct warehouse_node head;  // its words are not used
    struct warehouse_node *_Atomic spare;
    struct warehouse_node *own_spare;  // the deliverer's, taken from `spare`
    struct guarded_pool pool;          // the deliverer's
    uint64_t nodes;                    // the deliverer's: made so far
};

void warehouse_init(struct warehouse *w);

// Deliverer. 0 or -ENOMEM.
int warehouse_add(struct warehouse *w, uint64_t word);

// Monitor: shows each node's words, newest node first; `visit` may set words to 0, which removes them. It returns
// false to stop. Returns whether all was visited.
typedef bool warehouse_visitor(void *ctx, _Atomic uint64_t *words, size_t count);
bool warehouse_cruise(struct warehouse *w, warehouse_visitor *visit, void *ctx);

#endif
