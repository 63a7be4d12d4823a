// SPDX-License-Identifier: MIT
// The description of a rewritten module, as lines of words:
//
//   moat-pass 2
//   lowered                                       if it is
//   symbol PASS NAME BYTES
//   kernel NAME WHY APPROXIMATE UNSIZED           or function
//
// Names of PTX have no space. A description may come from a damaged file, so every word is checked.
#include <errno.h>

#include "base/mem.h"
#include "pass/pass.h"

#define MAGIC "moat-pass 2"

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
}

// --- reading -----------------------------------------------------------------------------------------------

// Takes the text up to the separator, or all that is left.
static struct str take(struct str *rest, char separator)
{
    const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct str part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    *rest = str_skip(*rest, part.len + (end != NULL));
    return part;
}

static bool take_number(struct str *rest, uint64_t most, uint64_t *number)
{
    struct str word = take(rest, ' ');
    *number = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9' || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(word.ptr[i] - '0'), number))
            return false;
    }
    return word.len && *number <= most;
}

static bool take_name(struct str *rest, struct str *name)
{
    *name = take(rest, ' ');
    for (size_t i = 0; i < name->len; i++) {
        char c = name->ptr[i], lower = (char)(c | 32);
        if (!((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%'))
            return false;
    }
    return name->len;
}

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
    if (!take_name(&line, &pass) || !(s->pass = known_pass(pass)) || !take_name(&line, &name) ||
        !take_number(&line, UINT64_MAX, &s->bytes) || line.len)
        return -EINVAL;
    s->name = arena_str(&r->arena, name);
    return s->name.ptr ? 0 : -ENOMEM;
}

static int read_func(struct pass_result *r, struct str line, bool is_entry)
{
    struct str name;
    uint64_t why, approximate, unsized;
    if (!take_name(&line, &name) || !take_number(&line, PASS_WHY_COUNT - 1, &why) ||
        !take_number(&line, 1, &approximate) || !take_number(&line, UINT32_MAX, &unsized) || line.len)
        return -EINVAL;
    r->funcs[r->nfuncs++] = (struct pass_func){.name = arena_str(&r->arena, name),
                                               .is_entry = is_entry,
                                               .why = (uint8_t)why,
                                               .approximate = approximate,
                                               .unsized = (uint32_t)unsized};
    return r->funcs[r->nfuncs - 1].name.ptr ? 0 : -ENOMEM;
}

static int read_line(struct pass_result *r, struct str line)
{
    struct str word = take(&line, ' ');
    if (str_eq(word, STR("symbol")))
        return read_symbol(r, line);
    if (str_eq(word, STR("kernel")) || str_eq(word, STR("function")))
        return read_func(r, line, str_eq(word, STR("kernel")));
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
    if (!text.len || text.ptr[text.len - 1] != '\n' || !str_eq(take(&text, '\n'), STR(MAGIC)))
        return -EINVAL;
    int err = 0;
    while (!err && text.len)
        err = read_line(r, take(&text, '\n'));
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
