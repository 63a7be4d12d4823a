// SPDX-License-Identifier: MIT
#include "base/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

// The test has a table of its own, so that every type is tested whichever options moat has.
struct values {
    OPTION_C_FLAG loud;
    OPTION_C_INT level, any;
    OPTION_C_MS pause;
    OPTION_C_SIZE memory;
    OPTION_C_WORD color;
    OPTION_C_LIST modes;
    OPTION_C_STRING name;
    OPTION_C_STRING self;
};

#define FIELD(f) offsetof(struct values, f)
static const char *const colors[] = {"red", "green", "blue", NULL};
static const struct option_row rows[] = {
    {"loud", OPTION_FLAG, "no", {0}, NULL, "run", "be loud", FIELD(loud)},
    {"level", OPTION_INT, "3", {-5, 10, NULL}, "N", "run,ptx list", "how much", FIELD(level)},
    {"any", OPTION_INT, NULL, {0}, "N", "run", "any number", FIELD(any)},
    {"memory", OPTION_SIZE, "2k", {1, 1ll << 40, NULL}, "SIZE", "run", "how much memory", FIELD(memory)},
    {"color", OPTION_WORD, "green", {.words = colors}, NULL, "run", "which color", FIELD(color)},
    {"modes", OPTION_LIST, "red,blue", {.words = colors}, NULL, "run", "which colors", FIELD(modes)},
    {"name", OPTION_STRING, NULL, {0}, "NAME", "run", "a name", FIELD(name)},
    {"self", OPTION_STRING, "me", {0}, "NAME", "", "of the command line", FIELD(self)},
    {"pause", OPTION_MS, "0.5", {0, 60, NULL}, "MS", "run", "how long", FIELD(pause)},
};
static const struct option_table table = {rows, sizeof rows / sizeof *rows};

struct fixture {
    struct diag_sink sink;
    char messages[2000];
    struct option_set set;
    struct values values;
};

static void collect(struct diag_sink *sink, const struct diag *d)
{
    struct fixture *f = (struct fixture *)sink;
    size_t len = strlen(f->messages);
    FILE *to = fmemopen(f->messages + len, sizeof f->messages - len, "w");
    assert_non_null(to);
    diag_print(to, d);
    fclose(to);
}

static void start(struct fixture *f)
{
    *f = (struct fixture){.sink = {.emit = collect}};
    assert_int_equal(option_init(&f->set, &table, &f->values, &f->sink), 0);
}

static int parse_args(struct fixture *f, bool mixed, int *left, char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    return option_parse_args(&f->set, argc, argv, mixed, left);
}
#define ARGS(f, mixed, left, ...) parse_args(f, mixed, left, (char *[]){__VA_ARGS__, NULL})

// Expects that this argument alone is refused with this message.
static void expect_bad(const char *arg, const char *message)
{
    struct fixture f;
    int left;
    start(&f);
    char *copy = strdup(arg);
    assert_int_equal(ARGS(&f, true, &left, copy), -EINVAL);
    assert_string_equal(f.messages, message);
    assert_int_equal(f.sink.errors, 1);
    option_free(&f.set);
    free(copy);
}

static void expect_good(struct fixture *f, const char *arg)
{
    int left;
    start(f);
    char *copy = strdup(arg);
    assert_int_equal(ARGS(f, true, &left, copy), 0);
    assert_int_equal(left, 0);
    free(copy);
    option_free(&f->set);
}

static void good_defaults(void **state)
{
    struct fixture f;
    start(&f);
    assert_false(f.values.loud);
    assert_int_equal(f.values.level, 3);
    assert_int_equal(f.values.any, 0);
    assert_int_equal(f.values.pause, 500);
    assert_int_equal(f.values.memory, 2048);
    assert_int_equal(f.values.color, 1);
    assert_int_equal(f.values.modes, 5);
    assert_null(f.values.name);
    assert_string_equal(f.values.self, "me");
    option_free(&f.set);
    option_free(NULL);
}

static void good_real_table_has_good_defaults(void **state)
{
    struct fixture f = {.sink = {.emit = collect}};
    struct options options;
    assert_int_equal(option_init(&f.set, &option_table, &options, &f.sink), 0);
    assert_int_equal(options.format, OPTION_FORMAT_TEXT);
    assert_int_equal(options.module, 0);
    assert_null(options.config);
    option_free(&f.set);
}

static void good_values(void **state)
{
    struct fixture f;
    expect_good(&f, "--loud");
    assert_true(f.values.loud);
    expect_good(&f, "--loud=on");
    assert_true(f.values.loud);
    expect_good(&f, "--no-loud");
    assert_false(f.values.loud);
    expect_good(&f, "--level=-5");
    assert_int_equal(f.values.level, -5);
    expect_good(&f, "--level=0xa");
    assert_int_equal(f.values.level, 10);
    expect_good(&f, "--any=-9223372036854775808");
    assert_true(f.values.any == INT64_MIN);
    expect_good(&f, "--any=9223372036854775807");
    assert_true(f.values.any == INT64_MAX);
    expect_good(&f, "--pause=2");
    assert_int_equal(f.values.pause, 2000);
    expect_good(&f, "--pause=0.025");
    assert_int_equal(f.values.pause, 25);
    expect_good(&f, "--pause=60.0");
    assert_int_equal(f.values.pause, 60000);
    expect_good(&f, "--memory=3M");
    assert_int_equal(f.values.memory, 3 << 20);
    expect_good(&f, "--memory=1t");
    assert_int_equal(f.values.memory, 1ll << 40);
    expect_good(&f, "--color=blue");
    assert_int_equal(f.values.color, 2);
    expect_good(&f, "--modes=green,blue,green");
    assert_int_equal(f.values.modes, 6);
}

static void bad_values(void **state)
{
    expect_bad("--loud=maybe", "--loud: error: \"maybe\" is neither yes nor no\n");
    expect_bad("--no-loud=1", "--no-loud: error: a flag that is negated takes no value\n");
    expect_bad("--no-level", "--no-level: error: level is not a flag\n");
    expect_bad("--level=11", "--level: error: 11 is not within -5 to 10\n");
    expect_bad("--level=-6", "--level: error: -6 is not within -5 to 10\n");
    expect_bad("--level=", "--level: error: \"\" is not a whole number\n");
    expect_bad("--level=-", "--level: error: \"-\" is not a whole number\n");
    expect_bad("--level=1x", "--level: error: \"1x\" is not a whole number\n");
    expect_bad("--level=0x", "--level: error: \"0x\" is not a whole number\n");
    expect_bad(
        "--any=9223372036854775808",
        "--any: error: 9223372036854775808 is not within -9223372036854775808 to 9223372036854775807\n");
    expect_bad("--pause=60.001", "--pause: error: 60.001 is not within 0 to 60\n");
    for (const char *const *bad = (const char *const[]){"", ".5", "1.", "1.0001", "0.0x1", "-1", "2s", NULL};
         *bad; bad++) {
        char arg[40], message[100];
        snprintf(arg, sizeof arg, "--pause=%s", *bad);
        snprintf(message, sizeof message,
                 "--pause: error: \"%s\" is not a number of milliseconds such as 2 or 0.5\n", *bad);
        expect_bad(arg, message);
    }
    expect_bad("--memory=0", "--memory: error: 0 is not within 1 to 1099511627776\n");
    expect_bad("--memory=2x", "--memory: error: \"2x\" is not a size such as 4096, 64k, 2M or 1G\n");
    expect_bad("--memory=18446744073709551616", "--memory: error: 18446744073709551616 is too large\n");
    expect_bad("--memory=99999999999t", "--memory: error: 99999999999t is too large\n");
    expect_bad("--color=gren", "--color: error: unknown word \"gren\"; did you mean green?\n");
    expect_bad("--color=mauve", "--color: error: unknown word \"mauve\"; known are red, green, blue\n");
    expect_bad("--modes=red,,blue", "--modes: error: unknown word \"\"; known are red, green, blue\n");
    expect_bad("--modes=", "--modes: error: unknown word \"\"; known are red, green, blue\n");
    expect_bad("--name", "--name: error: needs a value\n");
}

static void bad_keys(void **state)
{
    expect_bad("--lvel=1", "--lvel: error: unknown option; did you mean --level?\n");
    expect_bad("--suppressions", "--suppressions: error: unknown option; `moat options` lists them all\n");
    expect_bad("--=1", "--: error: unknown option; `moat options` lists them all\n");
    expect_bad("-v", "-v: error: unknown option; they all start with --\n");
    expect_bad("--no-", "--no-: error: unknown option; `moat options` lists them all\n");
}

static void good_arguments_are_split(void **state)
{
    struct fixture f;
    int left;
    start(&f);
    char *argv[] = {"a", "--level", "7", "b", "--name=--x", "-", "--", "--loud", NULL};
    assert_int_equal(parse_args(&f, true, &left, argv), 0);
    assert_int_equal(left, 4);
    assert_string_equal(argv[0], "a");
    assert_string_equal(argv[1], "b");
    assert_string_equal(argv[2], "-");
    assert_string_equal(argv[3], "--loud");
    assert_int_equal(f.values.level, 7);
    assert_string_equal(f.values.name, "--x");
    assert_false(f.values.loud);
    option_free(&f.set);
}

static void good_first_operand_ends_the_options(void **state)
{
    struct fixture f;
    int left;
    start(&f);
    char *argv[] = {"--level=7", "./app", "--level=8", "--", "--bogus", NULL};
    assert_int_equal(parse_args(&f, false, &left, argv), 0);
    assert_int_equal(left, 4);
    assert_string_equal(argv[0], "./app");
    assert_string_equal(argv[2], "--");
    assert_int_equal(f.values.level, 7);
    option_free(&f.set);
}

static void bad_arguments_are_all_reported(void **state)
{
    struct fixture f;
    int left;
    start(&f);
    assert_int_equal(ARGS(&f, true, &left, "--bogus", "a", "--level=x", "--loud"), -EINVAL);
    assert_int_equal(f.sink.errors, 2);
    assert_int_equal(left, 1);
    option_free(&f.set);
}

static void good_environment(void **state)
{
    struct fixture f;
    start(&f);
    assert_int_equal(option_parse_environment(&f.set, "X", "loud:level=4::name=a\\:b\\\\c\\d=e:no-loud:"), 0);
    assert_false(f.values.loud);
    assert_int_equal(f.values.level, 4);
    assert_string_equal(f.values.name, "a:b\\c\\d=e");
    assert_int_equal(option_parse_environment(&f.set, "X", "name="), 0);
    assert_string_equal(f.values.name, "");
    assert_int_equal(option_parse_environment(&f.set, "X", "name=\\"), 0);
    assert_string_equal(f.values.name, "\\");
    assert_int_equal(option_parse_environment(&f.set, "X", ""), 0);
    option_free(&f.set);
}

static void bad_environment(void **state)
{
    struct fixture f;
    start(&f);
    assert_int_equal(option_parse_environment(&f.set, "X", "level=4:levle=5:level=x:self=you:level=6"),
                     -EINVAL);
    assert_string_equal(f.messages, "X:1:9: error: unknown option; did you mean level?\n"
                                    "  level=4:levle=5:level=x:self=you:level=6\n"
                                    "          ^~~~~\n"
                                    "X:1:23: error: \"x\" is not a whole number\n"
                                    "  level=4:levle=5:level=x:self=you:level=6\n"
                                    "                        ^\n"
                                    "X:1:25: error: can be given on the command line only\n"
                                    "  level=4:levle=5:level=x:self=you:level=6\n"
                                    "                          ^~~~\n");
    assert_int_equal(f.values.level, 6);
    option_free(&f.set);
}

static void good_file(void **state)
{
    struct fixture f;
    start(&f);
    struct str text = STR("# comment\n\n  level =  4 \r\nloud\nname = a # b = c\ncolor=red");
    assert_int_equal(option_parse_file(&f.set, "conf", text), 0);
    assert_int_equal(f.values.level, 4);
    assert_true(f.values.loud);
    assert_string_equal(f.values.name, "a # b = c");
    assert_int_equal(f.values.color, 0);
    assert_int_equal(f.set.sources[1].line, 3);
    assert_int_equal(option_parse_file(&f.set, "conf", STR("")), 0);
    option_free(&f.set);
}

static void bad_file(void **state)
{
    struct fixture f;
    start(&f);
    struct str text = STR("level = 4\n  level = many\nlevel\nname = a\0b\n= 3\n");
    assert_int_equal(option_parse_file(&f.set, "conf", text), -EINVAL);
    assert_string_equal(f.messages, "conf:2:11: error: \"many\" is not a whole number\n"
                                    "    level = many\n"
                                    "            ^~~~\n"
                                    "conf:3:1: error: needs a value\n"
                                    "  level\n"
                                    "  ^~~~~\n"
                                    "conf:4:8: error: a zero byte in a text\n"
                                    "  name = a?b\n"
                                    "         ^~~\n"
                                    "conf:5:1: error: unknown option; `moat options` lists them all\n"
                                    "  = 3\n"
                                    "  ^\n");
    option_free(&f.set);
}

static void bad_files_cannot_be_loaded(void **state)
{
    struct fixture f;
    start(&f);
    assert_int_equal(option_load_file(&f.set, "/nonexistent/moat.conf"), -EINVAL);
    assert_string_equal(f.messages, "/nonexistent/moat.conf: error: No such file or directory\n");
    f.messages[0] = 0;
    assert_int_equal(option_load_file(&f.set, "/"), -EINVAL);
    assert_string_equal(f.messages, "/: error: Is a directory\n");
    f.messages[0] = 0;
    assert_int_equal(option_load_file(&f.set, "/dev/zero"), -EINVAL);
    assert_string_equal(f.messages, "/dev/zero: error: too large for a configuration file\n");
    option_free(&f.set);
}

static void good_command_line_wins_over_environment_over_file(void **state)
{
    struct fixture f;
    int left;
    start(&f);
    assert_int_equal(ARGS(&f, true, &left, "--level=1"), 0);
    assert_int_equal(option_parse_file(&f.set, "conf", STR("level=3\ncolor=red\nmemory=1k\n")), 0);
    assert_int_equal(option_parse_environment(&f.set, "X", "level=2:color=blue"), 0);
    assert_int_equal(option_parse_file(&f.set, "conf", STR("color=red\n")), 0);
    assert_int_equal(f.values.level, 1);
    assert_int_equal(f.values.color, 2);
    assert_int_equal(f.values.memory, 1024);
    assert_int_equal(f.set.sources[1].origin, OPTION_BY_COMMAND_LINE);
    assert_int_equal(f.set.sources[4].origin, OPTION_BY_ENVIRONMENT);
    assert_int_equal(f.set.sources[3].origin, OPTION_BY_FILE);
    assert_int_equal(f.set.sources[0].origin, OPTION_BY_DEFAULT);
    option_free(&f.set);
}

static void good_rows_apply_to_their_commands(void **state)
{
    assert_true(option_applies(&rows[1], "run"));
    assert_true(option_applies(&rows[1], "ptx list"));
    assert_false(option_applies(&rows[1], "ptx"));
    assert_false(option_applies(&rows[1], "ru"));
    assert_true(option_applies(&rows[1], "options"));
    assert_true(option_applies(&rows[7], "info"));
}

static void bad_option_of_another_command(void **state)
{
    struct fixture f;
    int left;
    start(&f);
    assert_int_equal(ARGS(&f, true, &left, "--level=1", "--self=x"), 0);
    assert_int_equal(option_parse_environment(&f.set, "X", "loud"), 0);
    assert_int_equal(option_check_command(&f.set, "run", NULL), 0);
    assert_int_equal(option_check_command(&f.set, "info", NULL), -EINVAL);
    assert_string_equal(f.messages, "--level: error: not an option of `moat info`, but of: run,ptx list\n");
    option_free(&f.set);
}

static void good_printing(void **state)
{
    struct fixture f;
    struct out o;
    int left;
    start(&f);
    assert_int_equal(ARGS(&f, true, &left, "--level=1", "--modes=blue,red"), 0);
    assert_int_equal(option_parse_environment(&f.set, "X", "name=n"), 0);
    assert_int_equal(option_parse_file(&f.set, "conf", STR("\nmemory=1k\n")), 0);
    out_to_memory(&o);
    for (size_t i = 0; i < table.count; i++) {
        option_print_usage(&rows[i], &o);
        out_char(&o, ' ');
        option_print_value(&f.set, &rows[i], &o);
        out_char(&o, ' ');
        option_print_source(&f.set, &rows[i], &o);
        out_char(&o, '\n');
    }
    out_char(&o, 0);
    assert_string_equal(o.buf, "--loud no default\n"
                               "--level=N 1 command line\n"
                               "--any=N not set default\n"
                               "--memory=SIZE 1024 conf:2\n"
                               "--color=red|green|blue green default\n"
                               "--modes=red|green|blue red,blue command line\n"
                               "--name=NAME n MOAT_OPTIONS\n"
                               "--self=NAME me default\n"
                               "--pause=MS 0.5 default\n");
    out_close(&o);
    option_free(&f.set);
}

static void good_environment_is_printed_as_it_is_read(void **state)
{
    struct fixture f, g;
    struct out o;
    int left;
    start(&f);
    assert_int_equal(ARGS(&f, true, &left, "--name=a:b\\c", "--modes=blue,red", "--self=x", "--loud"), 0);
    assert_int_equal(option_parse_environment(&f.set, "X", "memory=1M"), 0);
    out_to_memory(&o);
    option_print_environment(&f.set, &o);
    out_char(&o, 0);
    assert_string_equal(o.buf, "loud=yes:memory=1048576:modes=red,blue:name=a\\:b\\\\c");
    start(&g);
    assert_int_equal(option_parse_environment(&g.set, "X", o.buf), 0);
    assert_string_equal(g.values.name, "a:b\\c");
    assert_int_equal(g.values.modes, 5);
    assert_true(g.values.loud);
    out_close(&o);
    option_free(&f.set);
    option_free(&g.set);
}

static int use_everything(struct fixture *f, const char *file)
{
    int left, err = option_init(&f->set, &table, &f->values, &f->sink);
    err = err ? err : ARGS(f, true, &left, "--name=x", "--level=5");
    err = err ? err : option_parse_environment(&f->set, "X", "name=y:level=4");
    err = err ? err : option_load_file(&f->set, file);
    option_free(&f->set);
    return err;
}

static void bad_memory_at_each_allocation(void **state)
{
    char file[] = "/tmp/moat-option-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "name = z\n", 9), 9);
    close(fd);
    long n = 0;
    for (int err = -1; err; n++) {
        struct fixture f = {.sink = {.emit = collect}};
        mem_fail_after(n);
        err = use_everything(&f, file);
        mem_fail_after(-1);
        assert_true(err == 0 || err == -ENOMEM);
        assert_int_equal(f.sink.errors, 0);
    }
    assert_true(n > 3);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_defaults),
        cmocka_unit_test(good_real_table_has_good_defaults),
        cmocka_unit_test(good_values),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(good_arguments_are_split),
        cmocka_unit_test(good_first_operand_ends_the_options),
        cmocka_unit_test(bad_arguments_are_all_reported),
        cmocka_unit_test(good_environment),
        cmocka_unit_test(bad_environment),
        cmocka_unit_test(good_file),
        cmocka_unit_test(bad_file),
        cmocka_unit_test(bad_files_cannot_be_loaded),
        cmocka_unit_test(good_command_line_wins_over_environment_over_file),
        cmocka_unit_test(good_rows_apply_to_their_commands),
        cmocka_unit_test(bad_option_of_another_command),
        cmocka_unit_test(good_printing),
        cmocka_unit_test(good_environment_is_printed_as_it_is_read),
        cmocka_unit_test(bad_memory_at_each_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
