// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define HEADER STR("// above\n")
#define TEXT STR(".version 8.0\n")

static char folder[64], path[128];

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/moat-dump.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    unlink(path);
    return rmdir(folder);
}

static const char *inside(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void expect(const char *name, const char *text)
{
    char bytes[64] = "";
    int fd = open(inside(name), O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, bytes, sizeof bytes - 1);
    close(fd);
    assert_int_equal(n, strlen(text));
    assert_string_equal(bytes, text);
}

static void good_names_are_plain(void **state)
{
    static const struct {
        const char *module, *file;
    } rows[] = {
        {"scale.cu", "42-007-scale.cu.ptx"},
        {"scale.ptx", "42-007-scale.ptx"},
        {"/a/b/scale.ptx", "42-007-scale.ptx"},
        {"", "42-007-module.ptx"},
        {"/a/b/", "42-007-module.ptx"},
        {"../..", "42-007-...ptx"},
        {"a b\n$(c);\"\x01\xff", "42-007-a_b___c_____.ptx"},
        {".ptx", "42-007-.ptx.ptx"},
    };
    char name[REWRITE_DUMP_NAME];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rewrite_dump_name(name, 42, 7, rows[i].module);
        assert_string_equal(name, rows[i].file);
    }
}

static void good_long_names_are_cut(void **state)
{
    char module[4096], name[REWRITE_DUMP_NAME];
    memset(module, 'x', sizeof module - 1);
    module[sizeof module - 1] = 0;
    rewrite_dump_name(name, INT32_MAX, UINT32_MAX, module);
    assert_true(strlen(name) < sizeof name);
    assert_string_equal(name + strlen(name) - 5, "x.ptx");
}

static void good_a_text_stands_below_its_header(void **state)
{
    assert_int_equal(rewrite_dump_write(folder, "a.ptx", HEADER, TEXT), 0);
    expect("a.ptx", "// above\n.version 8.0\n");
}

static void bad_nothing_is_overwritten(void **state)
{
    assert_int_equal(rewrite_dump_write(folder, "a.ptx", HEADER, TEXT), 0);
    assert_int_equal(rewrite_dump_write(folder, "a.ptx", HEADER, STR("other")), -EEXIST);
    expect("a.ptx", "// above\n.version 8.0\n");
}

// Neither to an existing file nor to a missing one.
static void bad_links_are_not_followed(void **state)
{
    char target[160];
    snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(symlink(target, inside("a.ptx")), 0);
    assert_int_equal(rewrite_dump_write(folder, "a.ptx", HEADER, TEXT), -EEXIST);
    assert_int_equal(access(target, F_OK), -1);
    unlink(path);
    assert_int_equal(symlink(folder, inside("link")), 0);
    int err = rewrite_dump_write(path, "a.ptx", HEADER, TEXT);
    assert_true(err == -ELOOP || err == -ENOTDIR);
}

static void bad_no_folder(void **state)
{
    assert_int_equal(rewrite_dump_write(inside("none"), "a.ptx", HEADER, TEXT), -ENOENT);
}

// The process survives, and no partial file stays.
static void bad_files_may_not_be_large(void **state)
{
    struct rlimit limit, small = {8, 8};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small.rlim_max = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int err = rewrite_dump_write(folder, "a.ptx", HEADER, TEXT);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(err, -EFBIG);
    assert_int_equal(access(inside("a.ptx"), F_OK), -1);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_names_are_plain),         cmocka_unit_test(good_long_names_are_cut),
        IN_FOLDER(good_a_text_stands_below_its_header), IN_FOLDER(bad_nothing_is_overwritten),
        IN_FOLDER(bad_links_are_not_followed),          IN_FOLDER(bad_no_folder),
        IN_FOLDER(bad_files_may_not_be_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
