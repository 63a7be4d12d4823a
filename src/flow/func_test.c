// SPDX-License-Identifier: MIT
// Blocks, registers, liveness and reaching definitions: random functions compared with the definitions, and
// cases that have a rule of their own.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "flow/brute_func.h"

enum { FUNCTIONS = 10000, REGISTERS = 6, LABELS = 8 };

static const uint64_t SEED = 19700101;

static const char HEAD[] = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func die ()\n.noreturn;\n"
                           ".extern .func helper ();\n";

static struct ptx_module *parse(const char *text)
{
    struct diag_printer sink;
    struct ptx_module *m = NULL;
    diag_printer_init(&sink, 5);
    if (ptx_parse("test", str_from(text), &sink.sink, NULL, &m)) {
        fprintf(stderr, "%s\n", text);
        fail();
    }
    return m;
}

static struct ptx_func *last_func(const struct ptx_module *m)
{
    for (uint32_t i = m->nitems; i-- > 0;)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->has_body)
            return m->items[i].func;
    fail();
    return NULL;
}

// --- random functions --------------------------------------------------------------------------------------

static void put_guard(FILE *to, struct brute_random *r, unsigned one_in)
{
    if (brute_below(r, one_in) == 0)
        fprintf(to, "@%s%%p%u ", brute_below(r, 2) ? "!" : "", brute_below(r, 3));
}

static void put_plain(FILE *to, struct brute_random *r)
{
    unsigned a = brute_below(r, REGISTERS), b = brute_below(r, REGISTERS), c = brute_below(r, REGISTERS);
    put_guard(to, r, 4);
    switch (brute_below(r, 7)) {
    case 0: fprintf(to, "mov.b32 %%r%u, 7;\n", a); break;
    case 1: fprintf(to, "add.s32 %%r%u, %%r%u, %%r%u;\n", a, b, c); break;
    case 2: fprintf(to, "setp.eq.s32 %%p%u, %%r%u, %%r%u;\n", a % 3, b, c); break;
    case 3: fprintf(to, "mov.b32 v.%c, %%r%u;\n", "xy"[a % 2], b); break;
    case 4: fprintf(to, "mov.b32 %%r%u, v.%c;\n", a, "xy"[b % 2]); break;
    case 5: fprintf(to, "mov.b64 {%%r%u, %%r%u}, %%d;\n", a, b); break;
    case 6: fprintf(to, "ld.shared.b32 %%r%u, [%%r%u+4];\n", a, b); break;
    }
}

static void put_control(FILE *to, struct brute_random *r, unsigned nlabels)
{
    unsigned kind = brute_below(r, 14);
    put_guard(to, r, 2);
    if (kind < 8)
        fprintf(to, "bra L%u;\n", brute_below(r, nlabels));
    else if (kind == 8)
        fprintf(to, "brx.idx %%r%u, T;\n", brute_below(r, REGISTERS));
    else if (kind == 9)
        fprintf(to, "frob.b32 %%r%u, L%u;\n", brute_below(r, REGISTERS), brute_below(r, nlabels));
    else if (kind == 10)
        fprintf(to, "call helper;\n");
    else if (kind == 11)
        fputs("ret;\n", to);
    else
        fputs(kind == 12 ? "exit;\n" : brute_below(r, 2) ? "trap;\n" : "call die;\n", to);
}

static void put_function(FILE *to, struct brute_random *r)
{
    unsigned nlabels = 1 + brute_below(r, LABELS), lines = brute_below(r, 40), placed = 0;
    bool shared = brute_below(r, 8) == 0, returns = brute_below(r, 4) == 0;
    fputs(HEAD, to);
    if (shared)
        fputs(".reg .b32 %r5;\n", to);
    fputs(returns ? ".func (.reg .b32 %r0) f (.reg .b32 %r1)\n{\n" : ".entry f ()\n{\n", to);
    // The entry may have predecessors.
    if (brute_below(r, 4) == 0)
        fprintf(to, "L%u:\n", placed++);
    fputs(returns ? ".reg .b32 %r2, %r3, %r4;\n" : ".reg .b32 %r0, %r1, %r2, %r3, %r4;\n", to);
    fputs(shared ? "" : ".reg .b32 %r5;\n", to);
    fputs(".reg .b32 %unused<100>;\n.reg .pred %p<3>;\n.reg .v2 .b32 v;\n.reg .b64 %d;\n", to);
    fputs("T: .branchtargets L0", to);
    for (unsigned i = brute_below(r, 4); i; i--)
        fprintf(to, ", L%u", brute_below(r, nlabels));
    fputs(";\n", to);
    for (unsigned i = 0; i < lines || placed < nlabels; i++) {
        if (placed < nlabels && (i >= lines || brute_below(r, 4) == 0))
            fprintf(to, "L%u:\n", placed++);
        if (i >= lines)
            continue;
        if (brute_below(r, 3))
            put_plain(to, r);
        else
            put_control(to, r, nlabels);
    }
    fputs("}\n", to);
}

static void random_functions(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < unit_cases(FUNCTIONS); i++) {
        struct brute_random r = {(SEED + i) * 2654435761u + 1};
        struct brute_func b;
        char *text;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        put_function(to, &r);
        fclose(to);
        struct ptx_module *m = parse(text);
        if (!brute_compare(&b, m, last_func(m), UINT64_MAX)) {
            fprintf(stderr, "seed %llu: %s\n%s", (unsigned long long)(SEED + i), b.why, text);
            fail();
        }
        brute_func_free(&b);
        ptx_free(m);
        free(text);
    }
}

// --- blocks ------------------------------------------------------------------------------------------------

// Compares the blocks of a body with a text: "0>1,2 1>x"; x: exits.
static void check_blocks(const char *body, const char *want, bool uncertain)
{
    char text[4000], got[400] = "";
    struct cfg *c;
    snprintf(text, sizeof text, "%s.entry k ()\n{\n.reg .pred p;\n.reg .b32 r;\n.reg .b64 d;\n%s}\n", HEAD,
             body);
    struct ptx_module *m = parse(text);
    assert_int_equal(cfg_build(m, last_func(m), &c), 0);
    assert_true(cfg_valid(c));
    for (uint32_t b = 0; b < c->nblocks; b++) {
        struct graph_nodes to = graph_succ(c->graph, b);
        size_t len = strlen(got);
        len += (size_t)snprintf(got + len, sizeof got - len, "%s%u>", b ? " " : "", b);
        for (uint32_t i = 0; i < to.n; i++)
            len += (size_t)snprintf(got + len, sizeof got - len, "%s%u", i ? "," : "", to.at[i]);
        snprintf(got + len, sizeof got - len, "%s", c->exits[b] ? "x" : "");
    }
    assert_string_equal(got, want);
    assert_int_equal(c->uncertain, uncertain);
    cfg_free(c);
    ptx_free(m);
}

static void blocks(void **state)
{
    (void)state;
    check_blocks("", "0>x", false);
    check_blocks("ret;\n", "0>x", false);
    check_blocks("@p ret;\nexit;\n", "0>1x 1>x", false);
    check_blocks("bra L;\nmov.b32 r, 1;\nL:\ntrap;\n", "0>2 1>2 2>x", false);
    check_blocks("@p bra L;\nmov.b32 r, 1;\nL:\nret;\n", "0>2,1 1>2 2>x", false);
    check_blocks("@p bra L;\nL:\nret;\n", "0>1 1>x", false);
    check_blocks("L:\nbra L;\n", "0>1 1>1", false);
    check_blocks("A: B: C:\n@p bra B;\n", "0>1 1>1x", false);
    // Labels that nothing refers to do not cut a block.
    check_blocks("mov.b32 r, 1;\nnever_used:\nmov.b32 r, 2;\nret;\n", "0>x", false);
    check_blocks("T: .branchtargets A, B, A;\nbrx.idx r, T;\nA:\nret;\nB:\nret;\n", "0>1,2 1>x 2>x", false);
    check_blocks("call die;\nmov.b32 r, 1;\nret;\n", "0>x 1>x", false);
    check_blocks("@p call die;\nmov.b32 r, 1;\nret;\n", "0>1x 1>x", false);
    check_blocks("call helper;\nret;\n", "0>x", false);
    check_blocks("P: .callprototype _ () .noreturn;\ncall d, P;\nret;\n", "0>x 1>x", false);
    check_blocks("P: .callprototype _ ();\ncall d, P;\nret;\n", "0>x", false);
    check_blocks("T: .branchtargets A, helper;\nbrx.idx r, T;\nA:\nret;\n", "0>1 1>x", true);
    check_blocks("frob.b32 r, r;\nret;\n", "0>x", true);
    check_blocks("frob.b32 r, L;\nmov.b32 r, 1;\nL:\nret;\n", "0>2,1 1>2 2>x", true);
    check_blocks("{\n.reg .b32 t;\nmov.b32 t, 1;\n@p bra L;\nL:\n}\nL:\nret;\n", "0>1 1>x", false);
}

// --- limits ------------------------------------------------------------------------------------------------

// n registers, each written at the start and read at the end of a chain of n blocks.
static char *long_lives(unsigned n)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fprintf(to, "%s.entry k ()\n{\n.reg .pred p;\n.reg .b32 r<%u>;\n", HEAD, n);
    for (unsigned i = 0; i < n; i++)
        fprintf(to, "mov.b32 r%u, 1;\n@p mov.b32 r%u, 2;\n", i, i);
    fprintf(to, "@p bra L0;\n");
    for (unsigned i = 0; i < n; i++)
        fprintf(to, "mov.b32 r%u, 2;\n@p bra L%u;\nL%u:\n", i, i, i);
    for (unsigned i = 0; i < n; i++)
        fprintf(to, "st.shared.b32 [0], r%u;\n", i);
    fprintf(to, "ret;\n}\n");
    fclose(to);
    return text;
}

static void limits_end_with_e2big(void **state)
{
    (void)state;
    char *text = long_lives(2000);
    struct ptx_module *m = parse(text);
    struct ptx_func *f = last_func(m);
    struct cfg *c;
    struct dom *d;
    struct regs *r;
    struct live *l;
    struct reach *reach;
    assert_int_equal(cfg_build(m, f, &c), 0);
    assert_int_equal(dom_build(c->graph, &d), 0);
    assert_int_equal(regs_build(f, 1000, &r), -E2BIG);
    assert_int_equal(regs_build(f, 0, &r), 0);
    assert_int_equal(live_build(c, r, 1 << 20, &l), -E2BIG);
    assert_int_equal(live_build(c, r, 0, &l), 0);
    assert_int_equal(reach_build(c, d, r, 1 << 20, &reach), -E2BIG);
    assert_int_equal(reach_build(c, d, r, 0, &reach), 0);
    reach_free(reach);
    live_free(l);
    regs_free(r);
    dom_free(d);
    cfg_free(c);
    ptx_free(m);
    free(text);
}

// The number of edges, switches times targets, exceeds the limit.
static void too_many_edges(void **state)
{
    (void)state;
    char *text;
    size_t size;
    struct cfg *c;
    FILE *to = open_memstream(&text, &size);
    fprintf(to, "%s.entry k ()\n{\n.reg .b32 r;\nT: .branchtargets L0", HEAD);
    for (unsigned i = 1; i < 5000; i++)
        fprintf(to, ", L%u", i);
    fprintf(to, ";\n");
    for (unsigned i = 0; i < 5000; i++)
        fprintf(to, "L%u: brx.idx r, T;\n", i);
    fprintf(to, "}\n");
    fclose(to);
    struct ptx_module *m = parse(text);
    assert_int_equal(cfg_build(m, last_func(m), &c), -E2BIG);
    ptx_free(m);
    free(text);
}

// 16 million registers of which three are used, and nearly a million blocks.
static void large_function(void **state)
{
    (void)state;
    char *text;
    size_t size;
    struct brute_analyses a;
    FILE *to = open_memstream(&text, &size);
    fprintf(to, "%s.entry k ()\n{\n.reg .pred p;\n.reg .b32 r<16000000>;\n", HEAD);
    for (unsigned i = 0; i < unit_cases(900000); i++)
        fprintf(to, "L%u: add.s32 r%u, r15999999, r0;\n@p bra L%u;\n", i, i % 2 * 15999999, i - i / 2);
    fprintf(to, "ret;\n}\n");
    fclose(to);
    struct ptx_module *m = parse(text);
    assert_int_equal(brute_analyse(m, last_func(m), &a), 0);
    assert_int_equal(a.regs->n, 3);
    assert_true(loops_valid(a.loops, a.cfg->graph, a.dom));
    assert_true(reach_valid(a.reach));
    brute_analyses_free(&a);
    ptx_free(m);
    free(text);
}

static void out_of_memory(void **state)
{
    (void)state;
    char *text = long_lives(30);
    struct ptx_module *m = parse(text);
    int err = -ENOMEM;
    for (long n = 0; err; n++) {
        struct brute_analyses a;
        struct live_walk w = {0};
        struct reach_set set = {0};
        mem_fail_after(n);
        err = brute_analyse(m, last_func(m), &a);
        err = err ? err : live_walk_init(&w, a.live);
        err = err ? err : reach_sources(a.reach, (uint32_t)a.reach->value.len - 1, &set);
        mem_fail_after(-1);
        assert_true(err == 0 || err == -ENOMEM);
        reach_set_free(&set);
        live_walk_free(&w);
        brute_analyses_free(&a);
    }
    ptx_free(m);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_functions),      cmocka_unit_test(blocks),
        cmocka_unit_test(limits_end_with_e2big), cmocka_unit_test(too_many_edges),
        cmocka_unit_test(large_function),        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
