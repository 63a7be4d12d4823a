// SPDX-License-Identifier: MIT
// What the instructions of a proof program do to polynomials: the rules of proof_value.c that need no more
// of a number than its sign or its place in a range. The rest is opaque.
#include <string.h>

#include "flow/closed_state.h"

static struct poly unrooted(struct poly f)
{
    f.root = 0;
    return f;
}

static struct closed_end number(struct closed_build *b, int64_t v)
{
    return (struct closed_end){CLOSED_HARD, closed_const(b, v)};
}

static int64_t type_lo(unsigned bits, bool sign)
{
    return sign ? (int64_t)(~0ULL << (bits - 1)) : 0;
}

static int64_t type_hi(unsigned bits, bool sign)
{
    return bits - sign >= 63 ? INT64_MAX : (int64_t)((1ULL << (bits - sign)) - 1);
}

static struct closed_sym of_type(struct closed_build *b, unsigned bits, bool sign)
{
    struct closed_sym x = {.block = b->block, .facts = PROOF_NONE};
    x.lo = closed_const(b, type_lo(bits, sign));
    x.hi = closed_const(b, type_hi(bits, sign));
    x.lo_kind = bits <= 16 || !sign ? CLOSED_HARD : bits == 64 ? CLOSED_NONE : CLOSED_SOFT;
    x.hi_kind = bits <= 16 ? CLOSED_HARD : bits == 64 ? CLOSED_NONE : CLOSED_SOFT;
    return x;
}

struct poly closed_opaque(struct closed_build *b, unsigned bits, bool sign)
{
    if (!bits || bits >= 64)
        return closed_of_sym(b, closed_sym(b, (struct closed_sym){.block = b->block, .facts = PROOF_NONE}));
    return closed_of_sym(b, closed_sym(b, of_type(b, bits, sign)));
}

struct poly closed_within(struct closed_build *b, struct closed_end lo, struct closed_end hi)
{
    if (lo.kind == CLOSED_HARD && hi.kind == CLOSED_HARD && closed_same(b, lo.at, hi.at))
        return lo.at;
    return closed_of_sym(b, closed_sym(b, (struct closed_sym){.lo = lo.at,
                                                              .hi = hi.at,
                                                              .lo_kind = lo.kind,
                                                              .hi_kind = hi.kind,
                                                              .block = b->block,
                                                              .facts = PROOF_NONE}));
}

static struct poly add(struct closed_build *b, struct poly x, int64_t cy, struct poly y)
{
    struct poly r = closed_sum(b, 1, x, cy, y);
    if (cy == 1)
        r.root = proof_add_roots(x.root, y.root);
    else
        r.root = x.root == y.root ? 0 : y.root && !(y.root & AFFINE_WEAK) ? AFFINE_MIXED : x.root;
    return r;
}

static struct poly negative(struct closed_build *b, struct poly f)
{
    return add(b, (struct poly){0}, -1, f);
}

static struct closed_end hard(struct closed_build *b, struct poly f, bool up)
{
    return closed_bound(b, f, up, closed_here(b), CLOSED_HARD);
}

// --- EXTEND ------------------------------------------------------------------------------------------------

static struct poly extension(struct closed_build *b, struct poly f, unsigned bits, bool sign)
{
    uint8_t kind = sign ? AFFINE_SIGNED : AFFINE_UNSIGNED;
    int64_t by;
    for (uint32_t i = 0; i < b->nsyms; i++) {
        const struct closed_sym *x = &b->syms[i];
        if (x->kind == kind && closed_is_const(b, x->by, &by) && by == bits && closed_same(b, x->of, f))
            return closed_of_sym(b, i);
    }
    struct closed_sym x = of_type(b, bits, sign);
    x.kind = kind;
    x.of = f;
    x.by = closed_const(b, bits);
    x.block = closed_block_of(b, f);
    return closed_of_sym(b, closed_sym(b, x));
}

// Whether f, moved by a multiple of 2^bits, lies inside the type.
static bool turned(struct closed_build *b, struct poly f, unsigned bits, bool sign, struct poly *moved)
{
    struct closed_mark m = closed_mark(b);
    struct closed_end low = closed_bound(b, f, false, closed_here(b), CLOSED_SOFT);
    affine_wide turn = (affine_wide)1 << bits, least = low.kind ? closed_value(b, low.at) : 0;
    affine_wide turns = (least - type_lo(bits, sign)) / turn - ((least - type_lo(bits, sign)) % turn < 0);
    closed_undo(b, m);
    if (!low.kind || b->failed || !turns || !proof_fits(turns * turn))
        return false;
    *moved = closed_plus(b, f, (int64_t)(-turns * turn));
    return closed_inside(b, *moved, type_lo(bits, sign), type_hi(bits, sign));
}

struct poly closed_extend(struct closed_build *b, struct poly f, unsigned bits, bool sign)
{
    struct poly moved;
    if (closed_inside(b, f, type_lo(bits, sign), type_hi(bits, sign)))
        return f;
    if (bits < 63 && turned(b, f, bits, sign, &moved))
        return moved;
    closed_refuse(b, f, type_lo(bits, sign), type_hi(bits, sign));
    return extension(b, f, bits, sign);
}

// --- products and quotients --------------------------------------------------------------------------------

static struct poly product(struct closed_build *b, struct poly x, struct poly y)
{
    int64_t c;
    if (closed_uniform(b, x) || closed_uniform(b, y)) {
        struct poly r = closed_times(b, x, y);
        r.root = closed_is_const(b, x, &c) && c == 1   ? y.root
                 : closed_is_const(b, y, &c) && c == 1 ? x.root
                                                       : 0;
        return r;
    }
    struct closed_end xl = hard(b, x, false), xh = hard(b, x, true), yl = hard(b, y, false),
                      yh = hard(b, y, true);
    if (!xl.kind || !xh.kind || !yl.kind || !yh.kind || !closed_at_least(b, xl.at, 0) ||
        !closed_at_least(b, yl.at, 0))
        return closed_opaque(b, 0, true);
    return closed_within(b, (struct closed_end){CLOSED_HARD, closed_times(b, xl.at, yl.at)},
                         (struct closed_end){CLOSED_HARD, closed_times(b, xh.at, yh.at)});
}

// Splits f == d * *whole + *rest: the terms that are multiples of d go to *whole.
static void split(struct closed_build *b, struct poly f, struct poly d, struct poly *whole, struct poly *rest)
{
    *whole = *rest = (struct poly){0};
    for (uint32_t i = 0; i < f.n && !b->failed; i++) {
        struct poly t = {.first = f.first + i, .n = 1}, q, one = closed_const(b, 1);
        uint32_t sym = b->terms[t.first].sym;
        struct poly c = sym ? closed_coef(b, t, sym - 1) : t;
        if (closed_ratio(b, c, d, &q)) {
            one = sym ? closed_of_sym(b, sym - 1) : one;
            *whole = closed_sum(b, 1, *whole, 1, closed_times(b, q, one));
        } else {
            *rest = closed_sum(b, 1, *rest, 1, t);
        }
    }
}

// A symbol for floor(f / d), with the facts that tie it to f. d > 0 is a condition already.
static struct poly quotient_symbol(struct closed_build *b, struct poly f, struct poly d)
{
    for (uint32_t i = 0; i < b->nsyms; i++)
        if (b->syms[i].kind == AFFINE_FLOOR && closed_same(b, b->syms[i].of, f) &&
            closed_same(b, b->syms[i].by, d))
            return closed_of_sym(b, i);
    struct closed_sym x = {.kind = AFFINE_FLOOR, .of = f, .by = d, .facts = PROOF_NONE};
    struct closed_end lo = closed_box(b, f, false, CLOSED_HARD), hi = closed_box(b, f, true, CLOSED_HARD);
    x.lo_kind = lo.kind;
    x.hi_kind = hi.kind;
    x.lo = lo.kind ? closed_floor(b, lo.at, d) : lo.at;
    x.hi = hi.kind ? closed_floor(b, hi.at, d) : hi.at;
    x.block = closed_block_of(b, f);
    uint32_t sym = closed_sym(b, x), facts = PROOF_NONE;
    struct poly dq = closed_times(b, d, closed_of_sym(b, sym));
    closed_fact(b, closed_sum(b, 1, f, -1, dq), &facts);
    closed_fact(b, closed_plus(b, closed_sum(b, 1, closed_sum(b, -1, f, 1, dq), 1, d), -1), &facts);
    if (!b->failed)
        b->syms[sym].facts = facts;
    return closed_of_sym(b, sym);
}

// Whether floor(f / d) is the same number *q in all threads of this launch; then it must be in all launches.
static bool one_quotient(struct closed_build *b, struct poly f, struct poly d, int64_t *q)
{
    struct closed_mark m = closed_mark(b);
    struct closed_end lo = closed_bound(b, f, false, closed_here(b), CLOSED_SOFT);
    struct closed_end hi = closed_bound(b, f, true, closed_here(b), CLOSED_SOFT);
    int64_t by = closed_value(b, d);
    if (lo.kind && hi.kind && !b->failed) {
        int64_t from = closed_value(b, lo.at), to = closed_value(b, hi.at);
        *q = from / by - (from % by < 0);
        if (!b->failed && *q == to / by - (to % by < 0)) {
            closed_require(b, closed_sum(b, 1, lo.at, -*q, d));
            closed_require(b, closed_plus(b, closed_sum(b, -1, hi.at, *q + 1, d), -1));
            return !b->failed;
        }
    }
    if (!b->failed)
        closed_undo(b, m);
    return false;
}

static struct poly quotient(struct closed_build *b, struct poly f, struct poly d)
{
    struct poly whole, rest;
    int64_t c, g;
    bool fixed = closed_is_const(b, d, &c);
    f.root = 0;
    if (fixed && c == 1)
        return f;
    if (closed_uniform(b, f))
        return closed_floor(b, f, d);
    split(b, f, d, &whole, &rest);
    if (closed_uniform(b, rest))
        return closed_sum(b, 1, whole, 1, closed_floor(b, rest, d));
    // Numbers that are fixed may be split further.
    if (fixed && b->split && !closed_fix(b, closed_sum(b, 1, rest, -1, closed_rest(b, rest))))
        return f;
    if (one_quotient(b, rest, d, &c))
        return closed_plus(b, whole, c);
    // floor((g*y + c) / (g*n)) == floor((y + c / g) / n); the terms are multiples of g, the constant too.
    if (fixed) {
        g = closed_factor(b, rest, c);
        if (g > 1 && g < c)
            return closed_sum(b, 1, whole, 1, quotient(b, closed_over(b, rest, g), closed_const(b, c / g)));
    }
    return closed_sum(b, 1, whole, 1, quotient_symbol(b, rest, d));
}

// x / y, rounded towards 0.
static struct poly divide(struct closed_build *b, struct poly x, struct poly y)
{
    x.root = y.root = 0;
    if (closed_uniform(b, y) && closed_value(b, y) > 0) {
        closed_require(b, closed_plus(b, y, -1));
        if (closed_at_least(b, x, 0))
            return quotient(b, x, y);
        if (closed_at_least(b, negative(b, x), 0))
            return negative(b, quotient(b, negative(b, x), y));
        return closed_opaque(b, 0, true);
    }
    struct closed_end hi = hard(b, x, true), lo = hard(b, y, false);
    if (!hi.kind || !lo.kind || !closed_at_least(b, x, 0) || !closed_at_least(b, lo.at, 1))
        return closed_opaque(b, 0, true);
    return closed_within(b, number(b, 0), (struct closed_end){CLOSED_HARD, closed_floor(b, hi.at, lo.at)});
}

static struct poly remainder_of(struct closed_build *b, struct poly x, struct poly y)
{
    x.root = y.root = 0;
    if (closed_uniform(b, y) && closed_value(b, y) > 0)
        return add(b, x, -1, product(b, y, divide(b, x, y)));
    struct closed_end hi = hard(b, y, true);
    if (!hi.kind || !closed_at_least(b, x, 0) || !closed_at_least(b, y, 1))
        return closed_opaque(b, 0, true);
    return closed_within(b, number(b, 0), (struct closed_end){CLOSED_HARD, closed_plus(b, hi.at, -1)});
}

// --- bits --------------------------------------------------------------------------------------------------

static struct poly power(struct closed_build *b, unsigned n)
{
    return closed_const(b, 1LL << n);
}

static struct poly field(struct closed_build *b, struct poly f, unsigned pos, unsigned len)
{
    f.root = 0;
    if (pos + len > 62)
        return closed_opaque(b, len, false);
    struct poly low = quotient(b, f, power(b, pos)), high = quotient(b, f, power(b, pos + len));
    return closed_sum(b, 1, low, -1, closed_times(b, power(b, len), high));
}

static struct poly shift_left(struct closed_build *b, struct poly x, struct poly y, unsigned bits)
{
    int64_t by;
    if (closed_uniform(b, y) && !closed_fix(b, y))
        return x;
    if (closed_is_const(b, y, &by)) {
        if (by < 0 || by >= bits)
            return (struct poly){0};
        if (by < 63)
            return product(b, x, power(b, (unsigned)by));
    }
    return closed_opaque(b, bits, false);
}

static struct poly shift_right(struct closed_build *b, struct poly x, struct poly y, unsigned bits)
{
    int64_t by;
    x.root = 0;
    if (closed_uniform(b, y) && !closed_fix(b, y))
        return x;
    if (closed_is_const(b, y, &by)) {
        uint64_t n = by < 0 || by >= bits ? bits : (uint64_t)by;
        if (n <= 62)
            return quotient(b, x, power(b, (unsigned)n));
    }
    struct closed_end hi = hard(b, x, true);
    if (!hi.kind || !closed_at_least(b, x, 0))
        return closed_opaque(b, bits, true);
    return closed_within(b, number(b, 0), hi);
}

static bool has_holes(uint64_t mask)
{
    uint64_t run = mask ? mask >> __builtin_ctzll(mask) : 0;
    return run & (run + 1);
}

static struct poly and_mask(struct closed_build *b, struct poly x, uint64_t mask, unsigned bits)
{
    if (!mask)
        return (struct poly){0};
    unsigned pos = (unsigned)__builtin_ctzll(mask);
    uint64_t run = mask >> pos;
    unsigned len = run + 1 ? (unsigned)__builtin_ctzll(run + 1) : 64 - pos;
    if (has_holes(mask)) {
        if (mask >> 62)
            return closed_opaque(b, bits, false);
        return closed_within(b, number(b, 0), number(b, (int64_t)mask));
    }
    uint16_t root = x.root;
    x.root = 0;
    if (pos + len < bits)
        return closed_times(b, power(b, pos), field(b, x, pos, len));
    if (pos > 62)
        return closed_opaque(b, bits, false);
    struct poly r = closed_times(b, power(b, pos), quotient(b, x, power(b, pos)));
    r.root = root;
    return r;
}

static uint64_t mask_of(int64_t c, unsigned bits)
{
    return (uint64_t)c & (bits >= 64 ? ~0ULL : (1ULL << bits) - 1);
}

// The number of low bits that are 0 in every value of f.
static unsigned zeros(const struct closed_build *b, struct poly f)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < f.n; i++)
        all |= (uint64_t)b->terms[f.first + i].coef;
    return all ? (unsigned)__builtin_ctzll(all) : 62;
}

static bool disjoint(struct closed_build *b, struct poly x, struct poly y)
{
    unsigned n = zeros(b, x);
    return n && closed_inside(b, y, 0, (1LL << (n > 62 ? 62 : n)) - 1);
}

static struct poly either(struct closed_build *b, unsigned op, struct poly x, struct poly y, unsigned bits)
{
    struct closed_end xh = hard(b, x, true), yh = hard(b, y, true);
    if (!xh.kind || !yh.kind || !closed_at_least(b, x, 0) || !closed_at_least(b, y, 0))
        return closed_opaque(b, bits, false);
    int64_t u = closed_value(b, xh.at), v = closed_value(b, yh.at), ones = 0, c;
    while (ones < (u > v ? u : v) && ones < INT64_MAX / 2)
        ones = 2 * ones + 1;
    if (b->failed || u > ones || v > ones || ones > type_hi(bits, false))
        return closed_opaque(b, bits, false);
    closed_require(b, closed_sum(b, -1, xh.at, 1, closed_const(b, ones)));
    closed_require(b, closed_sum(b, -1, yh.at, 1, closed_const(b, ones)));
    if (op == PROOF_XOR && closed_is_const(b, y, &c) && c == ones)
        return closed_sum(b, 1, y, -1, x);
    return closed_within(b, number(b, 0), number(b, ones));
}

static void tie(struct closed_build *b, struct poly made, struct poly f)
{
    if (made.n != 1 || b->failed || !b->terms[made.first].sym)
        return;
    uint32_t sym = b->terms[made.first].sym - 1, facts = b->syms[sym].facts;
    closed_fact(b, closed_sum(b, 1, f, -1, made), &facts);
    b->syms[sym].facts = facts;
}

// As in proof_value.c. The distance starts from one power of 2, at every launch that the form is used for.
// Here x may be more than its `bits` bits; m == x mod s all the same, if these have all bits of s - 1.
static void tie_rest(struct closed_build *b, struct poly m, struct poly x, struct poly most, struct poly mask,
                     unsigned bits)
{
    struct poly s = closed_plus(b, mask, 1);
    if (b->failed || s.n != 1 || b->terms[s.first].coef != 1 || b->terms[s.first].mono ||
        !b->terms[s.first].sym)
        return;
    const struct closed_sym *distance = &b->syms[b->terms[s.first].sym - 1];
    int64_t power = distance->halved ? closed_value(b, distance->first) : 0;
    if (power < 1 || (power & (power - 1)) || power - 1 > type_hi(bits, false))
        return;
    struct poly from = distance->first;
    closed_require(b, closed_plus(b, from, -power));
    closed_require(b, closed_sum(b, -1, from, 1, closed_const(b, power)));
    struct poly above = closed_times(b, closed_plus(b, closed_floor(b, most, closed_const(b, power)), 1),
                                     closed_const(b, power));
    tie(b, m, closed_sum(b, 1, closed_sum(b, 1, above, -1, x), -1, closed_sum(b, 1, s, -2, m)));
}

static struct poly logic(struct closed_build *b, unsigned op, struct poly x, struct poly y, unsigned bits)
{
    int64_t c;
    bool both = closed_uniform(b, x) && closed_uniform(b, y);
    if (closed_is_const(b, x, &c) || (closed_uniform(b, x) && !both)) {
        struct poly t = x;
        x = y;
        y = t;
    }
    if (!both && closed_uniform(b, y) && op == PROOF_AND && !closed_fix(b, y))
        return x;
    if (closed_is_const(b, y, &c)) {
        if (op == PROOF_AND && !(both && has_holes(mask_of(c, bits))))
            return and_mask(b, x, mask_of(c, bits), bits);
        if (op == PROOF_XOR && mask_of(c, bits) == mask_of(-1, bits))
            return add(b, closed_const(b, -1), -1, x);
        if (c == 0 && op != PROOF_AND)
            return x;
    }
    x.root = y.root = 0;
    if (both)
        return closed_pair(b, op == PROOF_AND ? CLOSED_AND : op == PROOF_OR ? CLOSED_OR : CLOSED_XOR, x, y);
    if (op != PROOF_AND && (disjoint(b, x, y) || disjoint(b, y, x)))
        return closed_sum(b, 1, x, 1, y);
    if (op != PROOF_AND)
        return either(b, op, x, y, bits);
    struct closed_end xh = hard(b, x, true), yh = hard(b, y, true);
    bool first = xh.kind && closed_at_least(b, x, 0), second = yh.kind && closed_at_least(b, y, 0);
    if (!first && !second)
        return closed_opaque(b, bits, false);
    bool least = first && (!second || closed_value(b, xh.at) < closed_value(b, yh.at));
    struct poly m = closed_within(b, number(b, 0), least ? xh : yh);
    if (first) {
        tie(b, m, x);
        tie_rest(b, m, x, xh.at, y, bits);
    }
    if (second) {
        tie(b, m, y);
        tie_rest(b, m, y, yh.at, x, bits);
    }
    return m;
}

// --- minimum, maximum --------------------------------------------------------------------------------------

static struct closed_end lesser(struct closed_build *b, struct closed_end x, struct closed_end y)
{
    if (!x.kind || !y.kind)
        return x.kind ? x : y;
    return (struct closed_end){CLOSED_HARD, closed_pair(b, CLOSED_MIN, x.at, y.at)};
}

static struct poly least(struct closed_build *b, struct poly x, struct poly y)
{
    if (closed_uniform(b, x) && closed_uniform(b, y))
        return unrooted(closed_pair(b, CLOSED_MIN, x, y));
    struct poly diff = closed_sum(b, 1, x, -1, y);
    if (closed_at_least(b, closed_sum(b, -1, diff, 0, diff), 0))
        return x;
    if (closed_at_least(b, diff, 0))
        return y;
    struct closed_end xl = hard(b, x, false), yl = hard(b, y, false), lo = {0};
    if (xl.kind && yl.kind)
        lo = lesser(b, xl, yl);
    struct poly m = closed_within(b, lo, lesser(b, hard(b, x, true), hard(b, y, true)));
    tie(b, m, x);
    tie(b, m, y);
    return m;
}

static struct poly greatest(struct closed_build *b, struct poly x, struct poly y)
{
    return negative(b, least(b, negative(b, x), negative(b, y)));
}

// --- numbers of the launch ---------------------------------------------------------------------------------

// A number that every launch has: an atom, or itself if it is fixed, which the launch must then have too.
static struct poly launch_number(struct closed_build *b, struct closed_insn i, int64_t v, int64_t least_ever,
                                 int64_t most_ever)
{
    for (uint32_t k = 0; k < b->npins; k++) {
        const struct closed_pin *pin = &b->pins[k];
        if (pin->op != i.op || pin->imm != i.imm || pin->bits != i.bits || pin->sign != i.sign)
            continue;
        uint16_t r = closed_emit(b, i);
        closed_emit(b, (struct closed_insn){.op = CLOSED_GE, .a = r, .imm = v});
        closed_emit(b, (struct closed_insn){.op = CLOSED_LE, .a = r, .imm = v});
        return closed_const(b, v);
    }
    return closed_atom(b, i, v, least_ever, most_ever);
}

static struct poly launch_value(struct closed_build *b, int64_t which)
{
    const struct proof_launch *l = b->l;
    struct closed_insn i = {.op = CLOSED_LAUNCH, .imm = which};
    if (which == PROOF_DYNAMIC_SHARED)
        return launch_number(b, i, l->dynamic_shared, 0, UINT32_MAX);
    unsigned axis = (unsigned)which % 3;
    bool block = which < PROOF_CTAID,
         index = which < PROOF_NTID || (which >= PROOF_CTAID && which < PROOF_NCTAID);
    i.imm = axis + (block ? PROOF_NTID : PROOF_NCTAID);
    struct poly most =
        launch_number(b, i, block ? l->block[axis] : l->grid[axis], 1, block ? 1024 : INT32_MAX);
    if (!index)
        return most;
    uint32_t *known = &b->indices[axis + (block ? 0 : 3)];
    if (*known != PROOF_NONE)
        return closed_of_sym(b, *known);
    struct closed_sym x = {
        .lo_kind = CLOSED_HARD, .hi_kind = CLOSED_HARD, .thread = true, .facts = PROOF_NONE};
    x.hi = closed_plus(b, most, -1);
    if (!x.hi.n)
        return x.hi;
    *known = closed_sym(b, x);
    return closed_of_sym(b, *known);
}

static struct poly parameter(struct closed_build *b, const struct proof_insn *i)
{
    uint64_t v = 0;
    memcpy(&v, (const char *)b->l->params + i->imm, i->bits / 8);
    unsigned spare = 64 - i->bits;
    int64_t n = i->sign ? (int64_t)(v << spare) >> spare : (int64_t)(v << spare >> spare);
    struct closed_insn insn = {.op = CLOSED_PARAM, .bits = i->bits, .imm = i->imm};
    insn.sign = i->bits < 64 && i->sign;
    struct poly f = launch_number(b, insn, n, i->bits == 64 ? INT64_MIN : type_lo(i->bits, i->sign),
                                  type_hi(i->bits, i->sign));
    if (i->a != PROOF_NONE)
        f.root = (uint16_t)(i->a + 1) | (b->p->roots[i->a].strong ? 0 : AFFINE_WEAK);
    return f;
}

static struct poly base(struct closed_build *b, uint32_t root, uint32_t generic)
{
    uint32_t *known = &b->bases[root * 2 + generic];
    if (*known == PROOF_NONE) {
        struct closed_sym x = {.lo_kind = CLOSED_SOFT, .hi_kind = CLOSED_SOFT, .facts = PROOF_NONE};
        bool small = !generic && b->p->roots[root].kind == PROOF_ROOT_SHARED;
        x.hi = closed_const(b, small ? 1 << 24 : 1LL << 62);
        *known = closed_sym(b, x);
    }
    struct poly f = closed_of_sym(b, *known);
    f.root = (uint16_t)(root + 1);
    return f;
}

static struct poly cast(struct closed_build *b, struct poly f, bool generic)
{
    uint16_t root = f.root & ~AFFINE_WEAK;
    uint32_t kind = root && root != AFFINE_MIXED ? b->p->roots[root - 1].kind : PROOF_ROOT_PARAM;
    if (kind == PROOF_ROOT_PARAM || kind == PROOF_ROOT_CHOICE)
        return closed_opaque(b, 64, true);
    struct poly from = base(b, root - 1u, !generic), to = base(b, root - 1u, generic);
    struct poly r = closed_sum(b, 1, closed_sum(b, 1, f, -1, from), 1, to);
    r.root = root;
    return r;
}

static struct poly mapped(struct closed_build *b, struct poly f, bool generic)
{
    uint16_t root = f.root & ~AFFINE_WEAK;
    const struct proof_root *r = root && root != AFFINE_MIXED ? &b->p->roots[root - 1] : NULL;
    if (!r || r->kind != PROOF_ROOT_SHARED || !r->size || r->size > INT32_MAX)
        return closed_opaque(b, 64, true);
    struct poly away = closed_sum(b, 1, f, -1, base(b, root - 1u, generic));
    if (b->failed || !closed_inside(b, away, 0, (affine_wide)r->size))
        return closed_opaque(b, 64, true);
    struct closed_sym x = {
        .lo_kind = CLOSED_SOFT, .hi_kind = CLOSED_SOFT, .block = b->block, .facts = PROOF_NONE};
    x.hi = closed_const(b, 1LL << 62);
    x.mapped = root;
    x.generic = generic;
    struct poly out = closed_sum(b, 1, away, 1, closed_of_sym(b, closed_sym(b, x)));
    out.root = root;
    return out;
}

static struct poly choice(struct closed_build *b, struct poly f, uint32_t root)
{
    const struct closed_term *t = &b->terms[f.first];
    if ((f.root && f.root != AFFINE_MIXED) || f.n != 1 || !t->sym || t->mono || t->coef != 1)
        return f;
    b->bases[root * 2] = t->sym - 1;
    f.root = (uint16_t)(root + 1) | (b->p->roots[root].strong ? 0 : AFFINE_WEAK);
    return f;
}

struct poly closed_apply(struct closed_build *b, const struct proof_insn *i)
{
    static const char *const operands[] = {
#define PROOF(id, text, result) text,
#include "flow/proof_ops.def"
    };
    struct poly x = operands[i->op][0] == 'v' ? b->forms[i->a] : (struct poly){0};
    struct poly y = operands[i->op][1] == 'v' ? b->forms[i->b] : (struct poly){0};
    switch (i->op) {
    case PROOF_CONST: return closed_const(b, i->imm);
    case PROOF_PARAM: return parameter(b, i);
    case PROOF_LAUNCH: return launch_value(b, i->imm);
    case PROOF_BASE: return base(b, i->a, i->b);
    case PROOF_BETWEEN: return closed_within(b, number(b, 0), number(b, i->imm));
    case PROOF_CAST: return cast(b, x, i->imm);
    case PROOF_MAPPED: return mapped(b, x, i->imm);
    case PROOF_CHOICE: return choice(b, x, i->b);
    case PROOF_EXTEND: return closed_extend(b, x, i->bits, i->sign);
    case PROOF_ADD: return add(b, x, 1, y);
    case PROOF_SUB: return add(b, x, -1, y);
    case PROOF_MUL: return product(b, x, y);
    case PROOF_DIV: return divide(b, x, y);
    case PROOF_REM: return remainder_of(b, x, y);
    case PROOF_SHL: return shift_left(b, x, y, i->bits);
    case PROOF_SHR: return shift_right(b, x, y, i->bits);
    case PROOF_FIELD: return field(b, x, (unsigned)i->imm, i->b);
    case PROOF_AND:
    case PROOF_OR:
    case PROOF_XOR: return logic(b, i->op, x, y, i->bits);
    case PROOF_MIN: return least(b, x, y);
    case PROOF_MAX: return greatest(b, x, y);
    case PROOF_ABS: return greatest(b, x, negative(b, x));
    default: return closed_opaque(b, i->bits, i->sign);
    }
}
