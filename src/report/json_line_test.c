// SPDX-License-Identifier: MIT
// Tests writer and reader of JSON lines against each other and against texts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/json_in.h"
#include "report/json_out.h"
#include "report/report_testing.h"

static char memory[64 << 10];

static struct str write(const struct report_line *line, size_t cap, bool *cut)
{
    struct text_buffer b;
    text_buffer_init(&b, memory, cap);
    json_out_line(&b, line);
    if (cut)
        *cut = b.cut;
    return (struct str){memory, b.len};
}

static void expect_line(struct report_line line, const char *text)
{
    struct str s = write(&line, sizeof memory, NULL);
    char *copy = strndup(s.ptr, s.len);
    assert_string_equal(copy, text);
    free(copy);
}

static void good_lines_are_as_documented(void **state)
{
    expect_line(
        testing_overflow(),
        "{\"event\":\"error\",\"type\":\"heap-buffer-overflow\",\"pid\":4711,\"id\":1,\"count\":1,\"device\":"
        "0,"
        "\"address\":\"0x7f2a00000400\",\"access\":{\"kind\":\"write\",\"bytes\":4},\"call\":"
        "\"cuLaunchKernel\","
        "\"kernel\":{\"name\":\"_Z5scalePfi\",\"file\":\"/src/scale.cu\",\"line\":7,\"block\":[1,0,0],"
        "\"thread\":[0,0,0]},"
        "\"stack\":[{\"object\":\"/opt/app/"
        "libcudart.so.12\",\"offset\":\"0x1111\",\"pc\":\"0x7f0000001111\"},"
        "{\"function\":\"main\",\"file\":\"/src/scale.cu\",\"line\":44,\"object\":\"/opt/app/scale\","
        "\"offset\":\"0x1300\",\"pc\":\"0x5500001300\"},{\"pc\":\"0x10\"}],"
        "\"buffers\":[{\"base\":\"0x7f2a00000000\",\"size\":1024,\"made_by\":\"cuMemAlloc_v2\","
        "\"made_at\":[{\"function\":\"_Z4makei\",\"file\":\"/src/scale.cu\",\"line\":19,"
        "\"object\":\"/opt/app/scale\",\"offset\":\"0x1234\",\"pc\":\"0x5500001234\",\"inlined\":true},"
        "{\"function\":\"main\",\"file\":\"/src/scale.cu\",\"line\":40,\"object\":\"/opt/app/scale\","
        "\"offset\":\"0x1234\",\"pc\":\"0x5500001234\"}]}]}\n");
    expect_line(testing_repeat(), "{\"event\":\"repeat\",\"pid\":4711,\"id\":1,\"count\":1234}\n");
    expect_line(testing_note(),
                "{\"event\":\"note\",\"pid\":4711,\"text\":\"a tab\\tand \\\"quotes\\\"\"}\n");
    expect_line(
        testing_start(),
        "{\"event\":\"start\",\"pid\":4711,\"parent\":4700,\"program\":\"./scale\",\"mode\":\"pages\","
        "\"device\":\"CPU device\",\"version\":\"0.1.0\","
        "\"notes\":[\"the cache cannot be written: no space left on device\"]}\n");
    expect_line(testing_end(),
                "{\"event\":\"end\",\"pid\":4711,\"errors\":0,\"suppressed\":2,\"watched\":["
                "{\"key\":\"allocations\",\"value\":12,\"label\":\"allocations\"},"
                "{\"key\":\"bytes_copied\",\"value\":1073741824,\"label\":\"bytes copied\"},"
                "{\"key\":\"kernels_launched\",\"value\":1500,\"label\":\"kernels launched\"}],"
                "\"uncovered\":[{\"key\":\"kernels_sass\",\"value\":3,\"label\":\"kernels with machine code "
                "only\"}]}\n");
}

static void good_bytes_show_what_changed(void **state)
{
    struct report_line line = testing_full();
    struct str s = write(&line, sizeof memory, NULL);
    assert_non_null(memmem(s.ptr, s.len,
                           "\"corrupted\":{\"address\":\"0x7f2a00000400\","
                           "\"bytes\":\"........deadbeef......................7f\"}",
                           91));
    assert_non_null(memmem(s.ptr, s.len, "\"device\":0,\"client\":3,", 22));
}

// A line that was written is read, and written again unchanged.
static void good_round_trip(void **state)
{
    for (int i = 0; i < TESTING_EVENTS; i++) {
        struct report_line line = testing_event(i), back;
        struct arena a;
        char why[200] = "";
        arena_init(&a, 0);
        struct str first = write(&line, sizeof memory, NULL);
        char *copy = strndup(first.ptr, first.len);
        int err = json_in_line(&a, str_from(copy), &back, why, sizeof why);
        assert_string_equal(why, "");
        assert_int_equal(err, 0);
        struct str second = write(&back, sizeof memory, NULL);
        assert_int_equal(second.len, strlen(copy));
        assert_memory_equal(second.ptr, copy, second.len);
        if (line.event == REPORT_ERROR)
            assert_int_equal(back.error.client, line.error.client);
        free(copy);
        arena_free(&a);
    }
}

// With any amount of room, the line is valid JSON or empty, and what it contains is right.
static void bad_room_is_too_small(void **state)
{
    for (int i = 0; i < TESTING_EVENTS; i++) {
        struct report_line line = testing_event(i);
        size_t full = write(&line, sizeof memory, NULL).len;
        for (size_t cap = 0; cap <= full; cap++) {
            bool cut;
            struct str s = write(&line, cap, &cut);
            assert_true(s.len <= cap);
            assert_true(s.len > 0 || cap < JSON_OUT_LEAST);
            if (!s.len) {
                assert_true(cut);
                continue;
            }
            assert_int_equal(s.ptr[s.len - 1], '\n');
            cJSON *root = cJSON_ParseWithLength(s.ptr, s.len);
            assert_non_null(root);
            assert_int_equal(cut, cJSON_IsTrue(cJSON_GetObjectItem(root, "truncated")));
            cJSON *stack = cJSON_GetObjectItem(root, "stack");
            for (int f = 0; f + 1 < cJSON_GetArraySize(stack); f++)
                assert_non_null(cJSON_GetObjectItem(cJSON_GetArrayItem(stack, f), "pc"));
            cJSON_Delete(root);
        }
    }
}

static void bad_text_is_cleaned(void **state)
{
    struct report_line line = {
        .event = REPORT_NOTE,
        .note = {.pid = 1, .text = "a\x01\xff\xc3\xa4\xed\xa0\x80\\ \xf0\x9f\x98\x80\xe2\x82"}};
    expect_line(line,
                "{\"event\":\"note\",\"pid\":1,\"text\":\"a\\u0001\\udcff\xc3\xa4\\udced\\udca0\\udc80\\\\ "
                "\xf0\x9f\x98\x80\\udce2\\udc82\"}\n");
}

// A path may be any bytes, and its file must be found by whoever reads the line.
static void good_bytes_survive(void **state)
{
    static const char path[] = "/a\xff\xc3\xa4\xed\xa0\x80 \xf0\x9f\x98\x80\xe2\x82";
    struct report_line line = {.event = REPORT_NOTE, .note = {.pid = 1, .text = path}}, back;
    char text[400], why[200];
    struct text_buffer b = {.text = text, .cap = sizeof text};
    struct arena a;
    arena_init(&a, 0);
    json_out_line(&b, &line);
    assert_int_equal(json_in_line(&a, (struct str){text, b.len}, &back, why, sizeof why), 0);
    assert_string_equal(back.note.text, path);
    arena_free(&a);
}

static void good_reader_is_generous(void **state)
{
    struct arena a;
    struct report_line line;
    char why[200];
    arena_init(&a, 0);
    const char *text =
        " { \"later\" : [ 1.5e3 , { \"x\" : null } , [ ] ] , \"type\" : \"bad-free\" , \"pid\" : -5 ,"
        " \"call\" : \"\\u00e4\\ud83d\\ude00\\ud83d\\u0000\\/\\n\" , \"event\" : \"error\" } \r\n";
    assert_int_equal(json_in_line(&a, str_from(text), &line, why, sizeof why), 0);
    assert_int_equal(line.event, REPORT_ERROR);
    assert_int_equal(line.error.type, REPORT_BAD_FREE);
    assert_int_equal(line.error.pid, -5);
    assert_int_equal(line.error.device, -1);
    assert_string_equal(line.error.call, "\xc3\xa4\xf0\x9f\x98\x80?\?/\n");
    arena_free(&a);
}

static void expect_bad(const char *text, const char *reason)
{
    struct arena a;
    struct report_line line;
    char why[200] = "";
    arena_init(&a, 0);
    assert_int_equal(json_in_line(&a, str_from(text), &line, why, sizeof why), -EINVAL);
    assert_string_equal(why, reason);
    arena_free(&a);
}

static void bad_lines_are_refused(void **state)
{
    expect_bad("", "column 1: expected '{'");
    expect_bad("[]", "column 1: expected '{'");
    expect_bad("{}", "column 1: \"event\" is missing");
    expect_bad("{\"event\":\"party\"}", "column 11: no event is called \"party\"");
    expect_bad("{\"event\":\"error\"}", "column 1: \"type\" is missing");
    expect_bad("{\"event\":\"error\",\"type\":\"typo\"}", "column 26: no error is called \"typo\"");
    expect_bad("{\"event\":\"note\",\"pid\":1.5}", "column 24: expected a whole number");
    expect_bad("{\"event\":\"note\",\"pid\":99999999999}", "column 32: the number is too large");
    expect_bad("{\"event\":\"note\",\"text\":\"x", "column 26: the string does not end");
    expect_bad("{\"event\":\"note\",\"text\":\"x\\q\"}", "column 26: no such escape in the string");
    expect_bad("{\"event\":\"note\",\"text\":\"\\u12\"}", "column 25: no such escape in the string");
    expect_bad("{\"event\":\"note\"} x", "column 18: more text behind the object");
    expect_bad("{\"event\":\"note\",}", "column 17: expected a string");
    expect_bad("{\"event\":\"error\",\"type\":\"bad-free\",\"address\":\"12\"}",
               "column 47: expected an address such as \"0x7f00\"");
    expect_bad("{\"event\":\"error\",\"type\":\"bad-free\",\"stack\":{}}", "column 44: expected '['");
    expect_bad("{\"event\":\"error\",\"type\":\"bad-free\",\"corrupted\":{\"bytes\":\"1\"}}",
               "column 58: expected pairs of hex digits");
}

static void bad_depth_is_bounded(void **state)
{
    enum { DEEP = 200000 };
    char *text = malloc(DEEP + 32), why[200];
    strcpy(text, "{\"x\":");
    memset(text + 5, '[', DEEP);
    struct arena a;
    struct report_line line;
    arena_init(&a, 0);
    assert_int_equal(json_in_line(&a, (struct str){text, DEEP + 5}, &line, why, sizeof why), -EINVAL);
    assert_non_null(strstr(why, "nested too deep"));
    arena_free(&a);
    free(text);
}

static void bad_memory_runs_out(void **state)
{
    struct report_line line = testing_full(), back;
    struct str s = write(&line, sizeof memory, NULL);
    char why[200];
    int err = -ENOMEM;
    for (long n = 0; err; n++) {
        struct arena a;
        mem_fail_after(n);
        arena_init(&a, 0);
        err = json_in_line(&a, s, &back, why, sizeof why);
        mem_fail_after(-1);
        assert_true(!err || err == -ENOMEM);
        arena_free(&a);
    }
    struct arena small;
    arena_init(&small, 64);
    assert_int_equal(json_in_line(&small, s, &back, why, sizeof why), -ENOMEM);
    arena_free(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_lines_are_as_documented),
        cmocka_unit_test(good_bytes_show_what_changed),
        cmocka_unit_test(good_round_trip),
        cmocka_unit_test(bad_room_is_too_small),
        cmocka_unit_test(bad_text_is_cleaned),
        cmocka_unit_test(good_bytes_survive),
        cmocka_unit_test(good_reader_is_generous),
        cmocka_unit_test(bad_lines_are_refused),
        cmocka_unit_test(bad_depth_is_bounded),
        cmocka_unit_test(bad_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
