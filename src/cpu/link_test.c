// SPDX-License-Identifier: MIT
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/whole_testing.h"
#include "image/image_make.h"

static char caller[] =
    WHOLE_HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n.visible .global .u32 out;\n"
               ".visible .entry a() { .param .b32 x; .param .b32 r; .reg .b32 %v;\n"
               "st.param.b32 [x], 21; call (r), twice, (x); ld.param.b32 %v, [r];\n"
               "st.global.u32 [out], %v; ret; }\n";
static char callee[] = WHOLE_HEAD ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %v;\n"
                                  "ld.param.b32 %v, [x]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }\n";

static char log_text[400];
static void *values[2];

static CUlinkState create(void)
{
    static CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    CUlinkState l;
    values[0] = log_text;
    values[1] = (void *)sizeof log_text;
    OK(cuLinkCreate_v2(2, options, values, &l));
    return l;
}

static CUresult add(CUlinkState l, char *text, const char *name)
{
    return cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, text, strlen(text) + 1, name, 0, NULL, NULL);
}

static int begin(void **state)
{
    whole_context();
    return 0;
}

static void run(CUmodule m)
{
    CUdeviceptr p;
    OK(whole_launch(whole_function(m, "a"), NULL));
    OK(cuModuleGetGlobal_v2(&p, NULL, m, "out"));
    assert_int_equal(whole_read(p), 42);
    OK(cuModuleUnload(m));
}

static void test_two_texts(void **state)
{
    CUlinkState l = create();
    CUmodule m;
    void *image;
    size_t size;
    OK(add(l, caller, "caller.ptx"));
    OK(add(l, callee, NULL));
    OK(cuLinkComplete(l, &image, &size));
    OK(cuModuleLoadData(&m, image));
    run(m);
    // The image is data: a program may move it, or write it to a file.
    char path[] = "/tmp/moat-link-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, image, size), size);
    close(fd);
    char *copy = malloc(size);
    memcpy(copy, image, size);
    OK(cuLinkDestroy(l));
    OK(cuModuleLoad(&m, path));
    run(m);
    unlink(path);
    OK(cuModuleLoadData(&m, copy));
    run(m);
    free(copy);
}

// A damaged image of ours. Its length is what it says, so more memory follows it.
static void test_damaged_image(void **state)
{
    CUlinkState l = create();
    CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *image;
    size_t size, room = 1 << 20;
    OK(add(l, callee, "callee.ptx"));
    OK(cuLinkComplete(l, &image, &size));
    unsigned char *copy = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(copy != MAP_FAILED);
    for (size_t at = 8; at < 60; at++) {
        CUmodule m = NULL;
        void *log[] = {log_text, (void *)sizeof log_text};
        memcpy(copy, image, size);
        copy[at] ^= 0x81;
        CUresult r = cuModuleLoadDataEx(&m, copy, 2, option, log);
        if (!r)
            OK(cuModuleUnload(m));
        else
            assert_true(r == CUDA_ERROR_INVALID_IMAGE || r == CUDA_ERROR_INVALID_PTX);
    }
    munmap(copy, room);
    OK(cuLinkDestroy(l));
}

static void test_unresolved(void **state)
{
    CUlinkState l = create();
    void *image = NULL;
    OK(add(l, caller, "caller.ptx"));
    IS(CUDA_ERROR_INVALID_SOURCE, cuLinkComplete(l, &image, NULL));
    assert_null(image);
    assert_non_null(strstr(log_text, "caller.ptx"));
    assert_non_null(strstr(log_text, "twice"));
    assert_int_equal((uintptr_t)values[1], strlen(log_text));
    // A missing symbol may be added later.
    OK(add(l, callee, "callee.ptx"));
    OK(cuLinkComplete(l, &image, NULL));
    assert_string_equal(log_text, "");
    OK(cuLinkDestroy(l));
}

// Calls of the device's runtime are undefined until it is an input: relocatable machine code that has it.
static void test_runtime(void **state)
{
    static char asks[] = WHOLE_HEAD ".extern .func (.param .b32 r) __cudaCDP2GetDevice(.param .b64 p);\n"
                                    ".visible .entry a(.param .u64 p) { .param .b64 x; .param .b32 r;\n"
                                    ".reg .b64 %p; ld.param.u64 %p, [p]; st.param.b64 [x], %p;\n"
                                    "call (r), __cudaCDP2GetDevice, (x); ret; }\n";
    static const struct make_section section = {
        ".text.__cudaCDP2LaunchDeviceV2", SHT_PROGBITS, 0, 0, {"", 0}};
    struct make code = {0}, linked = {0};
    make_elf(&code, (Elf64_Ehdr){.e_machine = 190, .e_type = ET_REL}, &section, 1);
    make_elf(&linked, (Elf64_Ehdr){.e_machine = 190, .e_type = ET_EXEC}, &section, 1);
    CUlinkState l = create();
    void *image = NULL;
    OK(add(l, asks, "asks.ptx"));
    IS(CUDA_ERROR_INVALID_SOURCE, cuLinkComplete(l, &image, NULL));
    assert_non_null(strstr(log_text, "__cudaCDP2GetDevice"));
    IS(CUDA_ERROR_NO_BINARY_FOR_GPU,
       cuLinkAddData_v2(l, CU_JIT_INPUT_CUBIN, linked.bytes, linked.len, "linked", 0, NULL, NULL));
    IS(CUDA_ERROR_INVALID_SOURCE, cuLinkComplete(l, &image, NULL));
    OK(cuLinkAddData_v2(l, CU_JIT_INPUT_CUBIN, code.bytes, code.len, "runtime", 0, NULL, NULL));
    OK(cuLinkComplete(l, &image, NULL));
    OK(cuLinkDestroy(l));
    make_free(&code);
    make_free(&linked);
}

static void test_bad_input(void **state)
{
    CUlinkState l = create(), none;
    CUjit_option unknown = CU_JIT_NUM_OPTIONS;
    void *value = NULL, *image;
    IS(CUDA_ERROR_INVALID_IMAGE, add(l, (char[]){"hello"}, "x"));
    assert_non_null(strstr(log_text, "x: error: "));
    IS(CUDA_ERROR_INVALID_VALUE,
       cuLinkAddData_v2(l, (CUjitInputType)77, callee, sizeof callee, NULL, 0, NULL, NULL));
    IS(CUDA_ERROR_NOT_SUPPORTED,
       cuLinkAddData_v2(l, CU_JIT_INPUT_NVVM, callee, sizeof callee, NULL, 0, NULL, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, NULL, 9, NULL, 0, NULL, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, callee, 0, NULL, 0, NULL, NULL));
    IS(CUDA_ERROR_FILE_NOT_FOUND, cuLinkAddFile_v2(l, CU_JIT_INPUT_PTX, "/dev/null/none", 0, NULL, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(l, NULL, NULL));
    OK(cuLinkDestroy(l));
    IS(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(l));
    IS(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(NULL, &image, NULL));
    IS(CUDA_ERROR_INVALID_HANDLE, add((CUlinkState)0x1230, callee, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(1, &unknown, &value, &none));
    IS(CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(0, NULL, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_texts),  cmocka_unit_test(test_damaged_image),
        cmocka_unit_test(test_unresolved), cmocka_unit_test(test_runtime),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
