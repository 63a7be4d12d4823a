// SPDX-License-Identifier: MIT
// Stream capture, as far as streams, events and memory have to know of it: which streams capture, where each of them
// stands, and what a capture forbids. What becomes of captured work is the sink's business.
//
//   capture ── streams that take part: the one where it began, and those that waited for an event of it
//           ── events that were recorded in one of them; they keep it, ended or not
//
//   a stream's `after`: the nodes that its next operation depends on
//
// One lock for captures and for all graphs, outside of every other. Whether a stream captures at all is read without
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
    // Makes a node of what comes to the stream. params->alloc.dptr is an answer. Under the lock.
    CUresult (*add)(struct capture *c, struct CUstream_st *s, CUgraphNodeParams *params,
                    const CUlaunchAttribute *attributes, unsigned count);
    // Its last stream is gone and nobody will end it. Under the lock, which unlock gives back then: what dropping one lets
    // go may be the application's to destroy.
    void (*drop)(struct capture *c);
    void (*unlock)(void);
};

struct capture {
    const struct capture_sink *sink;
    CUgraph graph;
    bool into_given;  // the graph was there before
    CUstreamCaptureMode mode;
    const void *thread;  // that began it; capture_thread
    unsigned long long id;
    bool invalid, ended;
    struct CUstream_st *origin;   // NULL: destroyed
    struct CUstream_st *streams;  // by next_in_capture
    struct capture_nodes left;    // where streams stood that are gone; to be joined all the same
    struct capture *next, *prev;  // of those that have not ended
    atomic_uint refs;             // one until it has ended, one for each event
};

// Where an event was recorded.
struct capture_point {
    _Atomic(struct capture *) capture;  // NULL: not in a capture
    struct capture_nodes nodes;
};

void capture_lock(void);
void capture_unlock(void);
const void *capture_thread(void);  // differs between threads that live at the same time

// See stream_captures for streams. Relaxed: see above.
static inline bool capture_at(const struct capture_point *p)
{
    return atomic_load_explicit(&p->capture, memory_order_relaxed) != NULL;
}

// The question every submission asks: if the stream captures, the work becomes a node and *rc the call's answer.
bool capture_take(struct CUstream_st *s, CUgraphNodeParams *params, const CUlaunchAttribute *attributes,
                  unsigned count, CUresult *rc);
// The stream is used in a way that no capture can follow: CUDA_SUCCESS where none has to.
CUresult capture_refuse(struct CUstream_st *s);
// The stream was to get work that cannot be done: if it captures, that is no good any more.
void capture_spoil(struct CUstream_st *s);
// As capture_refuse, for all streams of a context.
CUresult capture_refuse_context(struct CUctx_st *ctx);
// A call that may wait for, or get in the way of, what a capture records; the thread's mode decides.
CUresult capture_unsafe(void);
// The legacy stream cannot be used while a stream in step with it captures. No capture is invalidated.
CUresult capture_implicit(const struct CUstream_st *s);

// Recording an event in a stream that captures, and waiting for one where it or the stream does.
CUresult capture_record(struct CUstream_st *s, struct capture_point *p);
CUresult capture_wait(struct CUstream_st *s, const struct capture_point *p, bool recorded);
// Somebody asks whether an event has come, which one in a capture never will: CUDA_SUCCESS if it is in none.
CUresult capture_ask(const struct capture_point *p);
CUresult capture_look(const struct capture_point *p);  // the same answer, but it spoils nothing
void capture_forget(struct capture_point *p);          // recorded elsewhere, or gone

// All streams of a context, a thread's own among them, leave their captures: it is being destroyed, and stream_lives is
// false for them.
void capture_leave_context(struct CUctx_st *ctx);

// The rest under the lock, but capture_leave, which takes it.
struct capture *capture_begin(struct CUstream_st *s, const struct capture_sink *sink,
                              CUstreamCaptureMode mode);
void capture_end(struct capture *c);  // all its streams go back to work
void capture_leave(struct CUstream_st *s);
struct capture *capture_of(const struct CUstream_st *s);
int capture_after(struct capture_nodes *nodes, CUgraphNode node);  // adds it unless it is there; 0 or -ENOMEM

#endif
