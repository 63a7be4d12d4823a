// SPDX-License-Identifier: MIT
// Which instructions are tried: a combination is a spelling with a shape of operands. They come from PTX
// texts, in which every instruction with a defined result is one combination; equal ones count once.
#ifndef MOAT_TEST_GOLDEN_COMBOS_H
#define MOAT_TEST_GOLDEN_COMBOS_H

#include <stdlib.h>

#include "base/map.h"
#include "base/out.h"
#include "base/vec.h"
#include "inputs.h"
#include "ptx/ptx.h"

enum combo_group {
    COMBO_NONE,    // not tried
    COMBO_LANE,    // registers to registers
    COMBO_WARP,    // the same, lanes together
    COMBO_MEMORY,  // a cell of 16 bytes for each thread
    COMBO_BLOCK,   // several instructions, from snippets.def
};

enum { COMBO_MOST = 24, COMBO_CELL = 16 };

struct combo_slot {
    uint8_t bits;  // of the register: 1, 8, 16, 32, 64, 128
    struct input input;
};

struct combo {
    char *text;         // "add.s32 %d0, %s0, %s1;"
    const char *label;  // to show; text itself, where that is one instruction
    const struct ptx_form *form;
    uint8_t group;
    uint8_t nin, nout;
    bool masked;    // the last source is the mask of lanes that execute it
    uint8_t space;  // MEMORY: where the cell is
    bool hinted;    // MEMORY: the last source is a cache policy
    bool clusters;  // launched in clusters of KERNEL_CLUSTER blocks
    struct combo_slot in[COMBO_MOST], out[COMBO_MOST];
};

struct combos {
    VEC(struct combo) list;
    VEC(struct ptx_module *) modules;
    VEC(char *) texts;
    VEC(struct ptx_form *) forms;  // those that no module has
    struct map seen;
    unsigned left_out[PTX_OP_COUNT];  // statements of an operation that are no combinations
};

static enum combo_group combo_group(unsigned id)
{
    if ((id >= PTX_OP_ADD && id <= PTX_OP_SHR) || id == PTX_OP_MOV || id == PTX_OP_PRMT || id == PTX_OP_CVT ||
        id == PTX_OP_CVT_PACK || (id >= PTX_OP_VADD && id <= PTX_OP_VSET4))
        return COMBO_LANE;
    switch (id) {
    case PTX_OP_SHFL:
    case PTX_OP_VOTE:
    case PTX_OP_MATCH:
    case PTX_OP_ACTIVEMASK:
    case PTX_OP_REDUX:
    case PTX_OP_ELECT:
    case PTX_OP_MMA:
    case PTX_OP_MOVMATRIX: return COMBO_WARP;
    case PTX_OP_LD:
    case PTX_OP_LDU:
    case PTX_OP_ST:
    case PTX_OP_ATOM:
    case PTX_OP_RED: return COMBO_MEMORY;
    default: return COMBO_NONE;
    }
}

// --- what an operand holds --------------------------------------------------------------------------------

static struct input input_of_type(enum ptx_type t, unsigned bits)
{
    struct input in = {.kind = INPUT_INT, .bits = (uint8_t)(bits > 64 ? 64 : bits), .parts = 1};
    switch (t) {
    case PTX_BF16: in.brain = true;  // fallthrough
    case PTX_F16:
    case PTX_TF32:
    case PTX_F32:
    case PTX_F64: in.kind = INPUT_FLOAT; break;
    case PTX_BF16X2: in.brain = true;  // fallthrough
    case PTX_F16X2:
        in.kind = INPUT_FLOAT;
        in.bits = 16;
        in.parts = 2;
        return in;
    case PTX_U16X2:
    case PTX_S16X2:
        in.bits = 16;
        in.parts = 2;
        return in;
    case PTX_PRED:
        in.kind = INPUT_PRED;
        in.bits = 1;
        return in;
    default:
        if (ptx_type_class(t) == PTX_CLASS_PACKED) {
            in.kind = INPUT_BYTES;
            return in;
        }
    }
    if (t != PTX_TYPE_NONE && ptx_type_bits(t) <= 64)
        in.bits = (uint8_t)ptx_type_bits(t);
    return in;
}

// Returns the type that the signature gives operand i; PTX_TYPE_NONE: only its width matters.
static enum ptx_type fit_type(const struct ptx_form *f, unsigned i)
{
    unsigned fit = f->rules[i].fit;
    if (f->id == PTX_OP_CVT && i >= 1)
        return f->types[1];
    if (f->id == PTX_OP_CVT_PACK)
        return i <= 2 ? f->types[i ? 1 : 0] : f->types[2];
    if (fit <= PTX_FIT_TYPE3)
        return f->types[fit];
    if (fit == PTX_FIT_LOOSE0 || fit == PTX_FIT_LOOSE1)
        return f->types[fit - PTX_FIT_LOOSE0];
    if (fit == PTX_FIT_WIDE && !ptx_form_has(f, PTX_MOD_WIDE))
        return f->types[0];
    if (f->id == PTX_OP_ATOM)
        return f->types[f->ntypes - 1];
    return fit == PTX_FIT_PRED ? PTX_PRED : PTX_TYPE_NONE;
}

// What a register of a matrix holds: as many elements as fit.
static struct input input_of_matrix(enum ptx_type t, unsigned bits)
{
    struct input in = {.kind = INPUT_MATRIX, .bits = (uint8_t)bits, .parts = 1};
    switch (t) {
    case PTX_BF16: in.brain = true;  // fallthrough
    case PTX_F16: in.bits = 16; break;
    case PTX_E5M2: in.brain = true;  // fallthrough
    case PTX_E4M3: in.bits = 8; break;
    case PTX_TF32: in.brain = true; break;
    case PTX_F32:
    case PTX_F64: break;
    default: in.kind = INPUT_WORD;
    }
    in.parts = (uint8_t)(bits / in.bits);
    return in;
}

static struct input input_of_operand(const struct ptx_form *f, unsigned i, unsigned bits)
{
    if (f->id == PTX_OP_MMA && i < f->ntypes)
        return input_of_matrix(f->types[i], bits);
    struct input in = input_of_type(fit_type(f, i), bits);
    switch (f->id) {
    case PTX_OP_SHL:
    case PTX_OP_SHR:
    case PTX_OP_SHF:
    case PTX_OP_BFE:
    case PTX_OP_BFI:
    case PTX_OP_SZEXT:
    case PTX_OP_BMSK:
        if (f->rules[i].fit == PTX_FIT_32 && i > 0 && !(f->id == PTX_OP_SHF && i < 3))
            in.kind = INPUT_SHIFT;
        break;
    case PTX_OP_FNS: in.kind = i == 1 ? INPUT_INT : INPUT_SMALL; break;
    case PTX_OP_SHFL:
        in.kind = i == 2 ? INPUT_LANE : i == 3 ? INPUT_SEGMENT : i == 4 ? INPUT_FULL : in.kind;
        break;
    case PTX_OP_VOTE: in.kind = i == 1 ? INPUT_VOTE : i == 2 ? INPUT_MASK : in.kind; break;
    case PTX_OP_MATCH: in.kind = i == 1 ? INPUT_FEW : INPUT_MASK; break;
    case PTX_OP_REDUX: in.kind = i == 2 ? INPUT_MASK : in.kind; break;
    case PTX_OP_ELECT: in.kind = INPUT_MASK; break;
    default: break;
    }
    return in;
}

// --- an instruction's text, with registers of its own -----------------------------------------------------

struct combo_reader {
    const struct ptx_module *module;
    const struct ptx_func *func;
    const struct ptx_stmt *stmt;
    struct combo *combo;
    struct out text;
};

static void out_selector(struct out *to, const struct ptx_operand *o)
{
    static const char *const names[] = {
        [PTX_SEL_B0] = ".b0", [PTX_SEL_B1] = ".b1", [PTX_SEL_B2] = ".b2",
        [PTX_SEL_B3] = ".b3", [PTX_SEL_H0] = ".h0", [PTX_SEL_H1] = ".h1",
    };
    if (o->sub == PTX_SEL_BYTES)
        out_fmt(to, ".b%0*llx", o->span, (unsigned long long)o->value);
    else if (o->sub == PTX_SEL_HALVES)
        out_fmt(to, ".h%0*llx", o->span, (unsigned long long)o->value);
    else if (o->sub != PTX_SEL_NONE)
        out_cstr(to, names[o->sub]);
}

static int read_register(struct combo_reader *r, const struct ptx_operand *o, unsigned i, bool written)
{
    struct combo *c = r->combo;
    const struct ptx_var *var = ptx_reg_var(r->func, o->id);
    unsigned bits = ptx_type_bits(var->type), count = written ? c->nout : c->nin;
    if (var->vec > 1 || count == COMBO_MOST || (o->sub > PTX_SEL_NONE && o->sub < PTX_SEL_B0))
        return -EINVAL;
    struct combo_slot *slot = written ? &c->out[c->nout++] : &c->in[c->nin++];
    slot->bits = (uint8_t)bits;
    slot->input = bits == 1 ? input_of_type(PTX_PRED, 1) : input_of_operand(r->stmt->form, i, bits);
    if (bits == 1 && r->stmt->form->id == PTX_OP_VOTE)
        slot->input.kind = INPUT_VOTE;
    out_fmt(&r->text, "%s%%%c%u", o->negated ? (bits == 1 ? "!" : "-") : "", written ? 'd' : 's', count);
    out_selector(&r->text, o);
    return 0;
}

static int read_immediate(struct combo_reader *r, const struct ptx_operand *o)
{
    if (o->negated)
        out_char(&r->text, '-');
    if (o->spelled)
        out_bytes(&r->text, r->module->source.text.ptr + o->id, o->span);
    else if (o->sub == PTX_IMM_INT)
        out_i64(&r->text, o->value);
    else
        out_fmt(&r->text, o->sub == PTX_IMM_F32 ? "0f%08llX" : "0d%016llX", (unsigned long long)o->value);
    return 0;
}

static int read_operand(struct combo_reader *r, const struct ptx_operand *o, unsigned i, bool written);

static int read_group(struct combo_reader *r, const struct ptx_operand *o, unsigned i, bool written)
{
    const struct ptx_operand *item = o + 1;
    if (o->kind == PTX_VEC)
        out_char(&r->text, '{');
    for (int64_t k = 0; k < o->value; k++, item = ptx_next(item)) {
        if (k)
            out_cstr(&r->text, o->kind == PTX_VEC ? ", " : "|");
        if (read_operand(r, item, i, written))
            return -EINVAL;
    }
    if (o->kind == PTX_VEC)
        out_char(&r->text, '}');
    return 0;
}

static int read_operand(struct combo_reader *r, const struct ptx_operand *o, unsigned i, bool written)
{
    switch (o->kind) {
    case PTX_REG: return read_register(r, o, i, written);
    case PTX_IMM: return read_immediate(r, o);
    case PTX_SINK: out_char(&r->text, '_'); return 0;
    case PTX_VEC:
    case PTX_PAIR: return read_group(r, o, i, written);
    case PTX_ADDR: out_lit(&r->text, "[%a]"); return o->unified ? -EINVAL : 0;
    default: return -EINVAL;
    }
}

static enum ptx_space cell_space(const struct ptx_form *f)
{
    return f->nspaces ? f->spaces[0] : PTX_SPACE_GENERIC;
}

static int read_stmt(struct combo_reader *r)
{
    const struct ptx_stmt *s = r->stmt;
    struct combo *c = r->combo;
    out_fmt(&r->text, STR_FMT, STR_ARG(s->form->name));
    unsigned i = 0;
    const struct ptx_operand *end = s->operands + s->nslots, *last = NULL;
    for (const struct ptx_operand *o = s->operands; o < end; o = ptx_next(o), i++) {
        unsigned role = s->form->rules[i].role;
        bool written = role == PTX_ROLE_WRITE;
        bool memory = role >= PTX_ROLE_MEM_READ && role <= PTX_ROLE_MEM_ATOMIC;
        if (i >= s->form->nrules || (memory != (o->kind == PTX_ADDR)) ||
            (!written && !memory && role != PTX_ROLE_READ))
            return -EINVAL;
        last = o;
        out_cstr(&r->text, i ? ", " : " ");
        if (read_operand(r, o, i, written))
            return -EINVAL;
    }
    out_lit(&r->text, ";");
    if (c->group == COMBO_WARP && last && last->kind == PTX_IMM && (uint32_t)last->value != UINT32_MAX)
        return -EINVAL;  // lanes outside the mask would execute it
    c->form = s->form;
    c->masked = c->nin && c->in[c->nin - 1].input.kind == INPUT_MASK;
    if (c->group == COMBO_MEMORY) {
        c->space = (uint8_t)cell_space(s->form);
        if (c->space == PTX_SPACE_PARAM_FUNC || (ptx_space_is(c->space) == PTX_SPACE_PARAM && !c->nout))
            return -EINVAL;  // part of a call
        c->hinted = ptx_form_has(s->form, PTX_MOD_L2_CACHE_HINT);
    }
    return 0;
}

// --- texts ------------------------------------------------------------------------------------------------

static int combos_add_stmt(struct combos *all, const struct ptx_module *m, const struct ptx_func *f,
                           const struct ptx_stmt *s)
{
    struct combo c = {.group = (uint8_t)combo_group(s->form->id)};
    if (ptx_form_has(s->form, PTX_MOD_SP) || ptx_form_has(s->form, PTX_MOD_SP_ORDERED_METADATA))
        c.group = COMBO_NONE;
    struct combo_reader r = {m, f, s, &c, {0}};
    if (c.group == COMBO_NONE || s->form->odd || out_to_memory(&r.text) || read_stmt(&r)) {
        all->left_out[s->form->id]++;
        out_close(&r.text);
        return 0;
    }
    struct str text = {r.text.buf, r.text.len};
    int err = 0;
    if (map_get(&all->seen, text) == MAP_NONE) {
        c.label = c.text = strndup(text.ptr, text.len);
        if (!c.text || vec_push(&all->list, c) ||
            map_put(&all->seen, str_from(c.text), (uint32_t)(all->list.len - 1)))
            err = -ENOMEM;
    }
    out_close(&r.text);
    return err;
}

// Adds the instructions of a text; the text belongs to `all` from now on.
static int combos_add_text(struct combos *all, const char *name, char *text)
{
    struct diag_printer errors;
    struct ptx_module *m = NULL;
    diag_printer_init(&errors, 20);
    if (vec_push(&all->texts, text))
        return -ENOMEM;
    int err = ptx_parse(name, str_from(text), &errors.sink, NULL, &m);
    diag_printer_finish(&errors);
    if (err || vec_push(&all->modules, m))
        return err ? err : -ENOMEM;
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_func *f = m->items[i].kind == PTX_ITEM_FUNC ? m->items[i].func : NULL;
        for (uint32_t k = 0; f && k < f->nstmts; k++)
            if (f->stmts[k].kind == PTX_INSN && (err = combos_add_stmt(all, m, f, &f->stmts[k])))
                return err;
    }
    return 0;
}

// Returns sm_NN of the .target line; texts for newer GPUs are skipped.
static unsigned text_target(const char *text)
{
    const char *at = strstr(text, "\n.target sm_");
    return at ? (unsigned)strtoul(at + strlen("\n.target sm_"), NULL, 10) : 0;
}

static void combo_free(struct combo *c)
{
    if (c->label != c->text)
        free((char *)c->label);
    free(c->text);
}

static void combos_free(struct combos *all)
{
    for (size_t i = 0; i < all->list.len; i++)
        combo_free(&all->list.items[i]);
    for (size_t i = 0; i < all->modules.len; i++)
        ptx_free(all->modules.items[i]);
    for (size_t i = 0; i < all->texts.len; i++)
        free(all->texts.items[i]);
    for (size_t i = 0; i < all->forms.len; i++)
        mem_free(all->forms.items[i]);
    vec_free(&all->list);
    vec_free(&all->forms);
    vec_free(&all->modules);
    vec_free(&all->texts);
    map_free(&all->seen);
}

#endif
