// SPDX-License-Identifier: MIT
// clang-format off: cmocka wants these first
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "ptx/ptx.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define FILES ".file 1 \"a.cu\"\n.file 12 \"dir/b.h\", 5, 6\n"

static void ignore(struct diag_sink *sink, const struct diag *d)
{
    (void)sink, (void)d;
}

static const struct ptx_loc *last_loc(const struct ptx_func *f)
{
    static const struct ptx_loc none;
    const struct ptx_loc *loc = &none;
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_LOC)
            loc = f->stmts[i].loc;
    return loc;
}

// Finds the source of the last statement of the only function.
static bool find(const char *text, struct ptx_source *out, struct ptx_module **m)
{
    struct diag_sink sink = {.emit = ignore};
    assert_int_equal(ptx_parse("t", str_from(text), &sink, NULL, m), 0);
    for (uint32_t i = 0; i < (*m)->nitems; i++) {
        const struct ptx_func *f = (*m)->items[i].func;
        if ((*m)->items[i].kind == PTX_ITEM_FUNC)
            return ptx_loc_source(*m, last_loc(f), out);
    }
    fail_msg("no function");
    return false;
}

static void good_source(void **state)
{
    static const struct {
        const char *body, *file;
        uint32_t line, column;
    } rows[] = {
        {".loc 1 7 3\nret;", "a.cu", 7, 3},
        {".loc 1 7 3\n.loc 12 9 0\nbar.sync 0;\nret;", "dir/b.h", 9, 0},
        {".loc 12 4 2, function_name $L1, inlined_at 1 8 1\nret;", "dir/b.h", 4, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        struct ptx_source s;
        struct ptx_module *m;
        // .file directives may follow the functions, as nvcc writes them.
        snprintf(text, sizeof text, HEAD ".entry k()\n{\n%s\n}\n" FILES, rows[i].body);
        assert_true(find(text, &s, &m));
        assert_true(str_eq(s.file, str_from(rows[i].file)));
        assert_int_equal(s.line, rows[i].line);
        assert_int_equal(s.column, rows[i].column);
        ptx_free(m);
    }
}

static void bad_source(void **state)
{
    static const char *const bodies[] = {"ret;", ".loc 1 0 0\nret;", ".loc 3 7 3\nret;"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char text[400];
        struct ptx_source s;
        struct ptx_module *m;
        snprintf(text, sizeof text, HEAD ".entry k()\n{\n%s\n}\n" FILES, bodies[i]);
        assert_false(find(text, &s, &m));
        ptx_free(m);
    }
}

#define NAMES \
    ".section .debug_str\n{\n$La:\n.b8 1\n$L:\n.b8 102, 105 , 0x72\n.b8 115 // s\n.b8 116,0,115\n.b8 0\n}\n"

static void good_inlined(void **state)
{
    static const struct {
        const char *loc, *function;
        uint32_t file, line, column;
    } rows[] = {
        {", function_name $L, inlined_at 1 8 2", "first", 1, 8, 2},
        {", inlined_at 12 9 3, function_name $L + 6", "s", 12, 9, 3},
        {", inlined_at 1 8 2", "", 1, 8, 2},
        {", function_name $Lb, inlined_at 1 8 2", "", 1, 8, 2},
        {", function_name $L+900, inlined_at 1 8 2", "", 1, 8, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400], name[10];
        struct ptx_source s;
        struct ptx_inlined at;
        struct ptx_module *m;
        snprintf(text, sizeof text, HEAD ".entry k()\n{\n.loc 1 7 3%s\nret;\n}\n" FILES NAMES, rows[i].loc);
        assert_true(find(text, &s, &m));
        assert_true(ptx_loc_inlined(m, last_loc(m->items[0].func), &at));
        assert_int_equal(ptx_debug_text(at.function, name, sizeof name), strlen(rows[i].function));
        assert_string_equal(name, rows[i].function);
        assert_int_equal(at.file, rows[i].file);
        assert_int_equal(at.line, rows[i].line);
        assert_int_equal(at.column, rows[i].column);
        assert_int_equal(ptx_debug_text(at.function, name, 3),
                         strlen(rows[i].function) < 2 ? strlen(name) : 2);
        ptx_free(m);
    }
}

static void bad_inlined(void **state)
{
    static const char *const locs[] = {"", ", function_name $L"};
    for (size_t i = 0; i < sizeof locs / sizeof *locs; i++) {
        char text[400];
        struct ptx_source s;
        struct ptx_inlined at;
        struct ptx_module *m;
        snprintf(text, sizeof text, HEAD ".entry k()\n{\n.loc 1 7 3%s\nret;\n}\n" FILES NAMES, locs[i]);
        assert_true(find(text, &s, &m));
        assert_false(ptx_loc_inlined(m, last_loc(m->items[0].func), &at));
        ptx_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_source), cmocka_unit_test(bad_source),
                                       cmocka_unit_test(good_inlined), cmocka_unit_test(bad_inlined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
