// SPDX-License-Identifier: MIT
// Stream capture, as far as streams, events and memory are concerned: which streams are captured, which nodes
// each of them depends on next, and which calls a capture forbids. The sink makes nodes of captured work.
//
//   capture ── streams that take part: its origin, and those that waited for an event of it
//           ── events that were recorded in one of them; each keeps a reference, ended or not
//
//   a stream's `after`: the nodes that its next operation depends on
//
// One lock, outside all others, guards captures and all graphs. Whether a stream is captured is read without
// it: a program that captures in one thread and uses the stream in another has to order the two itself.
#ifndef MOAT_CPU_CAPTURE_H
#define MOAT_CPU_CAPTURE_H

#include "base/vec.h"
#include "cpu/cpu.h"

struct capture;

struct capture_nodes {
    CUgraphNode *items;
    size_t len, cap;
};

struct capture_sink {
    // Makes a node of work that was submitted to the stream; params->alloc.dptr is a result. Under the lock.
    CUresult (*add)(struct capture *c, struct CUstream_st *s, CUgraphNodeParams *params,
                    const CUlaunchAttribute *attributes, unsigned count);
    // Drops a capture whose last stream is gone, so that nobody can end it. Under the lock, which unlock
    // releases then: dropping may release user objects, whose destructors belong to the application.
    void (*drop)(struct capture *c);
    void (*unlock)(void);
};

struct capture {
    const struct capture_sink *sink;
    CUgraph graph;
    bool into_given;  // the graph existed before
    CUstreamCaptureMode mode;
    const void *thread;  // that began it: its capture_thread
    unsigned long long id;
    bool invalid, ended;
    struct CUstream_st *origin;   // NULL: destroyed
    struct CUstream_st *streams;  // by next_in_capture
    struct capture_nodes left;    // `after` of streams that are gone; must be joined as well
    struct capture *next, *prev;  // in the list of those that have not ended
    atomic_uint refs;             // one until it has ended, plus one for each event
};

// The place where an event was recorded.
struct capture_point {
    _Atomic(struct capture *) capture;  // NULL: not in a capture
    struct capture_nodes nodes;
};

void capture_lock(void);
void capture_unlock(void);
const void *capture_thread(void);  // differs between threads that live at the same time

// Returns whether the event was recorded in a capture; stream_captures does that for streams. Relaxed: see
// above.
static inline bool capture_at(const struct capture_point *p)
{
    return atomic_load_explicit(&p->capture, memory_order_relaxed) != NULL;
}

// Called by every submission. If the stream is captured, makes the work a node, stores the call's result in
// *rc and returns true.
bool capture_take(struct CUstream_st *s, CUgraphNodeParams *params, const CUlaunchAttribute *attributes,
                  unsigned count, CUresult *rc);
// Called for a use of the stream that cannot be captured. Returns CUDA_SUCCESS if no capture is concerned;
// otherwise invalidates the captures and returns the error of the call.
CUresult capture_refuse(struct CUstream_st *s);
// Invalidates the stream's capture, if it is captured: a call failed that was to append work to it.
void capture_invalidate(struct CUstream_st *s);
// The same as capture_refuse, for all streams of a context.
CUresult capture_refuse_context(struct CUctx_st *ctx);
// Called by an unsafe call, one that may wait for captured work or interfere with it. Returns an error and
// invalidates the captures that forbid it, by their modes and the thread's.
CUresult capture_unsafe(void);
// Returns CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy stream while a blocking stream is captured. No
// capture is invalidated.
CUresult capture_implicit(const struct CUstream_st *s);

// Record an event in a captured stream; make a stream wait for an event, where the stream or the event is in
// a capture. recorded: the event was recorded outside of captures.
CUresult capture_record(struct CUstream_st *s, struct capture_point *p);
CUresult capture_wait(struct CUstream_st *s, const struct capture_point *p, bool recorded);
// Called by a query of an event or a wait of the host. Returns CUDA_SUCCESS if the event is in no capture;
// otherwise it can never occur, and the capture is invalidated.
CUresult capture_query(const struct capture_point *p);
CUresult capture_peek(const struct capture_point *p);  // the same result, but nothing is invalidated
void capture_forget(struct capture_point *p);          // the event was recorded again, or is destroyed

// Removes all streams of a context, including threads' own streams, from their captures. The context is being
// destroyed, and stream_lives is false for its streams.
void capture_leave_context(struct CUctx_st *ctx);

// The lock must be held for these, except for capture_leave, which takes it.
struct capture *capture_begin(struct CUstream_st *s, const struct capture_sink *sink,
                              CUstreamCaptureMode mode);
void capture_end(struct capture *c);  // its streams are no longer captured
void capture_leave(struct CUstream_st *s);
struct capture *capture_of(const struct CUstream_st *s);
// Adds the node unless it is there; 0 or -ENOMEM.
int capture_after(struct capture_nodes *nodes, CUgraphNode node);

#endif
