// SPDX-License-Identifier: MIT
// The description of a rewritten module, as lines of words:
//
//   moat-pass 6
//   lowered                                       if it is
//   symbol PASS NAME BYTES
//   kernel NAME WHY APPROXIMATE UNSIZED           or function
//   check ...                                     see pass_check_describe.c
//
// Names of PTX have no space. A description may come from a damaged file, so every word is checked.
#include <errno.h>

#include "base/mem.h"
#include "pass/pass.h"
#include "pass/pass_check_describe.h"
#include "pass/pass_words.h"

#define MAGIC "moat-pass 6"

void pass_describe(const struct pass_result *r, struct out *to)
{
    out_lit(to, MAGIC "\n");
    if (r->lowered)
        out_lit(to, "lowered\n");
    for (uint32_t i = 0; i < r->nsymbols; i++)
        out_fmt(to, "symbol %s " STR_FMT " %llu\n", r->symbols[i].pass, STR_ARG(r->symbols[i].name),
                (unsigned long long)r->symbols[i].bytes);
    for (uint32_t i = 0; i < r->nfuncs; i++) {
        const struct pass_func *f = &r->funcs[i];
        out_fmt(to, "%s " STR_FMT " %u %u %u\n", f->is_entry ? "kernel" : "function", STR_ARG(f->name),
                f->why, f->approximate, f->unsized);
    }
    if (r->check)
        check_describe(r->check, to);
}

// --- reading -----------------------------------------------------------------------------------------------

static const char *known_pass(struct str name)
{
    for (unsigned i = 0; i < pass_row_count; i++)
        if (str_eq(name, str_from(pass_rows[i].name)))
            return pass_rows[i].name;
    return NULL;
}

static int read_symbol(struct pass_result *r, struct str line)
{
    struct pass_symbol *s = &r->symbols[r->nsymbols++];
    struct str pass, name;
    if (!pass_take_name(&line, &pass) || !(s->pass = known_pass(pass)) || !pass_take_name(&line, &name) ||
        !pass_take_number(&line, UINT64_MAX, &s->bytes) || line.len)
        return -EINVAL;
    s->name = arena_str(&r->arena, name);
    return s->name.ptr ? 0 : -ENOMEM;
}

static int read_func(struct pass_result *r, struct str line, bool is_entry)
{
    struct str name;
    uint64_t why, approximate, unsized;
    if (!pass_take_name(&line, &name) || !pass_take_number(&line, PASS_WHY_COUNT - 1, &why) ||
        !pass_take_number(&line, 1, &approximate) || !pass_take_number(&line, UINT32_MAX, &unsized) ||
        line.len)
        return -EINVAL;
    r->funcs[r->nfuncs++] = (struct pass_func){.name = arena_str(&r->arena, name),
                                               .is_entry = is_entry,
                                               .why = (uint8_t)why,
                                               .approximate = approximate,
                                               .unsized = (uint32_t)unsized};
    return r->funcs[r->nfuncs - 1].name.ptr ? 0 : -ENOMEM;
}

// rest: the lines that follow; `check` takes some of them.
static int read_line(struct pass_result *r, struct str line, struct str *rest)
{
    struct str word = pass_take(&line, ' ');
    if (str_eq(word, STR("symbol")))
        return read_symbol(r, line);
    if (str_eq(word, STR("kernel")) || str_eq(word, STR("function")))
        return read_func(r, line, str_eq(word, STR("kernel")));
    if (str_eq(word, STR("check")) && !r->check)
        return check_description(&r->arena, line, rest, &r->check);
    if (!str_eq(word, STR("lowered")) || line.len)
        return -EINVAL;
    r->lowered = true;
    return 0;
}

static int read_lines(struct pass_result *r, struct str text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    r->symbols = ARENA_ARRAY(&r->arena, struct pass_symbol, lines + 1);
    r->funcs = ARENA_ARRAY(&r->arena, struct pass_func, lines + 1);
    if (!r->symbols || !r->funcs)
        return -ENOMEM;
    if (!text.len || text.ptr[text.len - 1] != '\n' || !str_eq(pass_take(&text, '\n'), STR(MAGIC)))
        return -EINVAL;
    int err = 0;
    while (!err && text.len) {
        struct str line = pass_take(&text, '\n');
        err = read_line(r, line, &text);
    }
    return err;
}

int pass_description(struct str text, struct pass_result **out)
{
    struct pass_result *r = *out = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    arena_init(&r->arena, 0);
    int err = read_lines(r, text);
    if (err) {
        pass_result_free(r);
        *out = NULL;
    }
    return err;
}
