// SPDX-License-Identifier: MIT
// Work of nodes: made from the application's structures, copied, and described again. Work owns what it
// needs, so that the structures may be freed when the call returns.
#include <string.h>

#include "cpu/graphs.h"

CUresult graph_work_context(CUcontext named, struct CUctx_st **out)
{
    if (!named)
        return cpu_context_current(out);
    *out = cpu_context_named(named);
    return *out ? stream_error(*out) : CUDA_ERROR_INVALID_CONTEXT;
}

// --- making ------------------------------------------------------------------------------------------------

static bool empty(const struct copy_job *j)
{
    return !j->width || !j->height || !j->depth;
}

static CUresult make_copy(struct graph_work *w, const CUDA_MEMCPY_NODE_PARAMS *p)
{
    w->copy.params = p->copyParams;
    CUresult r = graph_work_context(p->copyCtx, &w->copy.ctx);
    if (!r)
        r = copy_shape_job(&p->copyParams, &w->copy.job);
    if (!r)
        r = empty(&w->copy.job) || p->flags ? CUDA_ERROR_INVALID_VALUE
                                            : copy_run_check(&w->copy.job, COPY_PLANNED);
    return r;
}

static CUresult make_fill(struct graph_work *w, const CUDA_MEMSET_NODE_PARAMS_v2 *p, bool captured)
{
    struct CUctx_st *ctx;
    w->fill.params = *p;
    CUresult r = graph_work_context(p->ctx, &ctx);
    if (r)
        return r;
    w->fill.params.ctx = ctx;
    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    r = copy_set_job(p, &w->fill.job);
    if (!r)
        r = empty(&w->fill.job) ? CUDA_ERROR_INVALID_VALUE
                                : copy_run_check(&w->fill.job, captured ? COPY_CAPTURED : COPY_PLANNED);
    return r;
}

// If ownership is moved, the application's own graph becomes the child; otherwise a copy of it.
static CUresult make_child(struct graph_work *w, const CUDA_CHILD_GRAPH_NODE_PARAMS *p)
{
    bool move = p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (!graph_is(p->graph) || (unsigned)p->ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    if (move && (p->graph->owner || p->graph->capturing))
        return CUDA_ERROR_INVALID_VALUE;
    if (!move && p->graph->memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!move)
        return graph_make_copy(p->graph, false, &w->child);
    w->child = p->graph;
    return CUDA_SUCCESS;
}

static CUresult check_pool(const CUmemPoolProps *p)
{
    bool host = false;
    if (p->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || p->handleTypes ||
        memory_managed_location(p->location.type, p->location.id, &host))
        return CUDA_ERROR_INVALID_VALUE;
    return host ? not_supported("an allocation node of host memory") : CUDA_SUCCESS;
}

static CUresult make_alloc(struct graph_work *w, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p)
{
    enum { MOST_ACCESS = 64 };
    p->dptr = 0;
    if (!p->bytesize || p->accessDescCount > MOST_ACCESS || (p->accessDescCount && !p->accessDescs))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = check_pool(&p->poolProps);
    if (r)
        return r;
    w->alloc.params = *p;
    w->alloc.access = mem_zalloc(p->accessDescCount + 1, sizeof *w->alloc.access);
    if (!w->alloc.access)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (p->accessDescCount)
        memcpy(w->alloc.access, p->accessDescs, p->accessDescCount * sizeof *w->alloc.access);
    w->alloc.params.accessDescs = p->accessDescCount ? w->alloc.access : NULL;
    r = graph_memory_new(p->bytesize, p->poolProps.location.id, &w->alloc.memory);
    if (r)
        mem_free(w->alloc.access);
    else
        p->dptr = w->alloc.params.dptr = w->alloc.memory->node.base;
    return r;
}

static CUresult make_batch(struct graph_work *w, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
    CUresult r = graph_work_context(p->ctx, &w->batch.ctx);
    if (!r)
        r = p->count ? stream_memop_check(p->count, p->paramArray, p->flags) : CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    w->batch.count = p->count;
    w->batch.steps = mem_alloc(p->count * sizeof *w->batch.steps);
    if (!w->batch.steps)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(w->batch.steps, p->paramArray, p->count * sizeof *w->batch.steps);
    return CUDA_SUCCESS;
}

CUresult graph_work_make(struct graph_work *w, const struct CUgraph_st *g, CUgraphNodeParams *p,
                         const struct graph_extra *extra)
{
    static const struct graph_extra none;
    const struct graph_extra *x = extra ? extra : &none;
    memset(w, 0, sizeof *w);
    w->type = p->type;
    switch ((int)p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return graph_kernel_make(&w->kernel, &p->kernel, x->attributes, x->count);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return make_copy(w, &p->memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET: return make_fill(w, &p->memset, x->captured);
    case CU_GRAPH_NODE_TYPE_HOST:
        w->host = p->host;
        return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH: return make_child(w, &p->graph);
    case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        w->event = p->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? p->eventWait.event : p->eventRecord.event;
        return handle_is(w->event, HANDLE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return not_supported("a node of external semaphores");
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return make_alloc(w, &p->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        w->freed = graph_memory_find(p->free.dptr);
        return w->freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return make_batch(w, &p->memOp);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return graph_choice_make(&w->choice, g, &p->conditional);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// --- copying -----------------------------------------------------------------------------------------------

static CUresult copy_arrays(struct graph_work *to, const struct graph_work *from)
{
    if (to->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
        to->batch.steps = mem_alloc(from->batch.count * sizeof *to->batch.steps);
        if (!to->batch.steps)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(to->batch.steps, from->batch.steps, from->batch.count * sizeof *to->batch.steps);
        return CUDA_SUCCESS;
    }
    size_t n = from->alloc.params.accessDescCount;
    to->alloc.access = mem_zalloc(n + 1, sizeof *to->alloc.access);
    if (!to->alloc.access)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(to->alloc.access, from->alloc.access, n * sizeof *to->alloc.access);
    to->alloc.params.accessDescs = n ? to->alloc.access : NULL;
    graph_memory_keep(to->alloc.memory);
    return CUDA_SUCCESS;
}

CUresult graph_work_copy(struct graph_work *to, const struct graph_work *from, bool of_exec)
{
    *to = *from;
    switch ((int)from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return graph_kernel_copy(&to->kernel, &from->kernel);
    case CU_GRAPH_NODE_TYPE_GRAPH: return graph_make_copy(from->child, of_exec, &to->child);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: graph_memory_keep(to->freed); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return graph_choice_copy(&to->choice, &from->choice, of_exec);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return copy_arrays(to, from);
    default: return CUDA_SUCCESS;
    }
}

void graph_work_free(struct graph_work *w)
{
    switch ((int)w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: graph_kernel_free(&w->kernel); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: graph_make_free(w->child); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        mem_free(w->alloc.access);
        graph_memory_drop(w->alloc.memory);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: graph_memory_drop(w->freed); break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: mem_free(w->batch.steps); break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: graph_choice_free(&w->choice); break;
    default: break;
    }
}

// --- description -------------------------------------------------------------------------------------------

void graph_work_params(const struct graph_work *w, CUgraphNodeParams *out)
{
    memset(out, 0, sizeof *out);
    out->type = w->type;
    switch ((int)w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: graph_kernel_params(&w->kernel, &out->kernel); break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        out->memcpy.copyCtx = w->copy.ctx;
        out->memcpy.copyParams = w->copy.params;
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET: out->memset = w->fill.params; break;
    case CU_GRAPH_NODE_TYPE_HOST: out->host = w->host; break;
    case CU_GRAPH_NODE_TYPE_GRAPH: out->graph.graph = w->child; break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: out->eventWait.event = w->event; break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: out->eventRecord.event = w->event; break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: out->alloc = w->alloc.params; break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: out->free.dptr = w->freed->node.base; break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        out->memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){w->batch.ctx, w->batch.count, w->batch.steps, 0};
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        out->conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = w->choice.condition->word,
                                                          .type = w->choice.type,
                                                          .size = w->choice.size,
                                                          .phGraph_out = w->choice.bodies,
                                                          .ctx = w->choice.ctx};
        break;
    default: break;
    }
}
