// SPDX-License-Identifier: MIT
// Values that a loop carries on by factors instead of steps: halved until nothing is left, as in reductions,
// or doubled up to a limit, as in scans.
//
// SHRINKS: each way around shifts the value right, divides it, or keeps it. So it stays between 0 and what it
// was before the loop, or, shifted as a negative number, -1.
//
// STAYS: each way around flips bits, subtracts the value from a number, masks it, takes its remainder, sets a
// number or keeps it: stages of a pipeline.
//
// TURNS: each way around adds the same number and sets 0 if the sum is above a limit, or keeps the value:
// stages of a pipeline, too.
//
// GROWS: each way around multiplies the value by the same number, and a test that every round passes compares
// it, or its next value, with a limit that does not change in the loop.
#include "flow/ranges_build.h"

enum { MOST_FACTOR = 1 << 16, MOST_MOVES = 8 };

struct turn {
    int64_t most, step;  // step: 0 until known
    uint8_t sign;        // TURNS_SIGNED ...
};

struct carried {
    enum proof_op how;    // SHRINKS, STAYS, TURNS, GROWS
    struct turn turn;     // TURNS
    int64_t most, least;  // STAYS: the greatest number, and the least one that the value is subtracted from
    uint8_t ways;         // STAYS_XOR ...
    uint32_t bits;        // STAYS: what its ways around may set
    int sign;             // SHRINKS: whether its shifts are signed
    bool odd;             // SHRINKS: it is divided by a number that is no power of 2
    uint32_t factor;      // GROWS
    struct ranges_compare test;
    bool of_next;  // the test reads the next value
};

// The statement that makes a value in the loop, behind copies; NULL if there is none. *value becomes what is
// copied.
static const struct ptx_stmt *maker(struct ranges_build *b, uint32_t loop, uint32_t *value)
{
    for (unsigned i = 0; i < MOST_MOVES; i++) {
        const struct reach_value *v = &b->reach->value.items[*value];
        if (v->kind != REACH_DEF || v->partial)
            return NULL;
        const struct ptx_stmt *s = &b->f->stmts[v->place];
        if (s->form->odd || !s->operands || s->operands[0].kind != PTX_REG || !s->form->ntypes ||
            !ranges_plain_int(s->form))
            return NULL;
        if (s->form->id != PTX_OP_MOV)
            return s;
        uint32_t from = ranges_moving(b, loop, v->place, ptx_operand(s, 1));
        if (from == REACH_NONE)
            return NULL;
        *value = from;
    }
    return NULL;
}

static unsigned width(const struct ranges_build *b, uint32_t value)
{
    uint32_t reg = b->regs->reg[b->reach->value.items[value].reg];
    return ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, reg)->type);
}

static uint32_t place_of(const struct ranges_build *b, uint32_t value)
{
    return b->reach->value.items[value].place;
}

// Whether the operand is the value, behind copies.
static bool is_value(struct ranges_build *b, uint32_t loop, uint32_t stmt, const struct ptx_operand *o,
                     uint32_t value)
{
    uint32_t v = o ? ranges_moving(b, loop, stmt, o) : REACH_NONE;
    if (v != REACH_NONE && v != value)
        maker(b, loop, &v);
    return v == value;
}

// Whether v is x + (x >> 31), as division of signed numbers by a power of 2 adds it.
static bool is_corrected(struct ranges_build *b, uint32_t loop, uint32_t v, uint32_t join)
{
    const struct ptx_stmt *s = maker(b, loop, &v), *sign;
    int64_t by;
    if (!s || s->form->id != PTX_OP_ADD)
        return false;
    for (unsigned i = 1; i <= 2; i++) {
        uint32_t other = ranges_moving(b, loop, place_of(b, v), ptx_operand(s, 3 - i));
        if (other == REACH_NONE || !is_value(b, loop, place_of(b, v), ptx_operand(s, i), join))
            continue;
        sign = maker(b, loop, &other);
        if (sign && sign->form->id == PTX_OP_SHR && ranges_constant(sign, 2, &by) &&
            by == width(b, join) - 1 &&
            ptx_type_class((enum ptx_type)sign->form->types[0]) != PTX_CLASS_SINT &&
            ptx_type_bits((enum ptx_type)sign->form->types[0]) == width(b, join) &&
            is_value(b, loop, place_of(b, other), ptx_operand(sign, 1), join))
            return true;
    }
    return false;
}

// Whether a value is the joined one made smaller, read as to->sign says; an unchanged one leaves that alone.
static bool shrinks(struct ranges_build *b, uint32_t loop, uint32_t value, uint32_t join, struct carried *to)
{
    int64_t by;
    if (value == join)
        return true;
    const struct ptx_stmt *s = maker(b, loop, &value);
    if (value == join)
        return true;
    if (!s || (s->form->id != PTX_OP_SHR && s->form->id != PTX_OP_DIV) || !ranges_constant(s, 2, &by) ||
        by < 1 || by > INT32_MAX || ptx_type_bits((enum ptx_type)s->form->types[0]) != width(b, join))
        return false;
    bool is_signed = ptx_type_class((enum ptx_type)s->form->types[0]) == PTX_CLASS_SINT;
    if (to->sign >= 0 && to->sign != is_signed)
        return false;
    to->sign = is_signed;
    to->odd |= s->form->id == PTX_OP_DIV && (by & (by - 1));
    uint32_t of = ranges_moving(b, loop, place_of(b, value), ptx_operand(s, 1));
    if (of == REACH_NONE)
        return false;
    return is_value(b, loop, place_of(b, value), ptx_operand(s, 1), join) ||
           (is_signed && s->form->id == PTX_OP_SHR && by == 1 && is_corrected(b, loop, of, join));
}

// Whether a value is inside [0, to->most] if the joined one is. That grows to the greatest number of all
// ways.
static bool stays(struct ranges_build *b, uint32_t loop, uint32_t value, uint32_t join, struct carried *to)
{
    int64_t c = 0;
    const struct ptx_stmt *s = value == join ? NULL : maker(b, loop, &value);
    if (value == join)
        return true;
    const struct reach_value *v = &b->reach->value.items[value];
    if (!s && v->kind == REACH_DEF && !v->partial)
        s = &b->f->stmts[v->place];  // it may set a number
    if (!s || s->form->odd || !s->form->ntypes || !ranges_plain_int(s->form) ||
        ptx_type_bits((enum ptx_type)s->form->types[0]) != width(b, join) || s->guard != PTX_NONE)
        return false;
    switch ((enum ptx_op_id)s->form->id) {
    case PTX_OP_MOV:
        if (!ranges_constant(s, 1, &c))
            return false;
        break;
    case PTX_OP_AND:
        if (!ranges_constant(s, 2, &c))
            return false;
        break;
    case PTX_OP_REM:
        if (!ranges_constant(s, 2, &c) || c < 1 ||
            ptx_type_class((enum ptx_type)s->form->types[0]) == PTX_CLASS_SINT)
            return false;
        c--;
        break;
    case PTX_OP_XOR:
        if (!ranges_constant(s, 2, &c) || !is_value(b, loop, place_of(b, value), ptx_operand(s, 1), join))
            return false;
        to->ways |= STAYS_XOR;
        break;
    case PTX_OP_SUB:
        if (!ranges_constant(s, 1, &c) || !is_value(b, loop, place_of(b, value), ptx_operand(s, 2), join))
            return false;
        to->ways |= STAYS_SUB;
        break;
    default: return false;
    }
    if (c < 0 || c > INT32_MAX)
        return false;
    if (s->form->id == PTX_OP_SUB)
        to->least = c < to->least ? c : to->least;
    bool below = s->form->id == PTX_OP_REM || s->form->id == PTX_OP_SUB;  // c, not of its bits
    to->bits |= below && c ? UINT32_MAX >> __builtin_clz((uint32_t)c) : (uint32_t)c;
    to->most = c > to->most ? c : to->most;
    return true;
}

// Finds what a value is that is `next` if a comparison of `next` lets it, else 0.
static bool find_turn(struct ranges_build *b, uint32_t loop, const struct ptx_stmt *s, uint32_t at,
                      uint32_t *next, struct turn *t)
{
    int64_t c;
    bool first = ranges_constant(s, 2, &c) && !c;  // the value is kept if the predicate holds
    const struct ptx_operand *pred = ptx_operand(s, 3);
    struct ranges_compare of;
    if ((!first && (!ranges_constant(s, 1, &c) || c)) || !pred || pred->kind != PTX_REG || ptx_operand(s, 4))
        return false;
    uint32_t p = ranges_read(b, at, pred->id);
    *next = ranges_moving(b, loop, at, ptx_operand(s, first ? 1 : 2));
    if (p == REACH_NONE || *next == REACH_NONE || !ranges_compared(b, loop, p, first != pred->negated, &of) ||
        of.limit->kind != PTX_IMM || of.bits != width(b, *next) || of.left != *next ||
        (of.relation != PROOF_LT && of.relation != PROOF_LE && of.relation != PROOF_NE))
        return false;
    t->most = of.limit->value - (of.relation != PROOF_LE);
    t->sign = (of.sign ? TURNS_SIGNED : 0) | (of.relation == PROOF_NE ? TURNS_NE : 0);
    return of.limit->value >= 0 && t->most >= 0 && t->most <= INT32_MAX;
}

// Whether a value is the joined one and a step more, or 0 if that is too much, or the joined one.
static bool turns(struct ranges_build *b, uint32_t loop, uint32_t value, uint32_t join, struct turn *all)
{
    struct turn t = {0};
    uint32_t next;
    if (value == join)
        return true;
    const struct ptx_stmt *s = maker(b, loop, &value);
    if (value == join)
        return true;
    if (!s || s->form->id != PTX_OP_SELP || s->guard != PTX_NONE || width(b, value) != width(b, join) ||
        ptx_type_bits((enum ptx_type)s->form->types[0]) != width(b, join) ||
        !find_turn(b, loop, s, place_of(b, value), &next, &t))
        return false;
    s = maker(b, loop, &next);
    if (!s || s->form->id != PTX_OP_ADD || s->guard != PTX_NONE || width(b, next) != width(b, join) ||
        ptx_type_bits((enum ptx_type)s->form->types[0]) != width(b, join) ||
        !ranges_constant(s, 2, &t.step) || t.step < 1 || t.step > MOST_FACTOR ||
        (t.step > 1 && t.sign & TURNS_NE) || !is_value(b, loop, place_of(b, next), ptx_operand(s, 1), join))
        return false;
    bool same = !all->step || (all->step == t.step && all->most == t.most && all->sign == t.sign);
    *all = t;
    return same;
}

// Finds the number that a value is the joined one times. The width of all products is that of the register.
static bool multiplied(struct ranges_build *b, uint32_t loop, uint32_t value, uint32_t join, uint32_t *factor)
{
    *factor = 1;
    for (unsigned i = 0; i < MOST_MOVES && value != join; i++) {
        const struct ptx_stmt *s = maker(b, loop, &value);
        int64_t by = 0;
        if (value == join)
            return true;
        if (!s || ptx_type_bits((enum ptx_type)s->form->types[0]) != width(b, join) ||
            width(b, value) != width(b, join))
            return false;
        uint32_t x = ranges_moving(b, loop, place_of(b, value), ptx_operand(s, 1));
        if (s->form->id == PTX_OP_SHL && ranges_constant(s, 2, &by) && by >= 0 && by <= 16)
            by = 1 << by;
        else if (s->form->id == PTX_OP_ADD && x != REACH_NONE &&
                 x == ranges_moving(b, loop, place_of(b, value), ptx_operand(s, 2)))
            by = 2;
        else if (s->form->id != PTX_OP_MUL || !ptx_form_has(s->form, PTX_MOD_LO) ||
                 !ranges_constant(s, 2, &by))
            return false;
        if (x == REACH_NONE || by < 1 || by * *factor > MOST_FACTOR)
            return false;
        *factor *= (uint32_t)by;
        value = x;
    }
    return value == join;
}

// Finds the test of a value that is multiplied by a factor in each round.
static bool find_test(struct ranges_build *b, uint32_t loop, uint32_t join, struct carried *c)
{
    uint32_t at = 0, pred, factor;
    bool holds;
    while (ranges_exit(b, loop, &at, &pred, &holds)) {
        if (!ranges_compared(b, loop, pred, holds, &c->test) || c->test.bits != width(b, join) ||
            (c->test.relation != PROOF_LT && c->test.relation != PROOF_LE) ||
            !multiplied(b, loop, c->test.left, join, &factor))
            continue;
        c->of_next = factor == c->factor;
        if (factor == 1 || c->of_next)
            return true;
    }
    return false;
}

static bool understand(struct ranges_build *b, uint32_t loop, uint32_t join, struct carried *c)
{
    const struct reach_value *v = &b->reach->value.items[join];
    struct graph_nodes preds = graph_pred(b->cfg->graph, v->place);
    bool smaller = true, same = true, larger = true, round = true;
    *c = (struct carried){.sign = -1, .least = INT64_MAX};
    for (uint32_t i = 0; i < preds.n; i++) {
        uint32_t in = b->reach->input.items[v->input + i], factor;
        if (ranges_forward(b, preds.at[i], v->place) || !graph_reached(b->cfg->graph, preds.at[i]))
            continue;
        if (in == REACH_NONE)
            return false;
        smaller = smaller && shrinks(b, loop, in, join, c);
        same = same && stays(b, loop, in, join, c);
        round = round && turns(b, loop, in, join, &c->turn);
        larger = larger && multiplied(b, loop, in, join, &factor) && factor > 1 &&
                 (!c->factor || c->factor == factor);
        c->factor = larger ? factor : 0;
    }
    // Each number that the value is subtracted from is at least what the value may be.
    same = same && c->least >= c->most;
    round = round && c->turn.step;
    c->how = smaller ? PROOF_SHRINKS : same ? PROOF_STAYS : round ? PROOF_TURNS : PROOF_GROWS;
    return smaller || same || round || (larger && c->factor > 1 && find_test(b, loop, join, c));
}

bool ranges_need_carried(struct ranges_build *b, uint32_t loop, uint32_t join)
{
    struct carried c;
    if (!understand(b, loop, join, &c))
        return false;
    if (c.how == PROOF_GROWS && c.test.limit->kind == PTX_REG)
        ranges_need(b, ranges_read(b, c.test.stmt, c.test.limit->id));
    return true;
}

uint32_t ranges_carried(struct ranges_build *b, uint32_t loop, uint32_t join)
{
    struct carried c;
    if (ranges_is_pred(b, join) || !understand(b, loop, join, &c))
        return PROOF_NONE;
    unsigned bits = width(b, join);
    if (c.how == PROOF_STAYS)
        return ranges_emit(b, (struct proof_insn){.op = PROOF_STAYS,
                                                  .bits = (uint8_t)bits,
                                                  .sign = c.ways,
                                                  .a = ranges_extend(b, ranges_merge(b, join), bits, false),
                                                  .c = c.bits,
                                                  .imm = c.most});
    if (c.how == PROOF_TURNS) {
        bool sign = c.turn.sign & TURNS_SIGNED;
        return ranges_emit(b, (struct proof_insn){.op = PROOF_TURNS,
                                                  .bits = (uint8_t)bits,
                                                  .sign = c.turn.sign,
                                                  .a = ranges_extend(b, ranges_merge(b, join), bits, sign),
                                                  .c = (uint32_t)c.turn.step,
                                                  .imm = c.turn.most});
    }
    if (c.how == PROOF_SHRINKS) {
        uint32_t from = ranges_extend(b, ranges_merge(b, join), bits, c.sign == 1);
        return ranges_emit(b, (struct proof_insn){.op = PROOF_SHRINKS, .a = from, .imm = !c.odd});
    }
    uint32_t limit = ranges_limit(b, &c.test);
    return ranges_emit(b, (struct proof_insn){.op = PROOF_GROWS,
                                              .bits = (uint8_t)bits,
                                              .sign = c.test.sign,
                                              .a = ranges_extend(b, ranges_merge(b, join), bits, c.test.sign),
                                              .b = ranges_extend(b, limit, bits, c.test.sign),
                                              .c = c.factor,
                                              .imm = (c.test.relation == PROOF_LE ? GROWS_LE : 0) |
                                                     (c.of_next ? GROWS_NEW : 0)});
}
