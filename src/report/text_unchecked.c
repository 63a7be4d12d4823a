// SPDX-License-Identifier: MIT
// The kernels that ran unchecked under --mode=check. Only the first are shown: JSON has them all.
#include <string.h>

#include "report/text_paint.h"

enum { ROWS = 12 };
static const char heading[] = "launches";

void text_unchecked(struct text_painter *p, const struct report_unchecked *t)
{
    uint32_t n = t->nkernels < ROWS ? t->nkernels : ROWS;
    size_t width = sizeof heading - 1;
    if (t->before || !n)
        return;
    for (uint32_t i = 0; i < n; i++) {
        size_t w = text_paint_width(t->kernels[i].launches);
        width = w > width ? w : width;
    }
    text_paint_title(p, t->pid, "kernels that ran unchecked");
    text_paint_colour(p, TEXT_HEADING);
    text_paint_pad(p, 4 + width - (sizeof heading - 1));
    text_buffer_cstr(p->b, heading);
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
    for (uint32_t i = 0; i < n; i++) {
        text_paint_pad(p, 4);
        text_paint_u64(p, t->kernels[i].launches, width);
        text_paint_pad(p, 2);
        text_paint_name(p, t->kernels[i].name ? t->kernels[i].name : "?");
        text_buffer_char(p->b, '\n');
    }
    if (t->all > n) {
        text_paint_pad(p, 4);
        text_buffer_cstr(p->b, "and ");
        text_paint_count(p, t->all - n, "more kernel", "more kernels");
        text_buffer_cstr(p->b, ", which --format=json names\n");
    }
}
