// SPDX-License-Identifier: MIT
#include "cli/mps_control.h"

#include "cli/cli_testing.h"

#include <errno.h>
#include <signal.h>

static struct mps_answer answer;

static int shell(const char *script, const char *input, int seconds)
{
    static char name[] = "sh", c[] = "-c", text[200];
    char *const argv[] = {name, c, text, NULL};
    snprintf(text, sizeof text, "%s", script);
    return mps_control_run(argv, input, seconds, &answer);
}

static bool answers(const char *text)
{
    return str_eq(mps_answer_text(&answer), str_from(text));
}

static void good_answers(void **state)
{
    assert_int_equal(shell("cat; echo error >&2; exit 3", "input\n", 60), 0);
    assert_true(answers("input\nerror\n"));
    assert_int_equal(answer.status, 3);
    assert_int_equal(shell("kill -9 $$", NULL, 60), 0);
    assert_int_equal(answer.status, 128 + 9);
    assert_int_equal(shell("exec <&-; echo read nothing", "input\n", 60), 0);
    assert_true(answers("read nothing\n"));
}

static void good_largest_answer(void **state)
{
    assert_int_equal(shell("head -c 65536 /dev/zero", NULL, 60), 0);
    assert_int_equal(answer.len, MPS_ANSWER_MOST);
}

// A daemon that it has started keeps its output open.
static void good_daemons_are_not_waited_for(void **state)
{
    assert_int_equal(shell("sleep 30 & echo $!", NULL, 20), 0);
    answer.text[answer.len - 1] = 0;
    kill(atoi(answer.text), SIGKILL);
}

static void bad_programs(void **state)
{
    static char name[] = "/no/such/program";
    char *const argv[] = {name, NULL};
    assert_int_equal(mps_control_run(argv, NULL, 60, &answer), -ENOENT);
    assert_int_equal(shell("head -c 65537 /dev/zero", NULL, 60), -EOVERFLOW);
    assert_int_equal(shell("exec yes", NULL, 60), -EOVERFLOW);
    assert_int_equal(shell("exec sleep 600", NULL, 1), -ETIMEDOUT);
    assert_int_equal(shell("exec >&- 2>&-; exec sleep 600", NULL, 1), -ETIMEDOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_answers),
        cmocka_unit_test(good_largest_answer),
        cmocka_unit_test(good_daemons_are_not_waited_for),
        cmocka_unit_test(bad_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
