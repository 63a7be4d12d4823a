// SPDX-License-Identifier: MIT
// Streams, for the files that implement the calls on them.
//
// tail is the last operation that has not ended, NULL when the stream is idle; it keeps a reference. A stream
// is freed when it is gone (destroyed, or its context is), idle, and held by no thread.
//
// Everything that changes is under the pool's lock, the context's list of streams included.
#ifndef MOAT_CPU_STREAM_H
#define MOAT_CPU_STREAM_H

#include "cpu/capture.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"

struct CUstream_st {
    struct CUctx_st *ctx;      // whose life may have ended, for a thread's own stream: see listed
    unsigned long long green;  // the id of the green context that it was made for, which may be gone; 0: none
    unsigned flags;
    int priority;
    unsigned long long id;
    bool legacy, blocking;  // blocking: in step with the legacy stream
    bool gone, held;
    bool listed;  // in its context's list; only then it gets work, and takes part in captures
    struct pool_op *tail;
    struct pool_op
        *gate;  // the legacy stream: what the context was last made to wait for; holds for new streams
    struct CUstream_st *next_in_context, *prev_in_context;
    struct CUstream_st *next_of_thread;
    // Under the capture's lock.
    _Atomic(struct capture *) capture;  // NULL: it does not
    struct capture_nodes after;
    struct CUstream_st *next_in_capture;
    CUaccessPolicyWindow window;  // this and the rest are only ever stored
    CUsynchronizationPolicy sync_policy;
    CUlaunchMemSyncDomainMap domain_map;
    CUlaunchMemSyncDomain domain;
};

enum {
    STREAM_PRIORITY_LEAST = 0,
    STREAM_PRIORITY_GREATEST = -5,
};

// The error that sticks to the context. Pairs with the store in cpu_context_fail.
static inline CUresult stream_fault(const struct CUctx_st *ctx)
{
    return (CUresult)atomic_load_explicit(&ctx->error, memory_order_acquire);
}

// What a call says that is to use the context: that, or that it lives no more. Pairs with the store in cpu_context_start.
static inline CUresult stream_error(const struct CUctx_st *ctx)
{
    return atomic_load_explicit(&ctx->alive, memory_order_acquire) ? stream_fault(ctx)
                                                                   : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// Whether it does. Relaxed: see capture.h.
static inline bool stream_captures(const struct CUstream_st *s)
{
    return atomic_load_explicit(&s->capture, memory_order_relaxed) != NULL;
}

// As stream_get, for calls that must work when the context is in error, or in a callback.
CUresult stream_find(CUstream handle, bool per_thread, struct CUstream_st **out);

// Submits op, which it owns from then on, behind everything in the stream and behind `after` if that is not
// NULL. keep: with one more reference, the caller's. On an error (CUDA_ERROR_OUT_OF_MEMORY, or the context has been
// destroyed) it is discarded.
CUresult stream_add(struct CUstream_st *s, struct pool_op *op, struct pool_op *after, bool keep);

// A run of operations that is one to the stream: `first` waits for what is in it and for `after`; what submit(arg)
// submits, with the lock held, waits for first; `last`, which waits for `ends`, is the stream's end then. All of them
// are the stream's from now on. On an error, as above, submit is not called and first discarded; the others are the caller's.
CUresult stream_add_run(struct CUstream_st *s, struct pool_op *first, struct pool_op *after,
                        void (*submit)(void *arg), void *arg, struct pool_op *ends, struct pool_op *last);

// A mark behind everything that was put into the context's streams: *out, to be released; NULL if all is
// idle. some: only into the legacy stream and those in step with it.
CUresult stream_join(struct CUctx_st *ctx, bool some, bool timed, struct pool_op **out);

// Everything that is put into the context's streams from now on waits for `after`.
CUresult stream_hold_context(struct CUctx_st *ctx, struct pool_op *after);

// What is put into the legacy stream s from now on waits for what is in the other context's streams; and the other way
// round: what is put into those from now on waits for what is in s.
CUresult stream_after_context(struct CUstream_st *s, struct CUctx_st *other);
CUresult stream_before_context(struct CUstream_st *s, struct CUctx_st *other);

// The context that a stream or an event is to be made for: the current one. CUDA_ERROR_NOT_PERMITTED in a callback.
CUresult stream_context_for_new(struct CUctx_st **out);

// Memory for a stream; then it enters its context's list, and leaves it when its work is done.
struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned flags, int priority);
CUresult stream_enter(struct CUstream_st *s);
// All of that, as cuStreamCreateWithPriority.
CUresult stream_create(CUstream *out, struct CUctx_st *ctx, unsigned long long green, unsigned flags,
                       int priority);
void stream_leave(struct CUstream_st *s);

// Whether its context was not destroyed, a moment ago. One who asks with capture_lock held may let it enter a capture:
// when the context is destroyed, it leaves that under the same lock.
bool stream_lives(const struct CUstream_st *s);
bool stream_idle(struct CUstream_st *s);  // the legacy stream: and those in step with it

// Waits for an operation that the caller keeps and releases it; NULL is fine. Then as stream_wait.
CUresult stream_wait_op(struct CUctx_st *ctx, struct pool_op *op);

void event_context_free(struct CUctx_st *ctx);
// Of a handle that was checked; the first two with the pool's lock held. What was recorded last, and what is now: with
// a reference.
struct pool_op *event_mark(CUevent e);
void event_set_mark(CUevent e, struct pool_op *mark);
bool event_timed(CUevent e);

// Steps of cuStreamBatchMemOp: whether they are sound, and an operation that does them. NULL when out of memory.
CUresult stream_memop_check(unsigned count, const CUstreamBatchMemOpParams *steps, unsigned flags);
struct pool_op *stream_memop_op(struct CUctx_st *ctx, unsigned count, const CUstreamBatchMemOpParams *steps);

// A call and its twin for per-thread streams: impl(per_thread, arguments).
#define STREAM_CALL(name, impl, parameters, ...) \
    CUresult name parameters                     \
    {                                            \
        return impl(false, __VA_ARGS__);         \
    }                                            \
    CUresult name##_ptsz parameters              \
    {                                            \
        return impl(true, __VA_ARGS__);          \
    }

#endif
