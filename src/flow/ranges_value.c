// SPDX-License-Identifier: MIT
// Translates instructions into those of a proof program. What has no row here becomes OPAQUE and is
// counted; so a forgotten instruction costs precision, not truth.
#include "flow/multiples.h"
#include "flow/ranges_build.h"

// The statement being translated.
struct source {
    struct ranges_build *b;
    uint32_t stmt, reg;  // reg: index of the register that is asked for
    const struct ptx_stmt *s;
    ranges_node *node;
    void *ctx;
};

static uint32_t emit(struct source *x, uint8_t op, uint32_t a, uint32_t b)
{
    return ranges_emit(x->b, (struct proof_insn){.op = op, .a = a, .b = b});
}

static uint32_t emit_bits(struct source *x, uint8_t op, unsigned bits, uint32_t a, uint32_t b)
{
    return ranges_emit(x->b, (struct proof_insn){.op = op, .bits = (uint8_t)bits, .a = a, .b = b});
}

static uint32_t number(struct source *x, int64_t v)
{
    return ranges_const(x->b, v);
}

static enum ptx_type_class class_of(const struct ptx_form *f, unsigned i)
{
    return i < f->ntypes ? ptx_type_class((enum ptx_type)f->types[i]) : PTX_CLASS_NONE;
}

static bool is_int(const struct ptx_form *f, unsigned i)
{
    enum ptx_type_class k = class_of(f, i);
    return k == PTX_CLASS_BITS || k == PTX_CLASS_UINT || k == PTX_CLASS_SINT;
}

static unsigned bits_of(const struct ptx_form *f, unsigned i)
{
    return ptx_type_bits((enum ptx_type)f->types[i]);
}

static bool is_signed(const struct ptx_form *f, unsigned i)
{
    return class_of(f, i) == PTX_CLASS_SINT;
}

static unsigned reg_bits(const struct ranges_build *b, uint32_t index)
{
    return ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, b->regs->reg[index])->type);
}

static uint32_t opaque(struct source *x, uint8_t reason)
{
    return ranges_opaque(x->b, x->reg, reason, reason == PROOF_WHY_OPERATOR ? x->s->form : NULL);
}

// A value of a type, extended to the width of its register.
static uint32_t typed(struct source *x, unsigned bits, bool sign, uint8_t reason)
{
    if (bits > 64)
        return opaque(x, reason);
    return ranges_emit(
        x->b, (struct proof_insn){.op = PROOF_OPAQUE, .bits = (uint8_t)bits, .sign = sign, .reason = reason});
}

// --- operands ----------------------------------------------------------------------------------------------

static uint32_t variable(struct source *x, const struct ptx_operand *o)
{
    const struct ptx_sym *sym = ptx_sym(x->b->m, o->id);
    if (sym->kind != PTX_SYM_VAR)
        return opaque(x, PROOF_WHY_OPERATOR);
    struct proof_root root = {.size = ptx_var_size(sym->var), .power = multiples_of_variable(sym->var)};
    switch (ptx_space_is((enum ptx_space)sym->var->space)) {
    case PTX_SPACE_GLOBAL: root.kind = PROOF_ROOT_GLOBAL; break;
    case PTX_SPACE_CONST: root.kind = PROOF_ROOT_CONST; break;
    case PTX_SPACE_SHARED: root.kind = PROOF_ROOT_SHARED; break;
    case PTX_SPACE_LOCAL: root.kind = PROOF_ROOT_LOCAL; break;
    default: return opaque(x, PROOF_WHY_NO_ROOT);
    }
    uint32_t at = ranges_root(x->b, root, sym->name);
    if (at == PROOF_NONE)
        return opaque(x, PROOF_WHY_COMPLEX);
    return ranges_emit(x->b, (struct proof_insn){.op = PROOF_BASE, .a = at});
}

static uint32_t special(struct source *x, const struct ptx_operand *o)
{
    static const struct {
        uint16_t sreg;
        uint8_t launch;
    } of[] = {{PTX_SREG_TID, PROOF_TID},
              {PTX_SREG_NTID, PROOF_NTID},
              {PTX_SREG_CTAID, PROOF_CTAID},
              {PTX_SREG_NCTAID, PROOF_NCTAID}};
    for (unsigned i = 0; i < 4; i++)
        if (o->id == of[i].sreg && o->sub >= PTX_SEL_X && o->sub <= PTX_SEL_Z)
            return ranges_emit(
                x->b, (struct proof_insn){.op = PROOF_LAUNCH, .imm = of[i].launch + o->sub - PTX_SEL_X});
    if (o->id == PTX_SREG_LANEID)
        return ranges_emit(x->b, (struct proof_insn){.op = PROOF_BETWEEN, .imm = 31});
    if (o->id == PTX_SREG_DYNAMIC_SMEM_SIZE)
        return ranges_emit(x->b, (struct proof_insn){.op = PROOF_LAUNCH, .imm = PROOF_DYNAMIC_SHARED});
    return opaque(x, PROOF_WHY_SPECIAL);
}

static uint32_t operand(struct source *x, unsigned i)
{
    const struct ptx_operand *o = ptx_operand(x->s, i);
    uint32_t value;
    if (!o)
        return opaque(x, PROOF_WHY_OPERATOR);
    switch (o->kind) {
    case PTX_REG:
        value = o->sub == PTX_SEL_NONE ? ranges_read(x->b, x->stmt, o->id) : REACH_NONE;
        return value == REACH_NONE ? opaque(x, PROOF_WHY_OPERATOR) : x->node(x->b, value, x->ctx);
    case PTX_IMM: return o->sub == PTX_IMM_INT ? number(x, o->value) : opaque(x, PROOF_WHY_CONVERTED);
    case PTX_SREG: return special(x, o);
    case PTX_SYM: {
        uint32_t at = variable(x, o);
        return o->value ? emit(x, PROOF_ADD, at, number(x, o->value)) : at;
    }
    default: return opaque(x, PROOF_WHY_OPERATOR);
    }
}

// The number that an operand's low bits stand for.
static uint32_t exact(struct source *x, unsigned i, unsigned bits, bool sign)
{
    return ranges_extend(x->b, operand(x, i), bits, sign);
}

static uint32_t predicate_of(struct source *x, const struct ptx_operand *o)
{
    uint32_t value = o && o->kind == PTX_REG ? ranges_read(x->b, x->stmt, o->id) : REACH_NONE;
    uint32_t at;
    if (o && o->kind == PTX_IMM)
        at = ranges_emit(x->b, (struct proof_insn){.op = PROOF_ALWAYS, .imm = o->value != 0});
    else if (value == REACH_NONE || !ranges_is_pred(x->b, value))
        at = ranges_emit(x->b, (struct proof_insn){.op = PROOF_CHANCE});
    else
        at = x->node(x->b, value, x->ctx);
    return o && o->negated ? emit(x, PROOF_OPPOSITE, at, 0) : at;
}

static uint32_t predicate(struct source *x, unsigned i)
{
    return predicate_of(x, ptx_operand(x->s, i));
}

bool ranges_constant(const struct ptx_stmt *s, unsigned i, int64_t *v)
{
    const struct ptx_operand *o = ptx_operand(s, i);
    if (!o || o->kind != PTX_IMM || o->sub != PTX_IMM_INT)
        return false;
    *v = o->value;
    return true;
}

// --- loads of parameters -----------------------------------------------------------------------------------

// The parameter that an address points into, and the byte inside it.
static bool parameter_of(struct source *x, const struct ptx_operand *o, uint32_t *param, int64_t *inside)
{
    const struct ranges_build *b = x->b;
    if (!o || o->kind != PTX_ADDR)
        return false;
    uint32_t sym = o->id;
    *inside = o->value;
    if (o->sub == PTX_BASE_REG) {
        uint32_t value = ranges_read(b, x->stmt, o->id);
        const struct reach_value *v = value == REACH_NONE ? NULL : &b->reach->value.items[value];
        if (!v || v->kind != REACH_DEF || v->partial || b->f->stmts[v->place].form->id != PTX_OP_MOV)
            return false;
        const struct ptx_operand *from = ptx_operand(&b->f->stmts[v->place], 1);
        if (!from || from->kind != PTX_SYM || __builtin_add_overflow(*inside, from->value, inside))
            return false;
        sym = from->id;
    } else if (o->sub != PTX_BASE_SYM) {
        return false;
    }
    for (uint32_t i = 0; i < b->f->nparams && b->f->is_entry; i++) {
        if (b->f->params[i].sym == sym) {
            *param = i;
            return *inside >= 0;
        }
    }
    return false;
}

// The place of the register that is asked for among those that a load writes.
static int item_of(struct source *x)
{
    const struct ptx_operand *o = x->s->operands;
    if (o->kind == PTX_REG)
        return 0;
    for (int i = 0; o->kind == PTX_VEC && i < o->span; i++)
        if (o[1 + i].kind == PTX_REG && regs_index(x->b->regs, o[1 + i].id) == x->reg)
            return i;
    return -1;
}

static uint32_t load_parameter(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    struct ranges_build *b = x->b;
    uint32_t param;
    int64_t inside;
    int item = item_of(x);
    if (!b->f->is_entry)
        return opaque(x, PROOF_WHY_ARGUMENT);
    if (!f->ntypes)
        return opaque(x, PROOF_WHY_CONVERTED);
    unsigned bits = bits_of(f, f->ntypes - 1u);
    if (item < 0 || !parameter_of(x, ptx_operand(x->s, 1), &param, &inside))
        return opaque(x, PROOF_WHY_CALLED);
    if (!is_int(f, f->ntypes - 1u) || bits < 8 || bits > 64)
        return opaque(x, PROOF_WHY_CONVERTED);
    inside += item * (bits / 8);
    const struct ptx_var *var = &b->f->params[param];
    if (inside + bits / 8 > (int64_t)ptx_var_size(var))
        return opaque(x, PROOF_WHY_UNDEFINED);
    struct proof_insn i = {
        .op = PROOF_PARAM, .bits = (uint8_t)bits, .sign = is_signed(f, f->ntypes - 1u), .a = PROOF_NONE};
    i.imm = b->param_at[param] + inside;
    if (i.imm + bits / 8 > b->params)
        b->params = (uint32_t)i.imm + bits / 8;
    if (bits == 64) {
        struct proof_root root = {.kind = PROOF_ROOT_PARAM, .param = param, .at = (uint32_t)i.imm};
        root.inside = (uint32_t)inside;
        root.strong = var->is_ptr && !inside;
        i.a = ranges_root(b, root, ptx_sym(b->m, var->sym)->name);
    }
    return ranges_emit(b, i);
}

static uint32_t load(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    unsigned last = f->ntypes ? f->ntypes - 1u : 0;
    if (f->nspaces && ptx_space_is((enum ptx_space)f->spaces[0]) == PTX_SPACE_PARAM)
        return load_parameter(x);
    if (!is_int(f, last) || item_of(x) < 0)
        return opaque(x, PROOF_WHY_LOADED_INDEX);
    return typed(x, bits_of(f, last), is_signed(f, last), PROOF_WHY_LOADED_INDEX);
}

// --- arithmetic --------------------------------------------------------------------------------------------

static uint32_t multiply(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    unsigned bits = bits_of(f, 0);
    bool sign = is_signed(f, 0), wide = ptx_form_has(f, PTX_MOD_WIDE), high = ptx_form_has(f, PTX_MOD_HI);
    if (f->id == PTX_OP_MUL24 || f->id == PTX_OP_MAD24) {
        if (high)
            return opaque(x, PROOF_WHY_OPERATOR);
        return emit(x, PROOF_MUL, exact(x, 1, 24, sign), exact(x, 2, 24, sign));
    }
    if (!wide && !high)
        return emit(x, PROOF_MUL, operand(x, 1), operand(x, 2));
    uint32_t at = emit(x, PROOF_MUL, exact(x, 1, bits, sign), exact(x, 2, bits, sign));
    if (wide)
        return at;
    if (bits > 32)
        return opaque(x, PROOF_WHY_OPERATOR);
    return emit_bits(x, PROOF_SHR, 64, ranges_extend(x->b, at, 64, true), number(x, bits));
}

static uint32_t convert(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    if (f->ntypes != 2 || !is_int(f, 0))
        return opaque(x, PROOF_WHY_CONVERTED);
    unsigned to = bits_of(f, 0), from = bits_of(f, 1), reg = reg_bits(x->b, x->reg);
    if (!is_int(f, 1))
        return typed(x, to, is_signed(f, 0), PROOF_WHY_CONVERTED);
    if (ptx_form_has(f, PTX_MOD_SAT))
        return typed(x, to, is_signed(f, 0), PROOF_WHY_OPERATOR);
    if (to > from)
        return exact(x, 1, from, is_signed(f, 1));
    return reg > to ? exact(x, 1, to, is_signed(f, 0)) : operand(x, 1);
}

static uint32_t min_or_max(struct source *x, uint8_t op)
{
    const struct ptx_form *f = x->s->form;
    unsigned bits = bits_of(f, 0);
    bool sign = is_signed(f, 0);
    if (ptx_operand(x->s, 3))
        return opaque(x, PROOF_WHY_OPERATOR);
    return emit(x, op, exact(x, 1, bits, sign), exact(x, 2, bits, sign));
}

static uint32_t take_field(struct source *x, uint32_t a, unsigned pos, unsigned len)
{
    return ranges_emit(x->b, (struct proof_insn){.op = PROOF_FIELD, .a = a, .b = len, .imm = pos});
}

static uint32_t extract(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    unsigned bits = bits_of(f, 0);
    int64_t pos, len;
    if (!ranges_constant(x->s, 2, &pos) || !ranges_constant(x->s, 3, &len))
        return opaque(x, PROOF_WHY_BITS);
    pos &= 255;
    len &= 255;
    if (is_signed(f, 0) && (pos + len > bits || !len))
        return opaque(x, PROOF_WHY_BITS);
    if (pos >= bits || !len)
        return number(x, 0);
    len = pos + len > bits ? bits - pos : len;
    uint32_t at = take_field(x, operand(x, 1), (unsigned)pos, (unsigned)len);
    return is_signed(f, 0) ? ranges_extend(x->b, at, (unsigned)len, true) : at;
}

static uint32_t insert(struct source *x)
{
    unsigned bits = bits_of(x->s->form, 0);
    int64_t pos, len;
    if (!ranges_constant(x->s, 3, &pos) || !ranges_constant(x->s, 4, &len))
        return opaque(x, PROOF_WHY_BITS);
    pos &= 255;
    len &= 255;
    if (pos >= bits || !len)
        return operand(x, 2);
    len = pos + len > bits ? bits - pos : len;
    uint32_t from = operand(x, 1), to = operand(x, 2), unit = number(x, pos < 63 ? 1LL << pos : 0);
    if (pos >= 63)
        return opaque(x, PROOF_WHY_BITS);
    if (pos + len == bits)
        return emit(x, PROOF_ADD, pos ? take_field(x, to, 0, (unsigned)pos) : number(x, 0),
                    emit(x, PROOF_MUL, from, unit));
    uint32_t cleared =
        emit(x, PROOF_SUB, to, emit(x, PROOF_MUL, unit, take_field(x, to, (unsigned)pos, (unsigned)len)));
    return emit(x, PROOF_ADD, cleared, emit(x, PROOF_MUL, unit, take_field(x, from, 0, (unsigned)len)));
}

// bmsk.clamp: as many ones as the width says, moved up to the position. Like shl, it gives 0 above 31.
static uint32_t mask(struct source *x)
{
    if (!ptx_form_has(x->s->form, PTX_MOD_CLAMP))
        return opaque(x, PROOF_WHY_OPERATOR);
    uint32_t end = emit_bits(x, PROOF_SHL, 32, number(x, 1), exact(x, 2, 32, false));
    return emit_bits(x, PROOF_SHL, 32, emit(x, PROOF_SUB, end, number(x, 1)), exact(x, 1, 32, false));
}

// Three-input logic of which the table is one of two-input operations.
static uint32_t lop3(struct source *x)
{
    static const struct {
        uint8_t table, first, second, one, two, then;  // (one first two) second then, by operand
    } of[] = {{0x80, PROOF_AND, PROOF_AND, 1, 2, 3}, {0xFE, PROOF_OR, PROOF_OR, 1, 2, 3},
              {0x96, PROOF_XOR, PROOF_XOR, 1, 2, 3}, {0xEA, PROOF_AND, PROOF_OR, 1, 2, 3},
              {0xF8, PROOF_AND, PROOF_OR, 2, 3, 1},  {0xEC, PROOF_AND, PROOF_OR, 1, 3, 2},
              {0xA8, PROOF_OR, PROOF_AND, 1, 2, 3},  {0xE0, PROOF_OR, PROOF_AND, 2, 3, 1},
              {0xC8, PROOF_OR, PROOF_AND, 1, 3, 2},  {0x6A, PROOF_AND, PROOF_XOR, 1, 2, 3},
              {0x78, PROOF_AND, PROOF_XOR, 2, 3, 1}, {0x6C, PROOF_AND, PROOF_XOR, 1, 3, 2}};
    int64_t table;
    unsigned bits = bits_of(x->s->form, 0);
    if (ptx_operand(x->s, 5) || !ranges_constant(x->s, 4, &table) || x->s->operands[0].kind != PTX_REG)
        return opaque(x, PROOF_WHY_OPERATOR);
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].table == table)
            return emit_bits(x, of[i].second, bits,
                             emit_bits(x, of[i].first, bits, operand(x, of[i].one), operand(x, of[i].two)),
                             operand(x, of[i].then));
    return opaque(x, PROOF_WHY_OPERATOR);
}

// --- moves -------------------------------------------------------------------------------------------------

// mov.b64 {lo, hi}, x and mov.b64 x, {lo, hi}
static uint32_t move(struct source *x)
{
    const struct ptx_operand *to = x->s->operands, *from = ptx_operand(x->s, 1);
    unsigned bits = bits_of(x->s->form, 0);
    if (!from)
        return opaque(x, PROOF_WHY_OPERATOR);
    if (to->kind == PTX_REG && from->kind != PTX_VEC)
        return operand(x, 1);
    if (to->kind == PTX_VEC && from->kind == PTX_REG && bits <= 64) {
        int item = item_of(x);
        unsigned len = bits / (unsigned)to->value;
        return item < 0 ? opaque(x, PROOF_WHY_OPERATOR)
                        : take_field(x, operand(x, 1), (unsigned)item * len, len);
    }
    if (to->kind == PTX_REG && from->kind == PTX_VEC && from->value == 2 && bits == 64 &&
        from[1].kind == PTX_REG && from[2].kind == PTX_REG) {
        uint32_t lo = ranges_read(x->b, x->stmt, from[1].id), hi = ranges_read(x->b, x->stmt, from[2].id);
        if (lo == REACH_NONE || hi == REACH_NONE)
            return opaque(x, PROOF_WHY_OPERATOR);
        uint32_t high = x->node(x->b, hi, x->ctx), low = x->node(x->b, lo, x->ctx);
        return emit(x, PROOF_ADD, ranges_extend(x->b, low, 32, false),
                    emit(x, PROOF_MUL, high, number(x, 1LL << 32)));
    }
    return opaque(x, PROOF_WHY_OPERATOR);
}

// Notes that a parameter, or each of several, is used as a pointer. Out of memory, there may be no
// instruction `at`.
static void use_as_pointer(struct ranges_build *b, uint32_t at)
{
    const struct proof_insn *i = b->failed ? NULL : &b->insns.items[at];
    if (i && i->op == PROOF_PARAM && i->a != PROOF_NONE)
        b->roots.items[i->a].strong = 1;
    if (!i || i->op != PROOF_CHOICE)
        return;
    struct proof_root *choice = &b->roots.items[i->b];
    choice->strong = 1;
    for (uint32_t k = 0; k < b->roots.len && k < 64; k++)
        if (choice->size >> k & 1)
            b->roots.items[k].strong = 1;
}

static uint32_t cast(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    enum ptx_space space = f->nspaces ? ptx_space_is((enum ptx_space)f->spaces[0]) : PTX_SPACE_GENERIC;
    uint32_t at = operand(x, 1);
    use_as_pointer(x->b, at);
    if (space == PTX_SPACE_GLOBAL)  // the same number in both spaces
        return at;
    if (space != PTX_SPACE_SHARED && space != PTX_SPACE_LOCAL && space != PTX_SPACE_CONST)
        return opaque(x, PROOF_WHY_OPERATOR);
    return ranges_emit(x->b,
                       (struct proof_insn){.op = PROOF_CAST, .a = at, .imm = !ptx_form_has(f, PTX_MOD_TO)});
}

static uint8_t opaque_reason(const struct ptx_stmt *s)
{
    switch (s->form->id) {
    case PTX_OP_ATOM: return PROOF_WHY_ATOMIC;
    case PTX_OP_SHFL:
    case PTX_OP_VOTE:
    case PTX_OP_MATCH:
    case PTX_OP_ACTIVEMASK:
    case PTX_OP_REDUX:
    case PTX_OP_ELECT: return PROOF_WHY_EXCHANGED;
    case PTX_OP_CALL: return PROOF_WHY_CALLED;
    case PTX_OP_LD:
    case PTX_OP_LDU:
    case PTX_OP_TEX:
    case PTX_OP_TLD4:
    case PTX_OP_SULD: return PROOF_WHY_LOADED_INDEX;
    default: break;
    }
    enum ptx_type_class k = class_of(s->form, 0);
    return k == PTX_CLASS_FLOAT ? PROOF_WHY_CONVERTED : PROOF_WHY_OPERATOR;
}

// --- predicates --------------------------------------------------------------------------------------------

// Returns bits 0 to 30 of the number of 32 bits whose magnitude an operand is. PROOF_NONE if it is none, or
// if nothing else asks for that number's bits.
static uint32_t magnitude(struct source *x, unsigned i)
{
    const struct ranges_build *b = x->b;
    const struct ptx_operand *o = ptx_operand(x->s, i);
    bool plain = o && o->kind == PTX_REG && o->sub == PTX_SEL_NONE;
    uint32_t value = plain ? ranges_read(b, x->stmt, o->id) : REACH_NONE;
    const struct reach_value *v = value == REACH_NONE ? NULL : &b->reach->value.items[value];
    const struct ptx_stmt *s = v && v->kind == REACH_DEF && !v->partial ? &b->f->stmts[v->place] : NULL;
    if (!s || s->form->odd || s->form->id != PTX_OP_ABS || s->form->ntypes != 1 ||
        s->form->types[0] != PTX_F32)
        return PROOF_NONE;
    o = ptx_operand(s, 1);
    plain = o && o->kind == PTX_REG && o->sub == PTX_SEL_NONE;
    value = plain ? ranges_read(b, v->place, o->id) : REACH_NONE;
    if (value == REACH_NONE || !b->needed[value])
        return PROOF_NONE;
    return take_field(x, ranges_extend(x->b, x->node(x->b, value, x->ctx), 32, false), 0, 31);
}

// A comparison of |y| with a number c that is not below the smallest normal one, as one of their bits 0 to
// 30: these grow with the number, and those of NaN are above those of infinity. NaN has no ordered relation
// to c, and each unordered one. A subnormal |y| may count as 0: it is below c all the same.
static uint32_t compare_magnitude(struct source *x)
{
    enum { NORMAL = 0x00800000, INFINITE = 0x7F800000 };
    static const struct {
        uint16_t mod;
        uint8_t relation, of_nan;  // of_nan: whether bits of NaN have the relation
        bool unordered;
    } of[] = {{PTX_MOD_LT, PROOF_LT, 0, 0},  {PTX_MOD_LE, PROOF_LE, 0, 0},  {PTX_MOD_GT, PROOF_GT, 1, 0},
              {PTX_MOD_GE, PROOF_GE, 1, 0},  {PTX_MOD_EQ, PROOF_EQ, 0, 0},  {PTX_MOD_NE, PROOF_NE, 1, 0},
              {PTX_MOD_LTU, PROOF_LT, 0, 1}, {PTX_MOD_LEU, PROOF_LE, 0, 1}, {PTX_MOD_GTU, PROOF_GT, 1, 1},
              {PTX_MOD_GEU, PROOF_GE, 1, 1}, {PTX_MOD_EQU, PROOF_EQ, 0, 1}, {PTX_MOD_NEU, PROOF_NE, 1, 1}};
    const struct ptx_operand *o = ptx_operand(x->s, 2);
    int64_t c = o && o->kind == PTX_IMM && o->sub == PTX_IMM_F32 ? (int64_t)(uint32_t)o->value : 0;
    unsigned k = 0;
    while (k < sizeof of / sizeof *of && !ptx_form_has(x->s->form, (enum ptx_mod)of[k].mod))
        k++;
    uint32_t m = k < sizeof of / sizeof *of && c >= NORMAL && c <= INFINITE ? magnitude(x, 1) : PROOF_NONE;
    if (m == PROOF_NONE)
        return ranges_emit(x->b, (struct proof_insn){.op = PROOF_CHANCE});
    uint32_t at = ranges_emit(
        x->b, (struct proof_insn){.op = PROOF_COMPARE, .sign = of[k].relation, .a = m, .b = number(x, c)});
    if (of[k].of_nan == of[k].unordered)
        return at;
    uint32_t nan = ranges_emit(
        x->b, (struct proof_insn){.op = PROOF_COMPARE, .sign = PROOF_GT, .a = m, .b = number(x, INFINITE)});
    return of[k].unordered ? emit(x, PROOF_EITHER, at, nan)
                           : emit(x, PROOF_BOTH, at, emit(x, PROOF_OPPOSITE, nan, 0));
}

// The comparison of a setp alone.
static uint32_t compare_two(struct source *x)
{
    static const struct {
        uint16_t mod;
        uint8_t relation;
    } of[] = {{PTX_MOD_LT, PROOF_LT}, {PTX_MOD_LE, PROOF_LE}, {PTX_MOD_GT, PROOF_GT}, {PTX_MOD_GE, PROOF_GE},
              {PTX_MOD_EQ, PROOF_EQ}, {PTX_MOD_NE, PROOF_NE}, {PTX_MOD_LO, PROOF_LT}, {PTX_MOD_LS, PROOF_LE},
              {PTX_MOD_HI, PROOF_GT}, {PTX_MOD_HS, PROOF_GE}};
    const struct ptx_form *f = x->s->form;
    unsigned bits = bits_of(f, 0), k = 0;
    if (f->types[0] == PTX_F32)
        return compare_magnitude(x);
    while (k < sizeof of / sizeof *of && !ptx_form_has(f, (enum ptx_mod)of[k].mod))
        k++;
    if (k == sizeof of / sizeof *of || !is_int(f, 0))
        return ranges_emit(x->b, (struct proof_insn){.op = PROOF_CHANCE});
    // Equal bits are equal numbers, signed or not.
    bool sign = is_signed(f, 0) || of[k].relation == PROOF_EQ || of[k].relation == PROOF_NE;
    uint32_t a = exact(x, 1, bits, sign), b = exact(x, 2, bits, sign);
    return ranges_emit(x->b,
                       (struct proof_insn){.op = PROOF_COMPARE, .sign = of[k].relation, .a = a, .b = b});
}

static uint32_t compare(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    bool second =
        x->s->operands[0].kind == PTX_PAIR && regs_index(x->b->regs, x->s->operands[2].id) == x->reg;
    if (!f->ntypes || (second && ptx_operand(x->s, 3)))
        return ranges_emit(x->b, (struct proof_insn){.op = PROOF_CHANCE});
    uint32_t at = compare_two(x);
    if (second)
        return emit(x, PROOF_OPPOSITE, at, 0);
    if (!ptx_operand(x->s, 3))
        return at;
    uint32_t c = predicate(x, 3);
    if (ptx_form_has(f, PTX_MOD_AND))
        return emit(x, PROOF_BOTH, at, c);
    if (ptx_form_has(f, PTX_MOD_OR))
        return emit(x, PROOF_EITHER, at, c);
    return emit(x, ptx_form_has(f, PTX_MOD_XOR) ? PROOF_DIFFER : PROOF_CHANCE, at, c);
}

static uint32_t translate_predicate(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    bool pred = f->ntypes && f->types[0] == PTX_PRED;
    switch (f->id) {
    case PTX_OP_SETP: return compare(x);
    case PTX_OP_AND: return pred ? emit(x, PROOF_BOTH, predicate(x, 1), predicate(x, 2)) : opaque(x, 0);
    case PTX_OP_OR: return pred ? emit(x, PROOF_EITHER, predicate(x, 1), predicate(x, 2)) : opaque(x, 0);
    case PTX_OP_XOR: return pred ? emit(x, PROOF_DIFFER, predicate(x, 1), predicate(x, 2)) : opaque(x, 0);
    case PTX_OP_NOT: return pred ? emit(x, PROOF_OPPOSITE, predicate(x, 1), 0) : opaque(x, 0);
    case PTX_OP_MOV: return predicate(x, 1);
    default: return ranges_emit(x->b, (struct proof_insn){.op = PROOF_CHANCE});
    }
}

// --- all ---------------------------------------------------------------------------------------------------

bool ranges_understood(const struct ptx_stmt *s)
{
    const struct ptx_form *f = s->form;
    if (f->odd || f->id == PTX_OP_UNKNOWN)
        return false;
    switch (f->id) {
    case PTX_OP_SETP:
    case PTX_OP_CVT:
    case PTX_OP_SELP:
    case PTX_OP_MOV:
    case PTX_OP_CVTA: break;
    case PTX_OP_LD: return f->nspaces && ptx_space_is((enum ptx_space)f->spaces[0]) == PTX_SPACE_PARAM;
    default:
        if (f->vec != 1 || ptx_form_has(f, PTX_MOD_SAT))
            return false;
    }
    for (unsigned i = 0; i < f->ntypes; i++)
        if (!is_int(f, i) && f->types[i] != PTX_PRED)
            return false;
    return f->ntypes > 0;
}

static uint32_t translate_value(struct source *x)
{
    const struct ptx_form *f = x->s->form;
    unsigned bits = f->ntypes && is_int(f, 0) ? bits_of(f, 0) : 64;
    bool sign = is_signed(f, 0);
    if (f->id == PTX_OP_LD || f->id == PTX_OP_LDU)
        return load(x);
    if (f->id == PTX_OP_CVT)
        return convert(x);
    if (!ranges_understood(x->s) || bits > 64)
        return opaque(x, opaque_reason(x->s));
    switch (f->id) {
    case PTX_OP_MOV: return move(x);
    case PTX_OP_CVTA: return cast(x);
    case PTX_OP_MAPA:
        return ranges_emit(x->b,
                           (struct proof_insn){.op = PROOF_MAPPED, .a = operand(x, 1), .imm = !f->nspaces});
    case PTX_OP_ADD: return emit(x, PROOF_ADD, operand(x, 1), operand(x, 2));
    case PTX_OP_SUB: return emit(x, PROOF_SUB, operand(x, 1), operand(x, 2));
    case PTX_OP_NEG: return emit(x, PROOF_SUB, number(x, 0), operand(x, 1));
    case PTX_OP_NOT: return emit(x, PROOF_SUB, number(x, -1), operand(x, 1));
    case PTX_OP_MUL:
    case PTX_OP_MUL24: return multiply(x);
    case PTX_OP_MAD:
    case PTX_OP_MAD24: return emit(x, PROOF_ADD, multiply(x), operand(x, 3));
    case PTX_OP_DIV: return emit(x, PROOF_DIV, exact(x, 1, bits, sign), exact(x, 2, bits, sign));
    case PTX_OP_REM: return emit(x, PROOF_REM, exact(x, 1, bits, sign), exact(x, 2, bits, sign));
    case PTX_OP_ABS: return emit(x, PROOF_ABS, exact(x, 1, bits, true), 0);
    case PTX_OP_MIN: return min_or_max(x, PROOF_MIN);
    case PTX_OP_MAX: return min_or_max(x, PROOF_MAX);
    case PTX_OP_POPC:
    case PTX_OP_CLZ: return ranges_emit(x->b, (struct proof_insn){.op = PROOF_BETWEEN, .imm = bits});
    case PTX_OP_BFE: return extract(x);
    case PTX_OP_BFI: return insert(x);
    case PTX_OP_BMSK: return mask(x);
    case PTX_OP_SHL: return emit_bits(x, PROOF_SHL, bits, operand(x, 1), exact(x, 2, 32, false));
    case PTX_OP_SHR: return emit_bits(x, PROOF_SHR, bits, exact(x, 1, bits, sign), exact(x, 2, 32, false));
    case PTX_OP_AND: return emit_bits(x, PROOF_AND, bits, operand(x, 1), operand(x, 2));
    case PTX_OP_OR: return emit_bits(x, PROOF_OR, bits, operand(x, 1), operand(x, 2));
    case PTX_OP_XOR: return emit_bits(x, PROOF_XOR, bits, operand(x, 1), operand(x, 2));
    case PTX_OP_LOP3: return lop3(x);
    case PTX_OP_SELP:
        return ranges_emit(
            x->b, (struct proof_insn){
                      .op = PROOF_SELECT, .a = operand(x, 1), .b = operand(x, 2), .c = predicate(x, 3)});
    default: return opaque(x, opaque_reason(x->s));
    }
}

// The value after an instruction under a guard: what it made, or what was there before.
static uint32_t guarded(struct source *x, uint32_t made, uint32_t before, bool pred)
{
    uint32_t value = ranges_read(x->b, x->stmt, x->s->guard);
    uint32_t guard = value == REACH_NONE ? ranges_emit(x->b, (struct proof_insn){.op = PROOF_CHANCE})
                                         : x->node(x->b, value, x->ctx);
    if (x->s->guard_negated)
        guard = emit(x, PROOF_OPPOSITE, guard, 0);
    if (!pred)
        return ranges_emit(x->b, (struct proof_insn){.op = PROOF_SELECT, .a = made, .b = before, .c = guard});
    return emit(x, PROOF_EITHER, emit(x, PROOF_BOTH, guard, made),
                emit(x, PROOF_BOTH, emit(x, PROOF_OPPOSITE, guard, 0), before));
}

uint32_t ranges_translate(struct ranges_build *b, uint32_t value, ranges_node *node, void *ctx)
{
    const struct reach_value *v = &b->reach->value.items[value];
    struct source x = {b, v->place, v->reg, &b->f->stmts[v->place], node, ctx};
    bool pred = ranges_is_pred(b, value);
    const struct ptx_operand *to = x.s->operands;
    if (x.s->form->id == PTX_OP_UNKNOWN || x.s->form->odd ||
        (to && to->kind == PTX_REG && to->sub != PTX_SEL_NONE))
        return opaque(&x, PROOF_WHY_OPERATOR);
    uint32_t made = pred ? translate_predicate(&x) : translate_value(&x);
    if (!v->partial)
        return made;
    if (x.s->guard == PTX_NONE || v->input == REACH_NONE)
        return opaque(&x, PROOF_WHY_OPERATOR);
    return guarded(&x, made, node(b, v->input, ctx), pred);
}

uint32_t ranges_predicate(struct ranges_build *b, uint32_t stmt, const struct ptx_operand *o)
{
    struct source x = {b, stmt, REGS_NONE, &b->f->stmts[stmt], ranges_node_of, NULL};
    return predicate_of(&x, o);
}

uint32_t ranges_not_zero(struct ranges_build *b, uint32_t value)
{
    const struct reach_value *v = value == REACH_NONE ? NULL : &b->reach->value.items[value];
    const struct ptx_stmt *s = v && v->kind == REACH_DEF && !v->partial ? &b->f->stmts[v->place] : NULL;
    int64_t yes, no;
    if (!s || s->form->odd || s->form->id != PTX_OP_SELP || s->operands[0].kind != PTX_REG)
        return PROOF_NONE;
    bool first = ranges_constant(s, 1, &yes) && !yes, second = ranges_constant(s, 2, &no) && !no;
    if (first == second)
        return PROOF_NONE;
    uint32_t at = ranges_predicate(b, v->place, ptx_operand(s, 3));
    return second ? at : ranges_emit(b, (struct proof_insn){.op = PROOF_OPPOSITE, .a = at});
}

uint32_t ranges_address(struct ranges_build *b, uint32_t stmt, const struct ptx_operand *o, ranges_node *node,
                        void *ctx)
{
    struct source x = {b, stmt, REGS_NONE, &b->f->stmts[stmt], node, ctx};
    if (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM && ptx_sym(b->m, o->id)->kind == PTX_SYM_VAR)
        return variable(&x, o);
    if (o->kind == PTX_ADDR && o->sub == PTX_BASE_NONE)
        return number(&x, 0);
    uint32_t value = o->kind == PTX_ADDR && o->sub == PTX_BASE_REG ? ranges_read(b, stmt, o->id) : REACH_NONE;
    if (value == REACH_NONE || ranges_is_pred(b, value))
        return typed(&x, 64, true, PROOF_WHY_EXTENT);
    uint32_t at = node(b, value, ctx);
    use_as_pointer(b, at);
    return at;
}
