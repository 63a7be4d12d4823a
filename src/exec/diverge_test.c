// SPDX-License-Identifier: MIT
// Lanes that diverge and reconverge compute what each would compute alone: random kernels must give the same
// results with many threads in a block and with one thread in each of many blocks. The same kernel with all
// registers live to the end, so that no two share a slot, must give them too.
#include <stdlib.h>

#include "exec/exec_testing.h"
#include "flow/brute.h"

enum { KERNELS = 300, LABELS = 6, THREADS = 64, TEMPS = 16 };

static const char head[] = EXEC_TESTING_HEAD
    ".func (.param .b32 out) mix(.param .b32 a, .param .b32 b)\n{\n"
    ".reg .pred %p; .reg .b32 %r<4>; .local .b32 keep;\n"
    "ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b]; st.local.b32 [keep], %r1;\n"
    "and.b32 %r3, %r1, 1; setp.eq.u32 %p, %r3, 0; @%p bra EVEN;\n"
    "mad.lo.u32 %r1, %r1, 3, %r2; bra DONE;\n"
    "EVEN: shr.u32 %r1, %r1, 1;\n"
    "DONE: ld.local.b32 %r3, [keep]; xor.b32 %r1, %r1, %r3; st.param.b32 [out], %r1; ret;\n}\n"
    ".func (.param .b32 out) count(.param .b32 a, .param .b32 b);\n"
    ".func (.param .b32 out) count(.param .b32 a, .param .b32 b)\n{\n"
    ".reg .pred %p; .reg .b32 %r<4>;\n"
    "ld.param.b32 %r1, [a]; and.b32 %r1, %r1, 7; setp.eq.u32 %p, %r1, 0; mov.u32 %r2, 1; @%p bra DONE;\n"
    "{ .param .b32 x; .param .b32 y; .param .b32 z; sub.u32 %r3, %r1, 1; st.param.b32 [x], %r3; st.param.b32 "
    "[y], %r1;\n"
    "call (z), count, (x, y); ld.param.b32 %r2, [z]; }\n"
    "mad.lo.u32 %r2, %r2, 5, %r1;\n"
    "DONE: st.param.b32 [out], %r2; ret;\n}\n"
    ".global .u64 table[2] = {mix, count};\n"
    ".entry k(.param .u64 out)\n{\n"
    ".reg .pred %p<4>, %none; .reg .b16 %h<3>; .reg .b32 %r<8>, %fuel, %id, %t<4>, %s<16>; .reg .b64 %d<4>, "
    "%at, "
    "%e<3>;\n"
    ".local .align 8 .b8 own[64];\n"
    "shape: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n"
    "mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %id, %t0, %t1, %t2;\n"
    "mov.u32 %fuel, 60;\n";

static const char tail[] =
    "END: mov.u32 %t0, %id;\n"
    "@%p0 add.u32 %t0, %t0, 1; @%p1 add.u32 %t0, %t0, 2; @%p2 add.u32 %t0, %t0, 4; @%p3 add.u32 %t0, %t0, "
    "8;\n"
    "mad.lo.u32 %t0, %t0, 31, %r0; mad.lo.u32 %t0, %t0, 31, %r1; mad.lo.u32 %t0, %t0, 31, %r2;\n"
    "mad.lo.u32 %t0, %t0, 31, %r3; mad.lo.u32 %t0, %t0, 31, %r4; mad.lo.u32 %t0, %t0, 31, %r5;\n"
    "mad.lo.u32 %t0, %t0, 31, %r6; mad.lo.u32 %t0, %t0, 31, %r7; mad.lo.u32 %t0, %t0, 31, %fuel;\n"
    "xor.b64 %d0, %d0, %d1; xor.b64 %d2, %d2, %d3; xor.b64 %d0, %d0, %d2; mov.b64 {%t1, %t2}, %d0;\n"
    "xor.b32 %t0, %t0, %t1; add.u32 %t0, %t0, %t2; mov.b32 %t1, {%h0, %h1}; xor.b32 %t0, %t0, %t1;\n"
    "ld.local.v2.b32 {%t1, %t2}, [own+8]; add.u32 %t0, %t0, %t1; xor.b32 %t0, %t0, %t2;\n"
    "ld.param.u64 %at, [out]; mad.wide.u32 %at, %id, 4, %at; st.global.u32 [%at], %t0;\n";

static void put_guard(FILE *to, struct brute_random *r, unsigned one_in)
{
    if (brute_below(r, one_in) == 0)
        fprintf(to, "@%s%%p%u ", brute_below(r, 2) ? "!" : "", brute_below(r, 4));
}

static void put_call(FILE *to, struct brute_random *r)
{
    unsigned a = brute_below(r, 8), b = brute_below(r, 8), kind = brute_below(r, 3);
    if (kind == 2)
        fprintf(to,
                "and.b32 %%t0, %%r%u, 1; mov.u64 %%e0, table; mad.wide.u32 %%e0, %%t0, 8, %%e0; "
                "ld.global.u64 %%e1, [%%e0];\n",
                a);
    fprintf(
        to,
        "{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], %%r%u; st.param.b32 [y], %%r%u;\n",
        a, b);
    put_guard(to, r, 2);
    if (kind == 2)
        fprintf(to, "call (z), %%e1, (x, y), shape;\n");
    else
        fprintf(to, "call (z), %s, (x, y);\n", kind ? "mix" : "count");
    // The result of a call that was not made is undefined: either all lanes call, or it is not read.
    fprintf(
        to,
        "}\n{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], %%r%u; st.param.b32 [y], %%id;\n"
        "call (z), mix, (x, y); ld.param.b32 %%r%u, [z]; }\n",
        b, a);
}

// Temporaries that live across branches, but not beyond the next label.
static void put_temporary(FILE *to, struct brute_random *r, uint32_t *defined)
{
    unsigned a = brute_below(r, TEMPS), b = brute_below(r, TEMPS), c = brute_below(r, 8);
    if (*defined >> b & 1) {
        put_guard(to, r, 4);
        fprintf(to, "mad.lo.u32 %%r%u, %%r%u, 7, %%s%u;\n", c, c, b);
    }
    if (*defined >> b & 1)
        fprintf(to, "add.u32 %%s%u, %%s%u, %%r%u;\n", a, b, c);
    else
        fprintf(to, "xor.b32 %%s%u, %%r%u, %u;\n", a, c, brute_below(r, 1000));
    *defined |= UINT32_C(1) << a;
}

static void put_plain(FILE *to, struct brute_random *r)
{
    unsigned a = brute_below(r, 8), b = brute_below(r, 8), c = brute_below(r, 8), p = brute_below(r, 4);
    unsigned kind = brute_below(r, 16);
    if (kind == 15) {
        put_call(to, r);
        return;
    }
    put_guard(to, r, 3);
    switch (kind) {
    case 0: fprintf(to, "mov.b32 %%r%u, %u;\n", a, brute_below(r, 100)); break;
    case 1: fprintf(to, "add.u32 %%r%u, %%r%u, %%r%u;\n", a, b, c); break;
    case 2: fprintf(to, "mad.lo.u32 %%r%u, %%r%u, %%r%u, %%id;\n", a, b, c); break;
    case 3: fprintf(to, "setp.lt.u32 %%p%u, %%r%u, %%r%u;\n", p, b, c); break;
    case 4:
        fprintf(to, "setp.ne.and.u32 %%p%u|%%p%u, %%r%u, %%r%u, !%%p%u;\n", p, (p + 1) % 4, b, c, a % 4);
        break;
    case 5: fprintf(to, "mov.b64 %%d%u, {%%r%u, %%r%u};\n", a % 4, b, c); break;
    case 6: fprintf(to, "mov.b64 {%%r%u, %%r%u}, %%d%u;\n", a, (a + 1) % 8, b % 4); break;
    case 7: fprintf(to, "mul.wide.u32 %%d%u, %%r%u, %%r%u;\n", a % 4, b, c); break;
    case 8: fprintf(to, "cvt.u16.u32 %%h%u, %%r%u;\n", a % 3, b); break;
    case 9: fprintf(to, "cvt.u32.u16 %%r%u, %%h%u;\n", a, b % 3); break;
    case 10: fprintf(to, "selp.b32 %%r%u, %%r%u, %%id, %%p%u;\n", a, b, p); break;
    case 11: fprintf(to, "st.local.b32 [own+%u], %%r%u;\n", 4 * c, a); break;
    case 12: fprintf(to, "ld.local.b64 %%d%u, [own+%u];\n", a % 4, 8 * (c / 2)); break;
    case 13: fprintf(to, "add.cc.u32 %%r%u, %%r%u, %%r%u;\n", a, b, c); break;
    case 14: fprintf(to, "nanosleep.u32 1;\n"); break;
    }
}

static void put_control(FILE *to, struct brute_random *r, unsigned nlabels)
{
    switch (brute_below(r, 6)) {
    case 0:
        fprintf(to, "and.b32 %%t0, %%r%u, 3;\n", brute_below(r, 8));
        put_guard(to, r, 2);
        fputs("brx.idx %t0, ways;\n", to);
        break;
    case 1:
        put_guard(to, r, 1);
        fputs("bra END;\n", to);
        break;
    default: put_guard(to, r, brute_below(r, 5) ? 1 : 2); fprintf(to, "bra L%u;\n", brute_below(r, nlabels));
    }
}

static char *random_kernel(struct brute_random *r, bool keep_all)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    uint32_t defined = 0;
    unsigned nlabels = 1 + brute_below(r, LABELS), lines = 10 + brute_below(r, 40), placed = 0;
    fputs(head, to);
    for (unsigned k = 0; k < 8; k++)
        fprintf(to, "mad.lo.u32 %%r%u, %%id, %u, %u;\n", k, brute_below(r, 9), brute_below(r, 5));
    fputs("ways: .branchtargets ", to);
    for (unsigned k = 0; k < 4; k++)
        fprintf(to, "%sL%u", k ? ", " : "", brute_below(r, nlabels));
    fputs(
        ";\nmov.b16 %h0, 1; mov.b16 %h1, 2; mov.b64 %d0, 3; mov.b64 %d1, 4; mov.b64 %d2, 5; mov.b64 %d3, 6;\n"
        "setp.gt.u32 %p0, %id, 3; setp.lt.u32 %p1, %id, 17; setp.eq.u32 %p2, %r1, %r2; setp.ne.u32 %p3, %r0, "
        "0;\n"
        "mov.b32 %t3, 0; st.local.v2.b64 [own], {%d0, %d0}; st.local.v2.b64 [own+16], {%d0, %d0};\n"
        "mov.b16 %h2, 9;\n",
        to);
    for (unsigned i = 0; i < lines || placed < nlabels; i++) {
        if (placed < nlabels && (i >= lines || brute_below(r, 5) == 0)) {
            fprintf(to, "L%u: sub.s32 %%fuel, %%fuel, 1; setp.lt.s32 %%none, %%fuel, 0; @%%none bra END;\n",
                    placed++);
            defined = 0;
        }
        put_temporary(to, r, &defined);
        if (i < lines && brute_below(r, 4))
            put_plain(to, r);
        else if (i < lines)
            put_control(to, r, nlabels);
    }
    fputs(tail, to);
    if (keep_all) {
        fputs("setp.eq.u32 %none, %id, 12345678; @!%none ret;\n", to);
        for (unsigned k = 0; k < TEMPS; k++)
            fprintf(to, "st.global.u32 [%%at], %%s%u;\n", k);
    }
    fputs("ret;\n}\n", to);
    fclose(to);
    return text;
}

static void run(struct exec_program *p, uint32_t blocks, uint32_t threads, uint32_t results[THREADS])
{
    uint64_t out = exec_testing_take(THREADS * 4, 256);
    struct exec_launch l = exec_testing_launch(p, "k", blocks, threads, &out);
    struct exec_fault f = exec_testing_run(&l, 100000);
    if (f.kind)
        fail_msg("fault %d at line %u: " STR_FMT, f.kind, f.line, STR_ARG(f.instruction));
    memcpy(results, space_host(out), THREADS * 4);
}

// Returns the kernel's text; the caller frees it.
static char *run_kernel(uint64_t seed, bool keep_all, uint32_t blocks, uint32_t results[THREADS])
{
    struct brute_random r = {(19990101 + seed) * 2654435761u + 1};
    char *text = random_kernel(&r, keep_all);
    struct exec_program *p;
    if (exec_testing_load((const char *const[]){text, NULL}, &p))
        fail_msg("%s\n%s", text, exec_testing.reported);
    run(p, blocks, THREADS / blocks, results);
    exec_program_free(p);
    return text;
}

static void random_kernels(void **state)
{
    for (uint64_t k = 0; k < unit_cases(KERNELS); k++) {
        uint32_t together[THREADS], other[THREADS];
        char *text = run_kernel(k, false, 1, together);
        for (unsigned way = 0; way < 2; way++) {
            free(run_kernel(k, way, way ? 2 : THREADS, other));
            for (unsigned t = 0; t < THREADS; t++)
                if (together[t] != other[t])
                    fail_msg("kernel %llu, thread %u: %u together, %u %s\n%s", (unsigned long long)k, t,
                             together[t], other[t], way ? "with all registers" : "alone", text);
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_kernels),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
