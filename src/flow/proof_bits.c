// SPDX-License-Identifier: MIT
// Which bits of a value may be set. A compiler of tiles makes addresses in shared memory from single bits of
// the thread's index, by and, or and xor: no sum says what these are, but each result has only bits that its
// operands have. Whatever is claimed is about the integer that the form of an instruction is: that it is not
// negative, below 2^62, and has no other bits.
#include "flow/proof_state.h"

#define MOST (1ULL << 62)

static bool known(uint64_t bits)
{
    return bits < MOST;
}

static uint64_t all_below(uint64_t v)
{
    return v ? ~0ULL >> __builtin_clzll(v) : 0;
}

static uint64_t moved_up(uint64_t bits, int64_t by)
{
    return known(bits) && by >= 0 && by < 62 && bits << by >> by == bits && known(bits << by)
               ? bits << by
               : PROOF_ANY_BITS;
}

// a + b has no bits below those that both lack, and is at most the sum of the greatest values.
static uint64_t of_sum(uint64_t a, uint64_t b)
{
    if (!known(a) || !known(b))
        return PROOF_ANY_BITS;
    if (!(a & b))
        return a | b;
    uint64_t all = all_below(a + b);
    return known(all) ? all & ~((1ULL << __builtin_ctzll(a | b)) - 1) : PROOF_ANY_BITS;
}

static uint64_t of_product(const struct proof_state *e, const struct proof_insn *i, uint64_t a, uint64_t b)
{
    struct affine x = e->forms[i->a], y = e->forms[i->b];
    if (affine_is_const(y) && y.c > 0 && !(y.c & (y.c - 1)))
        return moved_up(a, __builtin_ctzll((uint64_t)y.c));
    if (affine_is_const(x) && x.c > 0 && !(x.c & (x.c - 1)))
        return moved_up(b, __builtin_ctzll((uint64_t)x.c));
    return PROOF_ANY_BITS;
}

static uint64_t of_shift(const struct proof_state *e, const struct proof_insn *i, uint64_t a)
{
    struct affine by = e->forms[i->b];
    if (!affine_is_const(by) || by.c < 0 || by.c >= i->bits || by.c > 61)
        return PROOF_ANY_BITS;
    return i->op == PROOF_SHL ? moved_up(a, by.c) : known(a) ? a >> by.c : PROOF_ANY_BITS;
}

static uint64_t of_field(const struct proof_insn *i, uint64_t a)
{
    if (i->imm < 0 || i->imm > 61 || !i->b || i->b > 61)
        return PROOF_ANY_BITS;
    uint64_t mask = (1ULL << i->b) - 1;
    return known(a) ? a >> i->imm & mask : mask;
}

// Whether a form with these bits is the content of a register of so many bits, and not its sign.
static bool is_plain(uint64_t bits, unsigned width)
{
    return width && proof_bits_below(bits, width - 1);
}

static uint64_t of_logic(const struct proof_state *e, const struct proof_insn *i, uint64_t a, uint64_t b)
{
    bool first = is_plain(a, i->bits), second = is_plain(b, i->bits);
    if (i->op != PROOF_AND)
        return first && second ? a | b : PROOF_ANY_BITS;
    if (first && second)
        return a & b;
    // A mask without the sign bit takes a field, whatever the other side is.
    struct affine x = e->forms[i->a], y = e->forms[i->b];
    if (first && affine_is_const(x))
        return a;
    if (second && affine_is_const(y))
        return b;
    // One with it takes the lowest bits off.
    int64_t mask = affine_is_const(y) ? y.c : affine_is_const(x) ? x.c : 0;
    uint64_t other = affine_is_const(y) ? a : b, width = i->bits >= 64 ? ~0ULL : (1ULL << i->bits) - 1;
    if (!is_plain(other, i->bits) || !mask)
        return PROOF_ANY_BITS;
    return other & ((uint64_t)mask & width);
}

static uint64_t of_extension(const struct proof_insn *i, uint64_t a)
{
    unsigned spare = i->sign ? 1 : 0;
    if (!known(a) || i->bits <= spare)
        return PROOF_ANY_BITS;
    if (proof_bits_below(a, i->bits - spare))
        return a;
    return i->sign ? PROOF_ANY_BITS : a & ((1ULL << i->bits) - 1);
}

static uint64_t of_merge(const struct proof_state *e, const struct proof_insn *i,
                         const struct proof_insn *block)
{
    uint64_t all = 0;
    bool any = false;
    for (uint32_t k = 0; k < block->b; k++) {
        if (!e->edges[block->a + k].live)
            continue;
        any = true;
        all |= e->bits[e->p->inputs[i->a + k]];
    }
    return any ? all : PROOF_ANY_BITS;
}

static uint64_t of_select(const struct proof_state *e, const struct proof_insn *i)
{
    uint8_t t = e->truth[i->c];
    if (t == PROOF_TRUE || t == PROOF_FALSE)
        return e->bits[t == PROOF_TRUE ? i->a : i->b];
    return e->bits[i->a] | e->bits[i->b];
}

static uint64_t of_operands(const struct proof_state *e, const struct proof_insn *i,
                            const struct proof_insn *block)
{
    switch (i->op) {
    case PROOF_EXTEND: return of_extension(i, e->bits[i->a]);
    case PROOF_ADD: return of_sum(e->bits[i->a], e->bits[i->b]);
    case PROOF_MUL: return of_product(e, i, e->bits[i->a], e->bits[i->b]);
    case PROOF_SHL:
    case PROOF_SHR: return of_shift(e, i, e->bits[i->a]);
    case PROOF_FIELD: return of_field(i, e->bits[i->a]);
    case PROOF_AND:
    case PROOF_OR:
    case PROOF_XOR: return of_logic(e, i, e->bits[i->a], e->bits[i->b]);
    case PROOF_SELECT: return of_select(e, i);
    case PROOF_STAYS:
        return is_plain(e->bits[i->a], i->bits) && !(i->sign & STAYS_SUB) ? e->bits[i->a] | i->c
                                                                          : PROOF_ANY_BITS;
    case PROOF_MERGE: return of_merge(e, i, block);
    default: return PROOF_ANY_BITS;
    }
}

// The bits of the numbers between the ends of a form's range.
static uint64_t of_range(const struct affine_state *s, struct affine f)
{
    struct affine_range r = affine_box(s, f);
    uint64_t unit = affine_content(s, f, f.c < 0 ? -(uint64_t)f.c : (uint64_t)f.c);
    if (r.lo < 0 || r.soft || r.hi >= (affine_wide)MOST)
        return PROOF_ANY_BITS;
    if (affine_is_const(f))
        return (uint64_t)f.c;
    return all_below((uint64_t)r.hi) & ~(unit ? (1ULL << __builtin_ctzll(unit)) - 1 : 0);
}

uint64_t proof_bits(const struct proof_state *e, uint32_t at, const struct proof_insn *block)
{
    uint64_t bits = of_operands(e, &e->p->insns[at], block), other = of_range(&e->s, e->forms[at]);
    return !known(bits) ? other : !known(other) ? bits : bits & other;
}
