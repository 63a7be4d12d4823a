// SPDX-License-Identifier: MIT
// All analyses of one function, each computed on first request and kept until flow_drop.
//
//   struct flow w = {.m = m, .f = f};
//   const struct live *live;
//   int err = flow_liveness(&w, &live);  // computes the cfg and the list of registers too
//   flow_drop(&w);
//
// Code that changes the function's statements must drop their analyses.
#ifndef MOAT_FLOW_FLOW_H
#define MOAT_FLOW_FLOW_H

#include "flow/cfg.h"
#include "flow/dom.h"
#include "flow/live.h"
#include "flow/loops.h"
#include "flow/reach.h"
#include "flow/regs.h"
#include "flow/roots.h"

struct flow {
    const struct ptx_module *m;
    const struct ptx_func *f;  // requires a body
    struct regs *regs;
    // NULL until computed: cfg, dominators, ...
#define ANALYSIS(name, type, text) struct type *name;
#include "flow/analyses.def"
};

// flow_cfg, flow_dominators, ... for each row of analyses.def: *out (out may be NULL) points to the result,
// which belongs to the flow. They return 0, -ENOMEM or -E2BIG; flow_roots may return -EBADMSG, as flow_whole.
// After a failure *out is unchanged, and the next request tries again.
#define ANALYSIS(name, type, text) int flow_##name(struct flow *w, const struct type **out);
#include "flow/analyses.def"
int flow_regs(struct flow *w, const struct regs **out);

void flow_drop(struct flow *w);  // frees all results

// Returns 0, or -EBADMSG if an instruction lacks operands. The analyses of values count on them.
int flow_whole(const struct flow *w);

#endif
