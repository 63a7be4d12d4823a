// SPDX-License-Identifier: MIT
#include "pass/pass_apart.h"

#include <string.h>

static bool begins(struct str line, const char *with)
{
    size_t length = strlen(with);
    return line.len >= length && !memcmp(line.ptr, with, length);
}

void pass_apart_declare(const char *text, struct out *to)
{
    static const char weak[] = ".weak .func";
    bool in_head = false;
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, '\n');
        struct str line = {at, (size_t)(end - at)};
        if (in_head && begins(line, "{")) {
            out_lit(to, ";\n");
            in_head = false;
        } else if (begins(line, weak)) {
            out_fmt(to, ".extern .func%.*s\n", (int)(line.len - strlen(weak)), at + strlen(weak));
            in_head = true;
        } else if (in_head || begins(line, ".weak .const") || begins(line, ".weak .global")) {
            out_fmt(to, "%.*s\n", (int)line.len, at);
        }
    }
}

static struct ptx_var *shared_array(const struct ptx_stmt *s)
{
    bool is = s->kind == PTX_DECL && s->var->space == PTX_SPACE_SHARED && s->var->ndims &&
              s->var->linkage != PTX_EXTERN && s->var->linkage != PTX_COMMON;
    return is ? s->var : NULL;
}

void pass_apart_align(struct ptx_module *m)
{
    enum { ALIGN = 16 };
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_func *f = m->items[i].kind == PTX_ITEM_FUNC ? m->items[i].func : NULL;
        uint32_t odd = 0;
        for (uint32_t k = 0; f && k < f->nstmts; k++) {
            const struct ptx_var *v = f->stmts[k].kind == PTX_DECL ? f->stmts[k].var : NULL;
            odd += v && v->space == PTX_SPACE_SHARED && ptx_var_size(v) % ALIGN;
        }
        // One of another size can lie behind the others.
        for (uint32_t k = 0; f && odd < 2 && k < f->nstmts; k++) {
            struct ptx_var *v = shared_array(&f->stmts[k]);
            if (v && ptx_var_size(v) % ALIGN == 0 && v->align < ALIGN)
                v->align = ALIGN;
        }
    }
}
