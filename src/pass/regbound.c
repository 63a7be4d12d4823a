// SPDX-License-Identifier: MIT
#include "pass/regbound.h"

#include <errno.h>
#include <stdio.h>

// Returns the number of 32-bit registers that hold the live values at the walk's position. Predicates have
// registers of their own.
static uint32_t live_registers(const struct live_walk *w, const struct ptx_func *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct ptx_var *v = ptx_reg_var(f, w->live->regs->reg[w->item[i]]);
        unsigned bits = v ? ptx_type_bits((enum ptx_type)v->type) : 32;
        n += bits > 1 ? (bits + 31) / 32 : 0;
    }
    return n;
}

static uint32_t walk(const struct cfg *cfg, const struct ptx_func *f, struct live_walk *w)
{
    uint32_t most = 0;
    for (uint32_t b = 0; b < cfg->nblocks; b++) {
        live_walk_block(w, b);
        for (uint32_t s = cfg->blocks[b].last; s > cfg->blocks[b].first; s--) {
            uint32_t n = live_registers(w, f);
            most = n > most ? n : most;
            live_walk_back(w);
        }
    }
    return most;
}

// Raises *most to the number of 32-bit registers that the function needs at least. Analyses may be large and
// all functions are analysed, so each one's are dropped at once.
static int pressure(struct pass_context *c, uint32_t func, uint32_t *most)
{
    struct flow *flow = pass_flow(c, func);
    const struct cfg *cfg;
    const struct live *live;
    struct live_walk w;
    int err = flow_cfg(flow, &cfg);
    if (!err)
        err = flow_liveness(flow, &live);
    if (!err)
        err = live_walk_init(&w, live);
    if (!err) {
        uint32_t n = walk(cfg, c->funcs[func], &w);
        *most = n > *most ? n : *most;
        live_walk_free(&w);
    }
    flow_drop(flow);
    return err;
}

static bool is_bounded(const struct ptx_func *f)
{
    static const char *const names[] = {".maxnreg", ".maxntid", ".reqntid"};
    for (uint32_t i = 0; i < f->ndirectives; i++)
        for (unsigned n = 0; n < sizeof names / sizeof *names; n++)
            if (str_eq(f->directives[i].name, str_from(names[n])))
                return true;
    return false;
}

static int bound(struct ptx_module *m, struct ptx_func *f, uint32_t registers)
{
    struct ptx_directive *all = ARENA_ARRAY(&m->arena, struct ptx_directive, f->ndirectives + 1);
    char *text = ARENA_ARRAY(&m->arena, char, 12);
    if (!all || !text)
        return -ENOMEM;
    if (f->ndirectives)
        memcpy(all, f->directives, f->ndirectives * sizeof *all);
    all[f->ndirectives] = (struct ptx_directive){.name = STR(".maxnreg"), .args = {text, 0}};
    all[f->ndirectives].args.len = (size_t)snprintf(text, 12, "%u", registers);
    f->directives = all;
    f->ndirectives++;
    return 0;
}

int regbound_add(struct pass_context *c)
{
    uint32_t most = 0;
    int err = 0;
    // Calls are not followed: the bound is that of the most demanding function.
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++)
        err = pressure(c, i, &most);
    // A function too large to analyse most likely needs all registers: no kernel gets a limit.
    if (err == -E2BIG)
        return 0;
    // The compiler uses more registers than there are live values, to load ahead.
    uint32_t registers = (most + most / 4 + 16 + 7) / 8 * 8;
    if (registers < REGBOUND_LEAST)
        registers = REGBOUND_LEAST;
    if (registers > 248)
        return err;
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++)
        if (c->funcs[i]->is_entry && !is_bounded(c->funcs[i]))
            err = bound(c->m, c->funcs[i], registers);
    return err;
}
