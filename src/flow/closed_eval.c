// SPDX-License-Identifier: MIT
// Runs a closed form.
#include <string.h>

#include "flow/closed_state.h"

static int64_t parameter(const struct closed_insn *i, const struct proof_launch *l)
{
    uint64_t v = 0;
    const char *from = (const char *)l->params + i->imm;
    if (i->bits == 32)
        memcpy(&v, from, 4);
    else if (i->bits == 64)
        memcpy(&v, from, 8);
    else
        memcpy(&v, from, i->bits / 8);
    unsigned spare = 64u - i->bits;
    return i->sign ? (int64_t)(v << spare) >> spare : (int64_t)(v << spare >> spare);
}

static int64_t launch_number(int64_t which, const struct proof_launch *l)
{
    if (which == PROOF_DYNAMIC_SHARED)
        return l->dynamic_shared;
    return which < PROOF_CTAID ? l->block[which - PROOF_NTID] : l->grid[which - PROOF_NCTAID];
}

static int64_t floor_div(int64_t a, int64_t d)
{
    return a / d - (a % d < 0);
}

// Computes the registers from number `at` on. Returns false if a number does not fit or a condition does not
// hold.
static bool run(const struct closed *c, const struct proof_launch *l, int64_t *reg, uint32_t at)
{
    bool over = false;
    int64_t x;
    for (; at < c->nops; at++) {
        const struct closed_insn *i = &c->ops[at];
        switch (i->op) {
        case CLOSED_CONST: reg[at] = i->imm; break;
        case CLOSED_PARAM: reg[at] = parameter(i, l); break;
        case CLOSED_LAUNCH: reg[at] = launch_number(i->imm, l); break;
        case CLOSED_MUL: over |= __builtin_mul_overflow(reg[i->a], reg[i->b], &reg[at]); break;
        case CLOSED_MULI: over |= __builtin_mul_overflow(reg[i->a], i->imm, &reg[at]); break;
        case CLOSED_MADI:
            over |= __builtin_mul_overflow(reg[i->b], i->imm, &x);
            over |= __builtin_add_overflow(reg[i->a], x, &reg[at]);
            break;
        case CLOSED_ADDI: over |= __builtin_add_overflow(reg[i->a], i->imm, &reg[at]); break;
        case CLOSED_QUOT:
            if (reg[i->b] < 1)
                return false;
            reg[at] = floor_div(reg[i->a], reg[i->b]);
            break;
        case CLOSED_QUOTI:
            reg[at] = i->imm & (i->imm - 1) ? floor_div(reg[i->a], i->imm)
                                            : reg[i->a] >> __builtin_ctzll((uint64_t)i->imm);
            break;
        case CLOSED_MIN: reg[at] = reg[i->a] < reg[i->b] ? reg[i->a] : reg[i->b]; break;
        case CLOSED_MAX: reg[at] = reg[i->a] > reg[i->b] ? reg[i->a] : reg[i->b]; break;
        case CLOSED_AND: reg[at] = reg[i->a] & reg[i->b]; break;
        case CLOSED_OR: reg[at] = reg[i->a] | reg[i->b]; break;
        case CLOSED_XOR: reg[at] = reg[i->a] ^ reg[i->b]; break;
        case CLOSED_GE:
            if (reg[i->a] < i->imm)
                return false;
            break;
        case CLOSED_LE:
            if (reg[i->a] > i->imm)
                return false;
            break;
        }
    }
    return !over;
}

static int64_t end(const int64_t *reg, uint16_t r, int64_t add, bool *over)
{
    int64_t v = 0;
    *over |= __builtin_add_overflow(r == CLOSED_NO_REG ? 0 : reg[r], add, &v);
    return v;
}

static bool eval(const struct closed *c, const struct proof *p, const struct proof_launch *l, int64_t *reg,
                 uint32_t first, struct proof_bound *out)
{
    const struct closed_out *from = (const struct closed_out *)(c->ops + c->nops);
    bool over = false;
    if (!run(c, l, reg, first))
        return false;
    for (uint32_t i = 0; i < p->head->naccesses; i++, from++) {
        out[i] = (struct proof_bound){.verdict = from->verdict,
                                      .reason = from->reason,
                                      .exact = from->exact,
                                      .guarded = from->guarded,
                                      .root = from->root};
        if (from->verdict != PROOF_BOUNDED)
            continue;
        uint64_t coefs = (uint64_t)(from->coefs == CLOSED_NO_REG ? from->coefs_add : reg[from->coefs]);
        uint64_t at = (uint64_t)(from->c == CLOSED_NO_REG ? 0 : reg[from->c]) + (uint64_t)from->c_add;
        out[i].power = (uint8_t)__builtin_ctzll(coefs | 1u << PROOF_MOST_POWER);
        out[i].residue = (uint8_t)(at & ((1u << out[i].power) - 1));
        out[i].lowest = end(reg, from->lo, from->lo_add, &over);
        out[i].highest = end(reg, from->hi, from->hi_add, &over);
    }
    return !over;
}

bool closed_eval(const void *memory, const struct proof *p, const struct proof_launch *l, void *regs,
                 struct proof_bound *out)
{
    return eval(memory, p, l, regs, 0, out);
}

bool closed_eval_again(const void *memory, const struct proof *p, const struct proof_launch *l, void *regs,
                       struct proof_bound *out)
{
    const struct closed *c = memory;
    return eval(c, p, l, regs, c->nshape, out);
}
