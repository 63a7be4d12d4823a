// SPDX-License-Identifier: MIT
// Which numbers of 64 bits a kernel adds to pointers: often an index of 32 bits, times the size of an
// element. Around the partition are sinks, KFENCE_FAR bytes on either side, so that a pointer in the
// partition needs no mask after such a sum (pass_fence_near.c).
//
//   NUMBER [low, high]   a number between these, both included
//
// Masks change registers of 32 bits, so that nothing but their type is asked. Nothing is known of a value
// (NONE) until it is seen; what is known then only gets less (ANY).
#include <errno.h>
#include <string.h>

#include "pass/pass_fence_state.h"

enum { MOST_ROUNDS = 6 };        // until a value that still changes becomes ANY
#define MOST ((int64_t)1 << 45)  // larger numbers are ANY

enum what { NONE, NUMBER, ANY };

struct span {
    uint8_t what;
    int64_t low, high;
};

struct fence_far {
    const struct ptx_func *f;
    const struct reach *reach;
    struct span *of;  // by value
};
static const struct span none = {.what = NONE}, any = {.what = ANY};

static struct span number(int64_t low, int64_t high)
{
    return low < -MOST || high > MOST ? any : (struct span){NUMBER, low, high};
}

static struct span join(struct span a, struct span b)
{
    if (a.what == NONE || b.what == NONE)
        return a.what == NONE ? b : a;
    if (a.what == ANY || b.what == ANY)
        return any;
    a.low = a.low < b.low ? a.low : b.low;
    a.high = a.high > b.high ? a.high : b.high;
    return a;
}

static struct span add(struct span a, struct span b)
{
    if (a.what == NONE || b.what == NONE)
        return none;
    return a.what == NUMBER && b.what == NUMBER ? number(a.low + b.low, a.high + b.high) : any;
}

static struct span negative(struct span a)
{
    return a.what == NUMBER ? (struct span){NUMBER, -a.high, -a.low} : a;
}

static struct span multiply(struct span a, struct span b)
{
    if (a.what == NONE || b.what == NONE)
        return none;
    if (a.what != NUMBER || b.what != NUMBER)
        return any;
    int64_t low = INT64_MAX, high = INT64_MIN;
    const int64_t x[2] = {a.low, a.high}, y[2] = {b.low, b.high};
    for (unsigned i = 0; i < 4; i++) {
        int64_t product;
        if (__builtin_mul_overflow(x[i / 2], y[i % 2], &product))
            return any;
        low = product < low ? product : low;
        high = product > high ? product : high;
    }
    return number(low, high);
}

// --- operands ----------------------------------------------------------------------------------------------

static unsigned bits_of(const struct fence_far *s, const struct ptx_operand *o)
{
    return ptx_type_bits((enum ptx_type)ptx_reg_var(s->f, o->id)->type);
}

static struct span of_bits(unsigned bits, bool sign)
{
    int64_t half = (int64_t)1 << (bits - 1);
    return bits > 32 ? any : sign ? number(-half, half - 1) : number(0, 2 * half - 1);
}

// A register of 64 bits, or a number.
static struct span wide(const struct fence_far *s, uint32_t at, unsigned i)
{
    const struct ptx_operand *o = ptx_operand(&s->f->stmts[at], i);
    if (o && o->kind == PTX_IMM && o->sub == PTX_IMM_INT)
        return number(o->value, o->value);
    if (!o || o->kind != PTX_REG || o->sub != PTX_SEL_NONE || bits_of(s, o) != 64)
        return any;
    uint32_t index = regs_index(s->reach->regs, o->id),
             v = index == REGS_NONE ? REACH_NONE : reach_read(s->reach, at, index);
    return v == REACH_NONE ? any : s->of[v];
}

// What an instruction takes as a number of so many bits: at most 32.
static struct span narrow(const struct fence_far *s, uint32_t at, unsigned i, enum ptx_type type)
{
    const struct ptx_operand *o = ptx_operand(&s->f->stmts[at], i);
    unsigned bits = ptx_type_bits(type);
    enum ptx_type_class class = ptx_type_class(type);
    if (!o || bits > 32 || bits < 8 || (class != PTX_CLASS_SINT && class != PTX_CLASS_UINT))
        return any;
    struct span all = of_bits(bits, class == PTX_CLASS_SINT);
    bool number_fits =
        o->kind == PTX_IMM && o->sub == PTX_IMM_INT && o->value >= all.low && o->value <= all.high;
    return number_fits ? number(o->value, o->value) : all;
}

// --- instructions ------------------------------------------------------------------------------------------

static struct span product_of(const struct fence_far *s, uint32_t at)
{
    const struct ptx_form *form = s->f->stmts[at].form;
    enum ptx_type type = (enum ptx_type)form->types[0];
    if (ptx_form_has(form, PTX_MOD_HI))
        return any;
    return ptx_form_has(form, PTX_MOD_WIDE) ? multiply(narrow(s, at, 1, type), narrow(s, at, 2, type))
                                            : multiply(wide(s, at, 1), wide(s, at, 2));
}

static struct span shifted(const struct fence_far *s, uint32_t at)
{
    const struct ptx_operand *by = ptx_operand(&s->f->stmts[at], 2);
    if (!by || by->kind != PTX_IMM || by->sub != PTX_IMM_INT || by->value < 0 || by->value > 40)
        return any;
    return multiply(wide(s, at, 1), number((int64_t)1 << by->value, (int64_t)1 << by->value));
}

static struct span converted(const struct fence_far *s, uint32_t at)
{
    const struct ptx_form *form = s->f->stmts[at].form;
    if (form->ntypes != 2 || ptx_form_has(form, PTX_MOD_SAT))
        return any;
    enum ptx_type from = (enum ptx_type)form->types[1];
    return ptx_type_bits(from) == 64 && ptx_type_class(from) != PTX_CLASS_FLOAT ? wide(s, at, 1)
                                                                                : narrow(s, at, 1, from);
}

// What a statement writes to its first operand, a register of 64 bits.
static struct span written(const struct fence_far *s, uint32_t at)
{
    const struct ptx_stmt *stmt = &s->f->stmts[at];
    const struct ptx_form *form = stmt->form;
    const struct ptx_operand *to = ptx_operand(stmt, 0);
    if (!to || to->kind != PTX_REG || to->sub != PTX_SEL_NONE || bits_of(s, to) != 64 || !form->ntypes ||
        form->odd || ptx_type_class((enum ptx_type)form->types[0]) == PTX_CLASS_FLOAT ||
        (ptx_type_bits((enum ptx_type)form->types[0]) != 64 && !ptx_form_has(form, PTX_MOD_WIDE)))
        return any;
    switch (form->id) {
    case PTX_OP_MOV: return wide(s, at, 1);
    case PTX_OP_CVT: return converted(s, at);
    case PTX_OP_ADD: return add(wide(s, at, 1), wide(s, at, 2));
    case PTX_OP_SUB: return add(wide(s, at, 1), negative(wide(s, at, 2)));
    case PTX_OP_MUL: return product_of(s, at);
    case PTX_OP_MAD: return add(product_of(s, at), wide(s, at, 3));
    case PTX_OP_SHL: return shifted(s, at);
    case PTX_OP_SELP: return join(wide(s, at, 1), wide(s, at, 2));
    default: return any;
    }
}

static struct span of_value(const struct fence_far *s, uint32_t v)
{
    const struct reach_value *value = &s->reach->value.items[v];
    if (value->kind == REACH_ENTRY)
        return any;
    struct span out = none;
    if (value->kind == REACH_DEF) {
        out = written(s, value->place);
        if (!value->partial)
            return out;
        return join(out, value->input == REACH_NONE ? any : s->of[value->input]);
    }
    struct reach_list in = reach_inputs(s->reach, v);
    for (uint32_t i = 0; i < in.n; i++)
        out = join(out, in.at[i] == REACH_NONE ? any : s->of[in.at[i]]);
    return out;
}

static void solve(struct fence_far *s, size_t n)
{
    unsigned round = 0;
    for (bool again = true; again; round++) {
        again = false;
        for (uint32_t v = 0; v < n; v++) {
            struct span was = s->of[v], is = join(was, of_value(s, v));
            if (is.what == was.what && is.low == was.low && is.high == was.high)
                continue;
            s->of[v] = round < MOST_ROUNDS ? is : any;
            again = true;
        }
    }
}

int fence_far_build(const struct ptx_func *f, const struct reach *reach, struct arena *arena,
                    struct fence_far **out)
{
    size_t n = reach->value.len;
    struct fence_far *s = *out = ARENA_NEW(arena, struct fence_far);
    if (!s)
        return -ENOMEM;
    *s = (struct fence_far){.f = f, .reach = reach, .of = ARENA_ARRAY(arena, struct span, n + 1)};
    if (!s->of)
        return -ENOMEM;
    memset(s->of, 0, (n + 1) * sizeof *s->of);
    if (!reach->cfg->uncertain)
        solve(s, n);
    return 0;
}

uint64_t fence_far_most(const struct fence_far *s, uint32_t stmt, unsigned operand)
{
    const struct ptx_form *form = s->f->stmts[stmt].form;
    bool product = form->id == PTX_OP_MAD && operand == 1;
    struct span is = product ? product_of(s, stmt) : wide(s, stmt, operand);
    if (is.what != NUMBER)
        return UINT64_MAX;
    uint64_t below = is.low < 0 ? (uint64_t)-is.low : 0, above = is.high > 0 ? (uint64_t)is.high : 0;
    return below > above ? below : above;
}
