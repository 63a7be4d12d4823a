// SPDX-License-Identifier: MIT
// Events. An event keeps the mark that was recorded last; a wait is for that mark, so recording the event
// again does not affect earlier waits.
//
// A shared event has a state that all processes see. After a record in this process, an operation behind its
// mark publishes its end; a record of another process becomes a mark here, made on demand, that ends when the
// state says so.
#include "base/mem.h"
#include "cpu/event_share.h"
#include "cpu/stream.h"

struct CUevent_st {
    struct CUctx_st *ctx;
    unsigned flags;
    // Under the pool's lock.
    struct pool_op *mark;        // NULL: never recorded
    struct event_share *share;   // NULL: not shared
    uint64_t number;             // of the shared record that the mark stands for
    struct capture_point point;  // place in a capture, if it was recorded in one: then the mark is not valid
    struct CUevent_st *next, *prev;
};

static struct CUevent_st *events;  // list of all events; under the pool's lock

static CUresult find(CUevent handle, struct CUevent_st **out)
{
    *out = NULL;
    if (pool_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult rc = device_ready();
    if (rc)
        return rc;
    if (!handle_is(handle, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = handle;
    return CUDA_SUCCESS;
}

// The same as find, but fails with the sticky error of the event's context.
static CUresult get(CUevent handle, struct CUevent_st **out)
{
    CUresult rc = find(handle, out);
    return rc ? rc : stream_error((*out)->ctx);
}

// --- shared between processes ------------------------------------------------------------------------------

struct shared_record {
    struct event_share *share;
    uint64_t number;
    atomic_bool cancelled;  // relaxed: nobody waits for it any more
};

static void forget_record(struct shared_record *r)
{
    event_share_drop(r->share);
    mem_free(r);
}

// Publishes the end of a record, also if the context is in error: other processes must not wait for ever.
static void publish_end(void *arg, bool run)
{
    struct shared_record *r = arg;
    event_share_end(r->share, r->number);
    forget_record(r);
}

static bool poll_end(void *arg)
{
    const struct shared_record *r = arg;
    return atomic_load_explicit(&r->cancelled, memory_order_relaxed) ||
           event_share_ended(r->share, r->number);
}

static void end_poll(void *arg, bool run)
{
    forget_record(arg);
}

// Makes an operation for a shared record. It has no context and no stream, so that destroying a context does
// not wait for it.
static struct pool_op *record_op(const struct CUevent_st *e, enum pool_kind kind, uint64_t number)
{
    struct shared_record *r = mem_alloc(sizeof *r);
    struct pool_op *op = r ? pool_op_new(kind, NULL) : NULL;
    if (!op) {
        mem_free(r);
        return NULL;
    }
    event_share_keep(e->share);
    *r = (struct shared_record){.share = e->share, .number = number};
    op->arg = r;
    return op;
}

// Publishes a record of this process, whose mark is new. The lock must be held.
static void share_record(struct CUevent_st *e, struct pool_op *mark)
{
    e->number = event_share_record(e->share);
    struct pool_op *op = record_op(e, POOL_WORK, e->number);
    if (!op) {
        // Out of memory: an end too early is better than none.
        event_share_end(e->share, e->number);
        return;
    }
    op->fn = publish_end;
    pool_depend(op, mark);
    pool_submit(op);
}

// Makes a mark for the latest record of another process, if there is one newer than the event's mark. The
// lock must be held.
static void adopt_foreign_record(struct CUevent_st *e)
{
    uint64_t last = e->share ? event_share_last(e->share) : 0;
    if (!e->share || last == e->number)
        return;
    struct pool_op *op = event_share_ended(e->share, last) ? NULL : record_op(e, POOL_POLL, last);
    pool_release(e->mark);
    e->mark = op;
    e->number = last;
    if (!op)
        return;
    op->poll = poll_end;
    op->release = end_poll;
    pool_keep(op);
    pool_submit(op);
}

// Stops polling for a record of another process if nobody but the event waits for it. all: also if others
// wait, as their context ends. The lock must be held.
static void cancel_poll(struct CUevent_st *e, bool all)
{
    enum { EVENT_AND_POOL = 2 };
    struct pool_op *op = e->mark;
    if (!op || op->poll != poll_end || op->over || pool_done(op))
        return;
    if (!all && (op->followers || op->refs > EVENT_AND_POOL))
        return;
    struct shared_record *r = op->arg;
    atomic_store_explicit(&r->cancelled, true, memory_order_relaxed);
}

// --- marks -------------------------------------------------------------------------------------------------

// Returns the mark that was recorded last, with a reference; NULL if there is none.
static struct pool_op *keep_mark(struct CUevent_st *e)
{
    pool_lock();
    adopt_foreign_record(e);
    struct pool_op *mark = e->mark;
    if (mark)
        pool_keep(mark);
    pool_unlock();
    return mark;
}

static void release_mark(struct pool_op *mark)
{
    pool_lock();
    pool_release(mark);
    pool_unlock();
}

// Records a mark and takes the caller's reference.
static void set_mark(struct CUevent_st *e, struct pool_op *mark)
{
    capture_forget(&e->point);
    pool_lock();
    pool_release(e->mark);
    e->mark = mark;
    if (e->share)
        share_record(e, mark);
    pool_unlock();
}

struct pool_op *event_mark(CUevent e)
{
    adopt_foreign_record(e);
    return e->mark;
}

void event_set_mark(CUevent e, struct pool_op *mark)
{
    capture_forget(&e->point);
    pool_keep(mark);
    pool_release(e->mark);
    e->mark = mark;
    if (e->share)
        share_record(e, mark);
}

bool event_timed(CUevent e)
{
    return !(e->flags & CU_EVENT_DISABLE_TIMING);
}

// --- making and freeing ------------------------------------------------------------------------------------

// Makes an event and takes the caller's reference to the shared state.
static CUresult make(struct CUctx_st *ctx, unsigned flags, struct event_share *share, CUevent *out)
{
    struct CUevent_st *e = mem_zalloc(1, sizeof *e);
    if (!e || handle_add(e, HANDLE_EVENT)) {
        event_share_drop(share);
        mem_free(e);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->ctx = ctx;
    e->flags = flags;
    e->share = share;
    pool_lock();
    e->next = events;
    if (events)
        events->prev = e;
    events = e;
    pool_unlock();
    *out = e;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult rc = stream_context_for_new(&ctx);
    if (rc)
        return rc;
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!out || flags & ~known || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    struct event_share *share = flags & CU_EVENT_INTERPROCESS ? event_share_new() : NULL;
    if (flags & CU_EVENT_INTERPROCESS && !share)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return make(ctx, flags, share, out);
}

// Removes an event. Its mark lives on for those who wait for it. The lock must be held.
static void unlink_event(struct CUevent_st *e)
{
    capture_forget(&e->point);
    *(e->prev ? &e->prev->next : &events) = e->next;
    if (e->next)
        e->next->prev = e->prev;
    cancel_poll(e, false);
    pool_release(e->mark);
    e->mark = NULL;
    event_share_drop(e->share);
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    struct CUevent_st *e;
    CUresult rc = find(handle, &e);
    if (rc)
        return rc;
    rc = stream_error(e->ctx);
    handle_remove(e);
    pool_lock();
    unlink_event(e);
    pool_unlock();
    mem_free(e);
    return rc;
}

CUresult cuEventDestroy(CUevent handle)
{
    return cuEventDestroy_v2(handle);
}

void event_context_free(struct CUctx_st *ctx)
{
    pool_lock();
    for (struct CUevent_st *e = events, *next; e; e = next) {
        next = e->next;
        if (e->ctx != ctx)
            continue;
        cancel_poll(e, true);
        unlink_event(e);
        handle_remove(e);
        mem_free(e);
    }
    pool_unlock();
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle)
{
    struct CUevent_st *e;
    CUresult rc = get(handle, &e);
    if (rc || !out)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!e->share)
        return CUDA_ERROR_INVALID_HANDLE;
    event_share_handle(e->share, out);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    struct CUctx_st *ctx;
    struct event_share *share;
    if (pool_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult rc = cpu_context_current(&ctx);
    if (rc || !out)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = event_share_open(&handle, &share);
    return rc ? rc : make(ctx, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, share, out);
}

// --- recording ---------------------------------------------------------------------------------------------
// The _EXTERNAL flags are for captured streams: the event itself is recorded or waited for when the graph
// runs.

static CUresult record_captured(struct CUstream_st *s, struct CUevent_st *e, unsigned flags)
{
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {e}};
    CUresult rc = CUDA_ERROR_ILLEGAL_STATE;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!flags)
        return capture_record(s, &e->point);
    capture_take(s, &node, NULL, 0, &rc);
    return rc;
}

static CUresult record(bool per_thread, CUevent handle, CUstream stream, unsigned flags)
{
    struct CUstream_st *s;
    struct CUevent_st *e;
    CUresult rc = stream_get(stream, per_thread, &s);
    if (!rc)
        rc = get(handle, &e);
    if (rc)
        return rc;
    if (stream_captures(s))
        return record_captured(s, e, flags);
    if (flags)
        return flags == CU_EVENT_RECORD_EXTERNAL ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE;
    if (e->ctx != s->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    struct pool_op *mark = pool_op_new(POOL_MARK, s->ctx);
    if (!mark)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mark->timed = !(e->flags & CU_EVENT_DISABLE_TIMING);
    rc = stream_add(s, mark, NULL, true);
    if (!rc)
        set_mark(e, mark);
    return rc;
}
STREAM_CALL(cuEventRecord, record, (CUevent handle, CUstream stream), handle, stream, 0)
STREAM_CALL(cuEventRecordWithFlags, record, (CUevent handle, CUstream stream, unsigned int flags), handle,
            stream, flags)

static CUresult check_context(CUcontext *ctx)
{
    if (pool_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult rc = device_ready();
    if (rc)
        return rc;
    *ctx = cpu_context_named(*ctx);
    return *ctx ? stream_error(*ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxRecordEvent(CUcontext ctx, CUevent handle)
{
    struct CUevent_st *e;
    CUresult rc = check_context(&ctx);
    if (!rc)
        rc = get(handle, &e);
    if (!rc)
        rc = capture_refuse_context(ctx);
    if (rc)
        return rc;
    if (e->ctx != ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    struct pool_op *mark;
    rc = stream_join(ctx, false, true, &mark);
    if (!rc)
        set_mark(e, mark);
    return rc;
}

// --- waiting -----------------------------------------------------------------------------------------------

static CUresult wait_captured(struct CUstream_st *s, struct CUevent_st *e, unsigned flags)
{
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {e}};
    CUresult rc = CUDA_ERROR_ILLEGAL_STATE;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags) {
        capture_take(s, &node, NULL, 0, &rc);
        return rc;
    }
    struct pool_op *mark = keep_mark(e);
    rc = capture_wait(s, &e->point, mark);
    release_mark(mark);
    return rc;
}

static CUresult wait_event(bool per_thread, CUstream stream, CUevent handle, unsigned flags)
{
    struct CUstream_st *s;
    struct CUevent_st *e;
    CUresult rc = stream_get(stream, per_thread, &s);
    if (!rc)
        rc = get(handle, &e);
    if (rc)
        return rc;
    if (stream_captures(s) || capture_at(&e->point))
        return wait_captured(s, e, flags);
    if (flags)
        return flags == CU_EVENT_WAIT_EXTERNAL ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE;
    struct pool_op *mark = keep_mark(e);
    // In the legacy stream even a wait for nothing has an effect: it orders blocking streams.
    if (s->legacy || (mark && !pool_done(mark)))
        rc = stream_add(s, pool_op_new(POOL_MARK, s->ctx), mark, false);
    release_mark(mark);
    return rc;
}
STREAM_CALL(cuStreamWaitEvent, wait_event, (CUstream stream, CUevent handle, unsigned int flags), stream,
            handle, flags)

CUresult cuCtxWaitEvent(CUcontext ctx, CUevent handle)
{
    struct CUevent_st *e;
    CUresult rc = check_context(&ctx);
    if (!rc)
        rc = get(handle, &e);
    if (!rc)
        rc = capture_refuse_context(ctx);
    if (!rc)
        rc = capture_query(&e->point);
    if (rc)
        return rc;
    struct pool_op *mark = keep_mark(e);
    if (mark && !pool_done(mark))
        rc = stream_hold_context(ctx, mark);
    release_mark(mark);
    return rc;
}

// Finds an event whose mark is valid, for calls by which the host waits or queries.
static CUresult get_recorded(CUevent handle, struct CUevent_st **e)
{
    CUresult rc = get(handle, e);
    if (!rc)
        rc = capture_query(&(*e)->point);
    return rc ? rc : capture_unsafe();
}

CUresult cuEventQuery(CUevent handle)
{
    struct CUevent_st *e;
    CUresult rc = get_recorded(handle, &e);
    if (rc)
        return rc;
    struct pool_op *mark = keep_mark(e);
    bool pending = mark && !pool_done(mark);
    release_mark(mark);
    return pending ? CUDA_ERROR_NOT_READY : stream_error(e->ctx);
}

CUresult cuEventSynchronize(CUevent handle)
{
    struct CUevent_st *e;
    CUresult rc = get_recorded(handle, &e);
    return rc ? rc : stream_wait_op(e->ctx, keep_mark(e));
}

static CUresult elapsed(const struct pool_op *from, const struct pool_op *to, float *ms)
{
    if (!from || !to)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pool_done(from) || !pool_done(to))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(to->time - from->time) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
    struct CUevent_st *from, *to;
    CUresult rc = get(start, &from);
    if (!rc)
        rc = get(end, &to);
    if (rc)
        return rc;
    // An H200's driver returns the same error for a null pointer.
    if (!ms || from->ctx != to->ctx || (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    rc = capture_peek(&from->point);
    if (!rc)
        rc = capture_peek(&to->point);
    if (rc)
        return rc;
    pool_lock();
    rc = elapsed(from->mark, to->mark, ms);
    pool_unlock();
    return rc;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(ms, start, end);
}
