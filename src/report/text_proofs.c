// SPDX-License-Identifier: MIT
// The table of --mode=explain, and below it the places that are not known to be inside their buffers.
#include <string.h>

#include "report/text_paint.h"

static const struct column {
    const char *heading;
    size_t offset;
    bool always;  // shown even if it is 0 for all kernels
    bool read;    // unknown for kernels whose PTX could not be read
} columns[] = {
#define AT(field) offsetof(struct report_explained, field)
    {"launches", AT(launches), true, false},  {"accesses", AT(accesses), true, true},
    {"outside", AT(outside), true, true},     {"maybe", AT(maybe), false, true},
    {"not bounded", AT(unknown), true, true}, {"bounded", AT(bounded), false, true},
    {"inside", AT(inside), true, true},       {"unreachable", AT(unreachable), false, true},
    {"median ns", AT(median), true, true},    {"99 % ns", AT(most), true, true},
#undef AT
};
enum { COLUMNS = sizeof columns / sizeof *columns, VERDICT = 13 };

static uint64_t value_of(const struct report_explained *k, const struct column *c)
{
    return *(const uint64_t *)((const char *)k + c->offset);
}

// Returns 0 for a column that is not shown.
static size_t width_of(const struct report_proofs *t, const struct column *c)
{
    size_t width = strlen(c->heading);
    bool any = c->always;
    for (uint32_t i = 0; i < t->nkernels; i++) {
        uint64_t value = value_of(&t->kernels[i], c);
        size_t n = text_paint_width(value);
        width = n > width ? n : width;
        any |= value != 0;
    }
    return any ? width : 0;
}

static void paint_kernel(struct text_painter *p, const struct report_explained *k, const size_t *widths)
{
    text_paint_pad(p, 2);
    for (int c = 0; c < COLUMNS; c++) {
        if (!widths[c])
            continue;
        text_paint_pad(p, 2);
        if (k->unread && columns[c].read) {
            text_paint_pad(p, widths[c] - 1);
            text_buffer_char(p->b, '-');
        } else {
            text_paint_u64(p, value_of(k, &columns[c]), widths[c]);
        }
    }
    text_paint_pad(p, 2);
    text_paint_name(p, k->name ? k->name : "?");
    if (k->unread)
        text_buffer_cstr(p->b, " (no PTX)");
    text_buffer_char(p->b, '\n');
}

// --- places
// ------------------------------------------------------------------------------------------------

static const char *verb_of(enum report_access access)
{
    return access == REPORT_WRITE ? "writes" : access == REPORT_READ ? "reads" : "touches";
}

static void paint_verdict(struct text_painter *p, const char *verdict)
{
    size_t n = strlen(verdict);
    text_paint_colour(p, strcmp(verdict, "outside") == 0 ? TEXT_BAD : TEXT_WARNING);
    text_paint_clean(p, verdict);
    text_paint_colour(p, TEXT_PLAIN);
    text_paint_pad(p, n < VERDICT ? VERDICT - n : 0);
}

static void paint_place(struct text_painter *p, const struct report_access_place *a)
{
    text_buffer_cstr(p->b, "      ");
    paint_verdict(p, a->verdict ? a->verdict : "");
    text_paint_pad(p, 2);
    if (a->file) {
        text_paint_path(p, a->file, a->line);
    } else {
        text_buffer_cstr(p->b, "PTX line ");
        text_buffer_u64(p->b, a->ptx_line);
    }
    text_buffer_fmt(p->b, "  %s ", verb_of(a->access));
    text_paint_count(p, a->bytes, "byte", "bytes");
    if (a->root) {
        text_buffer_cstr(p->b, " of ");
        text_paint_sentence(p, a->root);
    }
    if (a->why) {
        text_buffer_cstr(p->b, ": ");
        text_paint_clean(p, a->why);
    }
    text_buffer_cstr(p->b, " (");
    if (a->accesses > 1) {
        text_paint_count(p, a->accesses, "access", "accesses");
        text_buffer_cstr(p->b, ", ");
    }
    text_paint_count(p, a->launches, "launch)", "launches)");
    if (a->help && *a->help) {
        text_buffer_char(p->b, '\n');
        text_paint_pad(p, 6 + VERDICT + 2);
        text_buffer_cstr(p->b, "help: ");
        text_paint_clean(p, a->help);
    }
    text_buffer_char(p->b, '\n');
}

static void paint_places(struct text_painter *p, const struct report_explained *k)
{
    if (!k->nplaces)
        return;
    text_paint_pad(p, 4);
    text_paint_name(p, k->name ? k->name : "?");
    text_buffer_cstr(p->b, ":\n");
    for (uint32_t i = 0; i < k->nplaces; i++)
        paint_place(p, &k->places[i]);
    if (k->more) {
        text_buffer_cstr(p->b, "      and ");
        text_paint_count(p, k->more, "more place\n", "more places\n");
    }
}

void text_proofs(struct text_painter *p, const struct report_proofs *t)
{
    size_t widths[COLUMNS];
    text_paint_title(p, t->pid, "what launches touch, as their arguments decide it");
    text_paint_colour(p, TEXT_HEADING);
    text_paint_pad(p, 2);
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = width_of(t, &columns[c]);
        if (!widths[c])
            continue;
        text_paint_pad(p, 2 + widths[c] - strlen(columns[c].heading));
        text_buffer_cstr(p->b, columns[c].heading);
    }
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
    for (uint32_t i = 0; i < t->nkernels; i++)
        paint_kernel(p, &t->kernels[i], widths);
    for (uint32_t i = 0; i < t->nkernels; i++)
        paint_places(p, &t->kernels[i]);
}
