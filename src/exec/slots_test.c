// SPDX-License-Identifier: MIT
// Slots and block order, on random functions and on those of test/ptx/forms: checks the headers' invariants
// against liveness and reachability computed from their definitions.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "exec/order.h"
#include "exec/slots.h"
#include "flow/brute_func.h"

enum { FUNCTIONS = 2000, LABELS = 8, LARGE = 3000 };

struct layout {
    struct brute_analyses a;
    uint32_t *order, n, *slot, size, words;
};

static int layout_make(const struct ptx_module *m, const struct ptx_func *f, struct layout *l)
{
    *l = (struct layout){0};
    int err = brute_analyse(m, f, &l->a);
    if (err)
        return err;
    l->order = calloc(l->a.cfg->nblocks, sizeof *l->order);
    l->slot = calloc(l->a.regs->n + 1, sizeof *l->slot);
    err = order_blocks(l->a.cfg, l->a.loops, l->order, &l->n);
    return err ? err
               : slots_assign(l->a.cfg, l->a.regs, l->a.live, l->order, l->n, l->slot, &l->size, &l->words);
}

static void layout_free(struct layout *l)
{
    brute_analyses_free(&l->a);
    free(l->order);
    free(l->slot);
}

// --- order -------------------------------------------------------------------------------------------------

static bool check_order(struct brute_func *b, const struct layout *l)
{
    const struct cfg *c = l->a.cfg;
    const struct graph *g = c->graph;
    uint32_t *rank = malloc(c->nblocks * sizeof *rank);
    bool *seen = malloc(c->nblocks), good = true;
    for (uint32_t v = 0; v < c->nblocks; v++)
        rank[v] = UINT32_MAX;
    for (uint32_t k = 0; k < l->n && good; k++) {
        good = rank[l->order[k]] == UINT32_MAX;
        rank[l->order[k]] = k;
    }
    good = good && l->n && l->order[0] == 0;
    brute_forward(g, 0, GRAPH_NONE, seen);
    for (uint32_t v = 0; v < c->nblocks && good; v++)
        good = seen[v] == (rank[v] != UINT32_MAX) || BRUTE_FAIL(b, "block %u is in the order or not", v);
    for (uint32_t u = 0; u < c->nblocks && good; u++) {
        struct graph_nodes to = graph_succ(g, u);
        for (uint32_t k = 0; rank[u] != UINT32_MAX && k < to.n && good; k++) {
            if (rank[to.at[k]] > rank[u])
                continue;
            brute_forward(g, to.at[k], GRAPH_NONE, seen);
            good = seen[u] || BRUTE_FAIL(b, "block %u goes back to %u without a cycle", u, to.at[k]);
        }
    }
    for (uint32_t k = 0; k < l->a.loops->nloops && good; k++) {
        const struct loop *loop = &l->a.loops->loops[k];
        uint32_t least = UINT32_MAX, most = 0;
        for (uint32_t n = 0; n < loop->count; n++) {
            uint32_t r = rank[l->a.loops->nodes[loop->first + n]];
            least = r < least ? r : least;
            most = r > most ? r : most;
        }
        if (!l->a.loops->nregions)
            good = most - least + 1 == loop->count ||
                   BRUTE_FAIL(b, "the loop of block %u is torn", loop->header);
    }
    free(rank);
    free(seen);
    return good;
}

// --- slots -------------------------------------------------------------------------------------------------

struct check {
    struct brute_func *b;
    const struct layout *l;
    uint8_t *live;  // by register index and statement: live before it
};

static uint32_t size_of(const struct check *c, uint32_t index)
{
    const struct ptx_var *v = ptx_reg_var(c->b->f, c->l->a.regs->reg[index]);
    return slots_size[slots_class(ptx_type_bits((enum ptx_type)v->type) * v->vec)];
}

static bool overlap(const struct check *c, uint32_t x, uint32_t y)
{
    uint32_t a = c->l->slot[x], b = c->l->slot[y];
    return a < b + size_of(c, y) && b < a + size_of(c, x);
}

static bool is_live_after(const struct check *c, uint32_t index, uint32_t stmt)
{
    const struct brute_func *b = c->b;
    for (uint32_t k = b->succ_at[stmt]; k < b->succ_at[stmt + 1]; k++)
        if (c->live[(size_t)index * b->n + b->succ[k]])
            return true;
    return false;
}

// Checks that a write does not touch registers needed later or the statement's other results; nor its
// operands, if it is executed in steps.
static bool check_write(struct check *c, uint32_t stmt, uint32_t index)
{
    struct regs_list list = regs_at(c->l->a.regs, stmt);
    const struct ptx_stmt *s = &c->b->f->stmts[stmt];
    for (uint32_t r = 0; r < c->l->a.regs->n; r++)
        if (r != index && overlap(c, r, index) && is_live_after(c, r, stmt))
            return BRUTE_FAIL(c->b, "statement %u writes register %u over %u", stmt, index, r);
    for (uint32_t k = 0; k < list.n; k++) {
        const struct regs_access *other = &list.at[k];
        bool together = other->writes || (s->kind == PTX_INSN && s->form->vec > 1);
        if (other->reg != index && together && overlap(c, other->reg, index))
            return BRUTE_FAIL(c->b, "statement %u has registers %u and %u in one slot", stmt, index,
                              other->reg);
        if (other->reg != index && overlap(c, other->reg, index) &&
            c->l->slot[other->reg] != c->l->slot[index])
            return BRUTE_FAIL(c->b, "statement %u has slots that are half the same", stmt);
    }
    return true;
}

static bool check_slots(struct brute_func *b, const struct layout *l)
{
    struct check c = {b, l, calloc((size_t)l->a.regs->n * b->n + 1, 1)};
    bool good = true;
    for (uint32_t r = 0; r < l->a.regs->n && good; r++) {
        uint32_t reg = l->a.regs->reg[r], size = size_of(&c, r);
        good =
            (l->slot[r] >= 64 && l->slot[r] + size <= l->size && l->slot[r] % (size < 64 ? size : 64) == 0) ||
            BRUTE_FAIL(b, "register %u has the slot %u", reg, l->slot[r]);
        brute_set_does(b, reg, true);
        brute_live(b, reg);
        brute_set_does(b, reg, false);
        for (uint32_t s = 0; s < b->n; s++)
            c.live[(size_t)r * b->n + s] = b->mark[s] == b->clock;
    }
    for (uint32_t s = 0; s < b->f->nstmts && good; s++) {
        struct regs_list list = regs_at(l->a.regs, s);
        for (uint32_t k = 0; b->reached[s] && k < list.n && good; k++)
            good = !list.at[k].writes || check_write(&c, s, list.at[k].reg);
    }
    free(c.live);
    return good;
}

static bool check_func(const struct ptx_module *m, const struct ptx_func *f, char why[400])
{
    struct brute_func b;
    struct layout l;
    brute_func_init(&b, m, f, UINT64_MAX);
    assert_int_equal(layout_make(m, f, &l), 0);
    bool good = check_order(&b, &l) && check_slots(&b, &l);
    memcpy(why, b.why, 400);
    layout_free(&l);
    brute_func_free(&b);
    return good;
}

// --- random functions --------------------------------------------------------------------------------------

static const char HEAD[] = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func die() .noreturn;\n";

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

static void put_plain(FILE *to, struct brute_random *r)
{
    unsigned a = brute_below(r, 7), b = brute_below(r, 7), c = brute_below(r, 7), p = brute_below(r, 3);
    if (brute_below(r, 3) == 0)
        fprintf(to, "@%s%%p%u ", brute_below(r, 2) ? "!" : "", brute_below(r, 3));
    switch (brute_below(r, 11)) {
    case 0: fprintf(to, "mov.b32 %%r%u, 7;\n", a); break;
    case 1: fprintf(to, "add.s32 %%r%u, %%r%u, %%r%u;\n", a, b, c); break;
    case 2:
        fprintf(to, "setp.eq.and.s32 %%p%u|%%p%u, %%r%u, %%r%u, %%p%u;\n", p, (p + 1) % 3, b, c, a % 3);
        break;
    case 3: fprintf(to, "mov.b64 %%d%u, {%%r%u, %%r%u};\n", a % 4, b, c); break;
    case 4: fprintf(to, "mov.b64 {%%r%u, %%r%u}, %%d%u;\n", a, (a + 1) % 7, b % 4); break;
    case 5: fprintf(to, "ld.global.v2.b32 {%%r%u, %%r%u}, [%%d%u];\n", a, (a + 1) % 7, b % 4); break;
    case 6: fprintf(to, "mad.wide.u32 %%d%u, %%r%u, %%r%u, %%d%u;\n", a % 4, b, c, (a + b) % 4); break;
    case 7: fprintf(to, "atom.global.add.u32 %%r%u, [%%d%u], %%r%u;\n", a, b % 4, c); break;
    case 8: fprintf(to, "cvt.u16.u32 %%h%u, %%r%u;\n", a % 3, b); break;
    case 9: fprintf(to, "mov.b128 %%q%u, {%%d%u, %%d%u};\n", a % 2, b % 4, c % 4); break;
    case 10: fprintf(to, "ld.global.v2.b64 {%%d%u, %%d%u}, [%%d%u];\n", a % 4, (a + 1) % 4, b % 4); break;
    }
}

static void put_control(FILE *to, struct brute_random *r, unsigned nlabels)
{
    unsigned kind = brute_below(r, 12);
    if (brute_below(r, 2))
        fprintf(to, "@%s%%p%u ", brute_below(r, 2) ? "!" : "", brute_below(r, 3));
    if (kind < 8)
        fprintf(to, "bra L%u;\n", brute_below(r, nlabels));
    else if (kind < 10)
        fprintf(to, "brx.idx %%r%u, T;\n", brute_below(r, 7));
    else
        fputs(kind == 10 ? "ret;\n" : "call die;\n", to);
}

static void put_function(FILE *to, struct brute_random *r)
{
    // The entry may have predecessors.
    unsigned nlabels = 1 + brute_below(r, LABELS), lines = brute_below(r, 40),
             placed = brute_below(r, 4) == 0;
    fprintf(to,
            "%s.entry f()\n{\n%s.reg .b16 %%h<3>;\n.reg .b32 %%r<7>;\n.reg .b64 %%d<4>;\n.reg .b128 %%q<2>;\n"
            ".reg .pred %%p<3>;\nT: .branchtargets L0",
            HEAD, placed ? "L0:\n" : "");
    for (unsigned i = brute_below(r, 4); i; i--)
        fprintf(to, ", L%u", brute_below(r, nlabels));
    fputs(";\n", to);
    for (unsigned i = 0; i < lines || placed < nlabels; i++) {
        if (placed < nlabels && (i >= lines || brute_below(r, 4) == 0))
            fprintf(to, "L%u:\n", placed++);
        if (i < lines && brute_below(r, 3))
            put_plain(to, r);
        else if (i < lines)
            put_control(to, r, nlabels);
    }
    fputs("}\n", to);
}

static const struct ptx_func *last_func(const struct ptx_module *m)
{
    for (uint32_t i = m->nitems; i-- > 0;)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->has_body)
            return m->items[i].func;
    fail();
    return NULL;
}

static void random_functions(void **state)
{
    for (uint64_t i = 0; i < unit_cases(FUNCTIONS); i++) {
        struct brute_random r = {(20010203 + i) * 2654435761u + 1};
        char *text, why[400];
        size_t size;
        FILE *to = open_memstream(&text, &size);
        put_function(to, &r);
        fclose(to);
        struct ptx_module *m = parse(text);
        if (!check_func(m, last_func(m), why)) {
            fprintf(stderr, "function %llu: %s\n%s", (unsigned long long)i, why, text);
            fail();
        }
        ptx_free(m);
        free(text);
    }
}

// --- real functions ----------------------------------------------------------------------------------------

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(f);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

static void forms(void **state)
{
    glob_t found;
    unsigned checked = 0;
    if (glob("test/ptx/forms/*.ptx", 0, NULL, &found))
        skip();
    for (size_t k = 0; k < found.gl_pathc; k++) {
        char *text = read_file(found.gl_pathv[k]), why[400];
        struct ptx_module *m = parse(text);
        for (uint32_t i = 0; i < m->nitems; i++) {
            const struct ptx_func *f = m->items[i].kind == PTX_ITEM_FUNC ? m->items[i].func : NULL;
            if (!f || !f->has_body || f->nstmts > LARGE)
                continue;
            if (!check_func(m, f, why))
                fail_msg("%s: %s: %s", found.gl_pathv[k], ptx_func_name(m, f).ptr, why);
            checked++;
        }
        ptx_free(m);
        free(text);
    }
    globfree(&found);
    assert_true(checked > 50);
}

// --- limits ------------------------------------------------------------------------------------------------

// More registers are live at once than there is room for.
static void too_many_registers(void **state)
{
    enum { N = SLOTS_MOST / 256 + 1 };
    char *text;
    size_t size;
    struct layout l;
    FILE *to = open_memstream(&text, &size);
    fprintf(to, "%s.entry f()\n{\n.reg .b64 d<%u>;\n", HEAD, (unsigned)N);
    for (unsigned i = 0; i < N; i++)
        fprintf(to, "mov.b64 d%u,1;\n", i);
    for (unsigned i = 0; i < N; i++)
        fprintf(to, "st.b64 [0],d%u;\n", i);
    fputs("}\n", to);
    fclose(to);
    struct ptx_module *m = parse(text);
    assert_int_equal(layout_make(m, last_func(m), &l), -E2BIG);
    layout_free(&l);
    ptx_free(m);
    free(text);
}

static void out_of_memory(void **state)
{
    struct brute_random r = {77};
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    put_function(to, &r);
    fclose(to);
    struct ptx_module *m = parse(text);
    int err = -ENOMEM;
    for (long n = 0; err; n++) {
        struct layout l;
        mem_fail_after(n);
        err = layout_make(m, last_func(m), &l);
        mem_fail_after(-1);
        assert_true(err == 0 || err == -ENOMEM);
        layout_free(&l);
    }
    ptx_free(m);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_functions),
        cmocka_unit_test(forms),
        cmocka_unit_test(too_many_registers),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
