// SPDX-License-Identifier: MIT
// bra, brx, call, ret, exit, trap.
#include <errno.h>
#include <string.h>

#include "exec/control.h"
#include "exec/decode.h"

static uint32_t block_of_label(struct decode *d, uint32_t sym)
{
    const struct ptx_sym *s = ptx_sym(d->module->ptx, sym);
    if (s->kind != PTX_SYM_LABEL || s->stmt >= d->f->nstmts || d->f->stmts[s->stmt].kind != PTX_LABEL ||
        d->f->stmts[s->stmt].sym != sym)
        decode_fail(d, -EINVAL, STR_FMT " is no label of this function", STR_ARG(s->name));
    return d->cfg->block_of[s->stmt];
}

static void branch(struct decode *d)
{
    const struct ptx_stmt *s = d->stmt;
    uint32_t block = block_of_label(d, decode_operand(d, 0)->id);
    struct exec_insn *i = decode_emit(d, s->guard == PTX_NONE ? control_bra : control_bra_if);
    if (s->guard != PTX_NONE) {
        i->a = decode_guard(d);
        i->flags = s->guard_negated ? CONTROL_NEGATED : 0;
    }
    decode_jump(d, block);
}

// Returns the table of a list of targets. All jumps that use a list share one: there may be many, and lists
// may be long.
static const struct control_table *table_of(struct decode *d, uint32_t id)
{
    const struct ptx_sym *sym = ptx_sym(d->module->ptx, id);
    struct exec_symbol *s = &d->module->symbols[id];
    if (sym->kind != PTX_SYM_TARGETS)
        decode_fail(d, -EINVAL, STR_FMT " is no list of targets", STR_ARG(sym->name));
    if (s->kind == EXEC_SYM_TABLE)
        return s->table;
    const struct ptx_targets *t = sym->targets;
    struct control_table *table =
        arena_alloc(&d->load->program->arena, sizeof *table + t->ntargets * sizeof table->targets[0]);
    table->n = t->ntargets;
    // These are blocks for now; decode.c replaces them by instructions when the code is complete.
    for (uint32_t k = 0; k < t->ntargets; k++)
        table->targets[k] = (const struct exec_insn *)(uintptr_t)block_of_label(d, t->targets[k]);
    if (vec_push(&d->tables, table))
        longjmp(d->fail, -ENOMEM);
    *s = (struct exec_symbol){.kind = EXEC_SYM_TABLE, .table = table};
    return table;
}

static void branch_table(struct decode *d)
{
    uint32_t skip = decode_skip_begin(d);
    uint32_t index = decode_source(d, decode_operand(d, 0), PTX_B32);
    const struct control_table *table = table_of(d, decode_operand(d, 1)->id);
    struct exec_insn *i = decode_emit(d, control_brx);
    i->a = index;
    i->ptr = table;
    decode_skip_end(d, skip);
}

// --- call --------------------------------------------------------------------------------------------------

// Arguments and results lie in local memory: a call copies them between the caller's frame and the callee's.
// For registers and constants, each frame has an area after its variables, which its calls use one after
// another.

// A call as written, and its callee's signature.
struct call {
    const struct ptx_operand *rets, *target, *args, *last;
    uint32_t nrets, nargs;
    const struct ptx_var *ret_vars, *arg_vars;  // NULL: unknown
    uint32_t at;                                // next free offset in the argument area
};

static struct call call_of(struct decode *d)
{
    struct call c = {0};
    for (const struct ptx_operand *o = d->stmt->operands; o < d->stmt->operands + d->stmt->nslots;
         o = ptx_next(o)) {
        if (o->kind == PTX_LIST && !c.target)
            c.rets = o;
        else if (o->kind == PTX_LIST && !c.args)
            c.args = o;
        else if (!c.target)
            c.target = o;
        else
            c.last = o;
    }
    if (!c.target)
        decode_unsupported(d);
    c.nrets = c.rets ? (uint32_t)c.rets->value : 0;
    c.nargs = c.args ? (uint32_t)c.args->value : 0;
    return c;
}

// Keeps the signature if it has as many parameters and results as the call.
static void take_signature(struct call *c, const struct ptx_var *rets, uint32_t nrets,
                           const struct ptx_var *params, uint32_t nparams)
{
    c->ret_vars = nrets == c->nrets ? rets : NULL;
    c->arg_vars = nparams == c->nargs ? params : NULL;
}

// Finds the signature of a call through a pointer: a prototype, or the first function of a list.
static void find_prototype(struct decode *d, struct call *c)
{
    const struct ptx_sym *s =
        c->last && c->last->kind == PTX_SYM ? ptx_sym(d->module->ptx, c->last->id) : NULL;
    if (s && s->kind == PTX_SYM_PROTO)
        take_signature(c, s->proto->rets, s->proto->nrets, s->proto->params, s->proto->nparams);
    if (!s || s->kind != PTX_SYM_TARGETS || !s->targets->ntargets)
        return;
    s = ptx_sym_behind_alias(d->module->ptx, s->targets->targets[0]);
    if (s->kind == PTX_SYM_FUNC)
        take_signature(c, s->func->rets, s->func->nrets, s->func->params, s->func->nparams);
}

static struct exec_place take_place(struct decode *d, struct call *c, const struct ptx_var *type)
{
    uint64_t size = type->ndims ? 0 : ptx_var_size(type);
    if (!size || size > 16)
        decode_fail(d, -EINVAL, "an argument that does not fit a register");
    uint32_t at = (c->at + (uint32_t)size - 1) / (uint32_t)size * (uint32_t)size;
    c->at = (at + (uint32_t)size + 3) & ~3u;
    return (struct exec_place){at, (uint32_t)size};
}

// Returns the place of each operand of a list. The types are the callee's.
static struct exec_place *places(struct decode *d, struct call *c, const struct ptx_operand *list, uint32_t n,
                                 const struct ptx_var *types)
{
    struct exec_place *out = ARENA_ARRAY(&d->load->program->arena, struct exec_place, n);
    const struct ptx_operand *o = list ? list + 1 : NULL;
    for (uint32_t k = 0; k < n; k++, o = ptx_next(o)) {
        const struct exec_symbol *s = o->kind == PTX_SYM ? &d->module->symbols[o->id] : NULL;
        if (s && s->kind == EXEC_SYM_LOCAL) {
            const struct ptx_var *v = ptx_sym(d->module->ptx, o->id)->var;
            out[k] = (struct exec_place){(uint32_t)s->value, (uint32_t)ptx_var_size(v)};
        } else if (o->kind != PTX_REG && o->kind != PTX_IMM && o->kind != PTX_SINK) {
            decode_fail(d, -EINVAL, "an argument is a register, a constant or a .param variable");
        } else if (!types) {
            decode_fail(d, -EINVAL, "a call that passes registers needs a prototype");
        } else {
            out[k] = take_place(d, c, &types[k]);
        }
    }
    return out;
}

// Moves arguments from registers to their places, or results back.
static void move_list(struct decode *d, const struct ptx_operand *list, uint32_t n,
                      const struct exec_place *at, const struct ptx_var *types, bool back)
{
    const struct ptx_operand *o = list ? list + 1 : NULL;
    for (uint32_t k = 0; k < n; k++, o = ptx_next(o)) {
        memset(d->ntemps, 0, sizeof d->ntemps);
        if (o->kind == PTX_SYM || (back && o->kind == PTX_SINK))
            continue;
        if (back)
            decode_get_local(d, o, &types[k], at[k].offset);
        else
            decode_put_local(d, o, &types[k], at[k].offset);
    }
}

static void note_callee(struct decode *d, const struct exec_func *f)
{
    if (vec_push(&d->callees, (struct exec_func *)f))
        longjmp(d->fail, -ENOMEM);
}

// Returns whether a name belongs to the device runtime: functions of its current version that we lack, or of
// its first version.
static bool launches(struct str name)
{
    return str_starts(name, STR("__cudaCDP2")) || str_starts(name, STR("cudaLaunchDevice")) ||
           str_starts(name, STR("cudaGetParameterBuffer")) || str_eq(name, STR("cudaDeviceSynchronize"));
}

static const struct exec_func *find_callee(struct decode *d, const struct call *c)
{
    const struct exec_symbol *s = &d->module->symbols[c->target->id];
    struct str name = ptx_sym(d->module->ptx, c->target->id)->name;
    if (s->kind != EXEC_SYM_FUNC && launches(name))
        decode_fail(d, -ENOTSUP,
                    "the CPU device does not have this part of dynamic parallelism (kernels that launch "
                    "kernels): " STR_FMT,
                    STR_ARG(name));
    if (s->kind != EXEC_SYM_FUNC)
        decode_fail(d, -ENOENT, "nothing defines " STR_FMT, STR_ARG(name));
    if (s->func->ptx->nparams != c->nargs || s->func->ptx->nrets != c->nrets || s->func->ptx->is_entry)
        decode_fail(d, -EINVAL, "a call of " STR_FMT " with other arguments than it has",
                    STR_ARG(s->func->name));
    return s->func;
}

static void call(struct decode *d)
{
    struct call c = call_of(d);
    uint32_t skip = decode_skip_begin(d), slot = 0;
    struct control_call *to = ARENA_NEW(&d->load->program->arena, struct control_call);
    if (c.target->kind == PTX_SYM) {
        to->func = find_callee(d, &c);
        take_signature(&c, to->func->ptx->rets, c.nrets, to->func->ptx->params, c.nargs);
        note_callee(d, to->func);
    } else {
        find_prototype(d, &c);
        d->func->calls_unknown = true;
    }
    c.at = d->args_at;
    to->nargs = c.nargs;
    to->nrets = c.nrets;
    to->args = places(d, &c, c.args, c.nargs, c.arg_vars);
    to->rets = places(d, &c, c.rets, c.nrets, c.ret_vars);
    uint32_t end = (c.at + 15) & ~15u;
    if (end > d->func->local_size)
        d->func->local_size = end;
    move_list(d, c.args, c.nargs, to->args, c.arg_vars, false);
    if (!to->func)
        slot = decode_source(d, c.target, PTX_B64);
    struct exec_insn *i = decode_emit(d, control_call);
    i->a = slot;
    i->ptr = to;
    decode_emit(d, control_join);
    move_list(d, c.rets, c.nrets, to->rets, c.ret_vars, true);
    decode_skip_end(d, skip);
}

// Returns the register that a parameter or result is declared as.
static struct ptx_operand variable(const struct ptx_var *v)
{
    return (struct ptx_operand){.kind = PTX_REG, .id = v->first_reg};
}

void decode_enter(struct decode *d)
{
    d->args_at = d->func->local_size;
    struct live_list in = live_in(d->live, d->order[0]);
    for (uint32_t k = 0; k < d->func->nparams; k++) {
        const struct ptx_var *v = &d->f->params[k];
        uint32_t index = v->space == PTX_SPACE_REG ? regs_index(d->regs, v->first_reg) : REGS_NONE;
        if (index == REGS_NONE || !live_list_has(in, index))
            continue;
        struct ptx_operand to = variable(v);
        memset(d->ntemps, 0, sizeof d->ntemps);
        decode_get_local(d, &to, v, d->func->params[k].offset);
    }
}

void decode_leave(struct decode *d)
{
    for (uint32_t k = 0; k < d->func->nrets; k++) {
        const struct ptx_var *v = &d->f->rets[k];
        if (v->space != PTX_SPACE_REG)
            continue;
        struct ptx_operand from = variable(v);
        memset(d->ntemps, 0, sizeof d->ntemps);
        decode_put_local(d, &from, v, d->func->rets[k].offset);
    }
}

// --- ends --------------------------------------------------------------------------------------------------

static void end(struct decode *d, exec_fn *fn)
{
    const struct ptx_stmt *s = d->stmt;
    struct exec_insn *i = decode_emit(d, fn);
    if (s->guard == PTX_NONE)
        return;
    i->a = decode_guard(d);
    i->flags = CONTROL_IF | (s->guard_negated ? CONTROL_NEGATED : 0);
}

static void ret(struct decode *d)
{
    if (d->func->kernel) {
        end(d, control_exit);
        return;
    }
    struct exec_insn *i = decode_emit(d, d->stmt->guard == PTX_NONE ? control_bra : control_bra_if);
    if (d->stmt->guard != PTX_NONE) {
        i->a = decode_guard(d);
        i->flags = d->stmt->guard_negated ? CONTROL_NEGATED : 0;
    }
    decode_jump(d, DECODE_RETURN);
}

static void trap(struct decode *d, exec_fn *fn)
{
    uint32_t skip = decode_skip_begin(d);
    decode_emit(d, fn);
    decode_skip_end(d, skip);
}

void decode_control(struct decode *d)
{
    switch (d->stmt->form->id) {
    case PTX_OP_BRA: branch(d); return;
    case PTX_OP_BRX_IDX: branch_table(d); return;
    case PTX_OP_CALL: call(d); return;
    case PTX_OP_RET: ret(d); return;
    case PTX_OP_EXIT: end(d, control_exit); return;
    case PTX_OP_TRAP: trap(d, control_trap); return;
    default: trap(d, control_illegal);
    }
}
