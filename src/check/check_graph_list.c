// SPDX-License-Identifier: MIT
#include "check/check_graph_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/mem.h"
#include "core/guard.h"

enum { MOST_DEPTH = 16 };

static bool has_room(struct check_graph_list *l)
{
    if (l->count < l->room)
        return true;
    size_t room = l->room ? 2 * l->room : 64;
    struct check_graph_node *nodes = room > CHECK_GRAPH_LIST_MOST ? NULL : mem_zalloc(room, sizeof *nodes);
    if (!nodes)
        return false;
    if (l->count)
        memcpy(nodes, l->nodes, l->count * sizeof *nodes);
    mem_free(l->nodes);
    l->nodes = nodes;
    l->room = room;
    return true;
}

static bool add_graph(struct check_graph_list *l, CUgraph graph, unsigned depth);

static bool add_node(struct check_graph_list *l, CUgraphNode handle, unsigned depth)
{
    const struct driver *d = &guard.real;
    struct check_graph_node n = {.handle = handle};
    CUgraph child;
    if (!has_room(l) || d->cuGraphNodeGetType(handle, &n.type))
        return false;
    size_t at = l->count++;
    l->nodes[at] = n;
    if (n.type != CU_GRAPH_NODE_TYPE_GRAPH)
        return true;
    if (depth == MOST_DEPTH || d->cuGraphChildGraphNodeGetGraph(handle, &child) ||
        !add_graph(l, child, depth + 1))
        return false;
    l->nodes[at].below = l->count - at - 1;
    return true;
}

static bool add_graph(struct check_graph_list *l, CUgraph graph, unsigned depth)
{
    size_t n = 0, got;
    if (guard.real.cuGraphGetNodes(graph, NULL, &n) || n > CHECK_GRAPH_LIST_MOST)
        return false;
    CUgraphNode *nodes = mem_zalloc(n + 1, sizeof *nodes);
    got = n;
    bool right = nodes && !(n && guard.real.cuGraphGetNodes(graph, nodes, &got)) && got == n;
    for (size_t i = 0; i < n && right; i++)
        right = add_node(l, nodes[i], depth);
    mem_free(nodes);
    return right;
}

bool check_graph_list(CUgraph graph, struct check_graph_list *out)
{
    const struct driver *d = &guard.real;
    *out = (struct check_graph_list){0};
    if (d->cuGraphGetNodes && d->cuGraphNodeGetType && d->cuGraphChildGraphNodeGetGraph &&
        add_graph(out, graph, 0))
        return true;
    check_graph_list_free(out);
    return false;
}

void check_graph_list_free(struct check_graph_list *list)
{
    mem_free(list->nodes);
    *list = (struct check_graph_list){0};
}

// --- comparison --------------------------------------------------------------------------------------------

// A node by its handle.
struct place {
    CUgraphNode handle;
    size_t at;
};

static int by_handle(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->handle > y->handle) - (x->handle < y->handle);
}

static struct place *sorted(const struct check_graph_list *l)
{
    struct place *places = mem_zalloc(l->count + 1, sizeof *places);
    for (size_t i = 0; places && i < l->count; i++)
        places[i] = (struct place){l->nodes[i].handle, i};
    if (places)
        qsort(places, l->count, sizeof *places, by_handle);
    return places;
}

// What a node depends on: nodes, and edges with their data.
struct inputs {
    size_t count;
    CUgraphNode *nodes;
    CUgraphEdgeData *edges;  // as many; NULL: the driver knows none
};

static bool read_inputs(CUgraphNode node, struct inputs *in)
{
    const struct driver *d = &guard.real;
    bool data = d->cuGraphNodeGetDependencies_v2;
    size_t n = 0;
    *in = (struct inputs){0};
    if (!data && !d->cuGraphNodeGetDependencies)
        return false;
    if (data ? d->cuGraphNodeGetDependencies_v2(node, NULL, NULL, &n)
             : d->cuGraphNodeGetDependencies(node, NULL, &n))
        return false;
    in->count = n;
    in->nodes = mem_zalloc(n + 1, sizeof *in->nodes);
    in->edges = data ? mem_zalloc(n + 1, sizeof *in->edges) : NULL;
    if (!in->nodes || (data && !in->edges))
        return false;
    CUresult r = !n     ? CUDA_SUCCESS
                 : data ? d->cuGraphNodeGetDependencies_v2(node, in->nodes, in->edges, &n)
                        : d->cuGraphNodeGetDependencies(node, in->nodes, &n);
    return !r && n == in->count;
}

static void free_inputs(struct inputs *in)
{
    mem_free(in->nodes);
    mem_free(in->edges);
}

static void add(uint64_t *hash, const void *bytes, size_t size)
{
    *hash = XXH3_64bits_withSeed(bytes, size, *hash);
}

// Adds the places of what a node depends on, and how, to a hash. Returns false if the driver refuses.
static bool add_inputs(uint64_t *hash, const struct check_graph_list *l, const struct place *places,
                       size_t at)
{
    struct inputs in;
    bool right = read_inputs(l->nodes[at].handle, &in);
    for (size_t i = 0; i < in.count && right; i++) {
        struct place key = {in.nodes[i], 0}, *from;
        from = bsearch(&key, places, l->count, sizeof key, by_handle);
        right = from;
        if (from)
            add(hash, &from->at, sizeof from->at);
        if (in.edges)
            add(hash, &in.edges[i], sizeof in.edges[i]);
    }
    free_inputs(&in);
    return right;
}

// Returns 0 if the driver refuses, or out of memory.
static uint64_t hash_of(const struct check_graph_list *l)
{
    struct place *places = sorted(l);
    uint64_t hash = 0;
    bool right = places;
    for (size_t i = 0; i < l->count && right; i++) {
        const uint64_t about[] = {i, (uint64_t)l->nodes[i].type, l->nodes[i].below};
        add(&hash, about, sizeof about);
        right = add_inputs(&hash, l, places, i);
    }
    mem_free(places);
    return !right ? 0 : hash ? hash : 1;
}

bool check_graph_list_equal(const struct check_graph_list *a, const struct check_graph_list *b)
{
    uint64_t hash = a->count == b->count ? hash_of(a) : 0;
    return hash && hash == hash_of(b);
}
