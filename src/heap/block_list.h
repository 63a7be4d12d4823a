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
// What holds between two operations (block_list_valid):
//   every node that was made is in one of three lists: nodes = |linked| + |spare| + |own_spare|
//   1 <= count <= room for each that is linked
//   of its words, [0, count) are words or 0; those behind are nobody's business
// and after a whole cruise, for the nodes behind the one that was first when it began:
//   words [0, count) are words, none is 0; in the order of their addresses, unless the node was merged then
//   count(n) + count(n->next) > room: neighbours that had room for each other were merged
#ifndef MOAT_HEAP_BLOCK_LIST_H
#define MOAT_HEAP_BLOCK_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/guarded.h"

enum { BLOCK_LIST_KEY_SHIFT = 21 };  // words are sorted by the bits below the uppermost 21: their addresses

#ifndef BLOCK_LIST_ROOM
#define BLOCK_LIST_ROOM 510  // words of a node: a page with its two other fields
#endif

struct block_list_node {
    struct block_list_node *_Atomic next;
    _Atomic uint64_t count;
    _Atomic uint64_t words[BLOCK_LIST_ROOM];
};

struct block_list {
    struct block_list_node head;  // its words are not used
    struct block_list_node *_Atomic spare;
    struct block_list_node *own_spare;  // the deliverer's, taken from `spare`
    struct guarded_pool pool;           // the deliverer's
    uint64_t nodes;                     // the deliverer's: made so far
};

void block_list_init(struct block_list *w);

// Deliverer. 0 or -ENOMEM.
int block_list_add(struct block_list *w, uint64_t word);

// Monitor: shows each node's words, newest node first; `visit` may set words to 0, which removes them. It returns
// false to stop. Returns whether all was visited.
typedef bool block_list_visitor(void *ctx, _Atomic uint64_t *words, size_t count);
bool block_list_cruise(struct block_list *w, block_list_visitor *visit, void *ctx);

bool block_list_valid(const struct block_list *w);  // when neither side is at work

#endif
