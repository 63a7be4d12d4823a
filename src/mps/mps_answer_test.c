// SPDX-License-Identifier: MIT
#include "mps/mps_answer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int pids(const char *text, int *to, int most)
{
    return mps_answer_pids(str_from(text), to, most);
}

static void good_numbers_of_processes(void **state)
{
    int to[3];
    assert_int_equal(pids("", to, 3), 0);
    assert_int_equal(pids("\n \n", to, 3), 0);
    assert_int_equal(pids("17\n 4194304 \r\n1", to, 3), 3);
    assert_int_equal(to[0], 17);
    assert_int_equal(to[1], MPS_LARGEST_PID);
    assert_int_equal(to[2], 1);
}

static void bad_numbers_of_processes(void **state)
{
    int to[3];
    static const char *const bad[] = {"0",
                                      "-1",
                                      "17 18",
                                      "4194305",
                                      "1x",
                                      "0x1",
                                      "99999999999999999999999",
                                      "Cannot find MPS control daemon process"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pids(bad[i], to, 3), -EINVAL);
    assert_int_equal(pids("1\n2\n3\n4\n", to, 3), -E2BIG);
}

static void good_ends_of_clients(void **state)
{
    assert_true(mps_answer_is_success(STR("")));
    assert_true(mps_answer_is_success(STR("0\n")));
    assert_true(mps_answer_is_success(STR("waiting\n0\n\n")));
    assert_false(mps_answer_is_success(STR("1\n")));
    assert_false(mps_answer_is_success(STR("0\nClient not found\n")));
}

static void good_memory(void **state)
{
    uint64_t bytes;
    struct str text = STR("12, 512\n 13 ,1\n12, 100\n14, [N/A]\n15\nno line, of this form\n");
    assert_true(mps_answer_memory(text, 12, &bytes));
    assert_int_equal(bytes, 612ull << 20);
    assert_true(mps_answer_memory(text, 13, &bytes));
    assert_int_equal(bytes, 1ull << 20);
    for (int pid = 14; pid < 17; pid++)
        assert_false(mps_answer_memory(text, pid, &bytes));
}

static void bad_memory_comes_around(void **state)
{
    uint64_t bytes;
    char text[600] = "";
    for (int i = 0; i < 17; i++)
        strcat(text, "1, 1099511627776\n");
    assert_false(mps_answer_memory(str_from(text), 1, &bytes));
    assert_false(mps_answer_memory(STR("1, 1099511627777"), 1, &bytes));
    assert_true(mps_answer_memory(STR("1, 1099511627776"), 1, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_numbers_of_processes), cmocka_unit_test(bad_numbers_of_processes),
        cmocka_unit_test(good_ends_of_clients),      cmocka_unit_test(good_memory),
        cmocka_unit_test(bad_memory_comes_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
