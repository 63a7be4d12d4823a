// SPDX-License-Identifier: MIT
// What pass_check.h declares, as lines of words. Text that may contain spaces ends its line.
//
//   check KERNELS SITES FUNCTIONS VARIABLES TAG APART
//   checked NAME HIDDEN PARAMS PROVED WAITS            for each kernel, followed by its
//   param OFFSET SIZE
//   variant BYTES PAIRS                             the full one, followed by its
//   pair OFFSET SPAN ALIGN SCALE SIGNED AT          AT as a number of 64 bits
//   proof SIZE ACCESSES DIGITS                      unless PROVED is FULL; bytes in hexadecimal; followed by
//   asked SITE ROOT ALIGN                           for each of its accesses, and by the rest's
//   variant ...                                     if PROVED is REST
//   site FUNCTION LINE WIDTH FLAGS ROOT SPACE FRAMES TEXT   for each site, followed by its
//   variable NAME SIZE                              if the root is one
//   frame LINE INLINED FUNCTION<tab>FILE            innermost first
//   left NAME NUMBER ...                            for each function: accesses that are not checked, by kind
//   variables TABLE                                 if there are any, followed by
//   placed NAME SIZE NEEDED                         for each
#include "pass/pass_check_describe.h"

#include <errno.h>

#include "flow/place.h"
#include "flow/proof.h"
#include "kcheck/kcheck.h"
#include "pass/pass_words.h"

// --- writing -----------------------------------------------------------------------------------------------

static void write_variant(const struct pass_check_variant *v, struct out *to)
{
    out_fmt(to, "variant %u %u\n", v->hidden_bytes, v->npairs);
    for (uint32_t i = 0; i < v->npairs; i++)
        out_fmt(to, "pair %u %u %u %u %u %llu\n", v->pairs[i].offset, v->pairs[i].span, v->pairs[i].align,
                v->pairs[i].scale, v->pairs[i].is_signed, (unsigned long long)v->pairs[i].at);
}

static void write_proof(const struct pass_check_kernel *k, struct out *to)
{
    static const char digits[] = "0123456789abcdef";
    out_fmt(to, "proof %zu %u ", k->proof.len, k->naccesses);
    for (size_t i = 0; i < k->proof.len; i++) {
        unsigned char c = (unsigned char)k->proof.ptr[i];
        out_char(to, digits[c >> 4]);
        out_char(to, digits[c & 15]);
    }
    out_char(to, '\n');
    for (uint32_t i = 0; i < k->naccesses; i++)
        out_fmt(to, "asked %u %u %u %u %u\n", k->asked[i].site, k->asked[i].root, k->asked[i].align,
                k->asked[i].follows, k->asked[i].rest);
}

static void write_kernel(const struct pass_check_kernel *k, struct out *to)
{
    out_fmt(to, "checked " STR_FMT " %u %u %u %u\n", STR_ARG(k->name), k->hidden, k->nparams, k->proved,
            k->waits);
    for (uint32_t i = 0; i < k->nparams; i++)
        out_fmt(to, "param %u %u\n", k->params[i].offset, k->params[i].size);
    write_variant(&k->full, to);
    if (k->proved != PASS_CHECK_FULL)
        write_proof(k, to);
    if (pass_check_has_rest(k->proved))
        write_variant(&k->rest, to);
}

static void write_site(const struct pass_check_site *s, struct out *to)
{
    out_fmt(to, "site " STR_FMT " %u %u %u %u %u %u " STR_FMT "\n", STR_ARG(s->function), s->line, s->width,
            s->flags, s->root, s->space, s->nframes, STR_ARG(s->text));
    if (s->root == PASS_CHECK_VARIABLE)
        out_fmt(to, "variable " STR_FMT " %llu\n", STR_ARG(s->variable), (unsigned long long)s->size);
    for (uint32_t i = 0; i < s->nframes; i++) {
        const struct pass_check_frame *f = &s->frames[i];
        out_fmt(to, "frame %u %u " STR_FMT "\t" STR_FMT "\n", f->line, f->inlined, STR_ARG(f->function),
                STR_ARG(f->file));
    }
}

void check_describe(const struct pass_check *check, struct out *to)
{
    out_fmt(to, "check %u %u %u %u %u %u %u\n", check->nkernels, check->nsites, check->nfuncs,
            check->nvariables, check->tag, check->foreign, check->apart);
    for (uint32_t i = 0; i < check->nkernels; i++)
        write_kernel(&check->kernels[i], to);
    for (uint32_t i = 0; i < check->nsites; i++)
        write_site(&check->sites[i], to);
    for (uint32_t i = 0; i < check->nfuncs; i++) {
        out_fmt(to, "left " STR_FMT, STR_ARG(check->funcs[i].name));
        for (unsigned k = 0; k < PASS_CHECK_LEFTS; k++)
            out_fmt(to, " %u", check->funcs[i].left[k]);
        out_char(to, '\n');
    }
    if (check->nvariables)
        out_fmt(to, "variables " STR_FMT "\n", STR_ARG(check->table));
    for (uint32_t i = 0; i < check->nvariables; i++)
        out_fmt(to, "placed " STR_FMT " %llu %u\n", STR_ARG(check->variables[i].name),
                (unsigned long long)check->variables[i].size, check->variables[i].needed);
}

// --- reading -----------------------------------------------------------------------------------------------

struct reading {
    struct arena *arena;
    struct str *rest;
    int err;
};

static void fail(struct reading *r, int err)
{
    if (!r->err)
        r->err = err;
}

// Takes the next line, which must begin with a word, and returns what follows it.
static struct str next(struct reading *r, struct str word)
{
    struct str line = r->rest->len ? pass_take(r->rest, '\n') : STR("");
    if (!str_eq(pass_take(&line, ' '), word))
        fail(r, -EINVAL);
    return line;
}

static uint32_t number(struct reading *r, struct str *line, uint32_t most)
{
    uint64_t n = 0;
    if (!pass_take_number(line, most, &n))
        fail(r, -EINVAL);
    return r->err ? 0 : (uint32_t)n;
}

static struct str keep(struct reading *r, struct str text)
{
    struct str kept = r->err ? STR("") : arena_str(r->arena, text);
    if (!kept.ptr)
        fail(r, -ENOMEM);
    return kept;
}

static struct str name(struct reading *r, struct str *line)
{
    struct str taken = STR("");
    if (!pass_take_name(line, &taken))
        fail(r, -EINVAL);
    return keep(r, taken);
}

static void ends(struct reading *r, struct str line)
{
    if (line.len)
        fail(r, -EINVAL);
}

// Returns memory for n rows. A row is a line, of two bytes at least: a larger number is an error, so that a
// damaged number does not ask for much memory.
static void *rows(struct reading *r, uint32_t n, size_t size)
{
    if (n > r->rest->len / 2)
        fail(r, -EINVAL);
    void *p = r->err ? NULL : arena_array(r->arena, n + 1u, size);
    if (!p)
        fail(r, -ENOMEM);
    return p;
}

static void read_index(struct reading *r, struct str *line, struct pass_check_pair *pair)
{
    uint64_t at = 0;
    pair->scale = number(r, line, KCHECK_MOST_SCALE);
    pair->is_signed = number(r, line, 1);
    if (!pass_take_number(line, UINT64_MAX, &at) || (int64_t)at > KCHECK_MOST_CONSTANT ||
        (int64_t)at < -KCHECK_MOST_CONSTANT)
        fail(r, -EINVAL);
    pair->at = (int64_t)at;
}

static void read_variant(struct reading *r, struct pass_check_variant *v)
{
    struct str line = next(r, STR("variant"));
    v->hidden_bytes = number(r, &line, UINT32_MAX);
    v->npairs = number(r, &line, UINT32_MAX);
    ends(r, line);
    v->pairs = rows(r, v->npairs, sizeof *v->pairs);
    for (uint32_t i = 0; i < v->npairs && !r->err; i++) {
        line = next(r, STR("pair"));
        v->pairs[i].offset = number(r, &line, UINT32_MAX);
        v->pairs[i].span = number(r, &line, UINT32_MAX);
        v->pairs[i].align = number(r, &line, UINT32_MAX);
        read_index(r, &line, &v->pairs[i]);
        ends(r, line);
    }
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct str read_bytes(struct reading *r, struct str digits)
{
    size_t size = digits.len / 2;
    char *bytes = r->err ? NULL : arena_alloc(r->arena, size + 1);
    if (!bytes) {
        fail(r, -ENOMEM);
        return STR("");
    }
    for (size_t i = 0; i < size; i++) {
        int high = digit(digits.ptr[2 * i]), low = digit(digits.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            fail(r, -EINVAL);
        bytes[i] = (char)(high * 16 + low);
    }
    return (struct str){bytes, size};
}

static void read_proof(struct reading *r, struct pass_check_kernel *k)
{
    struct str line = next(r, STR("proof"));
    struct proof proof;
    uint32_t size = number(r, &line, UINT32_MAX / 2);
    k->naccesses = number(r, &line, PROOF_MOST_ACCESSES);
    if (line.len != 2 * (size_t)size)
        fail(r, -EINVAL);
    k->proof = read_bytes(r, line);
    if (r->err || proof_read(k->proof.ptr, k->proof.len, &proof) || proof.head->naccesses != k->naccesses) {
        fail(r, -EINVAL);
        return;
    }
    k->asked = rows(r, k->naccesses, sizeof *k->asked);
    for (uint32_t i = 0; i < k->naccesses && !r->err; i++) {
        line = next(r, STR("asked"));
        k->asked[i].site = number(r, &line, UINT32_MAX);
        k->asked[i].root = number(r, &line, UINT32_MAX);
        k->asked[i].align = number(r, &line, UINT32_MAX);
        k->asked[i].follows = number(r, &line, 1);
        k->asked[i].rest = number(r, &line, 1);
        ends(r, line);
    }
}

static void read_kernel(struct reading *r, struct pass_check_kernel *k)
{
    struct str line = next(r, STR("checked"));
    *k = (struct pass_check_kernel){.name = name(r, &line), .proof = STR("")};
    k->hidden = number(r, &line, UINT32_MAX);
    k->nparams = number(r, &line, UINT32_MAX);
    k->proved = (uint8_t)number(r, &line, PASS_CHECK_PROVED_COUNT - 1);
    k->waits = number(r, &line, 1);
    ends(r, line);
    k->params = rows(r, k->nparams, sizeof *k->params);
    for (uint32_t i = 0; i < k->nparams && !r->err; i++) {
        line = next(r, STR("param"));
        k->params[i].offset = number(r, &line, UINT32_MAX);
        k->params[i].size = number(r, &line, UINT32_MAX);
        ends(r, line);
    }
    read_variant(r, &k->full);
    if (k->proved != PASS_CHECK_FULL && !r->err)
        read_proof(r, k);
    if (pass_check_has_rest(k->proved) && !r->err)
        read_variant(r, &k->rest);
}

static void read_frame(struct reading *r, struct pass_check_frame *f)
{
    struct str line = next(r, STR("frame"));
    f->line = number(r, &line, UINT32_MAX);
    f->inlined = number(r, &line, 1);
    f->function = keep(r, pass_take(&line, '\t'));
    f->file = keep(r, line);
}

static void read_site(struct reading *r, struct pass_check_site *s)
{
    struct str line = next(r, STR("site"));
    *s = (struct pass_check_site){.function = name(r, &line)};
    s->line = number(r, &line, UINT32_MAX);
    s->width = number(r, &line, UINT16_MAX);
    s->flags = (uint8_t)number(r, &line, UINT8_MAX);
    s->root = (uint8_t)number(r, &line, PASS_CHECK_ROOTS - 1);
    s->space = (uint8_t)number(r, &line, PASS_CHECK_SPACES - 1);
    s->nframes = number(r, &line, PLACE_FRAMES);
    s->text = keep(r, line);
    if (s->root == PASS_CHECK_VARIABLE && !r->err) {
        line = next(r, STR("variable"));
        s->variable = name(r, &line);
        if (!pass_take_number(&line, UINT64_MAX, &s->size))
            fail(r, -EINVAL);
        ends(r, line);
    }
    s->frames = rows(r, s->nframes, sizeof *s->frames);
    for (uint32_t i = 0; i < s->nframes && !r->err; i++)
        read_frame(r, &s->frames[i]);
}

static void read_left(struct reading *r, struct pass_check_func *f)
{
    struct str line = next(r, STR("left"));
    f->name = name(r, &line);
    for (unsigned k = 0; k < PASS_CHECK_LEFTS; k++)
        f->left[k] = number(r, &line, UINT32_MAX);
    ends(r, line);
}

static void read_variables(struct reading *r, struct pass_check *to)
{
    struct str line = next(r, STR("variables"));
    to->table = name(r, &line);
    ends(r, line);
    for (uint32_t i = 0; i < to->nvariables && !r->err; i++) {
        line = next(r, STR("placed"));
        to->variables[i].name = name(r, &line);
        if (!pass_take_number(&line, UINT64_MAX, &to->variables[i].size))
            fail(r, -EINVAL);
        to->variables[i].needed = number(r, &line, 1);
        ends(r, line);
    }
}

int check_description(struct arena *arena, struct str line, struct str *rest, struct pass_check **out)
{
    struct reading r = {.arena = arena, .rest = rest};
    struct pass_check *to = ARENA_NEW(arena, struct pass_check);
    if (!to)
        return -ENOMEM;
    to->nkernels = number(&r, &line, UINT32_MAX);
    to->nsites = number(&r, &line, UINT32_MAX);
    to->nfuncs = number(&r, &line, UINT32_MAX);
    to->nvariables = number(&r, &line, UINT32_MAX);
    to->tag = number(&r, &line, (1u << KCHECK_TAG_BITS) - 1);
    to->foreign = number(&r, &line, 1);
    to->apart = number(&r, &line, 1);
    to->table = STR("");
    ends(&r, line);
    to->kernels = rows(&r, to->nkernels, sizeof *to->kernels);
    to->sites = rows(&r, to->nsites, sizeof *to->sites);
    to->funcs = rows(&r, to->nfuncs, sizeof *to->funcs);
    to->variables = rows(&r, to->nvariables, sizeof *to->variables);
    for (uint32_t i = 0; i < to->nkernels && !r.err; i++)
        read_kernel(&r, &to->kernels[i]);
    for (uint32_t i = 0; i < to->nsites && !r.err; i++)
        read_site(&r, &to->sites[i]);
    for (uint32_t i = 0; i < to->nfuncs && !r.err; i++)
        read_left(&r, &to->funcs[i]);
    if (to->nvariables && !r.err)
        read_variables(&r, to);
    if (!r.err)
        *out = to;
    return r.err;
}
