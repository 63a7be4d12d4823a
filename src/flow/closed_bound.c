// SPDX-License-Identifier: MIT
// Bounds of polynomials with symbols, as polynomials without: from the ranges of the symbols, or by adding
// multiples of facts that cancel a symbol, as in affine_bound.c. Which facts are added is chosen by the
// numbers of the launch at hand; that their factors are not negative is a condition of the closed form.
#include "flow/closed_state.h"

enum { MOST_CANDIDATES = 32, MOST_DEPTH = 3, BUDGET = 60 };

// scale * E + ... <= form, after facts were added.
struct path {
    uint32_t n;
    struct {
        uint32_t fact, sym;
    } step[MOST_DEPTH];
};

struct search {
    struct closed_build *b;
    uint32_t n, budget;
    uint32_t candidates[MOST_CANDIDATES];
    uint8_t kind;
    bool found;
    affine_wide best;  // at this launch
    struct path path, best_path;
};

// The number of the symbol of a term; terms are sorted, so `i` is moved behind its last one.
static uint32_t next_symbol(const struct closed_build *b, struct poly f, uint32_t *i)
{
    uint32_t sym = b->terms[f.first + *i].sym;
    while (*i < f.n && b->terms[f.first + *i].sym == sym)
        ++*i;
    return sym ? sym - 1 : PROOF_NONE;
}

// The upper end of f by the ranges of its symbols at this launch. Returns false if there is none.
static bool box_value(struct closed_build *b, struct poly f, uint8_t kind, affine_wide *v)
{
    *v = 0;
    for (uint32_t i = 0; i < f.n && !b->failed;) {
        uint32_t terms = b->nterms, sym = next_symbol(b, f, &i);
        if (sym == PROOF_NONE) {
            *v += closed_value(b, closed_rest(b, f));
            b->nterms = terms;
            continue;
        }
        const struct closed_sym *x = &b->syms[sym];
        int64_t c = closed_value(b, closed_coef(b, f, sym));
        bool up = c >= 0;
        b->nterms = terms;
        if ((up ? x->hi_kind : x->lo_kind) < kind)
            return false;
        *v += (affine_wide)c * closed_value(b, up ? x->hi : x->lo);
        if (*v > (affine_wide)1 << 120 || *v < -((affine_wide)1 << 120))
            return false;
    }
    return !b->failed;
}

// The same as a polynomial, with the signs of coefficients as conditions.
static struct poly box_poly(struct closed_build *b, struct poly f)
{
    struct poly r = {0};
    for (uint32_t i = 0; i < f.n && !b->failed;) {
        uint32_t sym = next_symbol(b, f, &i);
        if (sym == PROOF_NONE) {
            r = closed_sum(b, 1, r, 1, closed_rest(b, f));
            continue;
        }
        struct poly c = closed_coef(b, f, sym);
        bool up = closed_sign(b, c);
        r = closed_sum(b, 1, r, 1, closed_times(b, c, up ? b->syms[sym].hi : b->syms[sym].lo));
    }
    return r;
}

// --- adding facts ------------------------------------------------------------------------------------------

static int64_t gcd(int64_t x, int64_t y)
{
    return (int64_t)affine_gcd(x < 0 ? -(uint64_t)x : (uint64_t)x, y < 0 ? -(uint64_t)y : (uint64_t)y);
}

// The gcd of the coefficients of terms with symbols; negative if it is 2^63.
static int64_t content(const struct closed_build *b, struct poly f)
{
    int64_t g = 0;
    for (uint32_t i = 0; i < f.n; i++)
        if (b->terms[f.first + i].sym)
            g = gcd(g, b->terms[f.first + i].coef);
    return g;
}

int64_t closed_factor(const struct closed_build *b, struct poly f, int64_t g)
{
    for (uint32_t i = 0; i < f.n; i++)
        g = gcd(g, b->terms[f.first + i].coef);
    return g;
}

// e + m * fact, without sym; *scale * e if a number needs that. `m` must not be negative.
static bool add_fact(struct closed_build *b, struct poly e, uint32_t fact, uint32_t sym, int64_t *scale,
                     struct poly *m, struct poly *out)
{
    struct poly f = b->facts[fact].form, g = closed_coef(b, f, sym), c = closed_coef(b, e, sym);
    int64_t number;
    if (!g.n || !c.n)
        return false;
    if (closed_is_const(b, g, &number) && number != INT64_MIN && !closed_divides(b, number, c)) {
        int64_t by = (number < 0 ? -number : number) / closed_factor(b, c, number);
        if (by > 1 << 20 || *scale > 1 << 20)
            return false;
        *scale *= by;
        e = closed_sum(b, by, e, 0, e);
        c = closed_coef(b, e, sym);
    }
    struct poly minus = closed_sum(b, -1, c, 0, c);
    if (b->failed || !closed_ratio(b, minus, g, m) || closed_value(b, *m) < 0)
        return false;
    *out = closed_sum(b, 1, e, 1, closed_times(b, *m, f));
    out->root = 0;
    return !b->failed;
}

static affine_wide floor_div(affine_wide a, int64_t d)
{
    return a / d - (a % d < 0);
}

static void try_facts(struct search *w, struct poly e, int64_t scale, unsigned depth);

static void try_fact(struct search *w, struct poly e, int64_t scale, unsigned depth, uint32_t fact,
                     uint32_t sym)
{
    struct closed_build *b = w->b;
    struct poly next, m;
    affine_wide v;
    if (!add_fact(b, e, fact, sym, &scale, &m, &next))
        return;
    w->path.step[w->path.n].fact = fact;
    w->path.step[w->path.n++].sym = sym;
    if (box_value(b, next, w->kind, &v)) {
        v = floor_div(v, scale);
        if (!w->found || v < w->best) {
            w->found = true;
            w->best = v;
            w->best_path = w->path;
        }
    }
    if (depth > 1)
        try_facts(w, next, scale, depth - 1);
    w->path.n--;
}

static void try_facts(struct search *w, struct poly e, int64_t scale, unsigned depth)
{
    struct closed_build *b = w->b;
    for (uint32_t i = 0; i < e.n;) {
        uint32_t sym = next_symbol(b, e, &i);
        for (uint32_t k = 0; k < w->n && sym != PROOF_NONE && w->budget; k++) {
            bool failed = b->failed;
            uint32_t terms = b->nterms;
            struct poly f = b->facts[w->candidates[k]].form;
            bool has = false;
            for (uint32_t j = 0; j < f.n; j++)
                has |= b->terms[f.first + j].sym == sym + 1;
            if (!has)
                continue;
            if (!b->searches)
                return;
            w->budget--;
            b->searches--;
            try_fact(w, e, scale, depth, w->candidates[k], sym);
            b->failed = failed;  // what does not fit is not tried
            b->nterms = terms;
        }
    }
}

static void add_list(struct search *w, uint32_t list)
{
    for (; list != PROOF_NONE && w->n < MOST_CANDIDATES; list = w->b->facts[list].next) {
        bool known = false;
        for (uint32_t k = 0; k < w->n && !known; k++)
            known = w->candidates[k] == list;
        if (!known)
            w->candidates[w->n++] = list;
    }
}

static void add_symbols(struct search *w, struct poly f)
{
    for (uint32_t i = 0; i < f.n; i++)
        if (w->b->terms[f.first + i].sym)
            add_list(w, w->b->syms[w->b->terms[f.first + i].sym - 1].facts);
}

static void gather(struct search *w, struct poly f, struct affine_place at)
{
    add_symbols(w, f);
    add_list(w, at.facts);
    for (uint32_t k = at.block; k != PROOF_NONE; k = w->b->blocks[k].up)
        add_list(w, w->b->blocks[k].facts);
    for (uint32_t k = 0; k < w->n; k++)
        add_symbols(w, w->b->facts[w->candidates[k]].form);
}

// Goes the best way again, with its conditions.
static struct poly path_poly(struct closed_build *b, struct poly e, const struct path *path)
{
    int64_t scale = 1;
    struct poly m;
    for (uint32_t i = 0; i < path->n && !b->failed; i++) {
        if (add_fact(b, e, path->step[i].fact, path->step[i].sym, &scale, &m, &e))
            closed_require(b, m);
        else
            b->failed = true;
    }
    return closed_floor(b, box_poly(b, e), closed_const(b, scale));
}

// The upper end of f, which has no constant, and whose coefficients have nothing in common.
static struct closed_end upper(struct closed_build *b, struct poly f, struct affine_place at, uint8_t kind,
                               bool facts)
{
    struct search w = {.b = b, .kind = kind, .budget = BUDGET};
    affine_wide box;
    uint32_t terms = b->nterms;
    bool boxed = box_value(b, f, kind, &box);
    if (facts) {
        gather(&w, f, at);
        try_facts(&w, f, 1, MOST_DEPTH);
    }
    b->nterms = terms;
    if (!w.found)
        return boxed ? (struct closed_end){kind, box_poly(b, f)} : (struct closed_end){0};
    struct poly p = path_poly(b, f, &w.best_path);
    return (struct closed_end){kind, boxed ? closed_pair(b, CLOSED_MIN, box_poly(b, f), p) : p};
}

struct closed_mark closed_mark(const struct closed_build *b)
{
    return (struct closed_mark){b->nterms, b->nmonos, b->natoms, b->nops};
}

void closed_undo(struct closed_build *b, struct closed_mark m)
{
    b->nterms = m.nterms;
    b->nmonos = m.nmonos;
    b->natoms = m.natoms;
    b->nops = m.nops;
    for (uint32_t i = 0; i < b->nmonos; i++)
        if (b->monos[i].reg >= b->nops)
            b->monos[i].reg = CLOSED_NO_REG;
}

static struct closed_end find_bound(struct closed_build *b, struct poly f, bool up, struct affine_place at,
                                    uint8_t kind, bool facts)
{
    struct poly rest = closed_rest(b, f);
    if (closed_uniform(b, f)) {
        rest.root = 0;
        return (struct closed_end){CLOSED_HARD, rest};
    }
    struct poly e = closed_sum(b, up ? 1 : -1, f, up ? -1 : 1, rest);
    int64_t g = content(b, e);
    if (b->failed || g < 1)
        return (struct closed_end){0};
    struct closed_end r = upper(b, closed_over(b, e, g), at, kind, facts);
    if (r.kind == CLOSED_NONE)
        return r;
    r.at = closed_sum(b, up ? g : -g, r.at, 1, rest);
    return r;
}

// What does not fit has no bound.
static struct closed_end bound(struct closed_build *b, struct poly f, bool up, struct affine_place at,
                               uint8_t kind, bool facts)
{
    struct closed_mark m = closed_mark(b);
    if (b->failed)
        return (struct closed_end){0};
    struct closed_end r = find_bound(b, f, up, at, kind, facts);
    if (!b->failed)
        return r;
    b->failed = false;
    closed_undo(b, m);
    return (struct closed_end){0};
}

struct closed_end closed_bound(struct closed_build *b, struct poly f, bool up, struct affine_place at,
                               uint8_t kind)
{
    return bound(b, f, up, at, kind, true);
}

struct closed_end closed_box(struct closed_build *b, struct poly f, bool up, uint8_t kind)
{
    return bound(b, f, up, closed_here(b), kind, false);
}

// Requires end >= lo. An end that has to lie in 64 bits only has to be computed: a condition keeps it alive.
static void require_at_least(struct closed_build *b, struct poly end, affine_wide lo)
{
    if (lo > INT64_MIN)
        closed_require(b, closed_plus(b, end, (int64_t)-lo));
    else
        closed_emit(b, (struct closed_insn){.op = CLOSED_GE, .a = closed_whole(b, end), .imm = INT64_MIN});
}

static void require_at_most(struct closed_build *b, struct poly end, affine_wide hi)
{
    if (hi < INT64_MAX)
        closed_require(b, closed_sum(b, -1, end, 1, closed_const(b, (int64_t)hi)));
    else
        closed_emit(b, (struct closed_insn){.op = CLOSED_LE, .a = closed_whole(b, end), .imm = INT64_MAX});
}

static bool require_inside(struct closed_build *b, struct poly f, affine_wide lo, affine_wide hi, bool facts)
{
    struct closed_end low = bound(b, f, false, closed_here(b), CLOSED_SOFT, facts);
    struct closed_end high = bound(b, f, true, closed_here(b), CLOSED_SOFT, facts);
    if (b->failed || !low.kind || !high.kind || closed_value(b, low.at) < lo || closed_value(b, high.at) > hi)
        return false;
    require_at_least(b, low.at, lo);
    require_at_most(b, high.at, hi);
    return !b->failed;
}

bool closed_inside(struct closed_build *b, struct poly f, affine_wide lo, affine_wide hi)
{
    struct closed_mark m = closed_mark(b);
    if (require_inside(b, f, lo, hi, false))
        return true;
    if (b->failed || closed_uniform(b, f))
        return false;
    closed_undo(b, m);
    if (require_inside(b, f, lo, hi, true))
        return true;
    if (!b->failed)
        closed_undo(b, m);
    return false;
}

// A rule was not used for f, which is not known to be in a range: so it must be at all launches, or another
// one would get a better answer.
void closed_refuse(struct closed_build *b, struct poly f, affine_wide lo, affine_wide hi)
{
    struct closed_end low = closed_bound(b, f, false, closed_here(b), CLOSED_SOFT);
    struct closed_end high = closed_bound(b, f, true, closed_here(b), CLOSED_SOFT);
    struct closed_mark m = closed_mark(b);
    if (b->failed || !low.kind || !high.kind)
        return;
    if (closed_value(b, high.at) > hi)
        closed_require(b, closed_plus(b, closed_plus(b, high.at, (int64_t)-hi), -1));
    else if (closed_value(b, low.at) < lo)
        closed_require(b, closed_sum(b, -1, low.at, 1, closed_const(b, (int64_t)(lo - 1))));
    else
        b->doubtful = true;
    if (b->failed) {
        b->failed = false;
        b->doubtful = true;
        closed_undo(b, m);
    }
}

bool closed_at_least(struct closed_build *b, struct poly f, int64_t least)
{
    struct closed_mark m = closed_mark(b);
    struct closed_end low = closed_bound(b, f, false, closed_here(b), CLOSED_SOFT);
    if (b->failed)
        return false;
    if (!low.kind || closed_value(b, low.at) < least) {
        closed_undo(b, m);
        return false;
    }
    closed_require(b, closed_plus(b, low.at, -least));
    return !b->failed;
}

// --- facts, symbols, blocks --------------------------------------------------------------------------------

void closed_fact(struct closed_build *b, struct poly f, uint32_t *list)
{
    int64_t g = content(b, f);
    if (b->failed || closed_uniform(b, f))
        return;
    if (b->nfacts == b->most_facts) {
        b->failed = true;
        return;
    }
    if (g > 1) {  // g*x + c >= 0 says x + floor(c / g) >= 0
        struct poly rest = closed_rest(b, f);
        f = closed_sum(b, 1, closed_over(b, closed_sum(b, 1, f, -1, rest), g), 1,
                       closed_floor(b, rest, closed_const(b, g)));
    }
    f.root = 0;
    b->facts[b->nfacts] = (struct closed_fact){f, *list};
    *list = b->nfacts++;
}

uint32_t closed_sym(struct closed_build *b, struct closed_sym s)
{
    if (b->nsyms == b->most_syms) {
        b->failed = true;
        return 0;
    }
    b->syms[b->nsyms] = s;
    return b->nsyms++;
}

uint32_t closed_block_of(const struct closed_build *b, struct poly f)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        uint32_t sym = b->terms[f.first + i].sym;
        if (sym && b->blocks[b->syms[sym - 1].block].depth > b->blocks[deepest].depth)
            deepest = b->syms[sym - 1].block;
    }
    return deepest;
}

bool closed_above(const struct closed_build *b, uint32_t a, uint32_t c)
{
    while (b->blocks[c].depth > b->blocks[a].depth)
        c = b->blocks[c].up;
    return a == c;
}

uint32_t closed_common(const struct closed_build *b, uint32_t a, uint32_t c)
{
    while (a != c) {
        if (b->blocks[a].depth >= b->blocks[c].depth)
            a = b->blocks[a].up;
        else
            c = b->blocks[c].up;
    }
    return a;
}
