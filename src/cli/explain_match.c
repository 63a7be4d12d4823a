// SPDX-License-Identifier: MIT
#include "cli/explain_match.h"

#include <errno.h>
#include <stdio.h>

enum { NAME = 4096, LISTED = 5 };

// Returns the length of a name up to its parameters, and where it starts behind a return type.
// "(anonymous namespace)::" and "operator()" have parentheses too: the parameters are the last at the
// outermost level.
static struct str own_part(const char *demangled)
{
    struct str all = str_from(demangled);
    size_t start = 0, end = all.len;
    int depth = 0;
    for (size_t i = all.len; i-- > 0;) {
        char c = all.ptr[i];
        if (c == ')' || c == '>')
            depth++;
        if ((c == '(' || c == '<') && !--depth && c == '(' && end == all.len)
            end = i;
    }
    depth = 0;
    for (size_t i = 0; i < end; i++) {
        depth += all.ptr[i] == '<' || all.ptr[i] == '(';
        depth -= all.ptr[i] == '>' || all.ptr[i] == ')';
        if (all.ptr[i] == ' ' && !depth)
            start = i + 1;
    }
    return (struct str){all.ptr + start, end - start};
}

void explain_match_short(const char *demangled, char *name, size_t size)
{
    snprintf(name, size, STR_FMT, STR_ARG(own_part(demangled)));
}

int explain_match_name(struct str wanted, const char *mangled, const char *demangled)
{
    struct str own = own_part(demangled);
    if (str_eq(wanted, str_from(mangled)) || str_eq(wanted, str_from(demangled)))
        return 3;
    if (str_eq(wanted, own))
        return 2;
    return str_starts(own, wanted) || str_starts(str_from(mangled), wanted) ||
           str_starts(str_from(demangled), wanted);
}

static const char *name_of(const struct ptx_module *m, const struct ptx_func *f, char *buffer)
{
    snprintf(buffer, NAME, STR_FMT, STR_ARG(ptx_func_name(m, f)));
    return buffer;
}

// Appends a name to a list; long ones are cut.
static void append(char *list, size_t size, const char *name)
{
    size_t used = strlen(list);
    int n = snprintf(list + used, size - used, "%s%.60s", used ? ", " : "", name);
    if (n < 0 || (size_t)n >= size - used)
        list[used] = 0;
}

void explain_match_list(const struct ptx_module *m, const struct demangle *names, char *list, size_t size)
{
    char mangled[NAME], own[NAME];
    for (uint32_t i = 0; i < m->nitems; i++) {
        if (m->items[i].kind != PTX_ITEM_FUNC || !m->items[i].func->is_entry)
            continue;
        explain_match_short(demangle_name(names, name_of(m, m->items[i].func, mangled)), own, sizeof own);
        append(list, size, own);
    }
}

int explain_match(const struct ptx_module *m, const struct launch_text *launch, const struct demangle *names,
                  struct diag_sink *sink, const struct ptx_func **out)
{
    char mangled[NAME], list[200] = "";
    int best = 0;
    unsigned count = 0;
    *out = NULL;
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_func *f = m->items[i].kind == PTX_ITEM_FUNC ? m->items[i].func : NULL;
        if (!f || !f->is_entry || !f->has_body)
            continue;
        const char *demangled = demangle_name(names, name_of(m, f, mangled));
        int fit = explain_match_name(launch->kernel, mangled, demangled);
        if (!fit || fit < best)
            continue;
        count = fit > best ? 1 : count + 1;
        list[fit > best ? 0 : sizeof list - 1] = 0;
        best = fit;
        *out = f;
        if (count <= LISTED)
            append(list, sizeof list, demangled);
    }
    if (count <= 1)
        return count ? 0 : -ENOENT;
    diag_report(sink, DIAG_ERROR, &launch->source, launch->kernel_pos, launch->kernel.len,
                "%u kernels are called so: %s%s", count, list, count > LISTED ? ", ..." : "");
    return -EINVAL;
}
