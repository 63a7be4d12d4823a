// SPDX-License-Identifier: MIT
// Reads proof programs, which may be damaged or made up. What is checked here is what proof_eval.c and its
// companions rely on:
//   every table lies in the bytes; every number that names a row is smaller than the number of rows
//   an instruction's operands are earlier ones of the right kind
//   block 0 has no edges and stands first; blocks are numbered in order; edges come from earlier blocks, with
//   predicates of earlier blocks
//   loops' tests name earlier numbers; STEPS name an earlier LOOP
//   widths, signs, relations and shift amounts are in range
//   each ACCESS names a row, parameters lie in head->params bytes
//   a CHOICE is one between parameters
#include <errno.h>
#include <string.h>

#include "flow/proof.h"

static const char *const why[] = {
#define REASON(id, text, help) text,
#include "flow/proof_reasons.def"
};
static const char *const help[] = {
#define REASON(id, text, help) help,
#include "flow/proof_reasons.def"
};
static const char *const operands[] = {
#define PROOF(id, text, result) text,
#include "flow/proof_ops.def"
};
static const char results[] = {
#define PROOF(id, text, result) result,
#include "flow/proof_ops.def"
};

const char *proof_why(enum proof_reason reason)
{
    return (unsigned)reason < PROOF_WHY_COUNT ? why[reason] : "";
}

const char *proof_help(enum proof_reason reason)
{
    return (unsigned)reason < PROOF_WHY_COUNT ? help[reason] : "";
}

// Whether `at` is an instruction before `before` with that kind of result; 'l' is a LOOP.
static bool names(const struct proof *p, uint32_t at, uint32_t before, char kind)
{
    if (at >= before)
        return false;
    return kind == 'l' ? p->insns[at].op == PROOF_LOOP : results[p->insns[at].op] == kind;
}

static bool operand_valid(const struct proof *p, uint32_t operand, uint32_t before, char kind)
{
    if (kind == '-' || (kind == '?' && operand == PROOF_NONE))
        return true;
    return names(p, operand, before, kind == '?' ? 'p' : kind);
}

static bool block_valid(const struct proof *p, const struct proof_insn *i, uint32_t at, uint32_t number)
{
    if (i->c != number || i->b > p->head->nedges || i->a > p->head->nedges - i->b ||
        (number == 0) != (at == 0) || (!number && i->b))
        return false;
    for (uint32_t k = i->a; k < i->a + i->b; k++) {
        const struct proof_edge *e = &p->edges[k];
        if (e->block >= number || e->negated > 1 ||
            (e->predicate != PROOF_NONE && !names(p, e->predicate, at, 'p')))
            return false;
    }
    return true;
}

static bool inputs_valid(const struct proof *p, const struct proof_insn *i, uint32_t at, uint32_t n,
                         char kind)
{
    if (n > p->head->ninputs || i->a > p->head->ninputs - n)
        return false;
    for (uint32_t k = i->a; k < i->a + n; k++)
        if (!names(p, p->inputs[k], at, kind))
            return false;
    return true;
}

static bool loop_valid(const struct proof *p, const struct proof_insn *i, uint32_t at)
{
    if (i->b > p->head->ntests || i->a > p->head->ntests - i->b)
        return false;
    for (uint32_t k = i->a; k < i->a + i->b; k++) {
        const struct proof_test *t = &p->tests[k];
        if (!names(p, t->start, at, 'v') || !names(p, t->step, at, 'v') || !names(p, t->limit, at, 'v') ||
            t->relation > PROOF_NE || t->bits < 2 || t->bits > 64 || t->sign > 1)
            return false;
    }
    return true;
}

static bool insn_valid(const struct proof *p, uint32_t at, const struct proof_insn *block, uint32_t number)
{
    const struct proof_insn *i = &p->insns[at];
    const char *o = operands[i->op];
    if (!operand_valid(p, i->a, at, o[0]) || !operand_valid(p, i->b, at, o[1]) ||
        !operand_valid(p, i->c, at, o[2]))
        return false;
    switch (i->op) {
    case PROOF_BLOCK: return block_valid(p, i, at, number);
    case PROOF_PARAM:
        return (i->bits == 8 || i->bits == 16 || i->bits == 32 || i->bits == 64) && i->imm >= 0 &&
               i->imm + i->bits / 8 <= p->head->params && (i->a == PROOF_NONE || i->a < p->head->nroots);
    case PROOF_LAUNCH: return i->imm >= 0 && i->imm < PROOF_LAUNCH_VALUES;
    case PROOF_BASE: return i->a < p->head->nroots && i->b <= 1;
    case PROOF_CHOICE: return i->b < p->head->nroots && p->roots[i->b].kind == PROOF_ROOT_CHOICE;
    case PROOF_BETWEEN: return i->imm >= 0;
    case PROOF_OPAQUE: return i->bits <= 64 && i->reason < PROOF_WHY_COUNT;
    case PROOF_EXTEND:
    case PROOF_SHL:
    case PROOF_SHR:
    case PROOF_AND:
    case PROOF_OR:
    case PROOF_XOR:
    case PROOF_STEPS: return i->bits >= 1 && i->bits <= 64 && i->sign <= 1;
    case PROOF_STAYS:
        return i->bits >= 8 && i->bits <= 64 && i->sign <= (STAYS_XOR | STAYS_SUB) && i->imm >= 0 &&
               i->imm <= INT32_MAX;
    case PROOF_TURNS:
        return i->bits >= 8 && i->bits <= 64 && i->sign <= (TURNS_SIGNED | TURNS_NE) && i->imm >= 0 &&
               i->imm <= INT32_MAX && i->c >= 1 && i->c <= 1 << 16 && (i->c == 1 || !(i->sign & TURNS_NE));
    case PROOF_GROWS:
        return i->bits >= 8 && i->bits <= 64 && i->sign <= 1 && i->c >= 2 && i->c <= 1 << 16 &&
               (i->imm & ~(int64_t)(GROWS_LE | GROWS_NEW)) == 0;
    case PROOF_MAPPED:
    case PROOF_CAST: return i->imm == 0 || i->imm == 1;
    case PROOF_FIELD: return i->imm >= 0 && i->imm < 64 && i->b >= 1 && i->b <= 64 - i->imm;
    case PROOF_MERGE: return inputs_valid(p, i, at, block->b, 'v');
    case PROOF_MEET: return inputs_valid(p, i, at, block->b, 'p');
    case PROOF_LOOP: return loop_valid(p, i, at);
    case PROOF_COMPARE: return i->sign <= PROOF_NE;
    case PROOF_ACCESS: return i->c < p->head->naccesses && i->sign <= 1;
    case PROOF_EXTENT: return p->insns[at - 1].op == PROOF_ACCESS && p->insns[at - 1].c == i->c;
    default: return true;
    }
}

static bool insns_valid(const struct proof *p)
{
    uint32_t blocks = 0;
    const struct proof_insn *block = p->insns;
    if (!p->head->ninsns)
        return !p->head->nblocks;
    for (uint32_t at = 0; at < p->head->ninsns; at++) {
        if (p->insns[at].op >= PROOF_OP_COUNT || (!at && p->insns[at].op != PROOF_BLOCK))
            return false;
        if (!insn_valid(p, at, block, blocks))
            return false;
        if (p->insns[at].op == PROOF_BLOCK) {
            block = &p->insns[at];
            blocks++;
        }
    }
    return blocks == p->head->nblocks;
}

static bool choice_valid(const struct proof *p, const struct proof_root *r)
{
    bool valid = r->size != 0;
    for (uint32_t i = 0; i < 64 && valid; i++)
        if (r->size >> i & 1)
            valid = i < p->head->nroots && p->roots[i].kind == PROOF_ROOT_PARAM;
    return valid;
}

static bool rows_valid(const struct proof *p)
{
    for (uint32_t i = 0; i < p->head->nroots; i++) {
        const struct proof_root *r = &p->roots[i];
        if (r->kind >= PROOF_ROOT_KINDS || r->name_len > p->head->names ||
            r->name > p->head->names - r->name_len || r->strong > 1 || r->power > PROOF_MOST_POWER)
            return false;
        if (r->kind == PROOF_ROOT_CHOICE && !choice_valid(p, r))
            return false;
        if (r->kind == PROOF_ROOT_PARAM && (p->head->params < 8 || r->at > p->head->params - 8))
            return false;
    }
    for (uint32_t i = 0; i < p->head->naccesses; i++)
        if (p->accesses[i].reason >= PROOF_WHY_COUNT || p->accesses[i].bytes > 1u << 30 ||
            (p->accesses[i].bits != 32 && p->accesses[i].bits != 64))
            return false;
    return true;
}

// Finds a table of n rows and moves behind it. Tables start at multiples of 8 bytes.
static bool table(const char *bytes, size_t size, size_t *at, uint64_t n, size_t row, const void **out)
{
    uint64_t need = (n * row + 7) & ~7ULL;
    if (need > size - *at)
        return false;
    *out = bytes + *at;
    *at += (size_t)need;
    return true;
}

int proof_read(const void *bytes, size_t size, struct proof *out)
{
    struct proof p = {.head = bytes};
    size_t at = sizeof *p.head;
    if (size < sizeof *p.head || (uintptr_t)bytes % 8 || memcmp(p.head->magic, "moPf", 4) ||
        p.head->version != PROOF_VERSION || p.head->size != size)
        return -EINVAL;
    const struct proof_head *h = p.head;
    if (h->ninsns > PROOF_MOST_INSNS || h->naccesses > PROOF_MOST_ACCESSES || h->nroots > PROOF_MOST_ROOTS ||
        h->nblocks > h->ninsns || h->params > 1 << 16)
        return -EINVAL;
    if (!table(bytes, size, &at, h->ninsns, sizeof *p.insns, (const void **)&p.insns) ||
        !table(bytes, size, &at, h->nedges, sizeof *p.edges, (const void **)&p.edges) ||
        !table(bytes, size, &at, h->ntests, sizeof *p.tests, (const void **)&p.tests) ||
        !table(bytes, size, &at, h->ninputs, sizeof *p.inputs, (const void **)&p.inputs) ||
        !table(bytes, size, &at, h->nroots, sizeof *p.roots, (const void **)&p.roots) ||
        !table(bytes, size, &at, h->naccesses, sizeof *p.accesses, (const void **)&p.accesses) ||
        !table(bytes, size, &at, h->names, 1, (const void **)&p.names) || at != size)
        return -EINVAL;
    if (!insns_valid(&p) || !rows_valid(&p))
        return -EINVAL;
    *out = p;
    return 0;
}
