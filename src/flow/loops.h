// SPDX-License-Identifier: MIT
// Loops.
//
// An edge t -> h where h dominates t is a back edge. Its natural loop is h, the header, and all nodes that
// lead to t without passing h. Back edges to one header make one loop. Only nodes reachable from the entry
// count. Two natural loops are disjoint or one contains the other.
//
// Without its back edges, a reducible graph has no cycle. In an irreducible one, the strongly connected
// components of more than one node that remain are the irreducible regions: cycles without a header that
// dominates them. A region may lie in a loop, around one, or across its border. So every cycle lies in a
// natural loop or in a region, and a node in neither runs at most once.
//
//   loops[i].parent < i, or GRAPH_NONE: outer loops first, by the header's place in reverse postorder
//   body of loop l: nodes[l.first .. l.first + l.count), its header first, nested loops' nodes included
//   nodes[place[v]] == v; place[v] == GRAPH_NONE <=> inner[v] == GRAPH_NONE: v is in no loop
//   depth(l) == 1 + depth(parent)
#ifndef MOAT_FLOW_LOOPS_H
#define MOAT_FLOW_LOOPS_H

#include "flow/dom.h"
#include "flow/graph.h"

struct loop {
    uint32_t header;
    uint32_t parent;  // the smallest loop around it, GRAPH_NONE if none
    uint32_t depth;   // 1: no loop around it
    uint32_t first, count;
    uint32_t first_latch, nlatches;  // latches[first_latch ..]: where its back edges start
    bool irreducible;  // some node is in a region: it has cycles that this description does not cover
};

struct loops {
    struct arena arena;
    uint32_t n, nloops, nregions;
    struct loop *loops;
    uint32_t *inner;  // by node: the smallest loop it is in
    uint32_t *nodes, *place;
    uint32_t *latches;
    uint32_t *region;  // by node: its irreducible region, GRAPH_NONE if it is in none
};

// Finds the loops of g; d must be its dominators. Takes near linear time; keeps no pointer to either. Returns
// 0 or -ENOMEM.
int loops_build(const struct graph *g, const struct dom *d, struct loops **out);
void loops_free(struct loops *l);
bool loops_valid(const struct loops *l, const struct graph *g, const struct dom *d);

static inline bool loops_contains(const struct loops *l, uint32_t loop, uint32_t v)
{
    return l->place[v] != GRAPH_NONE && l->place[v] - l->loops[loop].first < l->loops[loop].count;
}

// Returns the number of natural loops that v is in.
static inline uint32_t loops_depth(const struct loops *l, uint32_t v)
{
    return l->inner[v] == GRAPH_NONE ? 0 : l->loops[l->inner[v]].depth;
}

// Returns whether v may run more than once per run of the entry.
static inline bool loops_repeats(const struct loops *l, uint32_t v)
{
    return l->inner[v] != GRAPH_NONE || l->region[v] != GRAPH_NONE;
}

#endif
