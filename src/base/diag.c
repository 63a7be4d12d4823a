// SPDX-License-Identifier: MIT
#include "base/diag.h"

enum { SHOWN = 160 };  // columns of a line that are printed around a caret

struct diag_place diag_locate(struct str text, size_t offset)
{
    if (offset > text.len)
        offset = text.len;
    struct diag_place place = {.line = 1};
    const char *line = text.ptr, *at = text.ptr + offset;
    for (const char *nl; (nl = memchr(line, '\n', (size_t)(at - line))); line = nl + 1)
        place.line++;
    const char *end = memchr(at, '\n', (size_t)(text.ptr + text.len - at));
    if (!end)
        end = text.ptr + text.len;
    if (end > line && end[-1] == '\r')
        end--;
    place.column = (uint32_t)(at - line) + 1;
    place.line_text = (struct str){line, end > line ? (size_t)(end - line) : 0};
    return place;
}

void diag_vreport(struct diag_sink *sink, enum diag_severity severity, const struct diag_source *source,
                  size_t offset, size_t len, const char *fmt, va_list args)
{
    struct diag d = {.severity = severity, .source = *source, .offset = offset, .len = len};
    vsnprintf(d.message, sizeof d.message, fmt, args);
    sink->errors += severity == DIAG_ERROR;
    sink->warnings += severity == DIAG_WARNING;
    sink->emit(sink, &d);
}

void diag_report(struct diag_sink *sink, enum diag_severity severity, const struct diag_source *source,
                 size_t offset, size_t len, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    diag_vreport(sink, severity, source, offset, len, fmt, args);
    va_end(args);
}

// Prints s with unprintable bytes as '?' and tabs as one space: input may be hostile to a terminal.
static void print_clean(FILE *to, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        fputc(c == '\t' ? ' ' : c < 32 || c >= 127 ? '?' : c, to);
    }
}

static void print_caret(FILE *to, const struct diag_place *place, size_t len)
{
    size_t at = place->column - 1, from = at > SHOWN / 2 ? at - SHOWN / 2 : 0;
    if (from > place->line_text.len)
        return;
    struct str shown = str_skip(place->line_text, from);
    if (shown.len > SHOWN)
        shown.len = SHOWN;
    fputs("  ", to);
    print_clean(to, shown);
    fprintf(to, "\n  %*s^", (int)(at - from), "");
    for (size_t i = 1; i < len && at - from + i < shown.len; i++)
        fputc('~', to);
    fputc('\n', to);
}

void diag_print(FILE *to, const struct diag *d)
{
    static const char *const names[] = {"note", "warning", "error"};
    print_clean(to, str_from(d->source.name));
    if (!d->source.text.ptr) {
        if (d->offset || d->len)
            fprintf(to, ": offset 0x%zx", d->offset);
        fprintf(to, ": %s: ", names[d->severity]);
        print_clean(to, str_from(d->message));
        fputc('\n', to);
        return;
    }
    struct diag_place place = diag_locate(d->source.text, d->offset);
    fprintf(to, ":%u:%u: %s: ", place.line, place.column, names[d->severity]);
    print_clean(to, str_from(d->message));
    fputc('\n', to);
    print_caret(to, &place, d->len);
}

static void emit_to_stderr(struct diag_sink *sink, const struct diag *d)
{
    struct diag_printer *p = (struct diag_printer *)sink;
    if (d->severity != DIAG_NOTE) {
        p->dropping = (d->severity == DIAG_ERROR ? sink->errors : sink->warnings) > p->most;
        p->dropped += p->dropping;
    }
    if (!p->dropping)
        diag_print(stderr, d);
}

void diag_printer_finish(struct diag_printer *p)
{
    if (p->dropped)
        fprintf(stderr, "%u more messages are not shown\n", p->dropped);
    p->dropped = 0;
}

void diag_printer_init(struct diag_printer *p, unsigned most)
{
    *p = (struct diag_printer){.sink = {.emit = emit_to_stderr}, .most = most};
}
