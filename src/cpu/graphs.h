// SPDX-License-Identifier: MIT
// Graphs: nodes with their work, edges, and executable graphs.
//
//   graph ── nodes, in the order in which they were made ── edges to and from others of the graph
//   node  ── its work; a child graph and the bodies of a conditional node are graphs of their own
//   exec  ── a private copy of a graph in an order that can be launched; each launch makes operations of it
//
//   n->in holds an edge from m  <=>  m->out holds one to n; both are nodes of one graph
//   in a copy, origin of a node == id of the node it was copied from
//   graphs and nodes are handles, except those of an exec
//
// capture_lock guards all of it; graph_enter takes it and graph_leave releases it.
#ifndef MOAT_CPU_GRAPHS_H
#define MOAT_CPU_GRAPHS_H

#include "base/vec.h"
#include "cpu/capture.h"
#include "cpu/copy.h"
#include "cpu/graph_memory.h"
#include "cpu/launch.h"
#include "cpu/stream.h"

// --- work of nodes (graph_work.c, graph_kernel.c) ----------------------------------------------------------

struct graph_kernel {
    CUfunction func;  // as the application named the kernel: one of the two
    CUkernel kern;
    struct CUctx_st *ctx;
    uint32_t grid[3], block[3], shared;
    bool cooperative;
    uint32_t nparams, size;
    void **pointers;  // to the parameters; one allocation with the bytes
    char *bytes;      // the parameters as the kernel reads them
    VEC(CUlaunchAttribute) attributes;
};

// A word of device memory, whose address is the handle. Kernels write the word, conditional nodes read it.
struct graph_condition {
    uint64_t word;
    unsigned initial, flags, refs;
    struct CUctx_st *ctx;
    uint64_t graph;  // id of the graph that it was made for
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
    // In an exec: it allocates what the same graph frees, or frees what the same graph allocates.
    bool inside;
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
            CUmemAccessDesc *access;  // params.accessDescs points to it
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

// Facts about a node that its parameters do not contain.
struct graph_extra {
    const CUlaunchAttribute *attributes;  // attributes of a kernel
    unsigned count;
    bool captured;
};

// Makes the work of a node of graph g. Results, such as the address of an allocation, are stored in p. extra
// may be NULL.
CUresult graph_work_make(struct graph_work *w, const struct CUgraph_st *g, CUgraphNodeParams *p,
                         const struct graph_extra *extra);
CUresult graph_work_copy(struct graph_work *to, const struct graph_work *from, bool of_exec);
void graph_work_free(struct graph_work *w);
// Describes work in the application's structures. Arrays belong to the work and are valid as long as it is.
void graph_work_params(const struct graph_work *w, CUgraphNodeParams *out);
// Stores the context that the application names, or the current one if named is NULL.
CUresult graph_work_context(CUcontext named, struct CUctx_st **out);

CUresult graph_kernel_make(struct graph_kernel *k, const CUDA_KERNEL_NODE_PARAMS_v3 *p,
                           const CUlaunchAttribute *attributes, unsigned count);
CUresult graph_kernel_copy(struct graph_kernel *to, const struct graph_kernel *from);
void graph_kernel_free(struct graph_kernel *k);
void graph_kernel_params(const struct graph_kernel *k, CUDA_KERNEL_NODE_PARAMS_v3 *out);
CUresult graph_kernel_op(const struct graph_kernel *k, struct pool_op **out);
const char *graph_kernel_name(const struct graph_kernel *k);  // NULL: the kernel is unloaded

// --- graphs and nodes (graph_make.c, graph_node.c, graph_order.c) ------------------------------------------

struct graph_edge {
    struct CUgraphNode_st *node;
    CUgraphEdgeData data;
};

struct CUgraphNode_st {
    _Alignas(16) struct CUgraph_st *graph;
    struct CUgraphNode_st *next, *prev;  // in the graph's list
    uint64_t id, origin;                 // ids grow, and none is used twice
    bool disabled;                       // only nodes of an exec
    VEC(struct graph_edge) in, out;
    struct graph_work work;
    // Scratch space of whoever holds the lock.
    uint64_t mark;
    size_t waits;                 // while sorting: edges that have not been walked
    size_t index;                 // in the list of nodes
    struct CUgraphNode_st *twin;  // in the copy that is being made
    struct pool_op *gate, *op;  // while launching: its first operation, if that is another one, and its last
    bool toggled;               // while launching: it has changed whether an allocation is live
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
    struct CUgraphNode_st *owner;   // the node whose child or body it is; NULL: none
    bool of_exec;                   // of an exec: no handles
    bool memory;                    // has nodes that allocate or free
    unsigned capturing;             // captures into it and into graphs below it
    unsigned execs;                 // living execs of it, if it has such nodes
    struct CUgraphNode_st **order;  // of an exec: order of launching
    VEC(struct graph_object_hold) objects;
    VEC(struct graph_condition *) conditions;
};

CUresult graph_enter(void);  // takes the lock if it returns CUDA_SUCCESS
// Releases the lock, destroys user objects that have no references left, and calls the callbacks of cuLogs*
// for new messages.
void graph_leave(void);
struct CUgraph_st *graph_make_new(bool of_exec);
void graph_make_free(struct CUgraph_st *g);
// Copies the nodes, the edges and the references to user objects.
CUresult graph_make_copy(const struct CUgraph_st *g, bool of_exec, struct CUgraph_st **out);
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
struct CUgraphNode_st *graph_node_new(struct CUgraph_st *g);  // without work; NULL if out of memory
void graph_node_free(struct CUgraphNode_st *n);
// Makes n the owner of the graphs in its work.
void graph_node_adopt(struct CUgraphNode_st *n);
CUresult graph_node_connect(struct CUgraphNode_st *from, struct CUgraphNode_st *to,
                            const CUgraphEdgeData *data);
uint64_t graph_node_stamp(void);  // a mark that was never used before

// Numbers the nodes in their list.
void graph_order_number(struct CUgraph_st *g);
// Stores an order in which every node follows all that it depends on. Returns CUDA_ERROR_INVALID_VALUE if
// there is a cycle; *bad is a node on it.
CUresult graph_order_make(struct CUgraph_st *g, struct CUgraphNode_st **bad);
// Marks a node and all that it depends on.
CUresult graph_order_mark(struct CUgraphNode_st *n, uint64_t mark);

// --- user objects (graph_object.c) -------------------------------------------------------------------------

CUresult graph_object_copy(struct CUgraph_st *to, const struct CUgraph_st *from);
void graph_object_free(struct CUgraph_st *g);
bool graph_object_any(const struct CUgraph_st *g);  // whether it or a graph below it holds any
// Releases the lock and destroys the objects that have no references left.
void graph_object_reap(void);

// --- conditions (graph_choice.c) ---------------------------------------------------------------------------

// Makes the choice of a node of g. Its condition must belong to g or to a graph that g is part of.
CUresult graph_choice_make(struct graph_choice *c, const struct CUgraph_st *g,
                           CUDA_CONDITIONAL_NODE_PARAMS *p);
CUresult graph_choice_copy(struct graph_choice *to, const struct graph_choice *from, bool of_exec);
void graph_choice_free(struct graph_choice *c);
void graph_choice_drop(struct graph_condition *c);
// Sets the words to their initial values, at the begin of a launch.
void graph_choice_begin(const struct CUgraph_st *g);
// Returns the number of the body to run, or -1 for none.
int graph_choice_body(const struct graph_choice *c);

// --- operations (graph_op.c) -------------------------------------------------------------------------------

// What an operation owns; the first member of every task.
struct graph_op_task {
    bool abandoned;  // it will never run: only free it
};

// Return NULL if out of memory; the task is freed then.
struct pool_op *graph_op_new(enum pool_kind kind, struct CUctx_st *ctx, stream_fn *fn, void *task);
struct pool_op *graph_op_mark(struct CUctx_st *ctx);
// Makes the operation that a node ends with, in a stream of ctx. *out is NULL if out of memory.
CUresult graph_op_make(struct CUgraphNode_st *n, struct CUctx_st *ctx, struct pool_op **out);
void graph_op_abandon(struct pool_op *op);  // frees an operation that was never submitted

// --- executables (graph_exec.c, graph_launch.c, graph_update.c) --------------------------------------------

struct graph_exec_entry {
    uint64_t origin;
    struct CUgraphNode_st *node;
};

struct CUgraphExec_st {
    _Alignas(16) struct CUgraph_st *graph;
    CUgraph source;
    uint64_t source_id, flags;
    unsigned refs;  // of the application, plus one for each launch that needs it until its end
    struct pool_op *last;
    uint64_t number;                     // of the host's launch that `last` belongs to
    VEC(struct graph_exec_entry) index;  // all nodes, by origin
};

// Returns the node of the exec that was made from n; NULL if none was.
struct CUgraphNode_st *graph_exec_find(const struct CUgraphExec_st *e, CUgraphNode n);
void graph_exec_drop(struct CUgraphExec_st *e);
// Returns CU_GRAPH_EXEC_UPDATE_SUCCESS if the work of an exec's node may be replaced by `to`, or else why
// not.
CUgraphExecUpdateResult graph_update_allowed(const struct graph_work *from, const struct graph_work *to);

#endif
