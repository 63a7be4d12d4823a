// SPDX-License-Identifier: MIT
// make_program writes a random proof program: the part of proof_programs that invents. It has what
// ranges_build seldom writes.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/brute.h"
#include "flow/proof_state.h"

enum {
    MOST_INSNS = 512,
    MOST_EDGES = 256,
    MOST_INPUTS = 512,
    MOST_ROWS = 32,
    POOL = 24,
    POINTERS = 3,  // parameters that are roots: the last one may be a number
    ROOT_SHARED = POINTERS,
    ROOT_DYNAMIC,
    FIXED_ROOTS,
    ROOTS = FIXED_ROOTS + 8,  // and some that are one of the pointers
};

struct params {
    uint64_t pointer[POINTERS];
    int32_t n[3];
    int16_t h;
    int8_t b;
    uint8_t zero;
    int64_t d[2];
};

static struct brute_random rnd;

static uint32_t below(uint32_t n)
{
    return brute_below(&rnd, n);
}

// --- a program ---------------------------------------------------------------------------------------------

static struct proof_insn insns[MOST_INSNS];
static struct proof_edge edges[MOST_EDGES];
static struct proof_test tests[MOST_EDGES];
static uint32_t inputs[MOST_INPUTS];
static struct proof_access rows[MOST_ROWS];
static uint8_t width[MOST_INSNS];  // of the register that a number is the content of
static struct proof_root roots[ROOTS];
static uint32_t ninsns, nedges, ntests, ninputs, nrows, nblocks, nroots;

// Numbers that may be read, by the width of their register, and predicates.
struct pool {
    uint32_t at[POOL], n;
};
static struct pool pool[2], preds, addresses[2];

static uint32_t emit(struct proof_insn i, unsigned bits)
{
    if (ninsns == MOST_INSNS)
        abort();
    width[ninsns] = (uint8_t)bits;
    insns[ninsns] = i;
    return ninsns++;
}

static void offer(struct pool *p, uint32_t at)
{
    p->at[p->n < POOL ? p->n++ : below(POOL)] = at;
}

static uint32_t pick(const struct pool *p)
{
    return p->at[below(3) ? p->n - 1 - below(p->n < 5 ? p->n : 5) : below(p->n)];
}

static uint32_t constant(int64_t c, unsigned bits)
{
    return emit((struct proof_insn){.op = PROOF_CONST, .imm = c}, bits);
}

// A power of two, or a number beside one, or the opposite of either.
static int64_t odd_number(void)
{
    uint64_t v = (1ULL << below(64)) + below(3) - 1;
    return (int64_t)(below(3) ? v : -v);
}

static int64_t small_number(void)
{
    return below(6) ? (int64_t)below(9) : below(3) ? (int64_t)below(300) : odd_number();
}

static uint32_t extend(uint32_t at, unsigned bits, bool sign)
{
    return emit((struct proof_insn){.op = PROOF_EXTEND, .bits = (uint8_t)bits, .sign = sign, .a = at}, bits);
}

static uint32_t number(unsigned wide)
{
    return below(3) ? pick(&pool[wide]) : constant(small_number(), wide ? 64 : 32);
}

static uint32_t binary(uint8_t op, uint32_t a, uint32_t b, unsigned bits)
{
    return emit((struct proof_insn){.op = op, .bits = (uint8_t)bits, .a = a, .b = b}, bits);
}

static void value(void)
{
    unsigned wide = below(3) == 0, bits = wide ? 64 : 32, pos;
    bool sign = below(2);
    struct pool *p = &pool[wide];
    uint32_t a = number(wide), b = number(wide), at;
    switch (below(20)) {
    default: at = binary(PROOF_ADD, a, b, bits); break;
    case 0:
    case 1: at = binary(PROOF_SUB, a, b, bits); break;
    case 2:
    case 3:
    case 4: at = binary(PROOF_MUL, a, b, bits); break;
    case 5:
    case 6:
        a = extend(a, bits, sign), b = extend(b, bits, sign);
        at = binary(below(2) ? PROOF_DIV : PROOF_REM, a, b, bits);
        break;
    case 7: at = binary(PROOF_SHL, a, extend(number(0), 32, false), bits); break;
    case 8: a = extend(a, bits, sign), at = binary(PROOF_SHR, a, extend(number(0), 32, false), bits); break;
    case 9:
        pos = below(bits);
        at = emit(
            (struct proof_insn){.op = PROOF_FIELD, .a = a, .b = 1 + below(bits - pos), .imm = (int64_t)pos},
            bits);
        break;
    case 10:
    case 11:
        if (below(2))
            b = constant(below(2) ? (1LL << below(bits - 1)) - 1 : -(1LL << below(bits - 1)), bits);
        at = binary((uint8_t)(PROOF_AND + below(3)), a, b, bits);
        break;
    case 12:
    case 13:
        a = extend(a, bits, sign), b = extend(b, bits, sign);
        at = binary(below(2) ? PROOF_MIN : PROOF_MAX, a, b, bits);
        break;
    case 14:
        a = extend(a, bits, true);
        at = emit((struct proof_insn){.op = PROOF_ABS, .a = a}, bits);
        break;
    case 15:
        at = emit((struct proof_insn){.op = PROOF_SELECT, .a = a, .b = b, .c = pick(&preds)}, bits);
        break;
    case 16:
        pos = 8u << below(3);
        at = extend(number(below(2)), pos, sign);
        width[at] = (uint8_t)bits;
        break;
    case 17:
        if (below(2))
            at = emit((struct proof_insn){.op = PROOF_BETWEEN, .imm = small_number() & INT32_MAX}, bits);
        else
            at = emit((struct proof_insn){.op = PROOF_OPAQUE,
                                          .bits = (uint8_t)(below(2) ? 8 : bits),
                                          .sign = sign,
                                          .reason = PROOF_WHY_LOADED_INDEX},
                      bits);
        break;
    }
    offer(p, at);
    if (!wide && below(2)) {
        at = extend(at, 32, below(2));
        width[at] = 64;
        offer(&pool[1], at);
    }
}

// One of two pointers: selected, or, as where a loop swaps them, not known.
static void pointer(void)
{
    uint32_t a = below(POINTERS), b = (a + 1 + below(POINTERS - 1)) % POINTERS, at;
    if (nroots == ROOTS)
        return;
    roots[nroots] = (struct proof_root){.kind = PROOF_ROOT_CHOICE, .size = 1u << a | 1u << b, .strong = 1};
    if (below(2))
        at = emit((struct proof_insn){.op = PROOF_SELECT, .a = 1 + a, .b = 1 + b, .c = pick(&preds)}, 64);
    else
        at = emit((struct proof_insn){.op = PROOF_OPAQUE, .bits = 64, .sign = 1, .reason = PROOF_WHY_CARRIED},
                  64);
    at = emit((struct proof_insn){.op = PROOF_CHOICE, .a = at, .b = nroots++}, 64);
    offer(&addresses[0], at);
    if (below(8) == 0)
        offer(&pool[1], at);
}

static void predicate(void)
{
    unsigned wide = below(3) == 0, bits = wide ? 64 : 32;
    bool sign = below(2);
    uint32_t a, b, at;
    switch (below(9)) {
    case 0: at = emit((struct proof_insn){.op = PROOF_BOTH, .a = pick(&preds), .b = pick(&preds)}, 0); break;
    case 1:
        at = emit((struct proof_insn){.op = PROOF_EITHER, .a = pick(&preds), .b = pick(&preds)}, 0);
        break;
    case 2:
        at = emit((struct proof_insn){.op = PROOF_DIFFER, .a = pick(&preds), .b = pick(&preds)}, 0);
        break;
    case 3: at = emit((struct proof_insn){.op = PROOF_OPPOSITE, .a = pick(&preds)}, 0); break;
    default:
        a = extend(pick(&pool[wide]), bits, sign), b = extend(number(wide), bits, sign);
        at = emit((struct proof_insn){.op = PROOF_COMPARE, .sign = (uint8_t)below(6), .a = a, .b = b}, 0);
    }
    offer(&preds, at);
}

static void access(void)
{
    if (nrows == MOST_ROWS)
        return;
    unsigned shared = below(5) == 0;
    static const int bytes[] = {1, 2, 4, 8, 16};
    struct proof_access *row = &rows[nrows];
    uint32_t at, scale = 1u << below(4), index;
    *row = (struct proof_access){.stmt = nrows, .bytes = (uint32_t)bytes[below(5)], .does = PROOF_READS};
    row->offset = below(4) ? 0 : (int64_t)below(64) - 32;
    row->bits = shared ? 32 : 64;
    row->space = 1;
    row->more = below(6) == 0;
    if (below(3))
        index = extend(pick(&pool[0]), 32, below(2));
    else
        index = pick(&pool[!shared]);
    at = binary(PROOF_MUL, index, constant(scale, shared ? 32 : 64), shared ? 32 : 64);
    at = binary(PROOF_ADD, pick(&addresses[shared]), at, shared ? 32 : 64);
    if (below(3) == 0)
        offer(&addresses[shared], at);
    uint32_t more = row->more ? extend(pick(&pool[0]), 32, below(2)) : 0;
    emit((struct proof_insn){.op = PROOF_ACCESS,
                             .a = at,
                             .b = below(4) ? PROOF_NONE : pick(&preds),
                             .c = nrows,
                             .sign = (uint8_t)below(2)},
         0);
    if (row->more)
        emit((struct proof_insn){.op = PROOF_EXTENT, .a = more, .c = nrows}, 0);
    nrows++;
}

static uint32_t edge(uint32_t from, uint32_t pred, bool negated)
{
    edges[nedges] = (struct proof_edge){from, pred, negated};
    return nedges++;
}

static uint32_t begin_block(uint32_t first, uint32_t n)
{
    emit((struct proof_insn){.op = PROOF_BLOCK, .a = first, .b = n, .c = nblocks}, 0);
    return nblocks++;
}

static void statements(uint32_t n, unsigned depth);

struct saved {
    struct pool pool[2], preds, addresses[2];
};

static struct saved save(void)
{
    return (struct saved){{pool[0], pool[1]}, preds, {addresses[0], addresses[1]}};
}

static void restore(const struct saved *s)
{
    memcpy(pool, s->pool, sizeof pool);
    memcpy(addresses, s->addresses, sizeof addresses);
    preds = s->preds;
}

static uint32_t merge(uint8_t op, uint32_t a, uint32_t b, unsigned bits)
{
    inputs[ninputs] = a;
    inputs[ninputs + 1] = b;
    ninputs += 2;
    return emit((struct proof_insn){.op = op, .a = ninputs - 2}, bits);
}

static void branch(unsigned depth)
{
    predicate();
    uint32_t from = nblocks - 1, p = pick(&preds), end, other;
    bool negated = below(2);
    struct saved before = save(), one;
    begin_block(edge(from, p, negated), 1);
    statements(1 + below(4), depth - 1);
    end = nblocks - 1;
    one = save();
    restore(&before);
    other = from;
    bool two = below(3) == 0;
    if (two) {
        begin_block(edge(from, p, !negated), 1);
        statements(1 + below(3), depth - 1);
        other = nblocks - 1;
    }
    struct saved two_values = save();
    restore(&before);
    uint32_t first = edge(end, PROOF_NONE, false);
    edge(other, two ? PROOF_NONE : p, two ? false : !negated);
    begin_block(first, 2);
    for (uint32_t k = 0; k < 2; k++)
        offer(&pool[k], merge(PROOF_MERGE, pick(&one.pool[k]), pick(&two_values.pool[k]), k ? 64 : 32));
    offer(&preds, merge(PROOF_MEET, pick(&one.preds), pick(&two_values.preds), 0));
    if (below(3) == 0)
        offer(&addresses[0], merge(PROOF_MERGE, pick(&one.addresses[0]), pick(&two_values.addresses[0]), 64));
}

// A value that each round increases, and sets to 0 at a limit, which now and then is near the type's end.
static uint32_t turns(unsigned wide, bool sign)
{
    static const uint8_t narrow[] = {8, 16, 16, 32, 32, 32};
    unsigned bits = wide ? 64 : narrow[below(6)], ne = below(4) == 0 ? TURNS_NE : 0;
    uint32_t a = below(2) ? pick(&pool[wide]) : constant(small_number(), wide ? 64 : 32);
    int64_t end = (1LL << (bits < 32 ? bits - sign : 31)) - 1, most = small_number() & INT32_MAX;
    if (below(3) == 0)
        most = end - (int64_t)below(40);
    return emit((struct proof_insn){.op = PROOF_TURNS,
                                    .bits = (uint8_t)bits,
                                    .sign = (uint8_t)(ne | (sign ? TURNS_SIGNED : 0)),
                                    .a = extend(a, bits, sign),
                                    .c = ne || below(2) ? 1 : 1 + below(below(4) ? 40 : 1 << 16),
                                    .imm = most},
                wide ? 64 : 32);
}

static void carried(void)
{
    bool sign = below(2), wide = below(4) == 0;
    unsigned bits = wide ? 64 : 32;
    uint32_t a, b, at;
    switch (below(4)) {
    case 0: at = turns(wide, sign); break;
    case 1:
        a = below(2) ? pick(&pool[wide]) : constant(below(4) ? 1LL << below(9) : small_number(), bits);
        at =
            emit((struct proof_insn){.op = PROOF_SHRINKS, .a = extend(a, bits, sign), .imm = below(2)}, bits);
        break;
    case 2:
        at = emit((struct proof_insn){.op = PROOF_STAYS,
                                      .bits = (uint8_t)bits,
                                      .sign = (uint8_t)below(4),
                                      .a = extend(pick(&pool[wide]), bits, false),
                                      .c = below(2) ? INT32_MAX : below(1 << 12),
                                      .imm = small_number() & INT32_MAX},
                  bits);
        break;
    default:
        a = extend(number(wide), bits, sign), b = extend(number(wide), bits, sign);
        at = emit((struct proof_insn){.op = PROOF_GROWS,
                                      .bits = (uint8_t)bits,
                                      .sign = sign,
                                      .a = a,
                                      .b = b,
                                      .c = 2 + below(3),
                                      .imm = (int64_t)below(4)},
                  bits);
    }
    offer(&pool[wide], at);
    // What a sort makes of a distance: 2 * x - (x and (distance - 1)) + distance.
    if (below(2)) {
        unsigned kind = below(4);
        if (!kind)
            at =
                extend(binary(PROOF_SHR, extend(at, bits, false), constant(below(3), 32), bits), bits, false);
        if (kind == 1)
            at = emit((struct proof_insn){.op = PROOF_MIN,
                                          .a = extend(at, bits, false),
                                          .b = constant(below(3) ? 1LL << below(9) : small_number(), bits)},
                      bits);
        a = pick(&pool[wide]);
        b = binary(PROOF_AND, a, binary(PROOF_ADD, at, constant(-1, bits), bits), bits);
        a = binary(PROOF_SUB, binary(PROOF_ADD, a, a, bits), b, bits);
        offer(&pool[wide], below(2) ? a : binary(PROOF_ADD, a, at, bits));
    }
}

// A loop with one or two tests, whose body follows under its test or without.
static void loop(unsigned depth)
{
    bool wide = below(4) == 0, sign = below(2);
    unsigned bits = wide ? 64 : 32, n = 1 + (below(4) == 0);
    struct saved before = save();
    uint32_t start[2], step[2], limit[2], first = ntests;
    for (unsigned k = 0; k < n; k++) {
        start[k] = number(wide);
        step[k] =
            below(3) ? constant(below(3) ? (int64_t)below(5) - 1 : small_number(), bits) : pick(&pool[wide]);
        limit[k] = extend(number(wide), bits, sign);
        tests[ntests++] =
            (struct proof_test){start[k], step[k], limit[k], (uint8_t)below(6), (uint8_t)bits, sign, 0};
    }
    begin_block(edge(nblocks - 1, PROOF_NONE, false), 1);
    uint32_t counter = emit((struct proof_insn){.op = PROOF_LOOP, .a = first, .b = n}, 0), at = 0;
    for (unsigned k = 0; k < n; k++) {
        at = emit(
            (struct proof_insn){
                .op = PROOF_STEPS, .bits = (uint8_t)bits, .a = start[k], .b = step[k], .c = counter},
            bits);
        offer(&pool[wide], at);
    }
    if (below(2))
        offer(&pool[1], emit((struct proof_insn){.op = PROOF_STEPS,
                                                 .bits = 64,
                                                 .a = number(1),
                                                 .b = constant((int64_t)below(9), 64),
                                                 .c = counter},
                             64));
    if (below(3) == 0)
        offer(&addresses[0], emit((struct proof_insn){.op = PROOF_STEPS,
                                                      .bits = 64,
                                                      .a = pick(&addresses[0]),
                                                      .b = constant((int64_t)below(9), 64),
                                                      .c = counter},
                                  64));
    if (below(2))
        carried();
    if (below(3)) {
        uint32_t p = emit((struct proof_insn){.op = PROOF_COMPARE,
                                              .sign = tests[first + n - 1].relation,
                                              .a = extend(at, bits, sign),
                                              .b = limit[n - 1]},
                          0);
        uint32_t head = nblocks - 1;
        struct saved inside = save();
        begin_block(edge(head, p, false), 1);
        statements(1 + below(4), depth - 1);
        uint32_t end = edge(nblocks - 1, PROOF_NONE, false);
        edge(head, p, true);
        restore(below(2) ? &inside : &before);
        begin_block(end, 2);
    }
}

static void statements(uint32_t n, unsigned depth)
{
    for (; n && ninsns < MOST_INSNS - 200; n--) {
        uint32_t k = below(12);
        if (k == 0 && depth)
            loop(depth);
        else if (k == 1 && depth)
            branch(depth);
        else if (k < 4)
            access();
        else if (k == 4 && below(2))
            pointer();
        else if (k < 6)
            predicate();
        else
            value();
    }
}

static uint32_t launch_value(int64_t which, unsigned bits)
{
    return emit((struct proof_insn){.op = PROOF_LAUNCH, .imm = which}, bits);
}

static void prologue(void)
{
    begin_block(0, 0);
    for (uint32_t k = 0; k < POINTERS; k++) {
        uint32_t at = emit((struct proof_insn){.op = PROOF_PARAM,
                                               .bits = 64,
                                               .a = k,
                                               .imm = (int64_t)(offsetof(struct params, pointer) + 8 * k)},
                           64);
        offer(&addresses[0], at);
        if (k == POINTERS - 1 || below(12) == 0)
            offer(&pool[1], at);
    }
    offer(&addresses[1], emit((struct proof_insn){.op = PROOF_BASE, .a = ROOT_SHARED}, 32));
    offer(&addresses[1], emit((struct proof_insn){.op = PROOF_BASE, .a = ROOT_DYNAMIC}, 32));
    for (uint32_t k = 0; k < 3; k++)
        offer(&pool[0], emit((struct proof_insn){.op = PROOF_PARAM,
                                                 .bits = 32,
                                                 .sign = (uint8_t)below(2),
                                                 .a = PROOF_NONE,
                                                 .imm = (int64_t)(offsetof(struct params, n) + 4 * k)},
                             32));
    offer(
        &pool[0],
        emit(
            (struct proof_insn){
                .op = PROOF_PARAM, .bits = 16, .sign = 1, .a = PROOF_NONE, .imm = offsetof(struct params, h)},
            32));
    offer(&pool[0], emit(
                        (struct proof_insn){
                            .op = PROOF_PARAM, .bits = 8, .a = PROOF_NONE, .imm = offsetof(struct params, b)},
                        32));
    for (uint32_t k = 0; k < 2; k++)
        offer(&pool[1], emit((struct proof_insn){.op = PROOF_PARAM,
                                                 .bits = 64,
                                                 .sign = (uint8_t)below(2),
                                                 .a = PROOF_NONE,
                                                 .imm = (int64_t)(offsetof(struct params, d) + 8 * k)},
                             64));
    offer(&preds, emit((struct proof_insn){.op = PROOF_CHANCE}, 0));
    offer(&preds, emit((struct proof_insn){.op = PROOF_ALWAYS, .imm = below(2)}, 0));
    offer(&pool[0], launch_value(PROOF_DYNAMIC_SHARED, 32));
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t ctaid = launch_value(PROOF_CTAID + axis, 32), ntid = launch_value(PROOF_NTID + axis, 32);
        offer(&pool[0], launch_value(PROOF_NCTAID + axis, 32));
        offer(&pool[0], ntid);
        uint32_t tid = launch_value(PROOF_TID + axis, 32);
        offer(&pool[0], tid);
        offer(&pool[0], binary(PROOF_ADD, binary(PROOF_MUL, ctaid, ntid, 32), tid, 32));
    }
}

static void *add_table(char *to, size_t *at, const void *from, size_t n, size_t size)
{
    memcpy(to + *at, from, n * size);
    void *p = to + *at;
    *at += (n * size + 7) & ~(size_t)7;
    return p;
}

static void make_program(struct proof *out)
{
    static union {
        char bytes[1 << 17];
        uint64_t aligned;
    } u;
    ninsns = nedges = ntests = ninputs = nrows = nblocks = 0;
    nroots = FIXED_ROOTS;
    memset(pool, 0, sizeof pool);
    memset(&preds, 0, sizeof preds);
    memset(addresses, 0, sizeof addresses);
    prologue();
    statements(8 + below(24), 3);
    access();
    roots[ROOT_SHARED] = (struct proof_root){.kind = PROOF_ROOT_SHARED, .size = 4096, .power = 4};
    roots[ROOT_DYNAMIC] = (struct proof_root){.kind = PROOF_ROOT_SHARED, .power = 4};
    for (uint32_t k = 0; k < POINTERS; k++)
        roots[k] = (struct proof_root){.param = k, .at = 8 * k, .strong = k < POINTERS - 1};
    struct proof_head head = {.magic = "moPf",
                              .version = PROOF_VERSION,
                              .ninsns = ninsns,
                              .nedges = nedges,
                              .ntests = ntests,
                              .ninputs = ninputs,
                              .nroots = nroots,
                              .naccesses = nrows,
                              .nblocks = nblocks,
                              .params = sizeof(struct params)};
    memset(&u, 0, sizeof u);
    size_t at = sizeof head;
    add_table(u.bytes, &at, insns, ninsns, sizeof *insns);
    add_table(u.bytes, &at, edges, nedges, sizeof *edges);
    add_table(u.bytes, &at, tests, ntests, sizeof *tests);
    add_table(u.bytes, &at, inputs, ninputs, sizeof *inputs);
    add_table(u.bytes, &at, roots, nroots, sizeof *roots);
    add_table(u.bytes, &at, rows, nrows, sizeof *rows);
    head.size = (uint32_t)at;
    memcpy(u.bytes, &head, sizeof head);
    if (proof_read(u.bytes, at, out)) {
        printf("a program is not valid\n");
        exit(2);
    }
}
