// SPDX-License-Identifier: MIT
// Launches, for those who keep them for later: nodes of graphs.
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

CUresult
launch_check(const struct launch_request *q);  // f and ctx are known; the parameters are not looked at
CUresult launch_pack(const struct launch_request *q, char *to);
// What an attribute changes. event: to be recorded behind the launch.
CUresult launch_attribute(struct launch_request *q, const CUlaunchAttribute *a, CUevent *event);
// An operation that runs it; it has taken what it needs of the request.
CUresult launch_op(const struct launch_request *q, struct pool_op **out);

// --- kernels that launch (launch_child.c) ----------------------------------------------------------------------

// What a running grid is to the operations that it launches.
struct launch_owner {
    struct pool_op *op;
    struct CUmod_st *module;
    struct CUctx_st *ctx;
    struct CUgraphExec_st *exec;
    struct pool_op *flight;  // what that launch of exec ends with, which is not done before this grid is
    uint64_t number;         // of the launch by the host that it comes from
    struct launch_family *family;  // NULL: it has launched nothing yet
};
extern const struct exec_children launch_children;
// An operation of launch_op is of a node of e, in a flight that ends so, with that number.
void launch_op_exec(struct pool_op *op, struct CUgraphExec_st *e, struct pool_op *flight, uint64_t number);
void launch_child_end(struct launch_owner *o);  // its last block has ended
// What kernels launch is counted as pending in the context. CUDA_SUCCESS, or EXEC_TOO_MANY_PENDING: it is not.
int launch_child_more(struct CUctx_st *ctx);
void launch_child_less(struct CUctx_st *ctx);
void launch_child_ended(struct pool_op *op);  // as its `ended`: it was counted, in its own context

// What a kernel may ask (launch_query.c); as exec_children has them.
int launch_query_ask(void *owner, enum exec_question question, int which, uint64_t *value);
int launch_query_attribute(void *owner, int which, int device, int *value);
int launch_query_function(void *owner, const struct exec_kernel *k, int which, int *value);
int launch_query_occupancy(void *owner, const struct exec_kernel *k, int threads, uint64_t shared,
                           int *blocks);
uint64_t launch_query_error(void *owner, int error, bool name);

// As cuGraphLaunch, by a kernel of the flight that ends with `by` (graph_launch.c). last: when that has ended.
int graph_launch_child(struct pool_op *by, uint64_t number, struct CUgraphExec_st *e, bool last);

#endif
