// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/host_memory.h"

static char variable[3000] = "in the file of the program", later[300000];

static void names(void **state)
{
    char text[4200];
    int here = 0;
    assert_true(host_memory_name((uintptr_t)&here, text, sizeof text));
    assert_string_equal(text, "the stack of the program");
    assert_true(host_memory_name((uintptr_t)variable + 2999, text, sizeof text));
    assert_non_null(strstr(text, "the variable variable (if it is a __device__ one, "));
    assert_true(host_memory_name((uintptr_t)later + 200000, text, sizeof text));
    assert_non_null(strstr(text, "the variable later ("));
    assert_true(host_memory_name((uintptr_t)names, text, sizeof text));
    assert_string_equal(text, "the function names");
    // The file's own headers are part of it without a name.
    assert_true(host_memory_name(getauxval(AT_PHDR), text, sizeof text));
    assert_int_equal(strncmp(text, "a mapping of /", 14), 0);
    char *p = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(host_memory_name((uintptr_t)p + 4097, text, sizeof text));
    assert_string_equal(text, "memory of the program");
    munmap(p, 1 << 20);
}

static void bad_names(void **state)
{
    char text[4200];
    char *p = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_false(host_memory_name((uintptr_t)p, text, sizeof text));
    munmap(p, 1 << 20);
    assert_false(host_memory_name((uintptr_t)p, text, sizeof text));
    assert_false(host_memory_name(0, text, sizeof text));
    assert_false(host_memory_name(UINT64_MAX, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(bad_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
