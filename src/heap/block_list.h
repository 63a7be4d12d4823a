// SPDX-License-Identifier: MIT
// All words that were delivered: one list for each monitor, with the deliverer on one side and the monitor on
// the other. No operation of either side waits for the other.
//
//   head ──▶ first ──▶ node ──▶ node ──▶ NULL        newest words first
//   └ the deliverer's ┘ └─── the monitor's ───┘
//
// The head holds no words and is never removed. Only the deliverer writes head.next, and it appends words
// only to the first node; when that is full it inserts a new node between head and first. The monitor removes
// nodes, but never the first one, so only the monitor writes the `next` of a linked node. It may clear words
// of any node, including the first: the deliverer writes only at or behind `count`. Nodes that the monitor
// removes return to the deliverer through `spare`.
//
// What holds between two operations (block_list_valid):
//   every node is in one of three lists: nodes = |linked| + |spare| + |own_spare|
//   1 <= count <= BLOCK_LIST_ROOM for each linked node
//   words [0, count) are words or 0; those behind are unspecified
// and after a complete pass, for the nodes behind the one that was first when it began:
//   words [0, count) are not 0, and sorted by address unless the node was merged in this pass or `unsorted`
//   count(n) + count(n->next) > BLOCK_LIST_ROOM: neighbours that fit into one node were merged
#ifndef MOAT_HEAP_BLOCK_LIST_H
#define MOAT_HEAP_BLOCK_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/guarded.h"

enum { BLOCK_LIST_KEY_SHIFT = 21 };  // the sort key is a word without its upper 21 bits: its address

#ifndef BLOCK_LIST_ROOM
#define BLOCK_LIST_ROOM 510  // words of a node: with the two other fields, a page
#endif

struct block_list_node {
    struct block_list_node *_Atomic next;
    _Atomic uint64_t count;
    _Atomic uint64_t words[BLOCK_LIST_ROOM];
};

struct block_list {
    struct block_list_node head;  // its words are unused
    struct block_list_node *_Atomic spare;
    struct block_list_node *own_spare;  // the deliverer's; taken from `spare`
    struct guarded_pool pool;           // the deliverer's
    uint64_t nodes;                     // the deliverer's: nodes made so far
    bool unsorted;                      // the monitor's: the order serves later passes, and there is none
};

void block_list_init(struct block_list *w);

// Deliverer: appends a word. Returns 0 or -ENOMEM.
int block_list_add(struct block_list *w, uint64_t word);

// Monitor: makes one pass, which shows each node's words to `visit`, newest node first, and compacts the
// list. `visit` may set words to 0, which removes them, and returns false to stop the pass. Returns whether
// the pass was complete.
typedef bool block_list_visitor(void *ctx, _Atomic uint64_t *words, size_t count);
bool block_list_pass(struct block_list *w, block_list_visitor *visit, void *ctx);

bool block_list_valid(const struct block_list *w);  // only while neither side is at work

#endif
