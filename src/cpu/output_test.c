// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/cpu.h"

// Redirects standard output to a file while the function runs. Returns what it wrote, to be freed.
static char *captured(void (*f)(void), size_t *len)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
    f();
    dup2(saved, STDOUT_FILENO);
    close(saved);
    fseek(file, 0, SEEK_END);
    *len = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, *len + 1);
    assert_int_equal(fread(text, 1, *len, file), *len);
    fclose(file);
    return text;
}

static void append_only(void)
{
    output_append("one ", 4);
    output_append("", 0);
    output_append("two\n", 4);
}

static void append_much(void)
{
    static char piece[1000];
    memset(piece, 'x', sizeof piece);
    for (int i = 0; i < 3000; i++)
        output_append(piece, sizeof piece);
}

static void append_huge(void)
{
    char *text = malloc(5u << 20);
    memset(text, 'y', 5u << 20);
    output_append(text, 5u << 20);
    free(text);
    output_flush();
}

static void good_kept_until_flush(void **state)
{
    size_t n;
    char *text = captured(append_only, &n);
    assert_int_equal(n, 0);
    free(text);
    text = captured(output_flush, &n);
    assert_string_equal(text, "one two\n");
    free(text);
    text = captured(output_flush, &n);
    assert_int_equal(n, 0);
    free(text);
}

static void good_nothing_is_lost(void **state)
{
    size_t early, late;
    free(captured(append_much, &early));
    free(captured(output_flush, &late));
    assert_true(early >= 2u << 20 && late > 0);
    assert_int_equal(early + late, 3000 * 1000);
    free(captured(append_huge, &early));
    assert_int_equal(early, 5u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_kept_until_flush),
        cmocka_unit_test(good_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
