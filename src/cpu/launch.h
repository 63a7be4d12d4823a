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

#endif
