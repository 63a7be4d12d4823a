// SPDX-License-Identifier: MIT
#include "cpu/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static char said[1000];

static void remember(void *ctx, const char *line)
{
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", line);
}

static struct config parse(const char *text)
{
    struct config c;
    said[0] = 0;
    config_parse(&c, text, remember, NULL);
    return c;
}

static void good_defaults(void **state)
{
    static const char *const empty[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        struct config c = parse(empty[i]);
        assert_string_equal(said, "");
        assert_int_equal(c.capability, 90);
        assert_int_equal(c.devices, 1);
        assert_true(c.threads >= 1);
        assert_true(c.memory >= 64 << 20 && c.memory % (2 << 20) == 0);
        assert_null(c.lanes);
        assert_false(c.stats || c.times);
    }
}

static void good_values(void **state)
{
    struct config c = parse("cpu-capability=75:cpu-threads=3:cpu-memory=1G:cpu-lanes=plain:stats:device=cpu");
    assert_string_equal(said, "");
    assert_int_equal(c.capability, 75);
    assert_int_equal(c.threads, 3);
    assert_int_equal(c.memory, 1 << 30);
    assert_string_equal(c.lanes, "plain");
    assert_true(c.stats && !c.times);
    assert_true(parse("times").times);
    assert_int_equal(parse("cpu-devices=3:cpu-memory=1G").devices, 3);
    assert_int_equal(parse("cpu-devices=3:cpu-memory=1G").memory, 1 << 30);
    assert_true(parse("cpu-devices=4").memory <= parse("").memory / 2);
    assert_int_equal(parse("cpu-memory=67108865").memory, 64 << 20);
    assert_string_equal(parse("cpu-lanes=avx2").lanes, "avx2");
    assert_string_equal(parse("cpu-lanes=avx512").lanes, "avx512");
    assert_null(parse("cpu-lanes=auto").lanes);
    assert_true(parse("").native);
    assert_false(parse("cpu-native=no").native);
}

static void bad_values_leave_the_defaults(void **state)
{
    struct config c = parse("cpu-capability=x:cpu-threads=0:cpu-thraeds=2:stats:cpu-lanes=neon\n");
    assert_string_equal(
        said,
        "moat: MOAT_OPTIONS: cpu-capability=x: \"x\" is not a whole number; the default is used\n"
        "moat: MOAT_OPTIONS: cpu-threads=0: 0 is not within 1 to 1024; the default is used\n"
        "moat: MOAT_OPTIONS: cpu-thraeds=2: unknown option; did you mean cpu-threads?; the default is used\n"
        "moat: MOAT_OPTIONS: cpu-lanes=neon?: unknown word \"neon?\"; known are auto, plain, avx2, avx512; "
        "the default is used\n");
    assert_int_equal(c.capability, 90);
    assert_null(c.lanes);
    assert_true(c.stats);
}

static void bad_memory_gives_the_defaults(void **state)
{
    for (long n = 0; n < 5; n++) {
        mem_fail_after(n);
        struct config c = parse("cpu-memory=1G");
        mem_fail_after(-1);
        assert_int_equal(c.capability, 90);
        assert_true(c.threads >= 1 && c.memory >= 64 << 20);
    }
}

static void good_one_for_the_process(void **state)
{
    assert_ptr_equal(config_get(), config_get());
    assert_true(config_get()->threads >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_defaults),
        cmocka_unit_test(good_values),
        cmocka_unit_test(bad_values_leave_the_defaults),
        cmocka_unit_test(bad_memory_gives_the_defaults),
        cmocka_unit_test(good_one_for_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
