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
    assert_string_equal(chosen(all, 4), "helper");
    assert_string_equal(chosen(all, 2), "none");
    assert_string_equal(chosen(all + 2, 2), "helper");
    assert_string_equal(chosen(all + 2, 1), "nameless");
    assert_string_equal(chosen(all, 0), "none");
}

// Runtimes that are part of the program have names only, and functions of any name inside.
static void good_folded_frames(void **state)
{
    static const struct report_frame inside = {.object = "/opt/app", .function = "rt_copy_bytes"},
                                     call = {.object = "/opt/app", .function = "cudaMemcpy"},
                                     nvidia = {.object = "/opt/app", .function = "libcudart_static_ff46"},
                                     wrapper = {.object = "/opt/app",
                                                .function = "_Z10cudaMallocIiE9cudaErrorPPT_m"},
                                     own = {.object = "/opt/app", .function = "rt_of_the_program"},
                                     start = {.object = "/lib/libc.so.6",
                                              .function = "__libc_start_call_main",
                                              .file = "libc_start_call_main.h"},
                                     python = {.object = "/usr/bin/python3.11", .function = "_PyEval"};
    struct report_frame in_call[] = {inside, call, wrapper, own, start};
    assert_string_equal(chosen(in_call, 5), "rt_of_the_program");
    assert_int_equal(report_first_shown(&(struct report_stack){5, in_call}), 1);
    struct report_frame in_nvidia[] = {nvidia, nvidia, call, named, start};
    assert_string_equal(chosen(in_nvidia, 5), "helper");
    struct report_frame in_own[] = {own, named, start};
    assert_string_equal(chosen(in_own, 3), "rt_of_the_program");
    assert_int_equal(report_first_shown(&(struct report_stack){3, in_own}), 0);
    struct report_frame in_python[] = {call, python, python, start};
    assert_string_equal(chosen(in_python, 4), "none");
}

// Python code has a file and no object. That of installed packages is named only if there is no other.
static void good_python_frames(void **state)
{
    static const struct report_frame
        call = {.object = "/opt/libcudart.so.13", .function = "cudaMemcpy"},
        foreign = {.object = "/usr/lib/libffi.so.8", .function = "ffi_call", .file = "ffi64.c"},
        module = {.object = "/usr/lib/_ctypes.cpython-311.so", .function = "PyCFuncPtr_call"},
        package = {.function = "memcpy", .file = "/venv/lib/python3.11/site-packages/numba/driver.py"},
        own = {.function = "load", .file = "/src/train.py", .line = 5},
        thread = {.function = "_bootstrap", .file = "/usr/lib/python3.11/threading.py"};
    struct report_frame all[] = {call, foreign, module, package, own, thread};
    assert_string_equal(chosen(all, 6), "load");
    assert_string_equal(chosen(all, 4), "memcpy");
    assert_string_equal(chosen(all, 3), "none");
    // Machine code that Python code calls is named if it is the program's and has a name.
    static const struct report_frame extension = {.object = "/src/libcopy.so", .function = "copy_it"},
                                     nameless = {.object = "/src/libcopy.so", .offset = 16},
                                     wheel = {.object = "/venv/lib/python3.11/site-packages/cupy/runtime.so",
                                              .function = "__pyx_pf_4cupy"};
    struct report_frame in_extension[] = {call, extension, own}, in_nameless[] = {call, nameless, own},
                        in_wheel[] = {call, wheel, package, own};
    assert_string_equal(chosen(in_extension, 3), "copy_it");
    assert_string_equal(chosen(in_nameless, 3), "load");
    assert_string_equal(chosen(in_wheel, 4), "load");
    assert_string_equal(chosen(in_wheel, 3), "__pyx_pf_4cupy");
}

// What nvcc has put between a launch and the runtime, with debugging information, without, and inlined.
static void good_launch_frames(void **state)
{
    static const struct report_frame
        runtime_call = {.object = "/usr/lib/libcudart.so.13", .function = "rt_launch_kernel"},
        helper = {.object = "/opt/app",
                  .function = "__cudaLaunchKernel_helper",
                  .file = "/usr/local/cuda/include/crt/device_functions.h"},
        stub = {.object = "/opt/app",
                .function = "__device_stub__Z4fillIfEvPT_i",
                .file = "/tmp/tmpxft_1.stub.c"},
        wrapper = {.object = "/opt/app",
                   .function = "__wrapper__device_stub_fill<float>",
                   .file = "/tmp/tmpxft_1.stub.c"},
        kernel = {.object = "/opt/app", .function = "fill<float>", .file = "t.cu"},
        caller = {.object = "/opt/app", .function = "run", .file = "t.cu"},
        bare_stub = {.object = "/opt/app", .function = "_Z25__device_stub__Z5plainPfiPfi"},
        bare_kernel = {.object = "/opt/app", .function = "_Z5plainPfi"},
        plain_kernel = {.object = "/opt/app", .function = "plain"},
        space_kernel = {.object = "/opt/app", .function = "ns::plain(float*, int)"};
    struct report_frame full[] = {runtime_call, helper, stub, wrapper, kernel, caller};
    assert_int_equal(report_first_shown(&(struct report_stack){6, full}), 5);
    assert_string_equal(chosen(full, 6), "run");
    const struct report_frame *kernels[] = {&bare_kernel, &plain_kernel, &space_kernel};
    for (int i = 0; i < 3; i++) {
        struct report_frame without[] = {runtime_call, bare_stub, *kernels[i], caller};
        assert_int_equal(report_first_shown(&(struct report_stack){4, without}), 3);
    }
    struct report_frame inlined[] = {runtime_call, bare_stub, caller};
    assert_int_equal(report_first_shown(&(struct report_stack){3, inlined}), 2);
    struct report_frame alone[] = {runtime_call, bare_stub};
    assert_int_equal(report_first_shown(&(struct report_stack){2, alone}), 1);
}

static void good_toolkit_headers(void **state)
{
    static const char *const toolkit[] = {
        "/usr/local/cuda/bin/../targets/x86_64-linux/include/sm_32_intrinsics.hpp",
        "/opt/cuda-13.0/include/cuda_pipeline_helpers.h",
        "/venv/site-packages/nvidia/cu13/include/cccl/cub/util.cuh", "/usr/include/cuda_fp16.hpp"};
    static const char *const own[] = {"/src/cuda-samples/include/helper.h", "include/a.h", "/src/cuda/a.cuh",
                                      "kernel.cu"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(report_is_toolkit_header(toolkit[i]));
        assert_false(report_is_toolkit_header(own[i]));
    }
    assert_false(report_is_toolkit_header(NULL));
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
        cmocka_unit_test(good_frame_of_program), cmocka_unit_test(good_python_frames),
        cmocka_unit_test(good_folded_frames),    cmocka_unit_test(good_launch_frames),
        cmocka_unit_test(good_toolkit_headers),  cmocka_unit_test(good_types_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
