// SPDX-License-Identifier: MIT
#include "exec/order.h"

#include <errno.h>

#include "base/mem.h"

// --- reverse postorder -------------------------------------------------------------------------------------

struct visit {
    uint32_t block, next;  // next: successors before it have been visited
};

struct walk {
    const struct graph *graph;
    bool *seen;
    struct visit *stack;
    uint32_t depth;
};

static void enter(struct walk *w, uint32_t v)
{
    w->seen[v] = true;
    w->stack[w->depth++] = (struct visit){v, 0};
}

// Returns the next successor to visit, GRAPH_NONE after the last. The next block in the source is visited
// last, so that it follows directly in the reversed order.
static uint32_t next_successor(const struct walk *w, struct visit *at)
{
    struct graph_nodes succ = graph_succ(w->graph, at->block);
    while (at->next < succ.n) {
        uint32_t to = succ.at[at->next++];
        if (to != at->block + 1)
            return to;
    }
    for (uint32_t k = 0; at->next == succ.n && k < succ.n; k++)
        if (succ.at[k] == at->block + 1) {
            at->next++;
            return at->block + 1;
        }
    return GRAPH_NONE;
}

static uint32_t reverse_postorder(struct walk *w, uint32_t *order)
{
    uint32_t n = 0;
    enter(w, w->graph->entry);
    while (w->depth) {
        struct visit *top = &w->stack[w->depth - 1];
        uint32_t to = next_successor(w, top);
        if (to == GRAPH_NONE) {
            order[n++] = top->block;
            w->depth--;
        } else if (!w->seen[to]) {
            enter(w, to);
        }
    }
    for (uint32_t k = 0; k < n / 2; k++) {
        uint32_t other = order[k];
        order[k] = order[n - 1 - k];
        order[n - 1 - k] = other;
    }
    return n;
}

// --- contiguous loops --------------------------------------------------------------------------------------

// Each loop is a list of its blocks and inner loops, as they first appear in the order; so is the root, for
// everything outside loops. A loop is entered only at its header, which is its first block in any reverse
// postorder: so forward edges stay forward edges when the lists are flattened.
struct lists {
    uint32_t nblocks, root;
    uint32_t *first, *last;  // per loop, and for the root; an item is a block, or nblocks + a loop
    uint32_t *next;          // per item
};

static void append(struct lists *l, uint32_t list, uint32_t item)
{
    if (l->last[list] == GRAPH_NONE)
        l->first[list] = item;
    else
        l->next[l->last[list]] = item;
    l->last[list] = item;
}

static uint32_t list_of(const struct lists *l, uint32_t loop)
{
    return loop == GRAPH_NONE ? l->root : loop;
}

static void fill(struct lists *l, const struct loops *loops, const uint32_t *order, uint32_t n)
{
    for (uint32_t k = 0; k <= l->root; k++)
        l->first[k] = l->last[k] = GRAPH_NONE;
    for (uint32_t k = 0; k < l->nblocks + l->root; k++)
        l->next[k] = GRAPH_NONE;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t loop = loops->inner[order[k]];
        if (loop != GRAPH_NONE && loops->loops[loop].header == order[k])
            append(l, list_of(l, loops->loops[loop].parent), l->nblocks + loop);
        append(l, list_of(l, loop), order[k]);
    }
}

static void flatten(const struct lists *l, const struct loops *loops, uint32_t *order)
{
    uint32_t list = l->root, item = l->first[list], n = 0;
    for (;;) {
        if (item == GRAPH_NONE) {
            if (list == l->root)
                return;
            item = l->next[l->nblocks + list];
            list = list_of(l, loops->loops[list].parent);
        } else if (item >= l->nblocks) {
            list = item - l->nblocks;
            item = l->first[list];
        } else {
            order[n++] = item;
            item = l->next[item];
        }
    }
}

int order_blocks(const struct cfg *c, const struct loops *l, uint32_t *order, uint32_t *n)
{
    struct walk w = {.graph = c->graph};
    struct lists lists = {.nblocks = c->nblocks, .root = l->nloops};
    w.seen = mem_zalloc(c->nblocks, sizeof *w.seen);
    w.stack = mem_zalloc(c->nblocks, sizeof *w.stack);
    lists.first = mem_zalloc(l->nloops + 1, sizeof *lists.first);
    lists.last = mem_zalloc(l->nloops + 1, sizeof *lists.last);
    lists.next = mem_zalloc((size_t)c->nblocks + l->nloops, sizeof *lists.next);
    bool complete = w.seen && w.stack && lists.first && lists.last && lists.next;
    if (complete) {
        *n = reverse_postorder(&w, order);
        // Cycles with several entries are not loops, and may be split.
        if (!l->nregions) {
            fill(&lists, l, order, *n);
            flatten(&lists, l, order);
        }
    }
    mem_free(w.seen);
    mem_free(w.stack);
    mem_free(lists.first);
    mem_free(lists.last);
    mem_free(lists.next);
    return complete ? 0 : -ENOMEM;
}
