// SPDX-License-Identifier: MIT
// A launch makes an operation of each node, which waits for those of the nodes before it. The stream sees a
// first operation that all of them wait for, and a last one that waits for all.
//
//   stream ── first ─▶ nodes without dependencies ─▶ ... ─▶ nodes without dependents ─▶ ends ─ last ─ stream
//
// The nodes of a child graph lie between two marks. A conditional node is an operation that reads its word.
// If a body is to run, it submits the body, and behind that itself again (while) or the mark that the nodes
// behind it wait for; otherwise it submits that mark at once.
#include "base/mutex.h"
#include "cpu/graphs.h"

struct flight {
    struct CUgraphExec_st *exec;
    struct CUstream_st *stream;
    struct CUctx_st *ctx;
    struct pool_op *end;        // last operation of the frame
    uint64_t number;            // of the host's launch; graphs that its kernels launch have the same number
    VEC(struct pool_op *) ops;  // all operations, in the order in which they are linked
};

static void abandon_all(struct flight *f)
{
    for (size_t i = 0; i < f->ops.len; i++)
        graph_op_abandon(f->ops.items[i]);
    vec_free(&f->ops);
}

// --- making operations -------------------------------------------------------------------------------------

static size_t count_ends(const struct CUgraph_st *g)
{
    size_t n = 0;
    for (const struct CUgraphNode_st *at = g->first; at; at = at->next)
        n += !at->out.len;
    return n;
}

// Adds an operation to the flight, which owns it from then on, with room for that many dependencies. op ==
// NULL means out of memory. On an error the operation is freed.
static CUresult take(struct flight *f, struct pool_op *op, size_t room)
{
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (room > UINT32_MAX || pool_op_room(op, (unsigned)room) || vec_push(&f->ops, op)) {
        graph_op_abandon(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->stream = f->stream;
    return CUDA_SUCCESS;
}

static CUresult prepare(struct flight *f, struct CUgraph_st *g);
static struct pool_op *choice_op(struct flight *f, struct CUgraphNode_st *n);

static CUresult prepare_node(struct flight *f, struct CUgraphNode_st *n)
{
    // One more for the event that the node waits for.
    size_t before = n->in.len ? n->in.len + 1 : 2, behind = before;
    bool child = n->work.type == CU_GRAPH_NODE_TYPE_GRAPH,
         choice = n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    struct pool_op *op;
    n->gate = n->op = NULL;
    CUresult r = graph_op_make(n, f->ctx, &op);
    if (r)
        return r;
    if (child)
        behind = count_ends(n->work.child) + 1;
    r = take(f, op, behind);
    if (r)
        return r;
    n->op = op;
    if (op->kind == POOL_GRID)
        launch_op_exec(op, f->exec, f->end, f->number);
    if (!child && !choice)
        return CUDA_SUCCESS;
    n->gate = child ? graph_op_mark(f->ctx) : choice_op(f, n);
    r = take(f, n->gate, before);
    return !r && child ? prepare(f, n->work.child) : r;
}

static CUresult prepare(struct flight *f, struct CUgraph_st *g)
{
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < g->count && !r; i++)
        r = prepare_node(f, g->order[i]);
    return r;
}

// --- linking operations, with the pool's lock held ---------------------------------------------------------

static void submit(struct pool_op *op)
{
    pool_keep(op);
    pool_submit(op);
}

static void link_graph(struct CUgraph_st *g, struct pool_op *gate);

static void depend_on_ends(struct pool_op *op, const struct CUgraph_st *g, struct pool_op *gate)
{
    if (!g->count)
        pool_depend(op, gate);
    for (const struct CUgraphNode_st *n = g->first; n; n = n->next) {
        if (!n->out.len)
            pool_depend(op, n->op);
    }
}

static void link_node(struct CUgraphNode_st *n, struct pool_op *gate)
{
    struct pool_op *head = n->gate ? n->gate : n->op;
    if (!n->in.len)
        pool_depend(head, gate);
    for (size_t i = 0; i < n->in.len; i++)
        pool_depend(head, n->in.items[i].node->op);
    if (n->work.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        pool_depend(head, event_mark(n->work.event));
    if (n->work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        event_set_mark(n->work.event, n->op);
    if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        submit(n->gate);
        link_graph(n->work.child, n->gate);
        depend_on_ends(n->op, n->work.child, n->gate);
    }
    if (n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        pool_keep(n->op);  // submitted when the last body has run
    submit(n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? n->gate : n->op);
}

static void link_graph(struct CUgraph_st *g, struct pool_op *gate)
{
    for (size_t i = 0; i < g->count; i++)
        link_node(g->order[i], gate);
}

static void release_all(struct flight *f)
{
    for (size_t i = 0; i < f->ops.len; i++)
        pool_release(f->ops.items[i]);
}

// --- conditional nodes -------------------------------------------------------------------------------------

struct choice_task {
    struct graph_op_task task;
    struct flight flight;  // without its operations
    struct CUgraphNode_st *node;
    struct pool_op *end;
};

static void decide(void *arg, bool run);

static struct pool_op *choice_op(struct flight *f, struct CUgraphNode_st *n)
{
    struct choice_task *t = mem_zalloc(1, sizeof *t);
    if (t) {
        t->flight = (struct flight){
            .exec = f->exec, .stream = f->stream, .ctx = f->ctx, .end = f->end, .number = f->number};
        t->node = n;
        t->end = n->op;
    }
    return graph_op_new(POOL_WORK, f->ctx, decide, t);
}

// Submits the body, and behind it either this node again, which owns t then, or the node's end. On success t
// belongs to the node again or is freed.
static CUresult run_body(struct choice_task *t, struct CUgraph_st *body)
{
    bool loop = t->node->work.choice.type == CU_GRAPH_COND_TYPE_WHILE;
    struct flight f = t->flight;
    CUresult r = prepare(&f, body);
    struct pool_op *behind = r ? NULL : loop ? pool_op_new(POOL_WORK, f.ctx) : graph_op_mark(f.ctx);
    if (!behind || pool_op_room(behind, (unsigned)count_ends(body) + 1)) {
        pool_op_discard(behind);
        abandon_all(&f);
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    }
    behind->stream = f.stream;
    behind->fn = decide;
    behind->arg = t;
    pool_lock();
    link_graph(body, NULL);
    depend_on_ends(behind, body, NULL);
    submit(behind);
    if (!loop) {
        pool_depend(t->end, behind);
        pool_submit(t->end);
    }
    pool_release(behind);
    release_all(&f);
    pool_unlock();
    vec_free(&f.ops);
    if (!loop)
        mem_free(t);
    return CUDA_SUCCESS;
}

static void decide(void *arg, bool run)
{
    struct choice_task *t = arg;
    if (t->task.abandoned) {
        mem_free(t);
        return;
    }
    if (run) {
        capture_lock();
        const struct graph_choice *c = &t->node->work.choice;
        int body = graph_choice_body(c);
        struct CUctx_st *ctx = t->flight.ctx;
        CUresult r = body < 0 ? CUDA_SUCCESS : run_body(t, c->bodies[body]);
        capture_unlock();
        if (body >= 0 && !r)
            return;
        if (r)
            pool_fail(ctx, &(struct exec_fault){.kind = r == CUDA_ERROR_OUT_OF_MEMORY ? EXEC_OUT_OF_MEMORY
                                                                                      : EXEC_LAUNCH_FAILED});
    }
    pool_lock();
    pool_submit(t->end);
    pool_unlock();
    mem_free(t);
}

// --- the launch --------------------------------------------------------------------------------------------

// Returns whether the allocations are in the state that a launch needs. Here and below memory_lock is held:
// other calls free allocations without capture_lock.
static bool memory_ready(const struct CUgraph_st *g, bool auto_free)
{
    for (struct CUgraphNode_st *n = g->first; n; n = n->next) {
        const struct graph_work *w = &n->work;
        n->toggled = false;
        if (w->type == CU_GRAPH_NODE_TYPE_GRAPH && !memory_ready(w->child, auto_free))
            return false;
        if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && w->alloc.memory->live && !auto_free)
            return false;
        if (w->type == CU_GRAPH_NODE_TYPE_MEM_FREE && !w->inside && !w->freed->live)
            return false;
    }
    return true;
}

// Changes the allocations to their state after the launch, as later calls see it. An allocation that is live
// and inside is freed by the launch itself (auto free): the launch takes it over and frees it. Returns false
// if something would be freed twice.
static bool memory_change(const struct CUgraph_st *g)
{
    for (struct CUgraphNode_st *n = g->first; n; n = n->next) {
        const struct graph_work *w = &n->work;
        if (w->type == CU_GRAPH_NODE_TYPE_GRAPH && !memory_change(w->child))
            return false;
        if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            n->toggled = w->inside ? graph_memory_end(w->alloc.memory) : graph_memory_begin(w->alloc.memory);
        if (w->type != CU_GRAPH_NODE_TYPE_MEM_FREE || w->inside)
            continue;
        n->toggled = graph_memory_end(w->freed);
        if (!n->toggled)
            return false;
    }
    return true;
}

// Undoes memory_change, backwards: a graph may free what another graph of the launch allocates.
static void memory_restore(const struct CUgraph_st *g)
{
    for (struct CUgraphNode_st *n = g->last; n; n = n->prev) {
        const struct graph_work *w = &n->work;
        if (w->type == CU_GRAPH_NODE_TYPE_GRAPH)
            memory_restore(w->child);
        if (!n->toggled)
            continue;
        n->toggled = false;
        if (w->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            graph_memory_restore(w->freed);
        else if (w->inside)
            graph_memory_restore(w->alloc.memory);
        else
            graph_memory_undo(w->alloc.memory);
    }
}

static CUresult memory_take(const struct CUgraphExec_st *e)
{
    if (!e->graph->memory)
        return CUDA_SUCCESS;
    mutex_lock(&memory_lock);
    bool ready = memory_ready(e->graph, e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    if (ready && !memory_change(e->graph)) {
        memory_restore(e->graph);
        ready = false;
    }
    mutex_unlock(&memory_lock);
    return ready ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Undoes memory_take for a launch that has failed.
static void memory_give_back(const struct CUgraphExec_st *e)
{
    if (!e->graph->memory)
        return;
    mutex_lock(&memory_lock);
    memory_restore(e->graph);
    mutex_unlock(&memory_lock);
}

struct exec_task {
    struct graph_op_task task;
    struct CUgraphExec_st *exec;
};

static void begin(void *arg, bool run)
{
    struct exec_task *t = arg;
    if (run)
        graph_choice_begin(t->exec->graph);
    mem_free(t);
}

static void end(void *arg, bool run)
{
    struct exec_task *t = arg;
    capture_lock();
    graph_exec_drop(t->exec);
    // Not graph_leave: a callback for messages may wait for work, and this thread runs work.
    graph_object_reap();
    mem_free(t);
}

// The operations around the nodes: marks, unless there is something to do.
struct frame {
    struct flight *flight;
    struct pool_op *first, *ends, *last;
};

static struct pool_op *exec_op(struct flight *f, enum pool_kind kind, stream_fn *fn)
{
    struct exec_task *t = mem_zalloc(1, sizeof *t);
    if (t)
        t->exec = f->exec;
    return graph_op_new(kind, f->ctx, fn, t);
}

static void discard(struct pool_op *op)
{
    if (op && op->kind != POOL_MARK)
        mem_free(op->arg);
    pool_op_discard(op);
}

static void discard_frame(struct frame *frame)
{
    discard(frame->first);
    discard(frame->ends);
    discard(frame->last);
}

// Makes the operations of the frame. User objects are destroyed by functions of the application, so `last`
// runs on the callback thread if there are any.
static CUresult make_frame(struct frame *frame)
{
    struct flight *f = frame->flight;
    const struct CUgraph_st *g = f->exec->graph;
    bool objects = graph_object_any(g), conditions = g->conditions.len;
    if (objects && pool_start_callbacks())
        return CUDA_ERROR_OUT_OF_MEMORY;
    frame->first = conditions ? exec_op(f, POOL_WORK, begin) : graph_op_mark(f->ctx);
    frame->ends = graph_op_mark(f->ctx);
    frame->last = objects      ? exec_op(f, POOL_CALLBACK, end)
                  : conditions ? exec_op(f, POOL_WORK, end)
                               : graph_op_mark(f->ctx);
    f->end = frame->last;
    if (frame->first && frame->ends && frame->last && !pool_op_room(frame->ends, (unsigned)count_ends(g) + 1))
        return CUDA_SUCCESS;
    discard_frame(frame);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// Makes the frame and the operations of the nodes, which must know the last operation of the flight. On an
// error everything is freed.
static CUresult make_flight(struct frame *frame)
{
    struct flight *f = frame->flight;
    CUresult r = make_frame(frame);
    if (r)
        return r;
    r = prepare(f, f->exec->graph);
    if (r) {
        abandon_all(f);
        discard_frame(frame);
    }
    return r;
}

static void link_all(void *arg)
{
    struct frame *frame = arg;
    struct CUgraph_st *g = frame->flight->exec->graph;
    link_graph(g, frame->first);
    depend_on_ends(frame->ends, g, frame->first);
    submit(frame->ends);
    release_all(frame->flight);
}

static CUresult submit_flight(struct frame *frame)
{
    struct flight *f = frame->flight;
    struct CUgraphExec_st *e = f->exec;
    bool held = frame->last->kind != POOL_MARK;
    void *task = frame->first->kind == POOL_MARK ? NULL : frame->first->arg;
    // These references are ours; no other thread knows the operations yet.
    frame->first->refs++;
    frame->last->refs++;
    e->refs += held;
    CUresult r = stream_add_run(f->stream, frame->first, e->last, link_all, frame, frame->ends, frame->last);
    if (r) {
        // stream_add_run has discarded first.
        mem_free(task);
        e->refs -= held;
        discard(frame->ends);
        discard(frame->last);
        return r;
    }
    pool_lock();
    pool_release(e->last);
    e->last = frame->last;
    e->number = f->number;
    pool_release(frame->first);
    pool_release(frame->ends);
    pool_unlock();
    return CUDA_SUCCESS;
}

static CUresult launch_flight(struct flight *f)
{
    struct frame frame = {.flight = f};
    CUresult r = memory_take(f->exec);
    if (r)
        return r;
    r = make_flight(&frame);
    if (!r) {
        r = submit_flight(&frame);
        if (r)
            abandon_all(f);
        vec_free(&f->ops);
    }
    if (r)
        memory_give_back(f->exec);
    return r;
}

// Returns whether op is not done before other is: it is the same operation, or an ancestor of it.
static bool outlasts(const struct pool_op *op, const struct pool_op *other)
{
    while (other && other != op)
        other = other->parent;
    return other;
}

// Returns whether the launch is a tail launch of a host's launch, of which a limited number may wait: see
// may_launch. All other launches by kernels count as pending in the context until they have ended.
static bool is_tail(const struct pool_op *by, bool last)
{
    return last && !by->parent;
}

// Submits a launch by a kernel of the launch that ends with `by`; `by` is not done before the new launch is.
// A tail launch of a launch by a kernel becomes a child of the same parent, so that a graph that launches
// itself again and again makes no chain. The pool's lock must be held.
static void submit_as_child(struct frame *frame, struct pool_op *by, bool last)
{
    struct CUgraphExec_st *e = frame->flight->exec;
    bool tail = is_tail(by, last), again = last && !tail;
    frame->last->ended = tail ? NULL : launch_child_ended;
    frame->first->stream = frame->ends->stream = frame->last->stream = by->stream;
    frame->first->refs++;
    frame->last->refs++;
    e->refs += frame->last->kind != POOL_MARK;
    pool_adopt(again ? by->parent : by, frame->last, tail ? frame->first : NULL);
    if (again)
        pool_depend(frame->first, by);
    // A graph has one flight at a time, but this one must not wait for a flight that waits for it: an
    // ancestor of `by`, or anything that the host has launched since.
    bool later = e->number > frame->flight->number;
    if (!later && !outlasts(e->last, by))
        pool_depend(frame->first, e->last);
    link_all(frame);
    pool_depend(frame->last, frame->ends);
    pool_submit(frame->last);
    if (!tail)
        pool_submit(frame->first);
    pool_release(later ? frame->last : e->last);
    if (!later) {
        e->last = frame->last;
        e->number = frame->flight->number;
    }
    pool_release(frame->first);
    pool_release(frame->ends);
}

// Checks that a kernel may launch e: a graph that is under way cannot be launched beside itself. On success
// the launch is counted as pending, unless it is a tail launch.
static int may_launch(const struct pool_op *by, struct CUgraphExec_st *e, bool last)
{
    enum { MOST_TAILS = 255 };  // CUDA's limit
    if (!handle_is(e, HANDLE_GRAPH_EXEC) || !(e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH))
        return CUDA_ERROR_INVALID_VALUE;
    pool_lock();
    bool may = last || !e->last || !outlasts(e->last, by), many = last && by->ntail >= MOST_TAILS;
    pool_unlock();
    if (many || !may)
        return many ? EXEC_TOO_MANY_PENDING : CUDA_ERROR_INVALID_VALUE;
    return is_tail(by, last) ? CUDA_SUCCESS : launch_child_count(by->ctx);
}

int graph_launch_child(struct pool_op *by, uint64_t number, struct CUgraphExec_st *e, bool last)
{
    capture_lock();
    int r = may_launch(by, e, last);
    if (!r) {
        struct flight f = {.exec = e, .stream = by->stream, .ctx = by->ctx, .number = number};
        struct frame frame = {.flight = &f};
        r = (int)make_flight(&frame);
        if (!r) {
            pool_lock();
            submit_as_child(&frame, by, last);
            pool_unlock();
            vec_free(&f.ops);
        } else if (!is_tail(by, last)) {
            launch_child_uncount(by->ctx);
        }
    }
    capture_unlock();
    return r;
}

// Adds the launch to the stream's capture as a child graph.
static CUresult capture_launch(struct CUgraphExec_st *e, struct CUstream_st *s)
{
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                              .graph = {.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
    capture_lock();
    CUresult r =
        e->graph->memory ? CUDA_ERROR_NOT_SUPPORTED : graph_make_copy(e->graph, false, &node.graph.graph);
    capture_unlock();
    if (r)
        return r;
    if (!capture_take(s, &node, NULL, 0, &r))
        r = CUDA_ERROR_ILLEGAL_STATE;
    if (r)
        cuGraphDestroy(node.graph.graph);
    return r;
}

static CUresult check(bool per_thread, CUgraphExec e, CUstream stream, struct CUstream_st **s)
{
    CUresult r = stream_get(stream, per_thread, s);
    return r ? r : handle_is(e, HANDLE_GRAPH_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch(bool per_thread, CUgraphExec e, CUstream stream)
{
    struct CUstream_st *s;
    CUresult r = check(per_thread, e, stream, &s);
    if (r)
        return r;
    if (stream_captures(s))
        return capture_launch(e, s);
    r = capture_refuse(s);
    if (!r)
        r = graph_enter();
    if (r)
        return r;
    static uint64_t launches;  // guarded by graph_enter
    struct flight f = {.exec = e, .stream = s, .ctx = s->ctx, .number = ++launches};
    r = launch_flight(&f);
    graph_leave();
    return r;
}
STREAM_CALL(cuGraphLaunch, launch, (CUgraphExec e, CUstream stream), e, stream)

// Nothing has to be uploaded.
static CUresult upload(bool per_thread, CUgraphExec e, CUstream stream)
{
    struct CUstream_st *s;
    CUresult r = check(per_thread, e, stream, &s);
    return r ? r : capture_refuse(s);
}
STREAM_CALL(cuGraphUpload, upload, (CUgraphExec e, CUstream stream), e, stream)
