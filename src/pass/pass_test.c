// SPDX-License-Identifier: MIT
// Requests, results and what every pass promises. test/pass/count.sh runs what the counting pass counts.
#include "pass/pass.h"

#include <errno.h>

#include "base/mem.h"
#include "kcheck/kcheck.h"
#include "pass/pass_check.h"
#include "pass/pass_count.h"
#include "ptx/testing.h"

#define HEAD TESTING_HEAD
static const struct pass_request counting = {.passes = "count", .verify = true};

static int rewrite(const char *text, const struct pass_request *request, struct pass_result **r,
                   char *messages)
{
    struct testing_sink *t = testing_sink_new();
    int err = pass_rewrite("test.ptx", str_from(text), request, &t->sink, r);
    if (messages)
        strcpy(messages, t->text);
    free(t);
    return err;
}

static struct pass_result *rewritten(const char *text, const struct pass_request *request)
{
    struct pass_result *r;
    char messages[4096];
    int err = rewrite(text, request, &r, messages);
    if (err)
        print_error("%s\n", messages);
    assert_int_equal(err, 0);
    assert_string_equal(messages, "");
    assert_int_equal(r->text.ptr[r->text.len], 0);
    return r;
}

static void fails(const char *text, const struct pass_request *request, int error)
{
    struct pass_result *r;
    assert_int_equal(rewrite(text, request, &r, NULL), error);
    assert_null(r);
}

static bool has(const struct pass_result *r, const char *text)
{
    return memmem(r->text.ptr, r->text.len, text, strlen(text));
}

// --- the table ---------------------------------------------------------------------------------------------

static void good_rows(void **state)
{
    unsigned facts = PASS_ALL_FACTS;
    for (unsigned i = 0; i < pass_row_count; i++) {
        const struct pass_row *row = &pass_rows[i];
        assert_int_equal(row->keeps | row->breaks, PASS_ALL_FACTS);
        assert_int_equal(row->keeps & row->breaks, 0);
        assert_int_equal(row->requires & ~facts, 0);
        assert_true(row->version > 0);
        assert_true(pass_known(row->name));
        assert_non_null(strstr(pass_names, row->name));
        facts &= ~row->breaks;
    }
    char key[64], small[4];
    assert_false(pass_known("") || pass_known("cnt") || pass_known("count,") || pass_known("count,x"));
    assert_true(pass_known("count,count"));
    pass_key("count", key, sizeof key);
    assert_string_equal(key, "count.3");
    pass_key("count", small, sizeof small);
    assert_string_equal(small, "cou");
}

// --- what a pass keeps -------------------------------------------------------------------------------------

// Guards, labels, scopes, lists, lines, an unknown instruction, control that runs into the end.
static const char everything[] =
    HEAD ".func (.param .b32 r) f(.param .b64 a, .reg .b32 b)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd;\n.reg "
         ".pred p;\n"
         "ld.param.b64 %rd, [a];\nld.global.b32 %r1, [%rd];\n@p ret;\nst.param.b32 [r], %r1;\nexit;\n}\n"
         ".visible .entry k(.param .u64 a, .param .align 8 .b8 s[16])\n.maxntid 32, 1, 1\n{\n"
         ".reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .pred %p<3>;\n.loc 1 2 3\nld.param.u64 %rd1, [a];\n"
         "L1:\n@%p1 ld.global.v2.b32 {%r1, %r2}, [%rd1+4];\n@!%p1 atom.shared.add.u32 %r3, [%rd1], 1;\n"
         "@%p2 bra L1;\n@%p2 exit;\nbrx.idx %r1, list;\nlist: .branchtargets L1, L2;\n"
         "L2:\n{\n.reg .b32 %r1;\nst.local.b32 [%rd1], %r1;\nfrobnicate %r1;\n}\n}\n";

// Checks that each instruction of f is in g, in order.
static void keeps_insns(const struct ptx_module *was, const struct ptx_func *f, const struct ptx_module *is,
                        const struct ptx_func *g)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < f->nstmts; i++) {
        if (f->stmts[i].kind != PTX_INSN && f->stmts[i].kind != PTX_LABEL && f->stmts[i].kind != PTX_LOC)
            continue;
        struct out a, b;
        bool same = false;
        out_to_memory(&a);
        ptx_print_stmt(was, f, &f->stmts[i], &a);
        for (; !same && k < g->nstmts; k++) {
            out_to_memory(&b);
            ptx_print_stmt(is, g, &g->stmts[k], &b);
            same = str_eq((struct str){a.buf, a.len}, (struct str){b.buf, b.len});
            out_close(&b);
        }
        if (!same)
            fail_msg("lost: " STR_FMT, STR_ARG(((struct str){a.buf, a.len})));
        out_close(&a);
    }
}

static void keeps_params(const struct ptx_func *f, const struct ptx_func *g)
{
    assert_int_equal(f->nparams, g->nparams);
    for (uint32_t i = 0; i < f->nparams; i++)
        assert_int_equal(ptx_var_size(&f->params[i]), ptx_var_size(&g->params[i]));
}

// A fence refuses what it does not know; it gets the same text without that.
static const char *text_for(const char *pass, const char *known)
{
    const struct pass_request request = {.passes = pass, .verify = true};
    if (!str_starts(str_from(pass), STR("fence")))
        return everything;
    fails(everything, &request, -ENOTSUP);
    return known;
}

static void good_promises(void **state)
{
    static char known[sizeof everything];
    memcpy(known, everything, sizeof known);
    memset(strstr(known, "frobnicate %r1;"), ' ', strlen("frobnicate %r1;"));
    struct ptx_module *was = testing_parse(STR(everything));
    for (unsigned i = 0; i < pass_row_count; i++) {
        struct pass_result *r =
            rewritten(text_for(pass_rows[i].name, known),
                      &(struct pass_request){.passes = pass_rows[i].name, .verify = true});
        struct ptx_module *is = testing_parse(r->text);
        for (uint32_t k = 0; k < r->nfuncs; k++) {
            const struct ptx_func *f = ptx_find(was, r->funcs[k].name)->func,
                                  *g = ptx_find(is, r->funcs[k].name)->func;
            if (pass_rows[i].keeps & PASS_PARAMS)
                keeps_params(f, g);
            if (pass_rows[i].keeps & PASS_INSNS)
                keeps_insns(was, f, is, g);
        }
        ptx_free(is);
        pass_result_free(r);
    }
    ptx_free(was);
}

// --- analyses ----------------------------------------------------------------------------------------------

enum { FUNCS = 2 };
struct borrower {
    struct pass_context c;
    struct pass_result r;
    struct ptx_func *funcs[FUNCS];
    struct flow flows[FUNCS];
    uint32_t edits[FUNCS];
    struct testing_sink *sink;
};

// A loop, and a function that is left alone.
static const char looping[] = HEAD ".func f()\n{\n.reg .b32 %r<3>;\nmov.b32 %r1, 5;\nret;\n}\n"
                                   ".entry k()\n{\n.reg .b32 %r<3>;\n.reg .pred %p;\nmov.b32 %r1, 0;\n"
                                   "L:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p, %r1, 9;\n@%p bra L;\nret;\n}\n";

static struct borrower *open_borrower(void)
{
    struct borrower *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->sink = testing_sink_new();
    b->c = (struct pass_context){.m = testing_parse(STR(looping)),
                                 .sink = &b->sink->sink,
                                 .result = &b->r,
                                 .funcs = b->funcs,
                                 .flows = b->flows,
                                 .flow_edits = b->edits};
    for (uint32_t i = 0; i < b->c.m->nitems; i++)
        if (b->c.m->items[i].kind == PTX_ITEM_FUNC) {
            b->funcs[b->r.nfuncs] = b->c.m->items[i].func;
            b->flows[b->r.nfuncs] = (struct flow){.m = b->c.m, .f = b->c.m->items[i].func};
            b->r.nfuncs++;
        }
    assert_int_equal(b->r.nfuncs, FUNCS);
    return b;
}

static void close_borrower(struct borrower *b)
{
    pass_break(&b->c, PASS_ALL_FACTS);
    ptx_free(b->c.m);
    assert_string_equal(b->sink->text, "");
    free(b->sink);
    free(b);
}

static bool is_made(const struct borrower *b, uint32_t func)
{
    const struct flow *w = &b->flows[func];
    return w->regs || w->cfg || w->dominators || w->postdominators || w->loops || w->reaching || w->liveness;
}

static void good_loans(void **state)
{
    struct borrower *b = open_borrower();
    const struct loops *loops, *again;
    const struct cfg *cfg;
    const struct dom *dom, *post;
    const struct reach *reach;
    const struct live *live;
    const struct regs *regs;
    assert_false(is_made(b, 0) || is_made(b, 1));
    assert_int_equal(flow_loops(pass_flow(&b->c, 1), &loops), 0);
    assert_int_equal(loops->nloops, 1);
    assert_false(is_made(b, 0));
    // Only the requested analyses, and those they need, are made.
    assert_true(b->flows[1].cfg && b->flows[1].dominators);
    assert_false(b->flows[1].regs || b->flows[1].postdominators || b->flows[1].reaching ||
                 b->flows[1].liveness);
    // An analysis is made once and shared by those that need it.
    assert_int_equal(flow_cfg(pass_flow(&b->c, 1), &cfg), 0);
    assert_int_equal(flow_dominators(pass_flow(&b->c, 1), &dom), 0);
    assert_int_equal(flow_postdominators(pass_flow(&b->c, 1), &post), 0);
    assert_int_equal(flow_reaching(pass_flow(&b->c, 1), &reach), 0);
    assert_int_equal(flow_liveness(pass_flow(&b->c, 1), &live), 0);
    assert_int_equal(flow_regs(pass_flow(&b->c, 1), &regs), 0);
    assert_int_equal(flow_loops(pass_flow(&b->c, 1), &again), 0);
    assert_ptr_equal(loops, again);
    assert_ptr_equal(live->cfg, cfg);
    assert_ptr_equal(reach->cfg, cfg);
    assert_ptr_equal(live->regs, regs);
    assert_ptr_equal(reach->regs, regs);
    assert_ptr_equal(cfg->func, b->funcs[1]);
    assert_true(dom != post && dom_valid(dom, cfg->graph) && loops_valid(loops, cfg->graph, dom));
    assert_true(live_valid(live) && reach_valid(reach));
    assert_int_equal(post->root, cfg->nblocks);  // the exit
    close_borrower(b);
}

// The facts that a pass breaks, by its row in passes.def, decide which analyses are dropped.
static void good_loans_end(void **state)
{
    struct borrower *b = open_borrower();
    static const struct {
        unsigned facts;
        bool ends;
    } rows[] = {
        {0, false}, {PASS_PARAMS, false}, {PASS_INSNS, true}, {PASS_BLOCKS, true}, {PASS_ALL_FACTS, true}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint32_t func = 0; func < FUNCS; func++)
            assert_int_equal(flow_reaching(pass_flow(&b->c, func), NULL), 0);
        pass_break(&b->c, rows[i].facts);
        assert_int_equal(is_made(b, 0), !rows[i].ends);
        assert_int_equal(is_made(b, 1), !rows[i].ends);
    }
    close_borrower(b);
}

static uint32_t blocks_of(struct borrower *b, uint32_t func)
{
    const struct cfg *cfg;
    assert_int_equal(flow_cfg(pass_flow(&b->c, func), &cfg), 0);
    assert_true(cfg_valid(cfg));
    return cfg->nblocks;
}

// While a function is edited, its analyses are as before; afterwards they are made anew, and those of others
// are not.
static void good_loans_and_edits(void **state)
{
    struct borrower *b = open_borrower();
    const struct cfg *other, *cfg, *same;
    assert_int_equal(blocks_of(b, 1), 3);
    assert_int_equal(flow_cfg(pass_flow(&b->c, 0), &other), 0);
    assert_int_equal(flow_cfg(pass_flow(&b->c, 1), &cfg), 0);
    assert_int_equal(edit_open(b->c.m, b->c.sink, &b->c.edit), 0);
    edit_func(b->c.edit, b->funcs[0]);  // changes nothing
    edit_func(b->c.edit, b->funcs[1]);
    edit_entry(b->c.edit, "bra next;\nnext:\n");
    assert_int_equal(flow_cfg(pass_flow(&b->c, 1), &same), 0);
    assert_ptr_equal(cfg, same);
    assert_int_equal(edit_close(b->c.edit), 0);
    assert_int_equal(blocks_of(b, 1), 4);
    assert_int_equal(flow_cfg(pass_flow(&b->c, 0), &same), 0);
    assert_ptr_equal(same, other);
    assert_int_equal(b->funcs[0]->nedits, 0);
    // A change in place counts too: the branch goes to the new label.
    const struct ptx_stmt *bra = testing_insn(b->funcs[1], 0);
    struct ptx_operand target = *ptx_operand(bra, 0);
    uint32_t at = 0;
    while (b->funcs[1]->stmts[at].kind != PTX_INSN || b->funcs[1]->stmts[at].guard == PTX_NONE)
        at++;
    assert_int_equal(edit_open(b->c.m, b->c.sink, &b->c.edit), 0);
    edit_func(b->c.edit, b->funcs[1]);
    edit_set(b->c.edit, at, 0, target);
    assert_int_equal(edit_close(b->c.edit), 0);
    assert_int_equal(blocks_of(b, 1), 3);  // nothing refers to L
    close_borrower(b);
}

static void good_loans_without_memory(void **state)
{
    struct borrower *b = open_borrower();
    int err = -ENOMEM;
    for (long n = 0; err == -ENOMEM; n++) {
        pass_break(&b->c, PASS_ALL_FACTS);
        mem_fail_after(n);
        err = flow_reaching(pass_flow(&b->c, 1), NULL);
        if (!err)
            err = flow_liveness(pass_flow(&b->c, 1), NULL);
        if (!err)
            err = flow_loops(pass_flow(&b->c, 1), NULL);
        if (!err)
            err = flow_postdominators(pass_flow(&b->c, 1), NULL);
        mem_fail_after(-1);
        // An analysis that failed can be requested again.
        if (err == -ENOMEM)
            assert_int_equal(flow_reaching(pass_flow(&b->c, 1), NULL), 0);
    }
    assert_int_equal(err, 0);
    close_borrower(b);
}

// --- requests ----------------------------------------------------------------------------------------------

static void bad_requests(void **state)
{
    fails("nonsense", &counting, -EINVAL);
    fails(HEAD, &(struct pass_request){.passes = "cnt"}, -ENOENT);
    fails(".version 9.0\n.target sm_20\n.address_size 32\n", &counting, -ENOTSUP);
    fails(".version 2.2\n.target sm_20\n", &counting, -ENOTSUP);
    fails(HEAD ".reg .b32 r;\n.entry k()\n{\nret;\n}\n", &counting, -ENOTSUP);
    fails(HEAD ".entry k()\n{\n.reg .b32 r;\nadd.f64 r, r, r;\n}\n", &counting, -EINVAL);
    fails(".version 9.0\n.target compute\n.address_size 64\n",
          &(struct pass_request){.passes = "count", .arch = 90}, -EINVAL);
    struct pass_result *r = rewritten(HEAD ".entry k()\n{\nret;\n}\n", &counting);
    fails(r->text.ptr, &counting, -EEXIST);
    pass_result_free(r);
}

// A text of today without the size of addresses has addresses of 64 bits.
static void good_size(void **state)
{
    struct pass_result *r = rewritten(".version 9.0\n.target sm_90\n.entry k()\n{\nret;\n}\n", &counting);
    assert_non_null(strstr(r->text.ptr, ".address_size 64\n"));
    pass_result_free(r);
}

static void good_retarget(void **state)
{
    struct testing_sink *sink = testing_sink_new();
    struct pass_result *r;
    static const char body[] = ".address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";
    char text[200], as[200];
    snprintf(text, sizeof text, ".version 8.8\n.target sm_121a\n%s", body);
    snprintf(as, sizeof as, ".version 8.8\n.target sm_90\n%s", body);
    assert_int_equal(pass_retarget("newer", str_from(text), 90, &sink->sink, &r), 0);
    assert_true(r->lowered);
    assert_string_equal(r->text.ptr, as);
    pass_result_free(r);
    assert_int_equal(pass_retarget("nonsense", STR("nonsense"), 90, &sink->sink, &r), -EINVAL);
    assert_null(r);
    free(sink);
}

static void good_targets(void **state)
{
    struct pass_request request = {.passes = "count", .arch = 90, .verify = true};
    static const char body[] = "\n.address_size 64\n.entry k()\n{\nret;\n}\n";
    char *newer = testing_join(".version 9.0\n.target sm_120a, debug", body, "");
    char *older = testing_join(".version 9.0\n.target sm_75", body, "");
    struct pass_result *r = rewritten(newer, &request);
    assert_true(r->lowered && has(r, ".target sm_90, debug\n") && has(r, "activemask"));
    pass_result_free(r);
    r = rewritten(older, &request);
    assert_false(r->lowered || !has(r, ".target sm_75\n") || has(r, "activemask"));
    pass_result_free(r);
    free(newer);
    free(older);
}

// --- results -----------------------------------------------------------------------------------------------

static const struct pass_func *func(const struct pass_result *r, const char *name)
{
    for (uint32_t i = 0; i < r->nfuncs; i++)
        if (str_eq(r->funcs[i].name, str_from(name)))
            return &r->funcs[i];
    fail_msg("%s is not there", name);
    return NULL;
}

#define LAUNCHER                                                                                     \
    HEAD ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n"         \
         ".func f()\n{\n.reg .pred p;\n@p exit;\nret;\n}\n"                                          \
         ".func g()\n{\nret;\n}\n"                                                                   \
         ".entry parent()\n{\n.param .b32 r;\n.param .b64 a, b;\ncall (r), cudaLaunchDeviceV2, (a, " \
         "b);\nret;\n}\n"                                                                            \
         ".entry caller()\n{\ncall f;\nret;\n}\n"                                                    \
         ".entry copies()\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<3>;\n"                                 \
         "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2}], [%r3];\n"   \
         "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;\n"                         \
         "wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%rd1], {%rd1, %rd2};\n"                   \
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1];\nret;\n}\n"

static void good_results(void **state)
{
    struct pass_result *r = rewritten(LAUNCHER, &counting);
    assert_int_equal(r->nfuncs, 5);
    assert_int_equal(func(r, "parent")->why, PASS_LAUNCHES);
    assert_int_equal(func(r, "caller")->why, PASS_REWRITTEN);
    assert_true(func(r, "caller")->approximate && func(r, "caller")->is_entry);
    assert_false(func(r, "g")->approximate || func(r, "g")->is_entry);
    assert_int_equal(func(r, "copies")->unsized, 2);  // of the tensor, a load and a store
    assert_int_equal(r->nsymbols, 1);
    assert_int_equal(r->symbols[0].bytes, 5 * PASS_COUNT_ROW * 8);
    assert_true(has(r, ".weak .global .align 128 .u64 __moat_count_"));
    assert_true(has(r, ".entry parent()\n{\n\t.param .b32 r;\n"));

    struct out o;
    struct pass_result *again;
    assert_int_equal(out_to_memory(&o), 0);
    pass_describe(r, &o);
    assert_int_equal(pass_description((struct str){o.buf, o.len}, &again), 0);
    assert_int_equal(again->nsymbols, 1);
    assert_int_equal(again->nfuncs, 5);
    assert_true(str_eq(again->symbols[0].name, r->symbols[0].name));
    assert_int_equal(again->symbols[0].bytes, r->symbols[0].bytes);
    for (uint32_t i = 0; i < 5; i++) {
        const struct pass_func *f = &r->funcs[i], *g = &again->funcs[i];
        assert_true(str_eq(f->name, g->name) && f->is_entry == g->is_entry && f->why == g->why &&
                    f->approximate == g->approximate && f->unsized == g->unsized);
    }
    pass_result_free(again);
    out_close(&o);
    pass_result_free(r);
    r = rewritten(HEAD, &counting);
    assert_int_equal(r->nfuncs + r->nsymbols, 0);
    pass_result_free(r);
}

static void bad_descriptions(void **state)
{
    static const char *const bad[] = {"",
                                      "moat-pass 6",
                                      "moat-pass 1\n",
                                      "moat-pass 6\nlowered x\n",
                                      "moat-pass 6\n\n",
                                      "moat-pass 6\nsymbol count s\n",
                                      "moat-pass 6\nsymbol nobody s 1\n",
                                      "moat-pass 6\nsymbol count  1\n",
                                      "moat-pass 6\nsymbol count s -1\n",
                                      "moat-pass 6\nsymbol count s 18446744073709551616\n",
                                      "moat-pass 6\nsymbol count s\"x 1\n",
                                      "moat-pass 6\nkernel k 0 0\n",
                                      "moat-pass 6\nkernel k 0 2 0\n",
                                      "moat-pass 6\nkernel k 9 0 0\n",
                                      "moat-pass 6\nkernel k 0 0 4294967296\n",
                                      "moat-pass 6\nkernel k 0 0 0 0\n",
                                      "moat-pass 6\nkernel k 0 0 0",
                                      "moat-pass 6\ncheck 0 0\n",
                                      "moat-pass 6\ncheck 1 0 0\n",
                                      "moat-pass 6\ncheck 4294967295 0 0\n",
                                      "moat-pass 6\ncheck 0 0 0\ncheck 0 0 0\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 4294967295 0\nvariant 16 0\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 1 0\nparam 0\nvariant 16 0\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 0 0\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 0 3\nvariant 16 0\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 0 0\nvariant 16 1\n"
                                      "param 0 8\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 0 2\nvariant 16 0\n"
                                      "proof 2 0 0g00\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 0 2\nvariant 16 0\n"
                                      "proof 2 0 000\n",
                                      "moat-pass 6\ncheck 1 0 0\nchecked k 16 0 2\nvariant 16 0\n"
                                      "proof 2 0 0000\n",
                                      "moat-pass 6\ncheck 0 1 0\nsite f 1 4 1 9 0 x\n",
                                      "moat-pass 6\ncheck 0 1 0\nsite f 1 4 1 0 17 x\n",
                                      "moat-pass 6\ncheck 0 1 0\nsite f 1 4 1 1 0 x\nframe 1 0 f\ta.cu\n",
                                      "moat-pass 6\ncheck 0 0 1\nleft f 1 2 3\n"};
    struct pass_result *r;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (pass_description(str_from(bad[i]), &r) != -EINVAL)
            fail_msg("accepted: %s", bad[i]);
        assert_null(r);
    }
    assert_int_equal(pass_description(STR("moat-pass 6\nlowered\nsymbol count s 18446744073709551615\n"), &r),
                     0);
    assert_true(r->lowered && r->symbols[0].bytes == UINT64_MAX);
    pass_result_free(r);
}

static void good_sums(void **state)
{
    static uint64_t table[2 * PASS_COUNT_ROW];
    for (unsigned i = 0; i < 2 * PASS_COUNT_ROW; i++)
        table[i] = i >= PASS_COUNT_ROW ? 1ull << i % PASS_COUNT_LINE : 1000;
    struct pass_count_sums s = {0};
    pass_count_add(table, 1, &s);
    assert_int_equal(s.threads, PASS_COUNT_SLOTS);
    assert_int_equal(s.launches, (1ull << 17) * PASS_COUNT_SLOTS);
    assert_int_equal(s.space[PASS_COUNT_GENERIC].loads, 2 * PASS_COUNT_SLOTS);
    assert_int_equal(s.space[PASS_COUNT_GENERIC].stores, 4 * PASS_COUNT_SLOTS);
    assert_int_equal(s.space[PASS_COUNT_GENERIC].loaded, 8 * PASS_COUNT_SLOTS);
    assert_int_equal(s.space[PASS_COUNT_LOCAL].stored, (1ull << 16) * PASS_COUNT_SLOTS);
}

// --- checks ------------------------------------------------------------------------------------------------

// A structure by value, a variable, a pointer from memory, a merge, a call and a function whose address is
// taken.
static const char CHECKED[] = HEAD
    ".file 1 \"a b.cu\"\n.global .align 4 .b8 table[64];\n"
    ".func (.param .b64 r) f(.param .b64 a)\n{\n.reg .b64 %d<4>;\n.reg .b32 %r;\nld.param.u64 %d1, [a];\n"
    "ld.u32 %r, [%d1+8];\nst.param.b64 [r], %d1;\nret;\n}\n"
    ".func taken(.param .b64 a)\n{\n.reg .b64 %d;\nld.param.u64 %d, [a];\nst.u32 [%d], 1;\nret;\n}\n"
    ".visible .entry k(.param .u32 n, .param .align 8 .b8 s[16], .param .u64 b)\n{\n.reg .b64 %d<9>;\n.reg "
    ".b32 "
    "%r<4>;\n.reg .pred %p;\n.loc 1 7 3\nld.param.u64 %d1, [s+8];\nld.param.u64 %d2, [b];\n"
    "ld.global.v2.u32 {%r1, %r2}, [%d1];\nld.global.u32 %r3, [%d1+12];\n@%p mov.u64 %d1, %d2;\n"
    "st.global.u32 [%d1], %r3;\nmov.u64 %d4, table;\natom.global.add.u32 %r3, [%d4+60], %r1;\n"
    "{\n.param .b64 x;\n.param .b64 y;\nst.param.b64 [x], %d2;\ncall (y), f, (x);\nld.param.u64 %d3, "
    "[y];\n}\n"
    "ld.u64 %d5, [%d3];\nmov.u64 %d6, taken;\nst.shared.u32 [%r1], %r2;\nred.add.u32 [%d5], 1;\nret;\n}\n";
static const struct pass_request checking = {.passes = "check", .verify = true};

static void same_variant(const struct pass_check_variant *a, const struct pass_check_variant *b)
{
    assert_true(a->hidden_bytes == b->hidden_bytes && a->npairs == b->npairs);
    for (uint32_t i = 0; i < a->npairs; i++) {
        const struct pass_check_pair *x = &a->pairs[i], *y = &b->pairs[i];
        assert_true(x->offset == y->offset && x->span == y->span && x->align == y->align);
        assert_true(x->scale == y->scale && x->is_signed == y->is_signed && x->at == y->at);
    }
}

static void same_check(const struct pass_check *a, const struct pass_check *b)
{
    assert_int_equal(a->nkernels, b->nkernels);
    assert_int_equal(a->nsites, b->nsites);
    assert_int_equal(a->tag, b->tag);
    assert_int_equal(a->nfuncs, b->nfuncs);
    for (uint32_t i = 0; i < a->nkernels; i++) {
        const struct pass_check_kernel *x = &a->kernels[i], *y = &b->kernels[i];
        assert_true(str_eq(x->name, y->name) && x->hidden == y->hidden && x->nparams == y->nparams);
        assert_memory_equal(x->params, y->params, x->nparams * sizeof *x->params);
        same_variant(&x->full, &y->full);
        assert_true(x->proved == y->proved && x->waits == y->waits);
        if (x->proved == PASS_CHECK_FULL)
            continue;
        assert_true(str_eq(x->proof, y->proof) && x->naccesses == y->naccesses);
        assert_memory_equal(x->asked, y->asked, x->naccesses * sizeof *x->asked);
        if (pass_check_has_rest(x->proved))
            same_variant(&x->rest, &y->rest);
    }
    for (uint32_t i = 0; i < a->nsites; i++) {
        const struct pass_check_site *x = &a->sites[i], *y = &b->sites[i];
        assert_true(str_eq(x->function, y->function) && str_eq(x->text, y->text) && x->line == y->line);
        assert_true(x->width == y->width && x->flags == y->flags && x->root == y->root && x->size == y->size);
        assert_true(str_eq(x->variable, y->variable) && x->nframes == y->nframes);
        for (uint32_t k = 0; k < x->nframes; k++)
            assert_true(str_eq(x->frames[k].file, y->frames[k].file) &&
                        x->frames[k].line == y->frames[k].line);
    }
    assert_memory_equal(a->funcs[0].left, b->funcs[0].left, sizeof a->funcs[0].left);
}

static void good_check(void **state)
{
    static const struct {
        uint8_t width, flags, root;
    } sites[] = {
        {4, KCHECK_READS | KCHECK_GENERIC, PASS_CHECK_LOADED},
        {4, KCHECK_WRITES | KCHECK_GENERIC, PASS_CHECK_LOADED},
        {8, KCHECK_READS, PASS_CHECK_PARAM},
        {4, KCHECK_READS, PASS_CHECK_PARAM},
        {4, KCHECK_WRITES, PASS_CHECK_WEB},
        {4, KCHECK_READS | KCHECK_WRITES | KCHECK_ATOMIC, PASS_CHECK_VARIABLE},
        {8, KCHECK_READS | KCHECK_GENERIC, PASS_CHECK_LOADED},
        {4, KCHECK_READS | KCHECK_WRITES | KCHECK_ATOMIC | KCHECK_GENERIC, PASS_CHECK_LOADED},
    };
    struct pass_result *r = rewritten(CHECKED, &checking), *again;
    const struct pass_check *c = r->check;
    unsigned asked = 0;
    assert_int_equal(c->nkernels, 1);
    assert_int_equal(c->nsites, sizeof sites / sizeof *sites);
    for (unsigned i = 0; i < sizeof sites / sizeof *sites; i++) {
        assert_int_equal(c->sites[i].width, sites[i].width);
        assert_int_equal(c->sites[i].flags, sites[i].flags);
        assert_int_equal(c->sites[i].root, sites[i].root);
    }
    assert_true(str_eq(c->sites[3].text, STR("ld.global.u32 %r3, [%d1+12]")));
    assert_true(str_eq(c->sites[3].frames[0].file, STR("a b.cu")) && c->sites[3].frames[0].line == 7);
    assert_true(str_eq(c->sites[5].variable, STR("table")) && c->sites[5].size == 64);
    // One range for both accesses of s+8; then the bounds that the merge needs.
    const struct pass_check_kernel *k = &c->kernels[0];
    assert_true(k->hidden == 32 && k->nparams == 3 && k->params[1].offset == 8 && k->params[1].size == 16);
    assert_true(k->full.npairs == 3 && k->full.hidden_bytes == 16 + 16 * 3);
    assert_true(k->full.pairs[0].offset == 16 && k->full.pairs[0].span == 16);
    assert_true(k->full.pairs[1].span == 1 && k->full.pairs[2].span == 1);
    // A proof may cover both accesses of s+8, the one by way of two pointers, and the variable's. The others
    // remain, and so does the call.
    assert_int_equal(k->proved, PASS_CHECK_REST);
    assert_true(has(r, KCHECK_REST_PREFIX "k"));
    for (unsigned i = 0; i < k->naccesses; i++)
        if (k->asked[i].site != PASS_CHECK_UNASKED)
            asked |= 1u << k->asked[i].site;
    assert_int_equal(asked, 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5);
    assert_int_equal(c->funcs[2].left[PASS_CHECK_SHARED], 1);
    // f is copied and the copy called; `taken` is changed in place.
    assert_true(has(r, KCHECK_PREFIX "f") && !has(r, KCHECK_PREFIX "taken") && has(r, KCHECK_PREFIX "k"));
    struct out o;
    out_to_memory(&o);
    pass_describe(r, &o);
    assert_int_equal(pass_description((struct str){o.buf, o.len}, &again), 0);
    same_check(c, again->check);
    pass_result_free(again);
    out_close(&o);
    pass_result_free(r);
}

static void without_memory(const char *text, const struct pass_request *request)
{
    int err = -ENOMEM;
    long n = 0;
    for (; err == -ENOMEM; n++) {
        struct pass_result *r = NULL, *again = NULL;
        struct out o = {0};
        mem_fail_after(n);
        err = rewrite(text, request, &r, NULL);
        if (!err)
            err = out_to_memory(&o);
        if (!err) {
            pass_describe(r, &o);
            err = o.error ? o.error : pass_description((struct str){o.buf, o.len}, &again);
        }
        mem_fail_after(-1);
        out_close(&o);
        pass_result_free(again);
        pass_result_free(r);
    }
    assert_int_equal(err, 0);
    assert_true(n > 30);
}

static void good_without_memory(void **state)
{
    without_memory(LAUNCHER, &counting);
    without_memory(CHECKED, &checking);
}

// Appends a kernel or a function with a number of products of wgmma that stay in registers, 128 at a time.
static void put_products(struct out *o, const char *directive, const char *name, unsigned blocks)
{
    out_fmt(o, "%s %s(.param .b64 p)\n{\n.reg .f32 %%f<%u>;\n.reg .b64 %%d<3>;\n", directive, name,
            128 * blocks);
    out_cstr(o, "ld.param.u64 %d0, [p];\nmov.u64 %d1, 0;\nmov.u64 %d2, 0;\n");
    for (unsigned b = 0; b < blocks; b++) {
        out_cstr(o, "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {");
        for (unsigned i = 0; i < 128; i++)
            out_fmt(o, "%s%%f%u", i ? ", " : "", 128 * b + i);
        out_cstr(o, "}, %d1, %d2, 1, 1, 1, 0, 0;\n");
    }
    out_fmt(o, "st.global.f32 [%%d0], %%f%u;\nret;\n}\n", 128 * blocks - 1);
}

// Two blocks of products are more than a thread's registers: the driver's compiler spills them in the
// program's own code alone.
static void crowded_kernels_are_left(void **state)
{
    static const char *const passes[] = {"check", "shadow", "fence"};
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    out_cstr(&o, ".version 8.0\n.target sm_90a\n.address_size 64\n");
    put_products(&o, ".func", "called", 2);
    put_products(&o, ".visible .entry", "one", 1);
    put_products(&o, ".visible .entry", "two", 2);
    out_char(&o, 0);
    assert_int_equal(o.error, 0);
    for (unsigned i = 0; i < sizeof passes / sizeof *passes; i++) {
        const struct pass_request request = {.passes = passes[i], .verify = true};
        struct pass_result *r = rewritten(o.buf, &request);
        assert_int_equal(func(r, "one")->why, PASS_REWRITTEN);
        assert_int_equal(func(r, "two")->why, PASS_CROWDED);
        assert_int_equal(func(r, "called")->why, PASS_REWRITTEN);
        pass_result_free(r);
    }
    out_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_rows),
        cmocka_unit_test(good_promises),
        cmocka_unit_test(bad_requests),
        cmocka_unit_test(good_targets),
        cmocka_unit_test(good_size),
        cmocka_unit_test(good_retarget),
        cmocka_unit_test(good_results),
        cmocka_unit_test(bad_descriptions),
        cmocka_unit_test(good_sums),
        cmocka_unit_test(good_check),
        cmocka_unit_test(good_without_memory),
        cmocka_unit_test(good_loans),
        cmocka_unit_test(crowded_kernels_are_left),
        cmocka_unit_test(good_loans_end),
        cmocka_unit_test(good_loans_and_edits),
        cmocka_unit_test(good_loans_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
