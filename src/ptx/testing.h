// SPDX-License-Identifier: MIT
// Functions that the tests of this folder share.
#ifndef MOAT_PTX_TESTING_H
#define MOAT_PTX_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ptx/ptx.h"

#define TESTING_HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
// The beginning of a function; statements after it start on line 10, column 1. It prints as it is written
// here.
#define TESTING_BODY \
    TESTING_HEAD     \
    ".entry k()\n{\n\t.reg .b32 %r<10>;\n\t.reg .b64 %rd<4>;\n\t.reg .pred %p<4>;\n\t.reg .f32 %f<8>;\n"

// A sink that records what is reported, one line "LINE:COLUMN: message" each.
struct testing_sink {
    struct diag_sink sink;
    char text[4096];
};

static inline void testing_emit(struct diag_sink *sink, const struct diag *d)
{
    struct testing_sink *t = (struct testing_sink *)sink;
    size_t at = strlen(t->text);
    char where[300];
    snprintf(where, sizeof where, "%s", d->source.name);
    if (d->source.text.ptr) {
        struct diag_place place = diag_locate(d->source.text, d->offset);
        snprintf(where, sizeof where, "%u:%u", place.line, place.column);
    }
    snprintf(t->text + at, sizeof t->text - at, "%s%s: %s", at ? "\n" : "", where, d->message);
}

static inline struct testing_sink *testing_sink_new(void)
{
    struct testing_sink *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->sink.emit = testing_emit;
    return t;
}

static inline struct ptx_module *testing_parse(struct str text)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m;
    int err = ptx_parse("test.ptx", text, &t->sink, NULL, &m);
    if (err)
        print_error("%s\n", t->text);
    assert_int_equal(err, 0);
    assert_string_equal(t->text, "");
    free(t);
    return m;
}

// Prints a module. The caller frees the text.
static inline char *testing_print(const struct ptx_module *m)
{
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    ptx_print(m, &o);
    out_char(&o, 0);
    assert_int_equal(o.error, 0);
    char *text = strdup(o.buf);
    out_close(&o);
    return text;
}

static inline char *testing_join(const char *a, const char *b, const char *c)
{
    char *text;
    assert_true(asprintf(&text, "%s%s%s", a, b, c) >= 0);
    return text;
}

static inline char *testing_repeat(const char *a, const char *piece, unsigned times, const char *b)
{
    size_t la = strlen(a), lp = strlen(piece), lb = strlen(b);
    char *text = malloc(la + lp * times + lb + 1), *to = text;
    assert_non_null(text);
    to = mempcpy(to, a, la);
    for (unsigned i = 0; i < times; i++)
        to = mempcpy(to, piece, lp);
    memcpy(to, b, lb + 1);
    return text;
}

// Expects that text prints as `expected`, and that `expected` prints as itself.
static inline void testing_prints(const char *text, const char *expected)
{
    struct ptx_module *m = testing_parse(str_from(text));
    char *once = testing_print(m);
    ptx_free(m);
    assert_string_equal(once, expected);
    m = testing_parse(str_from(once));
    char *twice = testing_print(m);
    ptx_free(m);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
}

static inline void testing_fails(const char *text, const char *message)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m;
    assert_int_equal(ptx_parse("test.ptx", str_from(text), &t->sink, NULL, &m), -EINVAL);
    assert_null(m);
    assert_string_equal(t->text, message);
    assert_int_equal(t->sink.errors, 1);
    free(t);
}

// Returns the last function that has a body.
static inline const struct ptx_func *testing_func(const struct ptx_module *m)
{
    for (uint32_t i = m->nitems; i-- > 0;)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->has_body)
            return m->items[i].func;
    fail_msg("there is no function");
    return NULL;
}

// Returns the n-th instruction of a function.
static inline const struct ptx_stmt *testing_insn(const struct ptx_func *f, unsigned n)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_INSN && n-- == 0)
            return &f->stmts[i];
    fail_msg("there is no such instruction");
    return NULL;
}

#endif
