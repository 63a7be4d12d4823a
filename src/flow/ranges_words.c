// SPDX-License-Identifier: MIT
// Prints addresses, conditions and loops of a proof program in CUDA's words.
#include "flow/ranges.h"

enum { MOST_DEPTH = 12, MOST_CONDITIONS = 8, MOST_LOOPS = 64 };

// How tightly an expression binds: a part that binds less than its place asks for gets parentheses.
enum { SUM = 1, FACTOR = 2, ATOM = 3 };

struct words {
    const struct ranges *r;
    const struct proof *p;
    struct out *to;
};

static void value(struct words *w, uint32_t at, int place, unsigned depth);

// The number of a LOOP, from 1.
static uint32_t loop_number(const struct proof *p, uint32_t at)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i <= at; i++)
        n += p->insns[i].op == PROOF_LOOP;
    return n;
}

static void open_at(struct words *w, int place, int own)
{
    if (own < place)
        out_char(w->to, '(');
}

static void close_at(struct words *w, int place, int own)
{
    if (own < place)
        out_char(w->to, ')');
}

static bool is_number(const struct proof *p, uint32_t at, int64_t *v)
{
    while (p->insns[at].op == PROOF_EXTEND)
        at = p->insns[at].a;
    *v = p->insns[at].imm;
    return p->insns[at].op == PROOF_CONST;
}

static void infix(struct words *w, const struct proof_insn *i, const char *op, int own, int place,
                  unsigned depth)
{
    open_at(w, place, own);
    value(w, i->a, own, depth);
    out_cstr(w->to, op);
    value(w, i->b, own + 1, depth);
    close_at(w, place, own);
}

static void sum(struct words *w, const struct proof_insn *i, int place, unsigned depth)
{
    int64_t c;
    bool less = i->op == PROOF_SUB;
    if (is_number(w->p, i->b, &c) && c < 0 && c != INT64_MIN) {
        open_at(w, place, SUM);
        value(w, i->a, SUM, depth);
        out_cstr(w->to, less ? " + " : " - ");
        out_i64(w->to, -c);
        close_at(w, place, SUM);
        return;
    }
    if (is_number(w->p, i->b, &c) && !c) {
        value(w, i->a, place, depth);
        return;
    }
    if (is_number(w->p, i->a, &c) && !c && !less) {
        value(w, i->b, place, depth);
        return;
    }
    infix(w, i, less ? " - " : " + ", SUM, place, depth);
}

// A factor that is a number comes first, and 1 is left out.
static void product(struct words *w, uint32_t a, uint32_t b, int64_t scale, int place, unsigned depth)
{
    int64_t c = 1;
    if (b != PROOF_NONE && is_number(w->p, a, &c)) {
        a = b;
        b = PROOF_NONE;
        scale = c;
    } else if (b != PROOF_NONE && is_number(w->p, b, &c)) {
        b = PROOF_NONE;
        scale = c;
    }
    if (b == PROOF_NONE && scale == 1) {
        value(w, a, place, depth);
        return;
    }
    open_at(w, place, FACTOR);
    if (b == PROOF_NONE) {
        out_i64(w->to, scale);
        out_char(w->to, '*');
        value(w, a, ATOM, depth);
    } else {
        value(w, a, FACTOR, depth);
        out_char(w->to, '*');
        value(w, b, ATOM, depth);
    }
    close_at(w, place, FACTOR);
}

static void call(struct words *w, const char *name, const struct proof_insn *i, bool two, unsigned depth)
{
    out_cstr(w->to, name);
    out_char(w->to, '(');
    value(w, i->a, SUM, depth);
    if (two) {
        out_lit(w->to, ", ");
        value(w, i->b, SUM, depth);
    }
    out_char(w->to, ')');
}

// The name of a root, without the kernel's name that nvcc puts before "_param_N".
static void root_name(struct words *w, uint32_t root)
{
    const struct proof_root *r = &w->p->roots[root];
    if (r->kind != PROOF_ROOT_PARAM) {
        out_clean(w->to, proof_root_name(w->p, r));
        return;
    }
    out_fmt(w->to, "parameter %u", r->param);
    if (r->inside)
        out_fmt(w->to, " byte %u", r->inside);
}

static void launch_name(struct words *w, int64_t which)
{
    static const char *const names[] = {"threadIdx", "blockDim", "blockIdx", "gridDim"};
    if (which == PROOF_DYNAMIC_SHARED)
        out_lit(w->to, "dynamicSharedBytes");
    else
        out_fmt(w->to, "%s.%c", names[which / 3], "xyz"[which % 3]);
}

static void parameter(struct words *w, const struct proof_insn *i)
{
    const struct ptx_func *f = w->r->f;
    if (i->a != PROOF_NONE) {
        root_name(w, i->a);
        return;
    }
    uint64_t at = 0;
    for (uint32_t k = 0; k < f->nparams; k++) {
        const struct ptx_var *v = &f->params[k];
        uint64_t align = v->align ? v->align : ptx_type_bits((enum ptx_type)v->type) / 8 * v->vec;
        at = (at + (align ? align : 1) - 1) / (align ? align : 1) * (align ? align : 1);
        if ((uint64_t)i->imm >= at && (uint64_t)i->imm < at + ptx_var_size(v)) {
            out_fmt(w->to, "parameter %u", k);
            if ((uint64_t)i->imm > at)
                out_fmt(w->to, " byte %llu", (unsigned long long)((uint64_t)i->imm - at));
            return;
        }
        at += ptx_var_size(v);
    }
    out_char(w->to, '?');
}

static void steps(struct words *w, const struct proof_insn *i, int place, unsigned depth)
{
    int64_t c;
    bool zero = is_number(w->p, i->a, &c) && !c;
    if (!zero) {
        open_at(w, place, SUM);
        value(w, i->a, SUM, depth);
        out_lit(w->to, " + ");
    }
    if (!is_number(w->p, i->b, &c) || c != 1) {
        value(w, i->b, ATOM, depth);
        out_char(w->to, '*');
    }
    out_fmt(w->to, "k%u", loop_number(w->p, i->c));
    if (!zero)
        close_at(w, place, SUM);
}

static void field(struct words *w, const struct proof_insn *i, int place, unsigned depth)
{
    open_at(w, place, FACTOR);
    if (i->imm) {
        out_char(w->to, '(');
        value(w, i->a, ATOM, depth);
        out_fmt(w->to, " >> %lld)", (long long)i->imm);
    } else {
        value(w, i->a, ATOM, depth);
    }
    if (i->b < 63)
        out_fmt(w->to, " & %lld", (1LL << i->b) - 1);
    close_at(w, place, FACTOR);
}

static void value(struct words *w, uint32_t at, int place, unsigned depth)
{
    const struct proof_insn *i = &w->p->insns[at];
    int64_t c;
    if (!depth) {
        out_lit(w->to, "...");
        return;
    }
    depth--;
    switch (i->op) {
    case PROOF_CONST: out_i64(w->to, i->imm); return;
    case PROOF_PARAM: parameter(w, i); return;
    case PROOF_LAUNCH: launch_name(w, i->imm); return;
    case PROOF_BASE: root_name(w, i->a); return;
    case PROOF_CAST:
    case PROOF_EXTEND: value(w, i->a, place, depth + 1 > MOST_DEPTH ? MOST_DEPTH : depth); return;
    case PROOF_ADD:
    case PROOF_SUB: sum(w, i, place, depth); return;
    case PROOF_MUL: product(w, i->a, i->b, 1, place, depth); return;
    case PROOF_SHL:
        if (is_number(w->p, i->b, &c) && c >= 0 && c < 62)
            product(w, i->a, PROOF_NONE, 1LL << c, place, depth);
        else
            infix(w, i, " << ", FACTOR, place, depth);
        return;
    case PROOF_SHR: infix(w, i, " >> ", FACTOR, place, depth); return;
    case PROOF_DIV: infix(w, i, " / ", FACTOR, place, depth); return;
    case PROOF_REM: infix(w, i, " % ", FACTOR, place, depth); return;
    case PROOF_AND: infix(w, i, " & ", FACTOR, place, depth); return;
    case PROOF_OR: infix(w, i, " | ", FACTOR, place, depth); return;
    case PROOF_XOR: infix(w, i, " ^ ", FACTOR, place, depth); return;
    case PROOF_FIELD: field(w, i, place, depth); return;
    case PROOF_MIN: call(w, "min", i, true, depth); return;
    case PROOF_MAX: call(w, "max", i, true, depth); return;
    case PROOF_ABS: call(w, "abs", i, false, depth); return;
    case PROOF_SELECT: call(w, "either", i, true, depth); return;
    case PROOF_STEPS: steps(w, i, place, depth); return;
    default: out_char(w->to, '?');
    }
}

void ranges_words(const struct ranges *r, uint32_t access, struct out *to)
{
    struct words w = {r, &r->proof, to};
    const struct proof_insn *i = &r->proof.insns[r->accesses[access].insn];
    int64_t offset = r->proof.accesses[access].offset;
    value(&w, i->a, SUM, MOST_DEPTH);
    if (offset)
        out_fmt(to, " %c %lld", offset < 0 ? '-' : '+', (long long)(offset < 0 ? -offset : offset));
}

// --- conditions --------------------------------------------------------------------------------------------

static const char *relation(uint8_t r, bool holds)
{
    static const char *const of[] = {"<", "<=", ">", ">=", "==", "!="}, *const not [] = {
                                                                            ">=", ">", "<=", "<", "!=", "=="};
    return holds ? of[r] : not [r];
}

// Writes the comparisons that must hold, and returns how many. Others are left out.
static unsigned condition(struct words *w, uint32_t at, bool holds, unsigned done, unsigned depth)
{
    const struct proof_insn *i = &w->p->insns[at];
    if (!depth || done >= MOST_CONDITIONS)
        return 0;
    if (i->op == PROOF_OPPOSITE)
        return condition(w, i->a, !holds, done, depth - 1);
    if ((i->op == PROOF_BOTH && holds) || (i->op == PROOF_EITHER && !holds)) {
        unsigned n = condition(w, i->a, holds, done, depth - 1);
        return n + condition(w, i->b, holds, done + n, depth - 1);
    }
    if (i->op != PROOF_COMPARE)
        return 0;
    if (done)
        out_lit(w->to, " and ");
    value(w, i->a, SUM, MOST_DEPTH);
    out_fmt(w->to, " %s ", relation(i->sign, holds));
    value(w, i->b, SUM, MOST_DEPTH);
    return 1;
}

// Writes the conditions of the blocks that lead to this one on one way only, outermost first.
static unsigned block_conditions(struct words *w, uint32_t block, unsigned depth)
{
    uint32_t at = 0;
    const struct proof_head *h = w->p->head;
    while (at < h->ninsns && !(w->p->insns[at].op == PROOF_BLOCK && w->p->insns[at].c == block))
        at++;
    if (at == h->ninsns || w->p->insns[at].b != 1 || !depth)
        return 0;
    const struct proof_edge *e = &w->p->edges[w->p->insns[at].a];
    unsigned n = block_conditions(w, e->block, depth - 1);
    return e->predicate == PROOF_NONE ? n : n + condition(w, e->predicate, !e->negated, n, 6);
}

unsigned ranges_guard_words(const struct ranges *r, uint32_t access, struct out *to)
{
    struct words w = {r, &r->proof, to};
    uint32_t at = r->accesses[access].insn, block = at;
    const struct proof_insn *i = &r->proof.insns[at];
    while (r->proof.insns[block].op != PROOF_BLOCK)
        block--;
    unsigned n = block_conditions(&w, r->proof.insns[block].c, 64);
    return i->b == PROOF_NONE ? n : n + condition(&w, i->b, !i->sign, n, 6);
}

// --- loops -------------------------------------------------------------------------------------------------

// Marks the loops whose counters a value contains.
static void find_loops(const struct proof *p, uint32_t at, bool *seen, unsigned depth)
{
    const struct proof_insn *i = &p->insns[at];
    if (!depth)
        return;
    switch (i->op) {
    case PROOF_STEPS: {
        uint32_t n = loop_number(p, i->c);
        if (n < MOST_LOOPS)
            seen[n] = true;
        find_loops(p, i->a, seen, depth - 1);
        return;
    }
    case PROOF_ADD:
    case PROOF_SUB:
    case PROOF_MUL:
    case PROOF_SHL:
    case PROOF_SHR:
    case PROOF_DIV:
    case PROOF_REM:
    case PROOF_AND:
    case PROOF_OR:
    case PROOF_XOR:
    case PROOF_MIN:
    case PROOF_MAX:
    case PROOF_SELECT:
        find_loops(p, i->b, seen, depth - 1);
        find_loops(p, i->a, seen, depth - 1);
        return;
    case PROOF_CAST:
    case PROOF_EXTEND:
    case PROOF_FIELD:
    case PROOF_ABS: find_loops(p, i->a, seen, depth - 1); return;
    default: return;
    }
}

static void loop_words(struct words *w, const struct proof_insn *loop, uint32_t number)
{
    out_fmt(w->to, "k%u = 0, 1, ...", number);
    for (uint32_t k = loop->a; k < loop->a + loop->b; k++) {
        const struct proof_test *t = &w->p->tests[k];
        int64_t c;
        out_cstr(w->to, k == loop->a ? " while " : " and ");
        value(w, t->start, SUM, MOST_DEPTH);
        bool down = is_number(w->p, t->step, &c) && c < 0 && c != INT64_MIN;
        out_cstr(w->to, down ? " - " : " + ");
        if (down)
            out_i64(w->to, -c);
        else
            value(w, t->step, ATOM, MOST_DEPTH);
        out_fmt(w->to, "*k%u %s ", number, relation(t->relation, true));
        value(w, t->limit, SUM, MOST_DEPTH);
    }
}

unsigned ranges_loop_words(const struct ranges *r, uint32_t access, struct out *to)
{
    struct words w = {r, &r->proof, to};
    bool seen[MOST_LOOPS] = {0};
    unsigned written = 0, number = 0;
    find_loops(&r->proof, r->proof.insns[r->accesses[access].insn].a, seen, MOST_DEPTH);
    for (uint32_t i = 0; i < r->proof.head->ninsns && number + 1 < MOST_LOOPS; i++) {
        if (r->proof.insns[i].op != PROOF_LOOP)
            continue;
        if (!seen[++number])
            continue;
        if (written++)
            out_lit(to, "; ");
        loop_words(&w, &r->proof.insns[i], number);
    }
    return written;
}
