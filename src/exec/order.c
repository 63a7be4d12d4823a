// SPDX-License-Identifier: MIT
#include "exec/order.h"

#include <errno.h>

#include "base/mem.h"

// How many loops hold both: a successor that leaves more loops is visited earlier, and so laid out later.
static uint32_t common_depth(const struct loops *l, uint32_t from, uint32_t to)
{
    uint32_t loop = l->inner[from];
    while (loop != GRAPH_NONE && !loops_contains(l, loop, to))
        loop = l->loops[loop].parent;
    return loop == GRAPH_NONE ? 0 : l->loops[loop].depth;
}

enum { MOST_SORTED = 64 };

struct visit {
    uint32_t block, next;
};

struct walk {
    const struct graph *graph;
    const struct loops *loops;
    uint32_t *sorted;  // successors, those to visit first in front
    bool *seen;
    struct visit *stack;
    uint32_t depth;
};

static void sort_successors(struct walk *w, uint32_t v)
{
    struct graph_nodes succ = graph_succ(w->graph, v);
    uint32_t *out = w->sorted + w->graph->succ_at[v];
    uint64_t keys[MOST_SORTED];
    for (uint32_t k = 0; k < succ.n; k++) {
        // Of equals, the next block in the source is visited last, to follow at once.
        uint64_t key = (uint64_t)common_depth(w->loops, v, succ.at[k]) << 1 | (succ.at[k] == v + 1);
        uint32_t at = k;
        for (; at > 0 && keys[at - 1] > key; at--) {
            out[at] = out[at - 1];
            keys[at] = keys[at - 1];
        }
        out[at] = succ.at[k];
        keys[at] = key;
    }
}

static void enter(struct walk *w, uint32_t v)
{
    w->seen[v] = true;
    // A switch with many targets has them in any order: sorting would take too long.
    struct graph_nodes succ = graph_succ(w->graph, v);
    if (succ.n <= MOST_SORTED)
        sort_successors(w, v);
    else
        for (uint32_t k = 0; k < succ.n; k++)
            w->sorted[w->graph->succ_at[v] + k] = succ.at[k];
    w->stack[w->depth++] = (struct visit){v, 0};
}

static void postorder(struct walk *w, uint32_t *order, uint32_t *n)
{
    enter(w, w->graph->entry);
    while (w->depth) {
        struct visit *top = &w->stack[w->depth - 1];
        uint32_t first = w->graph->succ_at[top->block], count = w->graph->succ_at[top->block + 1] - first;
        if (top->next == count) {
            order[(*n)++] = top->block;
            w->depth--;
            continue;
        }
        uint32_t to = w->sorted[first + top->next++];
        if (!w->seen[to])
            enter(w, to);
    }
}

int order_blocks(const struct cfg *c, const struct loops *l, uint32_t *order, uint32_t *n)
{
    struct walk w = {.graph = c->graph, .loops = l};
    w.sorted = mem_zalloc(c->graph->nedges + 1, sizeof *w.sorted);
    w.seen = mem_zalloc(c->nblocks, sizeof *w.seen);
    w.stack = mem_zalloc(c->nblocks, sizeof *w.stack);
    int err = w.sorted && w.seen && w.stack ? 0 : -ENOMEM;
    *n = 0;
    if (!err) {
        postorder(&w, order, n);
        for (uint32_t k = 0; k < *n / 2; k++) {
            uint32_t other = order[k];
            order[k] = order[*n - 1 - k];
            order[*n - 1 - k] = other;
        }
    }
    mem_free(w.sorted);
    mem_free(w.seen);
    mem_free(w.stack);
    return err;
}
