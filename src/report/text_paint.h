// SPDX-License-Identifier: MIT
// Output functions of the text renderers: colours, cleaned names, paths and stacks.
#ifndef MOAT_REPORT_TEXT_PAINT_H
#define MOAT_REPORT_TEXT_PAINT_H

#include "report/text.h"

enum text_colour { TEXT_PLAIN, TEXT_BOLD, TEXT_DIM, TEXT_BAD, TEXT_WARNING, TEXT_GOOD, TEXT_HEADING };

struct text_painter {
    struct text_buffer *b;
    struct text_style style;
};

void text_paint_colour(struct text_painter *p, enum text_colour colour);  // TEXT_PLAIN ends the last one
void text_paint_clean(struct text_painter *p, const char *text);     // terminal control characters become '?'
void text_paint_name(struct text_painter *p, const char *name);      // demangled
void text_paint_sentence(struct text_painter *p, const char *text);  // cleaned, with its names demangled
void text_paint_path(struct text_painter *p, const char *path, uint32_t line);                 // line 0: none
void text_paint_count(struct text_painter *p, uint64_t n, const char *one, const char *many);  // "2 errors"
void text_paint_u64(struct text_painter *p, uint64_t v, size_t width);      // 1,234,567, right-aligned
size_t text_paint_width(uint64_t v);                                        // of that number
void text_paint_pad(struct text_painter *p, size_t n);                      // blanks
void text_paint_title(struct text_painter *p, int pid, const char *title);  // a line above a table
// "FILE+0x1f", where nothing else is known of a frame.
void text_paint_object(struct text_painter *p, const struct report_frame *f);
void text_paint_stack(struct text_painter *p, const struct report_stack *stack);
void text_paint_notes(struct text_painter *p, const char *const *notes, uint32_t count, const char *before);

// text_summary.c: events other than errors.
void text_summary_start(struct text_painter *p, const struct report_start *s);
void text_summary_end(struct text_painter *p, const struct report_end *e);

// text_counts.c
void text_counts(struct text_painter *p, const struct report_counts *c);

// text_proofs.c
void text_proofs(struct text_painter *p, const struct report_proofs *t);

// text_unchecked.c
void text_unchecked(struct text_painter *p, const struct report_unchecked *t);

#endif
