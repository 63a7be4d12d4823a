// SPDX-License-Identifier: MIT
#include "cli/reports.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli_testing.h"

static int out;  // where events go
static struct reports r;

static void begin(char *option)
{
    out = open("/tmp", O_RDWR | O_TMPFILE | O_APPEND, 0600);
    struct render_setup s = {.format = OPTION_FORMAT_TEXT, .color = OPTION_COLOR_NEVER, .fd = out};
    assert_true(out >= 0);
    assert_int_equal(reports_init(&r, cli_testing_parse(option, NULL), &s), 0);
    r.live = true;
}

static const char *written(void)
{
    return cli_testing_read_fd(out);
}

static void finish(void)
{
    assert_int_equal(reports_finish(&r, 0), 0);
}

static int teardown(void **state)
{
    reports_free(&r);
    cli_testing_forget();
    return close(out);
}

// Takes a line in which each %d is the process.
static int take(const char *format, int pid, bool fresh)
{
    char line[1000], why[200] = "";
    int n = snprintf(line, sizeof line, format, pid);
    return reports_take(&r, (struct str){line, (size_t)n}, fresh, why, sizeof why);
}

#define START                                                          \
    "{\"event\":\"start\",\"pid\":%d,\"parent\":1,\"program\":\"/bin/" \
    "app\",\"mode\":\"api\",\"device\":\"x\"}"
#define HEAP_START "{\"event\":\"start\",\"pid\":%d,\"parent\":1,\"program\":\"/bin/app\",\"mode\":\"heap\"}"
#define ERROR(id)                                                         \
    "{\"event\":\"error\",\"type\":\"double-free\",\"pid\":%d,\"id\":" id \
    ",\"count\":1,\"call\":\"cuMemFree\"}"
#define HEAP_ERROR                                                                                        \
    "{\"event\":\"error\",\"type\":\"double-free\",\"pid\":%d,\"id\":1,\"count\":1,\"library\":\"heap\"," \
    "\"call\":\"free\"}"
#define REPEAT(id) "{\"event\":\"repeat\",\"pid\":%d,\"id\":" id ",\"count\":5}"
#define END                                                                                           \
    "{\"event\":\"end\",\"pid\":%d,\"errors\":1,\"suppressed\":0,\"watched\":[{\"key\":\"launches\"," \
    "\"value\":3,\"label\":\"kernel launches\"}]}"

// Errors and summaries are counted, and each library's numbers become the process's own.
static void good_one_process(void **state)
{
    begin(NULL);
    assert_int_equal(take(START, 7, true), REPORTS_SHOWN);
    assert_int_equal(take(ERROR("1"), 7, false), REPORTS_SHOWN);
    assert_int_equal(take(HEAP_ERROR, 7, false), REPORTS_SHOWN);
    assert_int_equal(take(REPEAT("1"), 7, false), REPORTS_SHOWN);
    assert_int_equal(take(END, 7, false), REPORTS_SHOWN);
    finish();
    assert_int_equal(r.errors, 2);
    assert_int_equal(r.launches, 3);
    assert_int_equal(r.ended, 1);
    assert_int_equal(r.watched, 1);
    assert_int_equal(cli_testing_count(written(), "ERROR: moat: double-free"), 2);
    assert_int_equal(cli_testing_count(written(), "Report 1 of process 7"), 1);
    assert_int_equal(cli_testing_count(written(), "Report 2 of process 7"), 1);
}

// Another library of the process has no banner of its own; a process that became another program has. The
// banner of a child waits until the child has something to report.
static void good_banners(void **state)
{
    begin(NULL);
    take(START, 7, true);
    take(HEAP_START, 7, false);
    assert_int_equal(cli_testing_count(written(), "watching /bin/app"), 1);
    take(START, 7, true);
    assert_int_equal(cli_testing_count(written(), "watching /bin/app"), 1);
    take(ERROR("1"), 7, false);
    assert_int_equal(cli_testing_count(written(), "watching /bin/app"), 2);
    take(START, 8, true);
    take(ERROR("1"), 8, false);
    assert_int_equal(cli_testing_count(written(), "watching /bin/app"), 3);
    finish();
}

static void good_print_limit(void **state)
{
    begin("--print-limit=1");
    take(START, 7, true);
    take(ERROR("1"), 7, false);
    take(ERROR("2"), 7, false);
    take(ERROR("3"), 7, false);
    take(REPEAT("3"), 7, false);
    finish();
    assert_int_equal(r.errors, 3);
    assert_int_equal(r.unprinted, 2);
    assert_int_equal(cli_testing_count(written(), "ERROR: moat"), 1);
    assert_int_equal(cli_testing_count(written(), "2 further errors were not printed (--print-limit=1)"), 1);
}

static void good_suppressed(void **state)
{
    static struct diag_sink sink = {.emit = cli_testing_ignore};
    begin(NULL);
    assert_int_equal(cli_testing_make_folder(NULL), 0);
    const char *path = cli_testing_write("known", "double-free:*\n", 0600);
    assert_int_equal(reports_load_suppressions(&r, path, &sink), 0);
    assert_int_equal(reports_load_suppressions(&r, cli_testing_path("none"), &sink), -ENOENT);
    take(START, 7, true);
    assert_int_equal(take(ERROR("1"), 7, false), REPORTS_SUPPRESSED);
    take(END, 7, false);
    finish();
    assert_int_equal(r.errors, 0);
    assert_int_equal(r.suppressed, 1);
    assert_int_equal(cli_testing_count(written(), "ERROR: moat"), 0);
    assert_int_equal(cli_testing_count(written(), "0 errors"), 1);
    assert_int_equal(cli_testing_remove_folder(NULL), 0);
}

// What cannot be read is refused with a reason and changes nothing.
static void bad_lines(void **state)
{
    static const char *const lines[] = {"{", "nonsense", "{\"event\":\"other\",\"pid\":%d}"};
    begin(NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (take(lines[i], 7, true) != -EINVAL)
            fail_msg("taken: %s", lines[i]);
    finish();
    assert_int_equal(r.errors + r.started + r.ended, 0);
    assert_string_equal(written(), "");
}

// A process without a summary is named at the end: one that lives on, one that is gone.
static void good_unended(void **state)
{
    begin(NULL);
    take(START, getpid(), true);
    take(START, 4194304, true);  // no process has this number
    take(START, 7, true);
    take(END, 7, false);
    reports_note_unended(&r, 0);
    finish();
    assert_int_equal(cli_testing_count(written(), "this process outlives the program"), 1);
    assert_int_equal(cli_testing_count(written(), "this process ended without a summary"), 1);
}

// Of its own child the command knows the signal, of other processes it does not.
static void good_ended_by_signal(void **state)
{
    char child[200];
    snprintf(child, sizeof child, "{\"event\":\"start\",\"pid\":%%d,\"parent\":%d,\"program\":\"/bin/app\"}",
             (int)getpid());
    begin(NULL);
    take(START, 4194304, true);
    take(child, 4194303, true);
    reports_note_unended(&r, SIGSEGV);
    finish();
    assert_int_equal(cli_testing_count(written(), "without a summary: by a signal, by _exit"), 1);
    assert_int_equal(cli_testing_count(written(), "==4194303==moat: this process ended without a summary: by "
                                                  "signal 11 (Segmentation fault); code on the host may"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(good_one_process, teardown),
        cmocka_unit_test_teardown(good_ended_by_signal, teardown),
        cmocka_unit_test_teardown(good_banners, teardown),
        cmocka_unit_test_teardown(good_print_limit, teardown),
        cmocka_unit_test_teardown(good_suppressed, teardown),
        cmocka_unit_test_teardown(bad_lines, teardown),
        cmocka_unit_test_teardown(good_unended, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
