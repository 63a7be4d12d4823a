// SPDX-License-Identifier: MIT
// Dominators and post-dominators.
//
// a dominates b if every path from the entry to b goes through a; so b dominates itself. Nodes that cannot be
// reached from the entry are in no tree: they have no dominator and dominate only themselves.
//
// a post-dominates b if every path from b to the exit goes through a. The exit is a node of its own, numbered
// g->n, and follows every node that `exits` marks (a node may exit and also have successors: a guarded ret).
// So that each node has an answer, even one that runs forever, the exit also follows one node of every
// strongly connected component that is never left and never exits: the one that is first in reverse postorder
// (the header, if it is a loop), or the one with the least number if the entry does not reach the component.
// Unreachable code has post-dominators like any other and does not affect those of other nodes.
//
//   order[pre[v]] == v;  the subtree of v is order[pre[v] .. pre[v] + size[v])
//   a dominates b  <=>  pre[a] <= pre[b] < pre[a] + size[a]
//   idom[v] is GRAPH_NONE for the root and for nodes in no tree; pre[v] only for the latter
#ifndef MOAT_FLOW_DOM_H
#define MOAT_FLOW_DOM_H

#include "flow/graph.h"

struct dom {
    struct arena arena;
    uint32_t n, root, nreached;
    uint32_t *idom;   // immediate dominator
    uint32_t *pre;    // number in a preorder walk of the tree
    uint32_t *size;   // nodes in its subtree
    uint32_t *order;  // nodes in preorder: a parent before its children
};

// Both take O(edges * log nodes) for any graph and keep no pointer to it. They return 0 or -ENOMEM.
int dom_build(const struct graph *g, struct dom **out);
int dom_build_post(const struct graph *g, const bool *exits, struct dom **out);
void dom_free(struct dom *d);

// Checks the invariants. g must be the graph that dom_build built d from.
bool dom_valid(const struct dom *d, const struct graph *g);

static inline bool dom_dominates(const struct dom *d, uint32_t a, uint32_t b)
{
    if (d->pre[a] == GRAPH_NONE || d->pre[b] == GRAPH_NONE)
        return a == b;
    return d->pre[b] - d->pre[a] < d->size[a];
}

static inline bool dom_strictly(const struct dom *d, uint32_t a, uint32_t b)
{
    return a != b && dom_dominates(d, a, b);
}

// Returns the nearest node that dominates both, GRAPH_NONE if one of them is in no tree.
uint32_t dom_common(const struct dom *d, uint32_t a, uint32_t b);

#endif
