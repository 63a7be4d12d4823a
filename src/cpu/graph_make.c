// SPDX-License-Identifier: MIT
// Graphs as a whole: making, copying, freeing.
#include "cpu/graphs.h"
#include "cpu/logs.h"

static uint64_t last_id;

CUresult graph_enter(void)
{
    CUresult r = device_ready();
    if (r)
        return r;
    if (pool_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    capture_lock();
    return CUDA_SUCCESS;
}

void graph_leave(void)
{
    graph_object_reap();
    logs_notify();
}

struct CUgraph_st *graph_make_new(bool of_exec)
{
    struct CUgraph_st *g = mem_zalloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->of_exec = of_exec;
    g->id = ++last_id;
    if (!of_exec && handle_add(g, HANDLE_GRAPH)) {
        mem_free(g);
        return NULL;
    }
    return g;
}

void graph_make_free(struct CUgraph_st *g)
{
    if (!g)
        return;
    if (!g->of_exec)
        handle_remove(g);
    for (struct CUgraphNode_st *n = g->first, *next; n; n = next) {
        next = n->next;
        graph_node_free(n);
    }
    for (size_t i = 0; i < g->conditions.len; i++)
        graph_choice_drop(g->conditions.items[i]);
    vec_free(&g->conditions);
    graph_object_free(g);
    mem_free(g->order);
    mem_free(g);
}

static CUresult copy_nodes(struct CUgraph_st *to, const struct CUgraph_st *from)
{
    for (struct CUgraphNode_st *n = from->first; n; n = n->next) {
        n->twin = graph_node_new(to);
        if (!n->twin)
            return CUDA_ERROR_OUT_OF_MEMORY;
        n->twin->origin = n->id;
        n->twin->disabled = n->disabled;
        // Without a copy there is no work to free.
        CUresult r = graph_work_copy(&n->twin->work, &n->work, to->of_exec);
        if (r) {
            n->twin->work.type = CU_GRAPH_NODE_TYPE_EMPTY;
            return r;
        }
        graph_node_adopt(n->twin);
    }
    return CUDA_SUCCESS;
}

static CUresult copy_edges(const struct CUgraph_st *from)
{
    for (struct CUgraphNode_st *n = from->first; n; n = n->next) {
        for (size_t i = 0; i < n->in.len; i++) {
            CUresult r = graph_node_connect(n->in.items[i].node->twin, n->twin, &n->in.items[i].data);
            if (r)
                return r;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult copy_conditions(struct CUgraph_st *to, const struct CUgraph_st *from)
{
    if (vec_reserve(&to->conditions, from->conditions.len))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < from->conditions.len; i++) {
        from->conditions.items[i]->refs++;
        to->conditions.items[to->conditions.len++] = from->conditions.items[i];
    }
    return CUDA_SUCCESS;
}

CUresult graph_make_copy(const struct CUgraph_st *g, bool of_exec, struct CUgraph_st **out)
{
    struct CUgraph_st *copy = graph_make_new(of_exec);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->origin = g->id;
    copy->memory = g->memory;
    CUresult r = copy_nodes(copy, g);
    if (!r)
        r = copy_edges(g);
    if (!r)
        r = copy_conditions(copy, g);
    if (!r)
        r = graph_object_copy(copy, g);
    if (r)
        graph_make_free(copy);
    else
        *out = copy;
    return r;
}

// --- calls -------------------------------------------------------------------------------------------------

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    struct CUgraph_st *g = NULL;
    if (!out || flags)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (!(g = graph_make_new(false)))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    else
        *out = g;
    graph_leave();
    return r;
}

// A graph that belongs to a node is freed with the node; one that is being captured, with its capture.
CUresult cuGraphDestroy(CUgraph g)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_is(g) || g->owner || g->capturing)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        graph_make_free(g);
    graph_leave();
    return r;
}

CUresult cuGraphClone(CUgraph *out, CUgraph g)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!out || !graph_is(g))
        r = CUDA_ERROR_INVALID_VALUE;
    else
        r = g->memory ? CUDA_ERROR_NOT_SUPPORTED : graph_make_copy(g, false, out);
    graph_leave();
    return r;
}

static struct CUgraphNode_st *find_copy(const struct CUgraph_st *g, uint64_t origin)
{
    for (struct CUgraphNode_st *n = g->first; n; n = n->next) {
        if (n->origin == origin)
            return n;
    }
    return NULL;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode n, CUgraph clone)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    bool good = out && graph_node_is(n) && graph_is(clone) && clone->origin;
    struct CUgraphNode_st *found = good ? find_copy(clone, n->id) : NULL;
    if (found)
        *out = found;
    graph_leave();
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
