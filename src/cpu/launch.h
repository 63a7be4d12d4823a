// SPDX-License-Identifier: MIT
// Launches of kernels, for the calls that launch and for nodes of graphs.
#ifndef MOAT_CPU_LAUNCH_H
#define MOAT_CPU_LAUNCH_H

#include "cpu/module.h"
#include "cpu/pool.h"

struct launch_request {
    struct CUfunc_st *f;
    struct CUctx_st *ctx;
    uint32_t grid[3], block[3], shared;
    uint32_t cluster[3];  // 0: as the kernel says
    bool cooperative;
    void **params, **extra;  // as the application passes them
    const void *packed;      // or as the kernel reads them: param_size bytes
};

// Checks a request whose f and ctx are set; the parameters are not checked.
CUresult launch_check(const struct launch_request *q);
CUresult launch_pack(const struct launch_request *q, char *to);
// Applies a launch attribute to the request. event: receives an event that is to be recorded behind the
// launch.
CUresult launch_attribute(struct launch_request *q, const CUlaunchAttribute *a, CUevent *event);
// Makes the operation that runs the request. It has copied what it needs of the request.
CUresult launch_op(const struct launch_request *q, struct pool_op **out);

// --- kernels that launch kernels (launch_child.c) ----------------------------------------------------------

// The owner of the operations that a running grid launches.
struct launch_owner {
    struct pool_op *op;
    struct CUmod_st *module;
    struct CUctx_st *ctx;
    struct CUgraphExec_st *exec;
    struct pool_op *flight;  // last operation of that launch of exec; it is not done before this grid is
    uint64_t number;         // of the host's launch that the grid comes from
    struct launch_family *family;  // NULL: it has launched nothing yet
};
extern const struct exec_children launch_children;
// Marks an operation of launch_op as belonging to a node of e, in a launch that ends with `flight` and has
// that number.
void launch_op_exec(struct pool_op *op, struct CUgraphExec_st *e, struct pool_op *flight, uint64_t number);
void launch_child_end(struct launch_owner *o);  // its last block has ended
// launch_child_count counts an operation that a kernel launches as pending in the context. Returns
// CUDA_SUCCESS, or EXEC_TOO_MANY_PENDING and does not count it. launch_child_uncount undoes that.
int launch_child_count(struct CUctx_st *ctx);
void launch_child_uncount(struct CUctx_st *ctx);
// The `ended` function of an operation that was counted in its own context.
void launch_child_ended(struct pool_op *op);

// Queries by kernels (launch_query.c), as in exec_children.
int launch_query_ask(void *owner, enum exec_question question, int which, uint64_t *value);
int launch_query_attribute(void *owner, int which, int device, int *value);
int launch_query_function(void *owner, const struct exec_kernel *k, int which, int *value);
int launch_query_occupancy(void *owner, const struct exec_kernel *k, int threads, uint64_t shared,
                           int *blocks);
uint64_t launch_query_error(void *owner, int error, bool name);

// Launches e from a kernel of a graph launch that ends with `by` (graph_launch.c). last: the launch begins
// when `by` would have ended (tail launch).
int graph_launch_child(struct pool_op *by, uint64_t number, struct CUgraphExec_st *e, bool last);

#endif
