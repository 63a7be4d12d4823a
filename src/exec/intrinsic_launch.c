// SPDX-License-Identifier: MIT
// The calls by which kernels launch kernels, copies and graphs, and order them. Whoever launched the grid
// performs them (exec_children); this file handles arguments and results only.
#include <string.h>

#include "exec/control.h"
#include "exec/intrinsic.h"
#include "exec/space.h"

enum { OUT_OF_MEMORY = 2, OUT_OF_RESOURCES = 701 };

// Handles of streams and events created by kernels are just numbers: the objects are nothing but an order.
static _Atomic uint64_t last_handle = EXEC_HANDLE_STEP;

static uint64_t block_number(const struct exec_warp *w)
{
    const uint32_t *grid = intrinsic_launch(w)->grid, *at = w->block->ctaid;
    return at[0] + (uint64_t)grid[0] * (at[1] + (uint64_t)grid[1] * at[2]);
}

// Reads the first `count` words of parameter n.
static void words(const struct exec_warp *w, unsigned n, unsigned lane, uint32_t *out, unsigned count)
{
    const uint32_t *word = intrinsic_words(w, &w->frame->func->params[n], lane);
    for (unsigned k = 0; k < count; k++)
        out[k] = word[k * EXEC_LANES];
}

static bool has_size(const struct exec_warp *w, unsigned n, unsigned bytes)
{
    return w->frame->func->params[n].size >= bytes;
}

// --- kernels and graphs ------------------------------------------------------------------------------------

static const struct exec_insn *prepare(struct exec_warp *w, const struct exec_insn *i)
{
    enum { SHAPE = 3 };
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 4, 1) || !has_size(w, 1, SHAPE * 4) || !has_size(w, 2, SHAPE * 4))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint32_t grid[SHAPE], block[SHAPE], shared = (uint32_t)intrinsic_argument(w, 3, l);
        const struct exec_kernel *k = intrinsic_kernel(w, 0, l);
        words(w, 1, l, grid, SHAPE);
        words(w, 2, l, block, SHAPE);
        uint64_t at = 0;
        int error = OUT_OF_RESOURCES;
        if (k && q->children)
            error = q->children->prepare(q->owner, k, grid, block, shared, &at);
        // The first call records the error; the result is the address.
        intrinsic_return_error(w, l, error);
        intrinsic_return(w, l, error ? 0 : at);
    }
    return control_ret(w, i);
}

static const struct exec_insn *launch(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t params = intrinsic_argument(w, 0, l), stream = intrinsic_argument(w, 1, l);
        int error = INTRINSIC_INVALID_VALUE;
        if (q->children)
            error = q->children->launch(q->owner, params, stream, block_number(w));
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

static const struct exec_insn *launch_graph(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t graph = intrinsic_argument(w, 0, l), stream = intrinsic_argument(w, 1, l);
        intrinsic_return_error(
            w, l, q->children ? q->children->launch_graph(q->owner, graph, stream) : INTRINSIC_INVALID_VALUE);
    }
    return control_ret(w, i);
}

// --- copies ------------------------------------------------------------------------------------------------

// Reads a lane's arguments into *c. Returns false after a fault of w; sets *error if they are invalid.
typedef bool copy_fn(struct exec_warp *w, unsigned lane, struct exec_copy *c, int *error);

// Returns whether such rows fit in the address space: a copy that wraps around might never end.
static bool fits(const struct exec_copy *c, uint64_t pitch, uint64_t slice)
{
    uint64_t rows, slices, size;
    return !__builtin_mul_overflow(c->height - 1, pitch, &rows) &&
           !__builtin_mul_overflow(c->depth - 1, slice, &slices) &&
           !__builtin_add_overflow(rows, slices, &size) && !__builtin_add_overflow(size, c->width, &size) &&
           !(size >> SPACE_BITS);
}

static bool is_sound(const struct exec_copy *c)
{
    bool nothing = !c->width || !c->height || !c->depth;
    return nothing ||
           (fits(c, c->to_pitch, c->to_slice) && (c->fill || fits(c, c->from_pitch, c->from_slice)));
}

static const struct exec_insn *copy(struct exec_warp *w, const struct exec_insn *i, unsigned nparams,
                                    copy_fn *read)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, nparams, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        struct exec_copy c = {.height = 1, .depth = 1};
        int error = q->children ? 0 : INTRINSIC_INVALID_VALUE;
        if (!read(w, l, &c, &error))
            return NULL;
        uint64_t stream = intrinsic_argument(w, nparams - 1, l);
        if (!error && !is_sound(&c))
            error = INTRINSIC_INVALID_VALUE;
        if (!error)
            error = q->children->copy(q->owner, &c, stream, block_number(w));
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

// (to, from, size, kind, stream), or (to, value, size, stream).
static bool read_line(struct exec_warp *w, unsigned lane, struct exec_copy *c, int *error)
{
    c->fill = w->frame->func->nparams == 4;
    c->to = intrinsic_argument(w, 0, lane);
    c->from = intrinsic_argument(w, 1, lane);
    c->width = intrinsic_argument(w, 2, lane);
    return true;
}

static void check_pitch(const struct exec_copy *c, int *error)
{
    if (c->width > c->to_pitch || (!c->fill && c->width > c->from_pitch))
        *error = EXEC_INVALID_PITCH;
}

// (to, pitch, from, pitch, width, height, kind, stream)
static bool read_plane(struct exec_warp *w, unsigned lane, struct exec_copy *c, int *error)
{
    c->to = intrinsic_argument(w, 0, lane);
    c->to_pitch = intrinsic_argument(w, 1, lane);
    c->from = intrinsic_argument(w, 2, lane);
    c->from_pitch = intrinsic_argument(w, 3, lane);
    c->width = intrinsic_argument(w, 4, lane);
    c->height = intrinsic_argument(w, 5, lane);
    check_pitch(c, error);
    return true;
}

// (to, pitch, value, width, height, stream)
static bool read_plane_fill(struct exec_warp *w, unsigned lane, struct exec_copy *c, int *error)
{
    c->fill = true;
    c->to = intrinsic_argument(w, 0, lane);
    c->to_pitch = intrinsic_argument(w, 1, lane);
    c->from = intrinsic_argument(w, 2, lane);
    c->width = intrinsic_argument(w, 3, lane);
    c->height = intrinsic_argument(w, 4, lane);
    check_pitch(c, error);
    return true;
}

// cudaPitchedPtr, cudaPos or cudaExtent, cudaMemcpy3DParms.
struct pitched {
    uint64_t at, pitch, xsize, ysize;
};
struct position {
    uint64_t x, y, z;
};
struct box {
    uint64_t from_array;
    struct position from_at;
    struct pitched from;
    uint64_t to_array;
    struct position to_at;
    struct pitched to;
    struct position extent;
    uint64_t kind;
};

// Computes the address of a box's first byte and the distance of its slices. Returns false if they overflow.
static bool place(const struct pitched *p, const struct position *at, const struct position *extent,
                  uint64_t *first, uint64_t *slice)
{
    uint64_t rows, bytes;
    bool one = extent->z <= 1;
    *slice = 0;
    return (one || (extent->y <= p->ysize && !__builtin_mul_overflow(p->pitch, p->ysize, slice))) &&
           !__builtin_mul_overflow(at->z, p->ysize, &rows) && !__builtin_add_overflow(rows, at->y, &rows) &&
           !__builtin_mul_overflow(rows, p->pitch, &bytes) && !__builtin_add_overflow(bytes, at->x, &bytes) &&
           !__builtin_add_overflow(p->at, bytes, first);
}

// (box, stream). Kernels cannot copy arrays.
static bool read_box(struct exec_warp *w, unsigned lane, struct exec_copy *c, int *error)
{
    struct box b;
    uint64_t at = intrinsic_argument(w, 0, lane);
    for (unsigned k = 0; k < sizeof b; k += 8)
        if (!access_read(w, &intrinsic_generic, lane, at + k, (char *)&b + k, 8))
            return false;
    *c = (struct exec_copy){
        .to_pitch = b.to.pitch,
        .from_pitch = b.from.pitch,
        .width = b.extent.x,
        .height = b.extent.y,
        .depth = b.extent.z,
    };
    if (b.from_array || b.to_array || !place(&b.to, &b.to_at, &b.extent, &c->to, &c->to_slice) ||
        !place(&b.from, &b.from_at, &b.extent, &c->from, &c->from_slice))
        *error = INTRINSIC_INVALID_VALUE;
    if (!*error)
        check_pitch(c, error);
    return true;
}

// (pitched, value, extent, stream)
static bool read_box_fill(struct exec_warp *w, unsigned lane, struct exec_copy *c, int *error)
{
    struct pitched to;
    struct position extent, begin = {0, 0, 0};
    if (!has_size(w, 0, sizeof to) || !has_size(w, 2, sizeof extent)) {
        *error = INTRINSIC_INVALID_VALUE;
        return true;
    }
    uint32_t raw[sizeof to / 4];
    words(w, 0, lane, raw, sizeof to / 4);
    memcpy(&to, raw, sizeof to);
    words(w, 2, lane, raw, sizeof extent / 4);
    memcpy(&extent, raw, sizeof extent);
    *c = (struct exec_copy){
        .to_pitch = to.pitch,
        .from = intrinsic_argument(w, 1, lane),
        .fill = true,
        .width = extent.x,
        .height = extent.y,
        .depth = extent.z,
    };
    if (!place(&to, &begin, &extent, &c->to, &c->to_slice))
        *error = INTRINSIC_INVALID_VALUE;
    if (!*error)
        check_pitch(c, error);
    return true;
}

#define COPY(name, nparams, read)                                                       \
    static const struct exec_insn *name(struct exec_warp *w, const struct exec_insn *i) \
    {                                                                                   \
        return copy(w, i, nparams, read);                                               \
    }
COPY(memcpy_async, 5, read_line)
COPY(memset_async, 4, read_line)
COPY(memcpy_2d, 8, read_plane)
COPY(memset_2d, 6, read_plane_fill)
COPY(memcpy_3d, 2, read_box)
COPY(memset_3d, 4, read_box_fill)

// --- streams and events ------------------------------------------------------------------------------------

static const struct exec_insn *make_handle(struct exec_warp *w, const struct exec_insn *i, uint64_t required,
                                           uint64_t allowed)
{
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t flags = intrinsic_argument(w, 1, l);
        bool good = (flags & required) == required && !(flags & ~allowed);
        uint64_t handle = atomic_fetch_add_explicit(&last_handle, EXEC_HANDLE_STEP, memory_order_relaxed);
        if (good && !intrinsic_put(w, l, &handle, sizeof handle))
            return NULL;
        intrinsic_return_error(w, l, good ? 0 : INTRINSIC_INVALID_VALUE);
    }
    return control_ret(w, i);
}

// Streams created by kernels must be cudaStreamNonBlocking, and events cudaEventDisableTiming.
static const struct exec_insn *stream_create(struct exec_warp *w, const struct exec_insn *i)
{
    enum { NON_BLOCKING = 1 };
    return make_handle(w, i, NON_BLOCKING, NON_BLOCKING);
}

static const struct exec_insn *event_create(struct exec_warp *w, const struct exec_insn *i)
{
    enum { BLOCKING_SYNC = 1, DISABLE_TIMING = 2 };
    return make_handle(w, i, DISABLE_TIMING, BLOCKING_SYNC | DISABLE_TIMING);
}

static const struct exec_insn *destroy_handle(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask) intrinsic_return_error(w, l, 0);
    return control_ret(w, i);
}

// (event, stream), or (event, stream, flags); kernels may set no flags.
static const struct exec_insn *event_record(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = intrinsic_launch(w);
    bool flags = intrinsic_has_signature(w, 3, 1);
    if (!flags && !intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t event = intrinsic_argument(w, 0, l), stream = intrinsic_argument(w, 1, l);
        int error = INTRINSIC_INVALID_VALUE;
        if (q->children && !(flags && intrinsic_argument(w, 2, l)))
            error = q->children->record(q->owner, event, stream, block_number(w));
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

// (stream, event, flags)
static const struct exec_insn *stream_wait(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 3, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t stream = intrinsic_argument(w, 0, l), event = intrinsic_argument(w, 1, l);
        int error = INTRINSIC_INVALID_VALUE;
        if (q->children && !intrinsic_argument(w, 2, l))
            error = q->children->await(q->owner, event, stream, block_number(w));
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

// --- memory: the heap of malloc in kernels -----------------------------------------------------------------

static const struct exec_insn *cuda_malloc(struct exec_warp *w, const struct exec_insn *i)
{
    uint64_t sizes[EXEC_LANES], at[EXEC_LANES];
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    intrinsic_arguments(w, 1, sizes);
    intrinsic_host(w)->heap_alloc(intrinsic_host(w)->ctx, w->mask, sizes, at);
    FOR_LANES(w->mask)
    {
        if (at[l] && !intrinsic_put(w, l, &at[l], sizeof at[l]))
            return NULL;
        intrinsic_return_error(w, l, at[l] ? 0 : OUT_OF_MEMORY);
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
    FOR_LANES(w->mask) intrinsic_return_error(w, l, bad >> l & 1 ? INTRINSIC_INVALID_VALUE : 0);
    return control_ret(w, i);
}

// Also matches the variant for per-thread default streams: in a kernel, that stream is the block's too.
#define WITH_TWIN(call, fn) INTRINSIC_ROW(call, fn), INTRINSIC_ROW(call "_ptsz", fn)

exec_fn *intrinsic_launch_find(struct str name)
{
    static const struct intrinsic_row rows[] = {
        INTRINSIC_ROW("GetParameterBufferV2", prepare),
        WITH_TWIN("LaunchDeviceV2", launch),
        INTRINSIC_ROW("StreamCreateWithFlags", stream_create),
        INTRINSIC_ROW("StreamDestroy", destroy_handle),
        WITH_TWIN("StreamWaitEvent", stream_wait),
        INTRINSIC_ROW("EventCreateWithFlags", event_create),
        WITH_TWIN("EventRecord", event_record),
        WITH_TWIN("EventRecordWithFlags", event_record),
        INTRINSIC_ROW("EventDestroy", destroy_handle),
        INTRINSIC_ROW("Malloc", cuda_malloc),
        INTRINSIC_ROW("Free", cuda_free),
        WITH_TWIN("MemcpyAsync", memcpy_async),
        WITH_TWIN("MemsetAsync", memset_async),
        WITH_TWIN("Memcpy2DAsync", memcpy_2d),
        WITH_TWIN("Memset2DAsync", memset_2d),
        WITH_TWIN("Memcpy3DAsync", memcpy_3d),
        WITH_TWIN("Memset3DAsync", memset_3d),
        {{"cudaGraphLaunch", 15}, launch_graph},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (str_eq(rows[k].name, name))
            return rows[k].fn;
    return intrinsic_query_find(name);
}
