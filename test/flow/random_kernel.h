// SPDX-License-Identifier: MIT
// make_kernel writes a random kernel into g: the part of proof_random that invents.
//
// A kernel is written twice. The text that is analysed has loads and stores. In the text that is executed
// each of them notes the lowest and highest distance from its root in a log, and a load yields a number
// made from its address; so addresses may lie anywhere. Loops end after some rounds there, which leaves out
// accesses, never adds any.
//
// What is generated aims at the rules: guards, counted loops of all shapes with wrong and right limits,
// quotients, masks, multiplications in place of divisions, narrow types, values that wrap around on
// purpose.
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "flow/brute.h"

enum { MOST_ACCESSES = 64, SCALARS = 4, FUEL = 120, MOST_POOL = 64 };

struct text {
    char at[1 << 16];
    size_t len;
};

// Registers that may be read, by width: %rN, %dN, %pN.
struct pool {
    int reg[MOST_POOL];
    int n;
};

struct gen {
    struct brute_random random;
    struct text analysed, executed;
    struct pool r, d, p;
    int nr, nd, np, nh, nf, nlabels, naccesses, budget;
    struct {
        int root;  // 0, 1: parameters; 2: shared memory
        int bytes;
    } access[MOST_ACCESSES];
};

static struct gen g;

static uint32_t below(uint32_t n)
{
    return brute_below(&g.random, n);
}

static void put(struct text *t, const char *fmt, va_list args)
{
    int n = vsnprintf(t->at + t->len, sizeof t->at - t->len, fmt, args);
    if (n < 0 || t->len + (size_t)n >= sizeof t->at)
        abort();
    t->len += (size_t)n;
}

// Writes to the text that is analysed (A), executed (E) or both.
#define WRITER(name, a, e)                 \
    static void name(const char *fmt, ...) \
    {                                      \
        va_list args;                      \
        if (a) {                           \
            va_start(args, fmt);           \
            put(&g.analysed, fmt, args);   \
            va_end(args);                  \
        }                                  \
        if (e) {                           \
            va_start(args, fmt);           \
            put(&g.executed, fmt, args);   \
            va_end(args);                  \
        }                                  \
    }
WRITER(both, true, true)
WRITER(analysed, true, false)
WRITER(executed, false, true)

static int pick(struct pool *p)
{
    return p->reg[below((uint32_t)p->n)];
}

static void offer(struct pool *p, int reg)
{
    if (p->n < MOST_POOL)
        p->reg[p->n++] = reg;
    else
        p->reg[below(MOST_POOL)] = reg;
}

// A new register, or now and then one that exists: so values meet where branches join.
static int target(struct pool *p, int *next)
{
    return p->n > 8 && !below(4) ? p->reg[8 + (int)below((uint32_t)p->n - 8)] : (*next)++;
}

static long long odd_number(void)
{
    static const long long of[] = {0,   1,    2,          3,           4,          7,       8,      15,  16,
                                   31,  32,   33,         63,          64,         100,     127,    128, 255,
                                   256, 1000, 4095,       65535,       65536,      -1,      -2,     -4,  -8,
                                   -16, -128, 2147483647, -2147483647, 2147483640, 1 << 30, 1 << 28};
    return of[below(sizeof of / sizeof *of)];
}

// --- values ------------------------------------------------------------------------------------------------

static void any32(char *to)
{
    if (below(3))
        sprintf(to, "%%r%d", pick(&g.r));
    else
        sprintf(to, "%lld", below(3) ? (long long)below(40) : odd_number());
}

static const char *sign(void)
{
    return below(2) ? "s" : "u";
}

// x / c as a compiler writes it, by a multiplication.
static void magic(int to)
{
    static const struct {
        unsigned d, m;
        int shift;
    } of[] = {{3, 0xAAAAAAAB, 33},
              {5, 0xCCCCCCCD, 34},
              {10, 0xCCCCCCCD, 35},
              {6, 0xAAAAAAAB, 34},
              {100, 0x51EB851F, 37}};
    unsigned k = below(5);
    int x = pick(&g.r), d = g.nd++;
    if (below(2)) {
        both("mul.wide.u32 %%d%d, %%r%d, %u;\nshr.u64 %%d%d, %%d%d, %d;\ncvt.u32.u64 %%r%d, %%d%d;\n", d, x,
             of[k].m, d, d, of[k].shift, to, d);
    } else {
        int t = g.nr++;
        both("mul.hi.u32 %%r%d, %%r%d, %u;\nshr.u32 %%r%d, %%r%d, %d;\n", t, x, of[k].m, to, t,
             of[k].shift - 32);
    }
    if (below(2))
        both("mul.lo.s32 %%r%d, %%r%d, %u;\nsub.s32 %%r%d, %%r%d, %%r%d;\n", to, to, of[k].d, to, x, to);
}

static void narrow(int to)
{
    int x = pick(&g.r);
    switch (below(4)) {
    case 0:
        both("cvt.u16.u32 %%h0, %%r%d;\ncvt.%s32.%s16 %%r%d, %%h0;\n", x, below(2) ? "u" : "s", sign(), to);
        return;
    case 1: both("cvt.%s8.%s32 %%r%d, %%r%d;\n", sign(), sign(), to, x); return;
    case 2:
        both("cvt.u16.u32 %%h0, %%r%d;\nadd.s16 %%h0, %%h0, %d;\nmul.wide.%s16 %%r%d, %%h0, %d;\n", x,
             (int)below(300), sign(), to, (int)below(50));
        return;
    default:
        both("cvt.u16.u32 %%h0, %%r%d;\nshl.b16 %%h0, %%h0, %d;\ncvt.u32.u16 %%r%d, %%h0;\n", x,
             (int)below(20), to);
    }
}

// As many ones as a number says, at a place; of those that clamp, some are used as a mask.
static void bit_mask(int to, const char *a, const char *b)
{
    int x = pick(&g.r), place = (int)below(40), width = (int)below(40);
    const char *mode = below(6) ? "clamp" : "wrap";
    switch (below(4)) {
    case 0: both("bmsk.%s.b32 %%r%d, %s, %s;\n", mode, to, a, b); return;
    case 1: both("bmsk.%s.b32 %%r%d, %d, %s;\n", mode, to, below(3) ? 0 : place, b); break;
    case 2: both("bmsk.%s.b32 %%r%d, %s, %d;\n", mode, to, a, width); break;
    default:
        both("and.b32 %%r%d, %s, %d;\n", to, b, below(2) ? 7 : 63);
        both("bmsk.%s.b32 %%r%d, %d, %%r%d;\n", mode, to, below(2) ? 0 : place, to);
    }
    if (below(2))
        both("and.b32 %%r%d, %%r%d, %%r%d;\n", to, x, to);
}

static void value32(void)
{
    static const char *const plain[] = {"add.s32", "sub.s32", "mul.lo.s32", "and.b32",
                                        "or.b32",  "xor.b32", "min.s32",    "max.s32",
                                        "min.u32", "max.u32", "add.u32",    "mul24.lo.s32"};
    char a[32], b[32];
    int to = target(&g.r, &g.nr);
    any32(a);
    any32(b);
    switch (below(21)) {
    case 0: both("shl.b32 %%r%d, %s, %d;\n", to, a, below(8) ? (int)below(5) : (int)below(40)); break;
    case 1:
        both("shr.%s32 %%r%d, %s, %d;\n", sign(), to, a, below(8) ? (int)below(6) : (int)below(40));
        break;
    case 2: both("div.%s32 %%r%d, %s, %lld;\n", sign(), to, a, 1LL + below(20)); break;
    case 3: both("rem.%s32 %%r%d, %s, %lld;\n", sign(), to, a, 1LL + below(20)); break;
    case 4:
        both("and.b32 %%r%d, %s, %lld;\n", to, a, below(2) ? (1LL << below(12)) - 1 : -(1LL << below(8)));
        break;
    case 5: both("selp.b32 %%r%d, %s, %s, %%p%d;\n", to, a, b, pick(&g.p)); break;
    case 6: both("bfe.%s32 %%r%d, %s, %d, %d;\n", sign(), to, a, (int)below(20), (int)below(14)); break;
    case 7: both("bfi.b32 %%r%d, %s, %s, %d, %d;\n", to, a, b, (int)below(20), (int)below(14)); break;
    case 8: both("%s.s32 %%r%d, %s;\n", below(3) ? (below(2) ? "neg" : "abs") : "neg", to, a); break;
    case 9: both("not.b32 %%r%d, %s;\n", to, a); break;
    case 10: magic(to); break;
    case 11: narrow(to); break;
    case 12: both("mad.lo.s32 %%r%d, %s, %lld, %%r%d;\n", to, a, (long long)below(70), pick(&g.r)); break;
    case 13:
        both("@%s%%p%d add.s32 %%r%d, %s, %s;\n", below(2) ? "!" : "", pick(&g.p), to = pick(&g.r), a, b);
        break;
    case 14: both("mul.hi.s32 %%r%d, %s, %s;\n", to, a, b); break;
    case 15:
        both("lop3.b32 %%r%d, %s, %s, %%r%d, %d;\n", to, a, b, pick(&g.r), below(2) ? 0xEA : 0xF8);
        break;
    case 16: both("cvt.u32.u64 %%r%d, %%d%d;\n", to, pick(&g.d)); break;
    case 17: bit_mask(to, a, b); break;
    default: both("%s %%r%d, %s, %s;\n", plain[below(12)], to, a, b);
    }
    offer(&g.r, to);
}

static void value64(void)
{
    int to = target(&g.d, &g.nd);
    switch (below(9)) {
    case 7: both("mul.lo.s64 %%d%d, %%d%d, %%d%d;\n", to, pick(&g.d), pick(&g.d)); break;
    case 0: both("cvt.s64.s32 %%d%d, %%r%d;\n", to, pick(&g.r)); break;
    case 1: both("cvt.u64.u32 %%d%d, %%r%d;\n", to, pick(&g.r)); break;
    case 2: both("mul.wide.%s32 %%d%d, %%r%d, %d;\n", sign(), to, pick(&g.r), 1 << below(4)); break;
    case 3: both("add.s64 %%d%d, %%d%d, %%d%d;\n", to, pick(&g.d), pick(&g.d)); break;
    case 4: both("shl.b64 %%d%d, %%d%d, %d;\n", to, pick(&g.d), (int)below(4)); break;
    case 5: both("shr.%s64 %%d%d, %%d%d, %d;\n", sign(), to, pick(&g.d), (int)below(70)); break;
    case 6: both("min.%s64 %%d%d, %%d%d, %%d%d;\n", sign(), to, pick(&g.d), pick(&g.d)); break;
    default:
        both("mad.wide.%s32 %%d%d, %%r%d, %d, %%d%d;\n", sign(), to, pick(&g.r), (int)below(50), pick(&g.d));
    }
    offer(&g.d, to);
}

static void predicate(void)
{
    static const char *const signed_of[] = {"lt", "le", "gt", "ge", "eq", "ne"};
    char a[32], b[32];
    int to = target(&g.p, &g.np);
    sprintf(a, "%%r%d", pick(&g.r));
    any32(b);
    switch (below(6)) {
    case 0:
        both("%s.pred %%p%d, %%p%d, %%p%d;\n", below(3) ? (below(2) ? "and" : "or") : "xor", to, pick(&g.p),
             pick(&g.p));
        break;
    case 1:
        both("setp.%s.%s64 %%p%d, %%d%d, %%d%d;\n", signed_of[below(6)], sign(), to, pick(&g.d), pick(&g.d));
        break;
    case 2:
        both("setp.%s.%s.%s32 %%p%d, %s, %s, %s%%p%d;\n", signed_of[below(6)], below(2) ? "and" : "or",
             sign(), to, a, b, below(2) ? "!" : "", pick(&g.p));
        break;
    case 3: both("not.pred %%p%d, %%p%d;\n", to, pick(&g.p)); break;
    default: both("setp.%s.%s32 %%p%d, %s, %s;\n", signed_of[below(6)], sign(), to, a, b);
    }
    offer(&g.p, to);
}

// --- accesses ----------------------------------------------------------------------------------------------

// Notes the distance in %d0 of access k, and gives %r0 a number made from it.
static void note(int k, const char *guard)
{
    executed("%sred.global.min.s64 [%%log+%d], %%d0;\n%sred.global.max.s64 [%%log+%d], %%d0;\n", guard,
             16 * k, guard, 16 * k + 8);
}

static void access_shared(int k, const char *guard, int to, bool load)
{
    int x = pick(&g.r), t = g.nr++, apart = 4096 * (int)below(3) - 4096;
    const char *cluster = below(3) ? "" : "::cluster";
    both("mad.lo.s32 %%r%d, %%r%d, 4, %%rs;\n", t, x);
    // Memory of another block: the number of the block stands above 24 bits of the address.
    if (*cluster) {
        both("add.s32 %%r%d, %%r%d, %d;\n", t, t, apart);
        analysed("mapa.shared::cluster.u32 %%r%d, %%r%d, %%r%d;\n", t, t, pick(&g.r));
        executed(
            "sub.s32 %%r%d, %%r%d, %%rs;\nand.b32 %%r%d, %%r%d, 0xFFFFFF;\nadd.s32 %%r%d, %%r%d, %%rs;\n", t,
            t, t, t, t, t);
        both("sub.s32 %%r%d, %%r%d, %d;\n", t, t, apart);
    }
    g.access[k].root = 2;
    g.access[k].bytes = 4;
    if (load)
        analysed("%sld.shared%s.u32 %%r%d, [%%r%d+8];\n", guard, cluster, to, t);
    else
        analysed("%sst.shared%s.u32 [%%r%d+8], %%r%d;\n", guard, cluster, t, x);
    executed("sub.s32 %%r0, %%r%d, %%rs;\nadd.s32 %%r0, %%r0, 8;\ncvt.s64.s32 %%d0, %%r0;\n", t);
    note(k, guard);
    if (load)
        executed("%smul.lo.s32 %%r%d, %%r%d, 1664525;\n", guard, to, t);
}

struct marks {
    int r, d, p;
};

static struct marks mark(void)
{
    return (struct marks){g.r.n, g.d.n, g.p.n};
}

static void release(struct marks m)
{
    g.r.n = m.r;
    g.d.n = m.d;
    g.p.n = m.p;
}

static void access_memory(void);

static void use_as_index(int reg)
{
    struct pool kept = g.r;
    for (int k = 0; k < 16; k++)
        offer(&g.r, reg);
    access_memory();
    access_memory();
    g.r = kept;
}

// An index that is made of the bits of a floating point number whose magnitude is compared with a number, as
// the sine of large numbers makes it. Now and then some of it is wrong.
static void float_index(void)
{
    static const char *const relation[] = {"lt",  "le",  "gt",  "ge",  "eq",  "ne",
                                           "ltu", "leu", "gtu", "geu", "equ", "neu"};
    static const unsigned of[] = {0x47CE4780, 0x40000000, 0x3F800000, 0x7F800000,
                                  0x00800000, 0x00000001, 0x7F7FFFFF, 0x4E800000};
    int skip = g.nlabels++, pred = g.np++, bits = g.nr++, e = g.nr++, word = g.nr++, f = g.nf;
    g.nf += 2;
    both("mov.u32 %%r%d, %%r%d;\n", bits, pick(&g.r));
    // Numbers of all sizes, infinity, NaN.
    if (below(2))
        both("mul.lo.s32 %%r%d, %%r%d, %u;\n", bits, bits, 2654435761u);
    if (!below(3))
        both("or.b32 %%r%d, %%r%d, %u;\n", bits, bits, 0x7F800000u);
    if (!below(3))
        both("and.b32 %%r%d, %%r%d, %u;\n", bits, bits, below(2) ? 0xFF800000u : 0x80FFFFFFu);
    both("mov.b32 %%f%d, %%r%d;\nabs%s.f32 %%f%d, %%f%d;\n", f, bits, below(3) ? "" : ".ftz", f + 1,
         below(12) ? f : f + 1);
    both("setp.%s%s.f32 %%p%d, %%f%d, 0f%08X;\n", relation[below(12)], below(3) ? "" : ".ftz", pred, f + 1,
         below(8) ? of[below(8)] : of[below(8)] ^ 1u << below(32));
    struct marks m = mark();
    if (below(3))
        both("@%s%%p%d bra L%d;\n", below(2) ? "!" : "", pred, skip);
    both("mov.b32 %%r%d, %%f%d;\nshr.u32 %%r%d, %%r%d, %d;\nand.b32 %%r%d, %%r%d, 255;\n", word, f, e, word,
         below(6) ? 23 : 20 + (int)below(8), e, e);
    if (below(3))
        both("add.s32 %%r%d, %%r%d, %d;\nshr.u32 %%r%d, %%r%d, %d;\n", e, e,
             below(2) ? -128 : -(int)below(256), e, e, (int)below(8));
    use_as_index(e);
    release(m);
    both("L%d:\n", skip);
    offer(&g.p, pred);
}

// An address of shared memory as a compiler of tiles makes it: single bits of an index, at other places, put
// together by or and xor. Now and then a place is taken twice, or a bit is not there.
static void swizzle(void)
{
    int to = g.nr++, from = g.nr++, parts = 2 + (int)below(4);
    both("and.b32 %%r%d, %%r%d, %d;\n", from, pick(&g.r), below(4) ? 63 : (int)below(400));
    both("mov.u32 %%r%d, 0;\n", to);
    for (int k = 0; k < parts; k++) {
        int part = g.nr++;
        unsigned mask = below(2)   ? 3u << below(8)
                        : below(2) ? 1u << below(4) | 1u << (4 + below(5))
                                   : below(700);
        switch (below(4)) {
        case 0: both("and.b32 %%r%d, %%r%d, 1;\nneg.s32 %%r%d, %%r%d;\n", part, from, part, part); break;
        case 1: both("shr.u32 %%r%d, %%r%d, %d;\n", part, from, (int)below(5)); break;
        default: both("shl.b32 %%r%d, %%r%d, %d;\n", part, from, (int)below(5)); break;
        }
        if (below(8))
            both("and.b32 %%r%d, %%r%d, %u;\n", part, part, mask);
        both("%s %%r%d, %%r%d, %%r%d;\n",
             below(3)   ? "xor.b32"
             : below(4) ? "or.b32"
                        : "add.s32",
             to, to, part);
        if (!below(4))
            both("xor.b32 %%r%d, %%r%d, %u;\n", to, to, below(2) ? 1u << below(8) : below(300));
        if (!below(4))
            both("and.b32 %%r%d, %%r%d, %u;\n", to, to, below(2) ? ~0u << below(6) : ~(1u << below(9)));
    }
    use_as_index(to);
    offer(&g.r, to);
}

// cp.async: accesses k, of shared memory, and k + 1. It reads nothing where its size is 0, or its predicate
// holds.
static void copy_memory(int k, const char *guard, int addr, int root, int offset)
{
    int size = g.nr++, bytes = 4 << below(3), p = pick(&g.p), number = below(6) ? bytes : (int)below(5);
    bool unless = !below(4);
    bool first = below(2);
    int otherwise = below(8) ? 0 : 4;
    both("selp.b32 %%r%d, %d, %d, %%p%d;\n", size, first ? number : otherwise, first ? otherwise : number, p);
    g.access[k].root = 2;
    g.access[k + 1].root = root;
    g.access[k].bytes = g.access[k + 1].bytes = bytes;
    if (unless)
        analysed("%scp.async.ca.shared.global [%%rs], [%%d%d+%d], %d, %%p%d;\n", guard, addr, offset, bytes,
                 p);
    else
        analysed("%scp.async.ca.shared.global [%%rs], [%%d%d+%d], %d, %%r%d;\n", guard, addr, offset, bytes,
                 size);
    executed("mov.u64 %%d0, 0;\n");
    note(k, guard);
    executed("sub.s64 %%d0, %%d%d, %%base%d;\nadd.s64 %%d0, %%d0, %d;\nmov.pred %%pf, 0;\n", addr, root,
             offset);
    if (unless)
        executed("%snot.pred %%pf, %%p%d;\n", guard, p);
    else
        executed("%ssetp.ne.s32 %%pf, %%r%d, 0;\n", guard, size);
    note(k + 1, "@%pf ");
}

static void access_memory(void)
{
    char guard[16] = "";
    int k = g.naccesses, to = g.nr++, addr = g.nd++, root = (int)below(2), width = 1 << below(4),
        x = pick(&g.r);
    bool load = below(2);
    if (k == MOST_ACCESSES)
        return;
    g.naccesses++;
    if (!below(4))
        sprintf(guard, "@%s%%p%d ", below(2) ? "!" : "", pick(&g.p));
    both("mov.u32 %%r%d, 0;\n", to);
    if (!below(6)) {
        access_shared(k, guard, to, load);
        offer(&g.r, to);
        return;
    }
    if (below(4)) {
        int t = g.nd++;
        both("mul.wide.%s32 %%d%d, %%r%d, %d;\nadd.s64 %%d%d, %%base%d, %%d%d;\n", sign(), t, x,
             1 << below(4), addr, root, t);
    } else {
        both("add.s64 %%d%d, %%base%d, %%d%d;\n", addr, root, pick(&g.d));
    }
    int offset = (int)below(3) * 8 - 8;
    if (load && !below(4) && g.naccesses < MOST_ACCESSES) {
        g.naccesses++;
        copy_memory(k, guard, addr, root, offset);
        return;
    }
    g.access[k].root = root;
    g.access[k].bytes = width == 1 && !load ? 4 : width;
    if (load && width == 8)
        analysed("%sld.global.u64 %%d9999, [%%d%d+%d];\n", guard, addr, offset);
    else if (load)
        analysed("%sld.global.u%d %%r%d, [%%d%d+%d];\n", guard, 8 * width, to, addr, offset);
    else
        analysed("%sst.global.%s [%%d%d+%d], %s;\n", guard,
                 width == 1   ? "v2.u16"
                 : width == 2 ? "u16"
                 : width == 4 ? "u32"
                              : "u64",
                 addr, offset,
                 width == 1   ? "{%h0, %h0}"
                 : width == 2 ? "%h0"
                 : width == 4 ? "%r1"
                              : "%d1");
    executed("sub.s64 %%d0, %%d%d, %%base%d;\nadd.s64 %%d0, %%d0, %d;\n", addr, root, offset);
    note(k, guard);
    if (load && width < 8) {
        executed("cvt.u32.u64 %%r0, %%d%d;\nmul.lo.s32 %%r0, %%r0, 1664525;\nshr.u32 %%r0, %%r0, "
                 "%d;\n%smov.u32 %%r%d, %%r0;\n",
                 addr, width == 4 ? 0 : 32 - 8 * width, guard, to);
        offer(&g.r, to);
    }
}

// --- control -----------------------------------------------------------------------------------------------

static void statements(int n, int depth);

static void branch(int depth)
{
    int skip = g.nlabels++;
    predicate();
    both("@%s%%p%d bra L%d;\n", below(2) ? "!" : "", pick(&g.p), skip);
    struct marks m = mark();
    statements(1 + (int)below(4), depth - 1);
    release(m);
    if (!below(3)) {
        int end = g.nlabels++;
        both("bra L%d;\nL%d:\n", end, skip);
        statements(1 + (int)below(3), depth - 1);
        release(m);
        skip = end;
    }
    both("L%d:\n", skip);
}

static void use_fuel(void)
{
    executed("add.s32 %%fuel, %%fuel, 1;\nsetp.gt.s32 %%pf, %%fuel, %d;\n@%%pf bra DONE;\n", FUEL);
}

// A loop of 32 or 64 bits, tested before or after its body, counting up or down, with a second counter
// beside.
// The next value of a loop's variable: one step further, or, now and then, a multiple or a part.
static void advance(char kind, int bits, int i, bool rising, int step)
{
    int t = g.nr;
    switch (below(15)) {
    case 14:  // starts again where it comes to a limit
        if (bits == 32) {
            static const char *const of[] = {"gt", "ge", "eq", "lt", "le", "ne"};
            unsigned which = below(6);
            int p = g.np++, next = g.nr++;
            bool zero = (which < 3) == (below(8) > 0);
            both("add.s32 %%r%d, %%r%d, %d;\nsetp.%s.%s32 %%p%d, %%r%d, %d;\n", next, i, step, of[which],
                 sign(), p, below(10) ? next : i, (int)below(12));
            both(zero ? "selp.b32 %%r%d, 0, %%r%d, %%p%d;\n" : "selp.b32 %%r%d, %%r%d, 0, %%p%d;\n", i, next,
                 p);
            return;
        }
        // fallthrough
    case 12:
        both(below(2) ? "xor.b%d %%%c%d, %%%c%d, %d;\n" : "and.b%d %%%c%d, %%%c%d, %d;\n", bits, kind, i,
             kind, i, (int)below(below(2) ? 2 : 70));
        return;
    case 13:
        if (below(3))
            both("sub.s%d %%%c%d, %d, %%%c%d;\n", bits, kind, i, (int)below(below(2) ? 2 : 70), kind, i);
        else
            both("rem.%s%d %%%c%d, %%%c%d, %d;\n", sign(), bits, kind, i, kind, i, 1 + (int)below(9));
        return;
    case 0:
        if (rising)
            both("mul.lo.s%d %%%c%d, %%%c%d, %d;\n", bits, kind, i, kind, i, 2 + (int)below(3));
        else
            both("div.%s%d %%%c%d, %%%c%d, %d;\n", sign(), bits, kind, i, kind, i, 1 + (int)below(4));
        return;
    case 1:
        if (rising)
            both("shl.b%d %%%c%d, %%%c%d, %d;\n", bits, kind, i, kind, i, 1 + (int)below(2));
        else
            both("shr.%s%d %%%c%d, %%%c%d, %d;\n", sign(), bits, kind, i, kind, i, 1 + (int)below(2));
        return;
    case 2:
        if (bits == 32) {
            g.nr += 2;
            both("shr.u32 %%r%d, %%r%d, 31;\nadd.s32 %%r%d, %%r%d, %%r%d;\nshr.s32 %%r%d, %%r%d, 1;\n", t, i,
                 t + 1, i, t, i, t + 1);
            return;
        }
        // fallthrough
    default: both("add.s%d %%%c%d, %%%c%d, %d;\n", bits, kind, i, kind, i, rising ? step : -step);
    }
}

// Puts into `limit` a register that this round computes, from numbers that rounds do not change, or now and
// then from some that they do: the carry of an addition to the counter, and which threads are there.
static void anew(char *limit, int counter)
{
    static const char *const plain[] = {"add.s32", "sub.s32", "and.b32", "or.b32",         "min.s32",
                                        "max.u32", "shl.b32", "shr.s32", "bmsk.clamp.b32", "mul.lo.s32"};
    int t = g.nr++, p = g.np++;
    if (below(2))
        both("%s %%r%d, %s, %d;\n", plain[below(10)], t, limit, (int)below(20));
    else if (below(2))
        both("%s %%r%d, %s, %%r%d;\n", plain[below(10)], t, limit, pick(&g.r));
    else if (below(4))
        both("add.cc.u32 %%r%d, %%r%d, %d;\naddc.u32 %%r%d, %s, 0;\nmul.lo.s32 %%r%d, %%r%d, %d;\n", t,
             counter, -8 - (int)below(8), t, limit, t, t, 1 + 2 * (int)below(8));
    else if (below(2))
        both("activemask.b32 %%r%d;\n", t);
    else
        both("setp.lt.s32 %%p%d, %%r%d, 9;\nvote.ballot.b32 %%r%d, %%p%d;\n", p, pick(&g.r), t, p);
    if (below(4))
        both("and.b32 %%r%d, %%r%d, %d;\n", t, t, (8 << below(3)) - 1);
    if (below(4))
        both("or.b32 %%r%d, %%r%d, 8;\n", t, t);
    sprintf(limit, "%%r%d", t);
}

static void loop(int depth)
{
    static const char *const up[] = {"lt", "le", "ne", "lt"}, *const down[] = {"gt", "ge", "ne", "gt"};
    int top = g.nlabels++, end = g.nlabels++, pred = g.np++;
    bool wide = !below(4), rising = below(3), before = below(2);
    int i = wide ? g.nd++ : g.nr++, second = g.nd++;
    char limit[32], kind = wide ? 'd' : 'r';
    bool is_anew = !wide && !below(4), equal = is_anew && below(2);
    rising |= equal;
    int step = below(4) || equal ? 1 : 1 + (int)below(5);
    const char *relation = equal ? "ne" : (rising ? up : down)[below(4)], *type = sign();
    if (!wide)
        any32(limit);
    else if (below(2))
        sprintf(limit, "%%d%d", pick(&g.d));
    else
        sprintf(limit, "%d", (int)below(50));
    if (equal || below(2))
        both("mov.%s %%%c%d, %d;\n", wide ? "u64" : "u32", kind, i, rising ? (int)below(5) : (int)below(40));
    else
        both("mov.%s %%%c%d, %%%c%d;\n", wide ? "u64" : "u32", kind, i, kind, wide ? pick(&g.d) : pick(&g.r));
    both("mov.u64 %%d%d, %d;\n", second, (int)below(9));
    if (!before && below(3))
        both("setp.%s.%s%d %%p%d, %%%c%d, %s;\n@!%%p%d bra L%d;\n", relation, type, wide ? 64 : 32, pred,
             kind, i, limit, pred, end);
    both("L%d:\n", top);
    use_fuel();
    if (before && is_anew)
        anew(limit, i);
    if (before)
        both("setp.%s.%s%d %%p%d, %%%c%d, %s;\n@!%%p%d bra L%d;\n", relation, type, wide ? 64 : 32, pred,
             kind, i, limit, pred, end);
    struct marks m = mark();
    offer(wide ? &g.d : &g.r, i);
    offer(&g.d, second);
    if (equal)
        use_as_index(i);
    statements(1 + (int)below(4), depth - 1);
    release(m);
    both("add.s64 %%d%d, %%d%d, %d;\n", second, second, 4 * (int)below(5) - 4);
    advance(kind, wide ? 64 : 32, i, rising, step);
    if (!before && is_anew)
        anew(limit, i);
    if (before)
        both("bra L%d;\n", top);
    else
        both("setp.%s.%s%d %%p%d, %%%c%d, %s;\n@%%p%d bra L%d;\n", relation, type, wide ? 64 : 32, pred, kind,
             i, limit, pred, top);
    both("L%d:\n", end);
    offer(wide ? &g.d : &g.r, i);
}

// A stage that each round increases, and sets to 0 at a limit, of 16, 32 or 64 bits; starts and limits are
// often at the type's end. Now and then some of it is wrong.
static void stages(void)
{
    static const char kinds[] = {'h', 'r', 'd'};
    static const char *const of[] = {"gt", "ge", "eq", "lt", "le", "ne"};
    unsigned k = below(3), bits = 16u << k, which = below(6);
    int top = g.nlabels++, p = g.np++, rounds = g.nr++, at = g.nr++, i, next;
    int step = below(2) ? 1 : 1 + (int)below(40);
    bool zero = (which < 3) == (below(8) > 0);
    char c = kinds[k];
    int *n = k == 0 ? &g.nh : k == 1 ? &g.nr : &g.nd;
    const char *s = sign();
    long long end = (1LL << (bits < 32 ? bits - (*s == 's') : 31)) - 1, limit = (long long)below(12);
    if (below(3) == 0)
        limit = end - (long long)below(60);
    long long from = below(2) ? (long long)below(8) - 2 : limit - (long long)below(200);
    i = (*n)++, next = (*n)++;
    if (k == 1 && below(3) == 0)
        both("mov.u32 %%r%d, %%r%d;\n", i, pick(&g.r));
    else
        both("mov.b%u %%%c%d, %lld;\n", bits, c, i, from);
    both("mov.u32 %%r%d, 0;\nL%d:\n", rounds, top);
    use_fuel();
    if (k == 0)
        both("cvt.%s32.%s16 %%r%d, %%h%d;\n", s, below(8) ? s : sign(), at, i);
    else
        both(k == 1 ? "mov.b32 %%r%d, %%r%d;\n" : "cvt.u32.u64 %%r%d, %%d%d;\n", at, i);
    if (below(3) == 0)
        both("div.s32 %%r%d, %%r%d, %%r%d;\n", at, at, pick(&g.r));
    struct marks m = mark();
    use_as_index(at);
    if (k == 2) {
        offer(&g.d, i);
        access_memory();
    }
    release(m);
    both("add.s%u %%%c%d, %%%c%d, %d;\nsetp.%s.%s%u %%p%d, %%%c%d, %lld;\n", bits, c, next, c, i, step,
         of[which], which % 3 == 2 ? "s" : s, bits, p, c, next, limit);
    if (zero)
        both("selp.b%u %%%c%d, 0, %%%c%d, %%p%d;\n", bits, c, i, c, next, p);
    else
        both("selp.b%u %%%c%d, %%%c%d, 0, %%p%d;\n", bits, c, i, c, next, p);
    both("add.s32 %%r%d, %%r%d, 1;\nsetp.lt.s32 %%p%d, %%r%d, %d;\n@%%p%d bra L%d;\n", rounds, rounds, p,
         rounds, 3 + (int)below(40), p, top);
}

// Pairs of elements at distances that are halved or doubled, as in a sort. Now and then some of it is wrong.
static void pairs(void)
{
    int top = g.nlabels++, end = g.nlabels++, pred = g.np++, s = g.nr++, m = g.nr++, i = g.nr++,
        x = pick(&g.r), t = g.nr++;
    bool rising = !below(3);
    if (below(2))
        both("and.b32 %%r%d, %%r%d, %d;\n", t, x, below(2) ? 31 : (int)below(100)), x = t;
    if (below(4))
        both("mov.u32 %%r%d, %d;\n", s, below(5) ? rising ? 1 : 1 << below(8) : (int)below(100));
    else
        both("min.u32 %%r%d, %%r%d, %d;\n", s, pick(&g.r), below(3) ? 64 : (int)below(100));
    if (!below(4))
        both("shr.u32 %%r%d, %%r%d, %d;\n", s, s, (int)below(4));
    both("L%d:\n", top);
    use_fuel();
    if (rising)
        both("setp.%s.s32 %%p%d, %%r%d, %d;\n@%%p%d bra L%d;\n", below(2) ? "ge" : "gt", pred, s,
             below(2) ? 64 : (int)below(200), pred, end);
    else
        both("setp.eq.s32 %%p%d, %%r%d, %d;\n@%%p%d bra L%d;\n", pred, s, below(3) ? 0 : 77, pred, end);
    both("add.s32 %%r%d, %%r%d, %d;\n", m, s, below(9) ? -1 : (int)below(3) - 1);
    if (below(2))
        both("and.b32 %%r%d, %%r%d, %%r%d;\n", m, m, x);
    else
        both("and.b32 %%r%d, %%r%d, %%r%d;\n", m, x, m);
    both("shl.b32 %%r%d, %%r%d, 1;\nsub.s32 %%r%d, %%r%d, %%r%d;\n", i, x, i, i, m);
    if (below(2))
        both("add.s32 %%r%d, %%r%d, %%r%d;\n", i, i, s);
    use_as_index(i);
    if (rising)
        both(below(6) ? "shl.b32 %%r%d, %%r%d, 1;\n" : "mul.lo.s32 %%r%d, %%r%d, 3;\n", s, s);
    else
        both(below(6) ? "shr.u32 %%r%d, %%r%d, 1;\n" : "div.u32 %%r%d, %%r%d, 3;\n", s, s);
    both("bra L%d;\nL%d:\n", top, end);
}

// Neighbours at distances that are doubled, as in a reduction: an element in each 2 * distance is chosen by a
// remainder, a mask or a product. Now and then some of it is wrong.
static void neighbours(void)
{
    int top = g.nlabels++, next = g.nlabels++, p = g.np++, s = g.nr++, twice = g.nr++, i = g.nr++, m = g.nr++;
    int x = below(2) ? g.nr++ : pick(&g.r), limit = below(4) ? 16 << below(4) : (int)below(200);
    unsigned how = below(3);
    if (x == g.nr - 1)
        both("and.b32 %%r%d, %%r%d, %d;\n", x, pick(&g.r), below(2) ? 31 : (int)below(100));
    both("mov.u32 %%r%d, %d;\nL%d:\n", s, below(5) ? 1 : (int)below(6), top);
    use_fuel();
    both(below(7) ? "shl.b32 %%r%d, %%r%d, 1;\n" : "mul.lo.s32 %%r%d, %%r%d, 3;\n", twice, s);
    if (how == 0) {
        both("rem.%s32 %%r%d, %%r%d, %%r%d;\n", sign(), m, x, below(6) ? twice : s);
    } else if (how == 1) {
        both("add.s32 %%r%d, %%r%d, %d;\nand.b32 %%r%d, %%r%d, %%r%d;\n", m, below(6) ? twice : s,
             below(8) ? -1 : 1, m, x, m);
    } else {
        both("mul.lo.s32 %%r%d, %%r%d, %%r%d;\n", i, below(6) ? twice : s, x);
        both("setp.%s.%s32 %%p%d, %%r%d, %d;\n", below(3) ? "ge" : "gt", sign(), p, i,
             below(3) ? limit : (int)below(99));
    }
    if (how < 2)
        both("mov.b32 %%r%d, %%r%d;\nsetp.%s.s32 %%p%d, %%r%d, %d;\n", i, x, below(8) ? "ne" : "gt", p, m,
             below(8) ? 0 : 1);
    both("@%%p%d bra L%d;\n", p, next);
    if (below(8))
        both("add.s32 %%r%d, %%r%d, %%r%d;\n", i, i, below(6) ? s : twice);
    use_as_index(i);
    both("L%d:\nmov.b32 %%r%d, %%r%d;\nsetp.%s.u32 %%p%d, %%r%d, %d;\n@%%p%d bra L%d;\n", next, s, twice,
         below(3) ? "lt" : "le", p, s, limit, p, top);
}

// An index of 32 bits, and beside it the same one in 64 bits. Now and then some of it is wrong.
static void beside(void)
{
    int top = g.nlabels++, end = g.nlabels++, p = g.np++, i = g.nr++, wide = g.nd++, from = pick(&g.r);
    const char *first = sign(), *other = below(5) ? first : sign(), *type = below(5) ? first : sign();
    int step = below(3) ? 1 + (int)below(9) : -1 - (int)below(9), start = (int)below(5);
    char limit[32];
    any32(limit);
    if (below(3)) {
        both("mov.b32 %%r%d, %%r%d;\ncvt.%s64.%s32 %%d%d, %%r%d;\n", i, from, other, other, wide,
             below(8) ? i : pick(&g.r));
    } else {
        both("mov.u32 %%r%d, %d;\nmov.u64 %%d%d, %d;\n", i, start, wide, below(6) ? start : (int)below(9));
    }
    both("setp.%s.%s32 %%p%d, %%r%d, %s;\n@%%p%d bra L%d;\nL%d:\n", step > 0 ? "ge" : "le", type, p, i, limit,
         p, end, top);
    use_fuel();
    struct marks m = mark();
    offer(&g.d, wide);
    access_memory();
    access_memory();
    release(m);
    if (below(8) == 0)
        both("cvt.%s64.%s32 %%d%d, %%r%d;\n", first, first, wide, i);
    both("add.s32 %%r%d, %%r%d, %d;\n", i, i, step);
    if (below(9))
        both("cvt.%s64.%s32 %%d%d, %%r%d;\n", first, first, wide, i);
    if (below(9) == 0)
        both("add.s32 %%r%d, %%r%d, %d;\n", i, i, step);
    both("setp.%s.%s32 %%p%d, %%r%d, %s;\n@%%p%d bra L%d;\nL%d:\n", step > 0 ? "lt" : "gt", type, p, i, limit,
         p, top, end);
}

// The rounds that a compiler puts before an unrolled loop: their number is the low bits of that of all
// rounds, which is computed from a maximum. Now and then some of it is wrong.
static void remainder_loop(int depth)
{
    int top = g.nlabels++, end = g.nlabels++, pred = g.np++, i = g.nr++, most = g.nr++, count = g.nr++;
    unsigned shift = below(7);
    int step = 1 << shift, less = below(5) ? 0 : (int)below(2 * (unsigned)step + 1), limit = pick(&g.r);
    const char *type = below(6) ? "s" : "u";
    both("mov.u32 %%r%d, %%r%d;\n", i, pick(&g.r));
    if (below(4))
        both("min.s32 %%r%d, %%r%d, %d;\n", limit = g.nr++, pick(&g.r), 1 + (int)below(2000));
    if (below(8))
        both("setp.ge.%s32 %%p%d, %%r%d, %%r%d;\n@%%p%d bra L%d;\n", type, pred, i, limit, pred, end);
    both("add.s32 %%r%d, %%r%d, %d;\nmax.%s32 %%r%d, %%r%d, %%r%d;\n", most, i, step - less, type, most, most,
         limit);
    both("add.s32 %%r%d, %%r%d, %d;\nsub.s32 %%r%d, %%r%d, %%r%d;\n", count, most, below(5) ? -1 : step - 1,
         count, count, i);
    if (below(2))
        both("shr.u32 %%r%d, %%r%d, %u;\n", count, count, shift);
    else
        both("div.%s32 %%r%d, %%r%d, %d;\n", below(4) ? "u" : "s", count, count, step);
    if (below(4))
        both("and.b32 %%r%d, %%r%d, %d;\n", count, count, below(2) ? 3 : 1);
    both("setp.eq.s32 %%p%d, %%r%d, 0;\n@%%p%d bra L%d;\nL%d:\n", pred, count, pred, end, top);
    use_fuel();
    struct marks m = mark();
    offer(&g.r, i);
    access_memory();
    statements((int)below(3), depth - 1);
    release(m);
    both("add.s32 %%r%d, %%r%d, %d;\nadd.s32 %%r%d, %%r%d, -1;\n", i, i, step, count, count);
    both("setp.ne.s32 %%p%d, %%r%d, 0;\n@%%p%d bra L%d;\nL%d:\n", pred, count, pred, top, end);
    offer(&g.r, i);
}

// Single rounds one after the other, each left if the remainder says that it was the last, and an unrolled
// loop behind them. Now and then some of it is wrong.
static void unrolled_loop(void)
{
    int top = g.nlabels++, middle = g.nlabels++, end = g.nlabels++, pred = g.np++, i = g.nr++,
        limit = pick(&g.r);
    int from = pick(&g.r), count = g.nr++, rest = g.nr++, step = below(2) ? 1 : 1 + (int)below(70);
    int times = below(6) ? step : 1 + (int)below(70);
    if (below(4))
        both("min.s32 %%r%d, %%r%d, %d;\n", limit = g.nr++, pick(&g.r), 1 + (int)below(3000));
    if (below(8))
        both("setp.ge.s32 %%p%d, %%r%d, %%r%d;\n@%%p%d bra L%d;\n", pred, from, limit, pred, end);
    both("sub.s32 %%r%d, %%r%d, %%r%d;\nadd.s32 %%r%d, %%r%d, %d;\ndiv.u32 %%r%d, %%r%d, %d;\n", count, limit,
         from, count, count, below(6) ? -1 : (int)below(9) - 4, count, count, times);
    both("add.s32 %%r%d, %%r%d, %d;\nand.b32 %%r%d, %%r%d, 3;\nmov.u32 %%r%d, %%r%d;\n", rest, count,
         below(6) ? 1 : (int)below(4), rest, rest, i, from);
    for (int k = 0; k < 3; k++) {
        both("setp.eq.s32 %%p%d, %%r%d, %d;\n@%%p%d bra L%d;\n", pred, rest, below(12) ? k : (int)below(4),
             pred, middle);
        struct marks m = mark();
        for (int n = 0; n < 8; n++)
            offer(&g.r, i);
        if (!below(3))
            access_memory();
        release(m);
        both("add.s32 %%r%d, %%r%d, %d;\n", i, i, below(12) ? step : (int)below(70));
    }
    both("L%d:\n", middle);
    if (below(6))
        both("setp.lt.u32 %%p%d, %%r%d, %d;\n@%%p%d bra L%d;\n", pred, count, below(6) ? 3 : (int)below(5),
             pred, end);
    both("L%d:\n", top);
    use_fuel();
    for (int k = 0; k < 4; k++) {
        struct marks m = mark();
        for (int n = 0; n < 8; n++)
            offer(&g.r, i);
        if (below(2))
            access_memory();
        release(m);
        both("add.s32 %%r%d, %%r%d, %d;\n", i, i, step);
    }
    both("setp.lt.s32 %%p%d, %%r%d, %%r%d;\n@%%p%d bra L%d;\nL%d:\n", pred, i, limit, pred, top, end);
    offer(&g.r, i);
}

static void statements(int n, int depth)
{
    for (int k = 0; k < n && g.budget > 0; k++) {
        g.budget--;
        switch (below(10)) {
        case 0:
        case 1:
        case 2: access_memory(); break;
        case 3:
            if (depth > 0)
                branch(depth);
            break;
        case 4:
            if (depth > 0 && below(4))
                loop(depth);
            else if (depth > 0 && below(2))
                remainder_loop(depth);
            else if (depth > 0 && below(2))
                below(2) ? pairs() : below(2) ? neighbours() : beside();
            else if (depth > 0 && below(2))
                unrolled_loop();
            else if (depth > 0)
                stages();
            break;
        case 5:
            if (below(4))
                predicate();
            else
                float_index();
            break;
        case 6: value64(); break;
        default:
            if (below(8))
                value32();
            else
                swizzle();
        }
    }
}

// The usual index, and now and then the usual guard, so that much is bounded.
static void prologue(void)
{
    static const char *const axis[] = {"x", "y", "z"};
    const char *a = below(4) ? "x" : axis[below(3)];
    g.nr = g.nd = g.np = 2;
    g.nh = 1;
    both("ld.param.u64 %%log, [k_param_0];\nld.param.u64 %%base0, [k_param_1];\nld.param.u64 %%base1, "
         "[k_param_2];\n"
         "cvta.to.global.u64 %%base0, %%base0;\ncvta.to.global.u64 %%base1, %%base1;\nmov.u32 %%fuel, "
         "0;\nmov.u32 %%rs, shared;\n");
    both("mov.u32 %%r0, 0;\nmov.u32 %%r1, 1;\nmov.u64 %%d0, 0;\nmov.u64 %%d1, 1;\nmov.u16 %%h0, 0;\nmov.u64 "
         "%%d9999, 0;\n");
    for (int i = 0; i < SCALARS; i++) {
        both("ld.param.u32 %%r%d, [k_param_%d];\n", g.nr, 3 + i);
        offer(&g.r, g.nr++);
    }
    both("mov.u32 %%r%d, %%ctaid.%s;\nmov.u32 %%r%d, %%ntid.%s;\nmov.u32 %%r%d, %%tid.%s;\n", g.nr, a,
         g.nr + 1, a, g.nr + 2, a);
    both("mad.lo.s32 %%r%d, %%r%d, %%r%d, %%r%d;\n", g.nr + 3, g.nr, g.nr + 1, g.nr + 2);
    for (int i = 0; i < 4; i++)
        offer(&g.r, g.nr++);
    for (int i = 0; i < 4; i++)
        offer(&g.r, g.nr - 1);
    both("setp.lt.s32 %%p1, %%r%d, %d;\n", g.nr - 1, (int)below(100));
    offer(&g.p, 1);
    both("mov.u32 %%r%d, %%tid.%s;\nmov.u32 %%r%d, %%nctaid.%s;\n", g.nr, axis[below(3)], g.nr + 1,
         axis[below(3)]);
    offer(&g.r, g.nr++);
    offer(&g.r, g.nr++);
    both("cvt.s64.s32 %%d%d, %%r%d;\n", g.nd, g.nr - 3);
    offer(&g.d, g.nd++);
    both("ld.param.u64 %%d%d, [k_param_%d];\n", g.nd, 3 + SCALARS);
    offer(&g.d, g.nd++);
}

static const char HEAD[] = ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 "
                           "shared[4096];\n.visible .entry k(\n";

static void make_kernel(void)
{
    g.analysed.len = g.executed.len = 0;
    g.r.n = g.d.n = g.p.n = g.nlabels = g.naccesses = g.nf = 0;
    g.budget = 10 + (int)below(40);
    both("%s", HEAD);
    for (int i = 0; i < 4 + SCALARS; i++)
        both(".param .u%d k_param_%d%s", i < 3 || i == 3 + SCALARS ? 64 : 32, i,
             i == 3 + SCALARS ? ")\n{\n" : ",\n");
    both(".reg .b16 %%h<400>;\n.reg .b32 %%r<10000>;\n.reg .b32 %%rs;\n.reg .b32 %%fuel;\n.reg .b64 "
         "%%d<10000>;\n"
         ".reg .b64 %%log;\n.reg .f32 %%f<400>;\n.reg .b64 %%base<2>;\n.reg .pred %%p<2000>;\n.reg .pred "
         "%%pf;\n");
    prologue();
    statements(6 + (int)below(10), 3);
    both("DONE:\nret;\n}\n");
}
