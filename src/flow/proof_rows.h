// SPDX-License-Identifier: MIT
// Small kernels, each with a launch and the answer for its last access, for proof_test.c and closed_test.c.
// The rows that must stay unknown are pairs of those that must not: one number differs, and a register wraps
// around.
#ifndef MOAT_FLOW_PROOF_ROWS_H
#define MOAT_FLOW_PROOF_ROWS_H

#include <stdint.h>

#include "flow/proof.h"

// Registers: %r is a scalar and index, %i = blockIdx.x * blockDim.x + threadIdx.x, %a the pointer, %n and
// %m scalars of 32 bits, %s one of 64 bits.
#define HEAD                                                                                                 \
    ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 tile[1024];\n.global .align 8 "    \
    ".b8 table[256];\n"                                                                                      \
    ".visible .entry k(.param .u64 k_a, .param .u32 k_n, .param .u32 k_m, .param .u64 k_s)\n{\n"             \
    ".reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b32 %i; .reg .b32 %n; .reg .b32 %m; .reg .b64 %d<40>; .reg "   \
    ".b64 %a;\n"                                                                                             \
    ".reg .b64 %s; .reg .pred %p<9>; .reg .f32 %f<4>;\n"                                                     \
    "ld.param.u64 %d0, [k_a]; cvta.to.global.u64 %a, %d0; ld.param.u32 %n, [k_n]; ld.param.u32 %m, [k_m];\n" \
    "ld.param.u64 %s, [k_s]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"            \
    "mad.lo.s32 %i, %r0, %r1, %r2;\n"
#define TAIL "\nEND: ret;\n}\n"
// a[REG] as 4 bytes, by a signed or unsigned index.
#define STORE(reg) "mul.wide.s32 %d8, " reg ", 4; add.s64 %d9, %a, %d8; st.global.u32 [%d9], %r1;\n"
#define STORE_U(reg) "mul.wide.u32 %d8, " reg ", 4; add.s64 %d9, %a, %d8; st.global.u32 [%d9], %r1;\n"

// What a compiler puts before an unrolled loop: of all rounds, whose number is
// (max(i + MORE, n) - 1 - i) / 128 + 1, the last one, two or three.
#define ROUNDS(more)                                                                                         \
    "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\nadd.s32 %r3, %i, " more "; max.s32 %r4, %r3, %n; not.b32 %r5, " \
    "%i; add.s32 %r6, %r4, %r5;\nshr.u32 %r7, %r6, 7; add.s32 %r8, %r7, 1; and.b32 %r9, %r8, 3; "            \
    "setp.eq.s32 %p2, %r9, 0; @%p2 bra END;\nmov.u32 %r10, %i;\nLOOP: " STORE(                               \
        "%r10") "add.s32 %r10, %r10, 128; add.s32 %r9, %r9, -1; setp.ne.s32 %p3, %r9, 0; @%p3 bra LOOP;\n"

// A loop of which each round is four of a step of m, behind one, two or three single rounds that follow the
// last bits of the number of all rounds. FIRST is what that number, %r4, is divided by; NEXT what a single
// round adds; MOVED what the loop adds. Each access is the last one of its round.
#define UNROLLED(first, next, moved)                                                                      \
    "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\nnot.b32 %r3, %i; add.s32 %r3, %r3, %n; " first               \
    " add.s32 %r5, %r4, 1; and.b32 %r6, %r5, 3;\nmov.u32 %r7, %i; setp.eq.s32 %p2, %r6, 0; @%p2 bra M;\n" \
    "add.s32 %r7, %i, %m; setp.eq.s32 %p3, %r6, 1; @%p3 bra M;\n"                                         \
    "add.s32 %r7, %r7, " next "; setp.eq.s32 %p4, %r6, 2; @%p4 bra M;\nadd.s32 %r7, %r7, %m;\n"           \
    "M: setp.lt.u32 %p5, %r4, 3; @%p5 bra END; mul.lo.s32 %r9, %m, 3; shl.b32 %r10, %m, 2;\n"             \
    "LOOP: add.s32 %r8, %r7, %r9;\n" STORE("%r8") "add.s32 %r7, %r7, " moved                              \
                                                  "; setp.lt.s32 %p6, %r7, %n; @%p6 bra LOOP;\n"

// A loop of n rounds in which %r10 goes from one stage to the next.
#define STAGE(start, next)                                                 \
    "mov.u32 %r10, " start "; mov.u32 %r12, 0;\nLOOP: " STORE("%r10") next \
        " add.s32 %r12, %r12, 1; setp.lt.s32 %p3, %r12, %n; @%p3 bra LOOP;\n"

// The exponent of a number that is loaded, %r5, if its magnitude has a relation to c; END otherwise.
#define EXPONENT(relation, c, end)                                                                       \
    "ld.global.f32 %f0, [%a]; abs.f32 %f1, %f0; setp." relation ".f32 %p1, %f1, " c "; @" end "%p1 bra " \
    "END;\nmov.b32 %r3, %f0; shr.u32 %r4, %r3, 23; and.b32 %r5, %r4, 255;\n"
// What sines of large arguments look up by the exponent.
#define WORD \
    "add.s32 %r6, %r5, -128; shr.u32 %r7, %r6, 5; mov.u32 %r8, 6; sub.s32 %r9, %r8, %r7;\n" STORE("%r9")

// The second one of a pair of elements that are %r3 apart, as in a sort, for each thread; %p1 ends it.
#define PAIR(test, next)                                                                            \
    "L: " test " @%p1 bra END; add.s32 %r4, %r3, -1; and.b32 %r5, %r4, %r2; shl.b32 %r6, %r2, 1;\n" \
    "sub.s32 %r7, %r6, %r5; add.s32 %r8, %r7, %r3;\n" STORE("%r8") next " bra L;\n"
// The same for all distances below a limit that is doubled, %r10, and below half of MOST.
#define PAIRS(most)                                                                                        \
    "mov.u32 %r10, 2;\nO: setp.gt.u32 %p2, %r10, %n; @%p2 bra END; min.u32 %r9, %r10, " most "; shr.u32 "  \
    "%r3, %r9, 1;\nL: setp.eq.s32 %p1, %r3, 0; @%p1 bra N; add.s32 %r4, %r3, -1; and.b32 %r5, %r2, %r4;\n" \
    "shl.b32 %r6, %r2, 1; sub.s32 %r7, %r6, %r5; add.s32 %r8, %r7, %r3;\n" STORE(                          \
        "%r8") "shr.u32 %r3, %r3, 1; bra L;\nN: shl.b32 %r10, %r10, 1; bra O;\n"

// Neighbours at a distance %r3 that is doubled, below the number of threads: an element in each 2 * %r3 is
// chosen, %p1 set for others, and the one at that distance from %r5 is written.
#define NEIGHBOURS(choose, next)                                                         \
    "mov.u32 %r3, 1; L: " next " " choose " @%p1 bra M; add.s32 %r6, %r5, %r3;\n" STORE( \
        "%r6") "M: setp.lt.u32 %p2, %r4, %r1; mov.u32 %r3, %r4; @%p2 bra L;\n"
#define BY_REMAINDER "rem.u32 %r7, %r2, %r4; setp.ne.s32 %p1, %r7, 0; mov.u32 %r5, %r2;"
#define BY_PRODUCT(limit) "mul.lo.s32 %r5, %r4, %r2; setp.ge.u32 %p1, %r5, " limit ";"

// A tile of 32 elements for each block, which its threads write from the end on.
#define TILES "mul.lo.s32 %r3, %r0, %r1; sub.s32 %r4, %r3, %r2; add.s32 %r4, %r4, 31;\n" STORE("%r4")

// A loop that keeps its index %r3 in %d3 beside, made by WIDEN.
#define BESIDE(start, next, widen)                                                                           \
    start " L: add.s64 %d4, %a, %d3; st.global.u8 [%d4], %h1; " next " " widen " setp.lt.s64 %p2, %d3, %s; " \
          "@%p2 bra L;\n"
#define WIDENED_START "mov.u32 %r3, %i; cvt.s64.s32 %d3, %r3; setp.ge.s64 %p1, %d3, %s; @%p1 bra END;"

// A copy of element %i to shared memory; %p1: it is below %n.
#define COPY(condition, operand)                                                                             \
    "setp.lt.s32 %p1, %i, %n; mul.wide.s32 %d8, %i, 4; add.s64 %d9, %a, %d8; mov.u32 %r4, tile;\n" condition \
    " cp.async.ca.shared.global [%r4], [%d9], 4, " operand ";\n"

// Bits of the thread's index, moved and flipped, as for a tile in shared memory whose rows are turned.
#define TURNED(flipped)                                                                            \
    "and.b32 %r3, %r2, 1; neg.s32 %r4, %r3; and.b32 %r5, %r4, " flipped "; shl.b32 %r6, %r2, 3;\n" \
    "and.b32 %r7, %r6, 112; shl.b32 %r8, %r2, 4; and.b32 %r9, %r8, 768; or.b32 %r10, %r7, %r9;\n"  \
    "xor.b32 %r11, %r10, %r5;\n" STORE_U("%r11")

struct row {
    const char *name, *body;
    uint32_t grid, block;
    int32_t n, m;
    int64_t s;
    int verdict, reason;
    int64_t lowest, highest;
};

#define BOUNDED PROOF_BOUNDED, 0
#define UNKNOWN(why) PROOF_UNKNOWN, PROOF_WHY_##why, 0, 0
#define UNREACHABLE PROOF_UNREACHABLE, 0, 0, 0

static const struct row rows[] = {
    {"affine", STORE("%i"), 4, 256, 0, 0, 0, BOUNDED, 0, 4095},
    {"guard", "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n" STORE("%i"), 4, 256, 1000, 0, 0, BOUNDED, 0, 3999},
    {"guard that never holds", "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n" STORE("%i"), 4, 256, 0, 0, 0,
     UNREACHABLE},
    // 2^24 * 256 threads: i wraps to negative numbers, which pass the guard.
    {"rounds before an unrolled loop", ROUNDS("128"), 3, 128, 300, 0, 0, BOUNDED, 0, 1199},
    {"one round too many", ROUNDS("256"), 3, 128, 300, 0, 0, BOUNDED, 0, 2047},
    {"rounds whose number wraps", ROUNDS("128"), 1 << 24, 128, INT32_MAX - 50, 0, 0, UNKNOWN(WRAPS)},
    {"unrolled loop behind single rounds", UNROLLED("div.u32 %r4, %r3, %m;", "%m", "%r10"), 1, 32, 1000, 32,
     0, BOUNDED, 384, 3999},
    {"unrolled loop with a step of 1", UNROLLED("div.u32 %r4, %r3, %m;", "%m", "%r10"), 1, 32, 1000, 1, 0,
     BOUNDED, 12, 3999},
    {"unrolled loop behind single rounds of another step", UNROLLED("div.u32 %r4, %r3, %m;", "3", "%r10"), 1,
     32, 1000, 32, 0, BOUNDED, 384, 4363},
    {"unrolled loop, its rounds divided by another number", UNROLLED("shr.u32 %r4, %r3, 6;", "%m", "%r10"), 1,
     32, 1000, 32, 0, BOUNDED, 384, 4095},
    {"unrolled loop that goes on by less", UNROLLED("div.u32 %r4, %r3, %m;", "%m", "%m"), 1, 32, 1000, 32, 0,
     BOUNDED, 384, 4383},
    {"choice by a number that is known on one way only",
     "and.b32 %r6, %i, 3; mov.u32 %r7, 0; setp.eq.s32 %p1, %r6, 3; @%p1 bra M; mov.u32 %r7, 30;\n"
     "M: setp.lt.s32 %p2, %r6, 2; @%p2 bra END;\n" STORE("%r7"),
     1, 32, 0, 0, 0, BOUNDED, 0, 123},
    {"quotient that a guard makes small, and without the guard",
     "setp.ge.s32 %p1, %i, %n; @%p1 bra M; shr.s32 %r4, %i, 2;\n" STORE(
         "%r4") "M: shr.s32 %r5, %i, 2;\n" STORE("%r5"),
     1, 64, 10, 0, 0, BOUNDED, 0, 63},
    {"stage that starts again",
     STAGE("-1", "add.s32 %r13, %r10, 1; setp.gt.s32 %p1, %r13, 2; selp.b32 %r10, 0, %r13, %p1;"), 1, 32, 50,
     0, 0, BOUNDED, -4, 11},
    {"stage that starts again, by another comparison",
     STAGE("%i", "add.s32 %r13, %r10, 3; setp.lt.u32 %p1, %r13, 9; selp.b32 %r10, %r13, 0, %p1;"), 1, 8, 50,
     0, 0, BOUNDED, 0, 35},
    {"stage that starts again if it is equal",
     STAGE("0", "add.s32 %r13, %r10, 1; setp.eq.s32 %p1, %r13, 3; selp.b32 %r10, 0, %r13, %p1;"), 1, 32, 50,
     0, 0, BOUNDED, 0, 11},
    {"stage that starts above the number it is compared with",
     STAGE("5", "add.s32 %r13, %r10, 1; setp.eq.s32 %p1, %r13, 3; selp.b32 %r10, 0, %r13, %p1;"), 1, 32, 50,
     0, 0, UNKNOWN(CARRIED)},
    {"stage that goes on above the limit",
     STAGE("0", "add.s32 %r13, %r10, 1; setp.gt.s32 %p1, %r13, 2; selp.b32 %r10, %r13, 0, %p1;"), 1, 32, 50,
     0, 0, UNKNOWN(CARRIED)},
    {"stage of which another value is compared",
     STAGE("0", "add.s32 %r13, %r10, 1; setp.gt.s32 %p1, %r10, 2; selp.b32 %r10, 0, %r13, %p1;"), 1, 32, 50,
     0, 0, UNKNOWN(CARRIED)},
    {"stage that wraps around before it is compared",
     STAGE("%n", "add.s32 %r13, %r10, 1; setp.gt.s32 %p1, %r13, 2; selp.b32 %r10, 0, %r13, %p1;"), 1, 32,
     INT32_MAX, 0, 0, UNKNOWN(CARRIED)},
    {"stage that is set, and the bits below it",
     "mov.u32 %r10, 0; mov.u32 %r12, 0;\nLOOP: or.b32 %r13, %r10, %r2;\n" STORE(
         "%r13") "mov.u32 %r10, 512; add.s32 %r12, %r12, 1; setp.lt.s32 %p3, %r12, %n; @%p3 bra LOOP;\n",
     1, 256, 9, 0, 0, BOUNDED, 0, 3071},
    {"stage that is subtracted, and bits below it",
     "mov.u32 %r10, 0; mov.u32 %r12, 0;\nLOOP: or.b32 %r13, %r10, %r2;\n" STORE(
         "%r13") "sub.s32 %r10, 512, %r10; add.s32 %r12, %r12, 1; setp.lt.s32 %p3, %r12, %n; @%p3 bra "
                 "LOOP;\n",
     1, 256, 9, 0, 0, BOUNDED, 0, 4095},
    {"bits of a stage that is a remainder",  // 3 xor 3 is 0
     "mov.u32 %r10, 0; mov.u32 %r12, 0;\nLOOP: xor.b32 %r13, %r10, 3;\n" STORE(
         "%r13") "add.s32 %r11, %r10, 1; rem.u32 %r10, %r11, 5; add.s32 %r12, %r12, 1;\n"
                 "setp.lt.s32 %p3, %r12, %n; @%p3 bra LOOP;\n",
     1, 32, 9, 0, 0, BOUNDED, 0, 31},
    {"bits of a tile whose rows are turned", TURNED("1088"), 1, 64, 0, 0, 0, BOUNDED, 0, 0x770 * 4 + 3},
    {"bits of a tile, another one turned", TURNED("1216"), 1, 64, 0, 0, 0, BOUNDED, 0, 0x7F0 * 4 + 3},
    {"bits at their places",  // 16 * (tid & 7) + 4 * (tid & 32) + 256 * (tid >> 3 & 3)
     "and.b32 %r3, %r2, 32; and.b32 %r4, %r2, 7; shl.b32 %r5, %r2, 5; and.b32 %r6, %r5, 768; shl.b32 %r7, "
     "%r4, 4;\nshl.b32 %r8, %r3, 2; or.b32 %r9, %r7, %r8; or.b32 %r10, %r9, %r6;\n" STORE("%r10"),
     1, 64, 0, 0, 0, BOUNDED, 0, 4035},
    {"remainder and quotient at other places",  // x % 48 * 2048 + x / 48 * 128 + 4 * (tid & 31)
     "shl.b32 %r3, %r0, 3; shr.u32 %r4, %r2, 5; or.b32 %r5, %r3, %r4; mul.hi.s32 %r6, %r5, 715827883;\n"
     "shr.u32 %r7, %r6, 31; shr.s32 %r8, %r6, 3; add.s32 %r9, %r7, %r8; mul.lo.s32 %r10, %r9, 48;\n"
     "sub.s32 %r11, %r5, %r10; shl.b32 %r12, %r9, 7; and.b32 %r13, %r2, 31; shl.b32 %r13, %r13, 2;\n"
     "or.b32 %r14, %r12, %r13; shl.b32 %r15, %r11, 11; add.s32 %r16, %r14, %r15;\n" STORE("%r16"),
     96, 64, 0, 0, 0, BOUNDED, 0, 344051},
    {"place in a tile and the tile's number",  // (32 * blockIdx.x + 4 * (tid & 7)) / 128 is blockIdx.x / 4
     "shl.b32 %r3, %r0, 5; shl.b32 %r4, %r2, 2; and.b32 %r5, %r4, 28; or.b32 %r6, %r3, %r5;\n"
     "shr.u32 %r7, %r6, 7; mul.lo.s32 %r8, %r7, 100; mad.lo.s32 %r9, %r0, -25, %r8;\n" STORE("%r9"),
     64, 32, 0, 0, 0, BOUNDED, -300, 3},
    {"larger place in a tile and the tile's number",  // 4 * (tid & 15) may be in the next one
     "shl.b32 %r3, %r0, 5; shl.b32 %r4, %r2, 2; and.b32 %r5, %r4, 60; add.s32 %r6, %r3, %r5;\n"
     "shr.u32 %r7, %r6, 7; mul.lo.s32 %r8, %r7, 100; mad.lo.s32 %r9, %r0, -25, %r8;\n" STORE("%r9"),
     64, 32, 0, 0, 0, BOUNDED, -300, 103},
    {"remainder of 16 bits",
     "and.b32 %r3, %r2, 255; cvt.u16.u32 %h1, %r3; mul.lo.s16 %h2, %h1, 171; shr.u16 %h3, %h2, 13;\n"
     "mul.lo.s16 %h4, %h3, 48; sub.s16 %h5, %h1, %h4; cvt.u32.u16 %r5, %h5;\n" STORE_U("%r5"),
     1, 256, 0, 0, 0, BOUNDED, 0, 191},
    {"smaller one of two, divided",  // at most 255 / 4, and at least 0 / 4
     "min.s32 %r3, %i, %n; shr.s32 %r4, %r3, 2; setp.lt.s32 %p1, %r3, 0; @%p1 bra END;\n" STORE("%r4"), 4,
     256, 255, 0, 0, BOUNDED, 0, 255},
    {"maximum less one of its forms",  // max(i, 68) + 255 - i is at least 255, at most 323
     "max.s32 %r3, %i, 68; add.s32 %r4, %r3, 255; sub.s32 %r5, %r4, %i;\n" STORE("%r5"), 1, 256, 0, 0, 0,
     BOUNDED, 1020, 1295},
    {"minima that differ by a constant",  // min(n, i) - (min(n + 1, i + 1) - 1)
     "min.s32 %r3, %n, %i; add.s32 %r4, %i, 1; add.s32 %r5, %n, 1; min.s32 %r6, %r4, %r5;\nsub.s32 %r7, %r6, "
     "%r3;\n" STORE("%r7"),
     4, 256, 300, 0, 0, BOUNDED, 4, 7},
    {"maximum with a loaded number", "ld.global.u32 %r3, [%a]; max.s32 %r4, %i, %r3;\n" STORE("%r4"), 4, 256,
     0, 0, 0, UNKNOWN(LOADED_INDEX)},
    {"greater one of two, divided", "max.s32 %r3, %i, 68; shr.s32 %r4, %r3, 2;\n" STORE("%r4"), 1, 256, 0, 0,
     0, BOUNDED, 68, 255},
    {"minimum of another way",  // of which it is known that i is at least 100
     "setp.lt.u32 %p1, %r2, 10; @%p1 bra LOW; setp.lt.s32 %p2, %i, 100; @%p2 bra END;\n"
     "min.s32 %r3, %i, %n;\n" STORE("%r3") "bra END;\nLOW: min.s32 %r4, %i, %n;\n" STORE("%r4"),
     4, 256, 200, 0, 0, BOUNDED, 0, 803},
    {"minimum of the other way",
     "setp.ge.u32 %p1, %r2, 10; @%p1 bra LOW; setp.lt.s32 %p2, %i, 100; @%p2 bra END;\n"
     "min.s32 %r3, %i, %n;\n" STORE("%r3") "bra END;\nLOW: min.s32 %r4, %i, %n;\n" STORE("%r4"),
     4, 256, 200, 0, 0, BOUNDED, 40, 803},
    {"minima that do not, in order",
     "min.s32 %r3, %i, %n; add.s32 %r4, %i, 1; add.s32 %r5, %n, 2; min.s32 %r6, %r4, %r5;\nsub.s32 %r7, %r6, "
     "%r3;\n" STORE("%r7"),
     4, 256, 300, 0, 0, BOUNDED, -1196, 11},
    {"minima that do not",
     "min.s32 %r3, %n, %i; add.s32 %r4, %i, 1; add.s32 %r5, %n, 2; min.s32 %r6, %r4, %r5;\nsub.s32 %r7, %r6, "
     "%r3;\n" STORE("%r7"),
     4, 256, 300, 0, 0, BOUNDED, -1196, 11},
    {"stage that is flipped", STAGE("0", "xor.b32 %r10, %r10, 1;"), 1, 32, 9, 0, 0, BOUNDED, 0, 7},
    {"stage that is flipped from 2 on", STAGE("2", "xor.b32 %r10, %r10, 1;"), 1, 32, 9, 0, 0, BOUNDED, 0, 15},
    {"stage that is subtracted", STAGE("1", "sub.s32 %r10, 5, %r10;"), 1, 32, 9, 0, 0, BOUNDED, 0, 23},
    {"stage that is subtracted from less", STAGE("6", "sub.s32 %r10, 5, %r10;"), 1, 32, 9, 0, 0,
     UNKNOWN(CARRIED)},
    {"stage that is masked", STAGE("7", "add.s32 %r11, %r10, 1; and.b32 %r10, %r11, 3;"), 1, 32, 9, 0, 0,
     BOUNDED, 0, 31},
    {"stage that is a remainder", STAGE("0", "add.s32 %r11, %r10, 1; rem.u32 %r10, %r11, 3;"), 1, 32, 9, 0, 0,
     BOUNDED, 0, 11},
    {"stage that is a remainder of a negative number",
     STAGE("0", "sub.s32 %r11, %r10, 1; rem.s32 %r10, %r11, 3;"), 1, 32, 9, 0, 0, UNKNOWN(CARRIED)},
    {"stage that starts anywhere", STAGE("%m", "xor.b32 %r10, %r10, 1;"), 1, 32, 9, -1, 0, UNKNOWN(CARRIED)},
    {"two ways around, one of which wraps",
     "mov.u32 %r10, 0; mov.u32 %r12, 0;\nLOOP: " STORE(
         "%r10") "add.s32 %r12, %r12, 1; setp.ge.s32 %p1, %r12, %n; "
                 "@%p1 bra END;\nsetp.lt.s32 %p2, %r12, %m; @%p2 bra OTHER; add.s32 %r11, %r10, 5; and.b32 "
                 "%r10, %r11, 7; bra "
                 "LOOP;\n"
                 "OTHER: sub.s32 %r10, 1, %r10; bra LOOP;\n",
     1, 32, 9, 5, 0, UNKNOWN(CARRIED)},
    {"mask with holes", "and.b32 %r3, %i, 5;\n" STORE("%r3"), 4, 256, 0, 0, 0, BOUNDED, 0, 23},
    {"flipped multiples",  // 1024 * tid xor 1024
     "and.b32 %r3, %r2, 1; shl.b32 %r4, %r3, 10; xor.b32 %r5, %r4, 1024;\n" STORE("%r5"), 1, 32, 0, 0, 0,
     BOUNDED, 0, 4099},
    {"flipped multiples of less",
     "and.b32 %r3, %r2, 1; shl.b32 %r4, %r3, 10; xor.b32 %r5, %r4, 512;\n" STORE("%r5"), 1, 32, 0, 0, 0,
     BOUNDED, 2048, 6147},
    {"good grid", "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n" STORE("%i"), 1 << 22, 256, 1 << 20, 0, 0,
     BOUNDED, 0, (4 << 20) - 1},
    {"bad grid", "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n" STORE("%i"), 1 << 24, 256, 1 << 20, 0, 0,
     UNKNOWN(WRAPS)},
    {"bad grid, no guard", STORE("%i"), 1 << 24, 256, 0, 0, 0, UNKNOWN(WRAPS)},
    {"unsigned guard over a wrapped index", "setp.ge.u32 %p1, %i, %n; @%p1 bra END;\n" STORE_U("%i"), 1 << 25,
     256, 1 << 20, 0, 0, BOUNDED, 0, (4 << 20) - 1},
    {"guard on a sum that fits", "add.s32 %r3, %i, %m; setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE("%i"),
     4, 256, 1000, 100, 0, BOUNDED, 0, 3599},
    {"guard on a sum that wraps",
     "add.s32 %r3, %i, %m; setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE("%i"), 4, 256, 1000, 2147483000,
     0, BOUNDED, 0, 4095},
    {"index times a fitting pitch", "mul.lo.s32 %r3, %i, %n;\n" STORE("%r3"), 4, 256, 1000, 0, 0, BOUNDED, 0,
     4092003},
    {"index times a pitch that wraps", "mul.lo.s32 %r3, %i, %n;\n" STORE("%r3"), 4, 256, 3000000, 0, 0,
     UNKNOWN(WRAPS)},
    {"signed index below zero", "sub.s32 %r3, %i, 5;\n" STORE("%r3"), 1, 32, 0, 0, 0, BOUNDED, -20, 107},
    {"unsigned index below zero", "sub.s32 %r3, %i, 5;\n" STORE_U("%r3"), 1, 32, 0, 0, 0, UNKNOWN(WRAPS)},
    {"unsigned guard of a difference",
     "sub.s32 %r3, %i, 5; setp.ge.u32 %p1, %r3, %n; @%p1 bra END;\n" STORE("%r3"), 1, 32, 10, 0, 0, BOUNDED,
     0, 39},
    {"unsigned guard, limit too large",
     "sub.s32 %r3, %i, 5; setp.ge.u32 %p1, %r3, %n; @%p1 bra END;\n" STORE("%r3"), 1, 32, -2, 0, 0, BOUNDED,
     -20, 107},
    {"not zero", "setp.eq.s32 %p1, %i, 0; @%p1 bra END; add.s32 %r3, %i, -1;\n" STORE("%r3"), 1, 32, 0, 0, 0,
     BOUNDED, 0, 123},
    {"both guards",
     "setp.lt.s32 %p1, %i, %n; setp.gt.s32 %p2, %i, %m; and.pred %p3, %p1, %p2; @!%p3 bra END;\n" STORE("%i"),
     4, 256, 900, 10, 0, BOUNDED, 44, 3599},
    {"either guard",
     "setp.lt.s32 %p1, %i, %n; setp.gt.s32 %p2, %i, %m; or.pred %p3, %p1, %p2; @!%p3 bra END;\n" STORE("%i"),
     4, 256, 900, 10, 0, BOUNDED, 0, 4095},
    {"neither guard",
     "setp.ge.s32 %p1, %i, %n; setp.le.s32 %p2, %i, %m; or.pred %p3, %p1, %p2; @%p3 bra END;\n" STORE("%i"),
     4, 256, 900, 10, 0, BOUNDED, 44, 3599},
    {"predicated",
     "setp.lt.s32 %p1, %i, %n; mul.wide.s32 %d8, %i, 4; add.s64 %d9, %a, %d8; @%p1 st.global.u32 [%d9], "
     "%r1;\n",
     4, 256, 900, 10, 0, BOUNDED, 0, 3599},
    {"tile of a stride",  // 15 lines of n elements of 2 bytes, and 16 more elements
     "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, "
     "[%a], %n;\n",
     1, 32, 100, 0, 0, BOUNDED, 0, 3031},
    {"tile of a stride that differs between threads",
     "wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%a], {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1}, "
     "%i;\n",
     1, 32, 0, 0, 0, BOUNDED, 0, 1923},
    {"tile of a negative stride",
     "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, "
     "[%a], %n;\n",
     1, 32, -100, 0, 0, UNKNOWN(EXTENT)},
    {"tile of a loaded stride",
     "ld.global.u32 %r3, [%a]; wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10, %r11, %r12, %r13, "
     "%r14, %r15, %r16, %r17}, [%a], %r3;\n",
     1, 32, 100, 0, 0, UNKNOWN(LOADED_INDEX)},
    {"bulk copy of so many bytes",
     "mov.u32 %r4, tile; cp.async.bulk.global.shared::cta.bulk_group [%a], [%r4], %n;\n", 1, 32, 256, 0, 0,
     BOUNDED, 0, 255},
    {"copy of no bytes where a guard does not hold", COPY("selp.b32 %r3, 4, 0, %p1;", "%r3"), 4, 256, 1000, 0,
     0, BOUNDED, 0, 3999},
    {"copy of no bytes where a guard holds", COPY("selp.b32 %r3, 0, 4, %p1;", "%r3"), 4, 256, 1000, 0, 0,
     BOUNDED, 4000, 4095},
    {"copy of some bytes where a guard does not hold", COPY("selp.b32 %r3, 4, 2, %p1;", "%r3"), 4, 256, 1000,
     0, 0, BOUNDED, 0, 4095},
    {"copy unless a guard holds", COPY("not.pred %p2, %p1;", "%p2"), 4, 256, 1000, 0, 0, BOUNDED, 0, 3999},
    {"copy under two guards", COPY("setp.lt.s32 %p3, %i, 7; selp.b32 %r3, 4, 0, %p1; @!%p3", "%r3"), 4, 256,
     1000, 0, 0, BOUNDED, 28, 3999},
    {"vector",
     "mul.wide.s32 %d8, %i, 16; add.s64 %d9, %a, %d8; st.global.v4.u32 [%d9], {%r1, %r1, %r1, %r1};\n", 1, 32,
     0, 0, 0, BOUNDED, 0, 511},

    // Loops: for (j = 0; j < n; j++), before and after the body.
    {"while",
     "mov.u32 %r3, 0; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 10, 0, 0, BOUNDED, 0, 39},
    {"do while",
     "mov.u32 %r3, 0; setp.lt.s32 %p2, %n, 1; @%p2 bra END; L:\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %n; @%p1 bra L;\n",
     1, 32, 10, 0, 0, BOUNDED, 0, 39},
    {"do while, once",
     "mov.u32 %r3, 0; L:\n" STORE("%r3") "add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %n; @%p1 bra L;\n", 1,
     32, -7, 0, 0, BOUNDED, 0, 3},
    {"last increment fits",
     "mov.u32 %r3, 0; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 4; bra L;\n",
     1, 32, 2147483643, 0, 0, BOUNDED, 0, 8589934563},
    {"last increment wraps",
     "mov.u32 %r3, 0; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 4; bra L;\n",
     1, 32, 2147483646, 0, 0, UNKNOWN(COUNTER)},
    {"step that wraps",
     "mov.u32 %r3, 0; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, %m; bra L;\n",
     1, 32, 2000000000, 1500000000, 0, UNKNOWN(COUNTER)},
    {"step of a launch",
     "mov.u32 %r3, %r2; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, %r1; bra L;\n",
     1, 32, 1000, 0, 0, BOUNDED, 0, 3999},
    {"up to and with",
     "mov.u32 %r3, 0; L: setp.gt.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 10, 0, 0, BOUNDED, 0, 43},
    {"up to and with the largest",
     "mov.u32 %r3, 0; L: setp.gt.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 2147483647, 0, 0, UNKNOWN(COUNTER)},
    {"until met",
     "mov.u32 %r3, 0; L: setp.eq.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 4; bra L;\n",
     1, 32, 40, 0, 0, BOUNDED, 0, 147},
    {"until missed",
     "mov.u32 %r3, 0; L: setp.eq.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 4; bra L;\n",
     1, 32, 42, 0, 0, UNKNOWN(COUNTER)},
    {"until passed by",
     "mov.u32 %r3, 8; L: setp.eq.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 4, 0, 0, UNKNOWN(COUNTER)},
    {"down",
     "mov.u32 %r3, %n; L: setp.le.s32 %p1, %r3, 0; @%p1 bra END; add.s32 %r3, %r3, -1;\n" STORE(
         "%r3") "bra L;\n",
     1, 32, 10, 0, 0, BOUNDED, 0, 39},
    {"down, never below",
     "mov.u32 %r3, %n; L: setp.lt.u32 %p1, %r3, 0; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, -1; bra L;\n",
     1, 32, 10, 0, 0, UNKNOWN(COUNTER)},
    {"pointer beside",
     "mov.u32 %r3, 0; mov.u64 %d5, %a; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END; st.global.u32 [%d5], %r1;\n"
     "add.s64 %d5, %d5, 8; add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 10, 0, 0, BOUNDED, 0, 75},
    {"tested in 64 bits",
     "mov.u32 %r3, 0; L: cvt.s64.s32 %d3, %r3; setp.ge.s64 %p1, %d3, %s; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 0, 0, 100, BOUNDED, 0, 399},
    {"tested in 64 bits, beyond 32",
     "mov.u32 %r3, 0; L: cvt.s64.s32 %d3, %r3; setp.ge.s64 %p1, %d3, %s; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 0, 0, 3000000000, UNKNOWN(COUNTER)},
    {"kept in 64 bits beside", BESIDE(WIDENED_START, "add.s32 %r3, %r3, %n;", "cvt.s64.s32 %d3, %r3;"), 2, 64,
     128, 0, 1000, BOUNDED, 0, 999},
    {"kept in 64 bits beside, the last step wraps",
     BESIDE(WIDENED_START, "add.s32 %r3, %r3, %n;", "cvt.s64.s32 %d3, %r3;"), 2, 64, 128, 0, 2147483600,
     UNKNOWN(COUNTER)},
    {"another number kept in 64 bits",
     BESIDE(WIDENED_START, "add.s32 %r3, %r3, %n;", "xor.b32 %r4, %r3, 1; cvt.s64.s32 %d3, %r4;"), 2, 64, 128,
     0, 1000, UNKNOWN(CARRIED)},
    {"kept in 64 bits with its sign and without",
     BESIDE("mov.u32 %r3, %m; cvt.u64.u32 %d3, %r3;", "add.s32 %r3, %r3, %n;", "cvt.s64.s32 %d3, %r3;"), 2,
     64, 128, -128, 1000, UNKNOWN(CARRIED)},
    {"kept in 64 bits from a number on",
     BESIDE("mov.u32 %r3, 5; mov.u64 %d3, 5;", "add.s32 %r3, %r3, %n;", "cvt.s64.s32 %d3, %r3;"), 2, 64, 128,
     0, 1000, BOUNDED, 5, 901},
    {"kept in 64 bits from another number on",
     BESIDE("mov.u32 %r3, 5; mov.u64 %d3, 1005;", "add.s32 %r3, %r3, %n;", "cvt.s64.s32 %d3, %r3;"), 2, 64,
     128, 0, 1000, UNKNOWN(CARRIED)},
    {"kept in 64 bits from a number on that has a sign",
     BESIDE("mov.u32 %r3, 4294967168; mov.u64 %d3, 4294967168;", "add.s32 %r3, %r3, %n;",
            "cvt.s64.s32 %d3, %r3;"),
     2, 64, 128, 0, 1000, UNKNOWN(CARRIED)},
    {"inner limit",
     "mov.u32 %r3, %i; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     4, 256, 1000, 0, 0, BOUNDED, 0, 3999},
    {"carried",
     "mov.u32 %r3, 1; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "xor.b32 %r3, %r3, %i; bra L;\n",
     1, 32, 1000, 0, 0, UNKNOWN(CARRIED)},
    // Values that are multiplied or divided.
    {"doubled",
     "mov.u32 %r3, 1; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "shl.b32 %r3, %r3, 1; bra L;\n",
     1, 32, 1000, 0, 0, BOUNDED, 4, 3999},
    {"doubled, seen behind the loop",
     "mov.u32 %r3, 1; L: setp.gt.s32 %p1, %r3, %n; @%p1 bra M; shl.b32 %r3, %r3, 1; bra L; M:\n" STORE("%r3"),
     1, 32, 1000, 0, 0, BOUNDED, 4004, 8003},
    {"tripled, tested afterwards",
     "mov.u32 %r3, 1; L:\n" STORE("%r3") "mul.lo.s32 %r3, %r3, 3; setp.lt.s32 %p1, %r3, %n; @%p1 bra L;\n", 1,
     32, 1000, 0, 0, BOUNDED, 4, 3999},
    {"doubled by a sum, at most",
     "mov.u32 %r3, 5; L:\n" STORE("%r3") "add.s32 %r3, %r3, %r3; setp.le.u32 %p1, %r3, %n; @%p1 bra L;\n", 1,
     32, 1000, 0, 0, BOUNDED, 20, 4003},
    {"doubled until it wraps",
     "mov.u32 %r3, 1; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "shl.b32 %r3, %r3, 1; bra L;\n",
     1, 32, 1 << 30 | 2, 0, 0, UNKNOWN(CARRIED)},
    {"doubled from below zero",
     "mov.u32 %r3, -1; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "shl.b32 %r3, %r3, 1; bra L;\n",
     1, 32, 1000, 0, 0, UNKNOWN(CARRIED)},
    {"doubled up to another value",
     "mov.u32 %r3, 1; mov.u32 %r4, 0; L: setp.ge.s32 %p1, %r4, %n; @%p1 bra END;\n" STORE(
         "%r3") "shl.b32 %r3, %r3, 1; add.s32 %r4, %r4, 1; bra L;\n",
     1, 32, 40, 0, 0, UNKNOWN(CARRIED)},
    {"doubled or tripled",
     "mov.u32 %r3, 1; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "setp.lt.s32 %p2, %i, %m; @%p2 bra M; shl.b32 %r3, %r3, 1; bra L; M: mul.lo.s32 %r3, %r3, 3; "
                "bra L;\n",
     1, 32, 1000, 5, 0, UNKNOWN(CARRIED)},
    {"halved",
     "mov.u32 %r3, %n; L: setp.eq.s32 %p1, %r3, 0; @%p1 bra END;\n" STORE(
         "%r3") "shr.u32 %r3, %r3, 1; bra L;\n",
     1, 32, 128, 0, 0, BOUNDED, 4, 515},
    {"halved, below the thread's",
     "mov.u32 %r3, %n; L: setp.lt.s32 %p1, %r3, 1; @%p1 bra END; setp.ge.u32 %p2, %r2, %r3; @%p2 bra M; "
     "add.s32 %r4, %r2, %r3;\n" STORE("%r4") "M: shr.s32 %r3, %r3, 1; bra L;\n",
     1, 256, 128, 0, 0, BOUNDED, 4, 1023},
    {"halved with its sign",
     "mov.u32 %r3, %n; L: setp.eq.s32 %p1, %r3, 77; @%p1 bra END;\n" STORE(
         "%r3") "shr.s32 %r3, %r3, 1; bra L;\n",
     1, 32, -128, 0, 0, BOUNDED, -512, 3},
    {"halved without its sign",
     "mov.u32 %r3, %n; L: setp.eq.s32 %p1, %r3, 77; @%p1 bra END;\n" STORE_U(
         "%r3") "shr.u32 %r3, %r3, 1; bra L;\n",
     1, 32, -128, 0, 0, BOUNDED, 0, 4LL * 0xFFFFFF80 + 3},
    {"halved by division",
     "mov.u32 %r3, %n; L: setp.lt.s32 %p1, %r3, 1; @%p1 bra END;\n" STORE(
         "%r3") "shr.u32 %r4, %r3, 31; add.s32 %r5, %r3, %r4; shr.s32 %r3, %r5, 1; bra L;\n",
     1, 32, 128, 0, 0, BOUNDED, 4, 515},
    {"halved by a division of something else",
     "mov.u32 %r3, %n; L: setp.lt.s32 %p1, %r3, 1; @%p1 bra END;\n" STORE(
         "%r3") "shr.u32 %r4, %r3, 30; add.s32 %r5, %r3, %r4; shr.s32 %r3, %r5, 1; bra L;\n",
     1, 32, 128, 0, 0, UNKNOWN(CARRIED)},
    // 0xFFFFFFFE, shifted as a signed number, is -1, and then without its sign 2^31 - 1.
    {"halved with and without its sign",
     "mov.u32 %r3, %n; L: setp.eq.s32 %p1, %r3, 77; @%p1 bra END;\n" STORE(
         "%r3") "setp.lt.s32 %p2, %i, %m; @%p2 bra M; shr.s32 %r3, %r3, 1; bra L; M: shr.u32 %r3, %r3, 1; "
                "bra "
                "L;\n",
     1, 32, -2, 5, 0, UNKNOWN(CARRIED)},
    {"doubled, a multiple tested",
     "mov.u32 %r3, 1; L:\n" STORE(
         "%r3") "mul.lo.s32 %r4, %r3, 3; shl.b32 %r3, %r3, 1; setp.lt.s32 %p1, %r4, %n; @%p1 bra L;\n",
     1, 32, 1000, 0, 0, UNKNOWN(CARRIED)},
    {"pairs at a distance that is halved",
     "mov.u32 %r3, %n;\n" PAIR("setp.eq.s32 %p1, %r3, 0;", "shr.u32 %r3, %r3, 1;"), 1, 128, 128, 0, 0,
     BOUNDED, 4, 1023},
    {"pairs of threads that fill no multiple of the distance",
     "mov.u32 %r3, %n;\n" PAIR("setp.eq.s32 %p1, %r3, 0;", "shr.u32 %r3, %r3, 1;"), 1, 200, 128, 0, 0,
     BOUNDED, 4, 1823},
    {"pairs at a distance that is no power of 2",
     "mov.u32 %r3, %n;\n" PAIR("setp.eq.s32 %p1, %r3, 0;", "shr.u32 %r3, %r3, 1;"), 1, 128, 96, 0, 0, BOUNDED,
     4, 1403},
    {"pairs at a third of the distance",
     "mov.u32 %r3, %n;\n" PAIR("setp.eq.s32 %p1, %r3, 0;", "div.u32 %r3, %r3, 3;"), 1, 128, 128, 0, 0,
     BOUNDED, 4, 1531},
    {"pairs at a distance that may be 0",
     "mov.u32 %r3, %n;\n" PAIR("setp.eq.s32 %p1, %r3, 77;", "shr.u32 %r3, %r3, 1;"), 1, 128, 128, 0, 0,
     BOUNDED, 0, 1023},
    {"pairs at a distance that is doubled",
     "mov.u32 %r3, 1;\n" PAIR("setp.ge.s32 %p1, %r3, %n;", "shl.b32 %r3, %r3, 1;"), 1, 128, 128, 0, 0,
     BOUNDED, 4, 1023},
    {"pairs at a distance that is tripled",
     "mov.u32 %r3, 1;\n" PAIR("setp.ge.s32 %p1, %r3, %n;", "mul.lo.s32 %r3, %r3, 3;"), 1, 128, 4, 0, 0,
     BOUNDED, 4, 1031},
    {"pairs at all distances below a limit", PAIRS("256"), 1, 64, 512, 0, 0, BOUNDED, 4, 767},
    {"pairs at distances below a limit that is no power of 2", PAIRS("200"), 1, 64, 512, 0, 0, BOUNDED, 4,
     907},
    // The last tile that begins below n is the fourth.
    {"tiles from their ends", "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n" TILES, 10, 32, 100, 0, 0, BOUNDED, 0,
     511},
    {"tiles from their ends, as many as threads need", "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n" TILES, 4,
     32, 97, 0, 0, BOUNDED, 0, 511},
    {"tiles of twice their distance", "shl.b32 %r5, %i, 1; setp.ge.s32 %p1, %r5, %n; @%p1 bra END;\n" TILES,
     10, 32, 100, 0, 0, BOUNDED, 0, 255},
    {"neighbours by a remainder", NEIGHBOURS(BY_REMAINDER, "shl.b32 %r4, %r3, 1;"), 1, 128, 0, 0, 0, BOUNDED,
     4, 511},
    {"neighbours by a remainder of threads that fill no multiple",
     NEIGHBOURS(BY_REMAINDER, "shl.b32 %r4, %r3, 1;"), 1, 200, 0, 0, 0, BOUNDED, 4, 911},
    {"neighbours by a remainder of a distance that is tripled",
     NEIGHBOURS(BY_REMAINDER, "mul.lo.s32 %r4, %r3, 3;"), 1, 128, 0, 0, 0, BOUNDED, 4, 1019},
    {"neighbours by a product", NEIGHBOURS(BY_PRODUCT("%r1"), "shl.b32 %r4, %r3, 1;"), 1, 128, 0, 0, 0,
     BOUNDED, 4, 511},
    {"neighbours by a product, below a limit that is no multiple",
     NEIGHBOURS(BY_PRODUCT("%n"), "shl.b32 %r4, %r3, 1;"), 1, 128, 130, 0, 0, BOUNDED, 4, 771},
    {"neighbours by a product with a distance that is tripled",
     NEIGHBOURS(BY_PRODUCT("%r1"), "mul.lo.s32 %r4, %r3, 3;"), 1, 128, 0, 0, 0, BOUNDED, 4, 1019},
    {"a distance that is half of seven times a power of 2",
     NEIGHBOURS(
         "mul.lo.s32 %r8, %r3, 7; shr.u32 %r8, %r8, 1; rem.u32 %r7, %r2, %r8; setp.ne.s32 %p1, %r7, 0; "
         "add.s32 %r5, %r2, %r8; sub.s32 %r5, %r5, %r3;",
         "shl.b32 %r4, %r3, 1;"),
     1, 224, 0, 0, 0, BOUNDED, 12, 4015},
    {"neighbours by a product of a negative number",
     NEIGHBOURS("add.s32 %r8, %r2, -40; mul.lo.s32 %r5, %r4, %r8; setp.lt.s32 %p1, %r5, -8;",
                "shl.b32 %r4, %r3, 1;"),
     1, 128, 0, 0, 0, BOUNDED, -28, 88903},
    {"halved in one way only",
     "mov.u32 %r3, %n; L: setp.lt.s32 %p1, %r3, 1; @%p1 bra END;\n" STORE(
         "%r3") "setp.lt.s32 %p2, %i, %m; @%p2 bra M; shr.s32 %r3, %r3, 1; bra L; M: add.s32 %r3, %r3, 1; "
                "bra "
                "L;\n",
     1, 32, 128, 5, 0, UNKNOWN(CARRIED)},
    {"test that a round may skip",
     "mov.u32 %r3, 0; setp.lt.s32 %p2, %i, %m; L: @%p2 bra M; setp.ge.s32 %p1, %r3, %n; @%p1 bra END; "
     "M:\n" STORE("%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 10, 5, 0, UNKNOWN(COUNTER)},
    {"limit loaded",
     "mov.u32 %r3, 0; ld.global.u32 %r4, [%a]; L: setp.ge.s32 %p1, %r3, %r4; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 0, 0, 0, UNKNOWN(COUNTER)},
    {"narrow counter",
     "mov.u16 %h1, 0; L: setp.ge.s16 %p1, %h1, 100; @%p1 bra END; cvt.s32.s16 %r3, %h1;\n" STORE(
         "%r3") "add.s16 %h1, %h1, 1; bra L;\n",
     1, 32, 0, 0, 0, BOUNDED, 0, 399},
    {"narrow counter that wraps",
     "mov.u16 %h1, 0; L: cvt.s32.s16 %r3, %h1; setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s16 %h1, %h1, 1; bra L;\n",
     1, 32, 40000, 0, 0, BOUNDED, -131072, 131071},

    {"limit that rounds compute anew",
     "mov.u32 %r3, 0; mov.u32 %r6, %n; L:\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; sub.s32 %r4, %n, 1; shl.b32 %r5, %r4, 1; add.s32 %r5, %r5, -4;\n"
                "setp.lt.s32 %p1, %r3, %r5; @%p1 bra L;\n",
     1, 32, 10, 0, 0, BOUNDED, 0, 55},
    {"limit that rounds change",
     "mov.u32 %r3, 0; mov.u32 %r6, %n; L:\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; add.s32 %r6, %r6, 1; sub.s32 %r4, %r6, 1; shl.b32 %r5, %r4, 1; add.s32 "
                "%r5, %r5, -4;\n"
                "setp.lt.s32 %p1, %r3, %r5; @%p1 bra L;\n",
     1, 32, 10, 0, 0, UNKNOWN(COUNTER)},
    {"limit that says which threads are in the loop",
     "mov.u32 %r3, 0; L:\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; activemask.b32 %r4; and.b32 %r5, %r4, 15; or.b32 %r6, %r5, 16;\n"
                "setp.ne.s32 %p1, %r3, %r6; @%p1 bra L;\n",
     1, 32, 10, 0, 0, UNKNOWN(COUNTER)},
    {"limit that threads in the loop vote on",
     "setp.lt.s32 %p2, %i, %n; mov.u32 %r3, %r2; L:\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; vote.sync.ballot.b32 %r4, %p2, -1; and.b32 %r5, %r4, 15;\n"
                "or.b32 %r6, %r5, 64; setp.ne.s32 %p1, %r3, %r6; @%p1 bra L;\n",
     1, 32, 10, 0, 0, UNKNOWN(COUNTER)},
    {"limit with a carry of the round",
     "mov.u32 %r3, 0; L:\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; add.cc.u32 %r7, %r3, -9; addc.u32 %r4, %n, %n; and.b32 %r5, %r4, 15;\n"
                "or.b32 %r6, %r5, 16; setp.ne.s32 %p1, %r3, %r6; @%p1 bra L;\n",
     1, 32, 10, 0, 0, UNKNOWN(COUNTER)},
    {"limit that rounds load",
     "mov.u32 %r3, 0; mov.u32 %r6, %n; L: ld.global.u32 %r4, [%a];\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; shl.b32 %r5, %r4, 1; add.s32 %r5, %r5, -4;\n"
                "setp.lt.s32 %p1, %r3, %r5; @%p1 bra L;\n",
     1, 32, 10, 0, 0, UNKNOWN(COUNTER)},

    // Quotients, masks, shifts.
    {"row and column", "div.s32 %r3, %i, %n; mul.lo.s32 %r4, %r3, %n; sub.s32 %r5, %i, %r4;\n" STORE("%r5"),
     4, 256, 100, 0, 0, BOUNDED, 0, 399},
    {"remainder", "rem.u32 %r5, %i, %n;\n" STORE("%r5"), 4, 256, 100, 0, 0, BOUNDED, 0, 399},
    {"remainder of negative", "sub.s32 %r3, %i, 10; rem.s32 %r5, %r3, %n;\n" STORE("%r5"), 4, 256, 100, 0, 0,
     BOUNDED, -396, 399},
    {"division by zero", "div.s32 %r5, %i, %n;\n" STORE("%r5"), 4, 256, 0, 0, 0, UNKNOWN(PRODUCT)},
    {"block and thread again",
     "shr.u32 %r3, %i, 8; and.b32 %r4, %i, 255; mad.lo.s32 %r5, %r3, 256, %r4;\n" STORE("%r5"), 4, 256, 0, 0,
     0, BOUNDED, 0, 4095},
    {"lane", "and.b32 %r5, %i, 31;\n" STORE("%r5"), 4, 256, 0, 0, 0, BOUNDED, 0, 127},
    {"mask of a wrapped index", "and.b32 %r5, %i, 31;\n" STORE("%r5"), 1 << 25, 256, 0, 0, 0, BOUNDED, 0,
     127},
    {"aligned down", "and.b32 %r5, %i, -4; or.b32 %r5, %r5, 3;\n" STORE("%r5"), 4, 250, 0, 0, 0, BOUNDED, 12,
     3999},
    {"by 10", "mul.hi.u32 %r3, %i, -858993459; shr.u32 %r5, %r3, 3;\n" STORE("%r5"), 4, 256, 0, 0, 0, BOUNDED,
     0, 411},
    {"rest by 10",
     "mul.wide.u32 %d3, %i, -858993459; shr.u64 %d3, %d3, 35; cvt.u32.u64 %r3, %d3; mul.lo.s32 %r4, %r3, "
     "10;\n"
     "sub.s32 %r5, %i, %r4;\n" STORE("%r5"),
     4, 256, 0, 0, 0, BOUNDED, 0, 39},
    {"shift beyond the width", "shl.b32 %r5, %i, %n;\n" STORE("%r5"), 4, 256, 40, 0, 0, BOUNDED, 0, 3},
    {"shift by a negative amount", "shr.u32 %r5, %i, %n;\n" STORE("%r5"), 4, 256, -1, 0, 0, BOUNDED, 0, 3},
    {"arithmetic shift beyond the width", "sub.s32 %r3, %i, 4; shr.s32 %r5, %r3, %n;\n" STORE("%r5"), 1, 32,
     99, 0, 0, BOUNDED, -4, 3},
    {"shift that wraps", "shl.b32 %r5, %i, 24;\n" STORE("%r5"), 4, 256, 0, 0, 0, UNKNOWN(WRAPS)},
    {"quotient of a quotient",
     "shr.u32 %r3, %i, 5; shr.u32 %r4, %i, 2; shr.u32 %r4, %r4, 3; sub.s32 %r5, %r4, %r3;\n" STORE("%r5"), 4,
     256, 0, 0, 0, BOUNDED, 0, 3},
    {"quotient of a quotient, first",
     "shr.u32 %r4, %i, 2; shr.u32 %r4, %r4, 3; shr.u32 %r3, %i, 5; sub.s32 %r5, %r4, %r3;\n" STORE("%r5"), 4,
     256, 0, 0, 0, BOUNDED, 0, 3},
    {"quotient of a quotient by less",
     "shr.u32 %r3, %i, 6; shr.u32 %r4, %i, 2; shr.u32 %r4, %r4, 3; sub.s32 %r5, %r4, %r3;\n" STORE("%r5"), 1,
     256, 0, 0, 0, BOUNDED, 0, 19},
    {"quotient of a quotient by less, first",
     "shr.u32 %r4, %i, 2; shr.u32 %r4, %r4, 3; shr.u32 %r3, %i, 6; sub.s32 %r5, %r4, %r3;\n" STORE("%r5"), 1,
     256, 0, 0, 0, BOUNDED, 0, 19},
    {"quotient of more than a quotient",
     "shr.u32 %r3, %i, 5; shr.u32 %r4, %i, 2; add.s32 %r4, %r4, 3; shr.u32 %r4, %r4, 3;\n"
     "sub.s32 %r5, %r4, %r3;\n" STORE("%r5"),
     4, 256, 0, 0, 0, BOUNDED, 0, 7},
    {"quotient of three quotients",
     "shr.u32 %r3, %i, 5; shr.u32 %r4, %i, 2; mul.lo.s32 %r4, %r4, 3; shr.u32 %r4, %r4, 3;\n"
     "sub.s32 %r5, %r4, %r3;\n" STORE("%r5"),
     1, 256, 0, 0, 0, BOUNDED, 0, 67},
    {"field", "bfe.u32 %r5, %i, 4, 3;\n" STORE("%r5"), 4, 256, 0, 0, 0, BOUNDED, 0, 31},
    {"inserted field", "mov.u32 %r3, 0; bfi.b32 %r5, %r2, %r3, 4, 8;\n" STORE("%r5"), 4, 256, 0, 0, 0,
     BOUNDED, 0, 16323},
    {"narrow", "cvt.u16.u32 %h1, %i; cvt.u32.u16 %r5, %h1;\n" STORE("%r5"), 1 << 20, 256, 0, 0, 0, BOUNDED, 0,
     262143},
    {"narrow, signed", "cvt.u16.u32 %h1, %i; cvt.s32.s16 %r5, %h1;\n" STORE("%r5"), 1 << 20, 256, 0, 0, 0,
     BOUNDED, -131072, 131071},
    {"minimum", "min.s32 %r5, %i, %n;\n" STORE("%r5"), 4, 256, 100, 0, 0, BOUNDED, 0, 403},
    {"minimum of signed and unsigned", "sub.s32 %r3, %i, 5; min.u32 %r5, %r3, %n;\n" STORE("%r5"), 1, 32, 100,
     0, 0, BOUNDED, 0, 403},
    {"maximum", "sub.s32 %r3, %i, 5; max.s32 %r5, %r3, 0;\n" STORE("%r5"), 1, 32, 0, 0, 0, BOUNDED, 0, 107},
    {"selected", "setp.lt.s32 %p1, %i, %n; selp.b32 %r5, %i, 0, %p1;\n" STORE("%r5"), 4, 256, 100, 0, 0,
     BOUNDED, 0, 399},
    {"merged", "mov.u32 %r5, 7; setp.ge.s32 %p1, %i, %n; @%p1 bra L; mov.u32 %r5, %i; L:\n" STORE("%r5"), 4,
     256, 100, 0, 0, BOUNDED, 0, 399},
    {"guarded move", "mov.u32 %r5, 7; setp.lt.s32 %p1, %i, %n; @%p1 mov.u32 %r5, %i;\n" STORE("%r5"), 4, 256,
     100, 0, 0, BOUNDED, 0, 399},
    {"dead branch",
     "mov.u32 %r5, 7; setp.ne.s32 %p1, %n, 3; @%p1 bra L; mov.u32 %r5, 1000; L:\n" STORE("%r5"), 4, 256, 100,
     0, 0, BOUNDED, 28, 31},

    // Bits of floating point numbers.
    {"word of a large number", EXPONENT("ltu", "0f47CE4780", "") WORD, 1, 32, 0, 0, 0, BOUNDED, 12, 27},
    {"word of a large number or NaN", EXPONENT("lt", "0f47CE4780", "") WORD, 1, 32, 0, 0, 0, BOUNDED, 12, 27},
    {"word of a number of at least 2", EXPONENT("ge", "0f40000000", "!") WORD, 1, 32, 0, 0, 0, BOUNDED, 12,
     27},
    {"word of a number below 2", EXPONENT("geu", "0f3FFFFFFF", "!") WORD, 1, 32, 0, 0, 0, UNKNOWN(WRAPS)},
    {"word of a number that is not large", EXPONENT("gtu", "0f47CE4780", "") WORD, 1, 32, 0, 0, 0,
     UNKNOWN(WRAPS)},
    {"exponent up to 2", EXPONENT("le", "0f40000000", "!") STORE("%r5"), 1, 32, 0, 0, 0, BOUNDED, 0, 515},
    {"exponent up to 2, or of NaN", EXPONENT("leu", "0f40000000", "!") STORE("%r5"), 1, 32, 0, 0, 0, BOUNDED,
     0, 1023},
    {"exponent of what is not above 2", EXPONENT("gtu", "0f40000000", "") STORE("%r5"), 1, 32, 0, 0, 0,
     BOUNDED, 0, 515},
    {"exponent of what is not above 2, or of NaN", EXPONENT("gt", "0f40000000", "") STORE("%r5"), 1, 32, 0, 0,
     0, BOUNDED, 0, 1023},
    {"exponent of infinity", EXPONENT("eq", "0f7F800000", "!") STORE("%r5"), 1, 32, 0, 0, 0, BOUNDED, 1020,
     1023},
    {"exponent of a subnormal number, which may count as 0", EXPONENT("lt", "0f00000001", "!") STORE("%r5"),
     1, 32, 0, 0, 0, BOUNDED, 0, 1023},
    {"exponent of another number",
     "ld.global.f32 %f0, [%a]; ld.global.f32 %f2, [%a+4]; abs.f32 %f1, %f2; setp.ge.f32 %p1, %f1, "
     "0f40000000;\n@!%p1 bra END; mov.b32 %r3, %f0; mov.b32 %r10, %f2; shr.u32 %r4, %r3, 23; and.b32 %r5, "
     "%r4, 255;\n" WORD,
     1, 32, 0, 0, 0, UNKNOWN(WRAPS)},

    // Roots and what is not known.
    {"shared", "mov.u32 %r3, tile; shl.b32 %r4, %r2, 2; add.s32 %r5, %r3, %r4; st.shared.u32 [%r5+4], %r1;\n",
     1, 64, 0, 0, 0, BOUNDED, 4, 259},
    {"shared, generic",
     "mov.u64 %d3, tile; cvta.shared.u64 %d4, %d3; mul.wide.u32 %d5, %r2, 4; add.s64 %d6, %d4, %d5;\n"
     "st.u32 [%d6], %r1;\n",
     1, 64, 0, 0, 0, BOUNDED, 0, 255},
    {"shared memory of another block, generic",
     "mov.u64 %d3, tile; cvta.shared.u64 %d4, %d3; mapa.u64 %d4, %d4, %n; mul.wide.u32 %d5, %r2, 4;\n"
     "add.s64 %d6, %d4, %d5; st.u32 [%d6+4], %r1;\n",
     1, 64, 1, 0, 0, BOUNDED, 4, 259},
    {"shared memory of another block",
     "mov.u32 %r3, tile; shl.b32 %r4, %r2, 2; add.s32 %r5, %r3, %r4; mapa.shared::cluster.u32 %r5, %r5, %n;\n"
     "st.shared::cluster.u32 [%r5+4], %r1;\n",
     1, 64, 1, 0, 0, BOUNDED, 4, 259},
    {"shared memory of another block, from before the variable",
     "mov.u32 %r3, tile; shl.b32 %r4, %r2, 2; add.s32 %r5, %r3, %r4; sub.s32 %r5, %r5, 4;\n"
     "mapa.shared::cluster.u32 %r5, %r5, %n; st.shared::cluster.u32 [%r5+4], %r1;\n",
     1, 64, 1, 0, 0, UNKNOWN(WRAPS)},
    {"shared memory of another block, from behind the variable",
     "mov.u32 %r3, tile; shl.b32 %r4, %r2, 4; add.s32 %r5, %r3, %r4; add.s32 %r5, %r5, 20;\n"
     "mapa.shared::cluster.u32 %r5, %r5, %n; st.shared::cluster.u32 [%r5+-20], %r1;\n",
     1, 64, 1, 0, 0, UNKNOWN(WRAPS)},
    {"shared memory of another block, as if of the own one",
     "mov.u32 %r3, tile; mapa.shared::cluster.u32 %r5, %r3, %n; st.shared.u32 [%r5], %r1;\n", 1, 64, 1, 0, 0,
     UNKNOWN(ROOTS)},
    {"distance between blocks",
     "mov.u32 %r3, tile; mapa.shared::cluster.u32 %r4, %r3, %n; mapa.shared::cluster.u32 %r5, %r3, %m;\n"
     "sub.s32 %r6, %r4, %r5; add.s32 %r6, %r6, %r3; st.shared.u32 [%r6], %r1;\n",
     1, 64, 1, 0, 0, UNKNOWN(ROOTS)},
    {"shared memory of a block of another block",
     "mov.u32 %r3, tile; mapa.shared::cluster.u32 %r4, %r3, %n; mapa.shared::cluster.u32 %r5, %r4, %m;\n"
     "st.shared::cluster.u32 [%r5], %r1;\n",
     1, 64, 1, 0, 0, UNKNOWN(ROOTS)},
    {"variable",
     "mul.wide.u32 %d5, %r2, 4; mov.u64 %d3, table; add.s64 %d6, %d3, %d5; st.global.u32 [%d6], %r1;\n", 1,
     64, 0, 0, 0, BOUNDED, 0, 255},
    {"variable by name", "st.global.u32 [table+12], %r1;\n", 1, 64, 0, 0, 0, BOUNDED, 12, 15},
    {"loaded index", "ld.global.u32 %r5, [%a];\n" STORE("%r5"), 1, 64, 0, 0, 0, UNKNOWN(LOADED_INDEX)},
    {"loaded digit", "ld.global.u32 %r5, [%a]; shr.u32 %r6, %r5, %n; and.b32 %r7, %r6, 255;\n" STORE("%r7"),
     1, 64, 16, 0, 0, BOUNDED, 0, 1023},
    {"loaded digit, the last one",  // the mask leaves out no bit
     "ld.global.u32 %r5, [%a]; shr.u32 %r6, %r5, %n; and.b32 %r7, %r6, 255;\n" STORE("%r7"), 1, 64, 24, 0, 0,
     BOUNDED, 0, 1023},
    {"loaded digit of n bits",
     "ld.global.u32 %r5, [%a]; mov.u32 %r3, 0; bmsk.clamp.b32 %r4, %r3, %n; and.b32 %r7, %r5, %r4;\n" STORE(
         "%r7"),
     1, 64, 4, 0, 0, BOUNDED, 0, 63},
    {"loaded digit of n bits from the fourth on",
     "ld.global.u32 %r5, [%a]; mov.u32 %r3, 3; bmsk.clamp.b32 %r4, %r3, %n; and.b32 %r7, %r5, %r4;\n" STORE(
         "%r7"),
     1, 64, 4, 0, 0, BOUNDED, 0, 483},
    {"loaded digit of all bits",
     "ld.global.u32 %r5, [%a]; mov.u32 %r3, 0; bmsk.clamp.b32 %r4, %r3, %n; and.b32 %r7, %r5, %r4;\n" STORE(
         "%r7"),
     1, 64, 32, 0, 0, UNKNOWN(LOADED_INDEX)},
    {"loaded digit behind the last bit",
     "ld.global.u32 %r5, [%a]; mov.u32 %r3, 4; bmsk.clamp.b32 %r4, %n, %r3; and.b32 %r7, %r5, %r4;\n" STORE(
         "%r7"),
     1, 64, 32, 0, 0, BOUNDED, 0, 3},
    {"loaded digit of a width that starts again at 32",
     "ld.global.u32 %r5, [%a]; mov.u32 %r3, 4; bmsk.wrap.b32 %r4, %n, %r3; and.b32 %r7, %r5, %r4;\n" STORE(
         "%r7"),
     1, 64, 32, 0, 0, UNKNOWN(LOADED_INDEX)},
    {"loaded byte", "ld.global.u8 %r5, [%a];\n" STORE("%r5"), 1, 64, 0, 0, 0, BOUNDED, 0, 1023},
    {"loaded index, checked",
     "ld.global.u32 %r5, [%a]; setp.ge.u32 %p1, %r5, %n; @%p1 bra END;\n" STORE_U("%r5"), 1, 64, 100, 0, 0,
     BOUNDED, 0, 399},
    {"loaded index, checked on one side",
     "ld.global.u32 %r5, [%a]; setp.ge.s32 %p1, %r5, %n; @%p1 bra END;\n" STORE("%r5"), 1, 64, 100, 0, 0,
     UNKNOWN(LOADED_INDEX)},
    {"loaded pointer", "ld.global.u64 %d5, [%a]; st.global.u32 [%d5], %r1;\n", 1, 64, 0, 0, 0,
     UNKNOWN(LOADED_BASE)},
    {"converted", "mov.f32 %f1, 0f3F800000; cvt.rzi.s32.f32 %r5, %f1;\n" STORE("%r5"), 1, 64, 0, 0, 0,
     UNKNOWN(CONVERTED)},
    {"shuffled", "shfl.sync.bfly.b32 %r5, %i, 1, 31, -1;\n" STORE("%r5"), 1, 64, 0, 0, 0, UNKNOWN(EXCHANGED)},
    {"not understood", "prmt.b32 %r5, %i, %n, 4660;\n" STORE("%r5"), 1, 64, 0, 0, 0, UNKNOWN(OPERATOR)},
    {"clock", "mov.u32 %r5, %clock;\n" STORE("%r5"), 1, 64, 0, 0, 0, UNKNOWN(SPECIAL)},
    {"number as address", "mov.u64 %d5, 4096; st.global.u32 [%d5], %r1;\n", 1, 64, 0, 0, 0, UNKNOWN(NO_ROOT)},
    {"64 bits",
     "cvt.s64.s32 %d3, %i; add.s64 %d3, %d3, %s; shl.b64 %d4, %d3, 2; add.s64 %d5, %a, %d4; st.global.u32 "
     "[%d5], %r1;\n",
     1, 64, 0, 0, 10, BOUNDED, 40, 295},
    {"unsigned guard in 64 bits",
     "cvt.s64.s32 %d3, %i; add.s64 %d3, %d3, -5; setp.ge.u64 %p1, %d3, %s; @%p1 bra END;\n"
     "shl.b64 %d4, %d3, 2; add.s64 %d5, %a, %d4; st.global.u32 [%d5], %r1;\n",
     1, 64, 0, 0, 10, BOUNDED, 0, 39},
    {"square", "mul.lo.s32 %r5, %i, %i;\n" STORE("%r5"), 1, 64, 0, 0, 0, BOUNDED, 0, 15879},
    {"product of signs", "sub.s32 %r3, %i, 10; sub.s32 %r4, 3, %i; mul.lo.s32 %r5, %r3, %r4;\n" STORE("%r5"),
     1, 32, 0, 0, 0, BOUNDED, -2352, 1123},
    {"shift by the width", "shl.b32 %r5, %i, %n; add.s32 %r5, %r5, %r2;\n" STORE("%r5"), 1, 32, 32, 0, 0,
     BOUNDED, 0, 127},
    {"unsigned into signed",
     "sub.s32 %r3, 0, %n; cvt.s64.u32 %d3, %r3; add.s64 %d5, %a, %d3; st.global.u32 [%d5], %r1;\n", 1, 32, 4,
     0, 0, BOUNDED, 4294967292, 4294967295},
    {"limit on the left",
     "mov.u32 %r3, 0; L: setp.le.s32 %p1, %n, %r3; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 10, 0, 0, BOUNDED, 0, 39},
    {"rising against a falling test",
     "mov.u32 %r3, 20; L: setp.le.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 10, 0, 0, UNKNOWN(COUNTER)},
    {"added after widening",
     "mov.u32 %r3, 0; L: cvt.s64.s32 %d3, %r3; add.s64 %d3, %d3, -4294967296; setp.ge.s64 %p1, %d3, 100;\n"
     "@%p1 bra END;\n" STORE("%r3") "add.s32 %r3, %r3, 1; bra L;\n",
     1, 32, 0, 0, 0, UNKNOWN(COUNTER)},
    {"above the signed range",
     "ld.global.u64 %d3, [%a]; setp.le.u64 %p1, %d3, 5; @%p1 bra END; setp.le.u64 %p2, %d3, "
     "9223372036854775807;\n"
     "@%p2 bra END;\n" STORE("%i"),
     1, 64, 0, 0, 0, BOUNDED, 0, 255},
    {"shift of a number that wraps", "sub.s32 %r3, %i, 10; shr.u32 %r5, %r3, 4;\n" STORE("%r5"), 4, 256, 0, 0,
     0, UNKNOWN(WRAPS)},
    {"limit that lies 2^63 behind",
     "mov.u64 %d3, -9223372036854775803; L: setp.eq.s64 %p1, %d3, %s; @%p1 bra END;\n"
     "add.s64 %d5, %a, %d3; st.global.u32 [%d5], %r1; add.s64 %d3, %d3, -1; bra L;\n",
     1, 32, 0, 0, 5, UNKNOWN(COUNTER)},
    {"pointer beside a counter",
     "mov.u64 %d3, %a; mov.u32 %r3, 0; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END; st.global.u32 [%d3], %r1;\n"
     "add.s64 %d3, %d3, 4; add.s32 %r3, %r3, 536870912; bra L;\n",
     1, 32, 1073741801, 0, 0, BOUNDED, 0, 7},
    {"pointer beside a counter whose last step wraps",
     "mov.u64 %d3, %a; mov.u32 %r3, 0; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END; st.global.u32 [%d3], %r1;\n"
     "add.s64 %d3, %d3, 4; add.s32 %r3, %r3, 536870912; bra L;\n",
     1, 32, 2147483600, 0, 0, UNKNOWN(COUNTER)},
    {"pointer beside a counter that some threads miss the end of",
     "mov.u64 %d3, %a; mov.u32 %r3, %i; L: setp.eq.s32 %p1, %r3, %n; @%p1 bra END; st.global.u32 [%d3], "
     "%r1;\n"
     "add.s64 %d3, %d3, 4; add.s32 %r3, %r3, 1; bra L;\n",
     1, 64, 40, 0, 0, UNKNOWN(COUNTER)},
    {"pointer beside a counter that goes away from its limit",
     "mov.u64 %d3, %a; mov.u32 %r3, 0; mul.lo.s32 %r4, %n, %m; L: setp.gt.s32 %p1, %r3, %r4; @%p1 bra END;\n"
     "st.global.u32 [%d3], %r1; add.s64 %d3, %d3, 4; add.s32 %r3, %r3, %m; bra L;\n",
     1, 32, -5, -3, 0, UNKNOWN(COUNTER)},
    {"doubled while it is below the greatest number",
     "mov.u32 %r3, 1; L: shr.s32 %r4, %r3, 20;\n" STORE(
         "%r4") "shl.b32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %n; "
                "@%p1 bra L;\n",
     1, 32, INT32_MAX, 0, 0, UNKNOWN(CARRIED)},
    {"number flipped by itself", "xor.b32 %r5, %n, %n;\n" STORE_U("%r5"), 1, 32, -1, 0, 0, BOUNDED, 0, 3},
    {"counter through 64 bits and back",
     "mov.u32 %r3, %i; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "cvt.s64.s32 %d3, %r3; cvt.u32.u64 %r4, %d3; add.s32 %r3, %r4, 32; bra L;\n",
     1, 32, 100, 0, 0, BOUNDED, 0, 399},
    {"test of the low bits of a counter",
     "cvt.s64.s32 %d3, %i; L: cvt.u32.u64 %r4, %d3; setp.ge.s32 %p1, %r4, %n; @%p1 bra END;\n" STORE(
         "%r4") "add.s64 %d3, %d3, 32; bra L;\n",
     1, 32, 100, 0, 0, BOUNDED, 0, 399},
    {"counter through 16 bits and back",
     "mov.u32 %r3, %i; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "cvt.u16.u32 %h1, %r3; cvt.u32.u16 %r4, %h1; add.s32 %r3, %r4, 32; bra L;\n",
     1, 32, 100000, 0, 0, UNKNOWN(CARRIED)},
    {"quotient by a number that cancels, which is 0",
     "mul.lo.s32 %r3, %i, %n; div.s32 %r5, %r3, %n;\n" STORE("%r5"), 1, 32, 0, 0, 0, UNKNOWN(PRODUCT)},
    {"remainder of negative numbers",
     "add.s32 %r3, %i, %n; add.s32 %r4, %i, 1; rem.s32 %r5, %r3, %r4;\n" STORE("%r5"), 1, 32, -10, 0, 0,
     UNKNOWN(PRODUCT)},
    {"counter through 64 bits, of which 16 are left",
     "mov.u32 %r3, %i; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "cvt.u16.u32 %h1, %r3; cvt.u64.u16 %d3, %h1; cvt.u32.u64 %r4, %d3; add.s32 %r3, %r4, 32; bra "
                "L;\n",
     1, 32, 100000, 0, 0, UNKNOWN(CARRIED)},
    {"counter cut off to 16 bits of its register",
     "mov.u32 %r3, %i; L: setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE(
         "%r3") "cvt.u16.u32 %r4, %r3; add.s32 %r3, %r4, 32; bra L;\n",
     1, 32, 100000, 0, 0, UNKNOWN(CARRIED)},
    {"square that wraps", "mul.lo.s32 %r5, %i, %i;\n" STORE("%r5"), 1 << 12, 256, 0, 0, 0, UNKNOWN(WRAPS)},
};

#endif
