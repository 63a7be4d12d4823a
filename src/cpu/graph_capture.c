// SPDX-License-Identifier: MIT
// Stream capture into a graph: beginning, ending and queries. The rules of capture are in capture.c.
#include "cpu/graphs.h"

static bool all_there(const struct capture *c, const struct capture_nodes *nodes)
{
    for (size_t i = 0; i < nodes->len; i++) {
        if (!graph_node_is(nodes->items[i]) || nodes->items[i]->graph != c->graph)
            return false;
    }
    return true;
}

static CUresult add(struct capture *c, struct CUstream_st *s, CUgraphNodeParams *params,
                    const CUlaunchAttribute *attributes, unsigned count)
{
    CUgraphNode node;
    // The application may have destroyed nodes of the graph that it captures into.
    if (!all_there(c, &s->after)) {
        c->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    // Makes room for the new node, which replaces them.
    if (vec_reserve(&s->after, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct graph_extra extra = {attributes, count, true};
    CUresult r = graph_node_add(c->graph, s->after.items, NULL, s->after.len, params, &extra, &node);
    if (r)
        return r;
    s->after.len = 0;
    s->after.items[s->after.len++] = node;
    return CUDA_SUCCESS;
}

// Counts a capture in the graph and in all graphs that it is part of: none of them can be destroyed
// meanwhile.
static void count(struct CUgraph_st *g, unsigned by)
{
    for (; g; g = g->owner ? g->owner->graph : NULL)
        g->capturing += by;
}

static void drop(struct capture *c)
{
    count(c->graph, -1u);
    if (!c->into_given)
        graph_make_free(c->graph);
}

static const struct capture_sink sink = {add, drop, graph_object_reap};

// --- beginning ---------------------------------------------------------------------------------------------

struct beginning {
    CUgraph into;  // NULL: a new graph
    const CUgraphNode *after;
    const CUgraphEdgeData *edges;
    size_t count;
    CUstreamCaptureMode mode;
};

static CUresult check(const struct beginning *b, const struct CUstream_st *s)
{
    if ((unsigned)b->mode > CU_STREAM_CAPTURE_MODE_RELAXED || (b->count && !b->after))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (capture_of(s))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!stream_lives(s))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    for (size_t i = 0; i < b->count; i++) {
        if (!graph_node_is(b->after[i]) || b->after[i]->graph != b->into)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult start(const struct beginning *b, struct CUstream_st *s)
{
    CUresult r = check(b, s);
    if (r)
        return r;
    struct CUgraph_st *g = b->into ? b->into : graph_make_new(false);
    struct capture *c = g ? capture_begin(s, &sink, b->mode) : NULL;
    for (size_t i = 0; c && i < b->count; i++) {
        if (capture_after(&s->after, b->after[i])) {
            capture_end(c);
            c = NULL;
        }
    }
    if (!c) {
        if (!b->into)
            graph_make_free(g);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->graph = g;
    c->into_given = b->into;
    count(g, 1);
    return CUDA_SUCCESS;
}

static CUresult begin(bool per_thread, CUstream handle, const struct beginning *b)
{
    struct CUstream_st *s;
    CUresult r = stream_get(handle, per_thread, &s);
    if (!r)
        r = graph_enter();
    if (r)
        return r;
    r = start(b, s);
    graph_leave();
    return r;
}

static CUresult begin_new(bool per_thread, CUstream handle, CUstreamCaptureMode mode)
{
    return begin(per_thread, handle, &(struct beginning){.mode = mode});
}
STREAM_CALL(cuStreamBeginCapture, begin_new, (CUstream handle), handle, CU_STREAM_CAPTURE_MODE_GLOBAL)
STREAM_CALL(cuStreamBeginCapture_v2, begin_new, (CUstream handle, CUstreamCaptureMode mode), handle, mode)

static CUresult begin_into(bool per_thread, CUstream handle, struct beginning b)
{
    return graph_is(b.into) ? begin(per_thread, handle, &b) : CUDA_ERROR_INVALID_VALUE;
}
#define INTO_PARAMETERS                                                                                \
    (CUstream handle, CUgraph g, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count, \
     CUstreamCaptureMode mode)
STREAM_CALL(cuStreamBeginCaptureToGraph, begin_into, INTO_PARAMETERS, handle,
            (struct beginning){g, after, edges, count, mode})

// --- ending ------------------------------------------------------------------------------------------------

static bool all_marked(const struct capture_nodes *nodes, uint64_t stamp)
{
    for (size_t i = 0; i < nodes->len; i++) {
        if (nodes->items[i]->mark != stamp)
            return false;
    }
    return true;
}

// Checks that the nodes of all other streams precede those that the origin depends on.
static CUresult check_joined(const struct capture *c)
{
    uint64_t stamp = graph_node_stamp();
    const struct capture_nodes *last = &c->origin->after;
    for (size_t i = 0; i < last->len; i++) {
        CUresult r = graph_order_mark(last->items[i], stamp);
        if (r)
            return r;
    }
    bool joined = all_marked(&c->left, stamp);
    for (const struct CUstream_st *s = c->streams; s; s = s->next_in_capture)
        joined &= all_marked(&s->after, stamp);
    return joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static bool still_there(const struct capture *c)
{
    for (const struct CUstream_st *s = c->streams; s; s = s->next_in_capture) {
        if (!all_there(c, &s->after))
            return false;
    }
    return all_there(c, &c->left);
}

// Finishes a capture. If out is NULL, a graph that the capture made is destroyed, and one that the
// application passed stays the application's.
static CUresult finish(struct capture *c, CUgraph *out)
{
    CUresult r = c->invalid || !still_there(c) ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(c);
    count(c->graph, -1u);
    if (out)
        *out = r ? NULL : c->graph;
    if ((r || !out) && !c->into_given)
        graph_make_free(c->graph);
    capture_end(c);
    return r;
}

// Fails a capture that is ended in another stream than its origin.
static CUresult unmatched(struct capture *c)
{
    c->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
}

static CUresult end(bool per_thread, CUstream handle, CUgraph *out)
{
    struct CUstream_st *s;
    CUresult r = stream_get(handle, per_thread, &s);
    if (!r)
        r = graph_enter();
    if (r)
        return r;
    struct capture *c = capture_of(s);
    if (!c)
        r = CUDA_ERROR_ILLEGAL_STATE;
    else if (c->origin != s)
        r = unmatched(c);
    else if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != capture_thread())
        r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else
        r = finish(c, out);
    graph_leave();
    return r;
}
STREAM_CALL(cuStreamEndCapture, end, (CUstream handle, CUgraph *out), handle, out)

// --- queries -----------------------------------------------------------------------------------------------

static CUstreamCaptureStatus status_of(const struct capture *c)
{
    return !c           ? CU_STREAM_CAPTURE_STATUS_NONE
           : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct inquiry {
    CUstreamCaptureStatus *status;
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **nodes;
    const CUgraphEdgeData **edges;
    size_t *count;
};

// Returns edge data for captured work, which are all zero; one array serves all callers.
static CUresult plain_edges(size_t count, const CUgraphEdgeData **out)
{
    static VEC(CUgraphEdgeData) plain;
    CUgraphEdgeData none = {0};
    while (plain.len < count) {
        if (vec_push(&plain, none))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = plain.items;
    return CUDA_SUCCESS;
}

static CUresult tell(const struct CUstream_st *s, const struct inquiry *q)
{
    const struct capture *c = capture_of(s);
    *q->status = status_of(c);
    if (*q->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (q->id)
        *q->id = c->id;
    if (q->graph)
        *q->graph = c->graph;
    if (q->nodes)
        *q->nodes = s->after.items;
    if (q->count)
        *q->count = s->after.len;
    return q->edges ? plain_edges(s->after.len, q->edges) : CUDA_SUCCESS;
}

static CUresult inquire(bool per_thread, CUstream handle, const struct inquiry *q)
{
    struct CUstream_st *s;
    CUresult r = stream_get(handle, per_thread, &s);
    if (r)
        return r;
    if (!q->status)
        return CUDA_ERROR_INVALID_VALUE;
    r = capture_implicit(s);
    if (!r)
        r = graph_enter();
    if (r)
        return r;
    r = tell(s, q);
    graph_leave();
    return r;
}
#define INQUIRE(name, parameters, ...)                                 \
    CUresult name parameters                                           \
    {                                                                  \
        return inquire(false, handle, &(struct inquiry){__VA_ARGS__}); \
    }                                                                  \
    CUresult name##_ptsz parameters                                    \
    {                                                                  \
        return inquire(true, handle, &(struct inquiry){__VA_ARGS__});  \
    }
INQUIRE(cuStreamIsCapturing, (CUstream handle, CUstreamCaptureStatus *status), .status = status)
INQUIRE(cuStreamGetCaptureInfo, (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id),
        .status = status, .id = id)
INQUIRE(cuStreamGetCaptureInfo_v2,
        (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
         const CUgraphNode **nodes, size_t *count),
        status, id, graph, nodes, NULL, count)
INQUIRE(cuStreamGetCaptureInfo_v3,
        (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
         const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count),
        status, id, graph, nodes, edges, count)

static CUresult change(struct CUstream_st *s, const CUgraphNode *nodes, size_t count, unsigned flags)
{
    struct capture *c = capture_of(s);
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!graph_node_is(nodes[i]) || nodes[i]->graph != c->graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (vec_reserve(&s->after, count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        s->after.len = 0;
    for (size_t i = 0; i < count; i++)
        capture_after(&s->after, nodes[i]);
    return CUDA_SUCCESS;
}

static CUresult change_after(bool per_thread, CUstream handle, const CUgraphNode *nodes, size_t count,
                             unsigned flags)
{
    struct CUstream_st *s;
    CUresult r = stream_get(handle, per_thread, &s);
    if (!r)
        r = graph_enter();
    if (r)
        return r;
    r = change(s, nodes, count, flags);
    graph_leave();
    return r;
}
STREAM_CALL(cuStreamUpdateCaptureDependencies, change_after,
            (CUstream handle, CUgraphNode *nodes, size_t count, unsigned int flags), handle, nodes, count,
            flags)
STREAM_CALL(cuStreamUpdateCaptureDependencies_v2, change_after,
            (CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count,
             unsigned int flags),
            handle, nodes, count, flags)
