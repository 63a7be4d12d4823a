// SPDX-License-Identifier: MIT
#include "flow/loops.h"

#include <errno.h>

#include "base/mem.h"
#include "flow/build.h"
#include "flow/scc.h"

struct input {
    const struct graph *g;
    const struct dom *d;
};

static bool is_back_edge(const struct input *in, uint32_t from, uint32_t to)
{
    return graph_reached(in->g, from) && dom_dominates(in->d, to, from);
}

// Lists headers in reverse postorder, each with its latches.
static void find_headers(struct loops *l, const struct input *in, struct arena *keep)
{
    const struct graph *g = in->g;
    uint32_t nlatches = 0;
    for (int filling = 0; filling <= 1; filling++) {
        l->nloops = nlatches = 0;
        for (uint32_t i = 0; i < g->nreached; i++) {
            uint32_t h = g->order[i], first = nlatches;
            struct graph_nodes from = graph_pred(g, h);
            for (uint32_t j = 0; j < from.n; j++) {
                if (!is_back_edge(in, from.at[j], h))
                    continue;
                if (filling)
                    l->latches[nlatches] = from.at[j];
                nlatches++;
            }
            if (nlatches == first)
                continue;
            if (filling)
                l->loops[l->nloops] = (struct loop){
                    .header = h, .parent = GRAPH_NONE, .first_latch = first, .nlatches = nlatches - first};
            l->nloops++;
        }
        if (!filling) {
            l->loops = ARENA_ARRAY(keep, struct loop, (size_t)l->nloops + 1);
            l->latches = ARENA_ARRAY(keep, uint32_t, (size_t)nlatches + 1);
        }
    }
}

// Returns the outermost loop found so far around loop i; halves the path to it.
static uint32_t outermost(uint32_t *outer, uint32_t i)
{
    while (outer[i] != i)
        i = outer[i] = outer[outer[i]];
    return i;
}

// Collects a loop's nodes. Inner loops come first, so a node that has a loop stands for the whole of it, and
// the walk continues before that loop's header. Over all loops, each node's predecessors are pushed once: a
// header's when its loop becomes part of another.
static void collect_body(struct loops *l, const struct graph *g, uint32_t loop, uint32_t *outer,
                         uint32_t *stack)
{
    const struct loop *at = &l->loops[loop];
    uint32_t depth = 0;
    l->inner[at->header] = loop;
    for (uint32_t i = 0; i < at->nlatches; i++)
        stack[depth++] = l->latches[at->first_latch + i];
    while (depth) {
        uint32_t v = stack[--depth];
        if (!graph_reached(g, v))
            continue;
        if (l->inner[v] == GRAPH_NONE) {
            l->inner[v] = loop;
        } else {
            uint32_t whole = outermost(outer, l->inner[v]);
            if (whole == loop)
                continue;
            l->loops[whole].parent = outer[whole] = loop;
            v = l->loops[whole].header;
        }
        struct graph_nodes from = graph_pred(g, v);
        for (uint32_t i = 0; i < from.n; i++)
            stack[depth++] = from.at[i];
    }
}

// Gives every loop its range of nodes: first its own, in reverse postorder, then those of its nested loops.
static void lay_out(struct loops *l, const struct graph *g, uint32_t *own)
{
    uint32_t outside = 0;
    for (uint32_t v = 0; v < g->n; v++) {
        l->place[v] = GRAPH_NONE;
        if (l->inner[v] != GRAPH_NONE)
            own[l->inner[v]]++;
    }
    for (uint32_t i = l->nloops; i-- > 0;) {
        struct loop *at = &l->loops[i];
        at->count += own[i];
        if (at->parent != GRAPH_NONE)
            l->loops[at->parent].count += at->count;
    }
    // own[i] becomes the place of the next loop nested in i; later, of the next node.
    for (uint32_t i = 0; i < l->nloops; i++) {
        struct loop *at = &l->loops[i];
        uint32_t *room = at->parent == GRAPH_NONE ? &outside : &own[at->parent];
        at->first = *room;
        *room += at->count;
        own[i] += at->first;
        at->depth = 1 + (at->parent == GRAPH_NONE ? 0 : l->loops[at->parent].depth);
    }
    for (uint32_t i = 0; i < l->nloops; i++)
        own[i] = l->loops[i].first;
    for (uint32_t i = 0; i < g->nreached; i++) {
        uint32_t v = g->order[i];
        if (l->inner[v] == GRAPH_NONE)
            continue;
        l->place[v] = own[l->inner[v]]++;
        l->nodes[l->place[v]] = v;
    }
}

static bool is_reducible(const struct input *in)
{
    const struct graph *g = in->g;
    for (uint32_t i = 0; i < g->nreached; i++) {
        struct graph_nodes to = graph_succ(g, g->order[i]);
        for (uint32_t j = 0; j < to.n; j++)
            if (g->rank[to.at[j]] <= i && !is_back_edge(in, g->order[i], to.at[j]))
                return false;
    }
    return true;
}

static void number_regions(struct loops *l, const struct scc *scc, uint32_t *number)
{
    for (uint32_t v = 0; v < l->n; v++) {
        uint32_t c = scc->component[v];
        if (scc->size[c] == 1)
            continue;
        if (!number[c])
            number[c] = ++l->nregions;
        l->region[v] = number[c] - 1;
        for (uint32_t i = l->inner[v]; i != GRAPH_NONE && !l->loops[i].irreducible; i = l->loops[i].parent)
            l->loops[i].irreducible = true;
    }
}

static int find_regions(struct loops *l, const struct input *in, struct arena *scratch)
{
    const struct graph *g = in->g;
    if (is_reducible(in))
        return 0;
    uint32_t *number = ARENA_ARRAY(scratch, uint32_t, g->n);
    struct graph_edge *edges = ARENA_ARRAY(scratch, struct graph_edge, g->nedges);
    size_t nedges = 0;
    for (uint32_t i = 0; i < g->nreached; i++) {
        uint32_t v = g->order[i];
        struct graph_nodes to = graph_succ(g, v);
        for (uint32_t j = 0; j < to.n; j++)
            if (!is_back_edge(in, v, to.at[j]))
                edges[nedges++] = (struct graph_edge){v, to.at[j]};
    }
    struct graph *rest;
    struct scc *scc;
    int err = graph_build(g->n, g->entry, edges, nedges, &rest);
    if (err)
        return err;
    err = scc_build(rest, &scc);
    graph_free(rest);
    if (err)
        return err;
    number_regions(l, scc, number);
    scc_free(scc);
    return 0;
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    struct loops *l = result;
    const struct input *in = input;
    const struct graph *g = in->g;
    l->inner = ARENA_ARRAY(keep, uint32_t, g->n);
    l->nodes = ARENA_ARRAY(keep, uint32_t, g->n);
    l->place = ARENA_ARRAY(keep, uint32_t, g->n);
    l->region = ARENA_ARRAY(keep, uint32_t, g->n);
    for (uint32_t v = 0; v < g->n; v++)
        l->inner[v] = l->region[v] = GRAPH_NONE;
    find_headers(l, in, keep);
    uint32_t *outer = ARENA_ARRAY(scratch, uint32_t, (size_t)l->nloops + 1);
    uint32_t *stack = ARENA_ARRAY(scratch, uint32_t, (size_t)g->nedges + 1);
    for (uint32_t i = 0; i < l->nloops; i++)
        outer[i] = i;
    for (uint32_t i = l->nloops; i-- > 0;)
        collect_body(l, g, i, outer, stack);
    lay_out(l, g, ARENA_ARRAY(scratch, uint32_t, (size_t)l->nloops + 1));
    return find_regions(l, in, scratch);
}

int loops_build(const struct graph *g, const struct dom *d, struct loops **out)
{
    struct loops *l = mem_zalloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    struct input in = {g, d};
    l->n = g->n;
    int err = build_run(fill, l, &in, &l->arena);
    if (err) {
        mem_free(l);
        return err;
    }
    *out = l;
    return 0;
}

void loops_free(struct loops *l)
{
    if (!l)
        return;
    arena_free(&l->arena);
    mem_free(l);
}

static bool loop_valid(const struct loops *l, const struct dom *d, uint32_t i)
{
    const struct loop *at = &l->loops[i];
    if (at->nlatches == 0 || at->count == 0 || l->nodes[at->first] != at->header || l->inner[at->header] != i)
        return false;
    if (at->parent != GRAPH_NONE) {
        const struct loop *up = &l->loops[at->parent];
        if (at->parent >= i || at->depth != up->depth + 1 || !loops_contains(l, at->parent, at->header) ||
            at->first <= up->first || at->first + at->count > up->first + up->count)
            return false;
    } else if (at->depth != 1) {
        return false;
    }
    for (uint32_t j = 0; j < at->nlatches; j++)
        if (!loops_contains(l, i, l->latches[at->first_latch + j]))
            return false;
    return dom_dominates(d, at->header, l->nodes[at->first + at->count - 1]);
}

// Checks every loop, and that a loop is entered only through its header.
bool loops_valid(const struct loops *l, const struct graph *g, const struct dom *d)
{
    for (uint32_t i = 0; i < l->nloops; i++)
        if (!loop_valid(l, d, i))
            return false;
    for (uint32_t v = 0; v < l->n; v++) {
        if ((l->place[v] == GRAPH_NONE) != (l->inner[v] == GRAPH_NONE))
            return false;
        if (l->inner[v] == GRAPH_NONE)
            continue;
        if (l->nodes[l->place[v]] != v || !loops_contains(l, l->inner[v], v))
            return false;
        struct graph_nodes from = graph_pred(g, v);
        for (uint32_t j = 0; j < from.n && v != l->loops[l->inner[v]].header; j++)
            if (graph_reached(g, from.at[j]) && !loops_contains(l, l->inner[v], from.at[j]))
                return false;
    }
    return true;
}
