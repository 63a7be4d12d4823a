// SPDX-License-Identifier: MIT
// What the instructions of a proof program do to forms. Each rule returns a form that is congruent to the
// register's content modulo 2^width, or, for results of EXTEND and what needs one, equal to it. Where no
// rule applies, the result is a new symbol with a range; where no range is known, one with that of its
// type.
#include "flow/proof_state.h"

bool proof_fits(affine_wide v)
{
    return v >= INT64_MIN && v <= INT64_MAX;
}

static int64_t type_lo(unsigned bits, bool sign)
{
    return sign ? (int64_t)(~0ULL << (bits - 1)) : 0;
}

// For 64 unsigned bits only the lower half: forms have no room for the rest.
static int64_t type_hi(unsigned bits, bool sign)
{
    return bits - sign >= 63 ? INT64_MAX : (int64_t)((1ULL << (bits - sign)) - 1);
}

struct affine proof_opaque(struct proof_state *e, unsigned bits, bool sign, uint8_t reason)
{
    struct affine_sym x = {.kind = AFFINE_PLAIN, .block = e->block, .facts = PROOF_NONE, .reason = reason};
    if (bits >= 64 || !bits)
        sign = true;
    x.lo = type_lo(bits ? bits : 64, sign);
    x.hi = type_hi(bits ? bits : 64, sign);
    if (bits > 16 || !bits)
        x.soft = AFFINE_SOFT_HI | (sign ? AFFINE_SOFT_LO : 0);
    return affine_new(&e->s, x);
}

struct affine proof_within(struct proof_state *e, struct affine_range r)
{
    if (!proof_fits(r.lo) || !proof_fits(r.hi) || r.lo > r.hi)
        return proof_opaque(e, 0, true, r.reason ? r.reason : PROOF_WHY_WRAPS);
    if (r.lo == r.hi && !r.soft)
        return affine_const((int64_t)r.lo);
    return affine_new(&e->s, (struct affine_sym){.lo = (int64_t)r.lo,
                                                 .hi = (int64_t)r.hi,
                                                 .soft = r.soft,
                                                 .reason = r.reason,
                                                 .block = e->block,
                                                 .facts = PROOF_NONE});
}

uint16_t proof_add_roots(uint16_t a, uint16_t b)
{
    if (!a || !b)
        return a ? a : b;
    bool weak_a = a & AFFINE_WEAK, weak_b = b & AFFINE_WEAK;
    if (weak_a != weak_b)
        return weak_a ? b : a;
    return AFFINE_MIXED;
}

static struct affine_range bound(struct proof_state *e, struct affine f)
{
    return affine_bound(&e->s, f, proof_here(e));
}

static struct affine add(struct proof_state *e, struct affine a, int64_t cb, struct affine b)
{
    struct affine r;
    if (!affine_sum(&e->s, 1, a, cb, b, &r))
        return proof_opaque(e, 0, true, PROOF_WHY_WRAPS);
    if (cb == 1)
        r.root = proof_add_roots(a.root, b.root);
    else
        r.root = a.root == b.root ? 0 : b.root && !(b.root & AFFINE_WEAK) ? AFFINE_MIXED : a.root;
    return r;
}

// --- EXTEND ------------------------------------------------------------------------------------------------

// The value of the low bits, as a symbol of its own. Equal bits have equal values, so there is one such
// symbol for a form.
static struct affine extension(struct proof_state *e, struct affine f, unsigned bits, bool sign,
                               uint8_t reason)
{
    uint8_t kind = sign ? AFFINE_SIGNED : AFFINE_UNSIGNED;
    uint32_t known = affine_find(&e->s, kind, f, bits);
    if (known != PROOF_NONE)
        return affine_of_sym(&e->s, known);
    struct affine_sym x = {.kind = kind, .of = f, .by = bits, .facts = PROOF_NONE};
    x.lo = type_lo(bits, sign);
    x.hi = type_hi(bits, sign);
    x.reason = reason ? reason : PROOF_WHY_WRAPS;
    x.block = affine_block(&e->s, f);
    if (bits > 16)
        x.soft = AFFINE_SOFT_HI | (sign ? AFFINE_SOFT_LO : 0);
    if (bits == 64 && !sign)  // up to 2^64 - 1, which `hi` cannot say
        x.soft |= AFFINE_NO_HI;
    return affine_new(&e->s, x);
}

static void fact_here(struct proof_state *e, int64_t ca, struct affine a, int64_t cb, struct affine b)
{
    struct affine f;
    if (affine_sum(&e->s, ca, a, cb, b, &f))
        affine_fact(&e->s, f, &e->s.blocks[e->block].facts);
}

// Keeps a range that two cases gave: no combination of facts gives it.
static void keep_cases(struct proof_state *e, struct affine f, const struct affine_range *r)
{
    struct affine one, other;
    int64_t coef;
    if (!proof_fits(r->lo) || !proof_fits(r->hi) || r->soft || !affine_cases(&e->s, f, &coef, &one, &other))
        return;
    fact_here(e, 1, f, -1, affine_const((int64_t)r->lo));
    fact_here(e, -1, f, 1, affine_const((int64_t)r->hi));
}

struct affine proof_extend(struct proof_state *e, struct affine f, unsigned bits, bool sign)
{
    enum { BUDGET = 128 };  // for a form that only a guard keeps from wrapping around
    affine_wide lo = type_lo(bits, sign), hi = type_hi(bits, sign), turn = (affine_wide)1 << bits;
    struct affine_range r = affine_box(&e->s, f);
    if (r.lo >= lo && r.hi <= hi)
        return f;
    if (r.hi - r.lo < turn && e->s.budget < BUDGET)
        e->s.budget = BUDGET;
    r = bound(e, f);
    if (r.lo >= lo && r.hi <= hi) {
        keep_cases(e, f, &r);
        return f;
    }
    if (bits == 64)
        return extension(e, f, bits, sign, r.reason);
    affine_wide turns = (r.lo - lo) / turn - ((r.lo - lo) % turn < 0);
    struct affine moved;
    if (proof_fits(r.lo) && proof_fits(r.hi) && r.hi - turns * turn <= hi && proof_fits(turns * turn) &&
        affine_scale(&e->s, f, 1, (int64_t)(-turns * turn), &moved))
        return moved;
    return extension(e, f, bits, sign, r.reason);
}

// --- products and quotients --------------------------------------------------------------------------------

static struct affine product(struct proof_state *e, struct affine a, struct affine b)
{
    struct affine r;
    if (affine_is_const(b)) {
        struct affine t = a;
        a = b;
        b = t;
    }
    if (affine_is_const(a)) {
        if (!affine_scale(&e->s, b, a.c, 0, &r))
            return proof_opaque(e, 0, true, PROOF_WHY_WRAPS);
        r.root = a.c == 1 ? b.root : 0;
        return r;
    }
    struct affine_range x = bound(e, a), y = bound(e, b);
    if (x.soft || y.soft || !proof_fits(x.lo) || !proof_fits(x.hi) || !proof_fits(y.lo) || !proof_fits(y.hi))
        return proof_opaque(e, 0, true, x.reason ? x.reason : y.reason ? y.reason : PROOF_WHY_PRODUCT);
    affine_wide ends[4] = {x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi};
    struct affine_range z = {.lo = ends[0], .hi = ends[0], .reason = PROOF_WHY_PRODUCT};
    for (unsigned i = 1; i < 4; i++) {
        z.lo = ends[i] < z.lo ? ends[i] : z.lo;
        z.hi = ends[i] > z.hi ? ends[i] : z.hi;
    }
    r = proof_within(e, z);
    struct affine of = affine_power(&e->s, a) ? a : b;
    if (r.n == 1 && !e->s.full && proof_fits(z.lo) && proof_fits(z.hi) && affine_power(&e->s, of)) {
        struct affine_sym *made = &e->s.syms[e->s.terms[r.first].sym];
        made->kind = AFFINE_MULTIPLE;
        made->of = of;
        made->by = affine_power(&e->s, of);
    }
    return r;
}

static affine_wide floor_div(affine_wide a, int64_t b)
{
    return a / b - (a % b < 0);
}

// Splits f == d * *whole + *rest. Coefficients that d divides go to *whole, of others nothing; if d is at
// least 2^32, as in a multiplication that stands for a division, their multiples of d do too.
static bool split(struct proof_state *e, struct affine f, int64_t d, struct affine *whole,
                  struct affine *rest)
{
    struct affine_state *s = &e->s;
    int64_t c = (int64_t)floor_div(f.c, d);
    *whole = affine_const(c);
    *rest = affine_const((int64_t)(f.c - (affine_wide)c * d));
    for (uint32_t i = 0; i < f.n; i++) {
        struct affine_term t = s->terms[f.first + i];
        int64_t q = t.coef % d == 0 ? t.coef / d : d >> 32 ? (int64_t)floor_div(t.coef, d) : 0;
        struct affine x = affine_of_sym(s, t.sym);
        if ((q && !affine_sum(s, 1, *whole, q, x, whole)) ||
            !affine_sum(s, 1, *rest, (int64_t)(t.coef - (affine_wide)q * d), x, rest))
            return false;
    }
    return true;
}

// Adds d*q <= f + below, and f <= d*q + d - 1.
static void add_quotient_facts(struct affine_state *s, struct affine f, int64_t d, int64_t below,
                               struct affine q, uint32_t *facts)
{
    struct affine low, high;
    if (affine_sum(s, 1, f, -d, q, &low) && affine_scale(s, low, 1, below, &low))
        affine_fact(s, low, facts);
    if (affine_sum(s, -1, f, d, q, &high) && affine_scale(s, high, 1, d - 1, &high))
        affine_fact(s, high, facts);
}

// If *f is a quotient, rounded down, plus a number, stores what is divided and multiplies *by by the divisor:
// floor((floor(x / a) + c) / b) == floor((x + a * c) / (a * b)).
static bool inside_quotient(struct affine_state *s, struct affine *f, int64_t *by)
{
    const struct affine_term *t = &s->terms[f->first];
    const struct affine_sym *x = f->n == 1 ? &s->syms[t->sym] : NULL;
    int64_t plus, product;
    if (!x || t->coef != 1 || x->kind != AFFINE_FLOOR || __builtin_mul_overflow(f->c, x->by, &plus) ||
        __builtin_mul_overflow(*by, x->by, &product) || !affine_scale(s, x->of, 1, plus, f))
        return false;
    *by = product;
    return true;
}

// Ties the quotient q of f by d to those of f by the greatest divisor of d and by the least multiple: floor(f
// / (d * m)) == floor(floor(f / d) / m). What f itself has to do with both gives the same without rounding.
static void tie_quotients(struct affine_state *s, struct affine f, int64_t d, struct affine q,
                          uint32_t *facts)
{
    uint32_t finer = PROOF_NONE, coarser = PROOF_NONE;
    for (uint32_t i = 0; i < s->nsyms; i++) {
        const struct affine_sym *x = &s->syms[i];
        if (x->kind != AFFINE_FLOOR || x->by == d || !affine_same(s, x->of, f))
            continue;
        if (d % x->by == 0 && (finer == PROOF_NONE || x->by > s->syms[finer].by))
            finer = i;
        if (x->by % d == 0 && (coarser == PROOF_NONE || x->by < s->syms[coarser].by))
            coarser = i;
    }
    if (finer != PROOF_NONE)
        add_quotient_facts(s, affine_of_sym(s, finer), d / s->syms[finer].by, 0, q, facts);
    if (coarser != PROOF_NONE)
        add_quotient_facts(s, q, s->syms[coarser].by / d, 0, affine_of_sym(s, coarser), facts);
}

// The symbol f / d, rounded as its kind says, with the facts that tie it to f.
static struct affine quotient_symbol(struct proof_state *e, struct affine f, int64_t d, uint8_t kind)
{
    struct affine_state *s = &e->s;
    uint32_t known = affine_find(s, kind, f, d);
    if (known != PROOF_NONE)
        return affine_of_sym(s, known);
    struct affine_range r = bound(e, f);
    if (!proof_fits(r.lo) || !proof_fits(r.hi))
        return proof_opaque(e, 0, true, r.reason ? r.reason : PROOF_WHY_WRAPS);
    int64_t power = affine_power(s, f);
    struct affine_sym x = {.kind = kind, .of = f, .by = d, .soft = r.soft, .reason = r.reason};
    x.lo = kind == AFFINE_FLOOR ? (int64_t)floor_div(r.lo, d) : (int64_t)(r.lo / d);
    x.hi = kind == AFFINE_FLOOR ? (int64_t)floor_div(r.hi, d) : (int64_t)(r.hi / d);
    x.block = affine_block(s, f);
    x.facts = PROOF_NONE;
    if (!(d & (d - 1)))
        x.power = power > d ? power / d : power > 0;
    // The range of f holds here only: a symbol that others find must not keep it, but may keep what holds
    // wherever it exists.
    if (r.facts) {
        struct affine_range all = affine_bound(s, f, (struct affine_place){x.block, PROOF_NONE});
        if (!proof_fits(all.lo) || !proof_fits(all.hi))
            return proof_opaque(e, 0, true, all.reason ? all.reason : PROOF_WHY_WRAPS);
        x.lo = kind == AFFINE_FLOOR ? (int64_t)floor_div(all.lo, d) : (int64_t)(all.lo / d);
        x.hi = kind == AFFINE_FLOOR ? (int64_t)floor_div(all.hi, d) : (int64_t)(all.hi / d);
        x.soft = all.soft;
        x.reason = all.reason;
    }
    struct affine q = affine_new(s, x);
    if (s->full)
        return q;
    uint32_t facts = PROOF_NONE, sym = s->nsyms - 1;
    add_quotient_facts(s, f, d, kind == AFFINE_FLOOR ? 0 : d - 1, q, &facts);
    // What a quotient's quotient is says in one fact what it takes two of both to say.
    struct affine inner = f;
    int64_t by = d;
    while (kind == AFFINE_FLOOR && inside_quotient(s, &inner, &by)) {
        f = inner;
        d = by;
    }
    if (d != x.by)
        add_quotient_facts(s, f, d, 0, q, &facts);
    if (kind == AFFINE_FLOOR)
        tie_quotients(s, x.of, x.by, q, &facts);
    s->syms[sym].facts = facts;
    return q;
}

static bool divide_exactly(struct proof_state *e, struct affine f, int64_t d, struct affine *out)
{
    struct affine_state *s = &e->s;
    *out = affine_const((int64_t)floor_div(f.c, d));
    for (uint32_t i = 0; i < f.n; i++) {
        struct affine_term t = s->terms[f.first + i];
        if (!affine_sum(s, 1, *out, t.coef / d, affine_of_sym(s, t.sym), out))
            return false;
    }
    return true;
}

static struct affine quotient(struct proof_state *e, struct affine f, int64_t d);
static struct affine least(struct proof_state *e, struct affine a, struct affine b);
static struct affine greatest(struct proof_state *e, struct affine a, struct affine b);

// floor(f / d) grows with f: if f is the smaller or the greater one of two forms, q is that of their
// quotients. These may have become simple by what holds here only, and so does the fact that q is equal.
static void tie_cases(struct proof_state *e, struct affine q, struct affine f, int64_t d)
{
    struct affine one, other;
    int64_t coef;
    if (e->s.ties == AFFINE_MOST_CASES || !affine_cases(&e->s, f, &coef, &one, &other))
        return;
    e->s.ties++;
    one = quotient(e, one, d);
    other = quotient(e, other, d);
    struct affine z = coef > 0 ? least(e, one, other) : greatest(e, one, other);
    e->s.ties--;
    fact_here(e, 1, q, -1, z);
    fact_here(e, 1, z, -1, q);
}

// A multiplication in place of a division: with n = ceil(d / g) and over = g*n - d, floor(g*x / d) ==
// floor(x / n) for 0 <= x if over * x < d, since x/n + x*over/(n*d) stays below the next integer. Returns
// false if f is no such product.
static bool quotient_by_magic(struct proof_state *e, struct affine f, int64_t d, struct affine *out)
{
    struct affine part;
    uint64_t g = d >= 1 << 8 ? affine_content(&e->s, f, 0) : 0;
    if (g < 2 || g >= (uint64_t)d || f.c % (int64_t)g != 0 || !divide_exactly(e, f, (int64_t)g, &part))
        return false;
    struct affine_range x = bound(e, part);
    int64_t n = (int64_t)(((uint64_t)d + g - 1) / g);
    affine_wide over = (affine_wide)g * n - d;
    if (x.lo < 0 || !proof_fits(x.hi) || over * x.hi >= d)
        return false;
    *out = quotient(e, part, n);
    return true;
}

// floor((g*y + r) / (g*n)) == floor(y / n) for 0 <= r < g, where y is a thread or block index times a number:
// of a place in a block's tile and the tile's number only the latter counts. Returns false if f is none such.
static bool quotient_of_index(struct proof_state *e, struct affine f, int64_t d, struct affine *out)
{
    enum { MOST_TRIES = 2 };
    unsigned tries = 0;
    for (uint32_t i = 0; i < f.n && f.n > 1 && tries < MOST_TRIES; i++) {
        struct affine_term t = e->s.terms[f.first + i];
        uint64_t g = affine_gcd((uint64_t)d, t.coef < 0 ? -(uint64_t)t.coef : (uint64_t)t.coef);
        struct affine index, small, y;
        if (g < 2 || !e->s.syms[t.sym].thread || t.coef == INT64_MIN)
            continue;
        index = affine_of_sym(&e->s, t.sym);
        if (!affine_sum(&e->s, 1, f, -t.coef, index, &small))
            continue;
        tries++;
        struct affine_range r = bound(e, small);
        if (r.lo >= 0 && r.hi < (affine_wide)g && affine_scale(&e->s, index, t.coef / (int64_t)g, 0, &y)) {
            *out = quotient(e, y, d / (int64_t)g);
            return true;
        }
    }
    return false;
}

// floor(rest / d), where rest has no multiples of d.
static struct affine quotient_of_rest(struct proof_state *e, struct affine rest, int64_t d)
{
    struct affine part;
    struct affine_range r = affine_box(&e->s, rest);
    affine_wide low = floor_div(r.lo, d);
    if (low != floor_div(r.hi, d)) {
        r = bound(e, rest);
        low = floor_div(r.lo, d);
    }
    if (proof_fits(r.lo) && proof_fits(r.hi) && low == floor_div(r.hi, d)) {
        keep_cases(e, rest, &r);
        return affine_const((int64_t)low);
    }
    // floor((g*y + c) / (g*n)) == floor(y / n) for 0 <= c < g, since floor(floor(z) / n) == floor(z / n).
    uint64_t g = affine_content(&e->s, rest, (uint64_t)d);
    if (g > 1 && g < (uint64_t)d && divide_exactly(e, rest, (int64_t)g, &part))
        return quotient(e, part, d / (int64_t)g);
    struct affine q;
    if (quotient_by_magic(e, rest, d, &q) || quotient_of_index(e, rest, d, &q))
        return q;
    q = quotient_symbol(e, rest, d, AFFINE_FLOOR);
    tie_cases(e, q, rest, d);
    return q;
}

// floor(f / d) for d > 0
static struct affine quotient(struct proof_state *e, struct affine f, int64_t d)
{
    struct affine whole, rest, q;
    if (d == 1)
        return f;
    // Before multiples of d are split off, which may be parts of all of the product's terms.
    if (quotient_by_magic(e, f, d, &q))
        return q;
    if (!split(e, f, d, &whole, &rest))
        return proof_opaque(e, 0, true, PROOF_WHY_WRAPS);
    return add(e, whole, 1, quotient_of_rest(e, rest, d));
}

static struct affine negative(struct proof_state *e, struct affine f)
{
    return add(e, affine_const(0), -1, f);
}

// a / b, rounded towards 0. A quotient by 0 may be anything.
static struct affine divide(struct proof_state *e, struct affine a, struct affine b)
{
    a.root = b.root = 0;
    struct affine_range x = bound(e, a);
    if (affine_is_const(b) && b.c && b.c != INT64_MIN) {
        int64_t d = b.c < 0 ? -b.c : b.c;
        struct affine q;
        if (x.lo >= 0)
            q = quotient(e, a, d);
        else if (x.hi <= 0)
            q = negative(e, quotient(e, negative(e, a), d));
        else
            q = quotient_symbol(e, a, d, AFFINE_TRUNC);
        return b.c < 0 ? negative(e, q) : q;
    }
    struct affine_range y = bound(e, b);
    if ((x.soft & AFFINE_SOFT_HI) || x.lo < 0 || y.lo < 1)
        return proof_opaque(e, 0, true, x.reason ? x.reason : y.reason ? y.reason : PROOF_WHY_PRODUCT);
    return proof_within(e, (struct affine_range){.lo = 0, .hi = x.hi / y.lo});
}

// Ties a new symbol, the last one made, to a form: form >= 0 from now on.
static void tie(struct proof_state *e, struct affine made, int64_t ca, int64_t cm, struct affine a, int64_t c)
{
    struct affine f;
    if (made.n != 1 || e->s.full)
        return;
    if (affine_sum(&e->s, ca, a, cm, made, &f) && affine_scale(&e->s, f, 1, c, &f))
        affine_fact(&e->s, f, &e->s.syms[e->s.terms[made.first].sym].facts);
}

// Ties m == x mod s, where x is in [0, most], if the values of s are powers of 2, or 0, which leaves all of
// x. Then x - m is the greatest multiple of s that is not above x, or 0 if s is 0; and x - m + s is not above
// any multiple of all s that is above x.
static void tie_rest(struct proof_state *e, struct affine m, struct affine x, affine_wide most,
                     struct affine s)
{
    struct affine sum;
    int64_t power = affine_power(&e->s, s);
    affine_wide above = power ? (most / power + 1) * power : 0;
    if (power && proof_fits(above) && affine_sum(&e->s, 1, x, 1, s, &sum))
        tie(e, m, -1, 1, sum, (int64_t)above);
}

static struct affine remainder_of(struct proof_state *e, struct affine a, struct affine b)
{
    a.root = b.root = 0;
    if (affine_is_const(b) && b.c && b.c != INT64_MIN)
        return add(e, a, -1, product(e, b, divide(e, a, b)));
    struct affine_range x = bound(e, a), y = bound(e, b);
    if (y.soft || x.lo < 0 || y.lo < 1)
        return proof_opaque(e, 0, true, x.reason ? x.reason : y.reason ? y.reason : PROOF_WHY_PRODUCT);
    affine_wide most = x.hi < y.hi - 1 ? x.hi : y.hi - 1;
    struct affine r = proof_within(e, (struct affine_range){.lo = 0, .hi = most});
    if (proof_fits(most))
        tie(e, r, 1, -1, b, -1);
    if (proof_fits(most) && !x.soft)
        tie_rest(e, r, a, x.hi, b);
    return r;
}

// --- bits --------------------------------------------------------------------------------------------------

// A value of `len` bits that a mask has passed: a bound that was only its type's is now one that is meant.
static struct affine meant(struct proof_state *e, struct affine f, unsigned len)
{
    struct affine_range r = bound(e, f);
    if (!r.soft || r.lo < 0 || r.hi >= (affine_wide)1 << len)
        return f;
    struct affine q = proof_within(e, (struct affine_range){.lo = r.lo, .hi = r.hi});
    fact_here(e, 1, q, -1, f);
    fact_here(e, 1, f, -1, q);
    return q;
}

// Bits pos to pos + len - 1 of any number congruent to f modulo 2^(pos + len).
static struct affine field(struct proof_state *e, struct affine f, unsigned pos, unsigned len)
{
    f.root = 0;
    if (pos + len > 62)
        return proof_opaque(e, len, false, PROOF_WHY_BITS);
    struct affine low = quotient(e, f, 1LL << pos), high = quotient(e, f, 1LL << (pos + len));
    if (affine_is_const(high) && high.c == 0)
        return meant(e, low, len);
    return add(e, low, -1, product(e, affine_const(1LL << len), high));
}

static struct affine shift_left(struct proof_state *e, struct affine a, struct affine b, unsigned bits)
{
    if (affine_is_const(b)) {
        if (b.c < 0 || b.c >= bits)
            return affine_const(0);
        if (b.c < 63)
            return product(e, a, affine_const(1LL << b.c));
    }
    struct affine_range y = bound(e, b);
    if (!affine_is_const(a) || a.c < 0 || y.soft || y.lo < 0 || y.lo > y.hi || y.hi >= bits || y.hi > 62)
        return proof_opaque(e, bits, false, y.reason ? y.reason : PROOF_WHY_PRODUCT);
    return proof_within(
        e, (struct affine_range){.lo = (affine_wide)a.c << y.lo, .hi = (affine_wide)a.c << y.hi});
}

// a is the exact value of `bits` bits.
static struct affine shift_right(struct proof_state *e, struct affine a, struct affine b, unsigned bits)
{
    a.root = 0;
    if (affine_is_const(b)) {
        // An amount of 32 bits with its top bit set is a large one, whatever number stands for it.
        uint64_t by = b.c < 0 || b.c >= bits ? bits : (uint64_t)b.c;
        if (by <= 62)
            return quotient(e, a, 1LL << by);
    }
    struct affine_range x = bound(e, a);
    if (x.lo < 0 || x.soft)
        return proof_opaque(e, bits, true, x.reason ? x.reason : PROOF_WHY_BITS);
    return proof_within(e, (struct affine_range){.lo = 0, .hi = x.hi});
}

// The number of low bits that are 0 in every value of f.
static unsigned zeros(const struct proof_state *e, struct affine f)
{
    uint64_t g = affine_content(&e->s, f, f.c < 0 ? -(uint64_t)f.c : (uint64_t)f.c);
    return g ? (unsigned)__builtin_ctzll(g) : 64;
}

// Whether the bits of a and b are disjoint for sure: then both OR and XOR are sums.
static bool disjoint(struct proof_state *e, struct affine a, struct affine b)
{
    unsigned n = zeros(e, a);
    struct affine_range r = bound(e, b);
    return n > 0 && r.lo >= 0 && r.hi < (affine_wide)1 << n;
}

// A number from lo to hi that has no bits but these: a multiple of the lowest one.
static struct affine within_bits(struct proof_state *e, affine_wide lo, affine_wide hi, uint64_t bits)
{
    affine_wide unit = bits ? (affine_wide)(bits & -bits) : 1;
    struct affine r = proof_within(e, (struct affine_range){.lo = (lo + unit - 1) / unit, .hi = hi / unit});
    return product(e, affine_const((int64_t)unit), r);
}

static struct affine and_mask(struct proof_state *e, struct affine a, uint64_t mask, unsigned bits)
{
    if (!mask)
        return affine_const(0);
    unsigned pos = (unsigned)__builtin_ctzll(mask);
    uint64_t run = mask >> pos;
    unsigned len = run + 1 ? (unsigned)__builtin_ctzll(run + 1) : 64 - pos;
    if (run & (run + 1))  // holes
        return mask >> 62 ? proof_opaque(e, bits, false, PROOF_WHY_BITS) : within_bits(e, 0, mask, mask);
    uint16_t root = a.root;
    a.root = 0;
    if (pos + len >= bits) {  // all bits from pos on
        if (pos > 62)
            return proof_opaque(e, bits, false, PROOF_WHY_BITS);
        struct affine r = product(e, affine_const(1LL << pos), quotient(e, a, 1LL << pos));
        r.root = root;
        return r;
    }
    return product(e, affine_const(1LL << pos), field(e, a, pos, len));
}

static uint64_t mask_of(int64_t c, unsigned bits)
{
    return (uint64_t)c & (bits >= 64 ? ~0ULL : (1ULL << bits) - 1);
}

// The range of a content of `bits` bits that f stands for, if that is not negative; else false.
static bool natural(struct proof_state *e, struct affine f, unsigned bits, struct affine_range *r)
{
    *r = bound(e, f);
    return r->lo >= 0 && r->hi <= type_hi(bits, false);
}

// The smallest 2^n - 1 that is at least v.
static affine_wide all_ones(affine_wide v)
{
    affine_wide m = 0;
    while (m < v)
        m = m * 2 + 1;
    return m;
}

// What and, or and xor are applied to: two forms, the bits that each may have, and the width.
struct logic {
    unsigned op, bits;
    struct affine a, b;
    uint64_t of_a, of_b;
};

static struct affine logic(struct proof_state *e, struct logic l);

// Multiples of 2^z: (2^z * a) xor (2^z * b) == 2^z * (a xor b), where a and b have z bits less.
static bool flips_multiples(struct proof_state *e, struct logic l, struct affine *out)
{
    if (l.op != PROOF_XOR || !affine_is_const(l.b) || l.b.c <= 0)
        return false;
    unsigned za = zeros(e, l.a), zb = (unsigned)__builtin_ctzll((uint64_t)l.b.c), z = za < zb ? za : zb;
    if (!z || z >= l.bits || z > 31 || !divide_exactly(e, l.a, 1LL << z, &l.a))
        return false;
    l.b = affine_const(l.b.c >> z);
    l.bits -= z;
    l.of_a = l.of_a == PROOF_ANY_BITS ? l.of_a : l.of_a >> z;
    l.of_b = l.of_b == PROOF_ANY_BITS ? l.of_b : l.of_b >> z;
    *out = product(e, affine_const(1LL << z), logic(e, l));
    return true;
}

// a and b, neither of which is a number: at most the smaller one.
static struct affine and_forms(struct proof_state *e, const struct logic *l)
{
    struct affine_range x, y;
    struct affine r, s, a = l->a, b = l->b;
    bool nx = natural(e, a, l->bits, &x), ny = natural(e, b, l->bits, &y);
    if (!(nx && !x.soft) && !(ny && !y.soft))
        return proof_opaque(e, l->bits, false, x.reason ? x.reason : y.reason ? y.reason : PROOF_WHY_BITS);
    bool first = !(ny && !y.soft) || (nx && !x.soft && x.hi < y.hi);
    r = proof_within(e, (struct affine_range){.lo = 0, .hi = first ? x.hi : y.hi});
    if (nx)
        tie(e, r, 1, -1, a, 0);
    if (ny)
        tie(e, r, 1, -1, b, 0);
    if (nx && !x.soft && affine_scale(&e->s, b, 1, 1, &s))
        tie_rest(e, r, a, x.hi, s);
    if (ny && !y.soft && affine_scale(&e->s, a, 1, 1, &s))
        tie_rest(e, r, b, y.hi, s);
    return r;
}

// a or b, a xor b, whose bits are not disjoint: no bit is set that both lack.
static struct affine or_forms(struct proof_state *e, const struct logic *l)
{
    struct affine_range x, y;
    bool plain = proof_bits_below(l->of_a, l->bits - 1) && proof_bits_below(l->of_b, l->bits - 1);
    bool nx = natural(e, l->a, l->bits, &x), ny = natural(e, l->b, l->bits, &y);
    bool ranges = nx && ny && !x.soft && !y.soft;
    if (!plain && !ranges)
        return proof_opaque(e, l->bits, false, x.reason ? x.reason : y.reason ? y.reason : PROOF_WHY_BITS);
    affine_wide ones = ranges ? all_ones(x.hi > y.hi ? x.hi : y.hi) : (affine_wide)(l->of_a | l->of_b);
    if (ranges && l->op == PROOF_XOR && affine_is_const(l->b) && l->b.c == ones)
        return add(e, l->b, -1, l->a);
    if (plain && (affine_wide)(l->of_a | l->of_b) < ones)
        ones = (affine_wide)(l->of_a | l->of_b);
    affine_wide lo = l->op == PROOF_XOR || !ranges ? 0 : x.lo > y.lo ? x.lo : y.lo;
    return within_bits(e, lo, ones, plain ? l->of_a | l->of_b : 1);
}

// a and a number. A mask that takes all bits that may be set, or none of them, is none.
static struct affine and_number(struct proof_state *e, const struct logic *l)
{
    uint64_t mask = mask_of(l->b.c, l->bits);
    bool plain = !l->a.root && proof_bits_below(l->of_a, l->bits - 1);
    if (plain && !(l->of_a & ~mask))
        return l->a;
    // Bits that are not set anyway are left in a mask without holes: others would have to be taken off.
    uint64_t up = mask ? mask + (mask & -mask) : 0;
    bool holes = up & mask;
    return and_mask(e, l->a, plain && holes ? mask & l->of_a : mask, l->bits);
}

// Keeps what the bits of a sum say of it, if its symbols do not say that: they may be parts of one another.
static void keep_bits(struct proof_state *e, struct affine f, uint64_t bits)
{
    struct affine_range r = affine_box(&e->s, f);
    affine_wide most = (affine_wide)bits;
    if (f.n > 2 && (r.lo < 0 || r.hi > most))
        r = bound(e, f);
    if (f.n > 2 && r.lo < 0)
        fact_here(e, 1, f, 0, f);
    if (f.n > 2 && r.hi > most)
        fact_here(e, -1, f, 1, affine_const((int64_t)bits));
}

static struct affine logic(struct proof_state *e, struct logic l)
{
    struct affine r;
    bool is_and = l.op == PROOF_AND;
    if (affine_is_const(l.a) && affine_is_const(l.b))
        return affine_const(is_and ? l.a.c & l.b.c : l.op == PROOF_OR ? l.a.c | l.b.c : l.a.c ^ l.b.c);
    if (affine_is_const(l.a)) {
        struct logic turned = {l.op, l.bits, l.b, l.a, l.of_b, l.of_a};
        l = turned;
    }
    if (affine_is_const(l.b) && is_and)
        return and_number(e, &l);
    if (affine_is_const(l.b) && l.op == PROOF_XOR && mask_of(l.b.c, l.bits) == mask_of(-1, l.bits))
        return add(e, affine_const(-1), -1, l.a);
    if (affine_is_const(l.b) && l.b.c == 0)
        return l.a;
    l.a.root = l.b.root = 0;
    if (flips_multiples(e, l, &r))
        return r;
    if (is_and)
        return and_forms(e, &l);
    bool plain = proof_bits_below(l.of_a, l.bits - 1) && proof_bits_below(l.of_b, l.bits - 1);
    if (!(plain && !(l.of_a & l.of_b)) && !disjoint(e, l.a, l.b) && !disjoint(e, l.b, l.a))
        return or_forms(e, &l);
    r = add(e, l.a, 1, l.b);
    if (plain)
        keep_bits(e, r, l.of_a | l.of_b);
    return r;
}

// --- minimum, maximum, magnitude ---------------------------------------------------------------------------

// Whether a - b is a constant.
static bool constant_apart(struct proof_state *e, struct affine a, struct affine b, int64_t *c)
{
    struct affine d;
    uint32_t terms = e->s.nterms;
    bool apart = a.n == b.n && affine_sum(&e->s, 1, a, -1, b, &d) && !d.n;
    e->s.nterms = terms;
    *c = apart ? d.c : 0;
    return apart;
}

// Finds a symbol made here, or in a block that dominates this one, for forms that are as far from each other:
// least(a + c, b + c) == least(a, b) + c.
static bool known_least(struct proof_state *e, struct affine a, struct affine b, struct affine *m)
{
    int64_t c, d;
    for (uint32_t i = 0; i < e->s.nsyms; i++) {
        const struct affine_sym *x = &e->s.syms[i];
        if (!x->is_least || !affine_above(&e->s, x->block, e->block))
            continue;
        bool same = constant_apart(e, a, x->one, &c) && constant_apart(e, b, x->other, &d) && c == d;
        same = same || (constant_apart(e, a, x->other, &c) && constant_apart(e, b, x->one, &d) && c == d);
        if (same)
            return affine_scale(&e->s, affine_of_sym(&e->s, i), 1, c, m);
    }
    return false;
}

static struct affine least(struct proof_state *e, struct affine a, struct affine b)
{
    struct affine diff = add(e, a, -1, b);
    struct affine_range d = bound(e, diff);
    if (d.hi <= 0)
        return a;
    if (d.lo >= 0)
        return b;
    struct affine m;
    if (known_least(e, a, b, &m))
        return m;
    struct affine_range x = bound(e, a), y = bound(e, b), r = {0};
    bool first = !(x.soft & AFFINE_SOFT_HI) && ((y.soft & AFFINE_SOFT_HI) || x.hi <= y.hi);
    r.lo = x.lo < y.lo ? x.lo : y.lo;
    r.hi = first ? x.hi : y.hi;
    r.soft = ((x.soft | y.soft) & AFFINE_SOFT_LO) | (x.soft & y.soft & AFFINE_SOFT_HI);
    r.reason = r.soft ? (x.reason ? x.reason : y.reason) : 0;
    m = proof_within(e, r);
    if (!proof_fits(r.lo) || !proof_fits(r.hi))  // then m is congruent to the result, not equal
        return m;
    tie(e, m, 1, -1, a, 0);
    tie(e, m, 1, -1, b, 0);
    int64_t pa = affine_power(&e->s, a), pb = affine_power(&e->s, b);
    if (m.n == 1 && !e->s.full)
        e->s.syms[e->s.terms[m.first].sym].power = pa < pb ? pa : pb;
    // With two forms of which nothing is known, nothing can be found.
    if (m.n == 1 && !e->s.full && !(x.soft && y.soft)) {
        struct affine_sym *sym = &e->s.syms[e->s.terms[m.first].sym];
        sym->is_least = true;
        sym->one = a;
        sym->other = b;
    }
    return m;
}

static struct affine greatest(struct proof_state *e, struct affine a, struct affine b)
{
    return negative(e, least(e, negative(e, a), negative(e, b)));
}

// --- launch values -----------------------------------------------------------------------------------------

static struct affine launch_value(struct proof_state *e, int64_t which)
{
    const struct proof_launch *l = e->l;
    if (which == PROOF_DYNAMIC_SHARED)
        return affine_const(l->dynamic_shared);
    unsigned axis = (unsigned)which % 3;
    if (which >= PROOF_NCTAID)
        return affine_const(l->grid[axis]);
    if (which >= PROOF_NTID && which < PROOF_CTAID)
        return affine_const(l->block[axis]);
    bool thread = which < PROOF_NTID;
    uint32_t most = thread ? l->block[axis] : l->grid[axis], *known = &e->indices[axis + (thread ? 0 : 3)];
    if (most == 1)
        return affine_const(0);
    if (*known != PROOF_NONE)
        return affine_of_sym(&e->s, *known);
    struct affine_sym x = {.hi = (int64_t)most - 1, .thread = true, .facts = PROOF_NONE};
    struct affine f = affine_new(&e->s, x);
    *known = e->s.nsyms - 1;
    return f;
}

static struct affine parameter(struct proof_state *e, const struct proof_insn *i)
{
    uint64_t v = 0;
    __builtin_memcpy(&v, (const char *)e->l->params + i->imm, i->bits / 8);
    unsigned spare = 64 - i->bits;
    struct affine f = affine_const(i->sign ? (int64_t)(v << spare) >> spare : (int64_t)(v << spare >> spare));
    if (i->a != PROOF_NONE)
        f.root = (uint16_t)(i->a + 1) | (e->p->roots[i->a].strong ? 0 : AFFINE_WEAK);
    return f;
}

// The address of a variable. That of shared memory has its own small window; others are not known.
static struct affine base(struct proof_state *e, uint32_t root, uint32_t generic)
{
    uint32_t *known = &e->bases[root * 2 + generic];
    struct affine f;
    if (*known == PROOF_NONE) {
        struct affine_sym x = {.lo = 0, .hi = 1LL << 62, .facts = PROOF_NONE, .reason = PROOF_WHY_ROOTS};
        x.soft = AFFINE_SOFT_LO | AFFINE_SOFT_HI;
        if (!generic && e->p->roots[root].kind == PROOF_ROOT_SHARED)
            x.hi = 1 << 24;
        f = affine_new(&e->s, x);
        *known = e->s.nsyms - 1;
    } else {
        f = affine_of_sym(&e->s, *known);
    }
    f.root = (uint16_t)(root + 1);
    return f;
}

// An address in another space: the same distance from the same root.
static struct affine cast(struct proof_state *e, struct affine f, bool generic)
{
    uint16_t root = f.root & ~AFFINE_WEAK;
    if (!root || root == AFFINE_MIXED)
        return proof_opaque(e, 64, true, PROOF_WHY_NO_ROOT);
    uint32_t r = (uint32_t)root - 1, kind = e->p->roots[r].kind;
    // Its value is a number, and numbers change between spaces.
    if (kind == PROOF_ROOT_PARAM || kind == PROOF_ROOT_CHOICE)
        return proof_opaque(e, 64, true, PROOF_WHY_NO_ROOT);
    struct affine from = base(e, r, !generic), to = base(e, r, generic), out;
    if (!affine_sum(&e->s, 1, f, -1, from, &out) || !affine_sum(&e->s, 1, out, 1, to, &out))
        return proof_opaque(e, 64, true, PROOF_WHY_WRAPS);
    out.root = root;
    return out;
}

// An address in the memory of some block of the cluster: as far from the variable there as f is from the own
// one. mapa changes a part of the address, which f has in common with the variable only if f points into it.
static struct affine mapped(struct proof_state *e, struct affine f, bool generic)
{
    uint16_t root = f.root & ~AFFINE_WEAK;
    const struct proof_root *r = root && root != AFFINE_MIXED ? &e->p->roots[root - 1] : NULL;
    struct affine away, out;
    if (!r || r->kind != PROOF_ROOT_SHARED)
        return proof_opaque(e, 64, true, PROOF_WHY_NO_ROOT);
    if (!affine_sum(&e->s, 1, f, -1, base(e, root - 1u, generic), &away))
        return proof_opaque(e, 64, true, PROOF_WHY_WRAPS);
    struct affine_range at = bound(e, away);
    if (at.soft || at.lo < 0 || at.hi > (affine_wide)(r->size ? r->size : e->l->dynamic_shared))
        return proof_opaque(e, 64, true, at.reason ? at.reason : PROOF_WHY_WRAPS);
    struct affine_sym x = {
        .hi = 1LL << 62, .block = e->block, .facts = PROOF_NONE, .reason = PROOF_WHY_ROOTS};
    x.soft = AFFINE_SOFT_LO | AFFINE_SOFT_HI;
    x.mapped = root;
    x.generic = generic;
    if (!affine_sum(&e->s, 1, away, 1, affine_new(&e->s, x), &out))
        return proof_opaque(e, 64, true, PROOF_WHY_WRAPS);
    out.root = root;
    return out;
}

// One of several pointers, if f is a symbol without a root: then that symbol is what addresses start from.
static struct affine choice(struct proof_state *e, struct affine f, uint32_t root)
{
    if ((f.root && f.root != AFFINE_MIXED) || f.n != 1 || f.c || e->s.terms[f.first].coef != 1)
        return f;
    e->bases[root * 2] = e->s.terms[f.first].sym;
    f.root = (uint16_t)(root + 1) | (e->p->roots[root].strong ? 0 : AFFINE_WEAK);
    return f;
}

struct affine proof_value(struct proof_state *e, const struct proof_insn *i)
{
    struct affine a = {0}, b = {0};
    static const char *const operands[] = {
#define PROOF(id, text, result) text,
#include "flow/proof_ops.def"
    };
    if (operands[i->op][0] == 'v')
        a = e->forms[i->a];
    if (operands[i->op][1] == 'v')
        b = e->forms[i->b];
    switch (i->op) {
    case PROOF_CONST: return affine_const(i->imm);
    case PROOF_PARAM: return parameter(e, i);
    case PROOF_LAUNCH: return launch_value(e, i->imm);
    case PROOF_BASE: return base(e, i->a, i->b);
    case PROOF_BETWEEN: return proof_within(e, (struct affine_range){.lo = 0, .hi = i->imm});
    case PROOF_CAST: return cast(e, a, i->imm);
    case PROOF_MAPPED: return mapped(e, a, i->imm);
    case PROOF_CHOICE: return choice(e, a, i->b);
    case PROOF_EXTEND:
        return proof_bits_below(e->bits[i->a], i->bits - (i->sign ? 1u : 0u))
                   ? a
                   : proof_extend(e, a, i->bits, i->sign);
    case PROOF_ADD: return add(e, a, 1, b);
    case PROOF_SUB: return add(e, a, -1, b);
    case PROOF_MUL: return product(e, a, b);
    case PROOF_DIV: return divide(e, a, b);
    case PROOF_REM: return remainder_of(e, a, b);
    case PROOF_SHL: return shift_left(e, a, b, i->bits);
    case PROOF_SHR: return shift_right(e, a, b, i->bits);
    case PROOF_FIELD: return field(e, a, (unsigned)i->imm, i->b);
    case PROOF_AND:
    case PROOF_OR:
    case PROOF_XOR: return logic(e, (struct logic){i->op, i->bits, a, b, e->bits[i->a], e->bits[i->b]});
    case PROOF_MIN: return least(e, a, b);
    case PROOF_MAX: return greatest(e, a, b);
    case PROOF_ABS: return greatest(e, a, negative(e, a));
    default: return proof_opaque(e, i->bits, i->sign, i->reason);
    }
}
