// SPDX-License-Identifier: MIT
// proof_rate [-v] FILE.ptx...: analyses every kernel, evaluates each for a launch with round numbers, and
// prints how many accesses are understood and what both cost. -v prints every access.
//
// The launch is <<<64, 256>>>; integers of 32 bits are 1000, those of 64 bits pointers. It stands for no
// real one: the time is what it is for, and the verdicts are printed to see causes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"
#include "flow/proof_memo.h"
#include "flow/ranges.h"

enum { ROUNDS = 31, CALLS = 16, FIRST_LAUNCHES = 4 };

struct totals {
    unsigned long long bytes, kernels, functions, accesses, whole, forms[RANGES_FORMS], verdicts[3];
    unsigned long long global, global_understood, reasons[PROOF_WHY_COUNT], static_reasons[PROOF_WHY_COUNT];
    double parse_s, analysis_s, closed_s;
    double *eval_ns, *again_ns, *other_ns;
    size_t neval, closed, guessed;
    bool verbose;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fill_params(const struct ptx_func *f, char *to, size_t size)
{
    uint64_t at = 0;
    memset(to, 0, size);
    for (uint32_t i = 0; i < f->nparams; i++) {
        const struct ptx_var *v = &f->params[i];
        uint64_t n = ptx_var_size(v),
                 align = v->align ? v->align
                         : n      ? n
                                  : 1,
                 value = n == 8 ? (i + 1ULL) << 32 : 1000;
        at = (at + align - 1) / align * align;
        if (n <= 8 && at + n <= size)
            memcpy(to + at, &value, n);
        at += n;
    }
}

// What the answer for a launch takes that was evaluated before.
static double again(const struct ranges *r, const struct proof_launch *l, void *work, double *closed_s)
{
    void *memory = malloc(proof_memo_size(&r->proof));
    double begin = now();
    struct proof_memo *memo = proof_memo_init(&r->proof, memory, work);
    const struct proof_bound *out;
    double ns[ROUNDS];
    *closed_s += now() - begin;
    if (proof_memo_eval(memo, l, work, &out, NULL))
        abort();
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        for (int k = 0; k < CALLS; k++)
            if (proof_memo_eval(memo, l, work, &out, NULL))
                abort();
        ns[i] = (now() - start) * 1e9 / CALLS;
    }
    free(memory);
    qsort(ns, ROUNDS, sizeof *ns, by_value);
    return ns[ROUNDS / 2];
}

// What the answers for launches take that nobody has asked for: each has other scalars and another grid.
static double others(const struct ranges *r, struct proof_launch l, char *params, void *work, bool *closed,
                     bool *guessed)
{
    void *memory = malloc(proof_memo_size(&r->proof));
    struct proof_memo *memo = proof_memo_init(&r->proof, memory, work);
    const struct proof_bound *out;
    double ns[ROUNDS];
    for (int i = -FIRST_LAUNCHES; i < ROUNDS; i++) {
        l.grid[0]++;
        for (uint32_t k = 0; k < r->proof.head->ninsns; k++) {
            const struct proof_insn *x = &r->proof.insns[k];
            if (x->op == PROOF_PARAM && x->bits == 32)
                memcpy(params + x->imm, &(int32_t){1003 + 7 * i}, 4);
        }
        double start = now();
        if (proof_memo_eval(memo, &l, work, &out, NULL))
            abort();
        if (i == -FIRST_LAUNCHES)
            *guessed = proof_memo_is_closed(memo);
        if (i >= 0)
            ns[i] = (now() - start) * 1e9;
    }
    *closed = proof_memo_is_closed(memo);
    free(memory);
    qsort(ns, ROUNDS, sizeof *ns, by_value);
    return ns[ROUNDS / 2];
}

static void evaluate(const struct ranges *r, struct totals *t)
{
    static char params[1 << 16];
    struct proof_launch l = {{64, 1, 1}, {256, 1, 1}, 0, sizeof params, params};
    void *work = malloc(proof_work_size(&r->proof));
    struct proof_bound *out = malloc((r->proof.head->naccesses + 1) * sizeof *out);
    double ns[ROUNDS];
    fill_params(r->f, params, sizeof params);
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        if (proof_eval(&r->proof, &l, work, out, NULL))
            abort();
        ns[i] = (now() - start) * 1e9;
    }
    qsort(ns, ROUNDS, sizeof *ns, by_value);
    t->eval_ns = realloc(t->eval_ns, (t->neval + 1) * sizeof *t->eval_ns);
    t->again_ns = realloc(t->again_ns, (t->neval + 1) * sizeof *t->again_ns);
    t->eval_ns[t->neval] = ns[ROUNDS / 2];
    t->other_ns = realloc(t->other_ns, (t->neval + 1) * sizeof *t->other_ns);
    t->again_ns[t->neval] = again(r, &l, work, &t->closed_s);
    bool closed = false, guessed = false;
    t->other_ns[t->neval++] = others(r, l, params, work, &closed, &guessed);
    t->closed += closed;
    t->guessed += guessed;
    if (t->verbose)
        printf("%.*s: %u instructions, %.0f ns, %.0f ns for another launch%s%s\n",
               (int)ptx_func_name(r->m, r->f).len, ptx_func_name(r->m, r->f).ptr, r->proof.head->ninsns,
               ns[ROUNDS / 2], t->other_ns[t->neval - 1], closed ? ", by a closed form" : "",
               guessed ? ", which the first launch had already" : "");
    for (uint32_t i = 0; i < r->proof.head->naccesses; i++) {
        const struct ranges_access *a = &r->accesses[i];
        const struct proof_access *row = &r->proof.accesses[i];
        t->verdicts[out[i].verdict]++;
        t->reasons[out[i].reason] += out[i].verdict == PROOF_UNKNOWN;
        if (!t->verbose)
            continue;
        struct ptx_source at = {0};
        ranges_source(r->m, r->f, row->stmt, &at);
        printf("  %.*s:%u %c space %u %s: ", (int)at.file.len, at.file.ptr, at.line,
               "FABCDE"[a->form == 5 ? 0 : a->form + 1], row -> space,
               row -> does &PROOF_WRITES ? "write" : "read");
        if (out[i].verdict == PROOF_BOUNDED) {
            struct str n = proof_root_name(&r->proof, &r->proof.roots[out[i].root]);
            printf("%.*s[%lld .. %lld]%s\n", (int)n.len, n.ptr, (long long)out[i].lowest,
                   (long long)out[i].highest, out[i].exact ? " exact" : "");
        } else {
            printf("%s %s (static: %s)%s%.*s\n", out[i].verdict == PROOF_UNKNOWN ? "unknown" : "unreachable",
                   proof_why(out[i].reason), proof_why(a->reason), a->op ? " " : "",
                   a->op ? (int)a->op->name.len : 0, a->op ? a->op->name.ptr : "");
        }
    }
    free(work);
    free(out);
}

static void add_func(const struct ptx_module *m, const struct ptx_func *f, struct totals *t)
{
    struct flow w = {.m = m, .f = f};
    struct ranges *r;
    double start = now();
    if (ranges_build(&w, &r))
        abort();
    t->analysis_s += now() - start;
    t->kernels += f->is_entry;
    t->functions += !f->is_entry;
    bool whole = f->is_entry;
    for (uint32_t i = 0; i < r->proof.head->naccesses; i++) {
        bool understood = r->accesses[i].form <= RANGES_MIXED;
        t->accesses++;
        t->forms[r->accesses[i].form]++;
        t->static_reasons[r->accesses[i].reason]++;
        whole &= understood;
        if (r->proof.accesses[i].space == PTX_SPACE_GLOBAL ||
            r->proof.accesses[i].space == PTX_SPACE_GENERIC) {
            t->global++;
            t->global_understood += understood;
        }
    }
    t->whole += whole && !r->proof.head->ncalls;
    if (f->is_entry && r->proof.head->naccesses)
        evaluate(r, t);
    ranges_free(r);
    flow_drop(&w);
}

static bool add_file(const char *name, struct totals *t)
{
    FILE *file = fopen(name, "rb");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    size_t got = fread(text, 1, (size_t)size, file);
    fclose(file);
    struct diag_printer sink;
    struct ptx_module *m;
    diag_printer_init(&sink, 20);
    double start = now();
    if (ptx_parse(name, (struct str){text, got}, &sink.sink, NULL, &m)) {
        free(text);
        return false;
    }
    t->parse_s += now() - start;
    t->bytes += got;
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->has_body)
            add_func(m, m->items[i].func, t);
    ptx_free(m);
    free(text);
    return true;
}

static void print_totals(struct totals *t)
{
    qsort(t->eval_ns, t->neval, sizeof *t->eval_ns, by_value);
    qsort(t->again_ns, t->neval, sizeof *t->again_ns, by_value);
    qsort(t->other_ns, t->neval, sizeof *t->other_ns, by_value);
    printf("kernels %llu\nfunctions %llu\nbytes %llu\naccesses %llu\nwhole %llu\n", t->kernels, t->functions,
           t->bytes, t->accesses, t->whole);
    for (int i = 0; i < RANGES_FORMS; i++)
        printf("form %c %llu\n", "ABCDEF"[i], t -> forms[i]);
    printf("global %llu\nglobal_understood %llu\n", t->global, t->global_understood);
    printf("verdict unknown %llu\nverdict bounded %llu\nverdict unreachable %llu\n", t->verdicts[0],
           t->verdicts[1], t->verdicts[2]);
    for (int i = 1; i < PROOF_WHY_COUNT; i++)
        if (t->static_reasons[i] || t->reasons[i])
            printf("reason %llu %llu %s\n", t->static_reasons[i], t->reasons[i],
                   proof_why((enum proof_reason)i));
    printf("parse_s_per_mb %.4f\nanalysis_s_per_mb %.4f\nclosed_s_per_mb %.4f\n",
           t->parse_s * 1e6 / (double)t->bytes, t->analysis_s * 1e6 / (double)t->bytes,
           t->closed_s * 1e6 / (double)t->bytes);
    if (t->neval)
        printf("eval_ns_median %.0f\neval_ns_99 %.0f\nagain_ns_median %.0f\nagain_ns_99 %.0f\n",
               t->eval_ns[t->neval / 2], t->eval_ns[t->neval * 99 / 100], t->again_ns[t->neval / 2],
               t->again_ns[t->neval * 99 / 100]);
    if (t->neval)
        printf("other_ns_median %.0f\nother_ns_99 %.0f\nclosed %zu\nguessed %zu\nevaluated %zu\n",
               t->other_ns[t->neval / 2], t->other_ns[t->neval * 99 / 100], t->closed, t->guessed, t->neval);
}

int main(int argc, char **argv)
{
    struct totals t = {0};
    int status = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v"))
            t.verbose = true;
        else if (!add_file(argv[i], &t))
            status = 1;
    }
    print_totals(&t);
    free(t.eval_ns);
    free(t.again_ns);
    free(t.other_ns);
    return status;
}
