// SPDX-License-Identifier: MIT
// Queries of nodes and edges. Without a buffer the calls return the number of items; otherwise they fill the
// buffer as far as it reaches, and zero the rest of it.
#include "cpu/graphs.h"

struct answer {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t room, found;
    bool lossy;  // an edge has data that the caller did not ask for
};

static void give(struct answer *a, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
    if (a->found < a->room) {
        if (a->from)
            a->from[a->found] = from;
        if (a->to)
            a->to[a->found] = to;
        if (a->data && data)
            a->data[a->found] = *data;
    }
    a->lossy |= data && !a->data && (data->type || data->from_port || data->to_port);
    a->found++;
}

static CUresult finish(struct answer *a, size_t *count)
{
    bool asked = !a->from && !a->to;
    for (size_t i = a->found; i < a->room; i++) {
        if (a->from)
            a->from[i] = NULL;
        if (a->to)
            a->to[i] = NULL;
    }
    *count = asked || a->found < a->room ? a->found : a->room;
    return a->lossy && !asked ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

// --- nodes -------------------------------------------------------------------------------------------------

static CUresult nodes(CUgraph g, CUgraphNode *out, size_t *count, bool roots)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_is(g) || !count) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        struct answer a = {.from = out, .room = out ? *count : 0};
        for (struct CUgraphNode_st *n = g->first; n; n = n->next) {
            if (!roots || !n->in.len)
                give(&a, n, NULL, NULL);
        }
        r = finish(&a, count);
    }
    graph_leave();
    return r;
}

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *out, size_t *count)
{
    return nodes(g, out, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *out, size_t *count)
{
    return nodes(g, out, count, true);
}

CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_node_is(n) || !type)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        *type = n->work.type;
    graph_leave();
    return r;
}

// --- edges -------------------------------------------------------------------------------------------------

static CUresult edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_is(g) || !count || !from != !to) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        struct answer a = {.from = from, .to = to, .data = data, .room = from ? *count : 0};
        for (struct CUgraphNode_st *n = g->first; n; n = n->next) {
            for (size_t i = 0; i < n->out.len; i++)
                give(&a, n, n->out.items[i].node, &n->out.items[i].data);
        }
        r = finish(&a, count);
    }
    graph_leave();
    return r;
}

CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return edges(g, from, to, NULL, count);
}

CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                            size_t *count)
{
    return edges(g, from, to, data, count);
}

static CUresult around(CUgraphNode n, bool behind, CUgraphNode *out, CUgraphEdgeData *data, size_t *count)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_node_is(n) || !count) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        struct answer a = {.from = out, .data = data, .room = out ? *count : 0};
        const struct graph_edge *list = behind ? n->out.items : n->in.items;
        for (size_t i = 0; i < (behind ? n->out.len : n->in.len); i++)
            give(&a, list[i].node, NULL, &list[i].data);
        r = finish(&a, count);
    }
    graph_leave();
    return r;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode n, CUgraphNode *out, size_t *count)
{
    return around(n, false, out, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode n, CUgraphNode *out, CUgraphEdgeData *data, size_t *count)
{
    return around(n, false, out, data, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode n, CUgraphNode *out, size_t *count)
{
    return around(n, true, out, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode n, CUgraphNode *out, CUgraphEdgeData *data,
                                         size_t *count)
{
    return around(n, true, out, data, count);
}
