// SPDX-License-Identifier: MIT
#include "base/out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

static void expect(struct out *o, const char *text)
{
    assert_int_equal(o->error, 0);
    assert_int_equal(o->len, strlen(text));
    assert_memory_equal(o->buf, text, o->len);
    o->len = 0;
}

static void good_writes_each_kind(void **state)
{
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    out_lit(&o, "ab");
    out_char(&o, 'c');
    out_cstr(&o, "de");
    out_str(&o, STR("f"));
    expect(&o, "abcdef");
    out_u64(&o, 0);
    out_char(&o, ' ');
    out_u64(&o, UINT64_MAX);
    expect(&o, "0 18446744073709551615");
    out_i64(&o, INT64_MIN);
    out_char(&o, ' ');
    out_i64(&o, 42);
    expect(&o, "-9223372036854775808 42");
    out_hex(&o, 0, 0);
    out_hex(&o, 0xBEEF, 8);
    out_hex(&o, UINT64_MAX, 2);
    expect(&o, "00000BEEFFFFFFFFFFFFFFFFF");
    out_fmt(&o, "%d-%s", 7, "x");
    expect(&o, "7-x");
    assert_int_equal(out_close(&o), 0);
}

static void good_memory_grows(void **state)
{
    struct out o;
    out_to_memory(&o);
    for (int i = 0; i < 100000; i++)
        out_cstr(&o, "0123456789");
    assert_int_equal(o.len, 1000000);
    assert_memory_equal(o.buf + 999990, "0123456789", 10);
    assert_int_equal(out_close(&o), 0);
}

static void good_format_longer_than_its_buffer(void **state)
{
    struct out o;
    out_to_memory(&o);
    out_fmt(&o, "%2000d", 1);
    assert_int_equal(o.len, 2000);
    assert_int_equal(o.buf[1999], '1');
    out_close(&o);
}

static void good_file_gets_everything(void **state)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    struct out o;
    assert_int_equal(out_to_file(&o, file), 0);
    char *big = malloc(200000);
    memset(big, 'x', 200000);
    out_cstr(&o, "first");
    out_bytes(&o, big, 200000);
    for (int i = 0; i < 30000; i++)
        out_cstr(&o, "last");
    assert_int_equal(out_close(&o), 0);
    assert_int_equal(ftell(file), 5 + 200000 + 4 * 30000);
    rewind(file);
    assert_int_equal(fread(big, 1, 10, file), 10);
    assert_memory_equal(big, "firstxxxxx", 10);
    free(big);
    fclose(file);
}

static void bad_file_is_full(void **state)
{
    FILE *file = fopen("/dev/full", "we");
    if (!file)
        skip();
    struct out o;
    out_to_file(&o, file);
    out_cstr(&o, "x");
    assert_int_equal(out_close(&o), -ENOSPC);
    out_to_file(&o, file);
    for (int i = 0; i < 100000; i++)
        out_cstr(&o, "0123456789");
    assert_int_equal(o.error, -ENOSPC);
    assert_int_equal(out_close(&o), -ENOSPC);
    fclose(file);
}

static void bad_file_is_not_writable(void **state)
{
    FILE *file = fopen("/dev/null", "re");
    struct out o;
    out_to_file(&o, file);
    out_cstr(&o, "x");
    assert_int_equal(out_close(&o), -EBADF);
    fclose(file);
}

static int write_a_lot(void)
{
    struct out o;
    out_to_memory(&o);
    for (int i = 0; i < 30000; i++)
        out_cstr(&o, "0123456789");
    out_fmt(&o, "%3000d", 1);
    return out_close(&o);
}

static int write_and_look(void)
{
    struct out o;
    out_to_memory(&o);
    for (int i = 0; i < 30000; i++)
        out_cstr(&o, "0123456789");
    out_fmt(&o, "%3000d", 1);
    int err = o.error;
    out_cstr(&o, "more");
    assert_int_equal(o.error, err);
    out_close(&o);
    return err;
}

static void bad_memory_at_each_allocation(void **state)
{
    long n = 0;
    for (int err = -1; err; n++) {
        mem_fail_after(n);
        err = write_a_lot();
        assert_true(err == 0 || err == -ENOMEM);
        mem_fail_after(n);
        assert_int_equal(write_and_look(), err);
    }
    mem_fail_after(-1);
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_writes_each_kind),
        cmocka_unit_test(good_memory_grows),
        cmocka_unit_test(good_format_longer_than_its_buffer),
        cmocka_unit_test(good_file_gets_everything),
        cmocka_unit_test(bad_file_is_full),
        cmocka_unit_test(bad_file_is_not_writable),
        cmocka_unit_test(bad_memory_at_each_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
