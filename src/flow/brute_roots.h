// SPDX-License-Identifier: MIT
// For tests: what roots mean, checked on random walks through a function. Along a walk each register has a
// tag: the root that its content was in fact computed from, and which execution of it. Whenever a register
// is read, the root that the analysis gives its value must be the tag's, in its latest execution.
#ifndef MOAT_FLOW_BRUTE_ROOTS_H
#define MOAT_FLOW_BRUTE_ROOTS_H

#include <stdlib.h>

#include "flow/brute.h"
#include "flow/roots_rule.h"

struct brute_tag {
    struct roots_of of;  // NONE: undefined; OWN: no root
    uint32_t execution;
};

struct brute_walk {
    const struct roots *roots;
    const struct reach *reach;
    struct brute_random random;
    struct brute_tag *tag;  // by register
    uint32_t *executed;     // by value
    uint32_t wrong;         // value, REACH_NONE
};

static inline struct brute_tag brute_tag_of(const struct brute_walk *w, struct roots_of of)
{
    bool counted = of.kind == ROOTS_VALUE || of.kind == ROOTS_WEB;
    return (struct brute_tag){of, counted ? w->executed[of.id] : 0};
}

static inline bool brute_has_root(struct roots_of of)
{
    return of.kind == ROOTS_PARAM || of.kind == ROOTS_VARIABLE || of.kind == ROOTS_GENERIC ||
           of.kind == ROOTS_VALUE || of.kind == ROOTS_WEB;
}

static inline bool brute_tag_fits(const struct brute_walk *w, uint32_t value, struct brute_tag tag)
{
    struct brute_tag is = brute_tag_of(w, w->roots->of[value]);
    if (!brute_has_root(is.of) || tag.of.kind == ROOTS_NONE)
        return true;
    return is.of.kind == tag.of.kind && is.of.id == tag.of.id && is.execution == tag.execution;
}

// Gives a register the tag of a new value, or a new one if the value is its own root.
static inline void brute_define(struct brute_walk *w, uint32_t value, struct brute_tag tag)
{
    struct roots_of of = w->roots->of[value];
    if (of.kind == ROOTS_WEB && of.id == value) {
        w->executed[value]++;
        tag = brute_tag_of(w, of);
    }
    if (!brute_tag_fits(w, value, tag))
        w->wrong = value;
    w->tag[w->reach->value.items[value].reg] = tag;
}

static inline struct brute_tag brute_source(const struct brute_walk *w, const struct roots_source *x)
{
    static const struct brute_tag none = {{ROOTS_OWN, 0}, 0};
    if (x->value == REACH_NONE)
        return x->of.kind == ROOTS_NUMBER ? none : brute_tag_of(w, x->of);
    return w->tag[w->reach->value.items[x->value].reg];
}

// The halves of a register carry its tag, so that a register packed from halves has theirs.
static inline bool brute_halves(const struct brute_walk *w, const struct ptx_stmt *s, struct brute_tag *tag)
{
    const struct ptx_operand *to = ptx_operand(s, 0), *from = ptx_operand(s, 1);
    if (s->form->id != PTX_OP_MOV || !to || !from || (to->kind != PTX_VEC && from->kind != PTX_VEC))
        return false;
    from += from->kind == PTX_VEC;
    if (from->kind == PTX_REG)
        *tag = w->tag[regs_index(w->reach->regs, from->id)];
    return from->kind == PTX_REG;
}

static inline struct brute_tag brute_result(struct brute_walk *w, uint32_t value)
{
    const struct roots_rule *rule = &w->roots->rules[value];
    const struct ptx_stmt *s = &w->roots->f->stmts[w->reach->value.items[value].place];
    struct brute_tag a = brute_source(w, &rule->a), b = brute_source(w, &rule->b), tag = {{ROOTS_OWN, 0}, 0};
    switch ((enum roots_how)rule->how) {
    case ROOTS_FIXED:
        if (!brute_halves(w, s, &tag))
            tag = brute_tag_of(w, rule->a.of);
        break;
    case ROOTS_ITSELF:
        w->executed[value]++;
        tag = brute_tag_of(w, (struct roots_of){ROOTS_VALUE, value});
        break;
    case ROOTS_COPY:
        if (!brute_halves(w, s, &tag))
            tag = a;
        break;
    case ROOTS_CONVERT:
        tag = brute_tag_of(w, roots_convert(w->roots->m, a.of, (enum ptx_space)rule->space));
        break;
    case ROOTS_PICK: tag = brute_below(&w->random, 2) ? a : b; break;
    case ROOTS_SUM:
    case ROOTS_DIFF:
        tag = brute_has_root(a.of) && brute_tag_fits(w, value, a) ? a : b;
        if (rule->how == ROOTS_DIFF || a.of.kind == ROOTS_NONE)
            tag = a;
        else if (b.of.kind == ROOTS_NONE)
            tag = b;
        break;
    }
    return tag;
}

static inline void brute_walk_stmt(struct brute_walk *w, uint32_t stmt)
{
    const struct regs *regs = w->reach->regs;
    struct brute_tag made[16];
    bool runs = brute_below(&w->random, 2);
    uint32_t first = regs->access_at[stmt], n = regs->access_at[stmt + 1] - first;
    for (uint32_t a = 0; a < n; a++)
        if (w->reach->read[first + a] != REACH_NONE &&
            !brute_tag_fits(w, w->reach->read[first + a], w->tag[regs->access[first + a].reg]))
            w->wrong = w->reach->read[first + a];
    for (uint32_t a = 0; a < n && a < 16; a++) {
        uint32_t v = w->reach->written[first + a];
        if (v == REACH_NONE)
            continue;
        made[a] = w->reach->value.items[v].partial && !runs ? w->tag[regs->access[first + a].reg]
                                                            : brute_result(w, v);
    }
    for (uint32_t a = 0; a < n && a < 16; a++)
        if (w->reach->written[first + a] != REACH_NONE)
            brute_define(w, w->reach->written[first + a], made[a]);
}

static inline void brute_enter(struct brute_walk *w, uint32_t block)
{
    for (uint32_t v = w->reach->ndefs; v < w->reach->value.len; v++)
        if (w->reach->value.items[v].kind == REACH_JOIN && w->reach->value.items[v].place == block)
            brute_define(w, v, w->tag[w->reach->value.items[v].reg]);
}

// Walks for some blocks. Returns a value with a wrong root, REACH_NONE if there was none.
static inline uint32_t brute_walk_blocks(struct brute_walk *w, unsigned blocks)
{
    const struct cfg *c = w->reach->cfg;
    uint32_t b = c->graph->entry;
    memset(w->tag, 0, (w->reach->regs->n + 1u) * sizeof *w->tag);
    for (uint32_t v = w->reach->ndefs; v < w->reach->value.len; v++)
        if (w->reach->value.items[v].kind == REACH_ENTRY && w->roots->of[v].kind == ROOTS_VALUE)
            w->tag[w->reach->value.items[v].reg] = brute_tag_of(w, w->roots->of[v]);
    for (unsigned i = 0; i < blocks && w->wrong == REACH_NONE; i++) {
        brute_enter(w, b);
        for (uint32_t s = c->blocks[b].first; s < c->blocks[b].last && w->wrong == REACH_NONE; s++)
            if (w->roots->f->stmts[s].kind == PTX_INSN)
                brute_walk_stmt(w, s);
        struct graph_nodes next = graph_succ(c->graph, b);
        if (!next.n)
            break;
        b = next.at[brute_below(&w->random, next.n)];
    }
    return w->wrong;
}

// Compares roots with what walks find. Returns a value with a wrong root, REACH_NONE if there is none.
static inline uint32_t brute_wrong_root(const struct roots *roots, uint64_t seed, unsigned walks,
                                        unsigned blocks)
{
    const struct reach *reach = roots->reach;
    struct brute_walk w = {.roots = roots, .reach = reach, .random = {seed}, .wrong = REACH_NONE};
    if (reach->cfg->uncertain)
        return REACH_NONE;
    w.tag = calloc(reach->regs->n + 1u, sizeof *w.tag);
    w.executed = calloc(reach->value.len + 1, sizeof *w.executed);
    if (!w.tag || !w.executed)
        abort();
    for (unsigned i = 0; i < walks && w.wrong == REACH_NONE; i++)
        brute_walk_blocks(&w, blocks);
    free(w.tag);
    free(w.executed);
    return w.wrong;
}

#endif
