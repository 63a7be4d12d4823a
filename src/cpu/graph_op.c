// SPDX-License-Identifier: MIT
// Operations of single nodes. Each owns what it needs: the node may be changed or freed while they are
// pending.
#include "cpu/graphs.h"

struct pool_op *graph_op_new(enum pool_kind kind, struct CUctx_st *ctx, stream_fn *fn, void *task)
{
    struct pool_op *op = task ? pool_op_new(kind, ctx) : NULL;
    if (!op) {
        mem_free(task);
        return NULL;
    }
    op->fn = fn;
    op->arg = task;
    return op;
}

struct copy_task {
    struct graph_op_task task;
    struct CUctx_st *ctx;
    struct copy_job job;
};

// Runs a copy, whose memory may have been freed since the node was made.
static void run_copy(void *arg, bool run)
{
    struct copy_task *t = arg;
    const struct copy_side *bad;
    if (run && copy_run_now(&t->job, &bad))
        pool_fail(t->ctx, &(struct exec_fault){.kind = EXEC_ILLEGAL_ADDRESS,
                                               .address = bad->at,
                                               .size = t->job.width > UINT32_MAX ? UINT32_MAX
                                                                                 : (uint32_t)t->job.width,
                                               .write = bad == &t->job.dst,
                                               .space = "global"});
    mem_free(t);
}

static struct pool_op *copy_op(struct CUctx_st *ctx, const struct copy_job *j)
{
    struct copy_task *t = mem_zalloc(1, sizeof *t);
    if (t) {
        t->ctx = ctx;
        t->job = *j;
    }
    return graph_op_new(POOL_WORK, ctx, run_copy, t);
}

struct host_task {
    struct graph_op_task task;
    CUDA_HOST_NODE_PARAMS_v2 call;
};

static void run_host(void *arg, bool run)
{
    CUDA_HOST_NODE_PARAMS_v2 call = ((struct host_task *)arg)->call;
    mem_free(arg);
    if (run)
        call.fn(call.userData);
}

static struct pool_op *host_op(struct CUctx_st *ctx, const CUDA_HOST_NODE_PARAMS_v2 *call)
{
    struct host_task *t = pool_start_callbacks() ? NULL : mem_zalloc(1, sizeof *t);
    if (t)
        t->call = *call;
    return graph_op_new(POOL_CALLBACK, ctx, run_host, t);
}

struct memory_task {
    struct graph_op_task task;
    struct graph_memory *memory;
    bool show;
};

// Shows or hides an allocation, also if the context is in error: the counts must stay right.
static void run_memory(void *arg, bool run)
{
    struct memory_task *t = arg;
    if (!t->task.abandoned && t->show)
        graph_memory_show(t->memory);
    else if (!t->task.abandoned)
        graph_memory_hide(t->memory);
    graph_memory_drop(t->memory);
    mem_free(t);
}

static struct pool_op *memory_op(struct CUctx_st *ctx, struct graph_memory *m, bool show)
{
    struct memory_task *t = mem_zalloc(1, sizeof *t);
    if (t) {
        t->memory = m;
        t->show = show;
    }
    struct pool_op *op = graph_op_new(POOL_WORK, ctx, run_memory, t);
    if (op)
        graph_memory_keep(m);
    return op;
}

struct pool_op *graph_op_mark(struct CUctx_st *ctx)
{
    return pool_op_new(POOL_MARK, ctx);
}

void graph_op_abandon(struct pool_op *op)
{
    switch (op->kind) {
    case POOL_WORK:
    case POOL_CALLBACK:
        ((struct graph_op_task *)op->arg)->abandoned = true;
        op->fn(op->arg, false);
        break;
    case POOL_GRID: op->grid_done(op->arg, op->grid); break;
    case POOL_POLL: op->release(op->arg, false); break;
    default: break;
    }
    pool_op_discard(op);
}

static CUresult alive(const struct CUctx_st *ctx)
{
    // Partner: cpu_context_start.
    return atomic_load_explicit(&ctx->alive, memory_order_acquire) ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult event_op(struct CUctx_st *ctx, const struct CUgraphNode_st *n, struct pool_op **out)
{
    if (!handle_is(n->work.event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = graph_op_mark(ctx);
    if (*out && n->work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        (*out)->timed = event_timed(n->work.event);
    return CUDA_SUCCESS;
}

CUresult graph_op_make(struct CUgraphNode_st *n, struct CUctx_st *ctx, struct pool_op **out)
{
    struct graph_work *w = &n->work;
    CUresult r = CUDA_SUCCESS;
    *out = NULL;
    switch (n->disabled ? CU_GRAPH_NODE_TYPE_EMPTY : (int)w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return graph_kernel_op(&w->kernel, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        r = alive(w->copy.ctx);
        *out = r ? NULL : copy_op(w->copy.ctx, &w->copy.job);
        return r;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        r = alive(w->fill.params.ctx);
        *out = r ? NULL : copy_op(w->fill.params.ctx, &w->fill.job);
        return r;
    case CU_GRAPH_NODE_TYPE_HOST: *out = host_op(ctx, &w->host); return r;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_op(ctx, n, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        // An allocation that outlives the launch was made by the call, and one that the launch took over
        // exists already.
        *out = w->inside && !n->toggled ? memory_op(ctx, w->alloc.memory, true) : graph_op_mark(ctx);
        return r;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: *out = memory_op(ctx, w->freed, false); return r;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        r = alive(w->batch.ctx);
        *out = r ? NULL : stream_memop_op(w->batch.ctx, w->batch.count, w->batch.steps);
        return r;
    default: *out = graph_op_mark(ctx); return r;
    }
}
