// SPDX-License-Identifier: MIT
// The first byte selects what the rest is: lines of a saved report, which are then rendered in every format,
// or a file of suppressions.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/fold.h"
#include "report/json_in.h"
#include "report/json_out.h"
#include "report/report_testing.h"
#include "report/sarif.h"
#include "report/suppress.h"
#include "report/text.h"
#include "report/xml.h"

enum { ROOM = 256 << 10, MOST_LINES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char first[ROOM], second[ROOM];

// What was read and written again stays the same, however often that is repeated.
static void check_round_trip(const struct report_line *line)
{
    struct text_buffer a, b;
    struct report_line back;
    struct arena arena;
    char why[200];
    text_buffer_init(&a, first, ROOM);
    json_out_line(&a, line);
    arena_init(&arena, 0);
    if (!a.cut) {
        int err = json_in_line(&arena, (struct str){a.text, a.len}, &back, why, sizeof why);
        assert(!err);
        text_buffer_init(&b, second, ROOM);
        json_out_line(&b, &back);
        assert(a.len == b.len && memcmp(a.text, b.text, a.len) == 0);
    }
    arena_free(&arena);
}

static void check_text(const struct report_line *line, size_t room)
{
    struct text_buffer b;
    struct text_style style = {.colour = room & 1, .root = "/src", .demangle = {testing_demangle, NULL}};
    text_buffer_init(&b, first, room);
    text_render(&b, line, &style);
    assert(b.len <= room && (!b.len || b.text[b.len - 1] == '\n'));
    for (size_t i = 0; i < b.len; i++)
        assert((unsigned char)b.text[i] >= ' ' || b.text[i] == '\n' || (b.text[i] == '\033' && style.colour));
}

static void render_all(const struct report_line *lines, size_t count)
{
    struct document d = {
        .lines = lines, .count = count, .root = "/src", .demangle = {testing_demangle, NULL}};
    struct out o;
    out_to_memory(&o);
    sarif_write(&o, &d);
    xml_write(&o, &d);
    assert(!o.error);
    out_close(&o);
}

static void read_report(struct str text)
{
    struct report_line lines[MOST_LINES];
    struct arena arena;
    char why[200];
    size_t count = 0;
    arena_init(&arena, 64 << 20);
    while (text.len && count < MOST_LINES) {
        const char *end = memchr(text.ptr, '\n', text.len);
        struct str line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        int err = json_in_line(&arena, line, &lines[count], why, sizeof why);
        assert(!err || err == -EINVAL || err == -ENOMEM);
        text = str_skip(text, line.len + (end ? 1 : 0));
        if (err)
            continue;
        check_round_trip(&lines[count]);
        check_text(&lines[count], ROOM);
        check_text(&lines[count], line.len);
        if (lines[count].event == REPORT_ERROR)
            assert(fold_key(&lines[count].error) && fold_name_key(&lines[count].error, true));
        count++;
    }
    render_all(lines, count);
    arena_free(&arena);
}

static void ignore(struct diag_sink *sink, const struct diag *d)
{
    assert(d->offset <= d->source.text.len);
}

static void read_suppressions(struct str text)
{
    struct diag_sink sink = {.emit = ignore};
    struct suppress *s = suppress_new();
    struct demangle demangle = {testing_demangle, NULL};
    int err = suppress_parse(s, "s", text, &sink);
    assert(err == -ENOMEM || !err == !sink.errors);
    for (int i = 0; i < TESTING_EVENTS; i++) {
        struct report_line line = testing_event(i);
        if (line.event == REPORT_ERROR)
            suppress_match(s, &line.error, &demangle);
    }
    suppress_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *copy = malloc(size);  // exactly as long, so that a read behind it is detected
    memcpy(copy, data + 1, size - 1);
    struct str text = {copy, size - 1};
    if (data[0] == 's')
        read_suppressions(text);
    else
        read_report(text);
    free(copy);
    return 0;
}
