// SPDX-License-Identifier: MIT
// Polynomials over the numbers of a launch, in mathematical integers: a sum of products of atoms, of which
// each may have one symbol as a factor too. Equal ones have equal terms. What does not fit sets `failed`.
//
// A condition on the launch is an instruction of the closed form, which the launch at hand meets. One that
// all launches meet, by the ranges of their numbers, is left out.
#include "flow/closed_state.h"

// Beyond this a range counts as unknown.
#define MOST_RANGE ((affine_wide)1 << 100)

static struct poly fail(struct closed_build *b)
{
    b->failed = true;
    return (struct poly){0};
}

static struct poly single(struct closed_build *b, struct closed_term t)
{
    if (b->nterms == b->most_terms)
        return fail(b);
    b->terms[b->nterms] = t;
    return (struct poly){.first = b->nterms++, .n = 1};
}

struct poly closed_const(struct closed_build *b, int64_t c)
{
    return c ? single(b, (struct closed_term){.coef = c}) : (struct poly){0};
}

bool closed_is_const(const struct closed_build *b, struct poly f, int64_t *c)
{
    const struct closed_term *t = &b->terms[f.first];
    *c = f.n ? t->coef : 0;
    return !f.n || (f.n == 1 && !t->sym && !t->mono);
}

bool closed_uniform(const struct closed_build *b, struct poly f)
{
    return !f.n || !b->terms[f.first + f.n - 1].sym;
}

struct poly closed_of_sym(struct closed_build *b, uint32_t sym)
{
    return single(b, (struct closed_term){.coef = 1, .sym = sym + 1});
}

static int order(struct closed_term x, struct closed_term y)
{
    return x.sym != y.sym ? (x.sym > y.sym) - (x.sym < y.sym) : (x.mono > y.mono) - (x.mono < y.mono);
}

struct poly closed_sum(struct closed_build *b, int64_t ca, struct poly f, int64_t cg, struct poly g)
{
    struct poly r = {.first = b->nterms};
    if (b->most_terms - b->nterms < (uint32_t)f.n + g.n)
        return fail(b);
    struct closed_term *to = b->terms + b->nterms;
    uint32_t i = 0, j = 0;
    while (i < f.n || j < g.n) {
        const struct closed_term *p = i < f.n ? &b->terms[f.first + i] : NULL;
        const struct closed_term *q = j < g.n ? &b->terms[g.first + j] : NULL;
        int o = !p ? 1 : !q ? -1 : order(*p, *q);
        struct closed_term t = o <= 0 ? *p : *q;
        int64_t x = 0, y = 0;
        if ((o <= 0 && __builtin_mul_overflow(ca, p->coef, &x)) ||
            (o >= 0 && __builtin_mul_overflow(cg, q->coef, &y)) || __builtin_add_overflow(x, y, &t.coef))
            return fail(b);
        i += o <= 0;
        j += o >= 0;
        if (t.coef)
            to[r.n++] = t;
    }
    if (r.n > CLOSED_MOST_TERMS)
        return fail(b);
    b->nterms += r.n;
    return r;
}

struct poly closed_plus(struct closed_build *b, struct poly f, int64_t c)
{
    return closed_sum(b, 1, f, 1, closed_const(b, c));
}

bool closed_same(const struct closed_build *b, struct poly f, struct poly g)
{
    bool same = f.n == g.n;
    for (uint32_t i = 0; i < f.n && same; i++)
        same = !order(b->terms[f.first + i], b->terms[g.first + i]) &&
               b->terms[f.first + i].coef == b->terms[g.first + i].coef;
    return same;
}

// --- products ----------------------------------------------------------------------------------------------

static int64_t clamp(affine_wide v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static void widen(struct closed_mono *m, const struct closed_atom *a)
{
    if (m->least == INT64_MIN || a->least == INT64_MIN || m->most == INT64_MAX || a->most == INT64_MAX) {
        bool positive = m->least >= 0 && a->least >= 0;
        m->least = positive ? 0 : INT64_MIN;
        m->most = INT64_MAX;
        return;
    }
    affine_wide e[4] = {(affine_wide)m->least * a->least, (affine_wide)m->least * a->most,
                        (affine_wide)m->most * a->least, (affine_wide)m->most * a->most};
    affine_wide least = e[0], most = e[0];
    for (unsigned i = 1; i < 4; i++) {
        least = e[i] < least ? e[i] : least;
        most = e[i] > most ? e[i] : most;
    }
    m->least = clamp(least);
    m->most = clamp(most);
}

// The number of the product of some atoms, in ascending order.
static uint32_t mono(struct closed_build *b, const uint16_t *atoms, uint32_t n)
{
    for (uint32_t i = 0; i < b->nmonos; i++)
        if (b->monos[i].n == n && !__builtin_memcmp(b->monos[i].atom, atoms, n * sizeof *atoms))
            return i;
    if (b->nmonos == b->most_monos) {
        b->failed = true;
        return 0;
    }
    struct closed_mono m = {.n = (uint16_t)n, .reg = CLOSED_NO_REG, .value = 1, .least = 1, .most = 1};
    for (uint32_t i = 0; i < n; i++) {
        m.atom[i] = atoms[i];
        b->failed |= __builtin_mul_overflow(m.value, b->atoms[atoms[i]].value, &m.value);
        widen(&m, &b->atoms[atoms[i]]);
    }
    b->monos[b->nmonos] = m;
    return b->nmonos++;
}

static uint32_t mono_times(struct closed_build *b, uint32_t x, uint32_t y)
{
    const struct closed_mono *p = &b->monos[x], *q = &b->monos[y];
    uint16_t atoms[2 * CLOSED_FACTORS];
    uint32_t n = 0, i = 0, j = 0;
    while (i < p->n || j < q->n)
        atoms[n++] = j == q->n || (i < p->n && p->atom[i] <= q->atom[j]) ? p->atom[i++] : q->atom[j++];
    if (n > CLOSED_FACTORS) {
        b->failed = true;
        return 0;
    }
    return mono(b, atoms, n);
}

// Finds z with x == y * z.
static bool mono_over(struct closed_build *b, uint32_t x, uint32_t y, uint32_t *z)
{
    const struct closed_mono *p = &b->monos[x], *q = &b->monos[y];
    uint16_t atoms[CLOSED_FACTORS];
    uint32_t n = 0, j = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (j < q->n && p->atom[i] == q->atom[j])
            j++;
        else
            atoms[n++] = p->atom[i];
    }
    if (j < q->n)
        return false;
    *z = mono(b, atoms, n);
    return true;
}

struct poly closed_times(struct closed_build *b, struct poly f, struct poly g)
{
    struct poly r = {0};
    for (uint32_t i = 0; i < f.n; i++) {
        for (uint32_t j = 0; j < g.n && !b->failed; j++) {
            struct closed_term x = b->terms[f.first + i], y = b->terms[g.first + j];
            struct closed_term t = {.sym = x.sym ? x.sym : y.sym, .mono = mono_times(b, x.mono, y.mono)};
            if ((x.sym && y.sym) || __builtin_mul_overflow(x.coef, y.coef, &t.coef))
                return fail(b);
            r = closed_sum(b, 1, r, 1, single(b, t));
        }
    }
    return r;
}

struct poly closed_atom(struct closed_build *b, struct closed_insn insn, int64_t value, int64_t least,
                        int64_t most)
{
    uint16_t i = 0;
    while (i < b->natoms && __builtin_memcmp(&b->atoms[i].insn, &insn, sizeof insn))
        i++;
    if (i == b->natoms) {
        if (b->natoms == b->most_atoms)
            return fail(b);
        b->atoms[b->natoms++] = (struct closed_atom){insn, value, least, most};
    }
    return single(b, (struct closed_term){.coef = 1, .mono = mono(b, &i, 1)});
}

// The terms with one symbol, or 0 for those without, as a uniform polynomial.
static struct poly part(struct closed_build *b, struct poly f, uint32_t sym)
{
    struct poly r = {.first = b->nterms};
    if (b->most_terms - b->nterms < f.n)
        return fail(b);
    for (uint32_t i = 0; i < f.n; i++) {
        if (b->terms[f.first + i].sym != sym)
            continue;
        b->terms[b->nterms] = b->terms[f.first + i];
        b->terms[b->nterms++].sym = 0;
        r.n++;
    }
    return r;
}

struct poly closed_coef(struct closed_build *b, struct poly f, uint32_t sym)
{
    return part(b, f, sym + 1);
}

struct poly closed_rest(struct closed_build *b, struct poly f)
{
    return part(b, f, 0);
}

bool closed_divides(const struct closed_build *b, int64_t d, struct poly f)
{
    for (uint32_t i = 0; i < f.n && d != -1; i++)
        if (b->terms[f.first + i].coef % d)
            return false;
    return true;
}

struct poly closed_over(struct closed_build *b, struct poly f, int64_t d)
{
    struct poly r = {.first = b->nterms, .n = f.n};
    if (b->most_terms - b->nterms < f.n)
        return fail(b);
    for (uint32_t i = 0; i < f.n; i++) {
        b->terms[b->nterms] = b->terms[f.first + i];
        b->terms[b->nterms++].coef /= d;
    }
    return r;
}

bool closed_ratio(struct closed_build *b, struct poly f, struct poly g, struct poly *m)
{
    if (!f.n || !g.n)
        return false;
    struct closed_term y = b->terms[g.first];
    *m = (struct poly){0};
    // One term of f over one of g: the whole ratio, if g has several terms.
    for (uint32_t i = 0; i < (g.n == 1 ? f.n : 1u); i++) {
        struct closed_term x = b->terms[f.first + i], t = {0};
        if (y.coef == -1 ? x.coef == INT64_MIN : x.coef % y.coef != 0)
            return false;
        if (!mono_over(b, x.mono, y.mono, &t.mono))
            return false;
        t.coef = x.coef / y.coef;
        *m = closed_sum(b, 1, *m, 1, single(b, t));
    }
    return !b->failed && (g.n == 1 || closed_same(b, closed_times(b, *m, g), f)) && !b->failed;
}

// --- conditions --------------------------------------------------------------------------------------------

int64_t closed_value(struct closed_build *b, struct poly f)
{
    affine_wide v = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        const struct closed_term *t = &b->terms[f.first + i];
        b->failed |= t->sym != 0;
        b->failed |= __builtin_add_overflow(v, (affine_wide)t->coef * b->monos[t->mono].value, &v);
    }
    b->failed |= !proof_fits(v);
    return (int64_t)v;
}

// The least value of f, whatever the launch.
static affine_wide least_ever(const struct closed_build *b, struct poly f)
{
    affine_wide v = 0, x;
    for (uint32_t i = 0; i < f.n; i++) {
        const struct closed_term *t = &b->terms[f.first + i];
        const struct closed_mono *m = &b->monos[t->mono];
        bool up = t->coef > 0;
        if (up ? m->least == INT64_MIN : m->most == INT64_MAX)
            return -MOST_RANGE;
        x = (affine_wide)t->coef * (up ? m->least : m->most);
        if (__builtin_add_overflow(v, x, &v))
            return -MOST_RANGE;
    }
    return v;
}

uint16_t closed_emit(struct closed_build *b, struct closed_insn i)
{
    uint64_t hash = ((uint64_t)i.op << 56 | (uint64_t)i.a << 32 | (uint64_t)i.b << 16) ^ (uint64_t)i.imm;
    uint16_t *known = &b->known[hash * 0x9E3779B97F4A7C15ULL >> 54];
    // An instruction that is not found is emitted twice, which does no harm.
    if (*known < b->nops && !__builtin_memcmp(&b->ops[*known], &i, sizeof i))
        return *known;
    if (b->nops == b->most_ops) {
        b->failed = true;
        return 0;
    }
    b->ops[b->nops] = i;
    return *known = (uint16_t)b->nops++;
}

static uint16_t mono_reg(struct closed_build *b, uint32_t number)
{
    struct closed_mono *m = &b->monos[number];
    if (m->reg != CLOSED_NO_REG)
        return m->reg;
    uint16_t r = closed_emit(b, b->atoms[m->atom[0]].insn);
    for (uint32_t i = 1; i < m->n; i++) {
        uint16_t x = closed_emit(b, b->atoms[m->atom[i]].insn);
        r = closed_emit(b, (struct closed_insn){.op = CLOSED_MUL, .a = r, .b = x});
    }
    return m->reg = r;
}

// Emits f, a uniform polynomial, without its constant, which is put into *add. NO_REG: nothing is left.
uint16_t closed_reg(struct closed_build *b, struct poly f, int64_t *add)
{
    uint16_t r = CLOSED_NO_REG;
    *add = 0;
    for (uint32_t i = 0; i < f.n && !b->failed; i++) {
        struct closed_term t = b->terms[f.first + i];
        b->failed |= t.sym != 0;
        if (!t.mono) {
            *add = t.coef;
            continue;
        }
        uint16_t x = mono_reg(b, t.mono);
        if (r != CLOSED_NO_REG)
            r = closed_emit(b, (struct closed_insn){.op = CLOSED_MADI, .a = r, .b = x, .imm = t.coef});
        else
            r = t.coef == 1 ? x
                            : closed_emit(b, (struct closed_insn){.op = CLOSED_MULI, .a = x, .imm = t.coef});
    }
    return r;
}

// A register with all of f.
uint16_t closed_whole(struct closed_build *b, struct poly f)
{
    int64_t add;
    uint16_t r = closed_reg(b, f, &add);
    if (r == CLOSED_NO_REG)
        return closed_emit(b, (struct closed_insn){.op = CLOSED_CONST, .imm = add});
    return add ? closed_emit(b, (struct closed_insn){.op = CLOSED_ADDI, .a = r, .imm = add}) : r;
}

void closed_require(struct closed_build *b, struct poly f)
{
    int64_t add;
    if (b->failed || closed_value(b, f) < 0) {
        b->failed = true;
        return;
    }
    if (least_ever(b, f) >= 0)
        return;
    // So conditions on a number from above and from below share their instructions.
    bool down = b->terms[f.first + f.n - 1].coef < 0;
    struct poly g = down ? closed_sum(b, -1, f, 0, f) : f;
    uint16_t r = closed_reg(b, g, &add);
    b->failed |= r == CLOSED_NO_REG || add == INT64_MIN;
    if (!b->failed)
        closed_emit(b, (struct closed_insn){.op = down ? CLOSED_LE : CLOSED_GE, .a = r, .imm = -add});
}

bool closed_decide(struct closed_build *b, struct poly f)
{
    if (closed_value(b, f) >= 0 && !b->failed) {
        closed_require(b, f);
        return true;
    }
    closed_require(b, closed_sum(b, -1, f, 1, closed_const(b, -1)));
    return false;
}

bool closed_reads_b(uint8_t op)
{
    return op == CLOSED_MUL || op == CLOSED_MADI || op == CLOSED_QUOT ||
           (op >= CLOSED_MIN && op <= CLOSED_XOR);
}

static void fix_number(struct closed_build *b, const struct closed_insn *i)
{
    struct closed_pin pin = {i->op, i->bits, i->sign, i->imm};
    for (uint32_t k = 0; k < b->npins; k++)
        if (b->pins[k].op == pin.op && b->pins[k].imm == pin.imm && b->pins[k].bits == pin.bits &&
            b->pins[k].sign == pin.sign)
            return;
    b->failed = true;
    if (b->npins == CLOSED_MOST_PINS)
        return;
    b->pinned = true;
    b->pins[b->npins++] = pin;
}

static void fix_insn(struct closed_build *b, struct closed_insn last)
{
    uint8_t needed[CLOSED_MOST_OPS] = {0};
    struct closed_insn i = last;
    uint32_t at = b->nops;
    do {
        if (at < b->nops)
            i = b->ops[at];
        if (at < b->nops && !needed[at])
            continue;
        if (i.op == CLOSED_PARAM || i.op == CLOSED_LAUNCH)
            fix_number(b, &i);
        if (i.op > CLOSED_LAUNCH)
            needed[i.a] = 1;
        if (closed_reads_b(i.op))
            needed[i.b] = 1;
    } while (at-- > 0);
}

bool closed_sign(struct closed_build *b, struct poly f)
{
    bool up = closed_value(b, f) >= 0;
    closed_require(b, up ? f : closed_sum(b, -1, f, 0, f));
    return up;
}

bool closed_fix(struct closed_build *b, struct poly f)
{
    for (uint32_t i = 0; i < f.n; i++) {
        const struct closed_mono *m = &b->monos[b->terms[f.first + i].mono];
        for (uint32_t k = 0; k < m->n; k++)
            fix_insn(b, b->atoms[m->atom[k]].insn);
    }
    return !b->failed;
}

// --- atoms of others ---------------------------------------------------------------------------------------

static int64_t most_ever(struct closed_build *b, struct poly f)
{
    return clamp(-least_ever(b, closed_sum(b, -1, f, 0, f)));
}

struct poly closed_pair(struct closed_build *b, uint8_t op, struct poly f, struct poly g)
{
    if (closed_same(b, f, g) && op < CLOSED_XOR)
        return f;
    int64_t x = closed_value(b, f), y = closed_value(b, g), v = 0, least = INT64_MIN, most = INT64_MAX;
    int64_t fl = clamp(least_ever(b, f)), gl = clamp(least_ever(b, g)), fm = most_ever(b, f),
            gm = most_ever(b, g);
    // Ends of INT64_MAX are not known.
    if (fm <= gl && fm < INT64_MAX && (op == CLOSED_MIN || op == CLOSED_MAX))
        return op == CLOSED_MIN ? f : g;
    if (gm <= fl && gm < INT64_MAX && (op == CLOSED_MIN || op == CLOSED_MAX))
        return op == CLOSED_MIN ? g : f;
    switch (op) {
    case CLOSED_MIN:
        v = x < y ? x : y;
        least = fl < gl ? fl : gl;
        most = fm < gm ? fm : gm;
        break;
    case CLOSED_MAX:
        v = x > y ? x : y;
        least = fl > gl ? fl : gl;
        most = fm > gm ? fm : gm;
        break;
    case CLOSED_AND: v = x & y; break;
    case CLOSED_OR: v = x | y; break;
    default: v = x ^ y; break;
    }
    int64_t cf, cg;
    if (closed_is_const(b, f, &cf) && closed_is_const(b, g, &cg))
        return closed_const(b, v);
    struct closed_insn i = {.op = op, .a = closed_whole(b, f), .b = closed_whole(b, g)};
    if (i.a > i.b)
        i = (struct closed_insn){.op = op, .a = i.b, .b = i.a};
    return closed_atom(b, i, v, least, most);
}

static affine_wide floor_div(affine_wide a, affine_wide d)
{
    return a / d - (a % d < 0);
}

struct poly closed_floor(struct closed_build *b, struct poly f, struct poly d)
{
    int64_t c, x, by = closed_value(b, d);
    struct poly exact;
    if (by < 1 || b->failed)
        return fail(b);
    bool number = closed_is_const(b, d, &c);
    if (number && c == 1)
        return f;
    if (closed_is_const(b, f, &x) && number)
        return closed_const(b, (int64_t)floor_div(x, c));
    if (number && closed_divides(b, c, f))
        return closed_over(b, f, c);
    if (!number && closed_ratio(b, f, d, &exact))
        return exact;
    int64_t v = (int64_t)floor_div(closed_value(b, f), by);
    int64_t least = clamp(least_ever(b, f)), most = most_ever(b, f);
    if (number) {
        struct closed_insn i = {.op = CLOSED_QUOTI, .a = closed_whole(b, f), .imm = c};
        return closed_atom(b, i, v, least == INT64_MIN ? least : (int64_t)floor_div(least, c),
                           most == INT64_MAX ? most : (int64_t)floor_div(most, c));
    }
    struct closed_insn i = {.op = CLOSED_QUOT, .a = closed_whole(b, f), .b = closed_whole(b, d)};
    return closed_atom(b, i, v, least < 0 ? least : 0, most > 0 ? most : 0);
}
