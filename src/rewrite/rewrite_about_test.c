// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_about.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"

static struct pass_func funcs[] = {
    {.name = {"kernel_a", 8}, .is_entry = true},
    {.name = {"helper", 6}, .approximate = true, .unsized = 3},
};
static struct pass_symbol symbols[] = {{"count", {"__moat_count_1", 14}, 2560}};
static struct pass_result first = {
    .nfuncs = 2, .funcs = funcs, .nsymbols = 1, .symbols = symbols, .lowered = true};
static struct pass_result second = {.nfuncs = 1, .funcs = funcs};
static struct pass_result *const parts[] = {&first, &second};

static void clear(struct rewrite *r)
{
    for (unsigned i = 0; i < r->nparts; i++)
        pass_result_free(r->parts[i]);
    mem_free(r->parts);
    *r = (struct rewrite){0};
}

static void write_both(struct out *o)
{
    assert_int_equal(out_to_memory(o), 0);
    rewrite_about_parts(parts, 2, o);
    assert_int_equal(o->error, 0);
}

static void good_parts_come_back(void **state)
{
    struct rewrite r = {0};
    struct out o;
    write_both(&o);
    assert_int_equal(rewrite_about_read((struct str){o.buf, o.len}, &r), 0);
    assert_int_equal(r.nparts, 2);
    assert_int_equal(r.parts[0]->nfuncs, 2);
    assert_true(r.parts[0]->lowered);
    assert_true(str_eq(r.parts[0]->funcs[1].name, STR("helper")));
    assert_true(str_eq(r.parts[0]->symbols[0].name, symbols[0].name));
    assert_int_equal(r.parts[1]->nfuncs, 1);
    clear(&r);
    out_close(&o);
}

static void good_reasons_come_back(void **state)
{
    struct rewrite r = {0};
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    rewrite_about_left(REWRITE_REFUSED, "it would not", &o);
    assert_int_equal(rewrite_about_read((struct str){o.buf, o.len}, &r), 0);
    assert_int_equal(r.why, REWRITE_REFUSED);
    assert_string_equal(r.detail, "it would not");
    assert_int_equal(r.nparts, 0);
    out_close(&o);
}

// Texts that a cache file with valid checksums may contain.
static void bad_texts_are_refused(void **state)
{
    static const char *const texts[] = {
        "",           "part",       "parts\n", "parts\n5\nabc", "parts\n99999999999999999999999\nabc",
        "parts\nx\n", "parts\n0\n", "left \n", "left 0 x\n",    "left 99 x\n",
        "left 2 x",   "left 2\n",   "both\n",
    };
    struct rewrite r = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_not_equal(rewrite_about_read(str_from(texts[i]), &r), 0);
    struct out o;
    write_both(&o);
    for (size_t n = 0; n < o.len; n++) {
        // Truncated after the first part, the text is valid.
        if (!rewrite_about_read((struct str){o.buf, n}, &r)) {
            assert_int_equal(r.nparts, 1);
            clear(&r);
        }
        assert_null(r.parts);
    }
    out_close(&o);
}

static void bad_memory_runs_out(void **state)
{
    struct rewrite r = {0};
    struct out o;
    int err = -ENOMEM;
    write_both(&o);
    for (long n = 0; err; n++) {
        mem_fail_after(n);
        err = rewrite_about_read((struct str){o.buf, o.len}, &r);
        mem_fail_after(-1);
        assert_true(err == 0 || err == -ENOMEM);
    }
    clear(&r);
    out_close(&o);
}

static void good_images_are_remembered(void **state)
{
    static const char image[] = "\177ELF an image that a link made",
                      other[] = "\177ELF an image that nobody made";
    struct rewrite r = {0};
    struct out o;
    write_both(&o);
    assert_false(rewrite_about_recall(image, &r));
    rewrite_about_remember(image, sizeof image, (struct str){o.buf, o.len});
    rewrite_about_remember(image, sizeof image, (struct str){o.buf, o.len});
    assert_true(rewrite_about_recall(image, &r));
    assert_int_equal(r.nparts, 2);
    clear(&r);
    assert_false(rewrite_about_recall(other, &r));
    assert_false(rewrite_about_recall(NULL, &r));
    assert_false(rewrite_about_recall((void *)4096, &r));
    out_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_parts_come_back),       cmocka_unit_test(good_reasons_come_back),
        cmocka_unit_test(bad_texts_are_refused),      cmocka_unit_test(bad_memory_runs_out),
        cmocka_unit_test(good_images_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
