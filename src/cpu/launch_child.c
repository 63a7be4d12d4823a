// SPDX-License-Identifier: MIT
// Kernels that launch kernels and graphs.
//
// What a grid launches are children of its operation: the grid is done when they are. They may run at once, beside it.
// Launches into one stream follow each other; a block's launches into no stream follow each other too, and those of
// other blocks are nothing to it. A family has a few lines in which launches stand; two streams may share one.
#include <string.h>

#include "base/mem.h"
#include "cpu/launch.h"
#include "driver/driver.h"
#include "exec/space.h"

enum { LINES = 32, TAIL_LAUNCH = 3, FIRE_AND_FORGET = 4 };
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
    struct pool_op *lines[LINES];  // the last of each; the family keeps them
    struct pool_op *tail;
};

// Of all families. Before the pool's lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct launch_family *family_of(struct launch_owner *o)
{
    if (!o->family)
        o->family = mem_zalloc(1, sizeof *o->family);
    return o->family;
}

static void free_child(struct child *c)
{
    if (c && c->params)
        memory_internal_free(c->params);
    mem_free(c);
}

static uint64_t prepare(void *owner, const struct exec_kernel *k, const uint32_t grid[3],
                        const uint32_t block[3], uint32_t shared)
{
    struct launch_owner *o = owner;
    struct child *c = mem_zalloc(1, sizeof *c);
    if (!c)
        return 0;
    c->request = (struct launch_request){.ctx = o->ctx,
                                         .grid = {grid[0], grid[1], grid[2]},
                                         .block = {block[0], block[1], block[2]},
                                         .shared = shared};
    // A kernel knows the addresses of those that it was linked with, and no others.
    bool ours = k->program == o->module->program && !module_function(o->module, k, &c->request.f) &&
                !launch_check(&c->request);
    if (ours)
        c->params = memory_internal_alloc(k->param_size, 256);
    pthread_mutex_lock(&lock);
    struct launch_family *f = c->params ? family_of(o) : NULL;
    uint64_t params = f ? c->params : 0;
    if (f) {
        c->next = f->prepared;
        f->prepared = c;
    }
    pthread_mutex_unlock(&lock);
    if (!f)
        free_child(c);
    return params;
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

// With the pool's lock held. Behind the last of the line, which it becomes.
static void stand_in(struct pool_op **line, struct pool_op *op)
{
    pool_depend(op, *line);
    pool_release(*line);
    *line = op;
    pool_keep(op);
}

static void put_in(struct launch_owner *o, struct pool_op *op, uint64_t stream, uint64_t block)
{
    struct launch_family *f = o->family;
    bool tail = stream == TAIL_LAUNCH;
    pool_lock();
    op->stream = o->op->stream;
    pool_adopt(o->op, op, tail ? op : NULL);
    if (tail)
        stand_in(&f->tail, op);
    else if (stream != FIRE_AND_FORGET)
        stand_in(&f->lines[(stream > FIRE_AND_FORGET ? stream / 16 : block) % LINES], op);
    if (!tail)
        pool_submit(op);
    pool_unlock();
}

static int launch(void *owner, uint64_t params, uint64_t stream, uint64_t block)
{
    struct launch_owner *o = owner;
    struct pool_op *op;
    pthread_mutex_lock(&lock);
    struct child *c = take(o->family, params);
    CUresult r = c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        c->request.packed = space_host(params);
        r = launch_op(&c->request, &op);
    }
    if (!r)
        put_in(o, op, stream, block);
    pthread_mutex_unlock(&lock);
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

struct copy_work {
    struct CUctx_st *ctx;
    uint64_t to, from, size;
    bool fill;
};

static void run_copy(void *arg, bool run)
{
    struct copy_work *c = arg;
    bool writes = space_allows(c->to, c->size, SPACE_WRITE);
    bool good = writes && (c->fill || space_allows(c->from, c->size, SPACE_READ));
    if (run && good && c->fill)
        memset(space_host(c->to), (int)c->from, c->size);
    else if (run && good)
        memmove(space_host(c->to), space_host(c->from), c->size);
    else if (run)
        context_fail(c->ctx, &(struct exec_fault){.kind = EXEC_ILLEGAL_ADDRESS,
                                                  .address = writes ? c->from : c->to,
                                                  .write = !writes,
                                                  .space = "global"});
    mem_free(c);
}

static int copy(void *owner, uint64_t to, uint64_t from, bool fill, uint64_t size, uint64_t stream,
                uint64_t block)
{
    struct launch_owner *o = owner;
    struct pool_op *op = size ? pool_op_new(POOL_WORK, o->ctx) : NULL;
    struct copy_work *c = op ? mem_alloc(sizeof *c) : NULL;
    if (!size)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (c && family_of(o)) {
        *c = (struct copy_work){o->ctx, to, from, size, fill};
        op->fn = run_copy;
        op->arg = c;
        put_in(o, op, stream, block);
        c = NULL;
        op = NULL;
    }
    pthread_mutex_unlock(&lock);
    bool failed = op || c;
    mem_free(c);
    pool_op_discard(op);
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

// Strings stay: a kernel may keep their addresses.
static uint64_t error_text(void *owner, int error, bool name)
{
    enum { ERRORS = 1000 };
    static uint64_t texts[ERRORS][2];
    if (error < 0 || error >= ERRORS)
        return 0;
    const char *text = name ? driver_result_name((CUresult)error) : driver_result_text((CUresult)error);
    pthread_mutex_lock(&lock);
    uint64_t *at = &texts[error][name];
    if (!*at && text && (*at = memory_internal_alloc(strlen(text) + 1, 1)))
        memcpy(space_host(*at), text, strlen(text) + 1);
    uint64_t found = *at;
    pthread_mutex_unlock(&lock);
    return found;
}

static int attribute(void *owner, int which, int *value)
{
    if (which <= 0 || which >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = device_attribute((CUdevice_attribute)which);
    return CUDA_SUCCESS;
}

const struct exec_children launch_children = {prepare, launch,    launch_graph, current_graph,
                                              copy,    attribute, error_text};

void launch_child_end(struct launch_owner *o)
{
    pthread_mutex_lock(&lock);
    struct launch_family *f = o->family;
    o->family = NULL;
    pthread_mutex_unlock(&lock);
    if (!f)
        return;
    while (f->prepared) {
        struct child *c = f->prepared;
        f->prepared = c->next;
        free_child(c);
    }
    pool_lock();
    pool_release(f->tail);
    for (unsigned i = 0; i < LINES; i++)
        pool_release(f->lines[i]);
    pool_unlock();
    mem_free(f);
}
