// SPDX-License-Identifier: MIT
// Tarjan's algorithm with explicit stacks.
#include "flow/scc.h"

#include <errno.h>

#include "base/mem.h"
#include "flow/build.h"

struct search {
    const struct graph *g;
    struct scc *scc;
    uint32_t clock;
    uint32_t *low;   // 0: not visited; else the least number of an open node that it is known to lead to
    uint32_t *next;  // its first edge not followed yet
    uint32_t *path;  // from the root of the search to the current node
    uint32_t *open;  // visited, but not in a component yet
    uint32_t npath, nopen;
};

static void enter(struct search *s, uint32_t v)
{
    s->low[v] = ++s->clock;
    s->next[v] = s->g->succ_at[v];
    s->path[s->npath++] = v;
    s->open[s->nopen++] = v;
}

static void close_component(struct search *s, uint32_t v)
{
    uint32_t c = s->scc->ncomponents++;
    uint32_t u;
    do {
        u = s->open[--s->nopen];
        s->scc->component[u] = c;
        s->scc->size[c]++;
    } while (u != v);
}

// number[v] is low[v] as enter() set it: v closes a component if its low has not decreased since.
static void search_from(struct search *s, uint32_t *number, uint32_t root)
{
    enter(s, root);
    number[root] = s->low[root];
    while (s->npath) {
        uint32_t v = s->path[s->npath - 1];
        if (s->next[v] < s->g->succ_at[v + 1]) {
            uint32_t to = s->g->succ[s->next[v]++];
            if (!s->low[to]) {
                enter(s, to);
                number[to] = s->low[to];
            } else if (s->scc->component[to] == GRAPH_NONE && s->low[to] < s->low[v]) {
                s->low[v] = s->low[to];
            }
            continue;
        }
        if (s->low[v] == number[v])
            close_component(s, v);
        if (--s->npath) {
            uint32_t up = s->path[s->npath - 1];
            if (s->scc->component[v] == GRAPH_NONE && s->low[v] < s->low[up])
                s->low[up] = s->low[v];
        }
    }
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    struct scc *scc = result;
    const struct graph *g = input;
    scc->component = ARENA_ARRAY(keep, uint32_t, g->n);
    scc->size = ARENA_ARRAY(keep, uint32_t, g->n);
    struct search s = {
        .g = g,
        .scc = scc,
        .low = ARENA_ARRAY(scratch, uint32_t, g->n),
        .next = ARENA_ARRAY(scratch, uint32_t, g->n),
        .path = ARENA_ARRAY(scratch, uint32_t, g->n),
        .open = ARENA_ARRAY(scratch, uint32_t, g->n),
    };
    uint32_t *number = ARENA_ARRAY(scratch, uint32_t, g->n);
    for (uint32_t v = 0; v < g->n; v++)
        scc->component[v] = GRAPH_NONE;
    for (uint32_t v = 0; v < g->n; v++)
        if (!s.low[v])
            search_from(&s, number, v);
    return 0;
}

int scc_build(const struct graph *g, struct scc **out)
{
    struct scc *s = mem_zalloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->n = g->n;
    int err = build_run(fill, s, g, &s->arena);
    if (err) {
        mem_free(s);
        return err;
    }
    *out = s;
    return 0;
}

void scc_free(struct scc *s)
{
    if (!s)
        return;
    arena_free(&s->arena);
    mem_free(s);
}
