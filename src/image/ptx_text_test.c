// SPDX-License-Identifier: MIT
#include "image/image_make.h"

struct row {
    const char *text, *names;
};

static struct image *open_text(struct make *m, const char *text)
{
    make_raw(m, text, strlen(text));
    return make_open(m, 1, 0);
}

static void check_names(const char *text, const char *expected)
{
    struct make m = {0};
    struct make_names names = {0};
    struct make_sink s = make_sink();
    make_raw(&m, ".version 8.0\n", 13);
    struct image *im = open_text(&m, text);
    struct str data = image_entry(im, 0)->payload;
    assert_int_equal(image_kernels(im, 0, data, &s.sink, make_name, &names), 0);
    assert_string_equal(names.text, expected);
    image_free(im);
    make_free(&m);
}

static void good_kernels(void **state)
{
    const struct row rows[] = {
        {".entry a { ret; }", "a"},
        {".visible .entry a(.param .u64 p) { ret; }\n.entry\n\tb()\n{ }", "a b"},
        {".weak .entry _Z1a$b_1(.param .u64 a)\n.maxntid 1\n{}", "_Z1a$b_1"},
        {".entry a(.param .u32 x)\n.pragma \"nounroll\";\n{ ret; }", "a"},
        {".entry/* .entry x */a// .entry y\n{}", "a"},
        {".entry a(.param .u32 x // )\n) {}", "a"},
        {".entry a( // ;\n .param .u32 x) {}", "a"},
        {"// it's \"\n.entry a {} // .entry b\n.entry c {}", "a c"},
        {"/* \" */ .entry a {} /* .entry b */ .entry c {}", "a c"},
        {".file 1 \"// x\"\n.entry a {}", "a"},
        {".file 1 \"/* x\"\n.entry a {}", "a"},
        {".file 1 \"a\\\"b .entry c\"\n.entry d {}", "d"},
        {"1 / 2 .entry a {}", "a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_names(rows[i].text, rows[i].names);
}

static void bad_kernels(void **state)
{
    const struct row rows[] = {
        {"", ""},
        {".func a { ret; }", ""},
        {"// .entry a {}", ""},
        {"/* .entry a {} ", ""},
        {"/*\n.entry a {}\n*/", ""},
        {".file 1 \".entry a {}\"", ""},
        {".file 1 \"a\\\".entry a {}\"", ""},
        {".extern .entry a(.param .u64 p);", ""},
        {".extern .entry a;\n.entry b {}", "b"},
        {".entry", ""},
        {".entry ", ""},
        {".entry /", ""},
        {".entry_point a {}", ""},
        {".entry (.param .u64 p) {}", ""},
        {".entry a( .entry b( .entry c(", "a"},  // never closed: the rest is taken for parameters
        {".entry a( { } .entry b {}", "a b"},
        {".file 1 \"open\n.entry a {}", "a"},
        {".file 1 \"back\\\n.entry a {}", "a"},
        {".file 1 \"\\", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_names(rows[i].text, rows[i].names);
}

static void check_header(const char *text, unsigned major, unsigned minor, unsigned arch, char suffix)
{
    struct make m = {0};
    struct image *im = open_text(&m, text);
    const struct image_entry *e = image_entry(im, 0);
    assert_int_equal(e->kind, IMAGE_PTX);
    assert_int_equal(e->fatbin, IMAGE_NO_FATBIN);
    assert_int_equal(e->version_major, major);
    assert_int_equal(e->version_minor, minor);
    assert_int_equal(e->arch, arch);
    assert_int_equal(e->suffix, suffix);
    make_expect_text(im, 0, text);
    image_free(im);
    make_free(&m);
}

static void good_header(void **state)
{
    check_header(".version 9.0\n.target sm_90\n", 9, 0, 90, 0);
    check_header("//\n/* a */ .version\t8.12 // b\n.target // c\nsm_100f, debug\n", 8, 12, 100, 'f');
    check_header(".version 7.8 .target sm_90a", 7, 8, 90, 'a');
}

static void bad_header(void **state)
{
    check_header(".version", 0, 0, 0, 0);
    check_header(".version x", 0, 0, 0, 0);
    check_header(".version 8", 8, 0, 0, 0);
    check_header(".version 8.", 8, 0, 0, 0);
    check_header(".version 8.0 .address_size 64", 8, 0, 0, 0);
    check_header(".version 8.0 .target compute_90", 8, 0, 0, 0);
    check_header(".version 8.0 .targets sm_90", 8, 0, 0, 0);
    check_header(".version 8.0 .target sm_", 8, 0, 0, 0);
}

static int stop_at_once(void *ctx, struct str name)
{
    ++*(int *)ctx;
    return 42;
}

static void good_stop(void **state)
{
    struct make m = {0};
    struct make_sink s = make_sink();
    struct image *im = open_text(&m, ".version 8.0 .entry a {} .entry b {}");
    int calls = 0;
    assert_int_equal(image_kernels(im, 0, image_entry(im, 0)->payload, &s.sink, stop_at_once, &calls), 42);
    assert_int_equal(calls, 1);
    image_free(im);
    make_free(&m);
}

// Hostile texts of one megabyte: an algorithm that is not linear would take minutes.
static void bad_long_texts(void **state)
{
    static const char *const pieces[] = {".entry a(", ".entry ", "/*",        "//",
                                         "\"",        "/ ",      ".entry /*", "\"\n/"};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct make m = {0};
        size_t piece = strlen(pieces[i]), count = (1 << 20) / piece;
        char *text = malloc(count * piece);
        assert_non_null(text);
        for (size_t k = 0; k < count; k++)
            memcpy(text + k * piece, pieces[i], piece);
        make_raw(&m, ".version 8.0\n", 13);
        make_raw(&m, text, count * piece);
        make_exercise(m.bytes, m.len);
        free(text);
        make_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_kernels), cmocka_unit_test(bad_kernels), cmocka_unit_test(good_header),
        cmocka_unit_test(bad_header),   cmocka_unit_test(good_stop),   cmocka_unit_test(bad_long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
