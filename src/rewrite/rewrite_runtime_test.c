// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/moat-runtime-XXXXXX";

static void put(char *path, size_t size, const char *toolkit)
{
    snprintf(path, size, "%s/%s", folder, toolkit);
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/lib64");
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/libcudadevrt.a");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void take_away(char *path)
{
    unlink(path);
    for (int i = 0; i < 2; i++) {
        *strrchr(path, '/') = 0;
        rmdir(path);
    }
}

static void good_named_toolkits_come_first(void **state)
{
    char one[400], two[400], home[400], found[400];
    assert_non_null(mkdtemp(folder));
    put(one, sizeof one, "one");
    put(two, sizeof two, "two");
    snprintf(home, sizeof home, "%s/one", folder);
    setenv("CUDA_HOME", home, 1);
    snprintf(home, sizeof home, "%s/two", folder);
    setenv("CUDA_PATH", home, 1);
    assert_true(rewrite_runtime_find(found, sizeof found));
    assert_string_equal(found, one);
    setenv("CUDA_HOME", "", 1);
    assert_true(rewrite_runtime_find(found, sizeof found));
    assert_string_equal(found, two);
    setenv("CUDA_HOME", "/nowhere", 1);
    assert_true(rewrite_runtime_find(found, sizeof found));
    assert_string_equal(found, two);
    assert_false(rewrite_runtime_find(found, 8));  // no path fits
    take_away(one);
    take_away(two);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_named_toolkits_come_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
