// SPDX-License-Identifier: MIT
#include "cli/render.h"

#include <errno.h>

#include "cli/cli_testing.h"
#include "report/report_testing.h"

static int out;  // where events go without a log file

static int setup(void **state)
{
    out = open("/tmp", O_RDWR | O_TMPFILE | O_APPEND, 0600);
    return out < 0;
}

static int teardown(void **state)
{
    return close(out);
}

static struct render *start(enum option_format format, const char *log)
{
    struct render_setup s = {.format = format, .color = OPTION_COLOR_NEVER, .log_file = log, .fd = out};
    struct render *r = render_new(&s);
    assert_non_null(r);
    return r;
}

static void show(struct render *r, struct report_line line)
{
    struct arena a;
    arena_init(&a, 0);
    render_line(r, &a, &line);
}

static struct report_line note_of(int pid)
{
    return (struct report_line){.event = REPORT_NOTE, .note = {.pid = pid, .text = "a note"}};
}

static void end(struct render *r, int expected)
{
    assert_int_equal(render_finish(r, 0), expected);
    render_free(r);
}

static const char *written(void)
{
    return cli_testing_read_fd(out);
}

// Text and lines of JSON are there at once, documents at the end, even without an event.
static void test_formats(void **state)
{
    static const struct {
        enum option_format format;
        bool at_once;
        const char *has;
    } rows[] = {{OPTION_FORMAT_TEXT, true, "a note"},
                {OPTION_FORMAT_JSON, true, "\"a note\""},
                {OPTION_FORMAT_SARIF, false, "\"2.1.0\""},
                {OPTION_FORMAT_XML, false, "<?xml"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int events = 0; events < 2; events++) {
            assert_int_equal(ftruncate(out, 0), 0);
            struct render *r = start(rows[i].format, NULL);
            if (events)
                show(r, note_of(12));
            assert_true(!*written() == !(rows[i].at_once && events));
            end(r, 0);
            assert_int_equal(cli_testing_count(written(), rows[i].has), rows[i].at_once ? events : 1);
        }
    }
}

static void test_processes(void **state)
{
    for (int i = 0; i < TESTING_EVENTS; i++) {
        struct report_line line = testing_event(i);
        assert_int_equal(render_pid(&line), 4711);
    }
}

// A process has a file of its own where the name says %p, and a document in it.
static void test_a_file_each(void **state)
{
    char log[PATH_MAX + 10], why[300];
    snprintf(log, sizeof log, "%s/%%p.log", cli_testing_folder);
    for (int format = 0; format < 2; format++) {
        struct render *r = start(format ? OPTION_FORMAT_SARIF : OPTION_FORMAT_TEXT, log);
        assert_int_equal(render_open_log(r, why, sizeof why), 0);
        show(r, note_of(12));
        show(r, note_of(13));
        show(r, note_of(12));
        end(r, 0);
        const char *what = format ? "\"2.1.0\"" : "a note";
        assert_int_equal(cli_testing_count(cli_testing_read(cli_testing_path("12.log")), what), 2 - format);
        assert_int_equal(cli_testing_count(cli_testing_read(cli_testing_path("13.log")), what), 1);
    }
    // Nobody reported: there is no file.
    struct render *r = start(OPTION_FORMAT_SARIF, log);
    assert_int_equal(render_open_log(r, why, sizeof why), 0);
    end(r, 0);
    assert_null(cli_testing_read(cli_testing_path("0.log")));
    assert_string_equal(written(), "");
}

static void test_one_file(void **state)
{
    const char *log = cli_testing_write("old.log", "from a run before", 0600);
    char why[300];
    struct render *r = start(OPTION_FORMAT_TEXT, log);
    assert_int_equal(render_open_log(r, why, sizeof why), 0);
    show(r, note_of(12));
    show(r, note_of(13));
    end(r, 0);
    const char *text = cli_testing_read(log);
    assert_int_equal(cli_testing_count(text, "a note"), 2);
    assert_null(strstr(text, "from a run before"));
}

// Reports then go where they go without a log; a document is one.
static void test_bad_logs(void **state)
{
    static const enum option_format formats[] = {OPTION_FORMAT_TEXT, OPTION_FORMAT_SARIF};
    static const char *const has[] = {"a note", "\"2.1.0\""};
    const char *const logs[] = {"/none/such/log", "/none/such/%p", "x%q", "/tmp"};
    for (size_t f = 0; f < 2; f++)
        for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
            char why[300] = "";
            assert_int_equal(ftruncate(out, 0), 0);
            struct cli_testing_stderr err = cli_testing_take_stderr();
            struct render *r = start(formats[f], logs[i]);
            int opened = render_open_log(r, why, sizeof why);
            show(r, note_of(12));
            int finished = render_finish(r, 0);
            render_free(r);
            const char *said = cli_testing_give_stderr(&err);
            assert_true(opened < 0 && !finished);
            assert_non_null(strstr(why, i == 2 ? "before something other than" : "cannot be written"));
            assert_string_equal(said, "");
            assert_int_equal(cli_testing_count(written(), has[f]), 1);
        }
}

// A log that is full is reported once, and standard error has the rest.
static void test_full_log(void **state)
{
    char why[300];
    struct cli_testing_stderr err = cli_testing_take_stderr();
    struct render *r = start(OPTION_FORMAT_TEXT, "/dev/full");
    int opened = render_open_log(r, why, sizeof why);
    show(r, note_of(12));
    show(r, note_of(12));
    int finished = render_finish(r, 0);
    render_free(r);
    const char *said = cli_testing_give_stderr(&err);
    assert_int_equal(opened, 0);
    assert_int_equal(finished, 0);
    assert_int_equal(cli_testing_count(said, "cannot write the log file"), 1);
    assert_int_equal(cli_testing_count(said, "a note"), 2);
}

static void test_unwritable(void **state)
{
    int full = open("/dev/full", O_WRONLY);
    struct render_setup s = {.format = OPTION_FORMAT_TEXT, .color = OPTION_COLOR_NEVER, .fd = full};
    struct render *r = render_new(&s);
    show(r, note_of(12));
    end(r, -ENOSPC);
    close(full);
}

static void test_colour(void **state)
{
    for (int always = 0; always < 2; always++) {
        struct render_setup s = {.format = OPTION_FORMAT_TEXT,
                                 .color = always ? OPTION_COLOR_ALWAYS : OPTION_COLOR_AUTO,
                                 .fd = out};
        struct render *r = render_new(&s);
        show(r, testing_overflow());
        end(r, 0);
        assert_true(!strchr(written(), '\033') == !always);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_formats, setup, teardown),
        cmocka_unit_test(test_processes),
        cmocka_unit_test_setup_teardown(test_a_file_each, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_logs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_log, setup, teardown),
        cmocka_unit_test(test_unwritable),
        cmocka_unit_test_setup_teardown(test_colour, setup, teardown),
    };
    return cmocka_run_group_tests(tests, cli_testing_make_folder, cli_testing_remove_folder);
}
