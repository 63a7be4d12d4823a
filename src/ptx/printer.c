// SPDX-License-Identifier: MIT
// Prints a module as PTX. Each declaration and instruction is on a line of its own; verbatim parts are
// printed as they were.
#include "ptx/ptx.h"
#include "ptx/words.h"

struct printer {
    const struct ptx_module *m;
    const struct ptx_func *f;
    struct out *to;
    const struct ptx_var *last;  // declaration of the last printed register: often that of the next one
};

static void print_name(struct printer *p, uint32_t sym)
{
    out_str(p->to, ptx_sym(p->m, sym)->name);
}

static const struct ptx_var *reg_var(struct printer *p, uint32_t reg)
{
    const struct ptx_var *last = p->last;
    if (!last || reg < last->first_reg || reg - last->first_reg >= (last->range ? last->range : 1))
        p->last = last = ptx_reg_var(p->f, reg);
    return last;
}

static void print_reg(struct printer *p, uint32_t reg)
{
    const struct ptx_var *var = reg_var(p, reg);
    if (var->sym == PTX_NONE)
        out_char(p->to, '_');
    else
        print_name(p, var->sym);
    if (var->range)
        out_u64(p->to, reg - var->first_reg);
}

// --- operands ----------------------------------------------------------------------------------------------

static void print_offset(struct printer *p, const struct ptx_operand *o)
{
    if (!o->value && !o->spelled)
        return;
    out_char(p->to, '+');
    out_i64(p->to, o->value);
}

static void print_imm(struct printer *p, const struct ptx_operand *o)
{
    if (o->spelled) {
        out_bytes(p->to, p->m->source.text.ptr + o->id, o->span);
    } else if (o->sub == PTX_IMM_F32) {
        out_lit(p->to, "0f");
        out_hex(p->to, (uint32_t)o->value, 8);
    } else if (o->sub == PTX_IMM_F64) {
        out_lit(p->to, "0d");
        out_hex(p->to, (uint64_t)o->value, 16);
    } else {
        out_i64(p->to, o->value);
    }
}

static void print_select(struct printer *p, const struct ptx_operand *o)
{
    if (o->sub == PTX_SEL_BYTES || o->sub == PTX_SEL_HALVES) {
        out_cstr(p->to, o->sub == PTX_SEL_BYTES ? ".b" : ".h");
        out_hex(p->to, (uint64_t)o->value, o->span);
    } else if (o->sub) {
        out_cstr(p->to, words_select[o->sub]);
    }
}

static bool is_predicate(struct printer *p, const struct ptx_operand *o)
{
    return o->kind != PTX_REG || reg_var(p, o->id)->type == PTX_PRED;
}

static void print_address(struct printer *p, const struct ptx_operand *o)
{
    if (o->sub == PTX_BASE_NONE) {
        out_i64(p->to, o->value);
        return;
    }
    if (o->sub == PTX_BASE_REG)
        print_reg(p, o->id);
    else
        print_name(p, o->id);
    print_offset(p, o);
}

static void print_operand(struct printer *p, const struct ptx_operand *o);

static void print_items(struct printer *p, const struct ptx_operand *group, const char *separator)
{
    const struct ptx_operand *o = group + 1;
    for (int64_t i = 0; i < group->value; i++, o = ptx_next(o)) {
        if (i)
            out_cstr(p->to, separator);
        // The first item of a tuple is an address without brackets of its own.
        if (i == 0 && group->kind == PTX_TUPLE)
            print_address(p, o);
        else
            print_operand(p, o);
    }
}

static void print_group(struct printer *p, const struct ptx_operand *o, char open, char close)
{
    out_char(p->to, open);
    print_items(p, o, ", ");
    out_char(p->to, close);
}

static void print_operand(struct printer *p, const struct ptx_operand *o)
{
    if (o->negated)
        out_char(p->to, is_predicate(p, o) ? '!' : '-');
    switch ((enum ptx_operand_kind)o->kind) {
    case PTX_REG:
        print_reg(p, o->id);
        print_select(p, o);
        break;
    case PTX_SREG:
        out_str(p->to, ptx_sreg_name((enum ptx_sreg)o->id));
        print_select(p, o);
        break;
    case PTX_SYM:
        print_name(p, o->id);
        print_offset(p, o);
        break;
    case PTX_IMM: print_imm(p, o); break;
    case PTX_SINK: out_char(p->to, '_'); break;
    case PTX_ADDR:
        out_char(p->to, '[');
        print_address(p, o);
        out_cstr(p->to, o->unified ? "].unified" : "]");
        break;
    case PTX_VEC: print_group(p, o, '{', '}'); break;
    case PTX_LIST: print_group(p, o, '(', ')'); break;
    case PTX_TUPLE: print_group(p, o, '[', ']'); break;
    case PTX_PAIR: print_items(p, o, "|"); break;
    }
}

static void print_insn(struct printer *p, const struct ptx_stmt *s)
{
    out_char(p->to, '\t');
    if (s->guard != PTX_NONE) {
        out_char(p->to, '@');
        if (s->guard_negated)
            out_char(p->to, '!');
        print_reg(p, s->guard);
        out_char(p->to, ' ');
    }
    out_str(p->to, s->form->name);
    char before = ' ';
    const struct ptx_operand *o = s->operands, *end = o + s->nslots;
    for (; o < end; o = ptx_next(o)) {
        // The parser added the empty lists of a call.
        if (o->kind == PTX_LIST && o->value == 0 && s->form->id == PTX_OP_CALL)
            continue;
        if (before == ',')
            out_char(p->to, ',');
        out_char(p->to, ' ');
        print_operand(p, o);
        before = ',';
    }
    out_lit(p->to, ";\n");
}

// --- declarations ------------------------------------------------------------------------------------------

static void print_linkage(struct printer *p, uint8_t linkage)
{
    out_cstr(p->to, words_linkage[linkage]);
    if (linkage != PTX_LINK_NONE)
        out_char(p->to, ' ');
}

static void print_word(struct printer *p, struct str word)
{
    out_char(p->to, '.');
    out_str(p->to, word);
    out_char(p->to, ' ');
}

static void print_align(struct printer *p, uint32_t align)
{
    if (!align)
        return;
    out_lit(p->to, ".align ");
    out_u64(p->to, align);
    out_char(p->to, ' ');
}

static void print_specifiers(struct printer *p, const struct ptx_var *var)
{
    print_linkage(p, var->linkage);
    print_word(p, ptx_space_name((enum ptx_space)var->space));
    if (var->attribute.len) {
        out_str(p->to, var->attribute);
        out_char(p->to, ' ');
    }
    print_align(p, var->align);
    if (var->vec > 1) {
        out_lit(p->to, ".v");
        out_u64(p->to, var->vec);
        out_char(p->to, ' ');
    }
    print_word(p, ptx_type_name((enum ptx_type)var->type));
    if (var->is_ptr) {
        out_lit(p->to, ".ptr ");
        if (var->ptr_space)
            print_word(p, ptx_space_name((enum ptx_space)var->ptr_space));
        print_align(p, var->ptr_align);
    }
}

static void print_var(struct printer *p, const struct ptx_var *var)
{
    print_specifiers(p, var);
    if (var->sym == PTX_NONE)
        out_char(p->to, '_');
    else
        print_name(p, var->sym);
    if (var->range) {
        out_char(p->to, '<');
        out_u64(p->to, var->range);
        out_char(p->to, '>');
    }
    for (uint32_t i = 0; i < var->ndims; i++) {
        out_char(p->to, '[');
        if (var->dims[i])
            out_u64(p->to, var->dims[i]);
        out_char(p->to, ']');
    }
    if (var->init.len) {
        out_lit(p->to, " = ");
        out_str(p->to, var->init);
    }
}

static void print_params(struct printer *p, const struct ptx_var *vars, uint32_t n)
{
    out_char(p->to, '(');
    for (uint32_t i = 0; i < n; i++) {
        out_cstr(p->to, n == 1 ? "" : i ? ",\n\t" : "\n\t");
        print_var(p, &vars[i]);
    }
    out_cstr(p->to, n > 1 ? "\n)" : ")");
}

// --- statements --------------------------------------------------------------------------------------------

static void print_targets(struct printer *p, const struct ptx_targets *t)
{
    print_name(p, t->sym);
    out_cstr(p->to, t->calls ? ": .calltargets " : ": .branchtargets ");
    for (uint32_t i = 0; i < t->ntargets; i++) {
        if (i)
            out_lit(p->to, ", ");
        print_name(p, t->targets[i]);
    }
    out_lit(p->to, ";\n");
}

static void print_prototype(struct printer *p, const struct ptx_proto *proto)
{
    print_name(p, proto->sym);
    out_lit(p->to, ": .callprototype ");
    if (proto->nrets)
        print_params(p, proto->rets, proto->nrets);
    out_lit(p->to, " _ ");
    print_params(p, proto->params, proto->nparams);
    if (proto->directives.len) {
        out_char(p->to, ' ');
        out_str(p->to, proto->directives);
    }
    out_lit(p->to, ";\n");
}

static void print_loc(struct printer *p, const struct ptx_loc *loc)
{
    out_lit(p->to, "\t.loc ");
    out_u64(p->to, loc->file);
    out_char(p->to, ' ');
    out_u64(p->to, loc->line);
    out_char(p->to, ' ');
    out_u64(p->to, loc->column);
    out_str(p->to, loc->inlined.len ? loc->inlined : STR(""));
    out_char(p->to, '\n');
}

static void print_stmt(struct printer *p, const struct ptx_stmt *s)
{
    switch ((enum ptx_stmt_kind)s->kind) {
    case PTX_INSN: print_insn(p, s); break;
    case PTX_LABEL:
        print_name(p, s->sym);
        out_lit(p->to, ":\n");
        break;
    case PTX_DECL:
        out_char(p->to, '\t');
        print_var(p, s->var);
        out_lit(p->to, ";\n");
        break;
    case PTX_OPEN: out_lit(p->to, "\t{\n"); break;
    case PTX_CLOSE: out_lit(p->to, "\t}\n"); break;
    case PTX_LOC: print_loc(p, s->loc); break;
    case PTX_PRAGMA:
    case PTX_VERBATIM:
        out_char(p->to, '\t');
        out_str(p->to, *s->text);
        out_lit(p->to, ";\n");
        break;
    case PTX_TARGETS: print_targets(p, s->targets); break;
    case PTX_PROTOTYPE: print_prototype(p, s->proto); break;
    }
}

static void print_directives(struct printer *p, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->ndirectives; i++) {
        const struct ptx_directive *d = &f->directives[i];
        out_char(p->to, '\n');
        out_str(p->to, d->name);
        if (d->args.len) {
            out_char(p->to, ' ');
            out_str(p->to, d->args);
        }
        if (str_eq(d->name, STR(".pragma")))
            out_char(p->to, ';');
    }
}

// Prints a function's head with the opening brace, or with the semicolon if it has no body.
static void print_head(struct printer *p)
{
    const struct ptx_func *f = p->f;
    print_linkage(p, f->linkage);
    out_cstr(p->to, f->is_entry ? ".entry " : ".func ");
    if (f->attribute.len) {
        out_str(p->to, f->attribute);
        out_char(p->to, ' ');
    }
    if (f->nrets) {
        print_params(p, f->rets, f->nrets);
        out_char(p->to, ' ');
    }
    print_name(p, f->sym);
    print_params(p, f->params, f->nparams);
    print_directives(p, f);
    out_cstr(p->to, f->has_body ? "\n{\n" : ";\n");
}

static void print_func(struct printer *p)
{
    print_head(p);
    if (!p->f->has_body)
        return;
    for (uint32_t i = 0; i < p->f->nstmts; i++)
        print_stmt(p, &p->f->stmts[i]);
    out_lit(p->to, "}\n");
}

static void print_item(struct printer *p, const struct ptx_item *item)
{
    if (item->kind == PTX_ITEM_FUNC) {
        p->f = item->func;
        p->last = NULL;
        print_func(p);
    } else if (item->kind == PTX_ITEM_VAR) {
        print_var(p, item->var);
        out_lit(p->to, ";\n");
    } else {
        out_str(p->to, *item->text);
        out_char(p->to, '\n');
    }
}

void ptx_print_header(const struct ptx_module *m, struct out *to)
{
    out_fmt(to, ".version %u.%u\n", m->version_major, m->version_minor);
    if (m->target.len)
        out_fmt(to, ".target " STR_FMT "\n", STR_ARG(m->target));
    if (m->address_size)
        out_fmt(to, ".address_size %u\n", m->address_size);
}

void ptx_print(const struct ptx_module *m, struct out *to)
{
    struct printer p = {.m = m, .to = to};
    ptx_print_header(m, to);
    for (uint32_t i = 0; i < m->nitems; i++)
        print_item(&p, &m->items[i]);
}

void ptx_print_item(const struct ptx_module *m, const struct ptx_item *item, struct out *to)
{
    print_item(&(struct printer){.m = m, .to = to}, item);
}

void ptx_print_func_head(const struct ptx_module *m, const struct ptx_func *f, struct out *to)
{
    print_head(&(struct printer){.m = m, .f = f, .to = to});
}

void ptx_print_func(const struct ptx_module *m, const struct ptx_func *f, struct out *to)
{
    print_func(&(struct printer){.m = m, .f = f, .to = to});
}

void ptx_print_stmt(const struct ptx_module *m, const struct ptx_func *f, const struct ptx_stmt *s,
                    struct out *to)
{
    print_stmt(&(struct printer){.m = m, .f = f, .to = to}, s);
}

void ptx_print_reg(const struct ptx_module *m, const struct ptx_func *f, uint32_t reg, struct out *to)
{
    print_reg(&(struct printer){.m = m, .f = f, .to = to}, reg);
}
