// SPDX-License-Identifier: MIT
// A directed graph for control flow: nodes are numbers, edges never change.
//
//   succ[succ_at[v] .. succ_at[v + 1])   successors of v, each once, in the order the edges were given
//   pred[pred_at[v] .. pred_at[v + 1])   predecessors of v, each once, by number
//   order[0 .. nreached)                 nodes reachable from the entry, in reverse postorder: order[0] is
//                                        the entry, and an edge u -> v with rank[v] <= rank[u] closes a cycle
//   order[rank[v]] == v                  rank[v] is GRAPH_NONE for unreachable nodes
#ifndef MOAT_FLOW_GRAPH_H
#define MOAT_FLOW_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define GRAPH_NONE UINT32_MAX

struct graph_edge {
    uint32_t from, to;
};

struct graph {
    struct arena arena;
    uint32_t n, nedges, nreached, entry;
    uint32_t *succ_at, *succ;
    uint32_t *pred_at, *pred;
    uint32_t *order, *rank;
};

// A slice of a graph's arrays.
struct graph_nodes {
    const uint32_t *at;
    uint32_t n;
};

// Builds a graph. Requires entry < n and both ends of every edge < n. An edge given twice counts once.
// Returns 0, -ENOMEM, or -E2BIG for more edges than 32 bits can count.
int graph_build(uint32_t n, uint32_t entry, const struct graph_edge *edges, size_t nedges,
                struct graph **out);
void graph_free(struct graph *g);
bool graph_valid(const struct graph *g);

static inline struct graph_nodes graph_succ(const struct graph *g, uint32_t v)
{
    return (struct graph_nodes){g->succ + g->succ_at[v], g->succ_at[v + 1] - g->succ_at[v]};
}

static inline struct graph_nodes graph_pred(const struct graph *g, uint32_t v)
{
    return (struct graph_nodes){g->pred + g->pred_at[v], g->pred_at[v + 1] - g->pred_at[v]};
}

static inline bool graph_reached(const struct graph *g, uint32_t v)
{
    return g->rank[v] != GRAPH_NONE;
}

#endif
