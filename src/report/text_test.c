// SPDX-License-Identifier: MIT
#include "report/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_testing.h"

static char memory[TEXT_LEAST];

static const char *render(struct report_line line, const struct text_style *style)
{
    struct text_buffer b;
    text_buffer_init(&b, memory, sizeof memory - 1);
    text_render(&b, &line, style);
    assert_false(b.cut);
    memory[b.len] = 0;
    return memory;
}

static const struct text_style style = {.demangle = {testing_demangle, NULL}, .root = "/src/"};

static void good_kernel_overflow(void **state)
{
    assert_string_equal(
        render(testing_overflow(), &style),
        "==4711==ERROR: moat: heap-buffer-overflow on device 0 address 0x7f2a00000400 in kernel "
        "scale(float*, int) scale.cu:7\n"
        "WRITE of size 4 by thread (0,0,0) in block (1,0,0)\n"
        "launched by cuLaunchKernel at:\n"
        "    #0 /opt/app/libcudart.so.12+0x1111\n"
        "    #1 main scale.cu:44\n"
        "0x7f2a00000400 is located 0 bytes after 1024-byte region [0x7f2a00000000,0x7f2a00000400)\n"
        "allocated by cuMemAlloc_v2 at:\n"
        "    #0 _Z4makei scale.cu:19\n"
        "    #1 main scale.cu:40\n"
        "Report 1 of process 4711\n"
        "SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)\n"
        "\n");
}

// All of the kernel is in headers of the toolkit: the program's part is the launch.
static void good_summary_of_a_launch(void **state)
{
    struct report_line l = testing_overflow();
    l.error.place.file = "/usr/local/cuda-13.0/include/cub/util.cuh";
    const char *text = render(l, &style);
    assert_non_null(
        strstr(text, "in kernel scale(float*, int) /usr/local/cuda-13.0/include/cub/util.cuh:7\n"));
    assert_non_null(strstr(text, "SUMMARY: moat: heap-buffer-overflow scale.cu:44 in main\n"));
}

// Frames in headers of the toolkit say little: of a run of them, the innermost is shown.
static void good_header_frames(void **state)
{
    struct report_frame frames[] = {
        {.function = "launch", .file = "/usr/local/cuda/include/cub/a.cuh", .line = 1},
        {.function = "invoke", .file = "/usr/local/cuda/include/cub/b.cuh", .line = 2},
        {.function = "sort", .file = "/usr/local/cuda/include/cub/c.cuh", .line = 3},
        {.function = "main", .file = "/src/scale.cu", .line = 44}};
    struct report_line l = testing_overflow();
    l.error.stack = (struct report_stack){4, frames};
    assert_non_null(strstr(render(l, &style), "    #0 launch /usr/local/cuda/include/cub/a.cuh:1\n"
                                              "    ... 2 more frames in the toolkit's headers\n"
                                              "    #1 main scale.cu:44\n"));
    l.error.stack = (struct report_stack){3, frames + 1};
    assert_non_null(strstr(render(l, &style), "    #0 invoke /usr/local/cuda/include/cub/b.cuh:2\n"
                                              "    #1 sort /usr/local/cuda/include/cub/c.cuh:3\n"
                                              "    #2 main scale.cu:44\n"));
}

// A stack ends with main, but not with a function of Python's that has the name.
static void good_main_of_python(void **state)
{
    struct report_frame frames[] = {{.function = "main", .file = "/src/app.py", .line = 6},
                                    {.function = "train", .file = "/src/app.py", .line = 9},
                                    {.function = "main", .file = "/src/python.c", .line = 1},
                                    {.function = "start", .file = "/src/python.c", .line = 2}};
    struct report_line l = testing_overflow();
    l.error.stack = (struct report_stack){4, frames};
    const char *text = render(l, &style);
    assert_non_null(strstr(text, "    #0 main app.py:6\n    #1 train app.py:9\n    #2 main python.c:1\n"));
    assert_null(strstr(text, "start"));
}

// Which kernel called the function is not known.
static void good_function(void **state)
{
    struct report_line l = testing_overflow();
    l.error.place.function = l.error.place.kernel;
    l.error.place.kernel = NULL;
    const char *text = render(l, &style);
    assert_non_null(strstr(text, "0x7f2a00000400 in function scale(float*, int) scale.cu:7\n"));
    assert_non_null(strstr(text, "SUMMARY: moat: heap-buffer-overflow scale.cu:7 in scale(float*, int)\n"));
    assert_null(strstr(text, "in device function"));
}

static void good_everything(void **state)
{
    assert_string_equal(
        render(testing_full(), NULL),
        "==4711==ERROR: moat: heap-buffer-overflow on device 0 address 0x7f2a00000400 in kernel _Z5scalePfi "
        "/src/scale.cu:7\n"
        "WRITE of size 4 by thread (0,0,0) in block (1,0,0)\n"
        "    in device function _Z5clampPf\n"
        "    PTX of /opt/app/scale.ptx line 33: st.global.f32 [%rd4], %f1;\n"
        "in the kernel at:\n"
        "    #0 _Z3putPfi /src/put.h:7\n"
        "    #1 _Z5scalePfi /src/scale.cu:12\n"
        "launched by cuLaunchKernel at:\n"
        "    #0 /opt/app/libcudart.so.12+0x1111\n"
        "    #1 main /src/scale.cu:44\n"
        "0x7f2a00000400 is located 0 bytes after 1024-byte region [0x7f2a00000000,0x7f2a00000400)\n"
        "allocated by cuMemAlloc_v2 at:\n"
        "    #0 _Z4makei /src/scale.cu:19\n"
        "    #1 main /src/scale.cu:40\n"
        "Other buffers that it may belong to:\n"
        "0x7f2a00000400 is located 512 bytes before 512-byte region [0x7f2a00000600,0x7f2a00000800) named "
        "weights\n"
        "allocated by cuMemAllocAsync in thread T2\n"
        "freed by cuMemFreeAsync at:\n"
        "    #0 pool_release (/opt/app/libpool.so+0x42)\n"
        "5 bytes outside any live buffer were changed:\n"
        "  0x7f2a00000400:  .  .  .  . de ad be ef   .  .  .  .  .  .  .  .\n"
        "  0x7f2a00000410:  .  .  . 7f\n"
        "note: the mode cannot name the thread's warp\n"
        "Report 1 of process 4711 for client 3, seen 17 times\n"
        "SUMMARY: moat: heap-buffer-overflow /src/scale.cu:7 in _Z5scalePfi\n"
        "\n");
}

static void good_transfer(void **state)
{
    assert_string_equal(
        render(testing_transfer(), &style),
        "==4711==ERROR: moat: heap-buffer-overflow on device 0 address 0x7f2a00000400 in "
        "cuMemcpyDtoH_v2\n"
        "READ of size 2048 by cuMemcpyDtoH_v2\n"
        "    #0 /opt/app/libcudart.so.12+0x1111\n"
        "    #1 main scale.cu:44\n"
        "0x7f2a00000400 is located 0 bytes after 1024-byte region [0x7f2a00000000,0x7f2a00000400)\n"
        "allocated by cuMemAlloc_v2 at:\n"
        "    #0 _Z4makei scale.cu:19\n"
        "    #1 main scale.cu:40\n"
        "Report 1 of process 4711\n"
        "SUMMARY: moat: heap-buffer-overflow scale.cu:44 in main\n"
        "\n");
}

static void good_leak(void **state)
{
    assert_string_equal(render(testing_leak(), &style),
                        "==4711==ERROR: moat: memory-leak on device 1 address 0x7f2a00000000\n"
                        "1,024 bytes in 1 buffer were never freed\n"
                        "1024-byte region [0x7f2a00000000,0x7f2a00000400)\n"
                        "allocated by cuMemAlloc_v2 at:\n"
                        "    #0 _Z4makei scale.cu:19\n"
                        "    #1 main scale.cu:40\n"
                        "Report 2 of process 4711\n"
                        "SUMMARY: moat: memory-leak scale.cu:19 in _Z4makei\n"
                        "\n");
}

// A fault on a GPU has no address: the buffers are candidates.
static void good_candidates(void **state)
{
    struct report_line line = testing_full();
    struct report *r = &line.error;
    r->has_address = false;
    r->place.thread_known = false;
    r->access = REPORT_NO_ACCESS;
    r->device = 3;
    r->type = REPORT_USE_AFTER_FREE;
    r->corrupted.count = r->stack.count = r->nnotes = 0;
    r->call = NULL;
    const char *text = render(line, &style);
    assert_non_null(
        strstr(text, "==4711==ERROR: moat: heap-use-after-free on device 3 at an unknown address in kernel "
                     "scale(float*, int) scale.cu:7\n    in device"));
    assert_non_null(strstr(text, "\nThe buffer may be one of these, most likely first:\n"
                                 "1024-byte region [0x7f2a00000000,0x7f2a00000400)\nallocated"));
    assert_non_null(strstr(text, "\n512-byte region [0x7f2a00000600,0x7f2a00000800) named weights\n"));
    assert_null(strstr(text, "is located"));
    assert_null(strstr(text, "launched"));
}

static void good_distances(void **state)
{
    struct report_line line = testing_overflow();
    line.error.address = 0x7f2a00000001;
    assert_non_null(strstr(render(line, NULL), "0x7f2a00000001 is located 1 byte inside 1024-byte region"));
    line.error.address = 0x7f29fffffff0;
    assert_non_null(strstr(render(line, NULL), "0x7f29fffffff0 is located 16 bytes before 1024-byte region"));
    line.error.nbuffers = 0;
    line.error.type = REPORT_WILD_ACCESS;
    line.error.device = -1;
    assert_non_null(strstr(render(line, NULL), "wild-access on the host address 0x7f29fffffff0 in kernel"));
    assert_non_null(strstr(render(line, NULL), "\n0x7f29fffffff0 is in no buffer that moat knows\n"));
}

static void good_only_files_below_the_root_are_shortened(void **state)
{
    struct report_line line = testing_overflow();
    line.error.place.file = "/srcs/a.cu";
    assert_non_null(strstr(render(line, &style), "scale(float*, int) /srcs/a.cu:7\n"));
    line.error.place.file = "/src/";
    assert_non_null(strstr(render(line, &style), "scale(float*, int) /src/:7\n"));
}

static void good_start_and_end(void **state)
{
    assert_string_equal(render(testing_start(), NULL),
                        "==4711==moat 0.1.0: watching ./scale (pid 4711), mode pages, device CPU device\n"
                        "==4711==WARNING: moat: the cache cannot be written: no space left on device\n");
    assert_string_equal(render(testing_end(), NULL), "==4711==moat: 0 errors, 2 suppressed\n"
                                                     "  watched\n"
                                                     "    allocations                                12\n"
                                                     "    bytes copied                    1,073,741,824\n"
                                                     "    kernels launched                        1,500\n"
                                                     "  not covered\n"
                                                     "    kernels with machine code only              3\n");
    assert_string_equal(render(testing_repeat(), NULL),
                        "==4711==moat: report 1 was seen 1,234 times in all\n");
    assert_string_equal(render(testing_note(), NULL), "==4711==moat: a tab and \"quotes\"\n");
}

static void good_second_library_has_no_banner(void **state)
{
    struct report_line line = testing_start();
    line.start.also = true;
    assert_string_equal(render(line, NULL),
                        "==4711==moat: CUDA is used from here on, mode pages, device CPU device\n"
                        "==4711==WARNING: moat: the cache cannot be written: no space left on device\n");
    line.start.device = NULL;
    line.start.nnotes = 0;
    assert_string_equal(render(line, NULL), "");
}

// If the place of the error is not known, the summary has the place of the buffer's allocation.
static void good_summary_of_an_unknown_place(void **state)
{
    struct report_line line = testing_overflow();
    line.error.place = (struct report_place){0};
    line.error.call = NULL;
    line.error.stack.count = 0;
    const char *text = strstr(render(line, NULL), "SUMMARY");
    assert_non_null(text);
    assert_non_null(strstr(text, ", which allocated the buffer\n"));
    line.error.call = "cuMemFree_v2";
    assert_null(strstr(strstr(render(line, NULL), "SUMMARY"), "which allocated"));
}

static void good_kernel_fault(void **state)
{
    struct report_line line = testing_overflow();
    line.error.type = REPORT_KERNEL_FAULT;
    line.error.has_address = false;
    line.error.access = REPORT_NO_ACCESS;
    line.error.bytes = 0;
    const char *text = render(line, NULL);
    assert_non_null(strstr(text, "kernel-fault on device 0 in kernel "));
    assert_non_null(strstr(text, "\nEnded by thread "));
}

static void bad_nothing_was_watched(void **state)
{
    struct report_line line = testing_end();
    struct report_value nothing[] = {{"allocations", "allocations", 0}};
    line.end.values = nothing;
    line.end.nvalues = 1;
    line.end.suppressed = line.end.nuncovered = 0;
    assert_string_equal(render(line, NULL), "==4711==moat: 0 errors, but NOTHING WAS WATCHED\n");
}

// Without its colour codes, the text is the same; each line ends uncoloured.
static void good_colours_change_nothing_else(void **state)
{
    struct text_style coloured = {.colour = true};
    for (int i = 0; i < TESTING_EVENTS; i++) {
        char *plain = strdup(render(testing_event(i), NULL)), *p = plain;
        const char *c = render(testing_event(i), &coloured);
        bool on = false;
        for (; *c; c++) {
            if (*c == '\033') {
                on = strncmp(c, "\033[0m", 4) != 0;
                c = strchr(c, 'm');
                continue;
            }
            assert_false(on && *c == '\n');
            assert_int_equal(*c, *p++);
        }
        assert_int_equal(*p, 0);
        free(plain);
    }
}

static void bad_bytes_do_not_reach_the_terminal(void **state)
{
    struct report_line line = testing_overflow();
    line.error.place.kernel = "\033[31m\xc2\x9b\xff\xc3\xa4\n";
    const char *text = render(line, NULL);
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, "in kernel ?[31m??\xc3\xa4? /src"));
}

// With any amount of room, lines are whole and the last one says that there was more.
static void bad_room_is_too_small(void **state)
{
    struct report_line line = testing_full();
    char *whole = strdup(render(line, NULL));
    for (size_t cap = 0; cap < strlen(whole); cap++) {
        struct text_buffer b;
        text_buffer_init(&b, memory, cap);
        text_render(&b, &line, NULL);
        assert_true(b.cut);
        assert_true(b.len <= cap);
        if (!b.len)
            continue;
        memory[b.len] = 0;
        char *last = strstr(memory, "(moat: the rest is too long and left out)\n");
        assert_non_null(last);
        assert_memory_equal(memory, whole, (size_t)(last - memory));
        assert_true(last == memory || last[-1] == '\n');
    }
    free(whole);
}

static void good_untouched_lines_are_left_out(void **state)
{
    uint8_t bytes[1024] = {0}, touched[128] = {0};
    struct report_line line = testing_full();
    line.error.corrupted = (struct report_bytes){0x1008, 1024, bytes, touched};
    touched[0] = 1;
    touched[100] = 1;
    const char *text = render(line, NULL);
    assert_non_null(strstr(text, "2 bytes outside any live buffer were changed:\n"
                                 "  0x1000:                          00  .  .  .  .  .  .  .\n"
                                 "  ...\n"
                                 "  0x1320:  .  .  .  .  .  .  .  .  00  .  .  .  .  .  .  .\n"
                                 "note"));
    memset(touched, 0xff, sizeof touched);
    text = strstr(render(line, NULL), "1,024 bytes");
    assert_non_null(text);
    int lines = 0;
    for (; strncmp(text, "note", 4); text = strchr(text, '\n') + 1)
        lines++;
    assert_int_equal(lines, 1 + 16 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_kernel_overflow),
        cmocka_unit_test(good_everything),
        cmocka_unit_test(good_transfer),
        cmocka_unit_test(good_leak),
        cmocka_unit_test(good_candidates),
        cmocka_unit_test(good_distances),
        cmocka_unit_test(good_only_files_below_the_root_are_shortened),
        cmocka_unit_test(good_start_and_end),
        cmocka_unit_test(good_second_library_has_no_banner),
        cmocka_unit_test(good_summary_of_an_unknown_place),
        cmocka_unit_test(good_kernel_fault),
        cmocka_unit_test(bad_nothing_was_watched),
        cmocka_unit_test(good_colours_change_nothing_else),
        cmocka_unit_test(good_summary_of_a_launch),
        cmocka_unit_test(good_header_frames),
        cmocka_unit_test(good_main_of_python),
        cmocka_unit_test(good_function),
        cmocka_unit_test(bad_bytes_do_not_reach_the_terminal),
        cmocka_unit_test(bad_room_is_too_small),
        cmocka_unit_test(good_untouched_lines_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
