// SPDX-License-Identifier: MIT
// Streams: which operation waits for which.
//
// An operation waits for the one before it in its stream. One in the legacy stream also waits for the tails
// of all blocking streams of its context, and one in a blocking stream for the tail of the legacy stream. A
// thread's own stream is a blocking stream that is made when the thread first names it and destroyed when the
// thread ends.
#include "cpu/stream.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t own_key;  // the thread's own streams, one for each context, by next_of_thread
static bool own_key_valid;
static pid_t owner;

// Relaxed: ids only have to differ. 1 and 2 are the ids of the special handles.
static atomic_ullong ids = 3;

// --- life of a stream, with the lock held ------------------------------------------------------------------

static void list_add(struct CUstream_st *s)
{
    s->next_in_context = s->ctx->streams;
    if (s->next_in_context)
        s->next_in_context->prev_in_context = s;
    s->ctx->streams = s;
    s->listed = true;
}

static void list_remove(struct CUstream_st *s)
{
    if (!s->listed)
        return;
    *(s->prev_in_context ? &s->prev_in_context->next_in_context : &s->ctx->streams) = s->next_in_context;
    if (s->next_in_context)
        s->next_in_context->prev_in_context = s->prev_in_context;
    s->next_in_context = s->prev_in_context = NULL;
    s->listed = false;
}

bool stream_lives(const struct CUstream_st *s)
{
    pool_lock();
    bool lives = s->listed;
    pool_unlock();
    return lives;
}

// Memory of streams is used again, for streams only: a call may still have the stream of a context that
// another thread destroys. Such a stream is not listed, and its ctx is valid.
static struct CUstream_st *unused;  // by next_of_thread

static void reap(struct CUstream_st *s)
{
    if (!s->gone || s->held || s->tail)
        return;
    list_remove(s);
    pool_release(s->gate);
    s->next_of_thread = unused;
    unused = s;
}

static void op_ended(struct pool_op *op)
{
    struct CUstream_st *s = op->stream;
    if (s->tail != op)
        return;
    s->tail = NULL;
    pool_release(op);
    reap(s);
}

// --- adding ------------------------------------------------------------------------------------------------

// Returns whether s is the legacy stream or ordered with it.
static bool in_step(const struct CUstream_st *s)
{
    return s->legacy || s->blocking;
}

static unsigned count_busy(struct CUctx_st *ctx, bool some)
{
    unsigned n = 0;
    for (struct CUstream_st *s = ctx->streams; s; s = s->next_in_context)
        n += s->tail && (!some || in_step(s));
    return n;
}

static void depend_on_streams(struct pool_op *op, struct CUctx_st *ctx, bool some)
{
    for (struct CUstream_st *s = ctx->streams; s; s = s->next_in_context) {
        if (!some || in_step(s))
            pool_depend(op, s->tail);
    }
}

// Appends op. The lock is held. Another thread may have destroyed the context of the caller's own stream
// meanwhile.
static CUresult add(struct CUstream_st *s, struct pool_op *op, struct pool_op *after)
{
    if (!s->listed || pool_op_room(op, s->legacy ? count_busy(s->ctx, true) + 1 : 3)) {
        pool_op_discard(op);
        return s->listed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    op->stream = s;
    op->ended = op_ended;
    pool_depend(op, after);
    if (s->legacy) {
        depend_on_streams(op, s->ctx, true);
    } else {
        pool_depend(op, s->tail);
        if (s->blocking)
            pool_depend(op, s->ctx->legacy->tail);
    }
    pool_release(s->tail);
    s->tail = op;
    pool_keep(op);
    pool_submit(op);
    return CUDA_SUCCESS;
}

CUresult stream_add(struct CUstream_st *s, struct pool_op *op, struct pool_op *after, bool keep)
{
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    // Work that can be captured was captured before it became an operation.
    CUresult refused = capture_refuse(s);
    if (refused) {
        pool_op_discard(op);
        return refused;
    }
    pool_lock();
    if (keep)
        pool_keep(op);
    CUresult rc = add(s, op, after);
    pool_unlock();
    return rc;
}

CUresult stream_add_run(struct CUstream_st *s, struct pool_op *first, struct pool_op *after,
                        void (*submit)(void *arg), void *arg, struct pool_op *ends, struct pool_op *last)
{
    pool_lock();
    CUresult rc = add(s, first, after);
    if (!rc) {
        submit(arg);
        last->stream = s;
        last->ended = op_ended;
        pool_depend(last, ends);
        pool_release(s->tail);
        s->tail = last;
        pool_keep(last);
        pool_submit(last);
    }
    pool_unlock();
    return rc;
}

CUresult stream_push(struct CUstream_st *s, stream_fn *fn, void *arg)
{
    struct pool_op *op = pool_op_new(POOL_WORK, s->ctx);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->fn = fn;
    op->arg = arg;
    return stream_add(s, op, NULL, false);
}

CUresult stream_push_callback(struct CUstream_st *s, stream_fn *fn, void *arg)
{
    if (pool_start_callbacks())
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct pool_op *op = pool_op_new(POOL_CALLBACK, s->ctx);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->fn = fn;
    op->arg = arg;
    return stream_add(s, op, NULL, false);
}

CUresult stream_push_grid(struct CUstream_st *s, struct exec_grid *g, grid_done_fn *done, void *arg,
                          struct grid_clock *began)
{
    struct pool_op *op = pool_op_new(POOL_GRID, s->ctx);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->grid = g;
    op->grid_done = done;
    op->arg = arg;
    op->began = began;
    return stream_add(s, op, NULL, false);
}

// Replaces the gate by one that waits for `after` and for the old gate. The lock must be held.
static CUresult set_gate(struct CUstream_st *legacy, struct pool_op *after)
{
    struct pool_op *gate = pool_op_new(POOL_MARK, legacy->ctx);
    if (!gate)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool_keep(gate);
    pool_depend(gate, legacy->gate);
    pool_depend(gate, after);
    pool_release(legacy->gate);
    legacy->gate = gate;
    pool_submit(gate);
    return CUDA_SUCCESS;
}

CUresult stream_hold_context(struct CUctx_st *ctx, struct pool_op *after)
{
    pool_lock();
    CUresult rc = ctx->legacy ? set_gate(ctx->legacy, after) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    for (struct CUstream_st *s = ctx->streams; s && !rc; s = s->next_in_context) {
        // Blocking streams wait because the legacy stream does.
        if (s->gone || s->blocking)
            continue;
        struct pool_op *mark = pool_op_new(POOL_MARK, ctx);
        rc = mark ? add(s, mark, ctx->legacy->gate) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool_unlock();
    return rc;
}

CUresult stream_join(struct CUctx_st *ctx, bool some, bool timed, struct pool_op **out)
{
    *out = NULL;
    pool_lock();
    unsigned busy = count_busy(ctx, some);
    if (!busy && !timed) {
        pool_unlock();
        return CUDA_SUCCESS;
    }
    struct pool_op *op = pool_op_new(POOL_MARK, ctx);
    if (!op || pool_op_room(op, busy)) {
        pool_unlock();
        pool_op_discard(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->timed = timed;
    pool_keep(op);
    depend_on_streams(op, ctx, some);
    pool_submit(op);
    pool_unlock();
    *out = op;
    return CUDA_SUCCESS;
}

static void release(struct pool_op *op)
{
    pool_lock();
    pool_release(op);
    pool_unlock();
}

CUresult stream_after_context(struct CUstream_st *s, struct CUctx_st *other)
{
    struct pool_op *before;
    CUresult rc = stream_join(other, false, false, &before);
    if (rc || !before)
        return rc;
    rc = stream_add(s, pool_op_new(POOL_MARK, s->ctx), before, false);
    release(before);
    return rc;
}

CUresult stream_before_context(struct CUstream_st *s, struct CUctx_st *other)
{
    struct pool_op *last;
    CUresult rc = stream_join(s->ctx, true, false, &last);
    if (rc || !last)
        return rc;
    rc = stream_hold_context(other, last);
    release(last);
    return rc;
}

// --- waiting -----------------------------------------------------------------------------------------------

bool stream_idle(struct CUstream_st *s)
{
    pool_lock();
    bool idle = s->legacy ? !count_busy(s->ctx, true) : !s->tail;
    pool_unlock();
    return idle;
}

bool cpu_context_idle(struct CUctx_st *ctx)
{
    pool_lock();
    bool idle = !count_busy(ctx, false);
    pool_unlock();
    return idle;
}

CUresult stream_wait_op(struct CUctx_st *ctx, struct pool_op *op)
{
    if (op) {
        pool_wait(op);
        pool_lock();
        pool_release(op);
        pool_unlock();
    }
    output_flush();
    return stream_error(ctx);
}

CUresult stream_wait(struct CUstream_st *s)
{
    struct CUctx_st *ctx = s->ctx;
    struct pool_op *op;
    if (s->legacy) {
        CUresult rc = stream_join(ctx, true, false, &op);
        return rc ? rc : stream_wait_op(ctx, op);
    }
    pool_lock();
    op = s->tail;
    if (op)
        pool_keep(op);
    pool_unlock();
    return stream_wait_op(ctx, op);
}

CUresult cpu_context_wait(struct CUctx_st *ctx)
{
    struct pool_op *op;
    CUresult rc = stream_join(ctx, false, false, &op);
    return rc ? rc : stream_wait_op(ctx, op);
}

// --- making and freeing ------------------------------------------------------------------------------------

CUresult stream_context_for_new(struct CUctx_st **out)
{
    *out = NULL;
    return pool_in_callback() ? CUDA_ERROR_NOT_PERMITTED : cpu_context_current(out);
}

struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned flags, int priority)
{
    pool_lock();
    struct CUstream_st *s = unused;
    if (s)
        unused = s->next_of_thread;
    pool_unlock();
    if (s)
        memset((char *)s + sizeof s->ctx, 0, sizeof *s - sizeof s->ctx);
    else
        s = mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->ctx = ctx;
    s->flags = flags;
    s->priority = priority;
    s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
    s->sync_policy = CU_SYNC_POLICY_AUTO;
    s->domain_map.remote = 1;
    s->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
    return s;
}

CUresult stream_enter(struct CUstream_st *s)
{
    CUresult rc = CUDA_SUCCESS;
    pool_lock();
    if (!s->legacy && !s->ctx->legacy) {
        pool_unlock();
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (s->legacy)
        s->ctx->legacy = s;
    struct pool_op *gate = s->ctx->legacy->gate;
    list_add(s);
    if (gate && !pool_done(gate)) {
        struct pool_op *mark = pool_op_new(POOL_MARK, s->ctx);
        rc = mark ? add(s, mark, gate) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (rc)
        list_remove(s);
    pool_unlock();
    return rc;
}

void stream_leave(struct CUstream_st *s)
{
    capture_leave(s);
    pool_lock();
    s->gone = true;
    reap(s);
    pool_unlock();
}

CUresult stream_context_init(struct CUctx_st *ctx)
{
    struct CUstream_st *s = stream_new(ctx, 0, 0);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->legacy = true;
    s->blocking = false;
    return stream_enter(s);
}

static struct pool_op *some_pending(struct CUctx_st *ctx)
{
    struct pool_op *op = NULL;
    for (struct CUstream_st *s = ctx->streams; s && !op; s = s->next_in_context)
        op = s->tail;
    if (op)
        pool_keep(op);
    return op;
}

// Unlists all streams, so that none gets work any more. Returns those that no thread holds, by
// next_of_thread: a thread keeps its own stream, which it may be about to use.
static struct CUstream_st *unlist_all(struct CUctx_st *ctx)
{
    struct CUstream_st *s, *left = NULL;
    while ((s = ctx->streams)) {
        list_remove(s);
        s->gone = true;
        if (s->held)
            continue;
        s->next_of_thread = left;
        left = s;
    }
    ctx->legacy = NULL;
    return left;
}

void stream_context_free(struct CUctx_st *ctx)
{
    struct pool_op *op;
    pool_lock();
    while ((op = some_pending(ctx))) {
        pool_unlock();
        stream_wait_op(ctx, op);
        pool_lock();
    }
    struct CUstream_st *left = unlist_all(ctx);
    pool_unlock();
    output_flush();
    event_context_free(ctx);
    // Nobody could end a capture of these streams.
    capture_leave_context(ctx);
    while (left) {
        struct CUstream_st *s = left;
        left = s->next_of_thread;
        handle_remove(s);
        pool_lock();
        reap(s);
        pool_unlock();
    }
}

// --- a thread's own streams --------------------------------------------------------------------------------

static void own_release(void *list)
{
    // A forked child has no pool, and the pool's lock may be held for ever.
    if (getpid() != owner)
        return;
    for (struct CUstream_st *s = list; s; s = s->next_of_thread)
        capture_leave(s);
    pool_lock();
    for (struct CUstream_st *s = list, *next; s; s = next) {
        next = s->next_of_thread;
        s->held = false;
        s->gone = true;
        reap(s);
    }
    pool_unlock();
}

static void own_init_held(void)
{
    owner = getpid();
    own_key_valid = !pthread_key_create(&own_key, own_release);
}

// Other threads wait for this one.
static void own_init(void)
{
    mutex_hold();
    own_init_held();
    mutex_release();
}

// Frees own streams whose contexts are destroyed.
static void own_free(struct CUstream_st *list)
{
    for (struct CUstream_st *s = list, *next; s; s = next) {
        next = s->next_of_thread;
        capture_leave(s);
        pool_lock();
        s->held = false;
        reap(s);
        pool_unlock();
    }
}

// Finds the thread's own stream of a context; frees those whose contexts are destroyed.
static struct CUstream_st *own_find(struct CUctx_st *ctx)
{
    struct CUstream_st *first = pthread_getspecific(own_key), *found = NULL, *dead = NULL, *s;
    pool_lock();
    for (struct CUstream_st **at = &first; (s = *at);) {
        if (s->listed) {
            found = s->ctx == ctx ? s : found;
            at = &s->next_of_thread;
            continue;
        }
        *at = s->next_of_thread;
        s->next_of_thread = dead;
        dead = s;
    }
    pool_unlock();
    if (dead) {
        pthread_setspecific(own_key, first);
        own_free(dead);
    }
    return found;
}

static CUresult own_get(struct CUctx_st *ctx, struct CUstream_st **out)
{
    pthread_once(&once, own_init);
    if (!own_key_valid)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = own_find(ctx);
    if (*out)
        return CUDA_SUCCESS;
    struct CUstream_st *s = stream_new(ctx, 0, 0);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->held = true;
    s->next_of_thread = pthread_getspecific(own_key);
    CUresult rc = stream_enter(s);
    if (!rc && pthread_setspecific(own_key, s))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc) {
        pool_lock();
        s->held = false;
        pool_unlock();
        stream_leave(s);
        return rc;
    }
    *out = s;
    return CUDA_SUCCESS;
}

// --- handles -----------------------------------------------------------------------------------------------

CUresult stream_find(CUstream handle, bool per_thread, struct CUstream_st **out)
{
    *out = NULL;
    CUresult rc = device_ready();
    if (rc)
        return rc;
    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        if (!handle_is(handle, HANDLE_STREAM))
            return CUDA_ERROR_INVALID_HANDLE;
        if (handle->green && !green_context_of(handle->green))
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        *out = handle;
        return CUDA_SUCCESS;
    }
    struct CUctx_st *ctx;
    rc = cpu_context_current_any(&ctx);
    if (rc)
        return rc;
    if (handle == CU_STREAM_PER_THREAD || (!handle && per_thread))
        return own_get(ctx, out);
    *out = ctx->legacy;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// A stream with a handle has its context, whether or not one is current; but a driver reports a destroyed
// current context first (seen on an H200).
static CUresult check_current(const struct CUstream_st *s, CUstream handle)
{
    struct CUctx_st *ctx;
    return s == handle && cpu_context_current_any(&ctx) == CUDA_ERROR_CONTEXT_IS_DESTROYED
               ? CUDA_ERROR_CONTEXT_IS_DESTROYED
               : stream_error(s->ctx);
}

CUresult stream_get(CUstream handle, bool per_thread, struct CUstream_st **out)
{
    CUresult rc = pool_in_callback() ? CUDA_ERROR_NOT_PERMITTED : stream_find(handle, per_thread, out);
    if (!rc)
        rc = check_current(*out, handle);
    if (rc)
        *out = NULL;
    return rc;
}
