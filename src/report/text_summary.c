// SPDX-License-Identifier: MIT
// Prints the start and the end of a process. "0 errors" alone would mislead, so the count comes with
// what was watched.
#include <string.h>

#include "report/text_paint.h"

// Prints a process's start; if it was printed before, only what is new.
static void paint_introduction(struct text_painter *p, const struct report_start *s)
{
    text_paint_colour(p, TEXT_BOLD);
    text_buffer_fmt(p->b, "==%d==moat", s->pid);
    text_paint_colour(p, TEXT_PLAIN);
    if (s->version && !s->also) {
        text_buffer_char(p->b, ' ');
        text_paint_clean(p, s->version);
    }
    if (s->also) {
        text_buffer_cstr(p->b, ": CUDA is used from here on");
    } else {
        text_buffer_cstr(p->b, ": watching ");
        text_paint_clean(p, s->program ? s->program : "a program");
        text_buffer_fmt(p->b, " (pid %d)", s->pid);
    }
    if (s->mode) {
        text_buffer_cstr(p->b, ", mode ");
        text_paint_clean(p, s->mode);
    }
    if (s->device) {
        text_buffer_cstr(p->b, ", device ");
        text_paint_clean(p, s->device);
    }
    text_buffer_char(p->b, '\n');
}

void text_summary_start(struct text_painter *p, const struct report_start *s)
{
    if (!s->also || s->device)
        paint_introduction(p, s);
    for (uint32_t i = 0; i < s->nnotes; i++) {
        text_paint_colour(p, TEXT_WARNING);
        text_buffer_fmt(p->b, "==%d==WARNING: moat: ", s->pid);
        text_paint_sentence(p, s->notes[i]);
        text_paint_colour(p, TEXT_PLAIN);
        text_buffer_char(p->b, '\n');
    }
}

// Columns: labels to the left, numbers to the right. Labels come from the process, and one may be too long
// for that.
enum { MOST_LABEL = 80 };

struct columns {
    size_t label, number;
};

static const char *label_of(const struct report_value *v)
{
    return v->label ? v->label : v->key ? v->key : "?";
}

static void measure(struct columns *c, const struct report_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t label = strlen(label_of(&values[i])), number = text_paint_width(values[i].value);
        c->label = label > c->label ? label : c->label;
        c->number = number > c->number ? number : c->number;
    }
    c->label = c->label > MOST_LABEL ? MOST_LABEL : c->label;
}

static void paint_values(struct text_painter *p, const struct columns *c, const struct report_value *values,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t label = strlen(label_of(&values[i]));
        text_paint_pad(p, 4);
        text_paint_clean(p, label_of(&values[i]));
        text_paint_pad(p, label < c->label ? c->label - label : 0);
        text_paint_pad(p, 2);
        text_paint_u64(p, values[i].value, c->number);
        text_buffer_char(p->b, '\n');
    }
}

static bool any(const struct report_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i].value)
            return true;
    return false;
}

static void paint_heading(struct text_painter *p, enum text_colour colour, const char *text)
{
    text_paint_colour(p, colour);
    text_buffer_fmt(p->b, "  %s", text);
    text_paint_colour(p, TEXT_PLAIN);
    text_buffer_char(p->b, '\n');
}

static void paint_shortly(struct text_painter *p, const struct report_value *v)
{
    text_buffer_cstr(p->b, " (");
    text_paint_clean(p, label_of(v));
    text_buffer_cstr(p->b, ": ");
    text_paint_u64(p, v->value, 0);
    text_buffer_char(p->b, ')');
}

void text_summary_end(struct text_painter *p, const struct report_end *e)
{
    bool watched = any(e->values, e->nvalues);
    struct columns c = {0};
    measure(&c, e->values, e->nvalues);
    measure(&c, e->uncovered, e->nuncovered);
    text_paint_colour(p, e->errors ? TEXT_BAD : watched ? TEXT_GOOD : TEXT_WARNING);
    text_buffer_fmt(p->b, "==%d==moat: ", e->pid);
    text_paint_count(p, e->errors, "error", "errors");
    if (e->library) {
        text_buffer_cstr(p->b, " in the CPU's ");
        text_paint_clean(p, e->library);
    }
    if (e->suppressed) {
        text_buffer_cstr(p->b, ", ");
        text_paint_u64(p, e->suppressed, 0);
        text_buffer_cstr(p->b, " suppressed");
    }
    if (e->quiet) {
        text_buffer_cstr(p->b, " of ");
        text_paint_clean(p, e->quiet);
    }
    if (!watched)
        text_buffer_cstr(p->b, ", but NOTHING WAS WATCHED");
    text_paint_colour(p, TEXT_PLAIN);
    if (e->quiet && watched)
        paint_shortly(p, &e->values[0]);
    text_buffer_char(p->b, '\n');
    if (watched && !e->quiet) {
        paint_heading(p, TEXT_HEADING, "watched");
        paint_values(p, &c, e->values, e->nvalues);
    }
    if (any(e->uncovered, e->nuncovered)) {
        paint_heading(p, TEXT_WARNING, "not covered");
        paint_values(p, &c, e->uncovered, e->nuncovered);
    }
}
