// SPDX-License-Identifier: MIT
// Bounds of forms. The upper bound of E is that of E + l*F for any l > 0 and any fact F >= 0; l is chosen
// so that a symbol disappears, which is a step of Fourier and Motzkin's elimination. Whichever facts are
// tried in whichever order, each result is a bound; so what is not tried costs precision only.
#include "flow/affine.h"

// BUDGET: combinations of facts that are tried for one end of one form.
enum { MOST_CANDIDATES = 32, MOST_DEPTH = 3, MOST_STEPS = 6, BUDGET = 40 };

// No bound. Sums beyond MOST_SUM count as unbounded too, so that nothing overflows: a product of two
// numbers of 64 bits is below 2^126, and a sum of MOST_SUM and such a product fits.
#define INFINITE ((affine_wide)1 << 120)
#define MOST_SUM ((affine_wide)1 << 110)

// scale * E <= c + sum of terms
struct combination {
    affine_wide c;
    int64_t scale;
    uint32_t n;
    struct affine_term terms[AFFINE_MOST_TERMS];
};

struct search {
    struct affine_state *s;
    uint32_t n;
    uint32_t candidates[MOST_CANDIDATES];  // facts
    uint64_t symbols[MOST_CANDIDATES];     // and their symbols: bit number modulo 64
    uint32_t budget;
    bool hard;  // soft ends count as infinite
};

static affine_wide floor_div(affine_wide a, affine_wide b)
{
    affine_wide q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

// The upper end of c plus terms, from the ranges of the symbols; INFINITE if it rests on a soft end and
// `hard`.
static affine_wide box_upper(const struct affine_state *s, affine_wide c, const struct affine_term *terms,
                             uint32_t n, bool hard)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct affine_sym *x = &s->syms[terms[i].sym];
        bool up = terms[i].coef > 0;
        unsigned blocked = up ? AFFINE_NO_HI | (hard ? AFFINE_SOFT_HI : 0) : hard ? AFFINE_SOFT_LO : 0;
        if (x->soft & blocked)
            return INFINITE;
        c += (affine_wide)terms[i].coef * (up ? x->hi : x->lo);
        if (c > MOST_SUM || c < -MOST_SUM)
            return INFINITE;
    }
    return c;
}

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

// *out = g * e + m * f, where e's term `at` and f's coefficient `g0` of the same symbol cancel each other.
static bool combine(const struct affine_state *s, const struct combination *e, uint32_t at, struct affine f,
                    int64_t g0, struct combination *out)
{
    uint64_t common = affine_gcd(magnitude(g0), magnitude(e->terms[at].coef));
    uint64_t ug = magnitude(g0) / common, um = magnitude(e->terms[at].coef) / common;
    if (ug > INT64_MAX || um > INT64_MAX)
        return false;
    int64_t g = (int64_t)ug, m = (int64_t)um, x, y;
    if (e->c > INT64_MAX || e->c < INT64_MIN)
        return false;
    out->c = g * e->c + (affine_wide)m * f.c;
    out->n = 0;
    if (out->c > MOST_SUM || out->c < -MOST_SUM || __builtin_mul_overflow(g, e->scale, &out->scale))
        return false;
    uint32_t i = 0, j = 0;
    while (i < e->n || j < f.n) {
        const struct affine_term *p = i < e->n ? &e->terms[i] : NULL;
        const struct affine_term *q = j < f.n ? &s->terms[f.first + j] : NULL;
        bool from_e = p && (!q || p->sym <= q->sym), from_f = q && (!p || q->sym <= p->sym);
        uint32_t sym = from_e ? p->sym : q->sym;
        x = y = 0;
        if ((from_e && __builtin_mul_overflow(g, p->coef, &x)) ||
            (from_f && __builtin_mul_overflow(m, q->coef, &y)) || __builtin_add_overflow(x, y, &x))
            return false;
        i += from_e;
        j += from_f;
        if (!x)
            continue;
        if (out->n == AFFINE_MOST_TERMS)
            return false;
        out->terms[out->n++] = (struct affine_term){.coef = x, .sym = sym};
    }
    return true;
}

static int64_t coefficient(const struct affine_state *s, struct affine f, uint32_t sym)
{
    for (uint32_t i = 0; i < f.n; i++)
        if (s->terms[f.first + i].sym == sym)
            return s->terms[f.first + i].coef;
    return 0;
}

static affine_wide search_upper(struct search *w, const struct combination *e, unsigned depth)
{
    const struct affine_state *s = w->s;
    affine_wide best = box_upper(s, e->c, e->terms, e->n, w->hard);
    if (best != INFINITE && e->scale > 1)
        best = floor_div(best, e->scale);
    for (uint32_t i = 0; i < e->n && depth; i++) {
        uint64_t bit = 1ULL << (e->terms[i].sym & 63);
        for (uint32_t k = 0; k < w->n; k++) {
            if (!(w->symbols[k] & bit))
                continue;
            struct affine f = s->facts[w->candidates[k]].form;
            int64_t g = coefficient(s, f, e->terms[i].sym);
            struct combination next;
            if (!g || (g > 0) == (e->terms[i].coef > 0))
                continue;
            if (!w->budget || !w->s->budget)
                return best;
            w->budget--;
            w->s->budget--;
            if (!combine(s, e, i, f, g, &next))
                continue;
            affine_wide got = search_upper(w, &next, depth - 1);
            best = got < best ? got : best;
        }
    }
    return best;
}

// Replaces *e by its combination with a fact that has the lowest upper end, if that is below *best, which it
// becomes. Returns false if there is none.
static bool descend(struct search *w, struct combination *e, affine_wide *best)
{
    const struct affine_state *s = w->s;
    struct combination next, least;
    bool found = false;
    for (uint32_t i = 0; i < e->n; i++) {
        uint64_t bit = 1ULL << (e->terms[i].sym & 63);
        for (uint32_t k = 0; k < w->n; k++) {
            struct affine f = s->facts[w->candidates[k]].form;
            int64_t g = w->symbols[k] & bit ? coefficient(s, f, e->terms[i].sym) : 0;
            if (!g || (g > 0) == (e->terms[i].coef > 0))
                continue;
            if (!w->budget || !w->s->budget)
                break;
            w->budget--;
            w->s->budget--;
            if (!combine(s, e, i, f, g, &next))
                continue;
            affine_wide got = box_upper(s, next.c, next.terms, next.n, w->hard);
            got = got != INFINITE && next.scale > 1 ? floor_div(got, next.scale) : got;
            if (got >= *best)
                continue;
            *best = got;
            least = next;
            found = true;
        }
    }
    if (found)
        *e = least;
    return found;
}

static uint64_t symbols_of(const struct affine_state *s, struct affine f)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < f.n; i++)
        bits |= 1ULL << (s->terms[f.first + i].sym & 63);
    return bits;
}

static void add_list(struct search *w, uint32_t list)
{
    while (list != PROOF_NONE && w->n < MOST_CANDIDATES) {
        const struct affine_fact *fact = &w->s->facts[list];
        w->candidates[w->n++] = list;
        list = fact->next;
    }
}

// Adds the facts of the symbols in a form, each once.
static void add_symbols(struct search *w, struct affine f)
{
    for (uint32_t i = 0; i < f.n; i++) {
        uint32_t facts = w->s->syms[w->s->terms[f.first + i].sym].facts;
        bool known = facts == PROOF_NONE;
        for (uint32_t k = 0; k < w->n && !known; k++)
            known = w->candidates[k] == facts;
        if (!known)
            add_list(w, facts);
    }
}

// Keeps the facts that share symbols with f, with facts that do, and with facts that share symbols with
// those: no others can be reached in MOST_DEPTH steps. Returns whether there are any.
static bool keep_related(struct search *w, uint64_t bits)
{
    uint64_t related = 0;
    for (uint32_t k = 0; k < w->n; k++)
        w->symbols[k] = symbols_of(w->s, w->s->facts[w->candidates[k]].form);
    for (unsigned depth = 0; depth < MOST_DEPTH && related != bits; depth++) {
        related = bits;
        for (uint32_t k = 0; k < w->n; k++)
            bits |= w->symbols[k] & related ? w->symbols[k] : 0;
    }
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        if (!(w->symbols[k] & related))
            continue;
        w->candidates[n] = w->candidates[k];
        w->symbols[n++] = w->symbols[k];
    }
    w->n = n;
    return n > 0;
}

// Collects facts that may say something of f: those of its symbols, those that hold at the place, and those
// of the symbols in them. Returns false if there are none.
static bool gather(struct search *w, struct affine f, struct affine_place at)
{
    add_symbols(w, f);
    add_list(w, at.facts);
    for (uint32_t b = at.block; b != PROOF_NONE; b = w->s->blocks[b].up)
        add_list(w, w->s->blocks[b].facts);
    for (uint32_t k = 0; k < w->n; k++)
        add_symbols(w, w->s->facts[w->candidates[k]].form);
    return w->n && keep_related(w, symbols_of(w->s, f));
}

// Whether a symbol without a usable end can be bounded by no fact: none has it with the other sign.
static bool is_hopeless(const struct search *w, const struct combination *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (box_upper(w->s, 0, &e->terms[i], 1, w->hard) != INFINITE)
            continue;
        bool found = false;
        for (uint32_t k = 0; k < w->n && !found; k++) {
            int64_t g = coefficient(w->s, w->s->facts[w->candidates[k]].form, e->terms[i].sym);
            found = g && (g > 0) != (e->terms[i].coef > 0);
        }
        if (!found)
            return true;
    }
    return false;
}

// Whether all facts hold at a corner of the ranges, that with the greatest value of e: then no fact makes
// that smaller. Facts about symbols that e does not have are doubtful.
static bool is_attained(const struct search *w, const struct combination *e)
{
    for (uint32_t k = 0; k < w->n; k++) {
        struct affine f = w->s->facts[w->candidates[k]].form;
        affine_wide v = f.c;
        for (uint32_t j = 0; j < f.n; j++) {
            const struct affine_term *t = &w->s->terms[f.first + j];
            uint32_t i = 0;
            while (i < e->n && e->terms[i].sym != t->sym)
                i++;
            if (i == e->n)
                return false;
            const struct affine_sym *x = &w->s->syms[t->sym];
            v += (affine_wide)t->coef * (e->terms[i].coef > 0 ? x->hi : x->lo);
            if (v > MOST_SUM || v < -MOST_SUM)
                return false;
        }
        if (v < 0)
            return false;
    }
    return true;
}

// The upper bound of e: that of the ranges, of one fact, or of several, the first that is known to be best.
// What several facts say together is found most often by the one that says most, then the next.
static affine_wide best_upper(struct search *w, const struct combination *e)
{
    affine_wide x = box_upper(w->s, e->c, e->terms, e->n, w->hard);
    struct combination lower = *e;
    if (x == INFINITE ? is_hopeless(w, e) : is_attained(w, e))
        return x;
    w->budget = BUDGET;
    for (unsigned step = 0; step < MOST_STEPS && descend(w, &lower, &x); step++) {
        // A soft end only has to be true: one fact is tried for it.
        if (!w->hard)
            return x;
        if (affine_attains(w->s, e->terms, e->n, x, w->candidates, w->n))
            return x;
    }
    if (!w->hard)
        return x;
    w->budget = BUDGET;
    affine_wide y = search_upper(w, e, MOST_DEPTH);
    return y < x ? y : x;
}

// The upper bound of f or, `negate`, of -f. What the coefficients have in common is taken out first: the
// bound of an integer x is one for g*x too, and the better one.
static affine_wide upper(struct search *w, struct affine f, bool negate, bool hard)
{
    uint64_t g = affine_content(w->s, f, 0);
    affine_wide c = negate ? -(affine_wide)f.c : f.c;
    struct combination e = {.scale = 1, .n = f.n};
    if (g > INT64_MAX)
        return INFINITE;
    for (uint32_t i = 0; i < f.n; i++) {
        e.terms[i] = w->s->terms[f.first + i];
        if (e.terms[i].coef == INT64_MIN)
            return INFINITE;
        e.terms[i].coef /= (int64_t)g * (negate ? -1 : 1);
    }
    w->hard = hard;
    affine_wide x = best_upper(w, &e);
    if (x > INT64_MAX)  // g*x might not fit
        return INFINITE;
    x = (x < INT64_MIN ? INT64_MIN : x) * (affine_wide)g + c;
    return x > MOST_SUM ? INFINITE : x;
}

// Looks for a soft symbol, to say why a bound is missing.
static uint8_t soft_reason(const struct affine_state *s, struct affine f)
{
    for (uint32_t i = 0; i < f.n; i++) {
        const struct affine_sym *x = &s->syms[s->terms[f.first + i].sym];
        if (x->soft)
            return x->reason;
    }
    return PROOF_WHY_NONE;
}

static struct affine_range both_ends(struct search *w, struct affine f)
{
    struct affine_range r = {0};
    r.hi = upper(w, f, false, true);
    if (r.hi == INFINITE) {
        r.soft |= AFFINE_SOFT_HI;
        r.hi = upper(w, f, false, false);
    }
    r.lo = -upper(w, f, true, true);
    if (r.lo == -INFINITE) {
        r.soft |= AFFINE_SOFT_LO;
        r.lo = -upper(w, f, true, false);
    }
    r.reason = r.soft ? soft_reason(w->s, f) : PROOF_WHY_NONE;
    return r;
}

struct affine_range affine_box(const struct affine_state *s, struct affine f)
{
    struct affine_range r = {.lo = f.c, .hi = f.c};
    bool no_lo = false, no_hi = false;
    for (uint32_t i = 0; i < f.n; i++) {
        const struct affine_term *t = &s->terms[f.first + i];
        const struct affine_sym *x = &s->syms[t->sym];
        affine_wide a = (affine_wide)t->coef * x->lo, b = (affine_wide)t->coef * x->hi;
        bool up = t->coef > 0;
        r.lo += up ? a : b;
        r.hi += up ? b : a;
        if (x->soft) {
            r.soft |= x->soft & (up ? AFFINE_SOFT_HI : AFFINE_SOFT_LO) ? AFFINE_SOFT_HI : 0;
            r.soft |= x->soft & (up ? AFFINE_SOFT_LO : AFFINE_SOFT_HI) ? AFFINE_SOFT_LO : 0;
            r.reason = r.reason ? r.reason : x->reason;
            no_hi |= (x->soft & AFFINE_NO_HI) && up;
            no_lo |= (x->soft & AFFINE_NO_HI) && !up;
        }
        no_hi |= r.hi > MOST_SUM || r.hi < -MOST_SUM;
        no_lo |= r.lo > MOST_SUM || r.lo < -MOST_SUM;
        r.hi = no_hi ? 0 : r.hi;
        r.lo = no_lo ? 0 : r.lo;
    }
    if (no_hi) {
        r.hi = INFINITE;
        r.soft |= AFFINE_SOFT_HI;
    }
    if (no_lo) {
        r.lo = -INFINITE;
        r.soft |= AFFINE_SOFT_LO;
    }
    return r;
}

// Takes an end of one range over into another, if it is better; a soft end is worse than any other.
static void take_end(struct affine_range *r, const struct affine_range *from, uint8_t soft)
{
    bool up = soft == AFFINE_SOFT_HI, better = up ? from->hi < r->hi : from->lo > r->lo;
    if ((from->soft & soft) > (r->soft & soft) || (!((from->soft ^ r->soft) & soft) && !better))
        return;
    if (up)
        r->hi = from->hi;
    else
        r->lo = from->lo;
    r->soft = (uint8_t)((r->soft & ~soft) | (from->soft & soft));
    r->facts = true;
}

// Bounds f by the two forms of a symbol that is one of them: what holds for both holds for f.
static void bound_cases(struct affine_state *s, struct affine f, struct affine_place at,
                        struct affine_range *r)
{
    uint32_t terms = s->nterms;
    struct affine one, other;
    int64_t coef;
    if (s->cases == AFFINE_MOST_CASES || s->full)
        return;
    uint32_t budget = s->budget;
    s->budget = s->cases ? budget : s->cases_budget;
    s->cases++;
    if (s->budget && affine_cases(s, f, &coef, &one, &other)) {
        struct affine_range p = affine_bound(s, one, at), q = affine_bound(s, other, at);
        q.lo = p.lo < q.lo ? p.lo : q.lo;
        q.hi = p.hi > q.hi ? p.hi : q.hi;
        q.soft |= p.soft;
        take_end(r, &q, AFFINE_SOFT_LO);
        take_end(r, &q, AFFINE_SOFT_HI);
        r->reason = r->soft ? r->reason : PROOF_WHY_NONE;
    }
    s->cases--;
    if (!s->cases) {
        s->cases_budget = s->budget;
        s->budget = budget;
    }
    s->nterms = terms;
}

static struct affine_range look_up_or_search(struct affine_state *s, struct affine f, struct affine_place at)
{
    struct affine_known *k = NULL;
    if (at.facts == PROOF_NONE && f.n <= AFFINE_KNOWN_TERMS) {
        uint32_t first = s->blocks[at.block].facts, hash = at.block * 31 + first + f.n;
        for (uint32_t i = 0; i < f.n; i++)
            hash = hash * 31 + s->terms[f.first + i].sym + (uint32_t)s->terms[f.first + i].coef * 7;
        k = &s->known[hash % AFFINE_KNOWN];
        bool same = k->n == f.n && k->block == at.block && k->facts == first;
        for (uint32_t i = 0; i < f.n && same; i++)
            same = k->terms[i].sym == s->terms[f.first + i].sym &&
                   k->terms[i].coef == s->terms[f.first + i].coef;
        if (same)
            return k->range;
    }
    struct affine_range box = affine_box(s, f), r = box;
    struct search w;
    w.s = s;
    w.n = 0;
    if (gather(&w, f, at)) {
        r = both_ends(&w, f);
        r.facts = r.lo > box.lo || r.hi < box.hi || r.soft != box.soft;
    }
    bound_cases(s, f, at, &r);
    // Only now, since other forms were looked up meanwhile.
    if (k) {
        *k = (struct affine_known){
            .range = r, .n = f.n, .block = at.block, .facts = s->blocks[at.block].facts};
        for (uint32_t i = 0; i < f.n; i++)
            k->terms[i] = s->terms[f.first + i];
    }
    return r;
}

struct affine_range affine_bound(struct affine_state *s, struct affine f, struct affine_place at)
{
    if (!f.n)
        return affine_box(s, f);
    struct affine plain = f;
    plain.c = 0;
    struct affine_range r = look_up_or_search(s, plain, at);
    if (r.hi != INFINITE)
        r.hi += f.c;
    if (r.lo != -INFINITE)
        r.lo += f.c;
    return r;
}
