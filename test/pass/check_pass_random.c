// SPDX-License-Identifier: MIT
// check_pass_random SEED COUNT: random programs, rewritten by the checking pass and run on the CPU device,
// must ask the judge about exactly the accesses that leave the buffer of their root, and compute what they
// should. What a program does is computed here too, with the buffer of each pointer kept beside its value.
// Run it in the root of the tree.
#include "../cpu/driver_check.h"
#include "kcheck/kcheck.h"
#include "pass/pass.h"
#include "pass/pass_check.h"

enum { POINTERS = 4, DATA = 4, PREDS = 2, BUFFERS = 6, TABLE = 8, MOST_OPS = 400, MOST_LOG = 1024 };
enum {
    ARENA = 1 << 16,
    PLACE = 256,
    VARIABLE = BUFFERS - 1,
    VARIABLE_SIZE = 128,
    CHUNK = 1 << KCHECK_CHUNK_BITS
};
enum { WAYS = 5 };  // to widen an index
enum { SLOTS = CHUNK / 256, TEXT = 1 << 18 };

enum kind {
    LOAD_PARAM,
    MOVE,
    ADD,
    INDEX,
    OFFSET,
    SELECT,
    MOVE_IF,
    LOAD_POINTER,
    ADDRESS,
    CONVERT,
    PACK,
    COMPARE,
    COMPUTE,
    LOAD,
    STORE,
    ATOMIC,
    GATHER,
    DISTANCE,
    STEP,
    KINDS,
    DIAMOND = KINDS,
    LOOP
};

struct op {
    enum kind kind;
    int d, a, b, imm, guard, words, bytes, site, way;  // guard: predicate, -1 without; negated if `no`
    bool no, generic;
    int body, nbody, other, nother;  // DIAMOND, LOOP: indices of ops
};

struct program {
    struct op ops[MOST_OPS];
    int nops, top[64], ntop, nsites;
    char text[TEXT];
    size_t len;
};

struct log {
    uint64_t what, address, root, verdict;
};
struct state {
    uint64_t nblocks, ncalls;
    struct kcheck_record blocks[32];
    struct log log[MOST_LOG];
};

// What a program starts from, and what it does.
struct world {
    uint64_t base[BUFFERS], size[BUFFERS];
    uint8_t bytes[BUFFERS][256];
    uint64_t params[POINTERS], table[TABLE];
    uint64_t p[POINTERS];
    int root[POINTERS];  // buffer; -1: none
    uint32_t r[DATA];
    bool q[PREDS];
    struct log log[MOST_LOG];
    unsigned nlog;
};

static uint64_t seed;
static unsigned draw(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((seed >> 33) % n);
}

// --- making ------------------------------------------------------------------------------------------------

static const enum kind weights[] = {LOAD_PARAM, MOVE,         ADD,      ADD,     OFFSET, INDEX,   SELECT,
                                    MOVE_IF,    LOAD_POINTER, ADDRESS,  CONVERT, PACK,   COMPARE, COMPUTE,
                                    LOAD,       LOAD,         LOAD,     LOAD,    STORE,  STORE,   STORE,
                                    ATOMIC,     GATHER,       DISTANCE, STEP};

static int make_op(struct program *g, int depth);

static void make_body(struct program *g, int depth, int *first, int *n)
{
    int list[8];
    *n = 1 + (int)draw(5);
    for (int i = 0; i < *n; i++)
        list[i] = make_op(g, depth);
    // Bodies are lists of ops: a copy of them lies in a row.
    *first = g->nops;
    for (int i = 0; i < *n && g->nops < MOST_OPS; i++)
        g->ops[g->nops++] = g->ops[list[i]];
}

static int make_op(struct program *g, int depth)
{
    static const int words[] = {1, 1, 1, 2, 4};  // vectors are aligned first
    struct op o = {.kind = weights[draw(sizeof weights / sizeof *weights)]};
    if (depth < 2 && g->nops < MOST_OPS / 3 && draw(10) == 0)
        o.kind = draw(2) ? DIAMOND : LOOP;
    o.d = (int)draw(4);
    o.a = (int)draw(4);
    o.b = (int)draw(4);
    o.imm = 4 * ((int)draw(17) - 6);
    o.guard = draw(3) ? -1 : (int)draw(PREDS);
    o.no = draw(2);
    o.generic = draw(2);
    o.way = (int)draw(WAYS);
    o.words = o.kind == ATOMIC ? 1 : words[draw(5)];
    o.bytes = o.words > 1 || o.kind == ATOMIC ? 4 : draw(5) ? 4 : 1;
    if (o.words > 1)
        o.imm = o.imm / 16 * 16;
    if (o.kind == ADD && draw(6) == 0)
        o.imm *= 8;  // into a neighbour
    if (o.kind == DIAMOND || o.kind == LOOP) {
        o.imm = 1 + (int)draw(4);
        o.guard = (int)draw(PREDS);
        make_body(g, depth + 1, &o.body, &o.nbody);
        if (o.kind == DIAMOND)
            make_body(g, depth + 1, &o.other, &o.nother);
    }
    if (g->nops < MOST_OPS)
        g->ops[g->nops++] = o;
    return g->nops - 1;
}

// --- printing ----------------------------------------------------------------------------------------------

#define PRINT(g, ...) ((g)->len += (size_t)snprintf((g)->text + (g)->len, TEXT - (g)->len, __VA_ARGS__))

static void print_ops(struct program *g, int first, int n);
static int labels;

static void print_access(struct program *g, struct op *o)
{
    const char *space = o->generic ? "" : ".global";
    if (o->words > 1)
        PRINT(g, "and.b64 %%p%d, %%p%d, -16;\n", o->a, o->a);
    if (o->guard >= 0)
        PRINT(g, "@%s%%q%d ", o->no ? "!" : "", o->guard);
    o->site = g->nsites++;
    if (o->kind == ATOMIC) {
        PRINT(g, "atom%s.add.u32 %%r%d, [%%p%d+%d], %%r%d;\n", space, o->d, o->a, o->imm, o->b);
        return;
    }
    char list[80];
    if (o->words == 4)
        snprintf(list, sizeof list, "{%%r%d, %%r%d, %%r%d, %%r%d}", o->d, (o->d + 1) % 4, (o->d + 2) % 4,
                 (o->d + 3) % 4);
    else if (o->words == 2)
        snprintf(list, sizeof list, "{%%r%d, %%r%d}", o->d, (o->d + 1) % 4);
    else
        snprintf(list, sizeof list, "%%r%d", o->d);
    const char *type = o->words == 4 ? ".v4.u32" : o->words == 2 ? ".v2.u32" : o->bytes == 4 ? ".u32" : ".u8";
    if (o->kind == LOAD)
        PRINT(g, "ld%s%s %s, [%%p%d+%d];\n", space, type, list, o->a, o->imm);
    else
        PRINT(g, "st%s%s [%%p%d+%d], %s;\n", space, type, o->a, o->imm, list);
}

static void print_branches(struct program *g, struct op *o)
{
    int label = labels++;
    if (o->kind == LOOP) {
        PRINT(g, "mov.u32 %%i%d, 0;\nL%d:\n", label, label);
        print_ops(g, o->body, o->nbody);
        PRINT(g, "add.u32 %%i%d, %%i%d, 1;\nsetp.lt.u32 %%l, %%i%d, %d;\n@%%l bra L%d;\n", label, label,
              label, o->imm, label);
        return;
    }
    PRINT(g, "@%%q%d bra L%d;\n", o->guard, label);
    print_ops(g, o->other, o->nother);
    PRINT(g, "bra M%d;\nL%d:\n", label, label);
    print_ops(g, o->body, o->nbody);
    PRINT(g, "M%d:\n", label);
}

// The ways to widen an index. Some narrow the number in the register itself.
static void print_index(struct program *g, const struct op *o)
{
    static const char *const ways[WAYS] = {
        "and.b32 %%t, %%r%1$d, 28;\ncvt.u64.u32 %%x, %%t;\nadd.s64 %%p%2$d, %%p%3$d, %%x;\n",
        "and.b32 %%t, %%r%1$d, 31;\nsub.s32 %%t, %%t, 8;\nmul.wide.s32 %%x, %%t, 4;\n"
        "add.s64 %%p%2$d, %%x, %%p%3$d;\n",
        "and.b32 %%r%1$d, %%r%1$d, 31;\nmul.wide.u32 %%x, %%r%1$d, 4;\nadd.s64 %%x, %%x, -8;\n"
        "add.s64 %%p%2$d, %%p%3$d, %%x;\n",
        "or.b32 %%r%1$d, %%r%1$d, -16;\nmad.wide.s32 %%p%2$d, %%r%1$d, 4, %%p%3$d;\n",
        "and.b32 %%r%1$d, %%r%1$d, 7;\ncvt.s64.s32 %%x, %%r%1$d;\nshl.b64 %%x, %%x, 3;\n"
        "add.s64 %%x, %%p%3$d, %%x;\nsub.s64 %%p%2$d, %%x, 12;\n",
    };
    PRINT(g, ways[o->way], o->b, o->d, o->a);
}

static const char *const params[] = {"a", "b", "s+8", "s+24"};

// Two elements of one buffer, by indices that are there before.
static void print_gather(struct program *g, struct op *o)
{
    static const char load[] = "mul.wide.s32 %%y, %%%c, 4;\nadd.s64 %%y, %%x, %%y;\nld.global.u32 %%r%d, "
                               "[%%y+%d];\n";
    PRINT(g, "and.b32 %%t, %%r%d, 31;\nand.b32 %%u, %%r%d, 31;\nld.param.u64 %%x, [%s];\n", o->b,
          (o->b + 1) % 4, params[o->a]);
    PRINT(g, load, 't', o->d, o->imm);
    PRINT(g, load, 'u', (o->d + 1) % 4, o->imm);
    o->site = g->nsites;
    g->nsites += 2;
}

// An access by the distance of two pointers, which accesses that are not made show to be pointers: nobody
// knows which one it belongs to.
static void print_distance(struct program *g, struct op *o)
{
    PRINT(g,
          "ld.param.u64 %%x, [%s];\nld.param.u64 %%y, [%s];\n@!%%always ld.global.u32 %%t, [%%x];\n"
          "@!%%always ld.global.u32 %%t, [%%y];\nsub.s64 %%y, %%y, %%x;\nand.b64 %%y, %%y, 252;\n"
          "ld.param.u64 %%x, [%s];\nadd.s64 %%y, %%y, %%x;\nld.global.u32 %%r%d, [%%y+%d];\n",
          params[o->b], params[(o->b + 1) % 4], params[o->a], o->d, o->imm);
    o->site = g->nsites + 2;
    g->nsites += 3;
}

static void print_op(struct program *g, struct op *o)
{
    switch (o->kind) {
    case LOAD_PARAM: PRINT(g, "ld.param.u64 %%p%d, [%s];\n", o->d, params[o->a]); break;
    case MOVE: PRINT(g, "mov.b64 %%p%d, %%p%d;\n", o->d, o->a); break;
    case ADD: PRINT(g, "add.s64 %%p%d, %%p%d, %d;\n", o->d, o->a, o->imm); break;
    case INDEX: print_index(g, o); break;
    case OFFSET:
        PRINT(g, "ld.param.u64 %%x, [s];\n");
        if (o->no)
            PRINT(g, "add.s64 %%p%d, %%x, %%p%d;\n", o->d, o->a);
        else
            PRINT(g, "add.s64 %%p%d, %%p%d, %%x;\n", o->d, o->a);
        break;
    case SELECT: PRINT(g, "selp.b64 %%p%d, %%p%d, %%p%d, %%q%d;\n", o->d, o->a, o->b, o->imm & 1); break;
    case MOVE_IF: PRINT(g, "@%s%%q%d mov.u64 %%p%d, %%p%d;\n", o->no ? "!" : "", o->b & 1, o->d, o->a); break;
    case LOAD_POINTER:
        PRINT(g,
              "ld.param.u64 %%x, [table];\nand.b32 %%t, %%r%d, 7;\nmul.wide.u32 %%y, %%t, 8;\n"
              "add.u64 %%x, %%x, %%y;\n@%%always ld.global.u64 %%p%d, [%%x];\n",
              o->b, o->d);
        g->nsites++;
        break;
    case ADDRESS: PRINT(g, "mov.u64 %%x, variable;\ncvta.global.u64 %%p%d, %%x;\n", o->d); break;
    case CONVERT:
        PRINT(g, "cvta.to.global.u64 %%x, %%p%d;\ncvta.global.u64 %%p%d, %%x;\n", o->a, o->d);
        break;
    case PACK: PRINT(g, "mov.b64 {%%t, %%u}, %%p%d;\nmov.b64 %%p%d, {%%t, %%u};\n", o->a, o->d); break;
    case COMPARE: PRINT(g, "setp.lt.u32 %%q%d, %%r%d, %u;\n", o->d & 1, o->a, 1u << 31); break;
    case COMPUTE: PRINT(g, "mad.lo.u32 %%r%d, %%r%d, 1664525, %%r%d;\n", o->d, o->a, o->b); break;
    case LOAD:
    case STORE:
    case ATOMIC: print_access(g, o); break;
    case GATHER: print_gather(g, o); break;
    case DISTANCE: print_distance(g, o); break;
    case STEP:
        PRINT(g,
              "{\n.param .b64 x;\n.param .b32 k;\n.param .b64 y;\nst.param.b64 [x], %%p%d;\nst.param.b32 "
              "[k], %%r%d;\n"
              "call (y), step, (x, k);\nld.param.b64 %%p%d, [y];\n}\n",
              o->a, o->b, o->d);
        break;
    case DIAMOND:
    case LOOP: print_branches(g, o); break;
    }
}

static void print_ops(struct program *g, int first, int n)
{
    for (int i = 0; i < n; i++)
        print_op(g, &g->ops[first + i]);
}

// step(x, k) stores k at x + 4 and returns x + 8. Its access is site 0.
static const char before[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 16 .b8 variable[128];\n"
    ".func (.param .b64 y) step(.param .b64 x, .param .b32 k)\n{\n.reg .b64 %p;\n.reg .b32 %r;\n"
    "ld.param.u64 %p, [x];\nld.param.u32 %r, [k];\nst.u32 [%p+4], %r;\nadd.s64 %p, %p, 8;\nst.param.b64 [y], "
    "%p;\nret;\n}\n"
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .align 8 .b8 s[32], .param .u64 table, .param "
    ".u64 out)\n{\n"
    ".reg .b64 %p<4>, %x, %y;\n.reg .b32 %r<4>, %i<400>, %t, %u;\n.reg .pred %q<2>, %l, %always;\n";
static const char begin[] = "setp.eq.u32 %always, 0, 0;\nld.param.u64 %p0, [a];\nld.param.u64 %p1, [b];\n"
                            "ld.param.u64 %p2, [s+8];\nld.param.u64 %p3, [s+24];\nmov.u32 %r0, 305419896;\n"
                            "mov.u32 %r1, 2596069104;\nmov.u32 %r2, 7;\nmov.u32 %r3, 4294967290;\n"
                            "setp.ne.u32 %q0, %r0, 0;\nsetp.eq.u32 %q1, %r0, 0;\n";
static const char end[] = "ld.param.u64 %x, [out];\nst.v4.u32 [%x], {%r0, %r1, %r2, %r3};\n"
                          "st.v2.u64 [%x+16], {%p0, %p1};\nst.v2.u64 [%x+32], {%p2, %p3};\nret;\n}\n";

static void make(struct program *g)
{
    memset(g, 0, sizeof *g);
    labels = 0;
    g->nsites = 1;
    PRINT(g, "%s%s", before, begin);
    g->ntop = 8 + (int)draw(25);
    for (int i = 0; i < g->ntop; i++) {
        g->top[i] = make_op(g, 0);
        print_op(g, &g->ops[g->top[i]]);
    }
    PRINT(g, "%s", end);
}

// --- computing ---------------------------------------------------------------------------------------------

static int buffer_of(const struct world *w, uint64_t at, uint64_t bytes)
{
    for (int i = 0; i < BUFFERS; i++)
        if (at >= w->base[i] && at - w->base[i] + bytes <= w->size[i])
            return i;
    return -1;
}

// Returns the buffer that an access is in, -1 if it must be skipped.
static int access_of(struct world *w, uint64_t at, unsigned bytes, int root, int site)
{
    int in = buffer_of(w, at, bytes);
    if (in >= 0 && (root < 0 || root == in))
        return in;
    if (w->nlog < MOST_LOG)
        w->log[w->nlog++] = (struct log){.what = (uint64_t)site | (uint64_t)bytes << 32, .address = at};
    return -1;
}

static void run_access(struct world *w, const struct op *o)
{
    if (o->words > 1)
        w->p[o->a] &= ~(uint64_t)15;
    if (o->guard >= 0 && w->q[o->guard] == o->no)
        return;
    uint64_t at = w->p[o->a] + (uint64_t)(int64_t)o->imm;
    unsigned bytes = (unsigned)(o->words * o->bytes);
    int in = access_of(w, at, bytes, w->root[o->a], o->site);
    uint8_t none[16] = {0}, *memory = in < 0 ? none : w->bytes[in] + (at - w->base[in]);
    for (int i = 0; i < o->words; i++) {
        uint32_t *r = &w->r[(o->d + i) % 4], was = 0;
        memcpy(&was, memory + 4 * i, (size_t)o->bytes);
        uint32_t to = o->kind == ATOMIC ? was + w->r[o->b] : *r;
        if (o->kind != LOAD && in >= 0)
            memcpy(memory + 4 * i, &to, (size_t)o->bytes);
        if (o->kind != STORE)
            *r = was;
    }
}

static void run_gather(struct world *w, const struct op *o)
{
    uint64_t p = w->params[o->a] + (uint64_t)(int64_t)o->imm;
    const uint64_t at[2] = {p + 4 * (w->r[o->b] & 31), p + 4 * (w->r[(o->b + 1) % 4] & 31)};
    for (int i = 0; i < 2; i++) {
        int in = access_of(w, at[i], 4, buffer_of(w, w->params[o->a], 1), o->site + i);
        w->r[(o->d + i) % 4] = 0;
        if (in >= 0)
            memcpy(&w->r[(o->d + i) % 4], w->bytes[in] + (at[i] - w->base[in]), 4);
    }
}

static void run_distance(struct world *w, const struct op *o)
{
    uint64_t at = w->params[o->a] + ((w->params[(o->b + 1) % 4] - w->params[o->b]) & 252);
    at += (uint64_t)(int64_t)o->imm;
    int in = access_of(w, at, 4, -1, o->site);
    w->r[o->d] = 0;
    if (in >= 0)
        memcpy(&w->r[o->d], w->bytes[in] + (at - w->base[in]), 4);
}

static void set(struct world *w, int d, uint64_t value, int root)
{
    w->p[d] = value;
    w->root[d] = root;
}

static void run_step(struct world *w, const struct op *o)
{
    uint64_t x = w->p[o->a];
    int in = access_of(w, x + 4, 4, w->root[o->a], 0);
    if (in >= 0)
        memcpy(w->bytes[in] + (x + 4 - w->base[in]), &w->r[o->b], 4);
    set(w, o->d, x + 8, w->root[o->a]);
}

static void run_ops(struct world *w, const struct program *g, int first, int n);

static uint64_t run_index(struct world *w, const struct op *o)
{
    uint32_t *r = &w->r[o->b];
    switch (o->way) {
    case 0: return *r & 28;
    case 1: return ((uint64_t)(*r & 31) - 8) * 4;
    case 2: return (uint64_t)(*r &= 31) * 4 - 8;
    case 3: return (uint64_t)(int32_t)(*r |= -16u) * 4;
    default: return (uint64_t)(*r &= 7) * 8 - 12;
    }
}

static void run_op(struct world *w, const struct program *g, const struct op *o)
{
    int a = o->a, d = o->d;
    uint64_t x;
    switch (o->kind) {
    case LOAD_PARAM: set(w, d, w->params[a], buffer_of(w, w->params[a], 1)); break;
    case MOVE:
    case CONVERT:
    case PACK: set(w, d, w->p[a], w->root[a]); break;
    case ADD: set(w, d, w->p[a] + (uint64_t)(int64_t)o->imm, w->root[a]); break;
    case INDEX: set(w, d, w->p[a] + run_index(w, o), w->root[a]); break;
    case OFFSET: set(w, d, w->p[a] + 16, w->root[a]); break;
    case SELECT:
        a = w->q[o->imm & 1] ? a : o->b;
        set(w, d, w->p[a], w->root[a]);
        break;
    case MOVE_IF:
        if (w->q[o->b & 1] != o->no)
            set(w, d, w->p[a], w->root[a]);
        break;
    case LOAD_POINTER:
        x = w->table[w->r[o->b] & 7];
        set(w, d, x, buffer_of(w, x, 1));
        break;
    case ADDRESS: set(w, d, w->base[VARIABLE], VARIABLE); break;
    case COMPARE: w->q[d & 1] = w->r[a] < 1u << 31; break;
    case COMPUTE: w->r[d] = w->r[a] * 1664525 + w->r[o->b]; break;
    case LOAD:
    case STORE:
    case ATOMIC: run_access(w, o); break;
    case GATHER: run_gather(w, o); break;
    case DISTANCE: run_distance(w, o); break;
    case STEP: run_step(w, o); break;
    case DIAMOND:
        if (w->q[o->guard])
            run_ops(w, g, o->body, o->nbody);
        else
            run_ops(w, g, o->other, o->nother);
        break;
    case LOOP:
        for (int i = 0; i < o->imm; i++)
            run_ops(w, g, o->body, o->nbody);
        break;
    }
}

static void run_ops(struct world *w, const struct program *g, int first, int n)
{
    for (int i = 0; i < n; i++)
        run_op(w, g, &g->ops[first + i]);
}

static void run_program(struct world *w, const struct program *g)
{
    static const uint32_t start[DATA] = {305419896, 2596069104, 7, 4294967290};
    memcpy(w->r, start, sizeof start);
    w->q[0] = true;
    w->q[1] = false;
    for (int i = 0; i < POINTERS; i++)
        set(w, i, w->params[i], buffer_of(w, w->params[i], 1));
    for (int i = 0; i < g->ntop; i++)
        run_op(w, g, &g->ops[g->top[i]]);
}

// --- the device --------------------------------------------------------------------------------------------

static CUdeviceptr arena, table, out, state, directory, records;
static struct kcheck_record *record_list;
static uint64_t first_chunk;

static void put_record(uint64_t base, uint64_t size)
{
    for (uint64_t at = base / 256 * 256; at < base + size; at += 256) {
        uint64_t chunk = (at >> KCHECK_CHUNK_BITS) - first_chunk;
        check_need(chunk < 4);
        uint64_t number = 1 + chunk * SLOTS + kcheck_slot(at, kcheck_reciprocal(256));
        record_list[number] = (struct kcheck_record){base, size};
    }
}

static void set_up(void)
{
    uint64_t words[4];
    size_t bytes = (4 * SLOTS + 1) * sizeof *record_list;
    arena = check_zeroed(ARENA);
    table = check_zeroed(TABLE * 8);
    out = check_zeroed(64);
    state = check_zeroed(sizeof(struct state));
    directory = check_zeroed(sizeof words);
    records = check_zeroed(bytes);
    record_list = calloc(1, bytes);
    check_need(record_list);
    first_chunk = (arena < table ? arena : table) >> KCHECK_CHUNK_BITS;
    for (unsigned i = 0; i < 4; i++)
        words[i] = (uint64_t)(1 + i * SLOTS) << 32 | kcheck_reciprocal(256);
    TRY(cuMemcpyHtoD_v2(directory, words, sizeof words));
}

static void make_world(struct world *w, uint64_t variable)
{
    memset(w, 0, sizeof *w);
    memset(record_list, 0, (4 * SLOTS + 1) * sizeof *record_list);
    for (int i = 0; i < BUFFERS; i++) {
        w->base[i] = i == VARIABLE ? variable : arena + PLACE * (1 + (unsigned)i);
        w->size[i] = i == VARIABLE ? VARIABLE_SIZE : 16 * (2 + draw(14));
        for (unsigned k = 0; k < 256; k++)
            w->bytes[i][k] = (uint8_t)draw(256);
        put_record(w->base[i], w->size[i]);
    }
    for (int i = 0; i < POINTERS; i++)
        w->params[i] = w->base[i] + (draw(3) ? 0 : 16);
    for (int i = 0; i < TABLE; i++)
        w->table[i] = w->base[draw(BUFFERS - 1)] + (draw(3) ? 0 : 16);
}

static void copy_in(const struct world *w, CUmodule module)
{
    static struct state s;
    CUdeviceptr variable;
    size_t bytes;
    struct kcheck_module about = {
        .directory = directory - 8 * first_chunk, .records = records, .state = state, .number = 1};
    memset(&s, 0, sizeof s);
    for (int i = 0; i < BUFFERS; i++) {
        TRY(cuMemcpyHtoD_v2(w->base[i], w->bytes[i], w->size[i]));
        s.blocks[s.nblocks++] = (struct kcheck_record){w->base[i], w->size[i]};
    }
    s.blocks[s.nblocks++] = (struct kcheck_record){table, TABLE * 8};
    s.blocks[s.nblocks++] = (struct kcheck_record){out, 64};
    TRY(cuMemcpyHtoD_v2(state, &s, sizeof s));
    TRY(cuMemcpyHtoD_v2(table, w->table, sizeof w->table));
    TRY(cuMemcpyHtoD_v2(records, record_list, (4 * SLOTS + 1) * sizeof *record_list));
    TRY(cuModuleGetGlobal_v2(&variable, &bytes, module, KCHECK_VARIABLE));
    EQUAL(bytes, sizeof about);
    TRY(cuMemcpyHtoD_v2(variable, &about, sizeof about));
}

// Returns the hidden parameters, as the host would compute them.
static size_t hidden(const struct world *w, const struct pass_check_kernel *k, uint64_t *to)
{
    const uint64_t pointers[8] = {w->params[0], w->params[1], 16, w->params[2], 0, w->params[3], table, out};
    to[0] = 77;
    for (uint32_t i = 0; i < k->full.npairs; i++) {
        uint64_t p = pointers[k->full.pairs[i].offset / 8];
        int in = buffer_of(w, p, 1);
        struct kcheck_pair pair = {0, 0};
        if (in >= 0)
            pair = kcheck_pair(w->base[in], w->size[in], k->full.pairs[i].span);
        else if (p == table || p == out)
            pair = kcheck_pair(p, 64, k->full.pairs[i].span);
        const struct pass_check_pair *about = &k->full.pairs[i];
        pair = kcheck_placed(pair, p, about->scale, about->is_signed, about->at);
        to[2 + 2 * i] = pair.base;
        to[3 + 2 * i] = pair.limit;
    }
    return 16 + 16 * (size_t)k->full.npairs;
}

static void launch(const struct world *w, CUmodule module, const struct pass_check *check)
{
    uint64_t a = w->params[0], b = w->params[1], s[4] = {16, w->params[2], 2, w->params[3]}, more[600];
    check_need(check->nkernels == 1 && check->kernels[0].full.npairs < 290 && check->kernels[0].nparams == 5);
    hidden(w, &check->kernels[0], more);
    TRY(LAUNCH(check_function(module, KCHECK_PREFIX "k"), 1, 1, 0, NULL, &a, &b, s, &table, &out, more));
    TRY(cuCtxSynchronize());
}

// Of a `what`, without the tag of the text that the site is in.
#define SITE_AND_WIDTH (0xFFFF00000000 | ((1 << KCHECK_SITE_BITS) - 1))

static void compare_log(const struct world *w)
{
    static struct state s;
    TRY(cuMemcpyDtoH_v2(&s, state, sizeof s));
    unsigned n = 0;
    for (uint64_t i = 0; i < s.ncalls && i < MOST_LOG; i++) {
        if (s.log[i].verdict == KCHECK_PERFORM)
            continue;
        if (n < w->nlog) {
            EQUAL(s.log[i].what & SITE_AND_WIDTH, w->log[n].what);
            EQUAL(s.log[i].address, w->log[n].address);
        }
        n++;
    }
    EQUAL(n, w->nlog);
}

static void compare(const struct world *w)
{
    uint8_t bytes[256];
    struct {
        uint32_t r[DATA];
        uint64_t p[POINTERS];
    } last;
    compare_log(w);
    for (int i = 0; i < BUFFERS; i++) {
        TRY(cuMemcpyDtoH_v2(bytes, w->base[i], w->size[i]));
        CHECK(!memcmp(bytes, w->bytes[i], w->size[i]));
    }
    TRY(cuMemcpyDtoH_v2(&last, out, sizeof last));
    CHECK(!memcmp(last.r, w->r, sizeof last.r));
    CHECK(!memcmp(last.p, w->p, sizeof last.p));
}

static void emit(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    printf("%s: %s\n", d->source.name, d->message);
}

static unsigned wrong_programs, errors, spotless;

static void try_one(struct program *g, struct world *w, const char *judge, uint64_t number)
{
    struct diag_sink sink = {.emit = emit};
    struct pass_request request = {.passes = "check", .verify = true, .judge = judge};
    struct pass_result *r;
    CUmodule module;
    CUdeviceptr variable;
    size_t bytes;
    int before_wrong = check_wrong;
    seed = number;
    make(g);
    int err = pass_rewrite("random", (struct str){g->text, g->len}, &request, &sink, &r);
    check_need(check_equal((unsigned)-err, 0, "pass_rewrite", __LINE__));
    TRY(cuModuleLoadData(&module, r->text.ptr));
    TRY(cuModuleGetGlobal_v2(&variable, &bytes, module, "variable"));
    make_world(w, variable);
    copy_in(w, module);
    run_program(w, g);
    launch(w, module, r->check);
    compare(w);
    errors += w->nlog;
    spotless += !w->nlog;
    if (check_wrong != before_wrong) {
        printf("program %llu\n", (unsigned long long)number);
        if (!wrong_programs++ && getenv("SHOW"))
            printf("%s\n%s\n", g->text, r->text.ptr);
    }
    TRY(cuModuleUnload(module));
    pass_result_free(r);
}

int main(int argc, char **argv)
{
    static struct program g;
    static struct world w;
    static char judge[1 << 16];
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
             n = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000;
    FILE *f = fopen("test/pass/check_judge.ptx", "r");
    check_need(f && fread(judge, 1, sizeof judge - 1, f) > 0);
    fclose(f);
    check_context();
    set_up();
    for (uint64_t i = 0; i < n && wrong_programs < 10; i++)
        try_one(&g, &w, judge, first + i);
    printf("%llu programs, %u without errors, %u errors\n", (unsigned long long)n, spotless, errors);
    CHECK(n < 100 || (spotless > n / 50 && errors > n));
    return check_end("check_pass_random");
}
