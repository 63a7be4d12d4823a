// SPDX-License-Identifier: MIT
// Nodes and edges.
#include "cpu/graphs.h"

static uint64_t last_id, last_stamp;

uint64_t graph_node_stamp(void)
{
    return ++last_stamp;
}

struct CUgraphNode_st *graph_node_new(struct CUgraph_st *g)
{
    struct CUgraphNode_st *n = mem_zalloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->graph = g;
    n->id = ++last_id;
    n->work.type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (!g->of_exec && handle_add(n, HANDLE_GRAPH_NODE)) {
        mem_free(n);
        return NULL;
    }
    n->prev = g->last;
    *(g->last ? &g->last->next : &g->first) = n;
    g->last = n;
    g->count++;
    return n;
}

#define DROP_EDGE(edges, to)                                  \
    do {                                                      \
        size_t left_ = 0;                                     \
        for (size_t i_ = 0; i_ < (edges)->len; i_++) {        \
            if ((edges)->items[i_].node != (to))              \
                (edges)->items[left_++] = (edges)->items[i_]; \
        }                                                     \
        (edges)->len = left_;                                 \
    } while (0)

static void disconnect(struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    DROP_EDGE(&from->out, to);
    DROP_EDGE(&to->in, from);
}

// The node's edges must be removed before, unless its whole graph is freed.
void graph_node_free(struct CUgraphNode_st *n)
{
    if (!n->graph->of_exec)
        handle_remove(n);
    graph_work_free(&n->work);
    vec_free(&n->in);
    vec_free(&n->out);
    mem_free(n);
}

static void remove_node(struct CUgraphNode_st *n)
{
    struct CUgraph_st *g = n->graph;
    while (n->in.len)
        disconnect(n->in.items[n->in.len - 1].node, n);
    while (n->out.len)
        disconnect(n, n->out.items[n->out.len - 1].node);
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    g->count--;
    graph_node_free(n);
}

void graph_node_adopt(struct CUgraphNode_st *n)
{
    if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
        n->work.child->owner = n;
    else if (n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        for (unsigned i = 0; i < n->work.choice.size; i++)
            n->work.choice.bodies[i]->owner = n;
}

CUresult graph_node_connect(struct CUgraphNode_st *from, struct CUgraphNode_st *to,
                            const CUgraphEdgeData *data)
{
    CUgraphEdgeData plain = {0};
    if (vec_reserve(&from->out, 1) || vec_reserve(&to->in, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    from->out.items[from->out.len++] = (struct graph_edge){to, data ? *data : plain};
    to->in.items[to->in.len++] = (struct graph_edge){from, data ? *data : plain};
    return CUDA_SUCCESS;
}

// --- rules -------------------------------------------------------------------------------------------------

// Returns whether a node may be part of the body of a conditional node.
static bool fits_body(const struct CUgraph_st *g, const CUgraphNodeParams *p)
{
    CUgraphNodeType type = p->type;
    bool fits = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_EMPTY ||
                type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH)
        fits = !graph_is(p->graph.graph) || !p->graph.graph->memory;
    for (const struct CUgraphNode_st *owner = g->owner; !fits && owner; owner = owner->graph->owner) {
        if (owner->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            return false;
    }
    return true;
}

// Returns whether p moves a graph into a part of itself.
static bool contains_itself(const struct CUgraph_st *g, const CUgraphNodeParams *p)
{
    if (p->type != CU_GRAPH_NODE_TYPE_GRAPH || p->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        return false;
    while (g != p->graph.graph && g->owner)
        g = g->owner->graph;
    return g == p->graph.graph;
}

static bool good_edge(const CUgraphEdgeData *e)
{
    if (e->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER || e->to_port ||
        e->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        return false;
    for (size_t i = 0; i < sizeof e->reserved; i++) {
        if (e->reserved[i])
            return false;
    }
    return true;
}

// Checks dependencies: all are nodes of the graph, and none occurs twice.
static CUresult check_after(const struct CUgraph_st *g, const CUgraphNode *after,
                            const CUgraphEdgeData *edges, size_t n)
{
    uint64_t stamp = graph_node_stamp();
    if (n && !after)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (!graph_node_is(after[i]) || after[i]->graph != g || after[i]->mark == stamp ||
            (edges && !good_edge(&edges[i])))
            return CUDA_ERROR_INVALID_VALUE;
        after[i]->mark = stamp;
    }
    return CUDA_SUCCESS;
}

static bool frees(const struct CUgraph_st *g, const struct graph_memory *m)
{
    for (const struct CUgraphNode_st *n = g->first; n; n = n->next) {
        if (n->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE && n->work.freed == m)
            return true;
    }
    return false;
}

// Notes that the graph and all graphs that it is part of have memory nodes.
static void note_memory(struct CUgraph_st *g)
{
    g->memory = true;
    while (g->owner) {
        g = g->owner->graph;
        g->memory = true;
    }
}

static void note_work(struct CUgraph_st *g, const struct graph_work *w)
{
    if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || w->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
        (w->type == CU_GRAPH_NODE_TYPE_GRAPH && w->child->memory))
        note_memory(g);
}

CUresult graph_node_add(struct CUgraph_st *g, const CUgraphNode *after, const CUgraphEdgeData *edges,
                        size_t n, CUgraphNodeParams *p, const struct graph_extra *extra, CUgraphNode *out)
{
    CUresult r = check_after(g, after, edges, n);
    if (!r && (!fits_body(g, p) || contains_itself(g, p)))
        r = CUDA_ERROR_INVALID_VALUE;
    struct graph_work work;
    if (!r)
        r = graph_work_make(&work, g, p, extra);
    if (r)
        return r;
    struct CUgraphNode_st *node = graph_node_new(g);
    if (work.type == CU_GRAPH_NODE_TYPE_MEM_FREE && frees(g, work.freed))
        r = CUDA_ERROR_INVALID_VALUE;
    else if (!node)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n && !r; i++)
        r = graph_node_connect(after[i], node, edges ? &edges[i] : NULL);
    if (r) {
        // A graph that was to be moved stays the application's.
        if (work.type != CU_GRAPH_NODE_TYPE_GRAPH ||
            p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
            graph_work_free(&work);
        if (node)
            remove_node(node);
        return r;
    }
    node->work = work;
    graph_node_adopt(node);
    note_work(g, &work);
    *out = node;
    return CUDA_SUCCESS;
}

// --- calls -------------------------------------------------------------------------------------------------

static bool capturing(const struct graph_work *w)
{
    if (w->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return w->child->capturing;
    for (unsigned i = 0; w->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < w->choice.size; i++) {
        if (w->choice.bodies[i]->capturing)
            return true;
    }
    return false;
}

CUresult cuGraphDestroyNode(CUgraphNode n)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_node_is(n) || capturing(&n->work))
        r = CUDA_ERROR_INVALID_VALUE;
    else if (n->graph->memory)
        r = CUDA_ERROR_NOT_SUPPORTED;
    else
        remove_node(n);
    graph_leave();
    return r;
}

static bool connected(const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
    bool few = from->out.len < to->in.len;
    const struct graph_edge *edges = few ? from->out.items : to->in.items;
    for (size_t i = 0; i < (few ? from->out.len : to->in.len); i++) {
        if (edges[i].node == (few ? to : from))
            return true;
    }
    return false;
}

static CUresult check_edges(const struct CUgraph_st *g, const CUgraphNode *from, const CUgraphNode *to,
                            const CUgraphEdgeData *data, size_t n, bool present)
{
    if (!graph_is((CUgraph)g) || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (!graph_node_is(from[i]) || !graph_node_is(to[i]) || from[i] == to[i] || from[i]->graph != g ||
            to[i]->graph != g || (data && !good_edge(&data[i])) || connected(from[i], to[i]) != present)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult add_edges(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                          const CUgraphEdgeData *data, size_t n)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    r = check_edges(g, from, to, data, n, false);
    for (size_t i = 0; i < n && !r; i++)
        r = graph_node_connect(from[i], to[i], data ? &data[i] : NULL);
    graph_leave();
    return r;
}

static CUresult remove_edges(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                             const CUgraphEdgeData *data, size_t n)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    r = check_edges(g, from, to, data, n, true);
    if (!r && n && g->memory)
        r = CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < n && !r; i++)
        disconnect(from[i], to[i]);
    graph_leave();
    return r;
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return add_edges(g, from, to, NULL, n);
}

CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *data, size_t n)
{
    return add_edges(g, from, to, data, n);
}

CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return remove_edges(g, from, to, NULL, n);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *data, size_t n)
{
    return remove_edges(g, from, to, data, n);
}
