// SPDX-License-Identifier: MIT
// Dominators and post-dominators.
//
// a dominates b if every path from the entry to b goes through a; so b dominates itself. Nodes that cannot be
// reached from the entry are in no tree: they have no dominator and dominate nothing but themselves.
//
// a post-dominates b if every path from b to the exit goes through a. The exit is a node of its own, numbered
// g->n, behind every node that `exits` marks (a node may exit and also have successors: a guarded ret). So
// that each node has an answer, also one that runs forever, the exit also follows, of every strongly
// connected component that is never left and never exits, the node that is first in reverse postorder (the
// header, if it is a loop), or the one of least number if the entry does not lead there. Code that cannot be
// reached has post-dominators like any other, and changes nobody else's.
//
//   order[pre[v]] == v;  the subtree of v is order[pre[v] .. pre[v] + size[v])
//   a dominates b  <=>  pre[a] <= pre[b] < pre[a] + size[a]
//   idom[v] is GRAPH_NONE for the root and for what is in no tree; pre[v] only for the latter
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

// O(edges * log nodes), whatever the graph. 0 or -ENOMEM. Both keep nothing of the graph.
int dom_build(const struct graph *g, struct dom **out);
int dom_build_post(const struct graph *g, const bool *exits, struct dom **out);
void dom_free(struct dom *d);

// g: the graph that d was built from with dom_build.
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

// The nearest node that dominates both, GRAPH_NONE if one of them is in no tree.
uint32_t dom_common(const struct dom *d, uint32_t a, uint32_t b);

#endif
