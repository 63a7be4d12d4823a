// SPDX-License-Identifier: MIT
// The streams that are captured, and the calls that a capture forbids.
#include "cpu/capture.h"

#include <string.h>

#include "base/mutex.h"
#include "cpu/logs.h"
#include "cpu/stream.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures;  // those that have not ended
// The number of captures in the list. Relaxed: see capture.h.
static atomic_uint active;
static unsigned long long last_id;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void capture_lock(void)
{
    mutex_lock(&lock);
}

void capture_unlock(void)
{
    mutex_unlock(&lock);
}

const void *capture_thread(void)
{
    return &thread_mode;
}

struct capture *capture_of(const struct CUstream_st *s)
{
    return atomic_load_explicit(&s->capture, memory_order_relaxed);
}

static void release(struct capture *c)
{
    // acq_rel: the thread that drops the last reference sees the writes of the others.
    if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
        mem_free(c);
}

// --- life --------------------------------------------------------------------------------------------------

static void count(struct CUctx_st *ctx, const struct CUstream_st *s, unsigned by)
{
    atomic_fetch_add_explicit(&ctx->capturing, by, memory_order_relaxed);
    if (s->blocking)
        atomic_fetch_add_explicit(&ctx->capturing_blocking, by, memory_order_relaxed);
}

static void enter(struct CUstream_st *s, struct capture *c)
{
    s->next_in_capture = c->streams;
    c->streams = s;
    count(s->ctx, s, 1);
    atomic_store_explicit(&s->capture, c, memory_order_relaxed);
}

static void depart(struct CUstream_st *s)
{
    struct capture *c = capture_of(s);
    struct CUstream_st **at = &c->streams;
    while (*at != s)
        at = &(*at)->next_in_capture;
    *at = s->next_in_capture;
    count(s->ctx, s, -1u);
    vec_free(&s->after);
    atomic_store_explicit(&s->capture, NULL, memory_order_relaxed);
}

struct capture *capture_begin(struct CUstream_st *s, const struct capture_sink *sink,
                              CUstreamCaptureMode mode)
{
    struct capture *c = mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->sink = sink;
    c->mode = mode;
    c->thread = capture_thread();
    c->id = ++last_id;
    c->origin = s;
    atomic_init(&c->refs, 1);
    c->next = captures;
    if (captures)
        captures->prev = c;
    captures = c;
    atomic_fetch_add_explicit(&active, 1, memory_order_relaxed);
    enter(s, c);
    return c;
}

void capture_end(struct capture *c)
{
    while (c->streams)
        depart(c->streams);
    vec_free(&c->left);
    *(c->prev ? &c->prev->next : &captures) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
    c->ended = true;
    release(c);
}

int capture_after(struct capture_nodes *nodes, CUgraphNode node)
{
    for (size_t i = 0; i < nodes->len; i++) {
        if (nodes->items[i] == node)
            return 0;
    }
    return vec_push(nodes, node);
}

static int copy_nodes(struct capture_nodes *to, const struct capture_nodes *from)
{
    for (size_t i = 0; i < from->len; i++) {
        if (capture_after(to, from->items[i]))
            return -ENOMEM;
    }
    return 0;
}

// Removes a stream that is destroyed, or whose context is, from its capture. Without its origin a capture
// cannot be ended and is invalid; the nodes of other streams remain to be joined. Returns the sink if the
// capture was dropped, NULL otherwise.
static const struct capture_sink *leave(struct CUstream_st *s)
{
    struct capture *c = capture_of(s);
    const struct capture_sink *sink = c->sink;
    if (c->origin == s)
        c->origin = NULL;
    c->invalid |= !c->origin || copy_nodes(&c->left, &s->after);
    depart(s);
    if (c->streams)
        return NULL;
    sink->drop(c);
    capture_end(c);
    return sink;
}

static void unlock_of(const struct capture_sink *sink)
{
    if (sink)
        sink->unlock();
    else
        capture_unlock();
}

// Takes the lock even if the stream is not captured: another thread may be about to take it out of a capture.
void capture_leave(struct CUstream_st *s)
{
    capture_lock();
    unlock_of(capture_of(s) ? leave(s) : NULL);
}

static struct CUstream_st *find_in_context(const struct CUctx_st *ctx)
{
    for (const struct capture *c = captures; c; c = c->next) {
        for (struct CUstream_st *s = c->streams; s; s = s->next_in_capture) {
            if (s->ctx == ctx)
                return s;
        }
    }
    return NULL;
}

void capture_leave_context(struct CUctx_st *ctx)
{
    const struct capture_sink *sink = NULL, *one;
    struct CUstream_st *s;
    capture_lock();
    while ((s = find_in_context(ctx))) {
        one = leave(s);
        sink = one ? one : sink;
    }
    unlock_of(sink);
}

// --- forbidden calls ---------------------------------------------------------------------------------------

CUresult capture_implicit(const struct CUstream_st *s)
{
    return s->legacy && atomic_load_explicit(&s->ctx->capturing_blocking, memory_order_relaxed)
               ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
               : CUDA_SUCCESS;
}

static bool of_context(const struct capture *c, const struct CUctx_st *ctx, bool blocking)
{
    for (const struct CUstream_st *s = c->streams; s; s = s->next_in_capture) {
        if (s->ctx == ctx && (s->blocking || !blocking))
            return true;
    }
    return false;
}

static void invalidate_context(const struct CUctx_st *ctx, bool blocking)
{
    for (struct capture *c = captures; c; c = c->next)
        c->invalid |= of_context(c, ctx, blocking);
}

bool capture_take(struct CUstream_st *s, CUgraphNodeParams *params, const CUlaunchAttribute *attributes,
                  unsigned n, CUresult *rc)
{
    if (!stream_captures(s))
        return false;
    capture_lock();
    struct capture *c = capture_of(s);
    if (c)
        *rc = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : c->sink->add(c, s, params, attributes, n);
    capture_unlock();
    logs_notify();
    return c;
}

CUresult capture_refuse(struct CUstream_st *s)
{
    CUresult rc = capture_implicit(s);
    if (!rc && !stream_captures(s))
        return CUDA_SUCCESS;
    capture_lock();
    struct capture *c = capture_of(s);
    if (rc) {
        invalidate_context(s->ctx, true);
    } else if (c) {
        rc = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        c->invalid = true;
    }
    capture_unlock();
    return rc;
}

void capture_invalidate(struct CUstream_st *s)
{
    if (!stream_captures(s))
        return;
    capture_lock();
    struct capture *c = capture_of(s);
    if (c)
        c->invalid = true;
    capture_unlock();
}

CUresult capture_refuse_context(struct CUctx_st *ctx)
{
    if (!atomic_load_explicit(&ctx->capturing, memory_order_relaxed))
        return CUDA_SUCCESS;
    capture_lock();
    invalidate_context(ctx, false);
    capture_unlock();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// Returns whether c forbids unsafe calls to this thread. A capture without its origin does not.
static bool forbids(const struct capture *c)
{
    if (!c->origin)
        return false;
    if (c->thread == capture_thread())
        return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_unsafe(void)
{
    if (!atomic_load_explicit(&active, memory_order_relaxed) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    CUresult rc = CUDA_SUCCESS;
    capture_lock();
    for (struct capture *c = captures; c; c = c->next) {
        if (!forbids(c))
            continue;
        c->invalid = true;
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    capture_unlock();
    return rc;
}

// Any mode is accepted, as on an H200; an unknown mode is neither global nor relaxed.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult rc = device_ready();
    if (rc || !mode)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

// --- events ------------------------------------------------------------------------------------------------

void capture_forget(struct capture_point *p)
{
    if (!capture_at(p))
        return;
    release(atomic_exchange_explicit(&p->capture, NULL, memory_order_relaxed));
    vec_free(&p->nodes);
}

static CUresult record(struct capture *c, struct CUstream_st *s, struct capture_point *p)
{
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    struct capture_nodes nodes = {.items = NULL};
    if (copy_nodes(&nodes, &s->after)) {
        vec_free(&nodes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture_forget(p);
    p->nodes = nodes;
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&p->capture, c, memory_order_relaxed);
    return CUDA_SUCCESS;
}

CUresult capture_record(struct CUstream_st *s, struct capture_point *p)
{
    capture_lock();
    struct capture *c = capture_of(s);
    CUresult rc = c ? record(c, s, p) : CUDA_ERROR_ILLEGAL_STATE;
    capture_unlock();
    return rc;
}

static CUresult invalidated(struct capture *c, CUresult rc)
{
    if (c)
        c->invalid = true;
    return rc;
}

// Returns whether events recorded in the capture are useless until they are recorded again.
static bool is_over(const struct capture *c)
{
    return c->ended || c->invalid;
}

// Makes the stream wait for an event of the capture c. From now on the stream takes part in c, if it did not
// before.
static CUresult join(struct CUstream_st *s, const struct capture_point *p, struct capture *c)
{
    struct capture *mine = capture_of(s);
    if (mine && mine->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (is_over(c))
        return invalidated(mine, CUDA_ERROR_INVALID_VALUE);
    if (mine && mine != c) {
        invalidated(mine, 0);
        return invalidated(c, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (s->legacy)
        return invalidated(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (!mine && !stream_lives(s))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!mine)
        enter(s, c);
    if (!copy_nodes(&s->after, &p->nodes))
        return CUDA_SUCCESS;
    return invalidated(c, CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult capture_wait(struct CUstream_st *s, const struct capture_point *p, bool recorded)
{
    capture_lock();
    struct capture *c = atomic_load_explicit(&p->capture, memory_order_relaxed), *mine = capture_of(s);
    CUresult rc = CUDA_SUCCESS;
    if (c)
        rc = join(s, p, c);
    else if (mine && mine->invalid)
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (mine && recorded)
        rc = invalidated(mine, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    capture_unlock();
    return rc;
}

static CUresult query_point(const struct capture_point *p, bool invalidate)
{
    if (!capture_at(p))
        return CUDA_SUCCESS;
    capture_lock();
    struct capture *c = atomic_load_explicit(&p->capture, memory_order_relaxed);
    CUresult rc = CUDA_SUCCESS;
    if (c)
        rc = is_over(c) ? CUDA_ERROR_INVALID_VALUE
                        : invalidated(invalidate ? c : NULL, CUDA_ERROR_CAPTURED_EVENT);
    capture_unlock();
    return rc;
}

// The query invalidates the capture. A second query reports CUDA_ERROR_INVALID_VALUE.
CUresult capture_query(const struct capture_point *p)
{
    return query_point(p, true);
}

CUresult capture_peek(const struct capture_point *p)
{
    return query_point(p, false);
}
