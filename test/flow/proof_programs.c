// SPDX-License-Identifier: MIT
// proof_programs [PROGRAMS [SEED]]: makes random proof programs, executes them instruction by instruction for
// some threads of launches with extreme numbers, and compares each address with the bounds of proof_eval, of
// a closed form that another launch has made, and of proof_memo_eval.
//
// proof_random does the same for kernels, with all threads of small launches. No kernel is needed here: so
// the programs have what ranges_build seldom writes, and as only some threads are executed, a launch may have
// 2^31 - 1 blocks. What an instruction means is in proof_ops.def.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/brute.h"
#include "flow/closed.h"
#include "flow/proof_memo.h"
#include "flow/proof_state.h"
#include "random_program.h"

enum { LAUNCHES = 3, VARIANTS = 10, THREADS = 24, MOST_ROUNDS = 40 };

// --- launches ----------------------------------------------------------------------------------------------

static uint32_t dimension(uint32_t most)
{
    return below(3) == 0 ? 1
           : below(4)    ? 1 + below(most < 40 ? most : 40)
           : below(2)    ? 1 + below(most)
                         : most;
}

static void block_size(struct proof_launch *l)
{
    uint32_t left = 1024;
    for (unsigned axis = 0; axis < 3; axis++) {
        l->block[axis] = below(8) ? dimension(left) : left;
        left /= l->block[axis];
    }
}

static void set_number(struct params *p, uint32_t which)
{
    switch (which) {
    case 0:
    case 1:
    case 2: p->n[which] = (int32_t)(below(4) ? (int64_t)below(300) : odd_number()); break;
    case 3: p->h = (int16_t)odd_number(); break;
    case 4: p->b = (int8_t)odd_number(); break;
    case 5:
    case 6: p->d[which - 5] = below(3) ? (int64_t)below(300) : odd_number(); break;
    default:
        p->pointer[which - 7] =
            below(6) ? 0x700000000000 + 0x100000 * (uint64_t)below(100) + below(64) : (uint64_t)odd_number();
    }
}

enum { NUMBERS = 7 + POINTERS };

static void vary(struct proof_launch *l, struct params *p)
{
    for (uint32_t n = 1 + below(3); n; n--) {
        uint32_t k = below(3);
        switch (below(8)) {
        case 0: l->grid[k] = dimension(INT32_MAX); break;
        case 1: block_size(l); break;
        case 2: l->dynamic_shared = below(2) ? below(1000) : (uint32_t)odd_number(); break;
        case 3: p->n[k] = (int32_t)((uint32_t)p->n[k] + below(9) - 4); break;
        case 4: p->n[k] = (int32_t)((uint32_t)p->n[k] * 2); break;
        case 5: p->d[k & 1] = (int64_t)((uint64_t)p->d[k & 1] + below(9) - 4); break;
        default: set_number(p, below(NUMBERS));
        }
    }
}

static void make_launch(struct proof_launch *l, struct params *p)
{
    memset(p, 0, sizeof *p);
    *l = (struct proof_launch){.params_size = sizeof *p, .params = p};
    for (unsigned axis = 0; axis < 3; axis++)
        l->grid[axis] = dimension(INT32_MAX);
    block_size(l);
    for (uint32_t k = 0; k < NUMBERS; k++)
        set_number(p, k);
}

// --- execution ---------------------------------------------------------------------------------------------

// A content of a register: any number that is congruent to it. Results of EXTEND and of what needs one are
// the number itself.
struct thread {
    const struct proof *p;
    const struct proof_launch *l;
    uint32_t tid[3], ctaid[3];
    affine_wide at[MOST_INSNS];
    bool holds[MOST_INSNS];
    uint32_t rounds[MOST_INSNS];
    bool executed[MOST_EDGES];
    uint32_t entered;  // the edge by which control came into the current block
    uint64_t base[ROOTS];
    int64_t first[MOST_ROWS], last[MOST_ROWS];  // bytes from the root; first > last: not executed
    affine_wide address[MOST_ROWS];
};

static affine_wide low_bits(affine_wide v, unsigned bits, bool sign)
{
    unsigned __int128 m = (unsigned __int128)v & (((unsigned __int128)1 << bits) - 1);
    if (sign && m >> (bits - 1))
        return (affine_wide)m - ((affine_wide)1 << bits);
    return (affine_wide)m;
}

static affine_wide random_content(unsigned bits)
{
    return low_bits(below(2) ? (affine_wide)below(300) : (affine_wide)odd_number(), bits, false);
}

static uint32_t corner(uint32_t n)
{
    return below(3) == 0 ? 0 : below(2) ? n - 1 : below(n);
}

static bool related(affine_wide a, uint8_t relation, affine_wide b)
{
    switch (relation) {
    case PROOF_LT: return a < b;
    case PROOF_LE: return a <= b;
    case PROOF_GT: return a > b;
    case PROOF_GE: return a >= b;
    case PROOF_EQ: return a == b;
    default: return a != b;
    }
}

// A round that the loop may come to: all tests before it have passed.
static uint32_t some_round(struct thread *t, const struct proof_insn *i)
{
    uint32_t most = below(3) ? below(MOST_ROUNDS) : below(4), k = 0;
    for (; k < most; k++)
        for (uint32_t j = i->a; j < i->a + i->b; j++) {
            const struct proof_test *x = &t->p->tests[j];
            affine_wide v =
                low_bits(t->at[x->start] + low_bits(t->at[x->step], 64, true) * k, x->bits, x->sign);
            if (!related(v, x->relation, t->at[x->limit]))
                return k;
        }
    return k;
}

static affine_wide grown(const struct proof_insn *i, affine_wide v, affine_wide limit)
{
    for (uint32_t n = below(70); n; n--) {
        affine_wide next = low_bits(v * i->c, i->bits, i->sign);
        if (!related(i->imm & GROWS_NEW ? next : v, i->imm & GROWS_LE ? PROOF_LE : PROOF_LT, limit))
            break;
        v = next;
    }
    return v;
}

static affine_wide shrunk(const struct proof_insn *i, affine_wide v)
{
    for (uint32_t n = below(9); n; n--)
        v = below(2) ? v >> 1 : v / (i->imm ? 1 << below(3) : 1 + (int)below(3));
    return v;
}

static affine_wide stayed(const struct proof_insn *i, affine_wide v)
{
    for (uint32_t n = below(4); n; n--) {
        affine_wide c = i->imm ? (below((uint32_t)i->imm) + (int64_t)below(2)) & i->c : 0;
        if (i->sign & STAYS_XOR && below(2))
            v ^= c;
        else if (i->sign & STAYS_SUB && below(2))
            v = low_bits(i->imm - v, i->bits, false);
        else if (below(3) == 0)
            v = c;
    }
    return v;
}

// Some rounds far from the first one, then some steps, around the limit and where the type ends.
static affine_wide turned(const struct proof_insn *i, affine_wide v)
{
    bool sign = i->sign & TURNS_SIGNED, le = below(2);
    affine_wide most = low_bits(i->imm + !le, i->bits, sign) - !le, far = (most - v) / i->c;
    if (v <= most && below(2))
        v += i->c * (below(2) || far < 3 ? far : far - 1 - (affine_wide)below(2));
    for (uint32_t n = below(6); n; n--) {
        affine_wide next = low_bits(v + i->c, i->bits, sign);
        bool kept =
            i->sign & TURNS_NE ? next != low_bits((affine_wide)i->imm + 1, i->bits, sign) : next <= most;
        v = kept ? next : 0;
    }
    return v;
}

static affine_wide quotient(affine_wide a, affine_wide b, bool rest)
{
    if (!b)
        return random_content(32);
    return rest ? a % b : a / b;
}

static affine_wide parameter(const struct thread *t, const struct proof_insn *i)
{
    uint64_t v = 0;
    memcpy(&v, (const char *)t->l->params + i->imm, i->bits / 8);
    return low_bits((affine_wide)v, i->bits, i->sign);
}

static affine_wide of_launch(const struct thread *t, int64_t which)
{
    unsigned axis = (unsigned)which % 3;
    if (which == PROOF_DYNAMIC_SHARED)
        return t->l->dynamic_shared;
    return which >= PROOF_NCTAID  ? t->l->grid[axis]
           : which >= PROOF_CTAID ? t->ctaid[axis]
           : which >= PROOF_NTID  ? t->l->block[axis]
                                  : t->tid[axis];
}

static affine_wide one_pointer(const struct thread *t, const struct proof_root *choice)
{
    uint32_t k = below(POINTERS);
    while (!(choice->size >> k & 1))
        k = (k + 1) % POINTERS;
    return (affine_wide)((const struct params *)t->l->params)->pointer[k];
}

static affine_wide compute(struct thread *t, const struct proof_insn *i, unsigned bits,
                           const struct proof_insn *block)
{
    affine_wide a = i->a < ninsns ? t->at[i->a] : 0, b = i->b < ninsns ? t->at[i->b] : 0;
    switch (i->op) {
    case PROOF_CONST: return i->imm;
    case PROOF_PARAM: return parameter(t, i);
    case PROOF_LAUNCH: return of_launch(t, i->imm);
    case PROOF_BASE: return t->base[i->a];
    case PROOF_OPAQUE:
        if (i[1].op == PROOF_CHOICE)
            return one_pointer(t, &t->p->roots[i[1].b]);
        return low_bits(random_content(i->bits), i->bits, i->sign);
    case PROOF_CHOICE: return t->base[i->b] = (uint64_t)a;
    case PROOF_BETWEEN: return below(2) ? i->imm : below((uint32_t)i->imm + 1);
    case PROOF_EXTEND: return low_bits(a, i->bits, i->sign);
    case PROOF_ADD: return low_bits(low_bits(a, bits, false) + low_bits(b, bits, false), bits, false);
    case PROOF_SUB: return low_bits(low_bits(a, bits, false) - low_bits(b, bits, false), bits, false);
    case PROOF_MUL:
        return low_bits((affine_wide)((unsigned __int128)low_bits(a, bits, false) *
                                      (unsigned __int128)low_bits(b, bits, false)),
                        bits, false);
    case PROOF_DIV: return quotient(a, b, false);
    case PROOF_REM: return quotient(a, b, true);
    case PROOF_SHL:
        return b >= i->bits ? 0 : low_bits(low_bits(a, i->bits, false) << (unsigned)b, i->bits, false);
    case PROOF_SHR: return a >> (b >= i->bits ? i->bits - 1u + (a >= 0) : (unsigned)b);
    case PROOF_FIELD: return low_bits(low_bits(a, 64, false) >> (unsigned)i->imm, i->b, false);
    case PROOF_AND: return low_bits(a & b, i->bits, false);
    case PROOF_OR: return low_bits(a | b, i->bits, false);
    case PROOF_XOR: return low_bits(a ^ b, i->bits, false);
    case PROOF_MIN: return a < b ? a : b;
    case PROOF_MAX: return a > b ? a : b;
    case PROOF_ABS: return a < 0 ? -a : a;
    case PROOF_SELECT: return t->holds[i->c] ? a : b;
    case PROOF_MERGE: return t->at[t->p->inputs[i->a + t->entered - block->a]];
    case PROOF_STEPS: return low_bits(a + low_bits(b, 64, true) * t->rounds[i->c], i->bits, false);
    case PROOF_SHRINKS: return shrunk(i, a);
    case PROOF_STAYS: return stayed(i, a);
    case PROOF_TURNS: return turned(i, a);
    case PROOF_GROWS: return grown(i, a, b);
    default: abort();
    }
}

static bool holds(struct thread *t, const struct proof_insn *i, const struct proof_insn *block)
{
    switch (i->op) {
    case PROOF_COMPARE: return related(t->at[i->a], i->sign, t->at[i->b]);
    case PROOF_BOTH: return t->holds[i->a] && t->holds[i->b];
    case PROOF_EITHER: return t->holds[i->a] || t->holds[i->b];
    case PROOF_DIFFER: return t->holds[i->a] != t->holds[i->b];
    case PROOF_OPPOSITE: return !t->holds[i->a];
    case PROOF_ALWAYS: return i->imm;
    case PROOF_MEET: return t->holds[t->p->inputs[i->a + t->entered - block->a]];
    default: return below(2);
    }
}

static bool enter(struct thread *t, const struct proof_insn *i)
{
    bool live = !i->c;
    for (uint32_t k = i->a; k < i->a + i->b; k++) {
        const struct proof_edge *e = &t->p->edges[k];
        if (!t->executed[e->block] || (e->predicate != PROOF_NONE && t->holds[e->predicate] == e->negated))
            continue;
        live = true;
        t->entered = k;
    }
    return t->executed[i->c] = live;
}

static void touch(struct thread *t, const struct proof_insn *i)
{
    const struct proof_access *row = &t->p->accesses[i->c];
    if (i->b != PROOF_NONE && t->holds[i->b] == i->sign)
        return;
    t->address[i->c] = t->at[i->a] + row->offset;
    t->first[i->c] = 0;
    t->last[i->c] = (int64_t)row->bytes - 1;
}

static void execute(struct thread *t)
{
    static const char results[] = {
#define PROOF(id, operands, result) result,
#include "flow/proof_ops.def"
    };
    const struct proof_insn *block = t->p->insns;
    bool live = false;
    for (uint32_t k = 0; k < nrows; k++)
        t->first[k] = 0, t->last[k] = -1;
    memset(t->executed, 0, sizeof t->executed);
    for (uint32_t at = 0; at < ninsns; at++) {
        const struct proof_insn *i = &t->p->insns[at];
        if (i->op == PROOF_BLOCK)
            live = enter(t, block = i);
        else if (!live)
            continue;
        else if (i->op == PROOF_ACCESS)
            touch(t, i);
        else if (i->op == PROOF_EXTENT && t->last[i->c] >= 0)
            t->last[i->c] += (int64_t)(t->at[i->a] > 0 ? t->at[i->a] : 0);
        else if (i->op == PROOF_LOOP)
            t->rounds[at] = some_round(t, i);
        else if (results[i->op] == 'p')
            t->holds[at] = holds(t, i, block);
        else if (results[i->op] == 'v')
            t->at[at] = compute(t, i, width[at], block);
    }
}

// --- comparison --------------------------------------------------------------------------------------------

static struct {
    unsigned long long programs, closed, held, alone, bounded, unknown, unreachable, touched, failures;
} totals;

static void describe(const struct thread *t, const char *who, uint32_t k, const struct proof_bound *b,
                     int64_t first)
{
    const struct params *p = t->l->params;
    printf("row %u: %s says %u, root %u, %lld .. %lld; thread (%u %u %u) of block (%u %u %u) touches %lld .. "
           "%lld\n",
           k, who, b->verdict, b->root, (long long)b->lowest, (long long)b->highest, t->tid[0], t->tid[1],
           t->tid[2], t->ctaid[0], t->ctaid[1], t->ctaid[2], (long long)first,
           (long long)(first + t->last[k]));
    printf("grid %u %u %u block %u %u %u shared %u; n %d %d %d h %d b %d d %lld %lld\n", t->l->grid[0],
           t->l->grid[1], t->l->grid[2], t->l->block[0], t->l->block[1], t->l->block[2], t->l->dynamic_shared,
           p->n[0], p->n[1], p->n[2], p->h, p->b, (long long)p->d[0], (long long)p->d[1]);
    for (uint32_t at = 0; at < ninsns; at++)
        printf("%3u: op %2u bits %2u sign %u a %d b %d c %d imm %lld   = %lld\n", at, insns[at].op,
               insns[at].bits, insns[at].sign, (int)insns[at].a, (int)insns[at].b, (int)insns[at].c,
               (long long)insns[at].imm, (long long)t->at[at]);
}

// Whether what a thread has touched is in the bounds.
static bool inside(const struct thread *t, const char *who, const struct proof_bound *bounds)
{
    for (uint32_t k = 0; k < nrows; k++) {
        const struct proof_bound *b = &bounds[k];
        if (t->last[k] < 0 || b->verdict == PROOF_UNKNOWN)
            continue;
        affine_wide from = b->verdict == PROOF_UNREACHABLE ? 0
                           : b->root < POINTERS
                               ? (affine_wide)((const struct params *)t->l->params)->pointer[b->root]
                               : t->base[b->root];
        int64_t first = (int64_t)low_bits(t->address[k] - from, t->p->accesses[k].bits, true);
        if (first < b->lowest && t->p->accesses[k].bits == 32)  // the same address
            first += 1LL << 32;
        if (b->verdict == PROOF_UNREACHABLE || first < b->lowest || first + t->last[k] > b->highest ||
            (((uint64_t)first - b->residue) & ((1u << b->power) - 1))) {
            describe(t, who, k, b, first);
            return false;
        }
    }
    return true;
}

static void count(const struct proof_bound *b)
{
    for (uint32_t k = 0; k < nrows; k++) {
        totals.bounded += b[k].verdict == PROOF_BOUNDED;
        totals.unknown += b[k].verdict == PROOF_UNKNOWN;
        totals.unreachable += b[k].verdict == PROOF_UNREACHABLE;
    }
}

static void *memory(size_t size)
{
    void *p = malloc(size + 8);
    if (!p)
        exit(2);
    return p;
}

static bool try_launch(const struct proof *p, const struct proof_launch *l, const void *closed,
                       struct proof_memo *memo, void *work)
{
    static struct thread t;
    struct proof_bound fresh[MOST_ROWS], by_closed[MOST_ROWS];
    const struct proof_bound *remembered, *alone;
    if (proof_eval(p, l, work, fresh, NULL)) {
        printf("a launch is not valid\n");
        exit(2);
    }
    bool held = closed && closed_eval(closed, p, l, work, by_closed);
    bool is_alone = proof_memo_closed(memo, l, &alone);
    if (proof_memo_eval(memo, l, work, &remembered, NULL))
        exit(2);
    totals.held += held;
    totals.alone += is_alone;
    count(fresh);
    t.p = p;
    t.l = l;
    for (unsigned n = 0; n < THREADS; n++) {
        for (unsigned axis = 0; axis < 3; axis++) {
            t.tid[axis] = corner(l->block[axis]);
            t.ctaid[axis] = corner(l->grid[axis]);
        }
        t.base[ROOT_SHARED] = 1024 + 16 * below(100);
        t.base[ROOT_DYNAMIC] = 8192 + 16 * below(100);
        execute(&t);
        for (uint32_t k = 0; k < nrows; k++)
            totals.touched += t.last[k] >= 0;
        if (!inside(&t, "proof_eval", fresh) || (held && !inside(&t, "the closed form", by_closed)) ||
            (is_alone && !inside(&t, "proof_memo_closed", alone)) ||
            !inside(&t, "proof_memo_eval", remembered))
            return false;
    }
    return true;
}

static bool run_program(void)
{
    struct proof p;
    make_program(&p);
    void *work = memory(proof_work_size(&p)), *closed = memory(closed_size(&p)),
         *space = memory(proof_memo_size(&p));
    struct proof_memo *memo = proof_memo_init(&p, space, work);
    bool ok = true;
    for (unsigned i = 0; i < LAUNCHES && ok; i++) {
        struct proof_launch l;
        struct params params;
        struct proof_bound out[MOST_ROWS];
        make_launch(&l, &params);
        if (proof_eval(&p, &l, work, out, NULL))
            exit(2);
        bool made = closed_build(&p, &l, out, work, closed);
        totals.closed += made;
        for (unsigned k = 0; k < VARIANTS && ok; k++) {
            struct params other = params;
            struct proof_launch variant = l;
            variant.params = &other;
            if (k)
                vary(&variant, &other);
            ok = try_launch(&p, &variant, made ? closed : NULL, memo, work);
        }
    }
    free(work);
    free(closed);
    free(space);
    totals.programs++;
    return ok;
}

int main(int argc, char **argv)
{
    unsigned long programs = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000,
                  seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
    for (unsigned long k = 0; k < programs; k++) {
        rnd.state = (seed + k) * 0x9E3779B97F4A7C15ULL | 1;
        if (run_program())
            continue;
        printf("program of seed %lu\n", seed + k);
        return 1;
    }
    printf(
        "covered: %llu programs, %llu closed forms, which held for %llu launches, %llu asked of one alone; "
        "%llu bounded, %llu unknown, %llu unreachable; %llu touched\n",
        totals.programs, totals.closed, totals.held, totals.alone, totals.bounded, totals.unknown,
        totals.unreachable, totals.touched);
    return 0;
}
