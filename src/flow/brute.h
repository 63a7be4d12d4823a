// SPDX-License-Identifier: MIT
// For tests: the answers of this folder's analyses, computed straight from their definitions and as slowly as
// that is. Nothing here uses the code under test except struct graph's edges.
#ifndef MOAT_FLOW_BRUTE_H
#define MOAT_FLOW_BRUTE_H

#include <stdlib.h>
#include <string.h>

#include "flow/graph.h"

// A fixed pseudo-random sequence from a seed: xorshift64*.
struct brute_random {
    uint64_t state;
};

static inline uint32_t brute_below(struct brute_random *r, uint32_t n)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (uint32_t)(((r->state * 0x2545F4914F6CDD1DULL) >> 33) % n);
}

// Walks from `from` along the edges or against them, never onto `without` (GRAPH_NONE: no node is forbidden).
static inline void brute_walk(const struct graph *g, bool backward, uint32_t from, uint32_t without,
                              bool *seen)
{
    uint32_t *stack = malloc((size_t)g->n * sizeof *stack);
    uint32_t depth = 0;
    memset(seen, 0, g->n);
    if (from != without) {
        seen[from] = true;
        stack[depth++] = from;
    }
    while (depth) {
        uint32_t at = stack[--depth];
        struct graph_nodes to = backward ? graph_pred(g, at) : graph_succ(g, at);
        for (uint32_t i = 0; i < to.n; i++) {
            if (to.at[i] == without || seen[to.at[i]])
                continue;
            seen[to.at[i]] = true;
            stack[depth++] = to.at[i];
        }
    }
    free(stack);
}

// Sets seen[v] if v can be reached from `from` without visiting `without`.
static inline void brute_forward(const struct graph *g, uint32_t from, uint32_t without, bool *seen)
{
    brute_walk(g, false, from, without, seen);
}

// Sets seen[v] if v leads to `from` without visiting `without`.
static inline void brute_backward(const struct graph *g, uint32_t from, uint32_t without, bool *seen)
{
    brute_walk(g, true, from, without, seen);
}

// Sets seen[v] if v leads to a marked node.
static inline void brute_leads_to(const struct graph *g, const bool *marked, bool *seen)
{
    bool *one = malloc(g->n);
    memset(seen, 0, g->n);
    for (uint32_t v = 0; v < g->n; v++) {
        if (!marked[v] || seen[v])
            continue;
        brute_backward(g, v, GRAPH_NONE, one);
        for (uint32_t u = 0; u < g->n; u++)
            seen[u] |= one[u];
    }
    free(one);
}

// Marks the nodes that the exit follows: those in `exits`, and one of every trap that nothing leaves; see
// flow/dom.h.
static inline void brute_exits(const struct graph *g, const bool *exits, bool *ends)
{
    bool *ahead = malloc(g->n), *behind = malloc(g->n), *leaves = malloc(g->n);
    memcpy(ends, exits, g->n);
    brute_leads_to(g, exits, leaves);
    for (uint32_t v = 0; v < g->n; v++) {
        bool picked = !leaves[v];
        if (!picked)
            continue;
        brute_forward(g, v, GRAPH_NONE, ahead);
        brute_backward(g, v, GRAPH_NONE, behind);
        for (uint32_t u = 0; u < g->n && picked; u++) {
            bool better = g->rank[u] < g->rank[v] || (g->rank[u] == g->rank[v] && u < v);
            picked = !ahead[u] || (behind[u] && !better);
        }
        ends[v] |= picked;
    }
    free(ahead);
    free(behind);
    free(leaves);
}

#endif
