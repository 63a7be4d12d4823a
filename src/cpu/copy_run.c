// SPDX-License-Identifier: MIT
// Checks copies against the allocations and runs them.
//
// Pageable memory belongs to the caller again when the call returns: a pageable source is copied to a staging
// buffer, or waited for if it is large; a pageable destination is waited for. Copies between memory that the
// device can reach never make the caller wait.
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/copy.h"
#include "cpu/graph_memory.h"
#include "cpu/stream.h"
#include "exec/space.h"

enum { STAGED_MOST = 64 << 10, DIRECT_MOST = 64 << 10 };

// --- checks ------------------------------------------------------------------------------------------------

static bool span(const struct copy_job *j, const struct copy_side *s, uint64_t *out)
{
    uint64_t slices, rows;
    return !__builtin_mul_overflow(j->depth - 1, s->slice, &slices) &&
           !__builtin_mul_overflow(j->height - 1, s->pitch, &rows) &&
           !__builtin_add_overflow(slices, rows, out) && !__builtin_add_overflow(*out, j->width, out);
}

// Rows that lie far apart are checked one by one, so that the memory between them is not touched.
static bool accessible(const struct copy_job *j, const struct copy_side *s, uint64_t size, bool write)
{
    if (s->pitch - j->width < 2 * MEMORY_PAGE || (j->height == 1 && j->depth == 1))
        return memory_host_accessible((void *)(uintptr_t)s->at, size, write, false);
    for (size_t z = 0; z < j->depth; z++) {
        for (size_t y = 0; y < j->height; y++) {
            uint64_t row = s->at + z * s->slice + y * s->pitch;
            if (!memory_host_accessible((void *)(uintptr_t)row, j->width, write, false))
                return false;
        }
    }
    return true;
}

static CUresult check(const struct copy_job *j, struct copy_side *s, bool write, enum copy_when when)
{
    uint64_t size;
    if (s->array)
        return copy_array_side(s->array, s->x, s->y, s->z, j, s);
    if (!span(j, s, &size))
        return CUDA_ERROR_INVALID_VALUE;
    if (when == COPY_CAPTURED && j->element) {
        s->where = MEMORY_ON_DEVICE;
        return CUDA_SUCCESS;
    }
    s->where = memory_block_check(s->at, size, write ? SPACE_WRITE : SPACE_READ);
    if (s->where == MEMORY_BAD && when != COPY_NOW && graph_memory_covers(s->at, size))
        s->where = MEMORY_ON_DEVICE;
    if (s->where == MEMORY_BAD || (s->where == MEMORY_UNKNOWN && s->known))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->where == MEMORY_UNKNOWN && !accessible(j, s, size, write))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static bool is_empty(const struct copy_job *j)
{
    return !j->width || !j->height || !j->depth;
}

CUresult copy_run_check(struct copy_job *j, enum copy_when when)
{
    j->when = when;
    if (is_empty(j))
        return CUDA_SUCCESS;
    CUresult r = check(j, &j->dst, true, when);
    return r || j->element ? r : check(j, &j->src, false, when);
}

// --- the work ----------------------------------------------------------------------------------------------

static void fill(char *at, size_t size, unsigned element, uint32_t value)
{
    if (element == 1) {
        memset(at, (int)value, size);
    } else if (element == 2) {
        uint16_t *p = (uint16_t *)(void *)at;
        for (size_t i = 0; i < size / 2; i++)
            p[i] = (uint16_t)value;
    } else {
        uint32_t *p = (uint32_t *)(void *)at;
        for (size_t i = 0; i < size / 4; i++)
            p[i] = value;
    }
}

// Joins rows into one if neither side has gaps between them.
static void join_rows(struct copy_job *j)
{
    bool fills = j->element;
    if (j->dst.pitch == j->width && (fills || j->src.pitch == j->width)) {
        j->width *= j->height;
        j->height = 1;
        if (j->dst.slice == j->width && (fills || j->src.slice == j->width)) {
            j->width *= j->depth;
            j->depth = 1;
        }
    }
}

static void copy_rows(char *dst, const char *src, const struct copy_job *j)
{
    for (size_t z = 0; z < j->depth; z++) {
        for (size_t y = 0; y < j->height; y++) {
            char *to = dst + z * j->dst.slice + y * j->dst.pitch;
            if (j->element)
                fill(to, j->width, j->element, j->value);
            else
                memmove(to, src + z * j->src.slice + y * j->src.pitch, j->width);
        }
    }
}

static void execute(struct copy_job *j)
{
    join_rows(j);
    copy_rows(space_host(j->dst.at), j->staged ? j->staged : space_host(j->src.at), j);
}

// Runs a copy on a thread that is not the pool's. The lock keeps device memory from being moved to a file
// meanwhile.
static void execute_here(const struct copy_job *job)
{
    struct copy_job now = *job;
    bool device = job->dst.where == MEMORY_ON_DEVICE;
    if (device)
        mutex_lock_read(&memory_share_lock);
    execute(&now);
    if (device)
        mutex_unlock_rw(&memory_share_lock);
}

// Returns whether a captured memset may run. It may pass the end of its allocation, or begin behind it: it is
// checked as the stores of a kernel are. Other memsets had to lie in an allocation when they were added, and
// still have to.
static bool captured_memset_allowed(const struct copy_job *j)
{
    uint64_t size;
    return j->element && j->when == COPY_CAPTURED && span(j, &j->dst, &size) &&
           space_allows(j->dst.at, size, SPACE_WRITE);
}

CUresult copy_run_now(const struct copy_job *j, const struct copy_side **bad)
{
    struct copy_job now = *j;
    if (is_empty(j))
        return CUDA_SUCCESS;
    CUresult r = check(&now, &now.dst, true, COPY_NOW);
    if (r && captured_memset_allowed(j))
        r = CUDA_SUCCESS;
    *bad = &j->dst;
    if (!r && !j->element) {
        r = check(&now, &now.src, false, COPY_NOW);
        *bad = &j->src;
    }
    if (!r)
        execute(&now);
    return r;
}

static void run(void *arg, bool go)
{
    struct copy_job *j = arg;
    if (go)
        execute(j);
    mem_free(j->staged);
    mem_free(j);
}

// --- submission --------------------------------------------------------------------------------------------

static bool idle(struct CUstream_st *s)
{
    return s->blocking && !s->legacy ? cpu_context_idle(s->ctx) : stream_idle(s);
}

static bool on_host(const struct copy_side *s)
{
    return s->where == MEMORY_UNKNOWN || s->where == MEMORY_PINNED;
}

static bool must_wait(const struct copy_job *j, size_t bytes)
{
    if (j->element)
        return false;
    if (j->dst.where == MEMORY_UNKNOWN || (on_host(&j->dst) && on_host(&j->src)))
        return true;
    bool pageable = j->src.where == MEMORY_UNKNOWN;
    return bytes > STAGED_MOST && ((pageable && j->source == COPY_AT_ONCE) || j->source == COPY_IN_CALL);
}

static bool must_stage(const struct copy_job *j)
{
    return !j->element &&
           ((j->src.where == MEMORY_UNKNOWN && j->source == COPY_AT_ONCE) || j->source == COPY_IN_CALL);
}

static int stage(struct copy_job *j, size_t bytes)
{
    j->staged = mem_alloc(bytes);
    if (!j->staged)
        return -1;
    struct copy_job aside = *j;
    aside.dst.pitch = j->width;
    aside.dst.slice = j->width * j->height;
    copy_rows(j->staged, space_host(j->src.at), &aside);
    j->src.pitch = aside.dst.pitch;
    j->src.slice = aside.dst.slice;
    return 0;
}

// Adds the copy to the stream's capture as a node. Returns false if the stream is not captured.
static bool captured(const struct copy_job *j, struct CUstream_st *s, bool async, CUresult *r)
{
    CUgraphNodeParams node = {.type = j->element ? CU_GRAPH_NODE_TYPE_MEMSET : CU_GRAPH_NODE_TYPE_MEMCPY};
    if (!async || !stream_captures(s))
        return false;
    if (j->element) {
        copy_set_params(j, &node.memset);
        node.memset.ctx = s->ctx;
    } else {
        copy_shape_params(j, &node.memcpy.copyParams);
        node.memcpy.copyCtx = s->ctx;
    }
    return capture_take(s, &node, NULL, 0, r);
}

CUresult copy_run_submit(const struct copy_job *job, struct CUstream_st *s, bool async)
{
    CUresult r;
    if (is_empty(job))
        return CUDA_SUCCESS;
    if (captured(job, s, async, &r))
        return r;
    r = capture_refuse(s);
    if (r)
        return r;
    if (job->when != COPY_NOW) {
        // The capture has ended since the check.
        struct copy_job now = *job;
        r = copy_run_check(&now, COPY_NOW);
        return r ? r : copy_run_submit(&now, s, async);
    }
    size_t bytes = job->width * job->height * job->depth;
    bool wait = !async || must_wait(job, bytes);
    if ((wait || bytes <= DIRECT_MOST) && idle(s)) {
        execute_here(job);
        if (!async)
            output_flush();
        return CUDA_SUCCESS;
    }
    struct copy_job *j = mem_alloc(sizeof *j);
    if (!j)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *j = *job;
    if (!wait && must_stage(j) && stage(j, bytes))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r)
        r = stream_push(s, run, j);
    if (r) {
        mem_free(j->staged);
        mem_free(j);
        return r;
    }
    return wait ? stream_wait(s) : CUDA_SUCCESS;
}

// --- between devices ---------------------------------------------------------------------------------------

// Returns the context that owns the side's memory if its device is not the stream's; otherwise NULL.
static struct CUctx_st *other_context(const struct copy_side *side, const struct CUstream_st *s)
{
    struct CUctx_st *ctx = NULL;
    if (side->where != MEMORY_ON_DEVICE || side->array)
        return NULL;
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at(side->at);
    if (b && b->ctx && b->device != s->ctx->device)
        ctx = b->ctx;
    mutex_unlock(&memory_lock);
    return ctx;
}

// A copy between devices in the legacy stream begins after everything in both contexts, and what follows in
// either context begins after the copy.
static CUresult submit_between(const struct copy_job *j, struct CUstream_st *s, bool async)
{
    struct CUctx_st *others[] = {other_context(&j->dst, s), j->element ? NULL : other_context(&j->src, s)};
    CUresult r = CUDA_SUCCESS;
    for (int i = 0; i < 2 && !r; i++)
        r = others[i] ? stream_after_context(s, others[i]) : CUDA_SUCCESS;
    if (!r)
        r = copy_run_submit(j, s, async);
    for (int i = 0; i < 2 && !r; i++)
        r = others[i] ? stream_before_context(s, others[i]) : CUDA_SUCCESS;
    return r;
}

CUresult copy_run(struct copy_job *j, CUstream stream, bool per_thread, bool async)
{
    struct CUstream_st *s;
    CUresult r = stream_get(stream, per_thread, &s);
    if (!r)
        r = copy_run_check(j, stream_captures(s) ? COPY_CAPTURED : COPY_NOW);
    if (r)
        return r;
    bool between = device_count() > 1 && s->legacy && !is_empty(j) && !stream_captures(s);
    return between ? submit_between(j, s, async) : copy_run_submit(j, s, async);
}
