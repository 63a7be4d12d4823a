// SPDX-License-Identifier: MIT
// For a divisor d and a shift s compilers choose factor = floor(2^(32+s) / d) + 1. Then
//   x / d = (x * factor) >> (32 + s), plus 1 if x is negative: the sign bit of the product's upper half.
// A signed factor that does not fit into 31 bits is passed as factor - 2^32, and x is added to the upper
// half.
#include "flow/access_division.h"

static const struct proof_insn *insn(const struct proof *p, uint32_t at)
{
    const struct proof_insn *i = &p->insns[at];
    while (i->op == PROOF_EXTEND || i->op == PROOF_CAST)
        i = &p->insns[i->a];
    return i;
}

// Returns the value of a constant, or -1.
static int64_t constant(const struct proof *p, uint32_t at)
{
    const struct proof_insn *i = insn(p, at);
    return i->op == PROOF_CONST ? i->imm : -1;
}

// Finds x and the factor of a product with a constant.
static bool find_product(const struct proof *p, const struct proof_insn *i, uint32_t *x, uint64_t *factor)
{
    if (i->op != PROOF_MUL || (insn(p, i->a)->op == PROOF_CONST) == (insn(p, i->b)->op == PROOF_CONST))
        return false;
    bool second = insn(p, i->b)->op == PROOF_CONST;
    *x = second ? i->a : i->b;
    *factor = (uint32_t)insn(p, second ? i->b : i->a)->imm;
    return true;
}

// Finds the divisor that a factor stands for. The quotient is right for all numbers of so many bits if
//   0 < factor * d - 2^(32+shift) <= 2^(32+shift-bits)
static bool find_divisor(uint64_t factor, int64_t shift, unsigned bits, int64_t *divisor)
{
    if (!factor || shift < 0 || shift > 30)
        return false;
    uint64_t power = 1ull << (32 + shift), d = power / factor + 1;
    *divisor = (int64_t)d;
    return d >= 2 && factor * d - power <= power >> bits;
}

// Returns whether an instruction is the upper half of a product, to which x was added if the factor is large.
static bool find_upper(const struct proof *p, const struct proof_insn *i, uint32_t *x, uint64_t *factor)
{
    bool added = i->op == PROOF_ADD;
    uint32_t other = 0;
    if (added) {
        bool first = insn(p, i->a)->op == PROOF_SHR;
        other = first ? i->b : i->a;
        i = insn(p, first ? i->a : i->b);
    }
    return i->op == PROOF_SHR && constant(p, i->b) == 32 && find_product(p, insn(p, i->a), x, factor) &&
           added == (*factor >> 31) && (!added || insn(p, other) == insn(p, *x));
}

// The quotient of signed numbers: the shifted upper half, and its sign.
static bool find_signed(const struct proof *p, const struct proof_insn *i, struct access_division *d)
{
    for (int turn = 0; turn < 2; turn++) {
        const struct proof_insn *sign = insn(p, turn ? i->a : i->b), *half = insn(p, turn ? i->b : i->a);
        if (sign->op != PROOF_SHR || constant(p, sign->b) != 31)
            continue;
        const struct proof_insn *upper = insn(p, sign->a);
        bool shifted = half != upper && half->op == PROOF_SHR && insn(p, half->a) == upper;
        int64_t shift = shifted ? constant(p, half->b) : 0;
        uint64_t factor;
        if ((shifted || half == upper) && find_upper(p, upper, &d->dividend, &factor))
            return find_divisor(factor, shift, 31, &d->divisor);
    }
    return false;
}

bool access_division(const struct proof *p, uint32_t at, struct access_division *d)
{
    const struct proof_insn *i = insn(p, at);
    uint64_t factor;
    if (i->op == PROOF_ADD)
        return find_signed(p, i, d);
    return i->op == PROOF_SHR && find_product(p, insn(p, i->a), &d->dividend, &factor) &&
           find_divisor(factor, constant(p, i->b) - 32, 32, &d->divisor);
}
