// SPDX-License-Identifier: MIT
// The table of the module's variables: a variable with the addresses of the others, also of those that the
// driver does not find by name, which the host reads when the module is loaded. A pointer to a variable that
// is loaded from memory then has bounds like one to a buffer.
//
// Variables in global memory are aligned to a granule of the host's table, so that most have records of their
// own and are found by one lookup. Those that another module may define are left as they are, and so are
// those in constant memory, which is small.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "pass/pass_check_state.h"

enum {
    MOST_ALIGNED = 4096,  // variables that are aligned, of a module: they take up to a granule more each
    NAME = 64,
};

// Marks the variables that the module uses: others may be left out of the machine code.
static void mark_func(const struct ptx_func *f, bool *used)
{
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        for (uint32_t k = 0; s->kind == PTX_INSN && k < s->nslots; k++) {
            const struct ptx_operand *o = &s->operands[k];
            if (o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM))
                used[o->id] = true;
        }
    }
}

static void mark_init(const struct ptx_module *m, struct str init, bool *used)
{
    struct ptx_init item;
    while (ptx_init_next(&init, &item) == 1) {
        uint32_t sym = item.kind == PTX_INIT_SYM ? map_get(&m->globals, item.text) : MAP_NONE;
        if (sym != MAP_NONE)
            used[sym] = true;
    }
}

static void find_used(const struct ptx_module *m, bool *used)
{
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC)
            mark_func(m->items[i].func, used);
        else if (m->items[i].kind == PTX_ITEM_VAR)
            mark_init(m, m->items[i].var->init, used);
}

static bool is_opaque(enum ptx_type type)
{
    return type == PTX_TEXREF || type == PTX_SAMPLERREF || type == PTX_SURFREF;
}

// Returns whether a variable gets a row: not managed ones, whose memory lies elsewhere, and not our own.
static bool is_listed(const struct ptx_module *m, const struct ptx_var *v, const bool *used)
{
    static const struct str ours[] = {STR("moat_"), STR(EDIT_PREFIX)};
    struct str name = v->sym != PTX_NONE ? ptx_sym(m, v->sym)->name : STR("");
    if ((v->space != PTX_SPACE_GLOBAL && v->space != PTX_SPACE_CONST) || !name.len || !used[v->sym] ||
        v->linkage == PTX_EXTERN || v->attribute.len || is_opaque((enum ptx_type)v->type) || !ptx_var_size(v))
        return false;
    for (unsigned i = 0; i < sizeof ours / sizeof *ours; i++)
        if (name.len >= ours[i].len && !memcmp(name.ptr, ours[i].ptr, ours[i].len))
            return false;
    return true;
}

static void align(struct ptx_var *v)
{
    if (v->space == PTX_SPACE_GLOBAL && v->linkage != PTX_COMMON && v->align < KCHECK_GRANULE)
        v->align = KCHECK_GRANULE;
}

// Writes the table. Its name differs between modules, which may be linked.
static int add_table(struct checking *k, struct pass_check *to)
{
    struct pass_context *c = k->c;
    char name[NAME];
    struct out text;
    struct str source = c->m->source.text;
    int length = snprintf(name, sizeof name, EDIT_PREFIX "check_variables_%016llx",
                          (unsigned long long)XXH3_64bits(source.ptr, source.len));
    to->table = arena_str(&c->result->arena, (struct str){name, (size_t)length});
    if (!to->table.ptr)
        return -ENOMEM;
    int err = out_to_memory(&text);
    if (err)
        return err;
    out_fmt(&text, ".weak .global .align 8 .u64 %s[%u] = {", name, to->nvariables);
    for (uint32_t i = 0; i < to->nvariables; i++)
        out_fmt(&text, "%sgeneric(" STR_FMT ")", i ? ", " : "", STR_ARG(to->variables[i].name));
    out_lit(&text, "};\n");
    err = text.error;
    if (!err)
        edit_add_last(c->edit, (struct str){text.buf, text.len});
    out_close(&text);
    return err ? err : edit_error(c->edit);
}

int check_variables(struct checking *k, struct pass_check *to)
{
    struct ptx_module *m = k->c->m;
    struct arena *arena = &k->c->result->arena;
    bool *used = ARENA_ARRAY(&m->arena, bool, m->nsyms + 1u);
    to->table = STR("");
    to->variables = ARENA_ARRAY(arena, struct pass_check_variable, m->nitems + 1u);
    if (!used || !to->variables)
        return -ENOMEM;
    memset(used, 0, m->nsyms + 1u);
    find_used(m, used);
    for (uint32_t i = 0; i < m->nitems; i++) {
        struct ptx_var *v = m->items[i].kind == PTX_ITEM_VAR ? m->items[i].var : NULL;
        if (!v || !is_listed(m, v, used))
            continue;
        struct str name = arena_str(arena, ptx_sym(m, v->sym)->name);
        if (!name.ptr)
            return -ENOMEM;
        to->variables[to->nvariables++] = (struct pass_check_variable){name, ptx_var_size(v), false};
        if (to->nvariables <= MOST_ALIGNED)
            align(v);
    }
    return to->nvariables ? add_table(k, to) : 0;
}
