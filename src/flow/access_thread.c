// SPDX-License-Identifier: MIT
#include "flow/access_thread.h"

#include <string.h>

enum { STEPS = 4000, DEPTH = 200 };

// The calls of one question; they nest as the program does.
struct asking {
    struct access_thread *t;
    unsigned depth;
};

static bool value_of(struct asking *q, uint32_t at, int64_t *value);
static bool holds(struct asking *q, uint32_t at, bool *value);

// Reads the low bits of v as a number.
static int64_t extend(int64_t v, unsigned bits, bool sign)
{
    if (!bits || bits >= 64)
        return v;
    uint64_t low = (uint64_t)v & ((1ull << bits) - 1);
    return sign && low >> (bits - 1) ? (int64_t)(low - (1ull << bits)) : (int64_t)low;
}

static bool parameter(const struct access_thread *t, const struct proof_insn *i, int64_t *value)
{
    uint64_t bytes = 0, at = (uint64_t)i->imm, size = i->bits / 8;
    if (!size || size > 8 || at > t->l->params_size || t->l->params_size - at < size)
        return false;
    memcpy(&bytes, (const char *)t->l->params + at, size);
    *value = extend((int64_t)bytes, i->bits, i->sign);
    return true;
}

static bool launch_value(const struct access_thread *t, int64_t which, int64_t *value)
{
    unsigned axis = (unsigned)which % 3;
    if (which == PROOF_DYNAMIC_SHARED)
        *value = t->l->dynamic_shared;
    else
        *value = which < PROOF_NTID     ? t->thread[axis]
                 : which < PROOF_CTAID  ? t->l->block[axis]
                 : which < PROOF_NCTAID ? t->block[axis]
                                        : t->l->grid[axis];
    return which >= 0 && which < PROOF_LAUNCH_VALUES;
}

// Operations that need no width, since overflow wraps in registers too.
static bool wrapping(const struct proof_insn *i, int64_t a, int64_t b, int64_t *value)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (i->op) {
    case PROOF_ADD: *value = (int64_t)(x + y); return true;
    case PROOF_SUB: *value = (int64_t)(x - y); return true;
    case PROOF_MUL: *value = (int64_t)(x * y); return true;
    case PROOF_SHL:
        *value = b < 0 || b >= 64 || (i->bits && b >= i->bits) ? 0 : (int64_t)(x << b);
        return true;
    case PROOF_AND: *value = extend((int64_t)(x & y), i->bits, false); return true;
    case PROOF_OR: *value = extend((int64_t)(x | y), i->bits, false); return true;
    case PROOF_XOR: *value = extend((int64_t)(x ^ y), i->bits, false); return true;
    default: return false;
    }
}

static bool two(const struct proof_insn *i, int64_t a, int64_t b, int64_t *value)
{
    bool divides = b != 0 && !(b == -1 && a == INT64_MIN);
    if (wrapping(i, a, b, value))
        return true;
    switch (i->op) {
    case PROOF_DIV: *value = divides ? a / b : 0; return divides;
    case PROOF_REM: *value = divides ? a % b : 0; return divides;
    case PROOF_SHR: *value = b < 0 || b >= 63 ? (a < 0 ? -1 : 0) : a >> b; return true;
    case PROOF_MIN: *value = a < b ? a : b; return true;
    case PROOF_MAX: *value = a > b ? a : b; return true;
    default: return false;
    }
}

static bool select_value(struct asking *q, const struct proof_insn *i, int64_t *value)
{
    bool first;
    return holds(q, i->c, &first) && value_of(q, first ? i->a : i->b, value);
}

static bool steps(struct asking *q, const struct proof_insn *i, int64_t a, int64_t b, int64_t *value)
{
    if (i->c != q->t->loop) {
        q->t->other = i->c;
        return false;
    }
    *value = (int64_t)((uint64_t)a + (uint64_t)b * q->t->counter);
    return true;
}

static bool compute(struct asking *q, const struct proof_insn *i, int64_t *value)
{
    int64_t a, b;
    switch (i->op) {
    case PROOF_CONST: *value = i->imm; return true;
    case PROOF_PARAM: return parameter(q->t, i, value);
    case PROOF_LAUNCH: return launch_value(q->t, i->imm, value);
    case PROOF_BASE: *value = (int64_t)q->t->base; return true;
    case PROOF_SELECT: return select_value(q, i, value);
    case PROOF_CAST:
    case PROOF_CHOICE: return value_of(q, i->a, value);
    case PROOF_EXTEND:
        if (!value_of(q, i->a, &a))
            return false;
        *value = extend(a, i->bits, i->sign);
        return true;
    case PROOF_FIELD:
        if (!value_of(q, i->a, &a) || i->imm < 0 || i->imm > 63)
            return false;
        *value = extend((int64_t)((uint64_t)a >> i->imm), i->b, false);
        return true;
    case PROOF_ABS:
        if (!value_of(q, i->a, &a) || a == INT64_MIN)
            return false;
        *value = a < 0 ? -a : a;
        return true;
    case PROOF_STEPS: return value_of(q, i->a, &a) && value_of(q, i->b, &b) && steps(q, i, a, b, value);
    case PROOF_ADD:
    case PROOF_SUB:
    case PROOF_MUL:
    case PROOF_DIV:
    case PROOF_REM:
    case PROOF_SHL:
    case PROOF_SHR:
    case PROOF_AND:
    case PROOF_OR:
    case PROOF_XOR:
    case PROOF_MIN:
    case PROOF_MAX: return value_of(q, i->a, &a) && value_of(q, i->b, &b) && two(i, a, b, value);
    default: return false;
    }
}

static bool value_of(struct asking *q, uint32_t at, int64_t *value)
{
    if (at >= q->t->p->head->ninsns || ++q->t->steps > STEPS || q->depth >= DEPTH)
        return false;
    q->depth++;
    bool known = compute(q, &q->t->p->insns[at], value);
    q->depth--;
    return known;
}

static bool compare(const struct proof_insn *i, int64_t a, int64_t b)
{
    switch (i->sign) {
    case PROOF_LT: return a < b;
    case PROOF_LE: return a <= b;
    case PROOF_GT: return a > b;
    case PROOF_GE: return a >= b;
    case PROOF_EQ: return a == b;
    default: return a != b;
    }
}

static bool decide(struct asking *q, const struct proof_insn *i, bool *value)
{
    int64_t x, y;
    bool a, b;
    switch (i->op) {
    case PROOF_COMPARE:
        if (!value_of(q, i->a, &x) || !value_of(q, i->b, &y))
            return false;
        *value = compare(i, x, y);
        return true;
    case PROOF_OPPOSITE:
        if (!holds(q, i->a, &a))
            return false;
        *value = !a;
        return true;
    case PROOF_ALWAYS: *value = i->imm != 0; return true;
    case PROOF_BOTH:
    case PROOF_EITHER:
    case PROOF_DIFFER:
        if (!holds(q, i->a, &a) || !holds(q, i->b, &b))
            return false;
        *value = i->op == PROOF_BOTH ? a && b : i->op == PROOF_EITHER ? a || b : a != b;
        return true;
    default: return false;
    }
}

static bool holds(struct asking *q, uint32_t at, bool *value)
{
    if (at >= q->t->p->head->ninsns || ++q->t->steps > STEPS || q->depth >= DEPTH)
        return false;
    q->depth++;
    bool known = decide(q, &q->t->p->insns[at], value);
    q->depth--;
    return known;
}

bool access_thread_value(struct access_thread *t, uint32_t insn, int64_t *value)
{
    struct asking q = {t, 0};
    t->steps = 0;
    t->other = PROOF_NONE;
    return value_of(&q, insn, value);
}

bool access_thread_holds(struct access_thread *t, uint32_t predicate, bool *value)
{
    struct asking q = {t, 0};
    t->steps = 0;
    t->other = PROOF_NONE;
    return holds(&q, predicate, value);
}

bool access_thread_address(struct access_thread *t, uint32_t insn, uint64_t *address)
{
    const struct proof_insn *i = &t->p->insns[insn];
    const struct proof_access *row = &t->p->accesses[i->c];
    int64_t value;
    if (!access_thread_value(t, i->a, &value))
        return false;
    *address = (uint64_t)value + (uint64_t)row->offset;
    if (row->bits == 32)
        *address = (uint32_t)*address;
    return true;
}

bool access_thread_explains(struct access_thread *t, uint32_t insn, uint64_t address)
{
    uint64_t first, second;
    t->loop = PROOF_NONE;
    t->counter = 0;
    if (access_thread_address(t, insn, &first))
        return first == address;
    t->loop = t->other;
    if (t->loop == PROOF_NONE || !access_thread_address(t, insn, &first))
        return false;
    t->counter = 1;
    if (!access_thread_address(t, insn, &second) || first == second)
        return false;
    int64_t step = (int64_t)(second - first), far = (int64_t)(address - first);
    if (step == -1 || far % step || far / step < 0)
        return false;
    t->counter = (uint64_t)(far / step);
    return access_thread_address(t, insn, &second) && second == address;
}
