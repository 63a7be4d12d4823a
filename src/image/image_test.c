// SPDX-License-Identifier: MIT
#include "image/image_make.h"

#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, struct str bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, f), bytes.len);
    assert_int_equal(fclose(f), 0);
}

static bool is_mapped(const char *path)
{
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, path);
    fclose(f);
    return found;
}

static void good_file(void **state)
{
    char path[] = "/tmp/moat-image-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct make m = {0};
    make_one(&m, IMAGE_ZSTD);
    write_file(path, (struct str){m.bytes, m.len});
    struct make_sink s = make_sink();
    struct image *im;
    assert_int_equal(image_open(path, &s.sink, &im), 0);
    assert_int_equal(image_count(im), 1);
    assert_string_equal(image_name(im), path);
    make_expect_text(im, 0, MAKE_PTX);
    assert_true(is_mapped(path));
    image_free(im);
    assert_false(is_mapped(path));
    image_free(NULL);
    unlink(path);
    make_free(&m);
}

static void expect_no_file(const char *path, int expected)
{
    struct make_sink s = make_sink();
    struct image *im;
    assert_int_equal(image_open(path, &s.sink, &im), expected);
    assert_null(im);
    assert_int_equal(s.sink.errors, 1);
    assert_false(is_mapped("moat-image-test"));
}

static void bad_file(void **state)
{
    char folder[] = "/tmp/moat-image-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    expect_no_file(folder, -EISDIR);
    snprintf(path, sizeof path, "%s/x", folder);
    expect_no_file(path, -ENOENT);
    expect_no_file("/dev/null", -ESPIPE);
    write_file(path, STR(""));
    expect_no_file(path, -ENOEXEC);
    write_file(path, STR("#!/bin/sh\n"));
    expect_no_file(path, -ENOEXEC);
    unlink(path);
    rmdir(folder);
}

static void expect_unknown(struct str bytes, int expected)
{
    struct make_sink s = make_sink();
    struct image *im;
    assert_int_equal(image_open_memory("made", bytes.ptr, bytes.len, &s.sink, &im), expected);
    assert_null(im);
    assert_int_equal(s.sink.errors, 1);
}

static void good_kinds(void **state)
{
    struct make m = {0};
    make_raw(&m, "!<arch>\n", 8);
    image_free(make_open(&m, 0, 0));
    make_free(&m);
    make_raw(&m, ".version", 8);
    image_free(make_open(&m, 1, 0));
    make_free(&m);
    make_fatbin(&m);
    image_free(make_open(&m, 0, 0));
    make_free(&m);
}

static void bad_kinds(void **state)
{
    expect_unknown(STR(""), -ENOEXEC);
    expect_unknown(STR("\177EL"), -ENOEXEC);
    expect_unknown(STR("!<arch>"), -ENOEXEC);
    expect_unknown(STR("!<thin>\n"), -ENOTSUP);
    expect_unknown(STR("\120\355\125"), -ENOEXEC);
    expect_unknown(STR(".versions 8.0"), -ENOEXEC);
    expect_unknown(STR("// .version 8.0"), -ENOEXEC);
}

// An archive of an object with several sections and modules, so that opening it makes every kind of
// allocation.
static void make_large(struct make *m)
{
    struct make fatbins = {0}, object = {0};
    for (int i = 0; i < 40; i++)
        make_one(&fatbins, i % 3);
    const struct make_section sections[] = {
        {".nv_fatbin", SHT_PROGBITS, 0, 0, {fatbins.bytes, fatbins.len}},
        {".data", SHT_PROGBITS, 0, 0, {fatbins.bytes, fatbins.len}},
    };
    make_elf(&object, (Elf64_Ehdr){.e_machine = EM_X86_64}, sections, 2);
    make_member(m, "a.o/", (struct str){object.bytes, object.len});
    make_member(m, "b.o/", (struct str){object.bytes, object.len});
    make_free(&fatbins);
    make_free(&object);
}

static void bad_memory(void **state)
{
    struct make m = {0};
    make_large(&m);
    int err = -ENOMEM;
    long n = 0;
    for (; err; n++) {
        struct make_sink s = make_sink();
        struct image *im;
        mem_fail_after(n);
        err = image_open_memory("made", m.bytes, m.len, &s.sink, &im);
        mem_fail_after(-1);
        assert_true(err ? err == -ENOMEM && !im && s.sink.errors == 1 : s.sink.errors == 0);
        if (!err)
            assert_int_equal(image_count(im), 160);
        image_free(im);
        assert_true(n < 1000);
    }
    assert_true(n > 5);
    make_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file), cmocka_unit_test(bad_file),   cmocka_unit_test(good_kinds),
        cmocka_unit_test(bad_kinds), cmocka_unit_test(bad_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
