// SPDX-License-Identifier: MIT
#include "report/suppress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "report/json_out.h"
#include "report/report_testing.h"

struct messages {
    struct diag_sink sink;
    char text[2000];
};

static void collect(struct diag_sink *sink, const struct diag *d)
{
    struct messages *m = (struct messages *)sink;
    size_t len = strlen(m->text);
    FILE *to = fmemopen(m->text + len, sizeof m->text - len, "w");
    diag_print(to, d);
    fclose(to);
}

static const struct demangle demangle = {testing_demangle, NULL};

static bool matches(const char *text, struct report_line line)
{
    struct messages m = {.sink = {.emit = collect}};
    struct suppress *s = suppress_new();
    assert_int_equal(suppress_parse(s, "s", str_from(text), &m.sink), 0);
    bool match = suppress_match(s, &line.error, &demangle);
    suppress_free(s);
    return match;
}

static void good_patterns(void **state)
{
    assert_true(matches("heap-buffer-overflow:_Z5scalePfi", testing_overflow()));
    assert_true(matches("heap-buffer-overflow:scale(*", testing_overflow()));
    assert_true(matches("# why\n\n  * : ma?n \r\n", testing_overflow()));
    assert_true(matches("*:*", testing_overflow()));
    assert_true(matches("*:libcudart.so*", testing_overflow()));
    assert_true(matches("*:/opt/*/libcudart*12", testing_overflow()));
    assert_true(matches("*:scale.cu", testing_overflow()));
    assert_true(matches("*:cuMemcpyDtoH*", testing_transfer()));
    assert_true(matches("memory-leak:_Z4makei", testing_leak()));
    assert_true(matches("*:nothing\n*:main", testing_leak()));
}

// A name in a text report may be a brief form of it; other formats have all of it.
static void good_brief_names(void **state)
{
    static const char name[] =
        "cub::CUB_300001_SM_900::sort<thrust::THRUST_300001_SM_900_NS::counting_iterator<int>, "
        "thrust::THRUST_300001_SM_900_NS::use_default>(int*, int)";
    struct report_line line = testing_overflow();
    line.error.place.kernel = name;
    assert_true(
        matches("heap-buffer-overflow:cub::sort<thrust::counting_iterator<int>, *>(int*, int)", line));
    assert_true(matches("heap-buffer-overflow:cub::CUB_*::sort<thrust::*", line));
    assert_false(matches("heap-buffer-overflow:cub::sort", line));
}

static void bad_patterns_match_nothing_else(void **state)
{
    assert_false(matches("", testing_overflow()));
    assert_false(matches("bad-free:*", testing_overflow()));
    assert_false(matches("*:scal", testing_overflow()));
    assert_false(matches("*:mai", testing_overflow()));
    assert_false(matches("*:main?", testing_overflow()));
    assert_false(matches("*:*x*y*z*", testing_overflow()));
    assert_false(matches("*:_Z4makei", testing_overflow()));
    struct report_line line = testing_overflow();
    assert_false(suppress_match(NULL, &line.error, NULL));
}

// An error that a monitor finds has no stack but that of the allocation.
static struct report_line found_later(void)
{
    struct report_line line = testing_leak();
    line.error.type = REPORT_HEAP_OVERFLOW;
    return line;
}

static void good_allocation_stack_where_there_is_no_other(void **state)
{
    assert_true(matches("heap-buffer-overflow:_Z4makei", found_later()));
    assert_true(matches("*:main", found_later()));
    assert_false(matches("*:nothing", found_later()));
    assert_false(matches("memory-leak:*", found_later()));
}

static void bad_saved_report_of_another_allocation(void **state)
{
    static char saved[4096];
    struct text_buffer b;
    struct report_line known = found_later(), other = found_later();
    text_buffer_init(&b, saved, sizeof saved - 1);
    json_out_line(&b, &known);
    saved[b.len] = 0;
    assert_true(matches(saved, known));
    struct report_frame frame = {.pc = 1, .function = "elsewhere"};
    struct report_buffer buffer = other.error.buffers[0];
    buffer.made_at = (struct report_stack){1, &frame};
    other.error.buffers = &buffer;
    assert_false(matches(saved, other));
}

static void bad_lines_are_shown(void **state)
{
    struct messages m = {.sink = {.emit = collect}};
    struct suppress *s = suppress_new();
    const char *text =
        "heap-buffer-overflo:x\n  main\n*:\n{\"event\":\"error\",\"type\":\"bad\"}\nquux:*\n*:good\n";
    assert_int_equal(suppress_parse(s, "my.supp", str_from(text), &m.sink), -EINVAL);
    assert_string_equal(
        m.text, "my.supp:1:1: error: there is no such type of error; did you mean heap-buffer-overflow?\n"
                "  heap-buffer-overflo:x\n"
                "  ^~~~~~~~~~~~~~~~~~~\n"
                "my.supp:2:3: error: expected type:pattern\n"
                "    main\n"
                "    ^~~~\n"
                "my.supp:3:2: error: expected a pattern after the colon; * stands for any text\n"
                "  *:\n"
                "   ^\n"
                "my.supp:4:26: error: no error is called \"bad\"\n"
                "  {\"event\":\"error\",\"type\":\"bad\"}\n"
                "                           ^\n"
                "my.supp:5:1: error: there is no such type of error; * stands for any\n"
                "  quux:*\n"
                "  ^~~~\n");
    struct report_line line = testing_overflow();
    line.error.place.kernel = "good";
    assert_true(suppress_match(s, &line.error, NULL));
    suppress_free(s);
}

// A saved report, errors that it suppresses, and errors that it does not.
static void good_saved_report(void **state)
{
    static char memory[16 << 10];
    struct text_buffer b;
    text_buffer_init(&b, memory, sizeof memory - 1);
    struct report_line line = testing_start();
    json_out_line(&b, &line);
    line = testing_overflow();
    json_out_line(&b, &line);
    line = testing_end();
    json_out_line(&b, &line);
    memory[b.len] = 0;
    line = testing_overflow();
    line.error.address++;
    line.error.pid++;
    assert_true(matches(memory, line));
    assert_false(matches(memory, testing_transfer()));
    line.error.place.line++;
    assert_false(matches(memory, line));
}

static void good_files(void **state)
{
    char path[] = "/tmp/suppress_test.XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "*:main\n", 7), 7);
    close(fd);
    struct messages m = {.sink = {.emit = collect}};
    struct suppress *s = suppress_new();
    assert_int_equal(suppress_load(s, path, &m.sink), 0);
    struct report_line line = testing_overflow();
    assert_true(suppress_match(s, &line.error, NULL));
    unlink(path);
    assert_int_equal(suppress_load(s, path, &m.sink), -ENOENT);
    assert_int_equal(suppress_load(s, "/", &m.sink), -EISDIR);
    suppress_free(s);
}

static void bad_memory_runs_out(void **state)
{
    struct messages m = {.sink = {.emit = collect}};
    int err = -ENOMEM;
    for (long n = 0; err; n++) {
        mem_fail_after(n);
        struct suppress *s = suppress_new();
        err = s ? suppress_parse(s, "s", STR("*:a\n{\"event\":\"error\",\"type\":\"bad-free\"}\n"), &m.sink)
                : -ENOMEM;
        mem_fail_after(-1);
        assert_true(!err || err == -ENOMEM);
        suppress_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_patterns),
        cmocka_unit_test(good_brief_names),
        cmocka_unit_test(bad_patterns_match_nothing_else),
        cmocka_unit_test(bad_lines_are_shown),
        cmocka_unit_test(good_saved_report),
        cmocka_unit_test(good_files),
        cmocka_unit_test(bad_memory_runs_out),
        cmocka_unit_test(good_allocation_stack_where_there_is_no_other),
        cmocka_unit_test(bad_saved_report_of_another_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
