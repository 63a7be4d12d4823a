// SPDX-License-Identifier: MIT
// For tests: a function's control flow, liveness and reaching definitions, computed statement by statement
// from the definitions, and the comparison of every analysis with them. It shares no code with what it
// checks.
#ifndef MOAT_FLOW_BRUTE_FUNC_H
#define MOAT_FLOW_BRUTE_FUNC_H

#include <stdio.h>

#include "flow/brute.h"
#include "flow/brute_roots.h"
#include "flow/cfg.h"
#include "flow/dom.h"
#include "flow/live.h"
#include "flow/loops.h"
#include "flow/reach.h"
#include "flow/regs.h"
#include "ptx/ptx.h"

// What a statement does to the register being compared.
enum { BRUTE_READS = 1, BRUTE_WRITES = 2, BRUTE_KILLS = 4 };

struct brute_touch {
    uint32_t stmt, next;  // next: another statement that accesses the same register
    uint8_t does;
};

// The nodes are the statements and the end of the function, f->nstmts. `may_end`: control may end at a
// statement.
struct brute_func {
    const struct ptx_module *m;
    const struct ptx_func *f;
    uint32_t n;
    uint32_t *succ_at, *succ, *pred_at, *pred;
    bool *may_end, *reached;
    // by register number
    uint32_t *first_touch;
    VEC(struct brute_touch) touch;
    VEC(struct graph_edge) edges;
    VEC(uint32_t) used;  // registers
    uint32_t at;         // the statement whose accesses are being recorded
    // scratch, by statement
    uint32_t *mark, *stack, clock;
    uint8_t *does;
    // the result
    char why[400];
    uint64_t budget;  // steps to spend on one kind of comparison; larger ones are sampled
    bool sampled;
};

#define BRUTE_FAIL(b, ...) (snprintf((b)->why, sizeof(b)->why, __VA_ARGS__), false)

// --- the model ---------------------------------------------------------------------------------------------

static inline void brute_edge(struct brute_func *b, uint32_t from, uint32_t to)
{
    if (vec_push(&b->edges, (struct graph_edge){from, to}))
        abort();
}

static inline void brute_jump(struct brute_func *b, uint32_t from, const struct ptx_operand *o)
{
    const struct ptx_sym *sym = o && o->kind == PTX_SYM ? ptx_sym(b->m, o->id) : NULL;
    if (sym && sym->kind == PTX_SYM_LABEL)
        brute_edge(b, from, sym->stmt);
    const struct ptx_targets *list = sym && sym->kind == PTX_SYM_TARGETS ? sym->targets : NULL;
    for (uint32_t i = 0; list && !list->calls && i < list->ntargets; i++)
        brute_edge(b, from, ptx_sym(b->m, list->targets[i])->stmt);
}

static inline bool brute_never_returns(const struct brute_func *b, const struct ptx_stmt *s)
{
    const struct ptx_operand *callee = ptx_operand(s, 1), *proto = ptx_operand(s, 3);
    if (callee->kind == PTX_SYM && ptx_sym(b->m, callee->id)->kind == PTX_SYM_FUNC) {
        const struct ptx_func *f = ptx_sym(b->m, callee->id)->func;
        for (uint32_t i = 0; i < f->ndirectives; i++)
            if (str_eq(f->directives[i].name, STR(".noreturn")))
                return true;
    }
    if (proto && proto->kind == PTX_SYM && ptx_sym(b->m, proto->id)->kind == PTX_SYM_PROTO) {
        struct str text = ptx_sym(b->m, proto->id)->proto->directives;
        for (; text.len; text = str_skip(text, 1))
            if (str_starts(text, STR(".noreturn")))
                return true;
    }
    return false;
}

static inline void brute_control(struct brute_func *b, uint32_t i)
{
    const struct ptx_stmt *s = &b->f->stmts[i];
    bool falls = true;
    if (s->kind == PTX_INSN && s->form->id == PTX_OP_UNKNOWN) {
        for (uint32_t k = 0; k < s->nslots; k++)
            brute_jump(b, i, &s->operands[k]);
    } else if (s->kind == PTX_INSN) {
        unsigned control = s->form->op->control;
        falls = s->guard != PTX_NONE;
        if (control == PTX_BRANCH)
            brute_jump(b, i, ptx_operand(s, 0));
        else if (control == PTX_SWITCH)
            brute_jump(b, i, ptx_operand(s, 1));
        else if (control == PTX_RETURN || control == PTX_EXIT || control == PTX_TRAP ||
                 (control == PTX_CALL && brute_never_returns(b, s)))
            b->may_end[i] = true;
        else
            falls = true;
    }
    if (falls)
        brute_edge(b, i, i + 1);
}

static inline void brute_note(void *ctx, struct ptx_access a)
{
    struct brute_func *b = ctx;
    uint8_t does = (a.reads ? BRUTE_READS : 0) | (a.writes ? BRUTE_WRITES : 0);
    if (a.writes && !a.partial)
        does |= BRUTE_KILLS;
    uint32_t first = b->first_touch[a.reg];
    if (first == PTX_NONE && vec_push(&b->used, a.reg))
        abort();
    if (first != PTX_NONE && b->touch.items[first].stmt == b->at) {
        b->touch.items[first].does |= does;
        return;
    }
    if (vec_push(&b->touch, (struct brute_touch){b->at, first, does}))
        abort();
    b->first_touch[a.reg] = (uint32_t)b->touch.len - 1;
}

// Returns whether a register is declared outside functions.
static inline bool brute_is_shared(const struct brute_func *b, uint32_t reg)
{
    const struct ptx_var *var = ptx_reg_var(b->f, reg);
    for (uint32_t i = 0; i < b->m->nitems; i++)
        if (b->m->items[i].kind == PTX_ITEM_VAR && b->m->items[i].var == var)
            return true;
    return false;
}

static inline void brute_note_returned(struct brute_func *b, size_t nused)
{
    for (uint32_t i = 0; i < b->f->nrets; i++)
        if (b->f->rets[i].space == PTX_SPACE_REG)
            brute_note(b, (struct ptx_access){.reg = b->f->rets[i].first_reg, .reads = true});
    for (size_t i = 0; i < nused; i++)
        if (brute_is_shared(b, b->used.items[i]))
            brute_note(b, (struct ptx_access){.reg = b->used.items[i], .reads = true});
}

static inline void brute_note_stmt(struct brute_func *b, const struct ptx_stmt *s)
{
    if (s->kind != PTX_INSN)
        return;
    if (s->form->id != PTX_OP_UNKNOWN) {
        ptx_stmt_regs(s, brute_note, b);
        return;
    }
    if (s->guard != PTX_NONE)
        brute_note(b, (struct ptx_access){.reg = s->guard, .reads = true});
    for (uint32_t i = 0; i < s->nslots; i++) {
        const struct ptx_operand *o = &s->operands[i];
        if (o->kind == PTX_REG || (o->kind == PTX_ADDR && o->sub == PTX_BASE_REG))
            brute_note(b, (struct ptx_access){o->id, true, true, true});
    }
}

// Records what calls and returns do beyond their operands, in statement order, as a register's list must be.
static inline void brute_note_all(struct brute_func *b)
{
    bool shares = false;
    for (b->at = 0; b->at < b->f->nstmts; b->at++)
        brute_note_stmt(b, &b->f->stmts[b->at]);
    size_t nused = b->used.len;
    for (size_t i = 0; i < nused; i++)
        shares |= brute_is_shared(b, b->used.items[i]);
    if (!shares && !b->f->nrets)
        return;
    for (size_t i = 0; i < nused; i++)
        b->first_touch[b->used.items[i]] = PTX_NONE;
    VEC(uint32_t) used = {0};
    for (size_t i = 0; i < nused; i++)
        if (vec_push(&used, b->used.items[i]))
            abort();
    b->used.len = b->touch.len = 0;
    for (b->at = 0; b->at <= b->f->nstmts; b->at++) {
        const struct ptx_stmt *s = b->at < b->f->nstmts ? &b->f->stmts[b->at] : NULL;
        unsigned control = PTX_RETURN;
        if (s) {
            brute_note_stmt(b, s);
            control = s->kind == PTX_INSN ? s->form->op->control : PTX_FALLS;
        }
        for (size_t i = 0; i < used.len && (control == PTX_CALL || control == PTX_RETURN); i++)
            if (brute_is_shared(b, used.items[i]))
                brute_note(b, (struct ptx_access){used.items[i], true, control == PTX_CALL, true});
        if (control == PTX_RETURN)
            brute_note_returned(b, 0);
    }
    vec_free(&used);
}

static inline void *brute_zeroed(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    if (!p)
        abort();
    return p;
}

static inline void brute_lists(struct brute_func *b, bool forward, uint32_t **at, uint32_t **list)
{
    *at = brute_zeroed(b->n + 1, sizeof **at);
    *list = brute_zeroed(b->edges.len, sizeof **list);
    for (size_t i = 0; i < b->edges.len; i++)
        (*at)[forward ? b->edges.items[i].from : b->edges.items[i].to]++;
    uint32_t sum = 0;
    for (uint32_t v = 0; v <= b->n; v++) {
        uint32_t count = (*at)[v];
        (*at)[v] = sum;
        sum += count;
    }
    for (size_t i = 0; i < b->edges.len; i++) {
        struct graph_edge e = b->edges.items[i];
        (*list)[(*at)[forward ? e.from : e.to]++] = forward ? e.to : e.from;
    }
    memmove(*at + 1, *at, b->n * sizeof **at);
    (*at)[0] = 0;
}

// Marks the nodes that can be reached from `from`, itself included, without going beyond nodes that `stops`
// marks.
static inline void brute_flow(struct brute_func *b, uint32_t from, uint8_t stops)
{
    uint32_t depth = 0;
    if (b->mark[from] == b->clock)
        return;
    b->mark[from] = b->clock;
    b->stack[depth++] = from;
    while (depth) {
        uint32_t v = b->stack[--depth];
        if (b->does[v] & stops)
            continue;
        for (uint32_t i = b->succ_at[v]; i < b->succ_at[v + 1]; i++) {
            if (b->mark[b->succ[i]] == b->clock)
                continue;
            b->mark[b->succ[i]] = b->clock;
            b->stack[depth++] = b->succ[i];
        }
    }
}

static inline void brute_func_init(struct brute_func *b, const struct ptx_module *m, const struct ptx_func *f,
                                   uint64_t budget)
{
    *b = (struct brute_func){.m = m, .f = f, .n = f->nstmts + 1, .budget = budget};
    b->may_end = brute_zeroed(b->n, 1);
    b->reached = brute_zeroed(b->n, 1);
    b->does = brute_zeroed(b->n, 1);
    b->mark = brute_zeroed(b->n, sizeof *b->mark);
    b->stack = brute_zeroed(b->n, sizeof *b->stack);
    b->first_touch = malloc(((size_t)f->nregs + 1) * sizeof *b->first_touch);
    for (uint32_t i = 0; i < f->nregs; i++)
        b->first_touch[i] = PTX_NONE;
    for (uint32_t i = 0; i < f->nstmts; i++)
        brute_control(b, i);
    brute_note_all(b);
    brute_lists(b, true, &b->succ_at, &b->succ);
    brute_lists(b, false, &b->pred_at, &b->pred);
    b->clock = 1;
    brute_flow(b, 0, 0);
    for (uint32_t v = 0; v < b->n; v++)
        b->reached[v] = b->mark[v] == b->clock;
}

static inline void brute_func_free(struct brute_func *b)
{
    free(b->succ_at);
    free(b->succ);
    free(b->pred_at);
    free(b->pred);
    free(b->may_end);
    free(b->reached);
    free(b->does);
    free(b->mark);
    free(b->stack);
    free(b->first_touch);
    vec_free(&b->touch);
    vec_free(&b->edges);
    vec_free(&b->used);
}

// Returns n such that comparing every n-th of `count` things, at `cost` steps each, stays within the budget.
static inline uint32_t brute_stride(struct brute_func *b, uint64_t count, uint64_t cost)
{
    uint64_t total = count * (cost ? cost : 1);
    if (total <= b->budget)
        return 1;
    b->sampled = true;
    return (uint32_t)(total / b->budget + 1);
}

// --- blocks ------------------------------------------------------------------------------------------------

static inline bool brute_has(struct graph_nodes list, uint32_t v)
{
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i] == v)
            return true;
    return false;
}

static inline bool brute_compare_block(struct brute_func *b, const struct cfg *c, uint32_t block)
{
    uint32_t last = c->blocks[block].last - 1, hits = 0;
    struct graph_nodes to = graph_succ(c->graph, block);
    bool ends = b->may_end[last];
    for (uint32_t s = c->blocks[block].first; s < last; s++)
        if (b->may_end[s] || b->succ_at[s + 1] - b->succ_at[s] != 1 || b->succ[b->succ_at[s]] != s + 1)
            return BRUTE_FAIL(b, "block %u goes on over statement %u", block, s);
    for (uint32_t i = b->succ_at[last]; i < b->succ_at[last + 1]; i++) {
        uint32_t s = b->succ[i];
        if (s == b->f->nstmts) {
            ends = true;
            continue;
        }
        if (c->blocks[c->block_of[s]].first != s || !brute_has(to, c->block_of[s]))
            return BRUTE_FAIL(b, "no edge for statement %u to %u", last, s);
        bool again = false;
        for (uint32_t j = b->succ_at[last]; j < i; j++)
            again |= b->succ[j] == s;
        hits += !again;
    }
    if (hits != to.n || ends != c->exits[block])
        return BRUTE_FAIL(b, "block %u has %u edges, not %u; exits %d", block, to.n, hits, c->exits[block]);
    return true;
}

static inline bool brute_compare_cfg(struct brute_func *b, const struct cfg *c)
{
    if (!cfg_valid(c))
        return BRUTE_FAIL(b, "cfg is not valid");
    for (uint32_t i = 0; b->f->nstmts && i < c->nblocks; i++)
        if (!brute_compare_block(b, c, i))
            return false;
    for (uint32_t s = 0; s < b->f->nstmts; s++)
        if (graph_reached(c->graph, c->block_of[s]) != b->reached[s])
            return BRUTE_FAIL(b, "statement %u: reached %d", s, b->reached[s]);
    if (c->falls_off != (b->pred_at[b->n] > b->pred_at[b->n - 1] || !b->f->nstmts))
        return BRUTE_FAIL(b, "falls off the end: %d", c->falls_off);
    return true;
}

// --- dominators and loops ----------------------------------------------------------------------------------

static inline bool brute_compare_dom(struct brute_func *b, const struct cfg *c, const struct dom *d)
{
    const struct graph *g = c->graph;
    bool *seen = brute_zeroed(g->n, 1), good = true;
    uint32_t step = brute_stride(b, g->n, g->n + g->nedges);
    for (uint32_t a = 0; good && a < g->n; a += step) {
        brute_forward(g, 0, a, seen);
        for (uint32_t v = 0; good && v < g->n; v++) {
            bool want = a == v || (graph_reached(g, a) && graph_reached(g, v) && !seen[v]);
            if (dom_dominates(d, a, v) != want)
                good = BRUTE_FAIL(b, "block %u dominates %u: must be %d", a, v, want);
        }
    }
    free(seen);
    return good && (dom_valid(d, g) || BRUTE_FAIL(b, "dominators are not valid"));
}

static inline bool brute_compare_post(struct brute_func *b, const struct cfg *c, const struct dom *d)
{
    const struct graph *g = c->graph;
    bool *seen = brute_zeroed(g->n, 1), *ends = brute_zeroed(g->n, 1), good = true;
    bool *escapes = brute_zeroed(g->n, 1);
    uint32_t step = brute_stride(b, g->n, g->n + g->nedges);
    brute_exits(g, c->exits, ends);
    for (uint32_t x = 0; good && x < g->n; x += step) {
        // Finds the nodes that reach an end without x: walks backwards from all ends at once.
        uint32_t depth = 0, *stack = brute_zeroed(g->n, sizeof *stack);
        memset(escapes, 0, g->n);
        for (uint32_t v = 0; v < g->n; v++)
            if (ends[v] && v != x)
                escapes[v] = true, stack[depth++] = v;
        while (depth) {
            struct graph_nodes from = graph_pred(g, stack[--depth]);
            for (uint32_t i = 0; i < from.n; i++)
                if (from.at[i] != x && !escapes[from.at[i]])
                    escapes[from.at[i]] = true, stack[depth++] = from.at[i];
        }
        free(stack);
        for (uint32_t v = 0; good && v < g->n; v++)
            if (dom_dominates(d, x, v) != !escapes[v])
                good = BRUTE_FAIL(b, "block %u post-dominates %u: must be %d", x, v, !escapes[v]);
    }
    free(escapes);
    free(seen);
    free(ends);
    return good;
}

static inline bool brute_compare_loop(struct brute_func *b, const struct cfg *c, const struct loops *l,
                                      uint32_t i)
{
    const struct graph *g = c->graph;
    const struct loop *at = &l->loops[i];
    bool *seen = brute_zeroed(g->n, 1), *body = brute_zeroed(g->n, 1), good = true;
    body[at->header] = true;
    for (uint32_t j = 0; j < at->nlatches; j++) {
        brute_backward(g, l->latches[at->first_latch + j], at->header, seen);
        for (uint32_t v = 0; v < g->n; v++)
            body[v] |= seen[v] && graph_reached(g, v);
    }
    for (uint32_t v = 0; good && v < g->n; v++)
        if (body[v] != loops_contains(l, i, v))
            good = BRUTE_FAIL(b, "loop at block %u contains %u: must be %d", at->header, v, body[v]);
    free(seen);
    free(body);
    return good;
}

static inline bool brute_compare_loops(struct brute_func *b, const struct cfg *c, const struct dom *d,
                                       const struct loops *l)
{
    const struct graph *g = c->graph;
    uint32_t latches = 0, step;
    if (!loops_valid(l, g, d))
        return BRUTE_FAIL(b, "loops are not valid");
    for (uint32_t t = 0; t < g->n; t++) {
        struct graph_nodes to = graph_succ(g, t);
        for (uint32_t i = 0; i < to.n; i++)
            latches += graph_reached(g, t) && dom_dominates(d, to.at[i], t);
    }
    for (uint32_t i = 0; i < l->nloops; i++)
        latches -= l->loops[i].nlatches;
    if (latches)
        return BRUTE_FAIL(b, "%d back edges are in no loop", (int)latches);
    step = brute_stride(b, l->nloops, g->n + g->nedges);
    for (uint32_t i = 0; i < l->nloops; i += step)
        if (!brute_compare_loop(b, c, l, i))
            return false;
    bool *seen = brute_zeroed(g->n, 1), good = true;
    step = brute_stride(b, g->n, g->n + g->nedges);
    for (uint32_t v = 0; good && v < g->n; v += step) {
        bool repeats = false;
        struct graph_nodes to = graph_succ(g, v);
        for (uint32_t i = 0; graph_reached(g, v) && i < to.n && !repeats; i++) {
            brute_forward(g, to.at[i], GRAPH_NONE, seen);
            repeats = seen[v];
        }
        if (repeats != loops_repeats(l, v))
            good = BRUTE_FAIL(b, "block %u runs repeatedly: must be %d", v, repeats);
    }
    free(seen);
    return good;
}

// --- registers ---------------------------------------------------------------------------------------------

static inline void brute_set_does(struct brute_func *b, uint32_t reg, bool on)
{
    for (uint32_t t = b->first_touch[reg]; t != PTX_NONE; t = b->touch.items[t].next)
        b->does[b->touch.items[t].stmt] = on ? b->touch.items[t].does : 0;
}

static inline bool brute_compare_regs(struct brute_func *b, const struct regs *r)
{
    if (!regs_valid(r))
        return BRUTE_FAIL(b, "regs are not valid");
    uint32_t nused = 0, naccess = 0;
    for (size_t i = 0; i < b->used.len; i++) {
        uint32_t reg = b->used.items[i], index = regs_index(r, reg);
        if (index == REGS_NONE)
            return BRUTE_FAIL(b, "register %u is not used", reg);
        nused++;
        for (uint32_t t = b->first_touch[reg]; t != PTX_NONE; t = b->touch.items[t].next) {
            const struct brute_touch *at = &b->touch.items[t];
            struct regs_list list = at->stmt < b->f->nstmts ? regs_at(r, at->stmt) : (struct regs_list){0};
            bool found = at->stmt == b->f->nstmts;
            naccess += !found;
            for (uint32_t k = 0; k < list.n; k++) {
                const struct regs_access *a = &list.at[k];
                uint8_t does = (a->reads ? BRUTE_READS : 0) | (a->writes ? BRUTE_WRITES : 0) |
                               (a->writes && !a->partial ? BRUTE_KILLS : 0);
                found |= a->reg == index && does == at->does;
            }
            if (!found)
                return BRUTE_FAIL(b, "statement %u, register %u: access must be %d", at->stmt, reg, at->does);
        }
    }
    if (nused != r->n || naccess != r->access_at[b->f->nstmts])
        return BRUTE_FAIL(b, "must be %u registers, %u accesses", nused, naccess);
    return true;
}

// Marks the statements before which the register is live.
static inline void brute_live(struct brute_func *b, uint32_t reg)
{
    uint32_t depth = 0;
    b->clock++;
    for (uint32_t t = b->first_touch[reg]; t != PTX_NONE; t = b->touch.items[t].next) {
        const struct brute_touch *at = &b->touch.items[t];
        if (!(at->does & BRUTE_READS) || b->mark[at->stmt] == b->clock)
            continue;
        b->mark[at->stmt] = b->clock;
        b->stack[depth++] = at->stmt;
    }
    while (depth) {
        uint32_t v = b->stack[--depth];
        for (uint32_t i = b->pred_at[v]; i < b->pred_at[v + 1]; i++) {
            uint32_t p = b->pred[i];
            if (b->mark[p] == b->clock || (b->does[p] & BRUTE_KILLS))
                continue;
            b->mark[p] = b->clock;
            b->stack[depth++] = p;
        }
    }
}

static inline uint64_t brute_hash(uint32_t reg)
{
    return (reg + 1) * 0x9E3779B97F4A7C15ULL ^ (uint64_t)reg << 7;
}

static inline bool brute_compare_live_reg(struct brute_func *b, const struct live *l, uint32_t reg,
                                          uint64_t *sums)
{
    const struct cfg *c = l->cfg;
    uint32_t index = regs_index(l->regs, reg);
    brute_set_does(b, reg, true);
    brute_live(b, reg);
    brute_set_does(b, reg, false);
    for (uint32_t s = 0; s < b->f->nstmts; s++)
        if (b->mark[s] == b->clock)
            sums[s] += brute_hash(index);
    for (uint32_t i = 0; i < c->nblocks; i++) {
        uint32_t first = c->blocks[i].first, last = c->blocks[i].last - 1;
        bool in = b->mark[first] == b->clock, out = false;
        for (uint32_t k = b->succ_at[last]; k < b->succ_at[last + 1]; k++)
            out |= b->mark[b->succ[k]] == b->clock;
        if (live_list_has(live_in(l, i), index) != in || live_list_has(live_out(l, i), index) != out)
            return BRUTE_FAIL(b, "block %u, register %u: live must be %d, %d", i, reg, in, out);
    }
    return true;
}

// Compares a walk over all blocks; sums[] are over the registers that were compared.
static inline bool brute_compare_walk(struct brute_func *b, const struct live *l, const uint64_t *sums,
                                      const bool *compared)
{
    struct live_walk w;
    bool good = true;
    if (live_walk_init(&w, l))
        abort();
    for (uint32_t i = 0; good && i < l->cfg->nblocks; i++) {
        live_walk_block(&w, i);
        while (good && w.stmt > l->cfg->blocks[i].first) {
            uint64_t sum = 0;
            live_walk_back(&w);
            for (uint32_t k = 0; k < w.n; k++)
                sum += compared[w.item[k]] ? brute_hash(w.item[k]) : 0;
            if (sum != sums[w.stmt])
                good = BRUTE_FAIL(b, "walking back to statement %u gives other live registers", w.stmt);
        }
    }
    live_walk_free(&w);
    return good;
}

static inline bool brute_compare_live(struct brute_func *b, const struct live *l)
{
    if (!b->f->nstmts)
        return true;
    if (!live_valid(l))
        return BRUTE_FAIL(b, "liveness is not valid");
    uint64_t *sums = brute_zeroed(b->n, sizeof *sums);
    bool *compared = brute_zeroed(l->regs->n, 1), good = true;
    uint32_t step = brute_stride(b, b->used.len, b->n);
    for (size_t i = 0; good && i < b->used.len; i += step) {
        good = brute_compare_live_reg(b, l, b->used.items[i], sums);
        compared[regs_index(l->regs, b->used.items[i])] = true;
    }
    good = good && brute_compare_walk(b, l, sums, compared);
    free(sums);
    free(compared);
    return good;
}

// Compares the reads that one definition, or the entry (stmt PTX_NONE), reaches.
static inline bool brute_compare_def(struct brute_func *b, const struct reach *r, uint32_t reg, uint32_t stmt,
                                     struct reach_set *set)
{
    uint32_t index = regs_index(r->regs, reg);
    b->clock++;
    if (stmt == PTX_NONE)
        brute_flow(b, 0, BRUTE_KILLS);
    else
        for (uint32_t i = b->succ_at[stmt]; b->reached[stmt] && i < b->succ_at[stmt + 1]; i++)
            brute_flow(b, b->succ[i], BRUTE_KILLS);
    for (uint32_t t = b->first_touch[reg]; t != PTX_NONE; t = b->touch.items[t].next) {
        const struct brute_touch *at = &b->touch.items[t];
        if (!(at->does & BRUTE_READS) || at->stmt == b->f->nstmts)
            continue;
        uint32_t value = reach_read(r, at->stmt, index);
        bool found = false;
        if ((value == REACH_NONE) == b->reached[at->stmt])
            return BRUTE_FAIL(b, "statement %u, register %u: value %d", at->stmt, reg, (int)value);
        if (value == REACH_NONE)
            continue;
        if (reach_sources(r, value, set))
            abort();
        for (size_t k = 0; k < set->items.len; k++) {
            const struct reach_value *v = &r->value.items[set->items.items[k]];
            if (v->kind == REACH_JOIN || v->reg != index)
                return BRUTE_FAIL(b, "statement %u, register %u: not a source", at->stmt, reg);
            found |= v->kind == REACH_DEF ? v->place == stmt : stmt == PTX_NONE;
        }
        if (found != (b->mark[at->stmt] == b->clock))
            return BRUTE_FAIL(b, "statement %u, register %u: reached by statement %d: must be %d", at->stmt,
                              reg, (int)stmt, !found);
    }
    return true;
}

static inline bool brute_compare_reach(struct brute_func *b, const struct reach *r)
{
    if (!b->f->nstmts)
        return true;
    if (!reach_valid(r))
        return BRUTE_FAIL(b, "reaching definitions are not valid");
    struct reach_set set = {0};
    uint32_t step = brute_stride(b, b->used.len, (uint64_t)b->n * 3);
    bool good = true;
    for (size_t i = 0; good && i < b->used.len; i += step) {
        uint32_t reg = b->used.items[i];
        brute_set_does(b, reg, true);
        good = brute_compare_def(b, r, reg, PTX_NONE, &set);
        for (uint32_t t = b->first_touch[reg]; good && t != PTX_NONE; t = b->touch.items[t].next)
            if (b->touch.items[t].does & BRUTE_WRITES && b->touch.items[t].stmt < b->f->nstmts)
                good = brute_compare_def(b, r, reg, b->touch.items[t].stmt, &set);
        brute_set_does(b, reg, false);
    }
    reach_set_free(&set);
    return good;
}

// --- roots -------------------------------------------------------------------------------------------------

static inline bool brute_compare_roots(struct brute_func *b, const struct roots *r)
{
    enum { WALKS = 20, BLOCKS = 200 };
    uint64_t cost = (uint64_t)r->reach->value.len * BLOCKS + 1;
    uint64_t walks = b->budget / cost < WALKS ? b->budget / cost : WALKS;
    if (!roots_valid(r))
        return BRUTE_FAIL(b, "roots are not valid");
    uint32_t wrong = brute_wrong_root(r, 1, (unsigned)walks, BLOCKS);
    return wrong == REACH_NONE || BRUTE_FAIL(b, "value %u has a wrong root", wrong);
}

// --- everything --------------------------------------------------------------------------------------------

struct brute_analyses {
    struct cfg *cfg;
    struct dom *dom, *post;
    struct loops *loops;
    struct regs *regs;
    struct live *live;
    struct reach *reach;
    struct roots *roots;
};

static inline int brute_analyse(const struct ptx_module *m, const struct ptx_func *f,
                                struct brute_analyses *a)
{
    *a = (struct brute_analyses){0};
    int err = cfg_build(m, f, &a->cfg);
    err = err ? err : dom_build(a->cfg->graph, &a->dom);
    err = err ? err : dom_build_post(a->cfg->graph, a->cfg->exits, &a->post);
    err = err ? err : loops_build(a->cfg->graph, a->dom, &a->loops);
    err = err ? err : regs_build(f, 0, &a->regs);
    err = err ? err : live_build(a->cfg, a->regs, 0, &a->live);
    err = err ? err : reach_build(a->cfg, a->dom, a->regs, 0, &a->reach);
    err = err ? err : roots_build(m, f, a->reach, a->dom, &a->roots);
    return err;
}

static inline void brute_analyses_free(struct brute_analyses *a)
{
    roots_free(a->roots);
    reach_free(a->reach);
    live_free(a->live);
    regs_free(a->regs);
    loops_free(a->loops);
    dom_free(a->post);
    dom_free(a->dom);
    cfg_free(a->cfg);
}

// Returns true if all analyses agree with the definitions; else b->why says what does not. The caller frees
// b.
static inline bool brute_compare(struct brute_func *b, const struct ptx_module *m, const struct ptx_func *f,
                                 uint64_t budget)
{
    struct brute_analyses a;
    brute_func_init(b, m, f, budget);
    int err = brute_analyse(m, f, &a);
    bool good = !err || BRUTE_FAIL(b, "analysis failed: %s", strerror(-err));
    good = good && brute_compare_cfg(b, a.cfg);
    good = good && brute_compare_dom(b, a.cfg, a.dom);
    good = good && brute_compare_post(b, a.cfg, a.post);
    good = good && brute_compare_loops(b, a.cfg, a.dom, a.loops);
    good = good && brute_compare_regs(b, a.regs);
    good = good && brute_compare_live(b, a.live);
    good = good && brute_compare_reach(b, a.reach);
    good = good && brute_compare_roots(b, a.roots);
    brute_analyses_free(&a);
    return good;
}

#endif
