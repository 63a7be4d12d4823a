// SPDX-License-Identifier: MIT
// Graphs: nodes with their work, edges, and what a launch makes of them.
//
//   graph ── nodes, in the order in which they were made ── edges to and from others of the graph
//   node  ── work: what it does; a child graph and the bodies of a conditional node are graphs of their own
//   exec  ── a private copy of a graph in the order in which it can be launched; each launch makes operations of it
//
//   n->in holds an edge from m  <=>  m->out holds one to n; both of one graph
//   a copy's node has the id of what it was copied from in `origin`
//   graphs and nodes are handles, but for those of an exec
//
// All of it under capture_lock, which graph_enter takes and graph_leave gives back.
#ifndef MOAT_CPU_GRAPHS_H
#define MOAT_CPU_GRAPHS_H

#include "base/vec.h"
#include "cpu/capture.h"
#include "cpu/copy.h"
#include "cpu/graph_memory.h"
#include "cpu/launch.h"
#include "cpu/stream.h"

// --- what nodes do (graph_work.c, graph_kernel.c) ----------------------------------------------------------------

struct graph_kernel {
    CUfunction func;  // as the application named it: one of the two
    CUkernel kern;
    struct CUctx_st *ctx;
    uint32_t grid[3], block[3], shared;
    bool cooperative;
    uint32_t nparams, size;
    void **pointers;  // to the parameters; one piece of memory with the bytes
    char *bytes;      // as the kernel reads them
    VEC(CUlaunchAttribute) attributes;
};

// A word of device memory, whose address is the handle. Kernels write it, conditional nodes read it.
struct graph_condition {
    uint64_t word;
    unsigned initial, flags, refs;
    struct CUctx_st *ctx;
    uint64_t graph;  // id of the one that it was made for
    bool used;       // by a node
};

struct graph_choice {
    struct graph_condition *condition;
    CUgraphConditionalNodeType type;
    struct CUctx_st *ctx;
    unsigned size;
    struct CUgraph_st **bodies;
};

struct graph_work {
    CUgraphNodeType type;
    bool inside;  // of an exec's: it allocates what the same graph frees, or frees what that allocates
    union {
        struct graph_kernel kernel;
        struct {
            CUDA_MEMCPY3D params;
            struct CUctx_st *ctx;
            struct copy_job job;
        } copy;
        struct {
            CUDA_MEMSET_NODE_PARAMS_v2 params;
            struct copy_job job;
        } fill;
        CUDA_HOST_NODE_PARAMS_v2 host;
        struct CUgraph_st *child;
        CUevent event;
        struct {
            CUDA_MEM_ALLOC_NODE_PARAMS_v2 params;
            CUmemAccessDesc *access;  // that params.accessDescs points to
            struct graph_memory *memory;
        } alloc;
        struct graph_memory *freed;
        struct {
            struct CUctx_st *ctx;
            unsigned count;
            CUstreamBatchMemOpParams *steps;
        } batch;
        struct graph_choice choice;
    };
};

// What the parameters of a node do not say.
struct graph_extra {
    const CUlaunchAttribute *attributes;  // of a kernel
    unsigned count;
    bool captured;
};

// Answers go into p. g: whose node it will be. extra: NULL if there is none.
CUresult graph_work_make(struct graph_work *w, const struct CUgraph_st *g, CUgraphNodeParams *p,
                         const struct graph_extra *extra);
CUresult graph_work_copy(struct graph_work *to, const struct graph_work *from, bool secret);
void graph_work_free(struct graph_work *w);
// As the application's structures say it. Arrays are the work's own, valid as long as that.
void graph_work_params(const struct graph_work *w, CUgraphNodeParams *out);
// A context that the application names, or the current one.
CUresult graph_work_context(CUcontext named, struct CUctx_st **out);

CUresult graph_kernel_make(struct graph_kernel *k, const CUDA_KERNEL_NODE_PARAMS_v3 *p,
                           const CUlaunchAttribute *attributes, unsigned count);
CUresult graph_kernel_copy(struct graph_kernel *to, const struct graph_kernel *from);
void graph_kernel_free(struct graph_kernel *k);
void graph_kernel_params(const struct graph_kernel *k, CUDA_KERNEL_NODE_PARAMS_v3 *out);
CUresult graph_kernel_op(const struct graph_kernel *k, struct pool_op **out);
const char *graph_kernel_name(const struct graph_kernel *k);  // NULL: it is gone

// --- graphs and nodes (graph_make.c, graph_node.c, graph_order.c) --------------------------------------------------

struct graph_edge {
    struct CUgraphNode_st *node;
    CUgraphEdgeData data;
};

struct CUgraphNode_st {
    _Alignas(16) struct CUgraph_st *graph;
    struct CUgraphNode_st *next, *prev;  // of the graph
    uint64_t id, origin;                 // ids grow, and none is used twice
    bool disabled;                       // of an exec's
    VEC(struct graph_edge) in, out;
    struct graph_work work;
    // For the one who has the lock.
    uint64_t mark;
    size_t waits;                 // edges that have not been walked, while sorting
    size_t index;                 // in the list of nodes
    struct CUgraphNode_st *twin;  // in the copy that is being made
    struct pool_op *gate, *op;    // while launching: what begins it, if that is another than what ends it
    bool took;                    // while launching: whether an allocation is live, or is not, because of it
};

struct graph_object_hold {
    struct CUuserObject_st *object;
    unsigned count;
};

struct CUgraph_st {
    _Alignas(16) struct CUgraphNode_st *first;
    struct CUgraphNode_st *last;
    size_t count;
    uint64_t id, origin;
    struct CUgraphNode_st *owner;   // whose child or body it is; NULL
    bool secret;                    // an exec's: no handles
    bool memory;                    // it has nodes that allocate or free
    unsigned capturing;             // captures into it and what is below it
    unsigned execs;                 // that were made of it and live, if it has such nodes
    struct CUgraphNode_st **order;  // of an exec's: as it is launched
    VEC(struct graph_object_hold) objects;
    VEC(struct graph_condition *) conditions;
};

CUresult graph_enter(void);  // and the lock, if CUDA_SUCCESS
// And destroys user objects that are not referred to any more; callbacks of cuLogs* hear what is new.
void graph_leave(void);
struct CUgraph_st *graph_make_new(bool secret);
void graph_make_free(struct CUgraph_st *g);
// A copy of the nodes and edges, and of the references to user objects.
CUresult graph_make_copy(const struct CUgraph_st *g, bool secret, struct CUgraph_st **out);
static inline bool graph_is(CUgraph g)
{
    return handle_is(g, HANDLE_GRAPH);
}
static inline bool graph_node_is(CUgraphNode n)
{
    return handle_is(n, HANDLE_GRAPH_NODE);
}

CUresult graph_node_add(struct CUgraph_st *g, const CUgraphNode *after, const CUgraphEdgeData *edges,
                        size_t n, CUgraphNodeParams *p, const struct graph_extra *extra, CUgraphNode *out);
struct CUgraphNode_st *graph_node_new(struct CUgraph_st *g);  // of no work yet; NULL when out of memory
void graph_node_free(struct CUgraphNode_st *n);
// The node's children are the node's.
void graph_node_adopt(struct CUgraphNode_st *n);
CUresult graph_node_connect(struct CUgraphNode_st *from, struct CUgraphNode_st *to,
                            const CUgraphEdgeData *data);
uint64_t graph_node_stamp(void);  // for marks: never used before

// Numbers the nodes in their list.
void graph_order_number(struct CUgraph_st *g);
// Nodes behind all that they depend on. CUDA_ERROR_INVALID_VALUE: a cycle, *bad is on it.
CUresult graph_order_make(struct CUgraph_st *g, struct CUgraphNode_st **bad);
// Marks a node and all that it depends on.
CUresult graph_order_mark(struct CUgraphNode_st *n, uint64_t mark);

// --- user objects (graph_object.c) -----------------------------------------------------------------------------------

CUresult graph_object_copy(struct CUgraph_st *to, const struct CUgraph_st *from);
void graph_object_free(struct CUgraph_st *g);
bool graph_object_any(const struct CUgraph_st *g);  // in it or below it
void graph_object_bury(void);  // gives the lock back and destroys those that are not referred to any more

// --- conditions (graph_choice.c) -------------------------------------------------------------------------------------

// For a node of g: the condition is that graph's, or of one that it is part of.
CUresult graph_choice_make(struct graph_choice *c, const struct CUgraph_st *g,
                           CUDA_CONDITIONAL_NODE_PARAMS *p);
CUresult graph_choice_copy(struct graph_choice *to, const struct graph_choice *from, bool secret);
void graph_choice_free(struct graph_choice *c);
void graph_choice_drop(struct graph_condition *c);
void graph_choice_begin(const struct CUgraph_st *g);  // a launch begins: words get their initial values
// Which body to run: its number, or -1.
int graph_choice_body(const struct graph_choice *c);

// --- operations (graph_op.c) -----------------------------------------------------------------------------------------

// What an operation owns. First in each of them.
struct graph_op_task {
    bool abandoned;  // it will never run: only free it
};

// These are NULL when out of memory; then the task is freed.
struct pool_op *graph_op_new(enum pool_kind kind, struct CUctx_st *ctx, stream_fn *fn, void *task);
struct pool_op *graph_op_mark(struct CUctx_st *ctx);
// The operation that a node ends with, in a stream of ctx. *out NULL: out of memory.
CUresult graph_op_make(struct CUgraphNode_st *n, struct CUctx_st *ctx, struct pool_op **out);
void graph_op_abandon(struct pool_op *op);  // one that was never submitted

// --- executables (graph_exec.c, graph_launch.c, graph_update.c) --------------------------------------------------------

struct graph_exec_entry {
    uint64_t origin;
    struct CUgraphNode_st *node;
};

struct CUgraphExec_st {
    _Alignas(16) struct CUgraph_st *graph;
    CUgraph source;
    uint64_t source_id, flags;
    unsigned refs;  // the application's, and one for each launch that needs it to its end
    struct pool_op *last;
    uint64_t number;                     // of the launch by the host that last belongs to
    VEC(struct graph_exec_entry) index;  // of all nodes, by origin
};

// The node of the exec that was made of that one; NULL if none was.
struct CUgraphNode_st *graph_exec_find(const struct CUgraphExec_st *e, CUgraphNode n);
void graph_exec_drop(struct CUgraphExec_st *e);
// An exec's node gets other work, which must be of the same kind.
CUgraphExecUpdateResult graph_update_allowed(const struct graph_work *from, const struct graph_work *to);

#endif
