// SPDX-License-Identifier: MIT
// Renders events for people. The first line of a report is in the style of AddressSanitizer and
// compute-sanitizer.
//
// It uses no heap and no stdio, because it also runs inside a watched process whose channel has no listener.
#ifndef MOAT_REPORT_TEXT_H
#define MOAT_REPORT_TEXT_H

#include <stdbool.h>

#include "report/demangle.h"
#include "report/report.h"
#include "report/text_buffer.h"

// Zeroed: plain text, names and paths unchanged.
struct text_style {
    bool colour;
    struct demangle demangle;
    const char *root;  // paths below this folder are printed relative to it; NULL: unchanged
};

// TEXT_LEAST bytes hold any but the most excessive report; longer ones are cut at the end of a line.
#define TEXT_LEAST (64 << 10)

// Appends the event's lines. style may be NULL. No terminal control character gets through except our own
// colours.
void text_render(struct text_buffer *b, const struct report_line *line, const struct text_style *style);

#endif
