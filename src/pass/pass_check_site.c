// SPDX-License-Identifier: MIT
// What reports say of an access: its instruction, and its place in the source.
#include <errno.h>

#include "flow/place.h"
#include "pass/pass_check_state.h"

// Copies text, with spaces in place of line breaks and the like.
static struct str keep(struct arena *arena, struct str text)
{
    struct str kept = arena_str(arena, text);
    for (size_t i = 0; kept.ptr && i < kept.len; i++)
        if ((unsigned char)kept.ptr[i] < ' ' || kept.ptr[i] == 127)
            ((char *)(uintptr_t)kept.ptr)[i] = ' ';
    return kept;
}

static struct str keep_debug_text(struct arena *arena, struct str bytes)
{
    char name[1024];
    size_t len = bytes.len ? ptx_debug_text(bytes, name, sizeof name) : 0;
    return keep(arena, (struct str){name, len});
}

// Lists inlined functions, innermost first, and the function itself.
static int add_frames(struct check_func *k, uint32_t stmt, struct pass_check_site *site)
{
    struct arena *arena = &k->k->c->result->arena;
    struct place_frame frames[PLACE_FRAMES];
    site->nframes = place_frames(k->k->c->m, k->f, stmt, frames);
    for (uint32_t i = 0; i < site->nframes; i++) {
        const struct place_frame *from = &frames[i];
        struct pass_check_frame *frame = &site->frames[i];
        *frame = (struct pass_check_frame){.inlined = from->inlined, .line = from->line};
        frame->function = from->inlined ? keep_debug_text(arena, from->function) : arena_str(arena, k->name);
        if (from->line)
            frame->file = keep(arena, from->file);
        if (!frame->function.ptr || (from->line && !frame->file.ptr))
            return -ENOMEM;
    }
    return 0;
}

// --- the instruction ---------------------------------------------------------------------------------------

// Returns the number of the line at `pos`. Sites come in the order of the text, so counting goes on from the
// last one.
static uint32_t line_at(struct checking *k, uint32_t pos)
{
    struct str text = k->c->m->source.text;
    if (pos < k->counted_to) {
        k->counted_to = 0;
        k->lines = 0;
    }
    for (; k->counted_to < pos; k->counted_to++)
        k->lines += text.ptr[k->counted_to] == '\n';
    return k->lines + 1;
}

static void describe(struct check_func *k, const struct ptx_stmt *s, struct pass_check_site *site)
{
    struct arena *arena = &k->k->c->result->arena;
    if (s->pos == PTX_NONE)
        return;
    struct str rest = str_skip(k->k->c->m->source.text, s->pos);
    const char *end = memchr(rest.ptr, ';', rest.len);
    site->line = line_at(k->k, s->pos);
    site->text = keep(arena, (struct str){rest.ptr, end ? (size_t)(end - rest.ptr) : 0});
}

static const uint8_t roots[ROOTS_KINDS] = {
    [ROOTS_PARAM] = PASS_CHECK_PARAM,      [ROOTS_VARIABLE] = PASS_CHECK_VARIABLE,
    [ROOTS_GENERIC] = PASS_CHECK_VARIABLE, [ROOTS_VALUE] = PASS_CHECK_LOADED,
    [ROOTS_WEB] = PASS_CHECK_WEB,          [ROOTS_OWN] = PASS_CHECK_OWN};

static enum pass_check_space space_of(const struct ptx_module *m, const struct check_access *a,
                                      struct roots_of variable)
{
    enum ptx_space space =
        check_is_variable(variable) ? roots_space(m, variable) : ptx_space_is((enum ptx_space)a->mem.space);
    switch (space) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER: return PASS_CHECK_IN_SHARED;
    case PTX_SPACE_LOCAL: return PASS_CHECK_IN_LOCAL;
    case PTX_SPACE_CONST: return PASS_CHECK_IN_CONST;
    case PTX_SPACE_PARAM: return PASS_CHECK_IN_PARAM;
    default: return PASS_CHECK_IN_GLOBAL;
    }
}

int check_site(struct check_func *k, const struct check_access *a, uint32_t *number)
{
    struct checking *all = k->k;
    struct arena *arena = &all->c->result->arena;
    const struct ptx_module *m = all->c->m;
    struct pass_check_site site = {.width = a->mem.bytes, .root = roots[a->root.kind]};
    struct pass_check_frame frames[PLACE_FRAMES];
    if (check_is_box(a))
        site.root = PASS_CHECK_PARAM;
    site.flags = (uint8_t)((a->mem.reads ? KCHECK_READS : 0) | (a->mem.writes ? KCHECK_WRITES : 0) |
                           (a->mem.atomic ? KCHECK_ATOMIC : 0) |
                           (a->mem.space == PTX_SPACE_GENERIC ? KCHECK_GENERIC : 0));
    site.function = k->name;
    site.text = STR("");
    describe(k, &k->f->stmts[a->stmt], &site);
    struct roots_of variable = check_variable_of(k, a->root);
    site.space = (uint8_t)space_of(m, a, variable);
    if (check_is_variable(variable)) {
        site.root = PASS_CHECK_VARIABLE;
        site.variable = arena_str(arena, ptx_sym(m, variable.id)->name);
        site.size = ptx_var_size(ptx_sym(m, variable.id)->var);
    }
    site.frames = frames;
    int err = add_frames(k, a->stmt, &site);
    site.frames = ARENA_ARRAY(arena, struct pass_check_frame, site.nframes + 1u);
    if (err || !site.frames || !site.text.ptr)
        return -ENOMEM;
    memcpy(site.frames, frames, site.nframes * sizeof *frames);
    *number = (uint32_t)all->sites.len;
    return vec_push(&all->sites, site);
}
