// SPDX-License-Identifier: MIT
#include "flow/flow.h"

#include <errno.h>

static int make_regs(struct flow *w)
{
    return regs_build(w->f, 0, &w->regs);
}

// --- one per row of analyses.def ---------------------------------------------------------------------------

static int make_cfg(struct flow *w)
{
    return cfg_build(w->m, w->f, &w->cfg);
}

static int make_dominators(struct flow *w)
{
    int err = flow_cfg(w, NULL);
    return err ? err : dom_build(w->cfg->graph, &w->dominators);
}

static int make_postdominators(struct flow *w)
{
    int err = flow_cfg(w, NULL);
    return err ? err : dom_build_post(w->cfg->graph, w->cfg->exits, &w->postdominators);
}

static int make_loops(struct flow *w)
{
    int err = flow_dominators(w, NULL);
    return err ? err : loops_build(w->cfg->graph, w->dominators, &w->loops);
}

static int make_reaching(struct flow *w)
{
    int err = flow_dominators(w, NULL);
    if (!err)
        err = flow_regs(w, NULL);
    return err ? err : reach_build(w->cfg, w->dominators, w->regs, 0, &w->reaching);
}

int flow_whole(const struct flow *w)
{
    for (uint32_t i = 0; i < w->f->nstmts; i++)
        if (!ptx_stmt_is_whole(&w->f->stmts[i]))
            return -EBADMSG;
    return 0;
}

static int make_roots(struct flow *w)
{
    int err = flow_whole(w);
    if (!err)
        err = flow_reaching(w, NULL);
    return err ? err : roots_build(w->m, w->f, w->reaching, w->dominators, &w->roots);
}

static int make_liveness(struct flow *w)
{
    int err = flow_cfg(w, NULL);
    if (!err)
        err = flow_regs(w, NULL);
    return err ? err : live_build(w->cfg, w->regs, 0, &w->liveness);
}

// --- asking ------------------------------------------------------------------------------------------------

#define ASK(name, type)                                      \
    int flow_##name(struct flow *w, const struct type **out) \
    {                                                        \
        int err = w->name ? 0 : make_##name(w);              \
        if (!err && out)                                     \
            *out = w->name;                                  \
        return err;                                          \
    }
ASK(regs, regs)
#define ANALYSIS(name, type, text) ASK(name, type)
#include "flow/analyses.def"

// Results that refer to others are freed first.
void flow_drop(struct flow *w)
{
    live_free(w->liveness);
    roots_free(w->roots);
    reach_free(w->reaching);
    loops_free(w->loops);
    dom_free(w->postdominators);
    dom_free(w->dominators);
    cfg_free(w->cfg);
    regs_free(w->regs);
    *w = (struct flow){.m = w->m, .f = w->f};
}
