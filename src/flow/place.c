// SPDX-License-Identifier: MIT
#include "flow/place.h"

#include <stdio.h>

// Returns the last .loc before a statement that names a line (and the place `at`, if given), and its
// index; NULL if there is none. Compilers write line 0 where they moved code away from its line.
static const struct ptx_loc *loc_before(const struct ptx_func *f, uint32_t *index,
                                        const struct ptx_inlined *at)
{
    for (uint32_t k = *index; k-- > 0;) {
        const struct ptx_stmt *s = &f->stmts[k];
        if (s->kind != PTX_LOC || !s->loc->line)
            continue;
        if (at && (s->loc->file != at->file || s->loc->line != at->line || s->loc->column != at->column))
            continue;
        *index = k;
        return s->loc;
    }
    return NULL;
}

static void set_source(struct place_frame *frame, const struct ptx_module *m, const struct ptx_loc *loc)
{
    struct ptx_source source;
    if (loc && ptx_loc_source(m, loc, &source)) {
        frame->file = source.file;
        frame->line = source.line;
    }
}

unsigned place_frames(const struct ptx_module *m, const struct ptx_func *f, uint32_t stmt,
                      struct place_frame frames[PLACE_FRAMES])
{
    uint32_t index = stmt;
    const struct ptx_loc *loc = loc_before(f, &index, NULL);
    struct ptx_loc caller;
    struct ptx_inlined at;
    unsigned n = 0;
    // Each step goes back in the function, or ends at a place that is not inlined.
    while (loc && n < PLACE_FRAMES - 1 && ptx_loc_inlined(m, loc, &at)) {
        frames[n] = (struct place_frame){.function = at.function, .inlined = true};
        set_source(&frames[n++], m, loc);
        loc = loc_before(f, &index, &at);
        if (!loc) {
            caller = (struct ptx_loc){at.file, at.line, at.column, {NULL, 0}};
            loc = &caller;
        }
    }
    frames[n] = (struct place_frame){.function = ptx_func_name(m, f)};
    set_source(&frames[n++], m, loc);
    return n;
}

void place_function(const struct place_frame *frame, char name[PLACE_NAME])
{
    if (frame->inlined)
        ptx_debug_text(frame->function, name, PLACE_NAME);
    else
        snprintf(name, PLACE_NAME, STR_FMT, STR_ARG(frame->function));
}

uint32_t place_ptx_line(const struct ptx_module *m, const struct ptx_func *f, uint32_t stmt)
{
    uint32_t pos = f->stmts[stmt].pos;
    return pos == PTX_NONE ? 0 : diag_locate(m->source.text, pos).line;
}
