// SPDX-License-Identifier: MIT
// All analyses of one function, each made when it is first asked for and kept until flow_drop.
//
//   struct flow w = {.m = m, .f = f};
//   const struct live *live;
//   int err = flow_liveness(&w, &live);  // makes the cfg and the list of registers too
//   flow_drop(&w);
//
// Whoever changes the function's statements must drop what was made of them.
#ifndef MOAT_FLOW_FLOW_H
#define MOAT_FLOW_FLOW_H

#include "flow/cfg.h"
#include "flow/dom.h"
#include "flow/live.h"
#include "flow/loops.h"
#include "flow/reach.h"
#include "flow/regs.h"

struct flow {
    const struct ptx_module *m;
    const struct ptx_func *f;  // has a body
    struct regs *regs;
    // NULL until they are made: cfg, dominators, ...
#define ANALYSIS(name, type, text) struct type *name;
#include "flow/analyses.def"
};

// flow_cfg, flow_dominators, ... for each row of analyses.def. What *out points to is the flow's. 0, -ENOMEM
// or -E2BIG; after a failure, which leaves *out as it was, asking again tries again. out may be NULL.
#define ANALYSIS(name, type, text) int flow_##name(struct flow *w, const struct type **out);
#include "flow/analyses.def"
int flow_regs(struct flow *w, const struct regs **out);

void flow_drop(struct flow *w);  // as if nothing had been asked for

#endif
