// SPDX-License-Identifier: MIT
// Compares dominators, post-dominators, components and loops with their definitions, on random graphs.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "flow/brute.h"
#include "flow/dom.h"
#include "flow/loops.h"
#include "flow/scc.h"

enum { MOST_NODES = 24, MOST_EDGES = 4 * MOST_NODES, GRAPHS = 20000 };

static const uint64_t SEED = 20240607;

struct sample {
    uint64_t seed;
    uint32_t n, entry, nedges;
    struct graph_edge edges[MOST_EDGES];
    bool exits[MOST_NODES];
};

static void show(const struct sample *s, const char *what, uint32_t a, uint32_t b)
{
    fprintf(stderr, "seed %llu: %s at %u, %u; entry %u;", (unsigned long long)s->seed, what, a, b, s->entry);
    for (uint32_t i = 0; i < s->nedges; i++)
        fprintf(stderr, " %u->%u", s->edges[i].from, s->edges[i].to);
    fprintf(stderr, "; exits");
    for (uint32_t v = 0; v < s->n; v++)
        if (s->exits[v])
            fprintf(stderr, " %u", v);
    fprintf(stderr, "\n");
}

#define expect(s, condition, a, b)           \
    do {                                     \
        if (!(condition)) {                  \
            show((s), #condition, (a), (b)); \
            fail();                          \
        }                                    \
    } while (0)

// Makes one of three kinds: any edges at all; a chain with jumps, like code; a chain with few jumps back,
// deep nests.
static void make_sample(struct sample *s, uint64_t seed)
{
    struct brute_random r = {seed * 2654435761u + 1};
    uint32_t kind = brute_below(&r, 3);
    *s = (struct sample){.seed = seed, .n = 1 + brute_below(&r, MOST_NODES)};
    if (kind == 0) {
        s->entry = brute_below(&r, s->n);
        uint32_t want = brute_below(&r, 3 * s->n);
        while (s->nedges < want)
            s->edges[s->nedges++] = (struct graph_edge){brute_below(&r, s->n), brute_below(&r, s->n)};
    } else {
        for (uint32_t v = 0; v < s->n; v++) {
            if (v + 1 < s->n && brute_below(&r, 8))
                s->edges[s->nedges++] = (struct graph_edge){v, v + 1};
            uint32_t jumps = brute_below(&r, kind == 1 ? 3 : 2);
            while (jumps--) {
                uint32_t to = kind == 1 ? brute_below(&r, s->n) : brute_below(&r, v + 1);
                s->edges[s->nedges++] = (struct graph_edge){v, to};
            }
        }
    }
    for (uint32_t v = 0; v < s->n; v++)
        s->exits[v] = brute_below(&r, 6) == 0;
}

static void check_graph(const struct sample *s, const struct graph *g)
{
    bool seen[MOST_NODES];
    expect(s, graph_valid(g), 0, 0);
    brute_forward(g, s->entry, GRAPH_NONE, seen);
    for (uint32_t v = 0; v < s->n; v++)
        expect(s, seen[v] == graph_reached(g, v), v, 0);
    for (uint32_t i = 0; i < s->nedges; i++) {
        struct graph_nodes to = graph_succ(g, s->edges[i].from);
        bool found = false;
        for (uint32_t j = 0; j < to.n; j++)
            found |= to.at[j] == s->edges[i].to;
        expect(s, found, s->edges[i].from, s->edges[i].to);
    }
}

static void check_scc(const struct sample *s, const struct graph *g)
{
    struct scc *scc;
    bool ahead[MOST_NODES], behind[MOST_NODES];
    assert_int_equal(scc_build(g, &scc), 0);
    for (uint32_t v = 0; v < s->n; v++) {
        uint32_t size = 0;
        brute_forward(g, v, GRAPH_NONE, ahead);
        brute_backward(g, v, GRAPH_NONE, behind);
        for (uint32_t u = 0; u < s->n; u++) {
            expect(s, (scc->component[u] == scc->component[v]) == (ahead[u] && behind[u]), u, v);
            expect(s, !ahead[u] || scc->component[u] <= scc->component[v], u, v);
            size += ahead[u] && behind[u];
        }
        expect(s, size == scc->size[scc->component[v]], v, size);
    }
    scc_free(scc);
}

// dominates[a][b], from the definition: b is reached, but not without a.
static void brute_dominators(const struct graph *g, bool dominates[MOST_NODES + 1][MOST_NODES + 1])
{
    bool seen[MOST_NODES + 1];
    for (uint32_t a = 0; a < g->n; a++) {
        brute_forward(g, g->entry, a, seen);
        for (uint32_t b = 0; b < g->n; b++)
            dominates[a][b] = a == b || (graph_reached(g, a) && graph_reached(g, b) && !seen[b]);
    }
}

static void check_tree(const struct sample *s, const struct dom *d, const struct graph *g,
                       bool dominates[MOST_NODES + 1][MOST_NODES + 1])
{
    expect(s, dom_valid(d, g), 0, 0);
    for (uint32_t b = 0; b < g->n; b++) {
        uint32_t above = 0;
        for (uint32_t a = 0; a < g->n; a++) {
            expect(s, dom_dominates(d, a, b) == dominates[a][b], a, b);
            above += a != b && dominates[a][b];
        }
        // The immediate dominator is the strict dominator that all others dominate.
        if (!above) {
            expect(s, d->idom[b] == GRAPH_NONE, b, 0);
            continue;
        }
        for (uint32_t a = 0; a < g->n; a++)
            expect(s, a == b || !dominates[a][b] || dominates[a][d->idom[b]], a, b);
        expect(s, dominates[d->idom[b]][b], d->idom[b], b);
    }
    for (uint32_t a = 0; a < g->n; a++) {
        for (uint32_t b = 0; b < g->n; b++) {
            uint32_t c = dom_common(d, a, b);
            if (c == GRAPH_NONE) {
                expect(s, !graph_reached(g, a) || !graph_reached(g, b), a, b);
                continue;
            }
            expect(s, dominates[c][a] && dominates[c][b], a, b);
            for (uint32_t x = 0; x < g->n; x++)
                expect(s, !dominates[x][a] || !dominates[x][b] || dominates[x][c], a, b);
        }
    }
}

// x post-dominates v if no end can be reached from v without x.
static void check_post(const struct sample *s, const struct graph *g)
{
    struct dom *d;
    bool ends[MOST_NODES], seen[MOST_NODES];
    assert_int_equal(dom_build_post(g, s->exits, &d), 0);
    brute_exits(g, s->exits, ends);
    expect(s, d->n == s->n + 1 && d->root == s->n && d->nreached == d->n, d->n, d->root);
    for (uint32_t v = 0; v < s->n; v++) {
        expect(s, dom_dominates(d, s->n, v) && !dom_dominates(d, v, s->n), v, 0);
        uint32_t up = d->idom[v];
        for (uint32_t x = 0; x < s->n; x++) {
            bool post = x == v;
            if (x != v) {
                post = true;
                brute_forward(g, v, x, seen);
                for (uint32_t e = 0; e < s->n; e++)
                    post &= !(seen[e] && ends[e]);
                expect(s, !post || x == up || dom_dominates(d, x, up), x, v);
            }
            expect(s, dom_dominates(d, x, v) == post, x, v);
        }
    }
    dom_free(d);
}

struct brute_loop {
    bool is_header, latch[MOST_NODES], body[MOST_NODES];
    uint32_t count;
};

static void brute_loops(const struct graph *g, bool dominates[MOST_NODES + 1][MOST_NODES + 1],
                        struct brute_loop loops[MOST_NODES])
{
    bool seen[MOST_NODES];
    memset(loops, 0, MOST_NODES * sizeof *loops);
    for (uint32_t t = 0; t < g->n; t++) {
        struct graph_nodes to = graph_succ(g, t);
        for (uint32_t i = 0; i < to.n && graph_reached(g, t); i++) {
            uint32_t h = to.at[i];
            if (!dominates[h][t])
                continue;
            loops[h].is_header = loops[h].latch[t] = loops[h].body[h] = true;
            brute_backward(g, t, h, seen);
            for (uint32_t v = 0; v < g->n; v++)
                loops[h].body[v] |= seen[v] && graph_reached(g, v);
        }
    }
    for (uint32_t h = 0; h < g->n; h++)
        for (uint32_t v = 0; v < g->n; v++)
            loops[h].count += loops[h].body[v];
}

static void check_loop(const struct sample *s, const struct loops *l, uint32_t i,
                       const struct brute_loop *all)
{
    const struct loop *at = &l->loops[i];
    const struct brute_loop *want = &all[at->header];
    uint32_t nlatches = 0, depth = 1, parent = GRAPH_NONE;
    expect(s, want->is_header && want->count == at->count, i, at->header);
    bool irreducible = false;
    for (uint32_t v = 0; v < s->n; v++) {
        nlatches += want->latch[v];
        expect(s, loops_contains(l, i, v) == want->body[v], at->header, v);
        irreducible |= want->body[v] && l->region[v] != GRAPH_NONE;
    }
    expect(s, irreducible == at->irreducible, at->header, 0);
    expect(s, nlatches == at->nlatches, at->header, nlatches);
    for (uint32_t j = 0; j < at->nlatches; j++)
        expect(s, want->latch[l->latches[at->first_latch + j]], at->header, j);
    for (uint32_t h = 0; h < s->n; h++) {
        if (h == at->header || !all[h].is_header || !all[h].body[at->header])
            continue;
        depth++;
        if (parent == GRAPH_NONE || all[h].count < all[parent].count)
            parent = h;
    }
    expect(s, depth == at->depth, at->header, depth);
    uint32_t got = at->parent == GRAPH_NONE ? GRAPH_NONE : l->loops[at->parent].header;
    expect(s, parent == got, at->header, parent);
}

// Two nodes are in one region if they lie on a cycle of reached nodes without back edges.
static void check_regions(const struct sample *s, const struct loops *l, const struct graph *g,
                          bool dominates[MOST_NODES + 1][MOST_NODES + 1])
{
    struct graph_edge edges[MOST_EDGES];
    size_t nedges = 0;
    struct graph *rest;
    bool ahead[MOST_NODES], behind[MOST_NODES], any = false;
    for (uint32_t i = 0; i < s->nedges; i++)
        if (graph_reached(g, s->edges[i].from) && !dominates[s->edges[i].to][s->edges[i].from])
            edges[nedges++] = s->edges[i];
    assert_int_equal(graph_build(s->n, s->entry, edges, nedges, &rest), 0);
    for (uint32_t v = 0; v < s->n; v++) {
        bool cyclic = false;
        brute_forward(rest, v, GRAPH_NONE, ahead);
        brute_backward(rest, v, GRAPH_NONE, behind);
        for (uint32_t u = 0; u < s->n; u++) {
            bool together = u != v && ahead[u] && behind[u];
            cyclic |= together;
            expect(s, !together || l->region[u] == l->region[v], u, v);
            expect(s, u == v || together || l->region[u] != l->region[v] || l->region[u] == GRAPH_NONE, u, v);
        }
        any |= cyclic;
        expect(s, cyclic == (l->region[v] != GRAPH_NONE), v, 0);
    }
    expect(s, any == (l->nregions > 0), l->nregions, 0);
    graph_free(rest);
}

// Checks that every cycle is covered: a node in no loop and no region does not lead back to itself.
static void check_repeats(const struct sample *s, const struct loops *l, const struct graph *g)
{
    bool seen[MOST_NODES];
    for (uint32_t v = 0; v < s->n; v++) {
        struct graph_nodes to = graph_succ(g, v);
        bool repeats = false;
        for (uint32_t i = 0; i < to.n && graph_reached(g, v); i++) {
            brute_forward(g, to.at[i], GRAPH_NONE, seen);
            repeats |= seen[v];
        }
        expect(s, repeats == loops_repeats(l, v), v, 0);
    }
}

static void check_loops(const struct sample *s, const struct graph *g, const struct dom *d,
                        bool dominates[MOST_NODES + 1][MOST_NODES + 1])
{
    struct loops *l;
    struct brute_loop want[MOST_NODES];
    uint32_t nloops = 0;
    assert_int_equal(loops_build(g, d, &l), 0);
    brute_loops(g, dominates, want);
    expect(s, loops_valid(l, g, d), 0, 0);
    for (uint32_t v = 0; v < s->n; v++) {
        uint32_t depth = 0;
        nloops += want[v].is_header;
        for (uint32_t h = 0; h < s->n; h++)
            depth += want[h].body[v];
        expect(s, depth == loops_depth(l, v), v, depth);
    }
    expect(s, nloops == l->nloops, nloops, l->nloops);
    for (uint32_t i = 0; i < l->nloops; i++)
        check_loop(s, l, i, want);
    check_regions(s, l, g, dominates);
    check_repeats(s, l, g);
    loops_free(l);
}

static void random_graphs(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < unit_cases(GRAPHS); i++) {
        struct sample s;
        struct graph *g;
        struct dom *d;
        bool dominates[MOST_NODES + 1][MOST_NODES + 1];
        make_sample(&s, SEED + i);
        assert_int_equal(graph_build(s.n, s.entry, s.edges, s.nedges, &g), 0);
        check_graph(&s, g);
        check_scc(&s, g);
        assert_int_equal(dom_build(g, &d), 0);
        brute_dominators(g, dominates);
        check_tree(&s, d, g, dominates);
        check_post(&s, g);
        check_loops(&s, g, d, dominates);
        dom_free(d);
        graph_free(g);
    }
}

static struct graph *graph_of(uint32_t n, const struct graph_edge *edges, size_t nedges)
{
    struct graph *g;
    assert_int_equal(graph_build(n, 0, edges, nedges, &g), 0);
    return g;
}

// An endless kernel: for (;;) { if (a) b; else c; d; }. The branch reconverges at d, not at the exit.
static void endless_loop_reconverges(void **state)
{
    (void)state;
    const struct graph_edge edges[] = {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 1}};
    const bool exits[5] = {0};
    struct graph *g = graph_of(5, edges, 6);
    struct dom *d;
    assert_int_equal(dom_build_post(g, exits, &d), 0);
    assert_int_equal(d->idom[1], 5);
    assert_int_equal(d->idom[2], 4);
    assert_int_equal(d->idom[3], 4);
    assert_int_equal(d->idom[4], 1);
    assert_int_equal(dom_common(d, 2, 3), 4);
    dom_free(d);
    graph_free(g);
}

// Two ways into a cycle: no natural loop, one region.
static void two_entries_are_irreducible(void **state)
{
    (void)state;
    const struct graph_edge edges[] = {{0, 1}, {0, 2}, {1, 2}, {2, 1}, {2, 3}};
    struct graph *g = graph_of(4, edges, 5);
    struct dom *d;
    struct loops *l;
    assert_int_equal(dom_build(g, &d), 0);
    assert_int_equal(loops_build(g, d, &l), 0);
    assert_int_equal(l->nloops, 0);
    assert_int_equal(l->nregions, 1);
    assert_int_equal(l->region[1], 0);
    assert_int_equal(l->region[2], 0);
    assert_int_equal(l->region[3], GRAPH_NONE);
    assert_true(loops_repeats(l, 1) && !loops_repeats(l, 3));
    loops_free(l);
    dom_free(d);
    graph_free(g);
}

// A million nodes in the shapes that make a naive algorithm quadratic or its recursion overflow the stack.
static void large_graphs(void **state)
{
    (void)state;
    const uint32_t n = unit_cases(1000000);
    struct graph_edge *edges = malloc(2 * (size_t)n * sizeof *edges);
    bool *exits = calloc(n, 1);
    exits[n - 1] = true;
    for (int shape = 0; shape < 3; shape++) {
        size_t nedges = 0;
        for (uint32_t v = 0; v + 1 < n; v++) {
            edges[nedges++] = (struct graph_edge){v, v + 1};
            if (shape == 0 && v > n / 2)
                edges[nedges++] = (struct graph_edge){v, n - v};  // loops, each around the one before it
            else if (shape == 1 && v)
                edges[nedges++] = (struct graph_edge){v, v - 1};  // a ladder
            else if (shape == 2 && v < n / 2)
                edges[nedges++] = (struct graph_edge){v, n - 1 - v};  // many ways into a chain
        }
        struct graph *g = graph_of(n, edges, nedges);
        struct dom *d, *post;
        struct loops *l;
        assert_int_equal(dom_build(g, &d), 0);
        assert_int_equal(dom_build_post(g, exits, &post), 0);
        assert_int_equal(loops_build(g, d, &l), 0);
        assert_true(dom_valid(d, g));
        assert_true(loops_valid(l, g, d));
        assert_int_equal(post->nreached, n + 1);
        loops_free(l);
        dom_free(post);
        dom_free(d);
        graph_free(g);
    }
    free(exits);
    free(edges);
}

// Whichever allocation fails, the result is -ENOMEM and no memory leaks.
static void out_of_memory(void **state)
{
    (void)state;
    const struct graph_edge edges[] = {{0, 1}, {0, 2}, {1, 2}, {2, 1}, {2, 3}, {3, 3}, {1, 0}};
    const bool exits[5] = {0};
    for (long n = 0, done = 0; !done; n++) {
        struct graph *g = NULL;
        struct dom *d = NULL, *post = NULL;
        struct loops *l = NULL;
        struct scc *scc = NULL;
        mem_fail_after(n);
        int err = graph_build(5, 0, edges, 7, &g);
        err = err ? err : dom_build(g, &d);
        err = err ? err : dom_build_post(g, exits, &post);
        err = err ? err : loops_build(g, d, &l);
        err = err ? err : scc_build(g, &scc);
        mem_fail_after(-1);
        assert_true(err == 0 || err == -ENOMEM);
        done = err == 0;
        scc_free(scc);
        loops_free(l);
        dom_free(post);
        dom_free(d);
        graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(endless_loop_reconverges),
        cmocka_unit_test(two_entries_are_irreducible),
        cmocka_unit_test(large_graphs),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
