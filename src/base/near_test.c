// SPDX-License-Identifier: MIT
#include "base/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static const char *nearest(const char *word)
{
    static const char *const known[] = {"format", "module", "raw", "mode", "dump-after"};
    struct near n;
    near_init(&n, str_from(word));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        near_offer(&n, known[i]);
    return n.best;
}

static void good_slips_of_the_hand(void **state)
{
    assert_string_equal(nearest("format"), "format");
    assert_string_equal(nearest("fromat"), "format");
    assert_string_equal(nearest("formt"), "format");
    assert_string_equal(nearest("dumpafter"), "dump-after");
    assert_string_equal(nearest("rw"), "raw");
    assert_string_equal(nearest("modul"), "module");
    assert_string_equal(nearest("mod"), "mode");
}

static void bad_words_mean_nothing(void **state)
{
    assert_null(nearest(""));
    assert_null(nearest("x"));
    assert_null(nearest("suppressions"));
    assert_null(nearest("a word that is very much longer than any option will ever be"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_slips_of_the_hand),
        cmocka_unit_test(bad_words_mean_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
