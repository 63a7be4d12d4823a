// SPDX-License-Identifier: MIT
// The solution has three steps: which values are numbers; which values are used as addresses; then roots, in
// rounds over the values in reverse postorder until nothing changes. A JOIN whose inputs disagree is its own
// root, and may stop being one in a later round: an input that leads back to the JOIN itself says nothing.
#include "flow/roots.h"

#include <assert.h>

#include "flow/build.h"
#include "flow/roots_rule.h"

enum { PARAMS = 4096 };     // pointers that a kernel's parameters have room for
enum { MOST_ROUNDS = 24 };  // after these, what still changes has no root

const char *const roots_kind_names[ROOTS_KINDS] = {
    [ROOTS_NONE] = "none",   [ROOTS_NUMBER] = "number",     [ROOTS_OTHER] = "other",
    [ROOTS_PARAM] = "param", [ROOTS_VARIABLE] = "variable", [ROOTS_GENERIC] = "generic",
    [ROOTS_VALUE] = "value", [ROOTS_WEB] = "web",           [ROOTS_OWN] = "own"};

struct input {
    const struct ptx_module *m;
    const struct ptx_func *f;
    const struct reach *reach;
    const struct dom *dom;
};

struct solving {
    struct roots *r;
    const struct reach *reach;
    const struct dom *dom;
    struct roots_rule *rule;  // by DEF
    bool *number, *factor;    // by value
    bool *relative;           // by value: computed from the difference of two that may be pointers
    uint32_t nvalues;
    uint32_t *order;  // values in reverse postorder of their places; ENTRYs first
    uint32_t norder;
    VEC(uint32_t) work;
    bool *param;  // by offset / 8: a load of that parameter is used as an address
};

static const struct reach_value *value_at(const struct solving *s, uint32_t v)
{
    return &s->reach->value.items[v];
}

// --- order -------------------------------------------------------------------------------------------------

static void put_block(struct solving *s, const uint32_t *join_at, const uint32_t *joins, uint32_t b)
{
    const struct regs *regs = s->reach->regs;
    for (uint32_t k = join_at[b]; k < join_at[b + 1]; k++)
        s->order[s->norder++] = joins[k];
    for (uint32_t i = s->reach->cfg->blocks[b].first; i < s->reach->cfg->blocks[b].last; i++)
        for (uint32_t a = regs->access_at[i]; a < regs->access_at[i + 1]; a++)
            if (s->reach->written[a] != REACH_NONE)
                s->order[s->norder++] = s->reach->written[a];
}

static void make_order(struct solving *s, struct arena *scratch)
{
    const struct graph *g = s->reach->cfg->graph;
    uint32_t *join_at = ARENA_ARRAY(scratch, uint32_t, g->n + 2u);
    uint32_t *joins = ARENA_ARRAY(scratch, uint32_t, s->nvalues + 1u);
    s->order = ARENA_ARRAY(scratch, uint32_t, s->nvalues + 1u);
    memset(join_at, 0, (g->n + 2u) * sizeof *join_at);
    for (uint32_t v = s->reach->ndefs; v < s->nvalues; v++) {
        if (value_at(s, v)->kind == REACH_JOIN)
            join_at[value_at(s, v)->place + 2]++;
        else
            s->order[s->norder++] = v;
    }
    for (uint32_t b = 2; b < g->n + 2u; b++)
        join_at[b] += join_at[b - 1];
    for (uint32_t v = s->reach->ndefs; v < s->nvalues; v++)
        if (value_at(s, v)->kind == REACH_JOIN)
            joins[join_at[value_at(s, v)->place + 1]++] = v;
    for (uint32_t k = 0; k < g->nreached; k++)
        put_block(s, join_at, joins, g->order[k]);
}

// --- numbers -----------------------------------------------------------------------------------------------

static bool source_is_number(const struct solving *s, const struct roots_source *x)
{
    return x->value == REACH_NONE ? x->of.kind == ROOTS_NUMBER : s->number[x->value];
}

static bool inputs_are_numbers(const struct solving *s, uint32_t v)
{
    struct reach_list in = reach_inputs(s->reach, v);
    for (uint32_t i = 0; i < in.n; i++)
        if (in.at[i] != REACH_NONE && !s->number[in.at[i]])
            return false;
    return true;
}

static bool rule_is_number(const struct solving *s, const struct roots_rule *rule)
{
    switch ((enum roots_how)rule->how) {
    case ROOTS_FIXED: return rule->a.of.kind == ROOTS_NUMBER;
    case ROOTS_ITSELF:
    case ROOTS_CONVERT: return false;
    case ROOTS_COPY: return source_is_number(s, &rule->a);
    case ROOTS_DIFF: return source_is_number(s, &rule->a);
    case ROOTS_SUM:
    case ROOTS_PICK: break;
    }
    return source_is_number(s, &rule->a) && source_is_number(s, &rule->b);
}

static bool is_argument(const struct solving *s, uint32_t v)
{
    const struct ptx_func *f = s->r->f;
    const struct ptx_var *var = ptx_reg_var(f, s->reach->regs->reg[value_at(s, v)->reg]);
    return f->nparams && var >= f->params && var < f->params + f->nparams &&
           ptx_type_bits((enum ptx_type)var->type) == 64;
}

static bool is_number(const struct solving *s, uint32_t v)
{
    switch ((enum reach_kind)value_at(s, v)->kind) {
    case REACH_ENTRY: return !is_argument(s, v);
    case REACH_JOIN: return inputs_are_numbers(s, v);
    case REACH_DEF: break;
    }
    return rule_is_number(s, &s->rule[v]) && inputs_are_numbers(s, v);
}

// Starts with everything a number; what is found to be none stays so.
static void find_numbers(struct solving *s)
{
    memset(s->number, true, s->nvalues);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < s->norder; k++) {
            uint32_t v = s->order[k];
            if (s->number[v] && !is_number(s, v)) {
                s->number[v] = false;
                again = true;
            }
        }
    }
}

// --- addresses ---------------------------------------------------------------------------------------------

// Marks a value as used as an address. The list has room: each value is entered once.
static void mark(struct solving *s, uint32_t v)
{
    if (v == REACH_NONE || s->r->address[v] || s->number[v])
        return;
    s->r->address[v] = true;
    s->work.items[s->work.len++] = v;
}

static void mark_rule(struct solving *s, uint32_t v)
{
    const struct roots_rule *rule = &s->rule[v];
    bool a = source_is_number(s, &rule->a), b = source_is_number(s, &rule->b);
    switch ((enum roots_how)rule->how) {
    case ROOTS_COPY:
    case ROOTS_CONVERT: mark(s, rule->a.value); break;
    case ROOTS_DIFF:
        if (b)
            mark(s, rule->a.value);
        break;
    case ROOTS_SUM:
        if (a || b)
            mark(s, a ? rule->b.value : rule->a.value);
        break;
    case ROOTS_PICK:
        mark(s, rule->a.value);
        mark(s, rule->b.value);
        break;
    case ROOTS_FIXED:
        if (rule->a.of.kind == ROOTS_PARAM && rule->a.of.id / 8 < PARAMS)
            s->param[rule->a.of.id / 8] = true;
        break;
    case ROOTS_ITSELF: break;
    }
}

static void find_addresses(struct solving *s)
{
    const struct ptx_func *f = s->r->f;
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *stmt = &f->stmts[i];
        struct ptx_mem mem[PTX_MAX_MEM];
        unsigned n = ptx_stmt_mem(f, stmt, mem);
        for (unsigned k = 0; k < n; k++)
            if (mem[k].addr->kind == PTX_ADDR && mem[k].addr->sub == PTX_BASE_REG)
                mark(s, reach_read(s->reach, i, regs_index(s->reach->regs, mem[k].addr->id)));
    }
    for (uint32_t v = 0; v < s->reach->ndefs; v++)
        if (s->rule[v].pointer)
            mark(s, v);
    while (s->work.len) {
        uint32_t v = s->work.items[--s->work.len];
        struct reach_list in = reach_inputs(s->reach, v);
        for (uint32_t i = 0; i < in.n; i++)
            mark(s, in.at[i]);
        if (value_at(s, v)->kind == REACH_DEF)
            mark_rule(s, v);
    }
}

// --- roots -------------------------------------------------------------------------------------------------

static struct roots_of of_source(const struct solving *s, const struct roots_source *x)
{
    return x->value == REACH_NONE ? x->of : s->r->of[x->value];
}

// Whether a source is known to be a pointer: it, or the value that is its root, is used as an address. A
// parameter may be loaded by several DEFs; one that is used so is enough.
static bool is_pointer(const struct solving *s, const struct roots_source *x)
{
    struct roots_of of = of_source(s, x);
    if (of.kind == ROOTS_VARIABLE || of.kind == ROOTS_GENERIC || of.kind == ROOTS_OTHER)
        return true;
    if (x->value != REACH_NONE && s->r->address[x->value])
        return true;
    if (of.kind == ROOTS_PARAM)
        return of.id / 8 < PARAMS && s->param[of.id / 8];
    return (of.kind == ROOTS_VALUE || of.kind == ROOTS_WEB) && s->r->address[of.id];
}

static bool is_factor(const struct solving *s, const struct roots_source *x)
{
    struct roots_of of = of_source(s, x);
    bool value = of.kind == ROOTS_VALUE || of.kind == ROOTS_WEB;
    return (x->value != REACH_NONE && s->factor[x->value]) || (value && s->factor[of.id]);
}

static const struct roots_of none = {ROOTS_NONE, 0}, own = {ROOTS_OWN, 0}, number = {ROOTS_NUMBER, 0};

static struct roots_of sum(const struct solving *s, uint32_t v)
{
    const struct roots_rule *rule = &s->rule[v];
    const struct roots_source *a = &rule->a, *b = &rule->b;
    struct roots_of x = of_source(s, a), y = of_source(s, b);
    bool diff = rule->how == ROOTS_DIFF;
    if (s->relative[v])
        return own;
    if (source_is_number(s, a))
        return diff || source_is_number(s, b) ? number : y;
    if (source_is_number(s, b))
        return x;
    if (x.kind == ROOTS_NONE || y.kind == ROOTS_NONE)  // not known yet, or undefined
        return none;
    if (x.kind == ROOTS_OWN || y.kind == ROOTS_OWN)
        return own;
    bool p = is_pointer(s, a), q = is_pointer(s, b);
    if (p != q)
        return p ? x : diff ? own : y;
    if (p || diff)
        return own;
    if (is_factor(s, a) == is_factor(s, b))
        return (struct roots_of){ROOTS_WEB, v};
    return is_factor(s, a) ? y : x;
}

static bool equal(struct roots_of a, struct roots_of b)
{
    return a.kind == b.kind && a.id == b.id;
}

// Merges what comes in with what is there; `self` is the root that stands for the merge.
static struct roots_of merge(struct roots_of a, struct roots_of b, struct roots_of self)
{
    if (a.kind == ROOTS_NONE || equal(a, self))
        return b;
    if (b.kind == ROOTS_NONE || equal(b, self) || equal(a, b))
        return a;
    return a.kind == ROOTS_OWN || b.kind == ROOTS_OWN ? own : (struct roots_of){ROOTS_WEB, UINT32_MAX};
}

static struct roots_of resolve(struct roots_of merged, struct roots_of self)
{
    return merged.kind == ROOTS_WEB && merged.id == UINT32_MAX ? self : merged;
}

static struct roots_of by_rule(const struct solving *s, uint32_t v)
{
    const struct roots_rule *rule = &s->rule[v];
    struct roots_of self = {ROOTS_WEB, v};
    switch ((enum roots_how)rule->how) {
    case ROOTS_FIXED: return rule->a.of;
    case ROOTS_ITSELF: return (struct roots_of){ROOTS_VALUE, v};
    case ROOTS_COPY: return of_source(s, &rule->a);
    case ROOTS_CONVERT: return roots_convert(s->r->m, of_source(s, &rule->a), (enum ptx_space)rule->space);
    case ROOTS_PICK: return resolve(merge(of_source(s, &rule->a), of_source(s, &rule->b), self), self);
    case ROOTS_SUM:
    case ROOTS_DIFF: break;
    }
    return sum(s, v);
}

// Whether the root at the start of a block is that of the root's last execution.
static bool is_current(const struct solving *s, struct roots_of root, uint32_t block)
{
    if (root.kind != ROOTS_VALUE && root.kind != ROOTS_WEB)
        return true;
    const struct reach_value *v = value_at(s, root.id);
    if (v->kind == REACH_ENTRY)
        return true;
    uint32_t at = v->kind == REACH_JOIN ? v->place : s->reach->cfg->block_of[v->place];
    return dom_strictly(s->dom, at, block);
}

static struct roots_of of_join(const struct solving *s, uint32_t v)
{
    struct reach_list in = reach_inputs(s->reach, v);
    struct roots_of self = {ROOTS_WEB, v}, merged = none;
    bool mixed = false;
    for (uint32_t i = 0; i < in.n; i++) {
        if (in.at[i] == REACH_NONE)
            continue;
        struct roots_of next = merge(merged, s->r->of[in.at[i]], self);
        mixed |= next.kind == ROOTS_WEB && next.id == UINT32_MAX;
        merged = next;
        if (merged.kind == ROOTS_OWN)
            return own;
    }
    return mixed || !is_current(s, merged, value_at(s, v)->place) ? self : merged;
}

// A partial DEF may keep what was there. If a rule's own result merges already, the two webs are one.
static struct roots_of of_def(const struct solving *s, uint32_t v)
{
    struct roots_of new = by_rule(s, v);
    struct roots_of self = {ROOTS_WEB, v};
    if (!value_at(s, v)->partial || value_at(s, v)->input == REACH_NONE)
        return new;
    struct roots_of old = s->r->of[value_at(s, v)->input];
    s->r->made[v] = new;
    if (equal(new, self))
        return old.kind == ROOTS_OWN ? own : self;
    if (new.kind == ROOTS_VALUE &&new.id == v && old.kind != ROOTS_OWN)
        return old.kind == ROOTS_NONE ? new : self;
    return resolve(merge(new, old, self), self);
}

static struct roots_of root_of(const struct solving *s, uint32_t v)
{
    if (s->number[v] && value_at(s, v)->kind != REACH_ENTRY)
        return number;
    switch ((enum reach_kind)value_at(s, v)->kind) {
    case REACH_ENTRY: return is_argument(s, v) ? (struct roots_of){ROOTS_VALUE, v} : none;
    case REACH_JOIN: return of_join(s, v);
    case REACH_DEF: break;
    }
    return of_def(s, v);
}

// Whether a statement's results come from memory or another function.
static bool is_load(const struct solving *s, uint32_t stmt)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    const struct ptx_stmt *at = &s->r->f->stmts[stmt];
    return at->form->id == PTX_OP_CALL || ptx_stmt_mem(s->r->f, at, mem);
}

static bool is_predicate(const struct solving *s, uint32_t reg)
{
    return ptx_reg_var(s->r->f, s->reach->regs->reg[reg])->type == PTX_PRED;
}

static bool reads_relative(const struct solving *s, uint32_t stmt)
{
    const struct regs *regs = s->reach->regs;
    for (uint32_t a = regs->access_at[stmt]; a < regs->access_at[stmt + 1]; a++)
        if (s->reach->read[a] != REACH_NONE && s->relative[s->reach->read[a]])
            return true;
    return false;
}

// Whether a value is computed from a difference of pointers, through any arithmetic. Predicates are not: the
// difference is often a length, and what is done for so many elements has nothing to do with it.
static bool is_relative(const struct solving *s, uint32_t v)
{
    const struct reach_value *value = value_at(s, v);
    struct reach_list in = reach_inputs(s->reach, v);
    for (uint32_t i = 0; i < in.n; i++)
        if (in.at[i] != REACH_NONE && s->relative[in.at[i]])
            return true;
    if (value->kind != REACH_DEF)
        return false;
    const struct roots_rule *rule = &s->rule[v];
    if (rule->how == ROOTS_DIFF && s->r->of[v].kind == ROOTS_OWN && !source_is_number(s, &rule->b))
        return true;
    return reads_relative(s, value->place) && !is_predicate(s, value->reg) && !is_load(s, value->place);
}

static void find_roots(struct solving *s)
{
    for (bool again = true; again; s->r->rounds++) {
        again = false;
        for (uint32_t k = 0; k < s->norder; k++) {
            uint32_t v = s->order[k];
            if (!s->relative[v] && is_relative(s, v))
                again = s->relative[v] = true;
            struct roots_of is = root_of(s, v);
            if (equal(is, s->r->of[v]) || s->r->of[v].kind == ROOTS_OWN)
                continue;
            s->r->of[v] = s->r->rounds < MOST_ROUNDS ? is : own;
            again = true;
        }
    }
}

// --- all ---------------------------------------------------------------------------------------------------

static void allot(struct solving *s, struct arena *keep, struct arena *scratch)
{
    uint32_t n = s->nvalues + 1;
    s->r->of = ARENA_ARRAY(keep, struct roots_of, n);
    s->r->address = ARENA_ARRAY(keep, bool, n);
    s->r->made = ARENA_ARRAY(keep, struct roots_of, s->reach->ndefs + 1u);
    memset(s->r->made, 0, (s->reach->ndefs + 1u) * sizeof *s->r->made);
    s->number = ARENA_ARRAY(scratch, bool, n);
    s->factor = ARENA_ARRAY(scratch, bool, n);
    s->relative = ARENA_ARRAY(scratch, bool, n);
    memset(s->relative, 0, n);
    s->rule = ARENA_ARRAY(keep, struct roots_rule, s->reach->ndefs + 1u);
    s->param = ARENA_ARRAY(scratch, bool, PARAMS);
    memset(s->param, 0, PARAMS);
    s->work.items = ARENA_ARRAY(scratch, uint32_t, n);
    memset(s->r->of, 0, n * sizeof *s->r->of);
    memset(s->r->address, 0, n);
    memset(s->factor, 0, n);
    memset(s->rule, 0, (s->reach->ndefs + 1u) * sizeof *s->rule);
}

static int build(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    const struct input *in = input;
    struct roots *r = result;
    struct solving s = {
        .r = r, .reach = in->reach, .dom = in->dom, .nvalues = (uint32_t)in->reach->value.len};
    r->m = in->m;
    r->f = in->f;
    r->reach = in->reach;
    allot(&s, keep, scratch);
    r->rules = s.rule;
    if (in->reach->cfg->uncertain) {
        for (uint32_t v = 0; v < s.nvalues; v++)
            r->of[v] = own;
        return 0;
    }
    for (uint32_t v = 0; v < in->reach->ndefs; v++)
        roots_rule_of(r, v, &s.rule[v], s.factor);
    make_order(&s, scratch);
    find_numbers(&s);
    find_addresses(&s);
    find_roots(&s);
    return 0;
}

int roots_build(const struct ptx_module *m, const struct ptx_func *f, const struct reach *reach,
                const struct dom *dom, struct roots **out)
{
    struct input in = {m, f, reach, dom};
    struct roots *r = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    arena_init(&r->arena, BUILD_LIMIT);
    int err = build_run(build, r, &in, &r->arena);
    if (err) {
        mem_free(r);
        return err;
    }
    *out = r;
    return 0;
}

void roots_free(struct roots *r)
{
    if (!r)
        return;
    arena_free(&r->arena);
    mem_free(r);
}

// --- questions ---------------------------------------------------------------------------------------------

struct roots_of roots_address(const struct roots *r, uint32_t stmt, const struct ptx_operand *addr)
{
    if (addr->kind != PTX_ADDR)
        return own;
    if (addr->sub == PTX_BASE_SYM)
        return roots_of_symbol(r->m, addr->id);
    uint32_t reg = addr->sub == PTX_BASE_REG ? regs_index(r->reach->regs, addr->id) : REGS_NONE;
    uint32_t v = reg == REGS_NONE ? REACH_NONE : reach_read(r->reach, stmt, reg);
    struct roots_of of = v == REACH_NONE ? own : r->of[v];
    return of.kind == ROOTS_NONE || of.kind == ROOTS_NUMBER ? own : of;
}

bool roots_picked(const struct roots *r, uint32_t value, struct roots_of out[2])
{
    const struct reach_value *v = &r->reach->value.items[value];
    const struct roots_rule *rule = &r->rules[value];
    if (v->kind != REACH_DEF || v->partial || rule->how != ROOTS_PICK)
        return false;
    out[0] = rule->a.value == REACH_NONE ? rule->a.of : r->of[rule->a.value];
    out[1] = rule->b.value == REACH_NONE ? rule->b.of : r->of[rule->b.value];
    return true;
}

bool roots_summed(const struct roots *r, uint32_t value, struct roots_of out[2])
{
    const struct reach_value *v = &r->reach->value.items[value];
    const struct roots_rule *rule = &r->rules[value];
    if (v->kind != REACH_DEF || v->partial || rule->how != ROOTS_SUM)
        return false;
    out[0] = rule->a.value == REACH_NONE ? rule->a.of : r->of[rule->a.value];
    out[1] = rule->b.value == REACH_NONE ? rule->b.of : r->of[rule->b.value];
    return true;
}

bool roots_valid(const struct roots *r)
{
    for (uint32_t v = 0; v < r->reach->value.len; v++) {
        struct roots_of of = r->of[v];
        if (of.kind >= ROOTS_KINDS)
            return false;
        if (of.kind != ROOTS_VALUE && of.kind != ROOTS_WEB)
            continue;
        // A root is its own root.
        if (of.id >= r->reach->value.len || !equal(r->of[of.id], of))
            return false;
    }
    return true;
}
