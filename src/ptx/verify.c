// SPDX-License-Identifier: MIT
// Checks for much of what the parser accepts and ptxas refuses, and for accesses to variables that are wrong
// whatever values a program runs with.
//
// Requires a parsed module; changes nothing. Errors: ptxas would refuse the module. Warnings: it would not,
// but the statement is wrong whenever it runs. What is not in ops.def or mods.def gets one warning per
// spelling and is not checked further.
#include "ptx/verify.h"

#include <errno.h>
#include <stdarg.h>

#include "ptx/quote.h"

void verify_vreport(struct verifier *v, enum diag_severity severity, uint32_t pos, size_t len,
                    const char *fmt, va_list args)
{
    // A statement that a pass made has no place in the source.
    struct diag_source nowhere = {.name = v->m->source.name};
    bool placed = pos != PTX_NONE;
    diag_vreport(v->sink, severity, placed ? &v->m->source : &nowhere, placed ? pos : 0, placed ? len : 0,
                 fmt, args);
    v->errors += severity == DIAG_ERROR;
}

void verify_report(struct verifier *v, enum diag_severity severity, uint32_t pos, size_t len, const char *fmt,
                   ...)
{
    va_list args;
    va_start(args, fmt);
    verify_vreport(v, severity, pos, len, fmt, args);
    va_end(args);
}

uint32_t verify_place(const struct verifier *v, const char *at)
{
    const char *text = v->m->source.text.ptr;
    return at >= text && at <= text + v->m->source.text.len ? (uint32_t)(at - text) : PTX_NONE;
}

// --- do registers fit? -------------------------------------------------------------------------------------

static bool classes_agree(enum ptx_type_class reg, enum ptx_type_class insn)
{
    if (reg == PTX_CLASS_PRED || insn == PTX_CLASS_PRED)
        return reg == insn;
    if (reg == PTX_CLASS_BITS || insn == PTX_CLASS_BITS || reg == insn)
        return true;
    bool reg_int = reg == PTX_CLASS_UINT || reg == PTX_CLASS_SINT;
    bool insn_int = insn == PTX_CLASS_UINT || insn == PTX_CLASS_SINT;
    // Packed values may be in registers of any kind.
    return (reg_int && insn_int) || reg == PTX_CLASS_PACKED || insn == PTX_CLASS_PACKED;
}

static bool reg_is(enum ptx_type reg, enum ptx_type insn, bool wider)
{
    unsigned have = ptx_type_bits(reg), want = ptx_type_bits(insn);
    if (ptx_type_class(insn) == PTX_CLASS_PRED || ptx_type_class(reg) == PTX_CLASS_PRED)
        return ptx_type_class(insn) == ptx_type_class(reg);
    if (wider)
        return have >= want;
    return have == want && classes_agree(ptx_type_class(reg), ptx_type_class(insn));
}

static enum ptx_type widened(enum ptx_type t)
{
    switch (t) {
    case PTX_U16: return PTX_U32;
    case PTX_S16: return PTX_S32;
    case PTX_U32: return PTX_U64;
    case PTX_S32: return PTX_S64;
    default: return t;
    }
}

// Returns the type that an operand must have, PTX_TYPE_NONE if any will do.
static enum ptx_type wanted_type(const struct ptx_form *form, enum ptx_fit fit)
{
    switch (fit) {
    case PTX_FIT_TYPE0:
    case PTX_FIT_TYPE1:
    case PTX_FIT_TYPE2:
    case PTX_FIT_TYPE3: return (unsigned)fit < form->ntypes ? form->types[fit] : PTX_TYPE_NONE;
    case PTX_FIT_LOOSE0: return form->ntypes ? form->types[0] : PTX_TYPE_NONE;
    case PTX_FIT_LOOSE1: return form->ntypes > 1 ? form->types[1] : PTX_TYPE_NONE;
    case PTX_FIT_WIDE:
        if (!form->ntypes)
            return PTX_TYPE_NONE;
        return ptx_form_has(form, PTX_MOD_WIDE) ? widened(form->types[0]) : (enum ptx_type)form->types[0];
    case PTX_FIT_PRED: return PTX_PRED;
    case PTX_FIT_32: return PTX_B32;
    case PTX_FIT_64: return PTX_B64;
    case PTX_FIT_ANY: break;
    }
    return PTX_TYPE_NONE;
}

// Returns whether a form has more types than its signature uses, and so mixes precisions: add.f32.f16. The
// widths of its operands are left to ptxas.
static bool mixes_types(const struct ptx_form *form)
{
    unsigned most = 0;
    for (unsigned i = 0; i < form->nrules; i++) {
        unsigned fit = form->rules[i].fit;
        unsigned uses = fit <= PTX_FIT_TYPE3    ? fit + 1
                        : fit == PTX_FIT_LOOSE1 ? 2
                        : fit == PTX_FIT_LOOSE0 ? 1
                                                : 0;
        most = uses > most ? uses : most;
    }
    return most && form->ntypes > most;
}

static void check_register(struct verifier *v, const struct ptx_stmt *s, const struct ptx_operand *o,
                           enum ptx_fit fit)
{
    const struct ptx_var *var = ptx_reg_var(v->f, o->id);
    enum ptx_type want = wanted_type(s->form, fit);
    if (!want || var->vec > 1 || o->sub != PTX_SEL_NONE || (mixes_types(s->form) && fit != PTX_FIT_PRED))
        return;
    bool wider = fit == PTX_FIT_LOOSE0 || fit == PTX_FIT_LOOSE1;
    if (reg_is((enum ptx_type)var->type, want, wider))
        return;
    struct str name = ptx_sym(v->m, var->sym)->name;
    char number[16] = "";
    if (var->range)
        snprintf(number, sizeof number, "%u", o->id - var->first_reg);
    error_at(v, s, "an operand wants ." STR_FMT ", but " STR_FMT "%s is ." STR_FMT,
             STR_ARG(ptx_type_name(want)), STR_ARG(name), number,
             STR_ARG(ptx_type_name((enum ptx_type)var->type)));
}

static bool has_address(const struct ptx_sym *sym)
{
    return sym->kind == PTX_SYM_VAR || sym->kind == PTX_SYM_FUNC || sym->kind == PTX_SYM_ALIAS;
}

static void check_leaf(struct verifier *v, const struct ptx_stmt *s, const struct ptx_operand *o,
                       struct ptx_operand_rule rule)
{
    bool written = rule.role == PTX_ROLE_WRITE || rule.role == PTX_ROLE_BOTH;
    bool minus = s->form->id == PTX_OP_VMAD && o->kind == PTX_REG;
    if (o->negated && !minus && (o->kind != PTX_REG || ptx_reg_var(v->f, o->id)->type != PTX_PRED))
        error_at(v, s, "only a predicate can be negated");
    if (written && o->kind != PTX_REG && o->kind != PTX_SINK)
        error_at(v, s, "a result must go to a register");
    if (o->kind == PTX_REG)
        check_register(v, s, o, (enum ptx_fit)rule.fit);
    if (o->kind == PTX_SYM && !has_address(ptx_sym(v->m, o->id)))
        error_at(v, s, QUOTE_FMT " has no address that could be used as a value",
                 QUOTE_ARG(ptx_sym(v->m, o->id)->name));
    if (o->kind == PTX_IMM && o->sub != PTX_IMM_INT && !mixes_types(s->form)) {
        enum ptx_type want = wanted_type(s->form, (enum ptx_fit)rule.fit);
        enum ptx_type_class class = ptx_type_class(want);
        if (class == PTX_CLASS_UINT || class == PTX_CLASS_SINT)
            error_at(v, s, "a floating-point constant where ." STR_FMT " is wanted",
                     STR_ARG(ptx_type_name(want)));
    }
}

static void check_vector(struct verifier *v, const struct ptx_stmt *s, const struct ptx_operand *vec,
                         struct ptx_operand_rule rule)
{
    bool moves = s->form->id == PTX_OP_MOV;
    if (s->form->vec > 1 && s->form->op->width == PTX_WIDTH_TYPE && vec->value != s->form->vec)
        error_at(v, s, "a vector of %u is wanted, this one has %lld", s->form->vec, (long long)vec->value);
    if (moves)  // packs or unpacks: the elements share the width
        rule.fit = PTX_FIT_ANY;
    const struct ptx_operand *o = vec + 1;
    for (int64_t i = 0; i < vec->value; i++, o = ptx_next(o))
        check_leaf(v, s, o, rule);
}

// Checks d|p: the operand after the bar is a predicate.
static void check_pair(struct verifier *v, const struct ptx_stmt *s, const struct ptx_operand *pair,
                       struct ptx_operand_rule rule)
{
    const struct ptx_operand *first = pair + 1, *second = ptx_next(first);
    if (first->kind == PTX_VEC)
        check_vector(v, s, first, rule);
    else
        check_leaf(v, s, first, rule);
    rule.fit = PTX_FIT_PRED;
    check_leaf(v, s, second, rule);
}

static void check_operand(struct verifier *v, const struct ptx_stmt *s, const struct ptx_operand *o,
                          struct ptx_operand_rule rule)
{
    switch ((enum ptx_role)rule.role) {
    case PTX_ROLE_WRITE:
    case PTX_ROLE_READ:
    case PTX_ROLE_BOTH:
    case PTX_ROLE_DESCRIPTOR:
        if (o->kind == PTX_VEC)
            check_vector(v, s, o, rule);
        else if (o->kind == PTX_PAIR)
            check_pair(v, s, o, rule);
        else
            check_leaf(v, s, o, rule);
        break;
    case PTX_ROLE_LABEL:
        if (o->kind != PTX_SYM || ptx_sym(v->m, o->id)->kind != PTX_SYM_LABEL)
            error_at(v, s, "a branch wants a label");
        break;
    case PTX_ROLE_TARGETS:
        if (o->kind != PTX_SYM || ptx_sym(v->m, o->id)->kind != PTX_SYM_TARGETS)
            error_at(v, s, "the name of a .branchtargets list is wanted");
        break;
    default: break;
    }
}

// --- calls -------------------------------------------------------------------------------------------------

static void check_counts(struct verifier *v, const struct ptx_stmt *s, uint32_t rets, uint32_t params)
{
    const struct ptx_operand *got_rets = ptx_operand(s, 0), *got_args = ptx_operand(s, 2);
    if (got_rets->value != rets)
        error_at(v, s, "the callee returns %u values, the call takes %lld", rets, (long long)got_rets->value);
    if (got_args->value != params)
        error_at(v, s, "the callee has %u parameters, the call passes %lld", params,
                 (long long)got_args->value);
}

static void check_call(struct verifier *v, const struct ptx_stmt *s)
{
    const struct ptx_operand *callee = ptx_operand(s, 1), *proto = ptx_operand(s, 3);
    if (callee->kind == PTX_SYM) {
        const struct ptx_sym *sym = ptx_sym_behind_alias(v->m, callee->id);
        if (sym->kind != PTX_SYM_FUNC || sym->func->is_entry)
            error_at(v, s, QUOTE_FMT " is not a function that can be called", QUOTE_ARG(sym->name));
        else
            check_counts(v, s, sym->func->nrets, sym->func->nparams);
        return;
    }
    if (callee->kind != PTX_REG) {
        error_at(v, s, "a call wants a function");
        return;
    }
    const struct ptx_sym *sym = proto && proto->kind == PTX_SYM ? ptx_sym(v->m, proto->id) : NULL;
    if (sym && sym->kind == PTX_SYM_PROTO)
        check_counts(v, s, sym->proto->nrets, sym->proto->nparams);
    else if (!sym || sym->kind != PTX_SYM_TARGETS)
        error_at(v, s, "an indirect call wants a prototype or a list of targets");
}

// --- instructions ------------------------------------------------------------------------------------------

static void report_count(struct verifier *v, const struct ptx_stmt *s, unsigned n)
{
    unsigned least = s->form->nneeded, most = s->form->nrules;
    char range[32];
    snprintf(range, sizeof range, least == most ? "%u" : "%u to %u", least, most);
    error_at(v, s, QUOTE_FMT " has %s operands, not %u", QUOTE_ARG(s->form->op->name), range, n);
}

static void check_insn(struct verifier *v, const struct ptx_stmt *s)
{
    if (s->guard != PTX_NONE && ptx_reg_var(v->f, s->guard)->type != PTX_PRED)
        error_at(v, s, "the guard is not a predicate");
    if (s->form->id == PTX_OP_UNKNOWN || s->form->odd)
        return;
    const struct ptx_operand *o = s->operands, *end = o + s->nslots;
    unsigned n = 0;
    for (; o < end; o = ptx_next(o), n++)
        if (n < s->form->nrules)
            check_operand(v, s, o, s->form->rules[n]);
    if (n < s->form->nneeded || n > s->form->nrules) {
        report_count(v, s, n);
        return;
    }
    if (s->form->id == PTX_OP_CALL)
        check_call(v, s);
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned nmem = ptx_stmt_mem(v->f, s, mem);
    for (unsigned i = 0; i < nmem; i++)
        if (mem[i].reads || mem[i].writes)
            verify_access(v, s, &mem[i]);
}

// --- the rest ----------------------------------------------------------------------------------------------

static void check_targets(struct verifier *v, const struct ptx_stmt *s)
{
    const struct ptx_targets *t = s->targets;
    for (uint32_t i = 0; i < t->ntargets; i++) {
        const struct ptx_sym *sym =
            t->calls ? ptx_sym_behind_alias(v->m, t->targets[i]) : ptx_sym(v->m, t->targets[i]);
        if (sym->kind != (t->calls ? PTX_SYM_FUNC : PTX_SYM_LABEL))
            verify_report(v, DIAG_ERROR, s->pos, 1, QUOTE_FMT " in this list is not a %s",
                          QUOTE_ARG(sym->name), t->calls ? "function" : "label");
    }
}

static void check_stmt(struct verifier *v, const struct ptx_stmt *s)
{
    switch ((enum ptx_stmt_kind)s->kind) {
    case PTX_INSN: check_insn(v, s); break;
    case PTX_DECL: verify_var(v, s->var); break;
    case PTX_TARGETS: check_targets(v, s); break;
    case PTX_LOC: v->loc = s->loc; break;
    default: break;
    }
}

static void check_func(struct verifier *v, const struct ptx_func *f)
{
    v->f = f;
    v->loc = NULL;
    verify_var_signature(v, f);
    for (uint32_t i = 0; i < f->nstmts; i++)
        check_stmt(v, &f->stmts[i]);
}

static void warn_unknown(struct verifier *v)
{
    for (uint32_t i = 0; i < v->m->nforms; i++) {
        const struct ptx_form *f = v->m->forms[i];
        if (f->id == PTX_OP_UNKNOWN || f->odd)
            verify_report(v, DIAG_WARNING, f->pos, f->name.len,
                          QUOTE_FMT " is not known: kept as it is, not checked", QUOTE_ARG(f->name));
    }
}

static void check_item(struct verifier *v, const struct ptx_item *item)
{
    switch ((enum ptx_item_kind)item->kind) {
    case PTX_ITEM_VAR: verify_var(v, item->var); break;
    case PTX_ITEM_FUNC: check_func(v, item->func); break;
    case PTX_ITEM_VERBATIM:
        verify_report(v, DIAG_WARNING, item->pos, 1,
                      "this directive is not known: kept as it is, not checked");
        break;
    default: break;
    }
}

// Checks that an alias and its target have been declared as functions.
static void check_aliases(struct verifier *v)
{
    for (uint32_t i = 0; i < v->m->nsyms; i++) {
        const struct ptx_sym *sym = ptx_sym(v->m, i), *target;
        if (sym->kind != PTX_SYM_ALIAS)
            continue;
        target = ptx_sym_behind_alias(v->m, i);
        if (target->kind != PTX_SYM_FUNC || !target->func)
            verify_report(v, DIAG_ERROR, sym->pos, sym->name.len,
                          "the alias " QUOTE_FMT " stands for no function", QUOTE_ARG(sym->name));
    }
}

int ptx_verify(const struct ptx_module *m, struct diag_sink *sink, unsigned *wrong_accesses)
{
    struct verifier v = {.m = m, .sink = sink};
    if (!m->target.len)
        verify_report(&v, DIAG_ERROR, 0, 1, "there is no .target");
    warn_unknown(&v);
    check_aliases(&v);
    for (uint32_t i = 0; i < m->nitems; i++)
        check_item(&v, &m->items[i]);
    if (wrong_accesses)
        *wrong_accesses = v.wrong_accesses;
    return v.errors ? -EINVAL : 0;
}
