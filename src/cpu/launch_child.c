// SPDX-License-Identifier: MIT
// Kernels that launch kernels and graphs.
//
// Operations that a grid launches are children of its operation: the grid is not done before they are. They
// may begin at once, beside the grid. Launches into one stream are ordered, and so are the launches of one
// block into no stream, independent of those of other blocks. A family has a few queues of launches; two
// streams may share a queue. An event is a queue too: its records are ordered, so that a wait for the last of
// them waits for all.
//
// Whatever a kernel has put into a queue, or has prepared to, counts as pending in its context until it has
// ended. The number is limited: a kernel that launches without end gets an error instead of using up all
// memory.
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/launch.h"
#include "exec/space.h"

enum { QUEUES = 32, TAIL_LAUNCH = 3, FIRE_AND_FORGET = 4 };
#define GRAPH_TAIL UINT64_C(0x0100000000000000)
#define GRAPH_FORGET UINT64_C(0x0200000000000000)
#define GRAPH_SIBLING UINT64_C(0x0300000000000000)

// A launch whose parameters the kernel is about to write.
struct child {
    struct child *next;
    uint64_t params;
    struct launch_request request;
};

struct launch_family {
    struct child *prepared;
    struct pool_op *queues[QUEUES];  // the last operation of each queue, with a reference
    struct pool_op *events[QUEUES];
    struct pool_op *tail;
};

// Guards all families. Rank: outside the pool's lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct launch_family *family_of(struct launch_owner *o)
{
    if (!o->family)
        o->family = mem_zalloc(1, sizeof *o->family);
    return o->family;
}

// Relaxed here and below: the count is independent of all other memory.
int launch_child_count(struct CUctx_st *ctx)
{
    unsigned before = atomic_fetch_add_explicit(&ctx->pending, 1, memory_order_relaxed);
    if (before < cpu_context_limit_now(ctx, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT))
        return CUDA_SUCCESS;
    atomic_fetch_sub_explicit(&ctx->pending, 1, memory_order_relaxed);
    return EXEC_TOO_MANY_PENDING;
}

void launch_child_uncount(struct CUctx_st *ctx)
{
    atomic_fetch_sub_explicit(&ctx->pending, 1, memory_order_relaxed);
}

void launch_child_ended(struct pool_op *op)
{
    launch_child_uncount(op->ctx);
}

static void free_child(struct child *c)
{
    if (c && c->params)
        memory_internal_free(c->params);
    mem_free(c);
}

static int prepare(void *owner, const struct exec_kernel *k, const uint32_t grid[3], const uint32_t block[3],
                   uint32_t shared, uint64_t *params)
{
    struct launch_owner *o = owner;
    int r = launch_child_count(o->ctx);
    if (r)
        return r;
    struct child *c = mem_zalloc(1, sizeof *c);
    if (!c) {
        launch_child_uncount(o->ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->request = (struct launch_request){.ctx = o->ctx,
                                         .grid = {grid[0], grid[1], grid[2]},
                                         .block = {block[0], block[1], block[2]},
                                         .shared = shared};
    // A kernel may only launch kernels of its own program, whose addresses it knows.
    bool ours = k->program == o->module->program && !module_function(o->module, k, &c->request.f) &&
                !launch_check(&c->request);
    if (ours)
        c->params = memory_internal_alloc(k->param_size, 256);
    mutex_lock(&lock);
    struct launch_family *f = c->params ? family_of(o) : NULL;
    *params = c->params;
    if (f) {
        c->next = f->prepared;
        f->prepared = c;
    }
    mutex_unlock(&lock);
    if (f)
        return CUDA_SUCCESS;
    launch_child_uncount(o->ctx);
    free_child(c);
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static struct child *take(struct launch_family *f, uint64_t params)
{
    for (struct child **at = f ? &f->prepared : NULL; at && *at; at = &(*at)->next)
        if ((*at)->params == params) {
            struct child *c = *at;
            *at = c->next;
            return c;
        }
    return NULL;
}

// Returns the queue of a stream. The handles of a kernel's own streams are multiples of EXEC_HANDLE_STEP.
static struct pool_op **queue_of(struct launch_family *f, uint64_t stream, uint64_t block)
{
    return &f->queues[(stream > FIRE_AND_FORGET ? stream / EXEC_HANDLE_STEP : block) % QUEUES];
}

// Appends op to a queue. The pool's lock must be held.
static void queue_append(struct pool_op **queue, struct pool_op *op)
{
    pool_depend(op, *queue);
    pool_release(*queue);
    *queue = op;
    pool_keep(op);
}

// Submits an operation that was counted as pending.
static void submit_child(struct launch_owner *o, struct pool_op *op, uint64_t stream, uint64_t block)
{
    struct launch_family *f = o->family;
    bool tail = stream == TAIL_LAUNCH;
    pool_lock();
    op->stream = o->op->stream;
    op->ended = launch_child_ended;
    pool_adopt(o->op, op, tail ? op : NULL);
    if (tail)
        queue_append(&f->tail, op);
    else if (stream != FIRE_AND_FORGET)
        queue_append(queue_of(f, stream, block), op);
    if (!tail)
        pool_submit(op);
    pool_unlock();
}

static int launch(void *owner, uint64_t params, uint64_t stream, uint64_t block)
{
    struct launch_owner *o = owner;
    struct pool_op *op;
    mutex_lock(&lock);
    struct child *c = take(o->family, params);
    CUresult r = c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        c->request.packed = space_host(params);
        r = launch_op(&c->request, &op);
    }
    if (!r)
        submit_child(o, op, stream, block);
    mutex_unlock(&lock);
    if (c && r)
        launch_child_uncount(o->ctx);
    free_child(c);
    return (int)r;
}

static int launch_graph(void *owner, uint64_t graph, uint64_t stream)
{
    struct launch_owner *o = owner;
    if (stream != GRAPH_TAIL && stream != GRAPH_FORGET && stream != GRAPH_SIBLING)
        return CUDA_ERROR_INVALID_VALUE;
    if (!o->exec)
        return CUDA_ERROR_NOT_SUPPORTED;
    return graph_launch_child(o->flight, o->number, (struct CUgraphExec_st *)(uintptr_t)graph,
                              stream == GRAPH_TAIL);
}

static uint64_t current_graph(void *owner)
{
    return (uint64_t)(uintptr_t)((struct launch_owner *)owner)->exec;
}

// --- copies ------------------------------------------------------------------------------------------------

struct copy_work {
    struct CUctx_st *ctx;
    struct exec_copy copy;
};

static void fail(struct CUctx_st *ctx, uint64_t address, uint64_t size, bool write)
{
    pool_fail(ctx, &(struct exec_fault){.kind = EXEC_ILLEGAL_ADDRESS,
                                        .address = address,
                                        .size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
                                        .write = write,
                                        .space = "global"});
}

// Copies a row. Returns false, with the context in error, if it cannot.
static bool run_row(struct CUctx_st *ctx, const struct exec_copy *c, uint64_t to, uint64_t from)
{
    bool writes = space_allows(to, c->width, SPACE_WRITE);
    if (!writes || !(c->fill || space_allows(from, c->width, SPACE_READ))) {
        fail(ctx, writes ? from : to, c->width, !writes);
        return false;
    }
    if (c->fill)
        memset(space_host(to), (int)c->from, c->width);
    else
        memmove(space_host(to), space_host(from), c->width);
    return true;
}

static void run_child_copy(void *arg, bool run)
{
    struct copy_work *work = arg;
    const struct exec_copy *c = &work->copy;
    for (uint64_t z = 0; run && z < c->depth; z++)
        for (uint64_t y = 0; run && y < c->height; y++)
            run = run_row(work->ctx, c, c->to + z * c->to_slice + y * c->to_pitch,
                          c->from + z * c->from_slice + y * c->from_pitch);
    mem_free(work);
}

static int copy(void *owner, const struct exec_copy *c, uint64_t stream, uint64_t block)
{
    struct launch_owner *o = owner;
    if (!c->width || !c->height || !c->depth)
        return CUDA_SUCCESS;
    int r = launch_child_count(o->ctx);
    if (r)
        return r;
    struct pool_op *op = pool_op_new(POOL_WORK, o->ctx);
    struct copy_work *work = op ? mem_alloc(sizeof *work) : NULL;
    mutex_lock(&lock);
    bool good = work && family_of(o);
    if (good) {
        *work = (struct copy_work){o->ctx, *c};
        op->fn = run_child_copy;
        op->arg = work;
        submit_child(o, op, stream, block);
    }
    mutex_unlock(&lock);
    if (good)
        return CUDA_SUCCESS;
    launch_child_uncount(o->ctx);
    mem_free(work);
    pool_op_discard(op);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// --- events ------------------------------------------------------------------------------------------------

// Appends a mark to the event's queue that waits for the stream's (record), or the other way round (wait).
static int join(struct launch_owner *o, uint64_t event, uint64_t stream, uint64_t block, bool record)
{
    if (stream == TAIL_LAUNCH || stream == FIRE_AND_FORGET || !event || event % EXEC_HANDLE_STEP)
        return CUDA_ERROR_INVALID_VALUE;
    int r = launch_child_count(o->ctx);
    if (r)
        return r;
    struct pool_op *op = pool_op_new(POOL_MARK, o->ctx);
    mutex_lock(&lock);
    struct launch_family *f = op ? family_of(o) : NULL;
    if (f) {
        struct pool_op **queue = queue_of(f, stream, block),
                       **at = &f->events[event / EXEC_HANDLE_STEP % QUEUES];
        pool_lock();
        op->stream = o->op->stream;
        op->ended = launch_child_ended;
        pool_adopt(o->op, op, NULL);
        pool_depend(op, record ? *queue : *at);
        queue_append(record ? at : queue, op);
        pool_submit(op);
        pool_unlock();
    }
    mutex_unlock(&lock);
    if (f)
        return CUDA_SUCCESS;
    launch_child_uncount(o->ctx);
    pool_op_discard(op);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static int record(void *owner, uint64_t event, uint64_t stream, uint64_t block)
{
    return join(owner, event, stream, block, true);
}

static int await(void *owner, uint64_t event, uint64_t stream, uint64_t block)
{
    return join(owner, event, stream, block, false);
}

const struct exec_children launch_children = {
    .prepare = prepare,
    .launch = launch,
    .launch_graph = launch_graph,
    .current_graph = current_graph,
    .copy = copy,
    .record = record,
    .await = await,
    .ask = launch_query_ask,
    .attribute = launch_query_attribute,
    .function = launch_query_function,
    .occupancy = launch_query_occupancy,
    .error_text = launch_query_error,
};

void launch_child_end(struct launch_owner *o)
{
    mutex_lock(&lock);
    struct launch_family *f = o->family;
    o->family = NULL;
    mutex_unlock(&lock);
    if (!f)
        return;
    while (f->prepared) {
        struct child *c = f->prepared;
        f->prepared = c->next;
        launch_child_uncount(c->request.ctx);
        free_child(c);
    }
    pool_lock();
    pool_release(f->tail);
    for (unsigned i = 0; i < QUEUES; i++) {
        pool_release(f->queues[i]);
        pool_release(f->events[i]);
    }
    pool_unlock();
    mem_free(f);
}
