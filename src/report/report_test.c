// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct report_frame runtime = {
    .object = "/opt/lib/libcudart.so.13", .function = "cudaMemcpy", .file = "rt_copy.c"};
static const struct report_frame header = {
    .object = "/opt/app", .function = "cudaMalloc<float>", .file = "/usr/local/cuda/include/cuda_runtime.h"};
static const struct report_frame program = {.object = "/opt/app", .function = "load", .file = "load.cu"};
static const struct report_frame outer = {.object = "/opt/app", .function = "main", .file = "main.cu"};
static const struct report_frame bare = {.object = "/opt/app", .offset = 16};
static const struct report_frame named = {.object = "/opt/app", .function = "helper"};

static const char *chosen(const struct report_frame *frames, uint32_t count)
{
    const struct report_frame *f = report_frame_of_program(&(struct report_stack){count, frames});
    return f ? f->function ? f->function : "nameless" : "none";
}

static void good_frame_of_program(void **state)
{
    struct report_frame all[] = {runtime, header, bare, named, program, outer};
    assert_string_equal(chosen(all, 6), "load");
    assert_string_equal(chosen(all, 4), "cudaMemcpy");
    assert_string_equal(chosen(all + 2, 2), "helper");
    assert_string_equal(chosen(all + 2, 1), "nameless");
    assert_string_equal(chosen(all, 0), "none");
}

static void good_types_have_names(void **state)
{
    for (int i = 0; i < REPORT_TYPES; i++)
        assert_int_equal(report_type_find(report_rows[i].name), i);
    assert_int_equal(report_type_find("no-such-error"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_frame_of_program),
        cmocka_unit_test(good_types_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
