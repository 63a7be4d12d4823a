// SPDX-License-Identifier: MIT
// moat ptx instrument: prints PTX as a rewriting pass leaves it.
#include <errno.h>

#include "cli/ptx_file.h"
#include "pass/pass.h"
#include "pass/pass_check.h"

static const char *reason(int err)
{
    switch (err) {
    case -EEXIST: return "it contains moat's names: it was rewritten before";
    case -ENOMEM: return "there is not enough memory";
    default: return "see above";
    }
}

static void print_variant(const char *what, const struct pass_check_kernel *k,
                          const struct pass_check_variant *v, struct out *o)
{
    out_fmt(o, "// %s: " STR_FMT ": %u bytes of parameters at %u:", what, STR_ARG(k->name), v->hidden_bytes,
            k->hidden);
    for (uint32_t p = 0; p < v->npairs; p++) {
        const struct pass_check_pair *pair = &v->pairs[p];
        out_fmt(o, " %u/%u", pair->offset, pair->span);
        if (pair->scale)
            out_fmt(o, "*%c%u", pair->is_signed ? 's' : 'u', pair->scale);
        if (pair->at)
            out_fmt(o, "%+lld", (long long)pair->at);
    }
    out_char(o, '\n');
}

// Prints what the pass `check` found, as comments.
static void print_check(const struct pass_check *check, struct out *o)
{
    for (uint32_t i = 0; i < check->nkernels; i++) {
        const struct pass_check_kernel *k = &check->kernels[i];
        uint32_t asked = 0;
        for (uint32_t a = 0; a < k->naccesses; a++)
            asked += k->asked[a].site != PASS_CHECK_UNASKED;
        print_variant("checked", k, &k->full, o);
        if (pass_check_has_rest(k->proved))
            print_variant("checked in part", k, &k->rest, o);
        if (k->proved != PASS_CHECK_FULL)
            out_fmt(o, "// proof: " STR_FMT ": %zu bytes, %u accesses may be proved%s\n", STR_ARG(k->name),
                    k->proof.len, asked, pass_check_may_be_bare(k->proved) ? ", which are all" : "");
    }
    for (uint32_t i = 0; i < check->nsites; i++) {
        const struct pass_check_site *s = &check->sites[i];
        out_fmt(o, "// site %u: " STR_FMT ": line %u: %u bytes, root %s: ", i, STR_ARG(s->function), s->line,
                s->width, pass_check_root_names[s->root]);
        out_clean(o, s->text);
        out_char(o, '\n');
    }
    for (uint32_t i = 0; i < check->nfuncs; i++)
        for (unsigned k = 0; k < PASS_CHECK_LEFTS; k++)
            if (check->funcs[i].left[k])
                out_fmt(o, "// not checked: " STR_FMT ": %u %s\n", STR_ARG(check->funcs[i].name),
                        check->funcs[i].left[k], pass_check_left_names[k]);
}

static void print_result(struct ptx_file *f, unsigned i, const struct pass_result *r, struct out *o)
{
    if (image_count(f->image) > 1 && !f->options->module)
        out_fmt(o, "// module %u\n", i + 1);
    for (uint32_t k = 0; k < r->nfuncs; k++)
        if (r->funcs[k].why != PASS_REWRITTEN)
            out_fmt(o, "// not rewritten: " STR_FMT ": %s\n", STR_ARG(r->funcs[k].name),
                    pass_why_names[r->funcs[k].why]);
    if (r->check)
        print_check(r->check, o);
    out_str(o, r->text);
}

static void instrument(struct ptx_file *f, unsigned i, struct out *o)
{
    struct pass_request request = {.passes = f->options->pass, .verify = true};
    struct pass_result *r;
    struct str text;
    char name[4200];
    if (ptx_file_read(f, i, &text))
        return;
    ptx_file_module_name(f, i, name, sizeof name);
    int err = pass_rewrite(name, text, &request, &f->printer.sink, &r);
    if (err) {
        f->status = cli_error("%s cannot be rewritten: %s", name, reason(err));
        return;
    }
    print_result(f, i, r, o);
    pass_result_free(r);
}

int cmd_ptx_instrument(const struct options *options, int argc, char **argv)
{
    if (!pass_known(options->pass)) {
        // The names are more than a message holds.
        int status = cli_error("--pass: there is no pass \"%.60s\"", options->pass);
        fprintf(stderr, "  there are: %s\n", pass_names);
        return status;
    }
    struct ptx_file f;
    if (ptx_file_open(&f, options, argc, argv))
        return CLI_BAD;
    struct out o;
    out_to_file(&o, stdout);
    unsigned met = 0;
    for (unsigned i = 0; i < image_count(f.image); i++)
        if (ptx_file_wants(&f, i) && image_entry(f.image, i)->kind == IMAGE_PTX) {
            instrument(&f, i, &o);
            met++;
        }
    if (!met)
        f.status = ptx_file_no_ptx(&f);
    return cli_close(&o, ptx_file_close(&f));
}
