// SPDX-License-Identifier: MIT
// Launches: checks, parameters, and submission to a stream.
//
// A kernel reads its parameters from device memory. They lie in slots, which are recycled: a launch makes no
// system call and takes one short lock for its slot, besides those of the stream.
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/config.h"
#include "cpu/kernel_stats.h"
#include "cpu/launch.h"
#include "cpu/logs.h"
#include "cpu/stream.h"
#include "exec/space.h"

enum {
    CLASSES = 3,
    WORKSPACE = 64,
    SLAB = 64 << 10,
    CLUSTER_PORTABLE = 8,  // blocks; more must be allowed for the function
    CLUSTER_MOST = 16,
};

// Bytes of parameters in a slot of each class; PTX allows 32,764. The workspace of a cooperative launch
// follows them.
static const uint32_t class_size[CLASSES] = {192, 4096, 32768};

struct slot {
    struct slot *next;
    uint64_t params;
    struct launch_owner owner;
    struct kernel_stats_launch *measured;
    unsigned class;
};

// Slots are never freed: there are as many as there were launches at once. A leaf lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *free_slots[CLASSES];
static struct slab {
    struct slab *next;
    struct slot slots[];
} * slabs;

// Adds a slab of slots. The lock must be held.
static bool map_slab(unsigned class)
{
    uint32_t size = class_size[class] + WORKSPACE;
    unsigned n = SLAB / size ? SLAB / size : 1;
    struct slab *s = mem_alloc(sizeof *s + n * sizeof s->slots[0]);
    uint64_t address = s ? memory_internal_alloc((uint64_t)n * size, 256) : 0;
    if (!address) {
        mem_free(s);
        return false;
    }
    s->next = slabs;
    slabs = s;
    for (unsigned i = 0; i < n; i++) {
        s->slots[i] =
            (struct slot){.next = free_slots[class], .params = address + (uint64_t)i * size, .class = class};
        free_slots[class] = &s->slots[i];
    }
    return true;
}

static bool add_slab(unsigned class)
{
    mutex_hold();
    bool added = map_slab(class);
    mutex_release();
    return added;
}

static struct slot *take_slot(uint32_t size)
{
    unsigned class = 0;
    while (class < CLASSES && class_size[class] < size)
        class ++;
    if (class == CLASSES)
        return NULL;
    pthread_mutex_lock(&lock);
    struct slot *s = NULL;
    if (free_slots[class] || add_slab(class)) {
        s = free_slots[class];
        free_slots[class] = s->next;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

static void return_slot(struct slot *s)
{
    pthread_mutex_lock(&lock);
    s->next = free_slots[s->class];
    free_slots[s->class] = s;
    pthread_mutex_unlock(&lock);
}

static void grid_done(void *arg, struct exec_grid *g)
{
    struct slot *s = arg;
    struct CUmod_st *m = s->owner.module;
    if (s->owner.family)
        launch_child_end(&s->owner);
    kernel_stats_end(s->measured);
    exec_grid_free(g);
    return_slot(s);
    atomic_fetch_sub_explicit(&m->grids, 1, memory_order_release);  // partner: module_free
}

static bool dimensions_fit(const uint32_t *n, CUdevice_attribute first)
{
    for (int i = 0; i < 3; i++)
        if (!n[i] || n[i] > (uint32_t)device_attribute((CUdevice_attribute)(first + i)))
            return false;
    return true;
}

// Stores the launch's cluster: the one requested, or the one that the kernel was compiled with, or the
// function's setting. 0: none.
static void cluster_of(const struct launch_request *q, uint32_t out[3])
{
    const uint32_t *required = q->f->kernel->required_cluster;
    for (int i = 0; i < 3; i++)
        out[i] = q->cluster[0] ? q->cluster[i]
                 : required[0]
                     ? required[i]
                     : (uint32_t)atomic_load_explicit(&q->f->settings->cluster[i], memory_order_relaxed);
    for (int i = 0; i < 3 && (out[0] || out[1] || out[2]); i++)
        out[i] += !out[i];
}

static CUresult check_cluster(const struct launch_request *q)
{
    const struct exec_kernel *k = q->f->kernel;
    uint32_t size[3];
    cluster_of(q, size);
    if (!size[0])
        return k->needs_cluster ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
    if (k->required_cluster[0] && memcmp(size, k->required_cluster, sizeof size) != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++)
        if (size[i] > CLUSTER_MOST || q->grid[i] % size[i])
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    bool more = atomic_load_explicit(&q->f->settings->nonportable_cluster, memory_order_relaxed);
    return size[0] * size[1] * size[2] > (more ? CLUSTER_MOST : CLUSTER_PORTABLE)
               ? CUDA_ERROR_INVALID_CLUSTER_SIZE
               : CUDA_SUCCESS;
}

CUresult launch_check(const struct launch_request *q)
{
    const struct exec_kernel *k = q->f->kernel;
    if (!dimensions_fit(q->grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
        !dimensions_fit(q->block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X))
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t threads = q->block[0] * q->block[1] * q->block[2];
    if (threads > (uint32_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ||
        threads > k->max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (k->required_block[0] && memcmp(q->block, k->required_block, sizeof q->block) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = check_cluster(q);
    if (r)
        return r;
    return q->shared >
                   (uint32_t)atomic_load_explicit(&q->f->settings->max_dynamic_shared, memory_order_relaxed)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

// Parses the list `extra`. Returns false if it is malformed.
static bool read_extra(void **extra, const void **buffer, const size_t **size)
{
    *buffer = NULL;
    *size = NULL;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *size = extra[1];
        else
            return false;
    }
    return !*buffer == !*size;
}

// Copies a buffer of parameters, which must hold the kernel's parameters up to the last word, and no more.
static CUresult copy_buffer(const struct exec_kernel *k, const void *buffer, size_t size, char *to)
{
    if (size > k->param_size)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (!size || k->param_size - size > 3)
        return k->param_size ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    memcpy(to, buffer, size);
    return CUDA_SUCCESS;
}

CUresult launch_pack(const struct launch_request *q, char *to)
{
    const struct exec_kernel *k = q->f->kernel;
    const void *buffer;
    const size_t *size;
    if (!read_extra(q->extra, &buffer, &size) || (buffer && q->params))
        return CUDA_ERROR_INVALID_VALUE;
    if (buffer)
        return copy_buffer(k, buffer, *size, to);
    if (k->nparams && !q->params)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < k->nparams; i++) {
        if (!q->params[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(to + k->params[i].offset, q->params[i], k->params[i].size);
    }
    return CUDA_SUCCESS;
}

// Returns how many blocks may be resident at once.
static uint64_t most_resident(const struct launch_request *q)
{
    uint32_t threads = q->block[0] * q->block[1] * q->block[2];
    return (uint64_t)occupancy_blocks(q->f->kernel, q->f->settings, threads, q->shared) * device_sm_count();
}

static struct exec_grid *new_grid(const struct launch_request *q, struct slot *s)
{
    struct exec_launch launch = {
        .children = &launch_children,
        .owner = &s->owner,
        .skipped = config_get()->skip ? fault_query_skipped : NULL,
        .kernel = q->f->kernel,
        .grid = {q->grid[0], q->grid[1], q->grid[2]},
        .block = {q->block[0], q->block[1], q->block[2]},
        .dynamic_shared = q->shared,
        .stack_size = (uint32_t)cpu_context_limit_now(q->ctx, CU_LIMIT_STACK_SIZE),
        .cooperative = q->cooperative,
        .grid_id = atomic_fetch_add_explicit(&q->ctx->grid_ids, 1, memory_order_relaxed) + 1,
        .params = s->params,
        .sm_count = device_sm_count(),
    };
    cluster_of(q, launch.cluster);
    uint64_t resident = most_resident(q);
    launch.most_resident = resident ? (uint32_t)resident : 1;
    if (q->cooperative) {
        launch.workspace = s->params + class_size[s->class];
        memset(space_host(launch.workspace), 0, WORKSPACE);
    }
    return exec_grid_new(&launch, kernel_stats_counters(s->measured));
}

static CUresult fill(const struct launch_request *q, struct slot *s)
{
    uint64_t blocks = (uint64_t)q->grid[0] * q->grid[1] * q->grid[2];
    if (q->packed)
        memcpy(space_host(s->params), q->packed, q->f->kernel->param_size);
    CUresult r = q->packed ? CUDA_SUCCESS : launch_pack(q, space_host(s->params));
    return r                                             ? r
           : q->cooperative && blocks > most_resident(q) ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                                                         : CUDA_SUCCESS;
}

CUresult launch_op(const struct launch_request *q, struct pool_op **out)
{
    struct slot *s = take_slot(q->f->kernel->param_size);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = fill(q, s);
    if (r) {
        return_slot(s);
        return r;
    }
    s->measured = kernel_stats_begin(q->f->kernel->name);
    struct exec_grid *g = new_grid(q, s);
    struct pool_op *op = g ? pool_op_new(POOL_GRID, q->ctx) : NULL;
    if (!op) {
        kernel_stats_end(s->measured);
        exec_grid_free(g);
        return_slot(s);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    s->owner = (struct launch_owner){.op = op, .module = q->f->module, .ctx = q->ctx};
    atomic_fetch_add_explicit(&q->f->module->grids, 1, memory_order_relaxed);
    op->grid = g;
    op->grid_done = grid_done;
    op->arg = s;
    op->began = kernel_stats_clock(s->measured);
    *out = op;
    return CUDA_SUCCESS;
}

void launch_op_exec(struct pool_op *op, struct CUgraphExec_st *e, struct pool_op *flight, uint64_t number)
{
    struct slot *s = op->arg;
    s->owner.exec = e;
    s->owner.flight = flight;
    s->owner.number = number;
}

// Adds the launch to the stream's capture as a node. Returns false if the stream is not captured.
static bool captured(const struct launch_request *q, CUfunction handle, struct CUstream_st *to,
                     const CUlaunchConfig *config, CUresult *r)
{
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUgraphNodeParams node = {
        .type = CU_GRAPH_NODE_TYPE_KERNEL,
        .kernel = {.func = handle,
                   .gridDimX = q->grid[0],
                   .gridDimY = q->grid[1],
                   .gridDimZ = q->grid[2],
                   .blockDimX = q->block[0],
                   .blockDimY = q->block[1],
                   .blockDimZ = q->block[2],
                   .sharedMemBytes = q->shared,
                   .kernelParams = q->params,
                   .extra = q->extra,
                   .ctx = q->ctx},
    };
    const CUlaunchAttribute *attributes = config ? config->attrs : q->cooperative ? &cooperative : NULL;
    return capture_take(to, &node, attributes, config ? config->numAttrs : q->cooperative, r);
}

// Invalidates the stream's capture, as a launch that was meant for it has failed. A launch without parameters
// or without a kernel does not invalidate it (seen on an H200).
static CUresult invalidate_capture(CUstream stream, bool per_thread, CUresult r)
{
    struct CUstream_st *to;
    if (!stream_get(stream, per_thread, &to))
        capture_invalidate(to);
    return r;
}

// Another thread may end the context, but not before this returns.
static CUresult launch_inside(struct launch_request *q, CUfunction handle, CUstream stream, bool per_thread,
                              const CUlaunchConfig *config)
{
    struct CUstream_st *to;
    struct pool_op *op;
    CUresult r = function_get(handle, q->ctx, true, &q->f);
    if (r)
        return r;
    r = launch_check(q);
    if (r)
        return invalidate_capture(stream, per_thread, r);
    r = stream_get(stream, per_thread, &to);
    if (!r && to->ctx != q->ctx)
        r = CUDA_ERROR_INVALID_HANDLE;
    if (r)
        return r;
    if (stream_captures(to) && captured(q, handle, to, config, &r))
        return r && r != CUDA_ERROR_INVALID_VALUE ? invalidate_capture(stream, per_thread, r) : r;
    r = launch_op(q, &op);
    if (r)
        return r;
    struct exec_grid *g = op->grid;
    void *slot = op->arg;
    r = stream_add(to, op, NULL, false);
    if (r)
        grid_done(slot, g);
    return r;
}

static CUresult launch(struct launch_request *q, CUfunction handle, CUstream stream, bool per_thread,
                       const CUlaunchConfig *config)
{
    CUresult r = cpu_context_current(&q->ctx);
    if (!r)
        r = cpu_context_enter(q->ctx);
    if (r)
        return r;
    r = launch_inside(q, handle, stream, per_thread, config);
    cpu_context_leave(q->ctx);
    return r;
}

#define SHAPE                                                                                             \
    unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, \
        unsigned int shared, CUstream stream

static CUresult launch_plain(bool per_thread, bool cooperative, CUfunction f, SHAPE, void **params,
                             void **extra)
{
    struct launch_request q = {
        .grid = {gx, gy, gz},
        .block = {bx, by, bz},
        .shared = shared,
        .cooperative = cooperative,
        .params = params,
        .extra = extra,
    };
    return launch(&q, f, stream, per_thread, NULL);
}

CUresult cuLaunchKernel(CUfunction f, SHAPE, void **params, void **extra)
{
    return launch_plain(false, false, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, SHAPE, void **params, void **extra)
{
    return launch_plain(true, false, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, SHAPE, void **params)
{
    return launch_plain(false, true, f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, SHAPE, void **params)
{
    return launch_plain(true, true, f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

static CUresult take_cluster(struct launch_request *q, unsigned x, unsigned y, unsigned z)
{
    unsigned size[3] = {x, y, z}, all = 1;
    for (int i = 0; i < 3; i++) {
        q->cluster[i] = size[i] ? size[i] : 1;
        if (q->cluster[i] > CLUSTER_MOST || q->grid[i] % q->cluster[i])
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        all *= q->cluster[i];
    }
    return all > CLUSTER_MOST ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

CUresult launch_attribute(struct launch_request *q, const CUlaunchAttribute *a, CUevent *event)
{
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: q->cooperative = a->value.cooperative != 0; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return take_cluster(q, a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
    // Blocks that may start early may also start in order; an event for the begin of the grid may also come
    // at its end.
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        *event = a->value.programmaticEvent.event;
        return handle_is(*event, HANDLE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        *event = a->value.launchCompletionEvent.event;
        return handle_is(*event, HANDLE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    // Hints have no effect.
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return a->value.sharedMemCarveout <= 100 ||
                       a->value.sharedMemCarveout == (unsigned)CU_SHAREDMEM_CARVEOUT_DEFAULT
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return a->value.deviceUpdatableKernelNode.deviceUpdatable
                   ? not_supported("a launch that kernels may update")
                   : CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult launch_ex(bool per_thread, const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    struct CUctx_st *ctx;
    CUevent event = NULL;
    CUresult r = cpu_context_current(&ctx);
    if (r || !c || (c->numAttrs && !c->attrs))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct launch_request q = {
        .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
        .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
        .shared = c->sharedMemBytes,
        .params = params,
        .extra = extra,
    };
    for (unsigned i = 0; !r && i < c->numAttrs; i++)
        r = launch_attribute(&q, &c->attrs[i], &event);
    if (r) {
        logs_notify();
        return invalidate_capture(c->hStream, per_thread, r);
    }
    r = launch(&q, f, c->hStream, per_thread, c);
    if (!r && event)
        r = per_thread ? cuEventRecord_ptsz(event, c->hStream) : cuEventRecord(event, c->hStream);
    return r;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    return launch_ex(false, config, f, params, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    return launch_ex(true, config, f, params, extra);
}
