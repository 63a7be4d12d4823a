// SPDX-License-Identifier: MIT
// Executable graphs: instantiation, lookup of nodes, destruction.
#include <stdlib.h>
#include <string.h>

#include "cpu/graphs.h"

static bool exec_is(CUgraphExec e)
{
    return handle_is(e, HANDLE_GRAPH_EXEC);
}

// --- instantiation -----------------------------------------------------------------------------------------

// Sets `inside` of the memory nodes: whether an allocation is made and freed by each launch. Later changes of
// the application's graph do not affect it.
static void note_inside(struct CUgraph_st *g)
{
    uint64_t allocated = graph_node_stamp(), both = graph_node_stamp();
    struct CUgraphNode_st *n;
    for (n = g->first; n; n = n->next) {
        if (n->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            n->work.alloc.memory->mark = allocated;
    }
    for (n = g->first; n; n = n->next) {
        if (n->work.type != CU_GRAPH_NODE_TYPE_MEM_FREE || n->work.freed->mark < allocated)
            continue;
        n->work.inside = true;
        n->work.freed->mark = both;
    }
    for (n = g->first; n; n = n->next)
        n->work.inside |= n->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && n->work.alloc.memory->mark == both;
}

// Orders the graph and all graphs below it, and adds every node to the index.
static CUresult finish(struct CUgraphExec_st *e, struct CUgraph_st *g, struct CUgraphNode_st **bad)
{
    CUresult r = graph_order_make(g, bad);
    if (g->memory)
        note_inside(g);
    for (struct CUgraphNode_st *n = g->first; n && !r; n = n->next) {
        if (vec_push(&e->index, (struct graph_exec_entry){n->origin, n}))
            r = CUDA_ERROR_OUT_OF_MEMORY;
        else if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            r = finish(e, n->work.child, bad);
        for (unsigned i = 0; !r && n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < n->work.choice.size;
             i++)
            r = finish(e, n->work.choice.bodies[i], bad);
    }
    return r;
}

static int by_origin(const void *a, const void *b)
{
    const struct graph_exec_entry *x = a, *y = b;
    return x->origin < y->origin ? -1 : x->origin > y->origin;
}

struct CUgraphNode_st *graph_exec_find(const struct CUgraphExec_st *e, CUgraphNode n)
{
    if (!graph_node_is(n) || !e->index.len)
        return NULL;
    struct graph_exec_entry key = {n->id, NULL}, *found;
    found = bsearch(&key, e->index.items, e->index.len, sizeof key, by_origin);
    return found ? found->node : NULL;
}

static void free_exec(struct CUgraphExec_st *e)
{
    graph_make_free(e->graph);
    vec_free(&e->index);
    mem_free(e);
}

void graph_exec_drop(struct CUgraphExec_st *e)
{
    if (!--e->refs)
        free_exec(e);
}

// Returns whether the graph has conditions that no node reads.
static bool has_unused(const struct CUgraph_st *g)
{
    for (size_t i = 0; i < g->conditions.len; i++) {
        if (!g->conditions.items[i]->used)
            return true;
    }
    return false;
}

static CUresult build(struct CUgraph_st *g, uint64_t flags, struct CUgraphNode_st **bad,
                      struct CUgraphExec_st **out)
{
    struct CUgraphExec_st *e = mem_zalloc(1, sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = graph_make_copy(g, true, &e->graph);
    if (!r)
        r = finish(e, e->graph, bad);
    if (!r && handle_add(e, HANDLE_GRAPH_EXEC))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        // The copy will be freed: the node is found in the original by its origin.
        for (struct CUgraphNode_st *n = g->first, *of = *bad; of && n; n = n->next)
            *bad = n->id == of->origin ? n : *bad;
        if (*bad && !graph_node_is(*bad))
            *bad = NULL;
        free_exec(e);
        return r;
    }
    if (e->index.len)
        qsort(e->index.items, e->index.len, sizeof *e->index.items, by_origin);
    e->source = g;
    e->source_id = g->id;
    e->flags = flags;
    e->refs = 1;
    *out = e;
    return CUDA_SUCCESS;
}

// Returns whether kernels may launch the graph: it must consist of kernels, copies and memsets.
static bool for_device(const struct CUgraph_st *g)
{
    bool any = false;
    for (const struct CUgraphNode_st *n = g->first; n; n = n->next) {
        switch ((int)n->work.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: any = true; break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
        case CU_GRAPH_NODE_TYPE_EMPTY: break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (!for_device(n->work.child))
                return false;
            any = true;
            break;
        default: return false;
        }
    }
    return any;
}

// Checks the flags and the graph before anything is made; *why says what is wrong.
static CUresult check(CUgraph g, uint64_t flags, CUgraphInstantiateResult *why)
{
    uint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                     CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                     CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    *why = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (!graph_is(g) || flags & ~known || g->owner || g->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH && !for_device(g))
        return CUDA_ERROR_INVALID_VALUE;
    if (has_unused(g)) {
        *why = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return g->memory && g->execs ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, uint64_t flags, CUgraphNode *bad,
                            CUgraphInstantiateResult *why)
{
    *bad = NULL;
    CUresult r = graph_enter();
    if (r)
        return r;
    r = out ? check(g, flags, why) : CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        r = build(g, flags, bad, out);
        if (r && *bad)
            *why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    }
    if (!r) {
        g->execs += g->memory;
        *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    }
    graph_leave();
    return r;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    CUgraphNode bad;
    CUgraphInstantiateResult why;
    return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE
                                                      : instantiate(out, g, flags, &bad, &why);
}

static CUresult instantiate_with_log(CUgraphExec *out, CUgraph g, CUgraphNode *node, char *log, size_t size)
{
    CUgraphNode bad;
    CUgraphInstantiateResult why;
    CUresult r = instantiate(out, g, 0, &bad, &why);
    if (node)
        *node = bad;
    if (log && size)
        *log = '\0';
    return r;
}

CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph g, CUgraphNode *bad, char *log, size_t size)
{
    return instantiate_with_log(out, g, bad, log, size);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *bad, char *log, size_t size)
{
    return instantiate_with_log(out, g, bad, log, size);
}

static CUresult instantiate_with_params(bool per_thread, CUgraphExec *out, CUgraph g,
                                        CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    p->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    CUresult r = instantiate(out, g, p->flags, &p->hErrNode_out, &p->result_out);
    if (r || !(p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
        return r;
    r = per_thread ? cuGraphUpload_ptsz(*out, p->hUploadStream) : cuGraphUpload(*out, p->hUploadStream);
    if (r) {
        cuGraphExecDestroy(*out);
        p->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    }
    return r;
}
STREAM_CALL(cuGraphInstantiateWithParams, instantiate_with_params,
            (CUgraphExec * out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), out, g, p)

// --- destruction -------------------------------------------------------------------------------------------

// Launches that are pending run to their end.
CUresult cuGraphExecDestroy(CUgraphExec e)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!exec_is(e)) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        handle_remove(e);
        if (graph_is(e->source) && e->source->id == e->source_id)
            e->source->execs -= e->graph->memory;
        pool_lock();
        pool_release(e->last);
        pool_unlock();
        e->last = NULL;
        graph_exec_drop(e);
    }
    graph_leave();
    return r;
}

CUresult cuGraphExecGetFlags(CUgraphExec e, cuuint64_t *flags)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!exec_is(e) || !flags)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        *flags = e->flags;
    graph_leave();
    return r;
}

// --- single nodes ------------------------------------------------------------------------------------------

static struct CUgraphNode_st *switchable(CUgraphExec e, CUgraphNode n)
{
    struct CUgraphNode_st *at = exec_is(e) ? graph_exec_find(e, n) : NULL;
    bool can =
        at && (at->work.type == CU_GRAPH_NODE_TYPE_KERNEL || at->work.type == CU_GRAPH_NODE_TYPE_MEMSET ||
               at->work.type == CU_GRAPH_NODE_TYPE_MEMCPY);
    return can ? at : NULL;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec e, CUgraphNode n, unsigned int enabled)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    struct CUgraphNode_st *at = switchable(e, n);
    if (at)
        at->disabled = !enabled;
    graph_leave();
    return at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec e, CUgraphNode n, unsigned int *enabled)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    struct CUgraphNode_st *at = enabled ? switchable(e, n) : NULL;
    if (at)
        *enabled = !at->disabled;
    graph_leave();
    return at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
