// SPDX-License-Identifier: MIT
#include "flow/graph.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "flow/build.h"

struct input {
    const struct graph_edge *edges;
    size_t nedges;
};

// Sorts edges by source (counting sort), then drops repeated ones in place: seen[to] is the last source with
// an edge to it.
static void fill_succ(struct graph *g, const struct input *in, struct arena *scratch)
{
    uint32_t *next = ARENA_ARRAY(scratch, uint32_t, (size_t)g->n + 1);
    uint32_t *all = ARENA_ARRAY(scratch, uint32_t, in->nedges + 1);
    uint32_t *seen = ARENA_ARRAY(scratch, uint32_t, g->n);
    for (size_t i = 0; i < in->nedges; i++)
        next[in->edges[i].from + 1]++;
    for (uint32_t v = 0; v < g->n; v++)
        next[v + 1] += next[v];
    for (size_t i = 0; i < in->nedges; i++)
        all[next[in->edges[i].from]++] = in->edges[i].to;
    uint32_t from = 0;
    for (uint32_t v = 0; v < g->n; v++) {
        g->succ_at[v] = g->nedges;
        for (uint32_t i = from; i < next[v]; i++) {
            if (seen[all[i]] == v + 1)
                continue;
            seen[all[i]] = v + 1;
            all[g->nedges++] = all[i];
        }
        from = next[v];
    }
    g->succ_at[g->n] = g->nedges;
    g->succ = ARENA_ARRAY(&g->arena, uint32_t, (size_t)g->nedges + 1);
    memcpy(g->succ, all, g->nedges * sizeof *all);
}

static void fill_pred(struct graph *g)
{
    for (uint32_t i = 0; i < g->nedges; i++)
        g->pred_at[g->succ[i] + 1]++;
    for (uint32_t v = 0; v < g->n; v++)
        g->pred_at[v + 1] += g->pred_at[v];
    // pred_at[v + 1] is now the end of v's list; filling the list from its end turns it into the start.
    for (uint32_t v = g->n; v-- > 0;) {
        for (uint32_t i = g->succ_at[v + 1]; i-- > g->succ_at[v];)
            g->pred[--g->pred_at[g->succ[i] + 1]] = v;
    }
    for (uint32_t v = 0; v < g->n; v++)
        g->pred_at[v] = g->pred_at[v + 1];
    g->pred_at[g->n] = g->nedges;
}

// Numbers nodes depth first with an explicit stack: recursion over a chain of a million blocks would overflow
// ours.
static void number_nodes(struct graph *g, struct arena *scratch)
{
    uint32_t *stack = ARENA_ARRAY(scratch, uint32_t, g->n);
    uint32_t *next = ARENA_ARRAY(scratch, uint32_t, g->n);
    uint32_t depth = 0, done = g->n;
    for (uint32_t v = 0; v < g->n; v++) {
        g->rank[v] = GRAPH_NONE;
        next[v] = g->succ_at[v];
    }
    stack[depth++] = g->entry;
    g->rank[g->entry] = 0;
    while (depth) {
        uint32_t v = stack[depth - 1];
        if (next[v] == g->succ_at[v + 1]) {
            g->order[--done] = v;
            depth--;
            continue;
        }
        uint32_t to = g->succ[next[v]++];
        if (g->rank[to] == GRAPH_NONE) {
            g->rank[to] = 0;
            stack[depth++] = to;
        }
    }
    g->nreached = g->n - done;
    memmove(g->order, g->order + done, g->nreached * sizeof *g->order);
    for (uint32_t i = 0; i < g->nreached; i++)
        g->rank[g->order[i]] = i;
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    struct graph *g = result;
    g->succ_at = ARENA_ARRAY(keep, uint32_t, (size_t)g->n + 1);
    g->pred_at = ARENA_ARRAY(keep, uint32_t, (size_t)g->n + 1);
    fill_succ(g, input, scratch);
    g->pred = ARENA_ARRAY(keep, uint32_t, (size_t)g->nedges + 1);
    fill_pred(g);
    g->order = ARENA_ARRAY(keep, uint32_t, g->n);
    g->rank = ARENA_ARRAY(keep, uint32_t, g->n);
    number_nodes(g, scratch);
    return 0;
}

int graph_build(uint32_t n, uint32_t entry, const struct graph_edge *edges, size_t nedges, struct graph **out)
{
    assert(entry < n);
    if (n >= GRAPH_NONE - 1 || nedges >= GRAPH_NONE)
        return -E2BIG;
    struct graph *g = mem_zalloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    struct input in = {edges, nedges};
    g->n = n;
    g->entry = entry;
    int err = build_run(fill, g, &in, &g->arena);
    if (err) {
        mem_free(g);
        return err;
    }
    *out = g;
    return 0;
}

void graph_free(struct graph *g)
{
    if (!g)
        return;
    arena_free(&g->arena);
    mem_free(g);
}

static bool has(struct graph_nodes list, uint32_t v)
{
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i] == v)
            return true;
    return false;
}

// Checks that each edge is stored once in both directions, and that successors of reached nodes are reached.
bool graph_valid(const struct graph *g)
{
    if (g->succ_at[g->n] != g->nedges || g->pred_at[g->n] != g->nedges || g->order[0] != g->entry)
        return false;
    for (uint32_t v = 0; v < g->n; v++) {
        struct graph_nodes to = graph_succ(g, v);
        for (uint32_t i = 0; i < to.n; i++) {
            if (!has(graph_pred(g, to.at[i]), v) || has((struct graph_nodes){to.at, i}, to.at[i]))
                return false;
            if (graph_reached(g, v) && !graph_reached(g, to.at[i]))
                return false;
        }
        if (graph_reached(g, v) && g->order[g->rank[v]] != v)
            return false;
    }
    return true;
}
