// SPDX-License-Identifier: MIT
// bra, brx, call, ret, exit, trap.
#include <errno.h>

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
        i->a = decode_reg(d, s->guard);
        i->flags = s->guard_negated ? CONTROL_NEGATED : 0;
    }
    decode_jump(d, block);
}

// One for all that jump by a list: there may be many, and lists may be long.
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
    // Blocks for now; decode.c makes them instructions when all have their place.
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

// --- call ---------------------------------------------------------------------------------------------------

static struct exec_place *places(struct decode *d, const struct ptx_operand *list, uint32_t *n)
{
    *n = list ? (uint32_t)list->value : 0;
    struct exec_place *out = ARENA_ARRAY(&d->load->program->arena, struct exec_place, *n);
    const struct ptx_operand *o = list ? list + 1 : NULL;
    for (uint32_t k = 0; k < *n; k++, o = ptx_next(o)) {
        const struct exec_symbol *s = o->kind == PTX_SYM ? &d->module->symbols[o->id] : NULL;
        if (!s || s->kind != EXEC_SYM_LOCAL)
            decode_fail(d, -ENOTSUP, "arguments in registers are not executed");
        const struct ptx_var *v = ptx_sym(d->module->ptx, o->id)->var;
        out[k] = (struct exec_place){(uint32_t)s->value, (uint32_t)ptx_var_size(v)};
    }
    return out;
}

static void note_callee(struct decode *d, const struct exec_func *f)
{
    if (vec_push(&d->callees, (struct exec_func *)f))
        longjmp(d->fail, -ENOMEM);
}

static void call(struct decode *d)
{
    const struct ptx_operand *rets = NULL, *target = NULL, *args = NULL;
    for (const struct ptx_operand *o = d->stmt->operands; o < d->stmt->operands + d->stmt->nslots;
         o = ptx_next(o)) {
        if (o->kind == PTX_LIST && !target)
            rets = o;
        else if (o->kind == PTX_LIST && !args)
            args = o;
        else if (!target)
            target = o;
    }
    if (!target)
        decode_unsupported(d);
    uint32_t skip = decode_skip_begin(d), slot = 0;
    struct control_call *c = ARENA_NEW(&d->load->program->arena, struct control_call);
    c->args = places(d, args, &c->nargs);
    c->rets = places(d, rets, &c->nrets);
    if (target->kind == PTX_SYM) {
        const struct exec_symbol *s = &d->module->symbols[target->id];
        if (s->kind != EXEC_SYM_FUNC)
            decode_fail(d, -ENOENT, "nothing defines " STR_FMT,
                        STR_ARG(ptx_sym(d->module->ptx, target->id)->name));
        if (s->func->ptx->nparams != c->nargs || s->func->ptx->nrets != c->nrets || s->func->ptx->is_entry)
            decode_fail(d, -EINVAL, "a call of " STR_FMT " with other arguments than it has",
                        STR_ARG(s->func->name));
        c->func = s->func;
        note_callee(d, s->func);
    } else {
        slot = decode_source(d, target, PTX_B64);
        d->func->calls_unknown = true;
    }
    struct exec_insn *i = decode_emit(d, control_call);
    i->a = slot;
    i->ptr = c;
    decode_emit(d, control_join);
    decode_skip_end(d, skip);
}

// --- ends ---------------------------------------------------------------------------------------------------

static void end(struct decode *d, exec_fn *fn)
{
    const struct ptx_stmt *s = d->stmt;
    struct exec_insn *i = decode_emit(d, fn);
    if (s->guard == PTX_NONE)
        return;
    i->a = decode_reg(d, s->guard);
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
        i->a = decode_reg(d, d->stmt->guard);
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
