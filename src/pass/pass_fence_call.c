// SPDX-License-Identifier: MIT
// Calls. A pointer that a kernel calls through is compared with the functions of the module whose addresses
// are taken and that have the parameters of the call; calling another address ends the context, or hangs it.
// A call in what recursive functions lead to is made only if the stack has room for it: the address of a
// variable in the frame says how much of it is used.
//
// A thread that would do otherwise is recorded, and ends.
#include <errno.h>
#include <string.h>

#include "flow/scc.h"
#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

// --- which functions call which ----------------------------------------------------------------------------

static const struct ptx_operand *callee_of(const struct ptx_stmt *s)
{
    return s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
}

typedef VEC(struct graph_edge) edge_list;

static int add_edge(struct fencing *k, uint32_t from, uint32_t sym, edge_list *edges)
{
    const struct ptx_sym *s = ptx_sym_behind_alias(k->all.c->m, sym);
    uint32_t to = s->kind == PTX_SYM_FUNC && s->func->sym < k->nsyms ? k->func_of[s->func->sym] : PTX_NONE;
    return to == PTX_NONE ? 0 : vec_push(edges, (struct graph_edge){from, to});
}

// A call through a pointer may be one of every function whose address is taken.
static int add_edges(struct fencing *k, uint32_t from, edge_list *edges)
{
    const struct ptx_func *f = k->all.c->funcs[from];
    bool indirect = false;
    int err = 0;
    for (uint32_t i = 0; i < f->nstmts && !err; i++) {
        const struct ptx_operand *o = callee_of(&f->stmts[i]);
        if (o && o->kind == PTX_SYM)
            err = add_edge(k, from, o->id, edges);
        indirect |= o && o->kind != PTX_SYM;
    }
    for (uint32_t to = 0; indirect && to < k->all.c->result->nfuncs && !err; to++)
        if (k->taken[k->all.c->funcs[to]->sym])
            err = vec_push(edges, (struct graph_edge){from, to});
    return err;
}

// Marks the functions that recursive ones lead to, these included. Components are numbered against the edges,
// so that those of a function's callees come before its own.
static int mark_deep(struct fencing *k, const struct graph *g, const struct scc *s)
{
    uint32_t n = k->all.c->result->nfuncs, *stack = ARENA_ARRAY(&k->all.c->m->arena, uint32_t, n + 1u),
             open = 0;
    if (!stack)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct graph_nodes to = graph_succ(g, i);
        bool recursive = s->size[s->component[i]] > 1;
        for (uint32_t e = 0; e < to.n; e++)
            recursive |= to.at[e] == i;
        if (recursive && !k->deep[i])
            stack[open++] = i;
        k->deep[i] |= recursive;
        while (open) {
            struct graph_nodes next = graph_succ(g, stack[--open]);
            for (uint32_t e = 0; e < next.n; e++)
                if (!k->deep[next.at[e]]) {
                    k->deep[next.at[e]] = true;
                    stack[open++] = next.at[e];
                }
        }
        k->recursive |= recursive;
    }
    return 0;
}

int fence_find_calls(struct fencing *k)
{
    struct pass_context *c = k->all.c;
    uint32_t n = c->result->nfuncs;
    edge_list edges = {0};
    struct graph *g = NULL;
    struct scc *s = NULL;
    k->nsyms = c->m->nsyms;
    k->taken = ARENA_ARRAY(&c->m->arena, bool, k->nsyms + 1u);
    k->func_of = ARENA_ARRAY(&c->m->arena, uint32_t, k->nsyms + 1u);
    k->deep = ARENA_ARRAY(&c->m->arena, bool, n + 1u);
    if (!k->taken || !k->func_of || !k->deep)
        return -ENOMEM;
    memset(k->taken, 0, k->nsyms + 1u);
    memset(k->deep, 0, n + 1u);
    for (uint32_t i = 0; i <= k->nsyms; i++)
        k->func_of[i] = PTX_NONE;
    check_find_taken(c->m, k->taken);
    for (uint32_t i = 0; i < n; i++)
        k->func_of[c->funcs[i]->sym] = i;
    int err = 0;
    for (uint32_t i = 0; i < n && !err; i++)
        err = add_edges(k, i, &edges);
    if (!err && n)
        err = graph_build(n, 0, edges.items, edges.len, &g);
    if (!err && g)
        err = scc_build(g, &s);
    if (!err && s)
        err = mark_deep(k, g, s);
    scc_free(s);
    graph_free(g);
    vec_free(&edges);
    return err;
}

// --- functions that may be called through pointers ---------------------------------------------------------

static bool same_sizes(const struct ptx_var *a, uint32_t na, const struct ptx_var *b, uint32_t nb)
{
    for (uint32_t i = 0; na == nb && i < na; i++)
        if (ptx_var_size(&a[i]) != ptx_var_size(&b[i]))
            return false;
    return na == nb;
}

static bool fits(const struct ptx_func *f, const struct ptx_proto *p)
{
    return !p || (same_sizes(f->rets, f->nrets, p->rets, p->nrets) &&
                  same_sizes(f->params, f->nparams, p->params, p->nparams));
}

static bool same_shape(const struct ptx_proto *a, const struct ptx_proto *b)
{
    return a == b || (a && b && same_sizes(a->rets, a->nrets, b->rets, b->nrets) &&
                      same_sizes(a->params, a->nparams, b->params, b->nparams));
}

// The prototype of a call through a pointer; NULL if it has a list of targets.
static const struct ptx_proto *proto_of(const struct ptx_module *m, const struct ptx_stmt *s)
{
    for (unsigned i = s->nslots; i-- > 2;)
        if (s->operands[i].kind == PTX_SYM && ptx_sym(m, s->operands[i].id)->kind == PTX_SYM_PROTO)
            return ptx_sym(m, s->operands[i].id)->proto;
    return NULL;
}

static uint32_t shape_number(struct fencing *k, const struct ptx_proto *p)
{
    for (uint32_t i = 0; i < k->shapes.len; i++)
        if (same_shape(k->shapes.items[i].proto, p))
            return i;
    return vec_push(&k->shapes, (struct fence_shape){p, PTX_NONE}) ? PTX_NONE : (uint32_t)k->shapes.len - 1;
}

static const struct ptx_func *callable(const struct fencing *k, uint32_t sym)
{
    const struct ptx_sym *s = ptx_sym(k->all.c->m, sym);
    return sym < k->nsyms && k->taken[sym] && s->kind == PTX_SYM_FUNC && !s->func->is_entry ? s->func : NULL;
}

// Returns whether the symbol is a function that calls with such a prototype may get the address of.
static bool is_target(const struct fencing *k, uint32_t sym, const struct ptx_proto *p)
{
    const struct ptx_func *f = callable(k, sym);
    return f && fits(f, p);
}

// The added functions stand before the module's own.
static void declare_taken(const struct fencing *k, struct out *to)
{
    for (uint32_t i = 0; i < k->nsyms; i++) {
        const struct ptx_func *f = callable(k, i);
        if (!f)
            continue;
        struct ptx_func declared = *f;
        declared.has_body = false;
        ptx_print_func(k->all.c->m, &declared, to);
    }
}

// Functions of other texts that are linked with this one may come from anywhere: there, only a null pointer
// is certain to be wrong.
static void write_shape(const struct fencing *k, const struct ptx_proto *p, unsigned number, struct out *to)
{
    const struct ptx_module *m = k->all.c->m;
    out_fmt(to,
            ".func (.reg .b32 may) " FENCE_CALLABLE "%u (.reg .b64 f)\n{\n.reg .pred p;\n.reg .b64 x;\n"
            "mov.b32 may, 1;\n",
            number);
    for (uint32_t i = 0; i < k->nsyms && !k->open; i++) {
        if (is_target(k, i, p))
            out_fmt(to, "mov.u64 x, " STR_FMT ";\nsetp.eq.u64 p, x, f;\n@p bra yes;\n",
                    STR_ARG(ptx_func_name(m, callable(k, i))));
    }
    out_cstr(to, k->open ? "setp.ne.u64 p, f, 0;\n@p bra yes;\n" : "");
    out_cstr(to, "mov.b32 may, 0;\nyes:\nret;\n}\n");
}

// A text with visible functions may be linked with others, which get and give their addresses.
static bool is_open(const struct pass_context *c)
{
    for (uint32_t i = 0; i < c->result->nfuncs; i++)
        if (!c->funcs[i]->is_entry && c->funcs[i]->linkage == PTX_VISIBLE)
            return true;
    return false;
}

static int find_shapes(struct fencing *k)
{
    for (uint32_t i = 0; i < k->all.c->result->nfuncs; i++) {
        const struct ptx_func *f = k->all.c->funcs[i];
        for (uint32_t at = 0; at < f->nstmts; at++) {
            const struct ptx_operand *o = callee_of(&f->stmts[at]);
            if (o && o->kind != PTX_SYM && shape_number(k, proto_of(k->all.c->m, &f->stmts[at])) == PTX_NONE)
                return -ENOMEM;
        }
    }
    return 0;
}

int fence_add_calls(struct fencing *k)
{
    struct edit *e = k->all.c->edit;
    struct out text;
    int err = find_shapes(k);
    if (!err)
        err = out_to_memory(&text);
    if (err)
        return err;
    k->open = is_open(k->all.c);
    if (k->shapes.len && !k->open)
        declare_taken(k, &text);
    for (uint32_t i = 0; i < k->shapes.len; i++)
        write_shape(k, k->shapes.items[i].proto, i, &text);
    if (k->recursive)
        out_cstr(&text, ".weak .const .align 4 .u32 " KFENCE_STACK " = 0xFFFFFFFF;\n");
    err = text.error;
    if (!err && text.len)
        edit_add(e, (struct str){text.buf, text.len});
    out_close(&text);
    for (uint32_t i = 0; i < k->shapes.len && !err; i++) {
        char name[sizeof FENCE_CALLABLE + 12];
        int len = snprintf(name, sizeof name, FENCE_CALLABLE "%u", i);
        k->shapes.items[i].sym = edit_find(e, (struct str){name, (size_t)len});
    }
    if (!err && k->recursive) {
        k->stack = edit_find(e, STR(KFENCE_STACK));
        err = pass_add_symbol(k->all.c, STR(KFENCE_STACK), 4);
    }
    return err ? err : edit_error(e);
}

// --- a call ------------------------------------------------------------------------------------------------

enum { MOST_COMPARED = 8 };  // functions that a pointer is compared with where it is called

// Sets k->bad if the pointer may be called. Comparisons with few functions need no call.
static int compare_with(struct fence_func *k, uint32_t at, const struct ptx_proto *p, uint32_t reg)
{
    uint32_t number = shape_number(k->k, p), n = 0;
    if (number == PTX_NONE)
        return -ENOMEM;
    for (uint32_t i = 0; i < k->k->nsyms; i++)
        n += is_target(k->k, i, p);
    if (k->k->open) {
        BEFORE(k, at, "setp.ne.u64 %0, %1, 0;", edit_reg(k->bad), edit_reg(reg));
    } else if (n && n <= MOST_COMPARED) {
        BEFORE(k, at, "setp.ne.b32 %0, 0, 0;", edit_reg(k->bad));
        for (uint32_t i = 0; i < k->k->nsyms; i++)
            if (is_target(k->k, i, p))
                BEFORE(k, at, "mov.u64 %0, %1;\nsetp.eq.or.u64 %2, %3, %0, %2;", edit_reg(k->what),
                       edit_sym(i), edit_reg(k->bad), edit_reg(reg));
    } else {
        BEFORE(k, at, "call (%0), %1, (%2);\nsetp.ne.b32 %3, %0, 0;", edit_reg(k->low),
               edit_sym(k->k->shapes.items[number].sym), edit_reg(reg), edit_reg(k->bad));
    }
    return 0;
}

static int compare_pointer(struct fence_func *k, uint32_t at, uint32_t site, uint32_t reg)
{
    const struct ptx_proto *p = proto_of(k->k->all.c->m, &k->f->stmts[at]);
    uint32_t may = edit_new_label(k->k->all.c->edit);
    BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->to[0]), edit_reg(reg));
    int err = compare_with(k, at, p, k->to[0]);
    if (err)
        return err;
    BEFORE(k, at, "@%0 bra %1;", edit_reg(k->bad), edit_sym(may));
    fence_end(k, at, KFENCE_WHAT(site, 0, 0), KFENCE_BAD_CALL, k->to[0]);
    edit_place_label(k->k->all.c->edit, at, may);
    return 0;
}

static uint64_t declared_bytes(const struct ptx_func *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->nparams; i++)
        sum += ptx_var_size(&f->params[i]) + 8;
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_DECL && f->stmts[i].var->space == PTX_SPACE_LOCAL)
            sum += ptx_var_size(f->stmts[i].var) + 16;
    return sum;
}

// The most that a function which the call may be of declares.
static uint32_t frame_of(const struct fencing *k, const struct ptx_operand *callee)
{
    const struct pass_context *c = k->all.c;
    const struct ptx_sym *s = callee->kind == PTX_SYM ? ptx_sym_behind_alias(c->m, callee->id) : NULL;
    uint64_t most = s && s->kind == PTX_SYM_FUNC ? declared_bytes(s->func) : 0;
    for (uint32_t i = 0; !s && i < c->result->nfuncs; i++)
        if (k->taken[c->funcs[i]->sym]) {
            uint64_t bytes = declared_bytes(c->funcs[i]);
            most = bytes > most ? bytes : most;
        }
    return most < KFENCE_WINDOW ? (uint32_t)most : KFENCE_WINDOW;
}

// Compares what the stack has used, and what the called function declares, with its size.
static void compare_depth(struct fence_func *k, uint32_t at, uint32_t site, uint32_t frame)
{
    uint32_t room = edit_new_label(k->k->all.c->edit);
    if (k->frame == PTX_NONE)
        k->frame = edit_new_local(k->k->all.c->edit, FENCE_FRAME);
    BEFORE(k, at,
           "mov.u32 %0, %1;\nsub.u32 %2, %3, %0;\nmin.u32 %0, %0, %2;\nadd.u32 %0, %0, %4;\n"
           "ld.const.u32 %2, [%5];\nsetp.le.u32 %6, %0, %2;\n@%6 bra %7;\ncvt.u64.u32 %8, %0;",
           edit_reg(k->low), edit_sym(k->frame), edit_reg(k->high), edit_imm(KFENCE_WINDOW), edit_imm(frame),
           edit_sym(k->k->stack), edit_reg(k->bad), edit_sym(room), edit_reg(k->to[0]));
    fence_end(k, at, KFENCE_WHAT(site, 0, 0), KFENCE_STACK_FULL, k->to[0]);
    edit_place_label(k->k->all.c->edit, at, room);
}

// A branch by an index must be to one of its targets: behind them there are no addresses of code.
static int compare_index(struct fence_func *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    const struct ptx_operand *index = ptx_operand(s, 0), *list = ptx_operand(s, 1);
    const struct ptx_sym *sym = list && list->kind == PTX_SYM ? ptx_sym(k->k->all.c->m, list->id) : NULL;
    uint32_t site, may = edit_new_label(k->k->all.c->edit);
    if (!sym || sym->kind != PTX_SYM_TARGETS || (index->kind != PTX_REG && index->kind != PTX_IMM))
        return -ENOTSUP;
    uint32_t past = fence_unless_guarded(k, at);
    int err = fence_site(k, at, &site);
    BEFORE(k, at, "mov.b32 %0, %1;\nsetp.lt.u32 %2, %0, %3;\n@%2 bra %4;\ncvt.u64.u32 %5, %0;",
           edit_reg(k->low), *index, edit_reg(k->bad), edit_imm(sym->targets->ntargets), edit_sym(may),
           edit_reg(k->to[0]));
    fence_end(k, at, KFENCE_WHAT(site, 0, 0), KFENCE_BAD_CALL, k->to[0]);
    edit_place_label(k->k->all.c->edit, at, may);
    edit_place_label(k->k->all.c->edit, at, past);
    return err;
}

int fence_call(struct fence_func *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    const struct ptx_operand *callee = callee_of(s);
    uint32_t site;
    if (s->form->id == PTX_OP_BRX_IDX)
        return compare_index(k, at);
    if (!callee || (callee->kind == PTX_SYM && !k->deep))
        return 0;
    uint32_t past = fence_unless_guarded(k, at);
    int err = fence_site(k, at, &site);
    if (!err && callee->kind == PTX_REG)
        err = compare_pointer(k, at, site, callee->id);
    if (!err && k->deep)
        compare_depth(k, at, site, frame_of(k->k, callee));
    edit_place_label(k->k->all.c->edit, at, past);
    return err;
}
