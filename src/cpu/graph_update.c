// SPDX-License-Identifier: MIT
// New parameters for executable graphs: for single nodes, or for all of them from a graph of the same shape.
#include <string.h>

#include "cpu/graphs.h"

// --- allowed changes ---------------------------------------------------------------------------------------

static bool flat(const CUDA_MEMCPY3D *c)
{
    return c->Height <= 1 && c->Depth <= 1;
}

static bool copy_allowed(const struct graph_work *from, const struct graph_work *to)
{
    const CUDA_MEMCPY3D *a = &from->copy.params, *b = &to->copy.params;
    return from->copy.ctx == to->copy.ctx && a->srcMemoryType == b->srcMemoryType &&
           a->dstMemoryType == b->dstMemoryType && flat(a) == flat(b);
}

static bool fill_allowed(const struct graph_work *from, const struct graph_work *to)
{
    const CUDA_MEMSET_NODE_PARAMS_v2 *a = &from->fill.params, *b = &to->fill.params;
    if (a->ctx != b->ctx || a->height != b->height)
        return false;
    return a->height == 1 ||
           (a->width == b->width && a->pitch == b->pitch && a->elementSize == b->elementSize);
}

CUgraphExecUpdateResult graph_update_allowed(const struct graph_work *from, const struct graph_work *to)
{
    if (from->type != to->type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    bool same = true;
    switch ((int)from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (from->kernel.ctx != to->kernel.ctx)
            return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
        if (from->kernel.cooperative != to->kernel.cooperative)
            return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY: same = copy_allowed(from, to); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: same = fill_allowed(from, to); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: same = from->alloc.memory == to->alloc.memory; break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: same = from->freed == to->freed; break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        same = from->choice.type == to->choice.type && from->choice.size == to->choice.size &&
               from->choice.ctx == to->choice.ctx;
        break;
    default: break;
    }
    return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

// --- one node ----------------------------------------------------------------------------------------------

static struct graph_extra attributes_of(const struct graph_work *w)
{
    if (w->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return (struct graph_extra){.count = 0};
    return (struct graph_extra){.attributes = w->kernel.attributes.items,
                                .count = (unsigned)w->kernel.attributes.len};
}

// Replaces the work of an exec's node. Its attributes stay, unless there are new ones.
static CUresult set_exec(struct CUgraphNode_st *at, CUgraphNodeParams *p)
{
    struct graph_work work;
    struct graph_extra extra = attributes_of(&at->work);
    CUresult r = graph_work_make(&work, NULL, p, &extra);
    if (r)
        return r;
    if (graph_update_allowed(&at->work, &work)) {
        graph_work_free(&work);
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph_work_free(&at->work);
    at->work = work;
    return CUDA_SUCCESS;
}

// Returns whether the parameters of nodes of this type can be set.
static bool settable(CUgraphNodeType type)
{
    switch ((int)type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return true;
    default: return false;
    }
}

static CUresult exec_set(CUgraphExec e, CUgraphNode n, CUgraphNodeParams *p)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    struct CUgraphNode_st *at = handle_is(e, HANDLE_GRAPH_EXEC) ? graph_exec_find(e, n) : NULL;
    r = at && at->work.type == p->type && settable(p->type) ? set_exec(at, p) : CUDA_ERROR_INVALID_VALUE;
    graph_leave();
    return r;
}

static CUresult node_set(CUgraphNode n, CUgraphNodeParams *p)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    struct graph_work work;
    bool known = graph_node_is(n) && n->work.type == p->type && settable(p->type);
    r = CUDA_ERROR_INVALID_VALUE;
    if (known) {
        struct graph_extra extra = attributes_of(&n->work);
        r = graph_work_make(&work, n->graph, p, &extra);
    }
    if (!r) {
        graph_work_free(&n->work);
        n->work = work;
    }
    graph_leave();
    return r;
}

CUresult cuGraphNodeSetParams(CUgraphNode n, CUgraphNodeParams *p)
{
    return p ? node_set(n, p) : CUDA_ERROR_INVALID_VALUE;
}

// Defines the calls that set the parameters of one type, for a node and for an exec's node.
#define SET_CALLS(name, kind, suffix, structure, ...)                 \
    CUresult cuGraph##name##suffix(CUgraphNode n, const structure *p) \
    {                                                                 \
        if (!p)                                                       \
            return CUDA_ERROR_INVALID_VALUE;                          \
        CUgraphNodeParams all = {.type = kind, __VA_ARGS__};          \
        return node_set(n, &all);                                     \
    }
#define SET_EXEC_CALLS(name, kind, suffix, structure, ...)                               \
    SET_CALLS(name, kind, suffix, structure, __VA_ARGS__)                                \
    CUresult cuGraphExec##name##suffix(CUgraphExec e, CUgraphNode n, const structure *p) \
    {                                                                                    \
        if (!p)                                                                          \
            return CUDA_ERROR_INVALID_VALUE;                                             \
        CUgraphNodeParams all = {.type = kind, __VA_ARGS__};                             \
        return exec_set(e, n, &all);                                                     \
    }

#define KERNEL_OF(p)                                                                            \
    {                                                                                           \
        (p)->func, (p)->gridDimX, (p)->gridDimY, (p)->gridDimZ, (p)->blockDimX, (p)->blockDimY, \
            (p)->blockDimZ, (p)->sharedMemBytes, (p)->kernelParams, (p)->extra, NULL, NULL      \
    }
#define KERNEL_V2_OF(p)                                                                             \
    {                                                                                               \
        (p)->func, (p)->gridDimX, (p)->gridDimY, (p)->gridDimZ, (p)->blockDimX, (p)->blockDimY,     \
            (p)->blockDimZ, (p)->sharedMemBytes, (p)->kernelParams, (p)->extra, (p)->kern, (p)->ctx \
    }
SET_EXEC_CALLS(KernelNodeSetParams, CU_GRAPH_NODE_TYPE_KERNEL, , CUDA_KERNEL_NODE_PARAMS_v1,
               .kernel = KERNEL_OF(p))
SET_EXEC_CALLS(KernelNodeSetParams, CU_GRAPH_NODE_TYPE_KERNEL, _v2, CUDA_KERNEL_NODE_PARAMS,
               .kernel = KERNEL_V2_OF(p))
SET_EXEC_CALLS(HostNodeSetParams, CU_GRAPH_NODE_TYPE_HOST, , CUDA_HOST_NODE_PARAMS,
               .host = {p->fn, p->userData})
SET_EXEC_CALLS(BatchMemOpNodeSetParams, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, , CUDA_BATCH_MEM_OP_NODE_PARAMS,
               .memOp = {p->ctx, p->count, p->paramArray, p->flags})

#define EVENT_CALLS(name, kind, member)                                                   \
    CUresult cuGraph##name##NodeSetEvent(CUgraphNode n, CUevent event)                    \
    {                                                                                     \
        CUgraphNodeParams all = {.type = kind, .member = {event}};                        \
        return node_set(n, &all);                                                         \
    }                                                                                     \
    CUresult cuGraphExec##name##NodeSetEvent(CUgraphExec e, CUgraphNode n, CUevent event) \
    {                                                                                     \
        CUgraphNodeParams all = {.type = kind, .member = {event}};                        \
        return exec_set(e, n, &all);                                                      \
    }
EVENT_CALLS(EventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD, eventRecord)
EVENT_CALLS(EventWait, CU_GRAPH_NODE_TYPE_WAIT_EVENT, eventWait)

// Returns the context of a node of that type: a node whose new parameters name no context stays in its old
// one.
static struct CUctx_st *context_of(CUgraphNode n, CUgraphNodeType type)
{
    if (!graph_node_is(n) || n->work.type != type)
        return NULL;
    return type == CU_GRAPH_NODE_TYPE_MEMCPY ? n->work.copy.ctx : n->work.fill.params.ctx;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode n, const CUDA_MEMCPY3D *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {
        .type = CU_GRAPH_NODE_TYPE_MEMCPY,
        .memcpy = {.copyCtx = context_of(n, CU_GRAPH_NODE_TYPE_MEMCPY), .copyParams = *p}};
    return node_set(n, &all);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *p}};
    return exec_set(e, n, &all);
}

#define FILL_OF(p, ctx)                                                                    \
    {                                                                                      \
        (p)->dst, (p)->pitch, (p)->value, (p)->elementSize, (p)->width, (p)->height, (ctx) \
    }
CUresult cuGraphMemsetNodeSetParams(CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                             .memset = FILL_OF(p, context_of(n, CU_GRAPH_NODE_TYPE_MEMSET))};
    return node_set(n, &all);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec e, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p,
                                        CUcontext ctx)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = FILL_OF(p, ctx)};
    return exec_set(e, n, &all);
}

// --- whole graphs ------------------------------------------------------------------------------------------

struct change {
    struct CUgraphNode_st *at;
    struct graph_work work;
};

struct update {
    CUgraphExecUpdateResultInfo info;
    VEC(struct change) changes;
};

static CUresult fail(struct update *u, CUgraphExecUpdateResult why, CUgraphNode n, CUgraphNode from)
{
    u->info = (CUgraphExecUpdateResultInfo){why, n, from};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult compare(struct update *u, struct CUgraph_st *have, struct CUgraph_st *want);

// Compares the graphs in two nodes' work and updates their nodes.
static CUresult compare_below(struct update *u, struct CUgraphNode_st *have, struct CUgraphNode_st *want)
{
    if (have->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
        return compare(u, have->work.child, want->work.child);
    CUresult r = CUDA_SUCCESS;
    for (unsigned i = 0; i < have->work.choice.size && !r; i++)
        r = compare(u, have->work.choice.bodies[i], want->work.choice.bodies[i]);
    return r;
}

static CUresult compare_edges(struct update *u, const struct CUgraphNode_st *have,
                              struct CUgraphNode_st *want)
{
    if (have->in.len != want->in.len)
        return fail(u, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, want, NULL);
    for (size_t i = 0; i < want->in.len; i++) {
        if (have->in.items[i].node->index != want->in.items[i].node->index)
            return fail(u, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, want, want->in.items[i].node);
    }
    return CUDA_SUCCESS;
}

static CUresult compare_node(struct update *u, struct CUgraphNode_st *have, struct CUgraphNode_st *want)
{
    CUresult r = compare_edges(u, have, want);
    if (r)
        return r;
    CUgraphExecUpdateResult why = graph_update_allowed(&have->work, &want->work);
    if (why)
        return fail(u, why, want, NULL);
    if (have->work.type == CU_GRAPH_NODE_TYPE_GRAPH || have->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return compare_below(u, have, want);
    struct change c = {.at = have};
    r = graph_work_copy(&c.work, &want->work, true);
    c.work.inside = have->work.inside;
    if (!r && vec_push(&u->changes, c)) {
        graph_work_free(&c.work);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return r;
}

// Pairs the nodes of two graphs in the order in which they were made.
static CUresult compare(struct update *u, struct CUgraph_st *have, struct CUgraph_st *want)
{
    if (have->count != want->count)
        return fail(u, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
    graph_order_number(have);
    graph_order_number(want);
    CUresult r = CUDA_SUCCESS;
    struct CUgraphNode_st *a = have->first, *b = want->first;
    for (; a && !r; a = a->next, b = b->next)
        r = compare_node(u, a, b);
    return r;
}

// Makes conditional nodes use the words of the other graph, which its kernels write.
static void take_conditions(struct CUgraph_st *have, const struct CUgraph_st *want)
{
    const struct CUgraphNode_st *b = want->first;
    for (struct CUgraphNode_st *a = have->first; a; a = a->next, b = b->next) {
        if (a->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            take_conditions(a->work.child, b->work.child);
        if (a->work.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
            continue;
        b->work.choice.condition->refs++;
        graph_choice_drop(a->work.choice.condition);
        a->work.choice.condition = b->work.choice.condition;
        for (unsigned i = 0; i < a->work.choice.size; i++)
            take_conditions(a->work.choice.bodies[i], b->work.choice.bodies[i]);
    }
    for (size_t i = 0; i < have->conditions.len && i < want->conditions.len; i++) {
        want->conditions.items[i]->refs++;
        graph_choice_drop(have->conditions.items[i]);
        have->conditions.items[i] = want->conditions.items[i];
    }
}

// Updates all nodes or none.
static CUresult update(struct CUgraph_st *have, struct CUgraph_st *want, CUgraphExecUpdateResultInfo *info)
{
    struct update u = {.info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL, NULL}};
    CUresult r = compare(&u, have, want);
    if (r && !u.info.result)
        u.info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
    for (size_t i = 0; i < u.changes.len; i++) {
        struct change *c = &u.changes.items[i];
        graph_work_free(r ? &c->work : &c->at->work);
        if (!r)
            c->at->work = c->work;
    }
    if (!r)
        take_conditions(have, want);
    vec_free(&u.changes);
    *info = u.info;
    return r;
}

static CUresult update_exec(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    *info = (CUgraphExecUpdateResultInfo){CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL};
    CUresult r = graph_enter();
    if (r)
        return r;
    r = handle_is(e, HANDLE_GRAPH_EXEC) && graph_is(g) ? update(e->graph, g, info) : CUDA_ERROR_INVALID_VALUE;
    graph_leave();
    return r;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    CUgraphExecUpdateResultInfo unwanted;
    return update_exec(e, g, info ? info : &unwanted);
}

CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *bad, CUgraphExecUpdateResult *why)
{
    CUgraphExecUpdateResultInfo info;
    if (!why)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = update_exec(e, g, &info);
    if (bad)
        *bad = info.errorNode;
    *why = info.result;
    return r;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec e, CUgraphNode n, CUgraph child)
{
    CUgraphExecUpdateResultInfo info;
    CUresult r = graph_enter();
    if (r)
        return r;
    struct CUgraphNode_st *at = handle_is(e, HANDLE_GRAPH_EXEC) ? graph_exec_find(e, n) : NULL;
    r = at && at->work.type == CU_GRAPH_NODE_TYPE_GRAPH && graph_is(child)
            ? update(at->work.child, child, &info)
            : CUDA_ERROR_INVALID_VALUE;
    graph_leave();
    return r == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_ERROR_INVALID_VALUE : r;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec e, CUgraphNode n, CUgraphNodeParams *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    return p->type == CU_GRAPH_NODE_TYPE_GRAPH ? cuGraphExecChildGraphNodeSetParams(e, n, p->graph.graph)
                                               : exec_set(e, n, p);
}
