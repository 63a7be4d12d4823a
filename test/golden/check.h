// SPDX-License-Identifier: MIT
// Compares what a device computes with what a file of results says.
#ifndef MOAT_TEST_GOLDEN_CHECK_H
#define MOAT_TEST_GOLDEN_CHECK_H

#include "approx.h"
#include "coverage.h"
#include "run.h"

enum { CHECK_SHOWN = 4 };

struct check {
    struct run run;  // first: callbacks get a pointer to it
    const struct results *golden;
    uint64_t *expected;
    bool verbose;
    struct tally tally[PTX_OP_COUNT];
    unsigned absent, beyond;  // not in the file; recorded results that approx.def does not admit
};

static void print_value(unsigned bits, uint64_t v)
{
    printf(" %0*llx", bits < 4 ? 1 : (int)bits / 4, (unsigned long long)input_cut(v, bits));
}

// Prints the inputs, the expected and the actual results of tuple i.
static void print_tuple(const struct check *c, size_t combo, const struct inputs *in, unsigned i, bool kept)
{
    struct word words[KERNEL_WORDS];
    unsigned n = result_words(&c->run.all->list.items[combo], words);
    printf("    tuple %u:", i);
    for (unsigned k = 0; k < in->n; k++)
        print_value(in->in[k].bits * in->in[k].parts, in->values[(size_t)i * in->n + k]);
    if (kept) {
        printf("; expected");
        for (unsigned k = 0; k < n; k++)
            print_value(words[k].bits, c->expected[i * n + k]);
    }
    printf("; got");
    for (unsigned k = 0; k < n; k++)
        print_value(words[k].bits, c->run.rows[(size_t)i * n + k]);
    printf("\n");
}

static void print_head(const struct check *c, size_t combo, const char *what)
{
    printf("%s: %s\n", what, c->run.all->list.items[combo].label);
}

// Reports that tuple i is wrong; seen: how many of this combination were.
static void report_tuple(const struct check *c, size_t combo, const struct inputs *in, unsigned i,
                         unsigned seen)
{
    if (!seen)
        print_head(c, combo, "differs");
    if (seen < CHECK_SHOWN || c->verbose)
        print_tuple(c, combo, in, i, i < KEPT);
}

static unsigned check_exact(struct check *c, size_t combo, const struct inputs *in, const struct record *rec)
{
    unsigned n = kernel_outputs(&c->run.all->list.items[combo]), wrong = 0;
    for (unsigned i = 0; i < KEPT; i++)
        if (memcmp(&c->expected[i * n], &c->run.rows[(size_t)i * n], n * sizeof *c->expected))
            report_tuple(c, combo, in, i, wrong++);
    if (wrong || hash_results(&c->run.all->list.items[combo], c->run.rows, KEPT, INPUT_COUNT) == rec->hash)
        return wrong;
    print_head(c, combo, "differs");
    printf("    the first %u tuples agree, the hash of the others does not\n", KEPT);
    return 1;
}

static bool approx_tuple(const struct approx *row, const struct combo *c, const struct inputs *in, unsigned i,
                         uint64_t result, bool *special)
{
    struct format f = format_of(&in->in[0]);
    bool fits = true, ftz = ptx_form_has(c->form, PTX_MOD_FTZ);
    *special = false;
    for (unsigned e = 0; e < in->in[0].parts; e++) {
        uint64_t operands[2] = {0, 0};
        bool one;
        for (unsigned k = 0; k < in->n && k < 2; k++)
            operands[k] = in->values[(size_t)i * in->n + k] >> (e * f.bits);
        fits &= approx_fits(row, f, ftz, operands, in->n, result >> (e * f.bits), &one);
        *special |= one;
    }
    return fits;
}

// Checks only the bound; but special values as they were recorded, so that the sign and the kind of NaN are
// checked.
static unsigned check_approx(struct check *c, const struct approx *row, size_t combo, const struct inputs *in)
{
    const struct combo *of = &c->run.all->list.items[combo];
    unsigned wrong = 0;
    bool special;
    for (unsigned i = 0; i < INPUT_COUNT; i++) {
        if (i < KEPT && !approx_tuple(row, of, in, i, c->expected[i], &special)) {
            c->beyond++;
            print_head(c, combo, "recorded result beyond the bound");
            print_tuple(c, combo, in, i, true);
        }
        bool fits = approx_tuple(row, of, in, i, c->run.rows[i], &special);
        if (i < KEPT && special && in->in[0].parts == 1)
            fits = c->run.rows[i] == c->expected[i];
        if (!fits)
            report_tuple(c, combo, in, i, wrong++);
    }
    return wrong;
}

static void check_done(struct run *r, size_t i, const struct inputs *in)
{
    struct check *c = (struct check *)r;
    const struct combo *combo = &r->all->list.items[i];
    const struct record *rec = results_find(c->golden, combo_key(combo, in));
    if (!rec || !unpack_results(combo, rec->bytes, rec->len, c->expected)) {
        c->absent++;
        print_head(c, i, "not recorded");
        return;
    }
    const struct approx *row = approx_find(combo->form);
    unsigned wrong = row ? check_approx(c, row, i, in) : check_exact(c, i, in, rec);
    if (wrong > CHECK_SHOWN && !c->verbose)
        printf("    and %u more\n", wrong - CHECK_SHOWN);
    if (wrong)
        c->tally[combo->form->id].wrong++;
    else
        c->tally[combo->form->id].right++;
}

static void check_refused(struct run *r, size_t i)
{
    struct check *c = (struct check *)r;
    c->tally[r->all->list.items[i].form->id].wrong++;
    print_head(c, i, "refused");
    printf("    %s\n", run_log(r));
}

static void check_fault(struct run *r, size_t i, CUresult result)
{
    struct check *c = (struct check *)r;
    c->tally[r->all->list.items[i].form->id].wrong++;
    print_head(c, i, "fault");
    printf("    %s\n", driver_result_name(result));
}

// Removes what the CPU device does not execute yet; returns how many that were.
static unsigned check_leave_out(struct combos *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->list.len; i++)
        if (coverage_reasons[all->list.items[i].form->id])
            combo_free(&all->list.items[i]);
        else
            all->list.items[kept++] = all->list.items[i];
    unsigned out = (unsigned)(all->list.len - kept);
    all->list.len = kept;
    return out;
}

static void check_print(const struct check *c, unsigned later, bool quiet)
{
    unsigned right = 0, wrong = 0;
    coverage_count(c->tally, &right, &wrong);
    if (!quiet)
        coverage_print(c->tally);
    printf("%s against %s: %u combinations agree, %u do not, %u are not executed yet, %u not recorded\n",
           c->run.device.name, c->golden->device + strlen("moat golden 1: "), right, wrong, later, c->absent);
    if (right && !wrong && !c->absent && !c->beyond)
        printf("covered: %u combinations, %u of %u rows of ops.def\n", right, coverage_rows(c->tally),
               PTX_OP_COUNT - 1);
}

// Returns 0 if all agree, 1 if not, 77 if this device has no such lanes, negative if it could not be
// determined.
static int check(struct combos *all, const char *path, const char *libcuda, const char *lanes, bool verbose,
                 bool quiet)
{
    struct results golden;
    struct check c = {.run = {.all = all, .done = check_done, .refused = check_refused, .fault = check_fault},
                      .golden = &golden,
                      .verbose = verbose};
    int err = results_read(&golden, path);
    if (!err)
        err = run_open(&c.run, libcuda);
    if (!err && !(c.expected = mem_zalloc((size_t)KEPT * KERNEL_WORDS, 8)))
        err = -ENOMEM;
    if (!err && lanes && !strstr(c.run.device.name, lanes)) {
        printf("%s: not %s\n", c.run.device.name, lanes);
        err = 77;
    } else if (!err) {
        unsigned later = check_leave_out(all), right = 0, wrong = 0;
        err = run_all(&c.run);
        check_print(&c, later, quiet);
        coverage_count(c.tally, &right, &wrong);
        err = err ? err : wrong || c.beyond || c.absent || !right;
    }
    mem_free(c.expected);
    results_free(&golden);
    run_close(&c.run);
    return err;
}

#endif
