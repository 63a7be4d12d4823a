// SPDX-License-Identifier: MIT
// Streams, for the files that implement the calls on them.
//
// tail is the last operation that has not ended, NULL if the stream is idle; the stream has a reference to
// it. A stream is freed when it is gone (it or its context was destroyed), idle, and held by no thread; its
// memory then serves another stream.
//
// The pool's lock guards everything that changes, including the context's list of streams.
#ifndef MOAT_CPU_STREAM_H
#define MOAT_CPU_STREAM_H

#include "cpu/capture.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"

struct CUstream_st {
    struct CUctx_st *ctx;  // first, never NULL; of a thread's own stream its life may have ended: see listed
    unsigned long long green;  // id of the green context it was made for, which may be destroyed; 0: none
    unsigned flags;
    int priority;
    unsigned long long id;
    bool legacy, blocking;  // blocking: ordered with the legacy stream
    bool gone, held;
    bool listed;  // in its context's list; only a listed stream gets work and takes part in captures
    struct pool_op *tail;
    // Of the legacy stream: the mark that the whole context was last made to wait for; new streams wait for
    // it too.
    struct pool_op *gate;
    struct CUstream_st *next_in_context, *prev_in_context;
    struct CUstream_st *next_of_thread;
    // Under capture_lock.
    _Atomic(struct capture *) capture;  // NULL: the stream is not captured
    struct capture_nodes after;
    struct CUstream_st *next_in_capture;
    CUaccessPolicyWindow window;  // this and the following are stored and never used
    CUsynchronizationPolicy sync_policy;
    CUlaunchMemSyncDomainMap domain_map;
    CUlaunchMemSyncDomain domain;
};

enum {
    STREAM_PRIORITY_LEAST = 0,
    STREAM_PRIORITY_GREATEST = -5,
};

// Returns the context's sticky error. Pairs with the store in cpu_context_fail.
static inline CUresult stream_fault(const struct CUctx_st *ctx)
{
    return (CUresult)atomic_load_explicit(&ctx->error, memory_order_acquire);
}

// Returns the error of a call that uses the context: its sticky error, or that it is destroyed. Pairs with
// the store in cpu_context_start. After a sticky error no call waits for the device, so the call that returns
// it writes what the kernels have printed. The caller holds no lock.
static inline CUresult stream_error(const struct CUctx_st *ctx)
{
    if (!atomic_load_explicit(&ctx->alive, memory_order_acquire))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    CUresult error = stream_fault(ctx);
    if (error)
        output_flush();
    return error;
}

// Returns whether the stream is captured. Relaxed: see capture.h.
static inline bool stream_captures(const struct CUstream_st *s)
{
    return atomic_load_explicit(&s->capture, memory_order_relaxed) != NULL;
}

// The same as stream_get, for calls that must work when the context is in error, or in a callback.
CUresult stream_find(CUstream handle, bool per_thread, struct CUstream_st **out);

// Submits op, which the stream owns from then on, behind everything in the stream and behind `after`, if that
// is not NULL. keep: op gets one more reference for the caller. On an error (those of stream_push) op is
// discarded.
CUresult stream_add(struct CUstream_st *s, struct pool_op *op, struct pool_op *after, bool keep);

// Appends a run of operations that acts as one: `first` waits for what is in the stream and for `after`;
// operations that submit(arg) submits, called with the pool's lock held, wait for first; `last` waits for
// `ends` and becomes the stream's tail. The stream owns all of them from then on. On an error (out of memory,
// or the context is destroyed) submit is not called and first is discarded; the others remain the caller's.
CUresult stream_add_run(struct CUstream_st *s, struct pool_op *first, struct pool_op *after,
                        void (*submit)(void *arg), void *arg, struct pool_op *ends, struct pool_op *last);

// Submits a mark behind everything in the context's streams and stores it in *out, with a reference for the
// caller. *out is NULL if all streams are idle and the mark need not be timed. some: only behind the legacy
// stream and the blocking streams.
CUresult stream_join(struct CUctx_st *ctx, bool some, bool timed, struct pool_op **out);

// Makes everything that is appended to the context's streams from now on wait for `after`.
CUresult stream_hold_context(struct CUctx_st *ctx, struct pool_op *after);

// stream_after_context makes what is appended to the legacy stream s from now on wait for what is in the
// other context's streams. stream_before_context makes what is appended to those from now on wait for what is
// in s and in the blocking streams of its context.
CUresult stream_after_context(struct CUstream_st *s, struct CUctx_st *other);
CUresult stream_before_context(struct CUstream_st *s, struct CUctx_st *other);

// Stores the context for a new stream or event in *out: the current one. Returns CUDA_ERROR_NOT_PERMITTED in
// a callback.
CUresult stream_context_for_new(struct CUctx_st **out);

// stream_new allocates a stream, stream_enter adds it to its context's list, and stream_leave marks it as
// gone: it leaves the list when its work is done.
struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned flags, int priority);
CUresult stream_enter(struct CUstream_st *s);
// Makes a stream and its handle, for cuStreamCreateWithPriority.
CUresult stream_create(CUstream *out, struct CUctx_st *ctx, unsigned long long green, unsigned flags,
                       int priority);
void stream_leave(struct CUstream_st *s);

// Returns whether the stream's context was not destroyed a moment ago. A caller that holds capture_lock may
// let the stream enter a capture: the destruction of the context takes it out again under the same lock.
bool stream_lives(const struct CUstream_st *s);
bool stream_idle(struct CUstream_st *s);  // of the legacy stream: it and the blocking streams

// Waits for an operation that the caller has a reference to, and releases it; op may be NULL. Then flushes
// the output and returns the context's error, as stream_wait does.
CUresult stream_wait_op(struct CUctx_st *ctx, struct pool_op *op);

void event_context_free(struct CUctx_st *ctx);
// These take a handle that was checked; the first two need the pool's lock. event_mark returns the mark that
// was recorded last; event_set_mark records a new one and takes a reference to it.
struct pool_op *event_mark(CUevent e);
void event_set_mark(CUevent e, struct pool_op *mark);
bool event_timed(CUevent e);

// stream_memop_check checks the steps of cuStreamBatchMemOp; stream_memop_op makes the operation that does
// them, NULL if out of memory.
CUresult stream_memop_check(unsigned count, const CUstreamBatchMemOpParams *steps, unsigned flags);
struct pool_op *stream_memop_op(struct CUctx_st *ctx, unsigned count, const CUstreamBatchMemOpParams *steps);

// Defines a call and its twin for per-thread streams: impl(per_thread, arguments).
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
