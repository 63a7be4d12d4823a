// SPDX-License-Identifier: MIT
// Loops. A register that a header joins is init + step * counter if every way around adds the same number,
// which does not change in the loop. A test is a branch that every round passes, out of the loop on one
// side, and that compares such a register, plus something fixed, with something fixed.
#include "flow/ranges_build.h"

enum { MOST_PARTS = 8, MOST_TESTS = 4, MOST_DEPTH = 6 };

// A sum of fixed parts, which leads from a counter to a value, and the types through which it went.
struct chain {
    int64_t c;
    uint32_t n;
    struct {
        uint32_t value;
        bool negative;
    } parts[MOST_PARTS];
    uint32_t from;  // the value at its start
    uint8_t bits;   // the narrowest type that it was read as, 0 if none
    bool sign;
    uint8_t low;  // only so many low bits matter, since it was cut off to them; 0: all
};

bool ranges_forward(const struct ranges_build *b, uint32_t u, uint32_t v)
{
    const struct graph *g = b->cfg->graph;
    return graph_reached(g, u) && g->rank[u] < g->rank[v];
}

static uint32_t block_of(const struct ranges_build *b, uint32_t value)
{
    const struct reach_value *v = &b->reach->value.items[value];
    if (v->kind == REACH_ENTRY)
        return 0;
    return v->kind == REACH_JOIN ? v->place : b->cfg->block_of[v->place];
}

bool ranges_fixed(const struct ranges_build *b, uint32_t loop, uint32_t value)
{
    const struct reach_value *v = &b->reach->value.items[value];
    return v->kind == REACH_ENTRY || !loops_contains(b->loops, loop, block_of(b, value));
}

static bool add_operand(struct ranges_build *b, uint32_t loop, uint32_t stmt, const struct ptx_operand *o,
                        bool negative, struct chain *c)
{
    if (o->kind == PTX_IMM && o->sub == PTX_IMM_INT)
        return !(negative ? __builtin_sub_overflow(c->c, o->value, &c->c)
                          : __builtin_add_overflow(c->c, o->value, &c->c));
    if (o->kind != PTX_REG || o->sub != PTX_SEL_NONE || c->n == MOST_PARTS)
        return false;
    uint32_t v = ranges_read(b, stmt, o->id);
    if (v == REACH_NONE || !ranges_fixed(b, loop, v))
        return false;
    c->parts[c->n].value = v;
    c->parts[c->n++].negative = negative;
    return true;
}

// The value of an operand that changes in the loop, REACH_NONE if it does not.
uint32_t ranges_moving(const struct ranges_build *b, uint32_t loop, uint32_t stmt,
                       const struct ptx_operand *o)
{
    if (!o || o->kind != PTX_REG || o->sub != PTX_SEL_NONE)
        return REACH_NONE;
    uint32_t v = ranges_read(b, stmt, o->id);
    return v == REACH_NONE || ranges_fixed(b, loop, v) ? REACH_NONE : v;
}

bool ranges_plain_int(const struct ptx_form *f)
{
    enum ptx_type_class k = ptx_type_class((enum ptx_type)f->types[0]);
    return (k == PTX_CLASS_BITS || k == PTX_CLASS_UINT || k == PTX_CLASS_SINT) &&
           !ptx_form_has(f, PTX_MOD_SAT) && f->vec == 1;
}

// Widening conversions keep a value that stays inside its type. Two types leave the numbers that both have:
// that is the narrower, or without its sign bit if one is signed and the wider is not.
static bool widen(struct chain *c, const struct ptx_form *f, uint32_t reg_bits)
{
    unsigned to = ptx_type_bits((enum ptx_type)f->types[0]), from = ptx_type_bits((enum ptx_type)f->types[1]);
    bool sign = ptx_type_class((enum ptx_type)f->types[1]) == PTX_CLASS_SINT;
    if (f->ntypes != 2 || !ranges_plain_int(f) || to < from || reg_bits != to || from < 16)
        return false;
    enum ptx_type_class k = ptx_type_class((enum ptx_type)f->types[1]);
    if (k != PTX_CLASS_UINT && k != PTX_CLASS_SINT)
        return false;
    if (c->bits && c->bits < from)
        return false;
    if (to > from) {
        if (sign && c->bits && !c->sign) {
            c->bits = (uint8_t)(from - 1);
            c->sign = false;
        } else {
            c->bits = (uint8_t)from;
            c->sign = sign;
        }
    }
    return true;
}

// Conversions of which only the low bits matter: one that cuts off the others, as a compiler writes it that
// keeps an index in 64 bits beside, or one between types that have them.
static bool keeps_low_bits(struct chain *c, const struct ptx_form *f, uint32_t reg_bits)
{
    if (f->ntypes != 2 || !ranges_plain_int(f))
        return false;
    unsigned to = ptx_type_bits((enum ptx_type)f->types[0]), from = ptx_type_bits((enum ptx_type)f->types[1]);
    enum ptx_type_class k = ptx_type_class((enum ptx_type)f->types[1]);
    if (k != PTX_CLASS_UINT && k != PTX_CLASS_SINT)
        return false;
    if (!c->low && to < from && to == reg_bits && c->bits <= to)
        c->low = (uint8_t)to;
    return c->low && to >= c->low && from >= c->low;
}

// Follows a value back to the JOIN in the header of the loop that it was made from. `reads`: it may have
// been converted on the way.
static bool chase(struct ranges_build *b, uint32_t loop, uint32_t value, bool reads, struct chain *c)
{
    for (unsigned k = 0; k < 16; k++) {
        const struct reach_value *v = &b->reach->value.items[value];
        if (v->kind == REACH_JOIN && v->place == b->loops->loops[loop].header) {
            c->from = value;
            return true;
        }
        if (v->kind != REACH_DEF || v->partial)
            return false;
        const struct ptx_stmt *s = &b->f->stmts[v->place];
        const struct ptx_operand *x = ptx_operand(s, 1), *y = ptx_operand(s, 2);
        if (!x || s->form->odd || s->operands[0].kind != PTX_REG)
            return false;
        uint32_t to = ranges_moving(b, loop, v->place, x);
        if (s->form->id == PTX_OP_MOV && ranges_plain_int(s->form)) {
            value = to;
        } else if (s->form->id == PTX_OP_CVT && to != REACH_NONE) {
            unsigned bits = ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, s->operands[0].id)->type);
            if (!keeps_low_bits(c, s->form, bits) && (!reads || c->c || c->n || !widen(c, s->form, bits)))
                return false;
            value = to;
        } else if (s->form->id == PTX_OP_ADD && ranges_plain_int(s->form)) {
            const struct ptx_operand *other = y;
            if (to == REACH_NONE) {
                to = ranges_moving(b, loop, v->place, y);
                other = x;
            }
            if (to == REACH_NONE || !add_operand(b, loop, v->place, other, false, c))
                return false;
            value = to;
        } else if (s->form->id == PTX_OP_SUB && ranges_plain_int(s->form)) {
            if (!add_operand(b, loop, v->place, y, true, c))
                return false;
            value = to;
        } else {
            return false;
        }
        if (value == REACH_NONE)
            return false;
    }
    return false;
}

// Finds the step of a JOIN in a loop's header.
static bool step_of(struct ranges_build *b, uint32_t loop, uint32_t join, struct chain *step)
{
    const struct reach_value *v = &b->reach->value.items[join];
    struct graph_nodes preds = graph_pred(b->cfg->graph, v->place);
    bool found = false;
    for (uint32_t i = 0; i < preds.n; i++) {
        uint32_t in = b->reach->input.items[v->input + i];
        struct chain c = {0};
        if (ranges_forward(b, preds.at[i], v->place) || !graph_reached(b->cfg->graph, preds.at[i]))
            continue;
        if (in == REACH_NONE || !chase(b, loop, in, false, &c) || c.from != join)
            return false;
        if (found && (c.n || step->n || c.c != step->c))
            return false;
        *step = c;
        found = true;
    }
    return found;
}

static uint32_t loop_at(const struct ranges_build *b, uint32_t block)
{
    uint32_t l = b->loops->inner[block];
    return l != GRAPH_NONE && b->loops->loops[l].header == block ? l : GRAPH_NONE;
}

static void need_parts(struct ranges_build *b, const struct chain *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        ranges_need(b, c->parts[i].value);
}

// Types of an index that is kept in a wider register beside, and the greatest number that both are set to.
struct widening {
    uint8_t bits;  // of the narrower type, 0 until known
    bool sign;
    int64_t most;
};

// Whether a value is set to a number, which becomes *c.
static bool is_number(const struct ranges_build *b, uint32_t value, int64_t *c)
{
    const struct reach_value *v = &b->reach->value.items[value];
    const struct ptx_stmt *s = v->kind == REACH_DEF && !v->partial ? &b->f->stmts[v->place] : NULL;
    return s && !s->form->odd && s->form->id == PTX_OP_MOV && ranges_plain_int(s->form) &&
           s->operands[0].kind == PTX_REG && ranges_constant(s, 1, c);
}

// Whether a value is another one, widened as w says, or both are one number that is not negative.
static bool widens(const struct ranges_build *b, uint32_t value, uint32_t of, struct widening *w)
{
    const struct reach_value *v = &b->reach->value.items[value];
    int64_t x, y;
    if (is_number(b, value, &x)) {
        w->most = x > w->most ? x : w->most;
        return x >= 0 && is_number(b, of, &y) && x == y;
    }
    if (v->kind != REACH_DEF || v->partial)
        return false;
    const struct ptx_stmt *s = &b->f->stmts[v->place];
    const struct ptx_operand *o = ptx_operand(s, 1);
    if (s->form->odd || s->form->id != PTX_OP_CVT || s->form->ntypes != 2 || !ranges_plain_int(s->form) ||
        s->operands[0].kind != PTX_REG || !o || o->kind != PTX_REG || o->sub != PTX_SEL_NONE ||
        ranges_read(b, v->place, o->id) != of)
        return false;
    enum ptx_type_class k = ptx_type_class((enum ptx_type)s->form->types[1]);
    unsigned to = ptx_type_bits((enum ptx_type)s->form->types[0]);
    unsigned from = ptx_type_bits((enum ptx_type)s->form->types[1]);
    bool sign = k == PTX_CLASS_SINT;
    if ((k != PTX_CLASS_UINT && !sign) || from < 16 || to <= from || (w->bits && w->bits != from) ||
        (w->bits && w->sign != sign) ||
        to != ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, s->operands[0].id)->type) ||
        from > ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, o->id)->type))
        return false;
    *w = (struct widening){(uint8_t)from, sign, w->most};
    return true;
}

// Finds another JOIN of the header that a JOIN is when it is widened, on each way in; and what is widened
// there is what the other one becomes, since no definition that dominates the conversion runs between it and
// the end of the way. REACH_NONE if there is none.
static uint32_t narrower(const struct ranges_build *b, uint32_t join, struct widening *w)
{
    const struct reach_value *v = &b->reach->value.items[join];
    struct graph_nodes preds = graph_pred(b->cfg->graph, v->place);
    for (uint32_t k = b->join_at[v->place]; k < b->join_at[v->place + 1]; k++) {
        uint32_t other = b->joins[k], other_in = b->reach->value.items[other].input;
        bool all = other != join && !ranges_is_pred(b, other);
        *w = (struct widening){0};
        for (uint32_t i = 0; i < preds.n && all; i++) {
            uint32_t in = b->reach->input.items[v->input + i], of = b->reach->input.items[other_in + i];
            if (graph_reached(b->cfg->graph, preds.at[i]) && !(in == join && of == other))
                all = in != REACH_NONE && of != REACH_NONE && widens(b, in, of, w);
        }
        if (all && w->bits && w->most < (int64_t)1 << (w->bits - 1))
            return other;
    }
    return REACH_NONE;
}

void ranges_need_counter(struct ranges_build *b, uint32_t join)
{
    const struct reach_value *v = &b->reach->value.items[join];
    struct graph_nodes preds = graph_pred(b->cfg->graph, v->place);
    struct chain step = {0};
    struct widening w;
    uint32_t narrow;
    if (ranges_is_pred(b, join))
        return;
    ranges_need_choice(b, join);
    if (step_of(b, loop_at(b, v->place), join, &step)) {
        need_parts(b, &step);
    } else if ((narrow = narrower(b, join, &w)) != REACH_NONE) {
        ranges_need(b, narrow);
        return;
    } else if (!ranges_need_carried(b, loop_at(b, v->place), join)) {
        return;
    }
    for (uint32_t i = 0; i < preds.n; i++)
        if (ranges_forward(b, preds.at[i], v->place) && b->reach->input.items[v->input + i] != REACH_NONE)
            ranges_need(b, b->reach->input.items[v->input + i]);
}

// --- tests -------------------------------------------------------------------------------------------------

struct test {
    struct chain left;
    struct ranges_compare of;
};

static bool relation_of(const struct ptx_form *f, uint8_t *relation)
{
    static const struct {
        uint16_t mod;
        uint8_t relation;
    } of[] = {{PTX_MOD_LT, PROOF_LT}, {PTX_MOD_LE, PROOF_LE}, {PTX_MOD_GT, PROOF_GT}, {PTX_MOD_GE, PROOF_GE},
              {PTX_MOD_EQ, PROOF_EQ}, {PTX_MOD_NE, PROOF_NE}, {PTX_MOD_LO, PROOF_LT}, {PTX_MOD_LS, PROOF_LE},
              {PTX_MOD_HI, PROOF_GT}, {PTX_MOD_HS, PROOF_GE}};
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++) {
        if (ptx_form_has(f, (enum ptx_mod)of[i].mod)) {
            *relation = of[i].relation;
            return true;
        }
    }
    return false;
}

static bool operand_fixed(const struct ranges_build *b, uint32_t loop, uint32_t stmt,
                          const struct ptx_operand *o, unsigned depth);

// Whether equal operands make equal results, whenever and in whatever threads an operation is executed. A
// vote, an addition with the carry, or what asks which threads are active is none.
static bool is_arithmetic(const struct ptx_stmt *s)
{
    switch ((enum ptx_op_id)s->form->id) {
    case PTX_OP_MOV:
    case PTX_OP_CVT:
    case PTX_OP_CVTA:
    case PTX_OP_ADD:
    case PTX_OP_SUB:
    case PTX_OP_NEG:
    case PTX_OP_NOT:
    case PTX_OP_MUL:
    case PTX_OP_MUL24:
    case PTX_OP_MAD:
    case PTX_OP_MAD24:
    case PTX_OP_DIV:
    case PTX_OP_REM:
    case PTX_OP_ABS:
    case PTX_OP_MIN:
    case PTX_OP_MAX:
    case PTX_OP_POPC:
    case PTX_OP_CLZ:
    case PTX_OP_BFE:
    case PTX_OP_BFI:
    case PTX_OP_BMSK:
    case PTX_OP_SHL:
    case PTX_OP_SHR:
    case PTX_OP_AND:
    case PTX_OP_OR:
    case PTX_OP_XOR:
    case PTX_OP_LOP3:
    case PTX_OP_SELP: return ranges_understood(s);
    default: return false;
    }
}

// Whether each round computes the value anew, and from fixed ones only, by arithmetic: a compiler does that
// where it saves a register. ranges_limit emits such a value before the loop.
static bool computed_anew(const struct ranges_build *b, uint32_t loop, uint32_t value, unsigned depth)
{
    const struct reach_value *v = &b->reach->value.items[value];
    if (!depth || v->kind != REACH_DEF || v->partial || ranges_is_pred(b, value))
        return false;
    const struct ptx_stmt *s = &b->f->stmts[v->place];
    if (s->guard != PTX_NONE || !is_arithmetic(s) || s->operands[0].kind != PTX_REG)
        return false;
    for (unsigned i = 1; ptx_operand(s, i); i++)
        if (!operand_fixed(b, loop, v->place, ptx_operand(s, i), depth - 1))
            return false;
    return true;
}

static bool operand_fixed(const struct ranges_build *b, uint32_t loop, uint32_t stmt,
                          const struct ptx_operand *o, unsigned depth)
{
    if (o->kind == PTX_IMM)
        return o->sub == PTX_IMM_INT;
    if (o->kind != PTX_REG || o->sub != PTX_SEL_NONE)
        return false;
    uint32_t v = ranges_read(b, stmt, o->id);
    return v != REACH_NONE && (ranges_fixed(b, loop, v) || computed_anew(b, loop, v, depth));
}

static uint8_t opposite(uint8_t relation)
{
    static const uint8_t of[] = {PROOF_GE, PROOF_GT, PROOF_LE, PROOF_LT, PROOF_NE, PROOF_EQ};
    return of[relation];
}

static uint8_t mirrored(uint8_t relation)
{
    static const uint8_t of[] = {PROOF_GT, PROOF_GE, PROOF_LT, PROOF_LE, PROOF_EQ, PROOF_NE};
    return of[relation];
}

bool ranges_compared(struct ranges_build *b, uint32_t loop, uint32_t pred, bool holds,
                     struct ranges_compare *t)
{
    const struct reach_value *v = &b->reach->value.items[pred];
    if (v->kind != REACH_DEF || v->partial || ranges_fixed(b, loop, pred))
        return false;
    const struct ptx_stmt *s = &b->f->stmts[v->place];
    const struct ptx_operand *x = ptx_operand(s, 1), *y = ptx_operand(s, 2);
    if (!y || s->form->id != PTX_OP_SETP || s->form->odd || ptx_operand(s, 3) || !ranges_plain_int(s->form) ||
        s->operands[0].kind != PTX_REG || !relation_of(s->form, &t->relation))
        return false;
    t->stmt = v->place;
    t->bits = (uint8_t)ptx_type_bits((enum ptx_type)s->form->types[0]);
    t->sign = ptx_type_class((enum ptx_type)s->form->types[0]) == PTX_CLASS_SINT || t->relation == PROOF_EQ ||
              t->relation == PROOF_NE;
    if (operand_fixed(b, loop, v->place, x, MOST_DEPTH)) {
        const struct ptx_operand *swap = x;
        x = y;
        y = swap;
        t->relation = mirrored(t->relation);
    }
    if (!holds)
        t->relation = opposite(t->relation);
    t->left = ranges_moving(b, loop, v->place, x);
    t->limit = y;
    return t->left != REACH_NONE && operand_fixed(b, loop, v->place, y, MOST_DEPTH);
}

// Whether a comparison is one of a counter, by fixed steps.
static bool read_test(struct ranges_build *b, uint32_t loop, uint32_t pred, bool holds, struct test *t)
{
    if (!ranges_compared(b, loop, pred, holds, &t->of))
        return false;
    t->left = (struct chain){.bits = t->of.bits, .sign = t->of.sign};
    return chase(b, loop, t->of.left, true, &t->left) && !ranges_is_pred(b, t->left.from);
}

// Collects the tests in a predicate: if both of two must hold, each is one.
static void read_tests(struct ranges_build *b, uint32_t loop, uint32_t pred, bool holds, unsigned depth,
                       struct test *tests, uint32_t *n)
{
    const struct reach_value *v = &b->reach->value.items[pred];
    struct chain step = {0};
    if (*n == MOST_TESTS || !depth || pred == REACH_NONE)
        return;
    if (read_test(b, loop, pred, holds, &tests[*n])) {
        *n += step_of(b, loop, tests[*n].left.from, &step);
        return;
    }
    if (v->kind != REACH_DEF || v->partial || ranges_fixed(b, loop, pred))
        return;
    const struct ptx_stmt *s = &b->f->stmts[v->place];
    bool splits =
        s->form->ntypes && s->form->types[0] == PTX_PRED && s->form->id == (holds ? PTX_OP_AND : PTX_OP_OR);
    bool turns = s->form->ntypes && s->form->types[0] == PTX_PRED && s->form->id == PTX_OP_NOT;
    for (unsigned k = 1; (splits && k <= 2) || (turns && k == 1); k++) {
        const struct ptx_operand *o = ptx_operand(s, k);
        if (o->kind == PTX_REG)
            read_tests(b, loop, ranges_read(b, v->place, o->id), (holds != turns) != o->negated, depth - 1,
                       tests, n);
    }
}

static bool dominates_latches(const struct ranges_build *b, const struct loop *l, uint32_t block)
{
    for (uint32_t i = 0; i < l->nlatches; i++)
        if (!dom_dominates(b->dom, block, b->loops->latches[l->first_latch + i]))
            return false;
    return true;
}

bool ranges_exit(const struct ranges_build *b, uint32_t loop, uint32_t *at, uint32_t *pred, bool *holds)
{
    const struct loop *l = &b->loops->loops[loop];
    while (*at < l->count) {
        uint32_t u = b->loops->nodes[l->first + (*at)++], stays = 0, inside = 0;
        struct graph_nodes to = graph_succ(b->cfg->graph, u);
        struct ranges_condition c;
        for (uint32_t k = 0; k < to.n; k++) {
            if (loops_contains(b->loops, loop, to.at[k])) {
                stays++;
                inside = to.at[k];
            }
        }
        if (stays != 1 || (to.n == 1 && !b->cfg->exits[u]) || !dominates_latches(b, l, u) ||
            !ranges_condition(b, u, inside, &c))
            continue;
        *pred = ranges_read(b, c.stmt, c.reg);
        *holds = !c.negated;
        if (*pred != REACH_NONE)
            return true;
    }
    return false;
}

static uint32_t tests_of(struct ranges_build *b, uint32_t loop, struct test tests[MOST_TESTS])
{
    uint32_t n = 0, at = 0, pred;
    bool holds;
    while (n < MOST_TESTS && ranges_exit(b, loop, &at, &pred, &holds))
        read_tests(b, loop, pred, holds, 4, tests, &n);
    return n;
}

void ranges_need_loops(struct ranges_build *b)
{
    struct test tests[MOST_TESTS];
    for (uint32_t l = 0; l < b->loops->nloops; l++) {
        uint32_t n = tests_of(b, l, tests);
        for (uint32_t i = 0; i < n; i++) {
            ranges_need(b, tests[i].left.from);
            need_parts(b, &tests[i].left);
            if (tests[i].of.limit->kind == PTX_REG)
                ranges_need(b, ranges_read(b, tests[i].of.stmt, tests[i].of.limit->id));
        }
    }
}

// --- emission ----------------------------------------------------------------------------------------------

static uint32_t emit_chain(struct ranges_build *b, uint32_t node, const struct chain *c)
{
    uint32_t at = node;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t part = ranges_node_of(b, c->parts[i].value, NULL);
        at = ranges_emit(
            b, (struct proof_insn){.op = c->parts[i].negative ? PROOF_SUB : PROOF_ADD, .a = at, .b = part});
    }
    if (!c->c)
        return at;
    return ranges_emit(b, (struct proof_insn){.op = PROOF_ADD, .a = at, .b = ranges_const(b, c->c)});
}

uint32_t ranges_merge(struct ranges_build *b, uint32_t join)
{
    const struct reach_value *v = &b->reach->value.items[join];
    struct graph_nodes preds = graph_pred(b->cfg->graph, v->place);
    bool pred = ranges_is_pred(b, join);
    uint32_t n = 0, only = PROOF_NONE, nodes[64];
    for (uint32_t i = 0; i < preds.n; i++) {
        if (!ranges_forward(b, preds.at[i], v->place))
            continue;
        if (n == 64)
            return ranges_opaque(b, v->reg, PROOF_WHY_COMPLEX, NULL);
        only = nodes[n++] =
            ranges_node_of(b, b->reach->input.items[v->input + i], (void *)(uintptr_t)&v->reg);
    }
    if (n == 1)
        return only;
    uint32_t first = (uint32_t)b->inputs.len;
    for (uint32_t i = 0; i < n; i++)
        b->failed |= vec_push(&b->inputs, nodes[i]) != 0;
    return ranges_emit(b, (struct proof_insn){.op = pred ? PROOF_MEET : PROOF_MERGE, .a = first});
}

struct counter {
    uint32_t join, init, step;
    bool wide;  // another JOIN, widened
};

// Emits init and step of a counter. Returns false if it is none.
static bool emit_counter(struct ranges_build *b, uint32_t loop, uint32_t join, struct counter *c)
{
    struct chain step = {0};
    if (ranges_is_pred(b, join) || !step_of(b, loop, join, &step))
        return false;
    *c = (struct counter){join, ranges_merge(b, join), PROOF_NONE, false};
    c->step = step.n ? emit_chain(b, ranges_const(b, 0), &step) : ranges_const(b, step.c);
    return true;
}

// Returns the instruction of a value, which is emitted here if it is one that rounds compute anew.
static uint32_t early(struct ranges_build *b, uint32_t value, void *ctx)
{
    if (value == REACH_NONE || b->node[value] != PROOF_NONE || b->reach->value.items[value].kind != REACH_DEF)
        return ranges_node_of(b, value, ctx);
    return ranges_translate(b, value, early, ctx);
}

uint32_t ranges_limit(struct ranges_build *b, const struct ranges_compare *t)
{
    return t->limit->kind == PTX_REG ? early(b, ranges_read(b, t->stmt, t->limit->id), NULL)
                                     : ranges_const(b, t->limit->value);
}

static bool emit_test(struct ranges_build *b, uint32_t loop, const struct test *t, struct proof_test *out)
{
    struct counter c;
    if (!emit_counter(b, loop, t->left.from, &c))
        return false;
    uint32_t limit = ranges_limit(b, &t->of);
    *out = (struct proof_test){.start = emit_chain(b, c.init, &t->left),
                               .step = c.step,
                               .limit = ranges_extend(b, limit, t->of.bits, t->of.sign),
                               .relation = t->of.relation,
                               .bits = t->left.bits,
                               .sign = t->left.sign};
    return true;
}

void ranges_loop(struct ranges_build *b, uint32_t block)
{
    uint32_t loop = loop_at(b, block), ntests, nout = 0;
    struct test tests[MOST_TESTS];
    struct proof_test out[MOST_TESTS];
    struct widening w;
    if (loop == GRAPH_NONE)
        return;
    ntests = tests_of(b, loop, tests);
    for (uint32_t i = 0; i < ntests; i++)
        nout += emit_test(b, loop, &tests[i], &out[nout]);
    uint32_t first = (uint32_t)b->tests.len;
    for (uint32_t i = 0; i < nout; i++)
        b->failed |= vec_push(&b->tests, out[i]) != 0;
    // All before the LOOP, so that none of them comes to depend on the counter.
    uint32_t n = b->join_at[block + 1] - b->join_at[block];
    struct counter *counters = mem_zalloc(n + 1, sizeof *counters);
    if (!counters) {
        b->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t join = b->joins[b->join_at[block] + i];
        if (!b->needed[join] || emit_counter(b, loop, join, &counters[i]))
            continue;
        counters[i].step = PROOF_NONE;
        counters[i].wide = !ranges_is_pred(b, join) && narrower(b, join, &w) != REACH_NONE;
        counters[i].init = counters[i].wide ? PROOF_NONE : ranges_carried(b, loop, join);
    }
    uint32_t at = ranges_emit(b, (struct proof_insn){.op = PROOF_LOOP, .a = first, .b = nout});
    for (uint32_t i = 0; i < n; i++) {
        uint32_t join = b->joins[b->join_at[block] + i];
        const struct reach_value *v = &b->reach->value.items[join];
        if (!b->needed[join] || counters[i].wide)
            continue;
        unsigned bits = ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, b->regs->reg[v->reg])->type);
        if (counters[i].step == PROOF_NONE && counters[i].init != PROOF_NONE)
            b->node[join] = counters[i].init;
        else if (counters[i].step == PROOF_NONE)
            b->node[join] = ranges_choice(b, join, ranges_opaque(b, v->reg, PROOF_WHY_CARRIED, NULL));
        else
            b->node[join] = ranges_emit(b, (struct proof_insn){.op = PROOF_STEPS,
                                                               .bits = (uint8_t)bits,
                                                               .sign = 1,
                                                               .a = counters[i].init,
                                                               .b = counters[i].step,
                                                               .c = at});
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t join = b->joins[b->join_at[block] + i];
        if (counters[i].wide)
            b->node[join] = ranges_extend(b, ranges_node_of(b, narrower(b, join, &w), NULL), w.bits, w.sign);
    }
    mem_free(counters);
}
