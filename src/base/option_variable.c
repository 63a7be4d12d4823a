// SPDX-License-Identifier: MIT
#include "base/option_variable.h"

#include <stdio.h>

// A sink that makes one line of each error: a report with source text and caret is too long for somebody
// else's process.
struct line_sink {
    struct diag_sink sink;
    void (*complain)(void *ctx, const char *line);
    void *ctx;
};

// Returns the key=value that offset lies in, at most 60 bytes of it.
static struct str entry_at(struct str text, size_t offset)
{
    size_t start = offset, end = offset;
    while (start && text.ptr[start - 1] != ':')
        start--;
    while (end < text.len && text.ptr[end] != ':')
        end++;
    return (struct str){text.ptr + start, end - start < 60 ? end - start : 60};
}

static void emit_line(struct diag_sink *sink, const struct diag *d)
{
    struct line_sink *l = (struct line_sink *)sink;
    char line[400];
    snprintf(line, sizeof line, "moat: " OPTION_VARIABLE ": " STR_FMT ": %s; the default is used",
             STR_ARG(entry_at(d->source.text, d->offset)), d->message);
    for (char *c = line; *c; c++)
        if ((*c >= 0 && *c < 32) || *c == 127)
            *c = '?';
    if (l->complain)
        l->complain(l->ctx, line);
}

int option_read_variable(struct option_set *set, struct options *options, const char *text,
                         void (*complain)(void *ctx, const char *line), void *ctx)
{
    struct line_sink sink = {{.emit = emit_line}, complain, ctx};
    *options = (struct options){.set = set};
    int err = option_init(set, &option_table, options, &sink.sink);
    if (!err && text)
        option_parse_environment(set, OPTION_VARIABLE, text);
    set->sink = NULL;
    return err;
}
