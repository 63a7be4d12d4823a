// SPDX-License-Identifier: MIT
// The table of --mode=count. Names come last: they may have any length.
#include <string.h>

#include "report/text_paint.h"

static const struct column {
    const char *heading;
    size_t offset;
    bool counted;  // false for kernels that were not rewritten
} columns[] = {
    {"launches", offsetof(struct report_kernel, launches), false},
    {"threads", offsetof(struct report_kernel, threads), true},
    {"loads", offsetof(struct report_kernel, loads), true},
    {"stores", offsetof(struct report_kernel, stores), true},
    {"bytes read", offsetof(struct report_kernel, read), true},
    {"bytes written", offsetof(struct report_kernel, written), true},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static bool is_known(const struct report_kernel *k, const struct column *c)
{
    return c->counted ? !k->uncounted : !k->function;
}

static uint64_t value_of(const struct report_kernel *k, const struct column *c)
{
    return *(const uint64_t *)((const char *)k + c->offset);
}

static size_t width_of(const struct report_counts *t, const struct column *c)
{
    size_t width = strlen(c->heading);
    for (uint32_t i = 0; i < t->nkernels; i++) {
        size_t n = is_known(&t->kernels[i], c) ? text_paint_width(value_of(&t->kernels[i], c)) : 1;
        width = n > width ? n : width;
    }
    return width;
}

static void paint_remark(struct text_painter *p, const struct report_kernel *k)
{
    if (k->uncounted)
        text_buffer_cstr(p->b, " (not counted)");
    else if (k->function)
        text_buffer_cstr(p->b, k->approximate ? " (function, at least)" : " (function)");
    else if (k->approximate)
        text_buffer_cstr(p->b, " (at least)");
}

static void paint_kernel(struct text_painter *p, const struct report_kernel *k, const size_t *widths)
{
    text_paint_pad(p, 2);
    for (int c = 0; c < COLUMNS; c++) {
        text_paint_pad(p, 2);
        if (is_known(k, &columns[c])) {
            text_paint_u64(p, value_of(k, &columns[c]), widths[c]);
        } else {
            text_paint_pad(p, widths[c] - 1);
            text_buffer_char(p->b, '-');
        }
    }
    text_paint_pad(p, 2);
    text_paint_name(p, k->name ? k->name : "?");
    paint_remark(p, k);
    text_buffer_char(p->b, '\n');
}

void text_counts(struct text_painter *p, const struct report_counts *t)
{
    size_t widths[COLUMNS];
    text_paint_title(p, t->pid, "what kernels read and wrote");
    text_paint_colour(p, TEXT_HEADING);
    text_paint_pad(p, 2);
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = width_of(t, &columns[c]);
        text_paint_pad(p, 2 + widths[c] - strlen(columns[c].heading));
        text_buffer_cstr(p->b, columns[c].heading);
    }
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
    for (uint32_t i = 0; i < t->nkernels; i++)
        paint_kernel(p, &t->kernels[i], widths);
}
