// SPDX-License-Identifier: MIT
// Lengauer and Tarjan's algorithm, in the variant with path compression only. Iterative data-flow is shorter,
// but takes quadratic time on graphs that a hostile module can contain.
#include "flow/dom.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "flow/build.h"
#include "flow/scc.h"

// The search numbers nodes in depth-first preorder: a parent's number is less than its child's.
struct search {
    const struct graph *g;
    uint32_t n;
    uint32_t *node, *number;  // by number: the node; by node: the number, GRAPH_NONE if not visited
    uint32_t *parent;         // in the depth-first tree; after compression, an ancestor
    uint32_t *semi, *best;    // semidominator; the node of least semi on the compressed path
    uint32_t *idom;
    uint32_t *bucket, *next_in_bucket;
    uint32_t *stack;
};

static void number_nodes(struct search *s, uint32_t *next)
{
    const struct graph *g = s->g;
    uint32_t depth = 0;
    for (uint32_t v = 0; v < g->n; v++) {
        s->number[v] = GRAPH_NONE;
        next[v] = g->succ_at[v];
    }
    s->number[g->entry] = 0;
    s->node[s->n++] = g->entry;
    s->stack[depth++] = g->entry;
    while (depth) {
        uint32_t v = s->stack[depth - 1];
        if (next[v] == g->succ_at[v + 1]) {
            depth--;
            continue;
        }
        uint32_t to = g->succ[next[v]++];
        if (s->number[to] != GRAPH_NONE)
            continue;
        s->number[to] = s->n;
        s->parent[s->n] = s->number[v];
        s->node[s->n++] = to;
        s->stack[depth++] = to;
    }
}

// Returns the node with the least semidominator between v and the root of its tree in the forest of nodes >=
// linked.
static uint32_t eval(struct search *s, uint32_t v, uint32_t linked)
{
    if (v < linked)
        return v;
    uint32_t depth = 0;
    while (s->parent[v] >= linked) {
        s->stack[depth++] = v;
        v = s->parent[v];
    }
    while (depth) {
        uint32_t up = v;
        v = s->stack[--depth];
        if (s->semi[s->best[up]] < s->semi[s->best[v]])
            s->best[v] = s->best[up];
        s->parent[v] = s->parent[up];
    }
    return s->best[v];
}

static void find_idoms(struct search *s)
{
    for (uint32_t v = 0; v < s->n; v++) {
        s->semi[v] = s->best[v] = v;
        s->bucket[v] = GRAPH_NONE;
    }
    for (uint32_t v = s->n - 1; v > 0; v--) {
        uint32_t parent = s->parent[v];
        struct graph_nodes from = graph_pred(s->g, s->node[v]);
        for (uint32_t i = 0; i < from.n; i++) {
            uint32_t p = s->number[from.at[i]];
            if (p == GRAPH_NONE)
                continue;
            uint32_t semi = s->semi[eval(s, p, v + 1)];
            if (semi < s->semi[v])
                s->semi[v] = semi;
        }
        s->next_in_bucket[v] = s->bucket[s->semi[v]];
        s->bucket[s->semi[v]] = v;
        for (uint32_t w = s->bucket[parent]; w != GRAPH_NONE; w = s->next_in_bucket[w]) {
            uint32_t best = eval(s, w, v);
            s->idom[w] = s->semi[best] < parent ? best : parent;
        }
        s->bucket[parent] = GRAPH_NONE;
    }
    for (uint32_t v = 1; v < s->n; v++)
        if (s->idom[v] != s->semi[v])
            s->idom[v] = s->idom[s->idom[v]];
}

// Numbers the dominator tree. Search numbers are in depth-first preorder, so idom[v] < v, and a loop from the
// last node on sums up the sizes.
static void number_tree(struct dom *d, const struct search *s, struct arena *scratch)
{
    uint32_t *next = ARENA_ARRAY(scratch, uint32_t, s->n);
    for (uint32_t v = 0; v < d->n; v++)
        d->idom[v] = d->pre[v] = GRAPH_NONE;
    for (uint32_t v = s->n; v-- > 0;) {
        d->size[s->node[v]]++;
        if (v)
            d->size[s->node[s->idom[v]]] += d->size[s->node[v]];
    }
    for (uint32_t v = 0; v < s->n; v++) {
        uint32_t node = s->node[v], pre = 0;
        if (v) {
            pre = next[s->idom[v]];
            next[s->idom[v]] += d->size[node];
            d->idom[node] = s->node[s->idom[v]];
        }
        next[v] = pre + 1;
        d->pre[node] = pre;
        d->order[pre] = node;
    }
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    struct dom *d = result;
    const struct graph *g = input;
    d->idom = ARENA_ARRAY(keep, uint32_t, g->n);
    d->pre = ARENA_ARRAY(keep, uint32_t, g->n);
    d->size = ARENA_ARRAY(keep, uint32_t, g->n);
    d->order = ARENA_ARRAY(keep, uint32_t, g->n);
    struct search s = {
        .g = g,
        .node = ARENA_ARRAY(scratch, uint32_t, g->n),
        .number = ARENA_ARRAY(scratch, uint32_t, g->n),
        .parent = ARENA_ARRAY(scratch, uint32_t, g->n),
        .semi = ARENA_ARRAY(scratch, uint32_t, g->n),
        .best = ARENA_ARRAY(scratch, uint32_t, g->n),
        .idom = ARENA_ARRAY(scratch, uint32_t, g->n),
        .bucket = ARENA_ARRAY(scratch, uint32_t, g->n),
        .next_in_bucket = ARENA_ARRAY(scratch, uint32_t, g->n),
        .stack = ARENA_ARRAY(scratch, uint32_t, g->n),
    };
    number_nodes(&s, s.semi);
    find_idoms(&s);
    d->nreached = s.n;
    number_tree(d, &s, scratch);
    return 0;
}

int dom_build(const struct graph *g, struct dom **out)
{
    struct dom *d = mem_zalloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->n = g->n;
    d->root = g->entry;
    int err = build_run(fill, d, g, &d->arena);
    if (err) {
        mem_free(d);
        return err;
    }
    *out = d;
    return 0;
}

// Marks all nodes that lead to a marked node and returns the number of marked nodes. stack must have room for
// all nodes.
static uint32_t mark_backwards(const struct graph *g, bool *mark, uint32_t *stack)
{
    uint32_t depth = 0, count = 0;
    for (uint32_t v = 0; v < g->n; v++)
        if (mark[v])
            stack[depth++] = v;
    while (depth) {
        struct graph_nodes from = graph_pred(g, stack[--depth]);
        count++;
        for (uint32_t i = 0; i < from.n; i++) {
            if (mark[from.at[i]])
                continue;
            mark[from.at[i]] = true;
            stack[depth++] = from.at[i];
        }
    }
    return count;
}

// Marks one node of every component that is never left and has no mark yet. `left` is by component.
static void mark_endless(const struct graph *g, const struct scc *scc, bool *mark, bool *left)
{
    for (uint32_t v = 0; v < g->n; v++) {
        struct graph_nodes to = graph_succ(g, v);
        for (uint32_t i = 0; i < to.n; i++)
            left[scc->component[v]] |= scc->component[to.at[i]] != scc->component[v];
        left[scc->component[v]] |= mark[v];
    }
    for (uint32_t i = 0; i < g->nreached + g->n; i++) {
        uint32_t v = i < g->nreached ? g->order[i] : i - g->nreached;
        if (!left[scc->component[v]])
            left[scc->component[v]] = mark[v] = true;
    }
}

struct post {
    const struct graph *g;
    const bool *exits;
};

static int fill_reversed(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    (void)keep;
    struct graph **out = result;
    const struct post *in = input;
    const struct graph *g = in->g;
    bool *mark = ARENA_ARRAY(scratch, bool, g->n);
    uint32_t *stack = ARENA_ARRAY(scratch, uint32_t, g->n);
    memcpy(mark, in->exits, g->n * sizeof *mark);
    bool endless = mark_backwards(g, mark, stack) < g->n;
    memcpy(mark, in->exits, g->n * sizeof *mark);
    if (endless) {
        struct scc *scc;
        bool *left = ARENA_ARRAY(scratch, bool, g->n);
        int err = scc_build(g, &scc);
        if (err)
            return err;
        mark_endless(g, scc, mark, left);
        scc_free(scc);
    }
    struct graph_edge *edges = ARENA_ARRAY(scratch, struct graph_edge, (size_t)g->nedges + g->n);
    size_t nedges = 0;
    for (uint32_t v = 0; v < g->n; v++) {
        struct graph_nodes to = graph_succ(g, v);
        for (uint32_t i = 0; i < to.n; i++)
            edges[nedges++] = (struct graph_edge){to.at[i], v};
        if (mark[v])
            edges[nedges++] = (struct graph_edge){g->n, v};
    }
    return graph_build(g->n + 1, g->n, edges, nedges, out);
}

int dom_build_post(const struct graph *g, const bool *exits, struct dom **out)
{
    struct post in = {g, exits};
    struct graph *reversed;
    struct arena unused;
    int err = build_run(fill_reversed, &reversed, &in, &unused);
    arena_free(&unused);
    if (err)
        return err;
    err = dom_build(reversed, out);
    graph_free(reversed);
    return err;
}

void dom_free(struct dom *d)
{
    if (!d)
        return;
    arena_free(&d->arena);
    mem_free(d);
}

uint32_t dom_common(const struct dom *d, uint32_t a, uint32_t b)
{
    if (d->pre[a] == GRAPH_NONE || d->pre[b] == GRAPH_NONE)
        return GRAPH_NONE;
    while (!dom_dominates(d, a, b))
        a = d->idom[a];
    return a;
}

// Checks that the tree is one, and that for every edge u -> v the parent of v dominates u. (This is
// necessary, not sufficient: the tests compare whether it is the nearest dominator.)
bool dom_valid(const struct dom *d, const struct graph *g)
{
    if (d->n != g->n || d->nreached != g->nreached)
        return false;
    if (d->order[0] != d->root || d->idom[d->root] != GRAPH_NONE)
        return false;
    for (uint32_t v = 0; v < d->n; v++) {
        if (graph_reached(g, v) != (d->pre[v] != GRAPH_NONE))
            return false;
        if (!graph_reached(g, v) || v == d->root)
            continue;
        if (d->order[d->pre[v]] != v || !dom_strictly(d, d->idom[v], v))
            return false;
        struct graph_nodes from = graph_pred(g, v);
        for (uint32_t i = 0; i < from.n; i++)
            if (graph_reached(g, from.at[i]) && !dom_dominates(d, d->idom[v], from.at[i]))
                return false;
    }
    return true;
}
