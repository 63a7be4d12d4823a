// SPDX-License-Identifier: MIT
// The calls by which kernels launch kernels and graphs. Whoever launched the grid does it (exec_children); here are only
// arguments and results.
//
// Errors are a grid's, not a thread's: cudaGetLastError in a kernel tells the last of any of its threads.
#include "exec/control.h"
#include "exec/intrinsic.h"

enum { INVALID_VALUE = 1, OUT_OF_RESOURCES = 701, STREAM_STEP = 16 };

// Handles of streams that kernels make: numbers, for a stream is nothing but an order.
static _Atomic uint64_t last_stream = STREAM_STEP;

static const struct exec_launch *launch_of(const struct exec_warp *w)
{
    return &w->block->grid->launch;
}

static void give_error(struct exec_warp *w, unsigned lane, int error)
{
    // Relaxed: a number that stands for itself.
    if (error)
        atomic_store_explicit(&w->block->grid->child_error, error, memory_order_relaxed);
    intrinsic_give(w, lane, (uint64_t)(uint32_t)error);
}

// Three words of a parameter.
static void triple(const struct exec_warp *w, unsigned n, unsigned lane, uint32_t out[3])
{
    const uint32_t *word = intrinsic_words(w, &w->frame->func->params[n], lane);
    for (unsigned k = 0; k < 3; k++)
        out[k] = word[k * EXEC_LANES];
}

static const struct exec_insn *prepare(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = launch_of(w);
    if (!intrinsic_has_signature(w, 4, 1) || w->frame->func->params[1].size < 12 ||
        w->frame->func->params[2].size < 12)
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint32_t grid[3], block[3], shared = (uint32_t)intrinsic_argument(w, 3, l);
        const struct exec_func *f = code_find(intrinsic_argument(w, 0, l));
        triple(w, 1, l, grid);
        triple(w, 2, l, block);
        uint64_t at = 0;
        if (f && f->kernel && q->children)
            at = q->children->prepare(q->owner, f->kernel, grid, block, shared);
        if (!at)
            atomic_store_explicit(&w->block->grid->child_error, OUT_OF_RESOURCES, memory_order_relaxed);
        intrinsic_give(w, l, at);
    }
    return control_ret(w, i);
}

static uint64_t block_number(const struct exec_warp *w)
{
    const uint32_t *grid = launch_of(w)->grid, *at = w->block->ctaid;
    return at[0] + (uint64_t)grid[0] * (at[1] + (uint64_t)grid[1] * at[2]);
}

static const struct exec_insn *launch(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = launch_of(w);
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    uint64_t number = block_number(w);
    FOR_LANES(w->mask)
    {
        uint64_t params = intrinsic_argument(w, 0, l), stream = intrinsic_argument(w, 1, l);
        give_error(w, l, q->children ? q->children->launch(q->owner, params, stream, number) : INVALID_VALUE);
    }
    return control_ret(w, i);
}

static const struct exec_insn *launch_graph(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = launch_of(w);
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t graph = intrinsic_argument(w, 0, l), stream = intrinsic_argument(w, 1, l);
        give_error(w, l, q->children ? q->children->launch_graph(q->owner, graph, stream) : INVALID_VALUE);
    }
    return control_ret(w, i);
}

// (to, from, size, kind, stream), or (to, value, size, stream).
static const struct exec_insn *copy(struct exec_warp *w, const struct exec_insn *i, bool fill)
{
    const struct exec_launch *q = launch_of(w);
    if (!intrinsic_has_signature(w, fill ? 4 : 5, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t to = intrinsic_argument(w, 0, l), from = intrinsic_argument(w, 1, l);
        uint64_t size = intrinsic_argument(w, 2, l), stream = intrinsic_argument(w, fill ? 3 : 4, l);
        give_error(w, l,
                   q->children ? q->children->copy(q->owner, to, from, fill, size, stream, block_number(w))
                               : INVALID_VALUE);
    }
    return control_ret(w, i);
}

static const struct exec_insn *memcpy_async(struct exec_warp *w, const struct exec_insn *i)
{
    return copy(w, i, false);
}

static const struct exec_insn *memset_async(struct exec_warp *w, const struct exec_insn *i)
{
    return copy(w, i, true);
}

// Writes a result through the pointer that is the first argument. False: w has faulted.
static bool put(struct exec_warp *w, unsigned lane, const void *value, unsigned size)
{
    return access_write(w, &intrinsic_generic, lane, intrinsic_argument(w, 0, lane), value, size);
}

static const struct exec_insn *stream_create(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t stream = atomic_fetch_add_explicit(&last_stream, STREAM_STEP, memory_order_relaxed);
        if (!put(w, l, &stream, sizeof stream))
            return NULL;
        give_error(w, l, 0);
    }
    return control_ret(w, i);
}

static const struct exec_insn *stream_destroy(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask) give_error(w, l, 0);
    return control_ret(w, i);
}

static const struct exec_insn *last_error(struct exec_warp *w, const struct exec_insn *i, bool clear)
{
    _Atomic int *error = &w->block->grid->child_error;
    if (!intrinsic_has_signature(w, 0, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    intrinsic_give(w, l,
                   (uint64_t)(clear ? atomic_exchange_explicit(error, 0, memory_order_relaxed)
                                    : atomic_load_explicit(error, memory_order_relaxed)));
    return control_ret(w, i);
}

static const struct exec_insn *get_last_error(struct exec_warp *w, const struct exec_insn *i)
{
    return last_error(w, i, true);
}

static const struct exec_insn *peek_at_last_error(struct exec_warp *w, const struct exec_insn *i)
{
    return last_error(w, i, false);
}

static const struct exec_insn *error_text(struct exec_warp *w, const struct exec_insn *i, bool name)
{
    const struct exec_launch *q = launch_of(w);
    if (!intrinsic_has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        int error = (int)intrinsic_argument(w, 0, l);
        intrinsic_give(w, l, q->children ? q->children->error_text(q->owner, error, name) : 0);
    }
    return control_ret(w, i);
}

static const struct exec_insn *get_error_name(struct exec_warp *w, const struct exec_insn *i)
{
    return error_text(w, i, true);
}

static const struct exec_insn *get_error_string(struct exec_warp *w, const struct exec_insn *i)
{
    return error_text(w, i, false);
}

// The heap's, as malloc in a kernel.
static const struct exec_insn *cuda_malloc(struct exec_warp *w, const struct exec_insn *i)
{
    enum { OUT_OF_MEMORY = 2 };
    uint64_t sizes[EXEC_LANES], at[EXEC_LANES];
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    intrinsic_arguments(w, 1, sizes);
    intrinsic_host(w)->heap_alloc(intrinsic_host(w)->ctx, w->mask, sizes, at);
    FOR_LANES(w->mask)
    {
        if (at[l] && !put(w, l, &at[l], sizeof at[l]))
            return NULL;
        give_error(w, l, at[l] ? 0 : OUT_OF_MEMORY);
    }
    return control_ret(w, i);
}

static const struct exec_insn *cuda_free(struct exec_warp *w, const struct exec_insn *i)
{
    uint64_t at[EXEC_LANES];
    if (!intrinsic_has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    intrinsic_arguments(w, 0, at);
    uint32_t bad = intrinsic_host(w)->heap_free(intrinsic_host(w)->ctx, w->mask, at);
    FOR_LANES(w->mask) give_error(w, l, bad >> l & 1 ? INVALID_VALUE : 0);
    return control_ret(w, i);
}

static const struct exec_insn *get_device(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        if (!put(w, l, &(int){0}, sizeof(int)))
            return NULL;
        give_error(w, l, 0);
    }
    return control_ret(w, i);
}

static const struct exec_insn *get_attribute(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = launch_of(w);
    if (!intrinsic_has_signature(w, 3, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        int value = 0, which = (int)intrinsic_argument(w, 1, l), error = INVALID_VALUE;
        if (q->children)
            error = q->children->attribute(q->owner, which, &value);
        if (!error && !put(w, l, &value, sizeof value))
            return NULL;
        give_error(w, l, error);
    }
    return control_ret(w, i);
}

exec_fn *intrinsic_launch_find(struct str name)
{
#define DEVICE_RUNTIME(call, fn)                 \
    {                                            \
        {"__cudaCDP2" call, sizeof call + 9}, fn \
    }
    static const struct {
        struct str name;
        exec_fn *fn;
    } rows[] = {
        DEVICE_RUNTIME("GetParameterBufferV2", prepare),
        DEVICE_RUNTIME("LaunchDeviceV2", launch),
        DEVICE_RUNTIME("LaunchDeviceV2_ptsz", launch),
        DEVICE_RUNTIME("StreamCreateWithFlags", stream_create),
        DEVICE_RUNTIME("StreamDestroy", stream_destroy),
        DEVICE_RUNTIME("GetLastError", get_last_error),
        DEVICE_RUNTIME("PeekAtLastError", peek_at_last_error),
        DEVICE_RUNTIME("GetErrorName", get_error_name),
        DEVICE_RUNTIME("GetErrorString", get_error_string),
        DEVICE_RUNTIME("Malloc", cuda_malloc),
        DEVICE_RUNTIME("Free", cuda_free),
        DEVICE_RUNTIME("MemcpyAsync", memcpy_async),
        DEVICE_RUNTIME("MemcpyAsync_ptsz", memcpy_async),
        DEVICE_RUNTIME("MemsetAsync", memset_async),
        DEVICE_RUNTIME("MemsetAsync_ptsz", memset_async),
        DEVICE_RUNTIME("GetDevice", get_device),
        DEVICE_RUNTIME("DeviceGetAttribute", get_attribute),
        {{"cudaGraphLaunch", 15}, launch_graph},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (str_eq(rows[k].name, name))
            return rows[k].fn;
    return NULL;
}
