// SPDX-License-Identifier: MIT
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/whole_testing.h"
#include "image/image_make.h"

#define ENTRY(name) ".visible .entry " name "() { ret; }\n"

static CUcontext ctx;

static int begin(void **state)
{
    ctx = whole_context();
    return 0;
}

static int end(void **state)
{
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}

// Loads a module that must fail with that code and print nothing on standard error, as it has a log.
static CUresult load(CUmodule *m, const void *image, char *log, size_t size)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)size};
    CUresult r = cuModuleLoadDataEx(m, image, 2, options, values);
    assert_int_equal((uintptr_t)values[1], strlen(log));
    return r;
}

static void refused(CUresult code, const char *image, const char *why)
{
    CUmodule m = NULL;
    char log[400];
    IS(code, load(&m, image, log, sizeof log));
    assert_null(m);
    if (!strstr(log, why))
        fail_msg("'%s' does not say '%s'", log, why);
}

static void test_bad_text(void **state)
{
    refused(CUDA_ERROR_INVALID_IMAGE, "", "neither PTX");
    refused(CUDA_ERROR_INVALID_IMAGE, "hello", "neither PTX");
    refused(CUDA_ERROR_INVALID_PTX, WHOLE_HEAD ".entry x() { mov.u32 %r1, 3; }", "module:4:");
    refused(CUDA_ERROR_INVALID_PTX, WHOLE_HEAD ".entry x() {", "module:");
    refused(CUDA_ERROR_INVALID_PTX, WHOLE_HEAD ".extern .func zz();\n.entry x() { call zz; ret; }", "zz");
    refused(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ".version 99.0\n.target sm_75\n" ENTRY("x"), "99.0");
    refused(CUDA_ERROR_INVALID_PTX, ".version 8.8\n.target sm_120\n" ENTRY("x"), "sm_120");
}

// pip's toolkit is newer than we are: its texts are loaded, and what is new in them is refused by name.
static void test_newer_text(void **state)
{
    CUmodule m;
    IS(CUDA_SUCCESS, cuModuleLoadData(&m, ".version 9.4\n.target sm_75\n.address_size 64\n" ENTRY("x")));
    IS(CUDA_SUCCESS, cuModuleUnload(m));
    refused(CUDA_ERROR_INVALID_PTX,
            ".version 10.0\n.target sm_75\n.address_size 64\n.entry x() { frobnicate.b32 1; ret; }",
            "frobnicate");
}

static void test_bad_pointers(void **state)
{
    CUmodule m;
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&m, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(NULL, WHOLE_PTX));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&m, NULL));
    refused(CUDA_ERROR_INVALID_IMAGE, (const char *)16, "");
    refused(CUDA_ERROR_INVALID_IMAGE, page + 4096, "");
    // A text without its NUL, a fatbin and a wrapper that reach into unreadable memory.
    memset(page, ' ', 4096);
    refused(CUDA_ERROR_INVALID_IMAGE, page, "");
    const uint32_t fatbin[] = {0xBA55ED50, 1 | 16 << 16, 5000, 0};
    memcpy(page, fatbin, sizeof fatbin);
    refused(CUDA_ERROR_INVALID_IMAGE, page, "");
    const uint32_t wrapper[] = {0x466243b1, 1, 0x1230, 0, 0, 0};
    memcpy(page + 4096 - sizeof wrapper, wrapper, sizeof wrapper);
    refused(CUDA_ERROR_INVALID_IMAGE, page + 4096 - sizeof wrapper, "");
    refused(CUDA_ERROR_INVALID_IMAGE, page + 4096 - 4, "");
    munmap(page, 8192);
}

static void test_options(void **state)
{
    CUmodule m;
    char small[10];
    CUjit_option unknown = CU_JIT_NUM_OPTIONS, time = CU_JIT_WALL_TIME;
    void *value = (void *)-1;
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&m, WHOLE_PTX, 1, &unknown, &value));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&m, WHOLE_PTX, 1, NULL, &value));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&m, WHOLE_PTX, 1, &time, NULL));
    OK(cuModuleLoadDataEx(&m, WHOLE_PTX, 1, &time, &value));
    float ms;
    memcpy(&ms, &value, sizeof ms);
    assert_true(ms >= 0 && ms < 1e6f);
    IS(CUDA_ERROR_INVALID_PTX, load(&m, WHOLE_HEAD ".entry x() {", small, sizeof small));
    assert_int_equal(strlen(small), 9);
}

static void test_functions(void **state)
{
    CUmodule m = whole_module(), of;
    CUfunction f = whole_function(m, "store"), g, all[WHOLE_KERNELS + 1] = {NULL};
    const char *name;
    unsigned n;
    assert_ptr_equal(whole_function(m, "store"), f);
    IS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&g, m, "nope"));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&g, m, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(NULL, m, "store"));
    IS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&g, NULL, "store"));
    OK(cuModuleGetFunctionCount(&n, m));
    assert_int_equal(n, WHOLE_KERNELS);
    OK(cuModuleEnumerateFunctions(all, WHOLE_KERNELS + 1, m));
    assert_null(all[WHOLE_KERNELS]);
    for (unsigned i = 0; i < n; i++) {
        OK(cuFuncGetName(&name, all[i]));
        assert_ptr_equal(whole_function(m, name), all[i]);
        OK(cuFuncGetModule(&of, all[i]));
        assert_ptr_equal(of, m);
    }
    OK(cuModuleUnload(m));
    IS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
    IS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&g, m, "store"));
    IS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, f));
    IS(CUDA_ERROR_INVALID_HANDLE, whole_launch(f, NULL));
}

static void test_variables(void **state)
{
    CUmodule m = whole_module();
    CUdeviceptr gv, p;
    size_t size;
    OK(cuModuleGetGlobal_v2(&gv, &size, m, "gv"));
    assert_int_equal(size, 40);
    OK(cuModuleGetGlobal_v2(&p, NULL, m, "cv"));
    assert_int_equal(whole_read(p), 9);
    OK(cuModuleGetGlobal_v2(NULL, &size, m, "seven"));
    assert_int_equal(size, 4);
    IS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&p, &size, m, "nope"));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(NULL, NULL, m, "gv"));
    IS(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(&p, &size, m, NULL));
    // Kernels read constants that the host has written, and managed memory is the same for both.
    uint32_t hundred = 100;
    OK(cuModuleGetGlobal_v2(&p, NULL, m, "cv"));
    OK(cuMemcpyHtoD_v2(p, &hundred, sizeof hundred));
    OK(cuModuleGetGlobal_v2(&p, NULL, m, "mv"));
    uint32_t *managed = (uint32_t *)(uintptr_t)p;
    assert_int_equal(*managed, 11);
    *managed = 1000;
    OK(whole_launch(whole_function(m, "read"), NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(whole_read(gv), 7 + 100 + 1000);
    assert_int_equal(*managed, 100);
    OK(cuModuleUnload(m));
    IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(&hundred, gv, sizeof hundred));
}

static void test_attributes(void **state)
{
    CUmodule m = whole_module();
    CUfunction f = whole_function(m, "mixed"), s = whole_function(m, "shared");
    size_t offset, size;
    int v;
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, whole_function(m, "most")));
    assert_int_equal(v, 64);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    assert_int_equal(v, 75);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_BINARY_VERSION, f));
    assert_int_equal(v, device_capability());
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, s));
    assert_int_equal(v, 1024);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, s));
    assert_int_equal(v, 49152 - 1024);
    for (int a = 0; a < CU_FUNC_ATTRIBUTE_MAX; a++)
        OK(cuFuncGetAttribute(&v, (CUfunction_attribute)a, f));
    IS(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX, f));
    IS(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    IS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 3));
    IS(CUDA_ERROR_INVALID_VALUE,
       cuFuncSetAttribute(s, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 1023));
    OK(cuFuncSetAttribute(s, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 1024));
    IS(CUDA_ERROR_INVALID_VALUE,
       cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, f));
    assert_int_equal(v, 50);
    OK(cuFuncGetParamInfo(f, 3, &offset, &size));
    assert_int_equal(offset, 16);
    assert_int_equal(size, 12);
    IS(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 4, &offset, &size));
    OK(cuModuleUnload(m));
}

// Loads a fatbin of several entries; the kernel's name shows which one was chosen.
static CUresult which(const struct make *made, const char **name)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    CUmodule m = NULL;
    CUfunction f;
    char log[400];
    CUresult r = load(&m, made->bytes, log, sizeof log);
    *name = NULL;
    for (unsigned i = 0; !r && i < 4; i++)
        if (cuModuleGetFunction(&f, m, names[i]) == CUDA_SUCCESS)
            *name = names[i];
    if (m)
        OK(cuModuleUnload(m));
    return r;
}

static struct make_entry ptx(uint32_t arch, const char *text, enum image_compression how)
{
    return (struct make_entry){.kind = 1, .compression = how, .arch = arch, .data = str_from(text)};
}

static void test_best_entry(void **state)
{
    const char *name;
    struct make m = {0};
    size_t at = make_fatbin(&m);
    make_entry(&m, (struct make_entry){.kind = 2, .arch = 90, .data = STR("no ELF")});
    make_entry(&m, ptx(75, WHOLE_HEAD ENTRY("a"), IMAGE_ZSTD));
    make_entry(&m, ptx(80, WHOLE_HEAD ENTRY("b"), IMAGE_LZ4));
    make_entry(&m, ptx(80, WHOLE_HEAD ENTRY("c"), IMAGE_PLAIN));
    make_entry(&m, ptx(120, WHOLE_HEAD ENTRY("d"), IMAGE_PLAIN));
    make_fatbin_end(&m, at);
    OK(which(&m, &name));
    assert_string_equal(name, "c");
    make_free(&m);

    at = make_fatbin(&m);
    make_entry(&m, ptx(75, WHOLE_HEAD ENTRY("a"), IMAGE_PLAIN));
    struct make_entry special = ptx(80, WHOLE_HEAD ENTRY("b"), IMAGE_PLAIN);
    special.flags = 0x100000;  // sm_80a
    make_entry(&m, special);
    make_fatbin_end(&m, at);
    OK(which(&m, &name));
    assert_string_equal(name, "a");
    make_free(&m);
}

static void test_nothing_for_us(void **state)
{
    const char *name;
    struct make m = {0};
    size_t at = make_fatbin(&m);
    make_entry(&m, (struct make_entry){.kind = 2, .arch = 90, .data = STR("no ELF")});
    make_fatbin_end(&m, at);
    IS(CUDA_ERROR_NO_BINARY_FOR_GPU, which(&m, &name));
    make_free(&m);
    at = make_fatbin(&m);
    make_entry(&m, ptx(120, WHOLE_HEAD ENTRY("a"), IMAGE_PLAIN));
    make_fatbin_end(&m, at);
    IS(CUDA_ERROR_NO_BINARY_FOR_GPU, which(&m, &name));
    make_free(&m);
    at = make_fatbin(&m);
    make_fatbin_end(&m, at);
    IS(CUDA_ERROR_INVALID_IMAGE, which(&m, &name));
    make_free(&m);
}

static void make_object(struct make *m, const char *text)
{
    size_t at = make_fatbin(m);
    make_entry(m, ptx(75, text, IMAGE_ZSTD));
    make_fatbin_end(m, at);
}

struct wrapper {
    uint32_t magic, version;
    const void *data, *list;
};

static void test_wrappers(void **state)
{
    struct make a = {0}, b = {0};
    CUmodule m;
    CUdeviceptr p;
    make_object(&a,
                WHOLE_HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n.visible .global .u32 out;\n"
                           ".visible .entry a() { .param .b32 x; .param .b32 r; .reg .b32 %v;\n"
                           "st.param.b32 [x], 21; call (r), twice, (x); ld.param.b32 %v, [r];\n"
                           "st.global.u32 [out], %v; ret; }\n");
    make_object(&b, WHOLE_HEAD ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %v;\n"
                               "ld.param.b32 %v, [x]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }\n");
    struct wrapper one = {0x466243b1, 1, b.bytes, NULL};
    OK(cuModuleLoadData(&m, &one));
    OK(cuModuleUnload(m));
    const void *list[] = {a.bytes, b.bytes, NULL};
    struct wrapper two = {0x466243b1, 2, NULL, list};
    OK(cuModuleLoadFatBinary(&m, &two));
    OK(whole_launch(whole_function(m, "a"), NULL));
    OK(cuModuleGetGlobal_v2(&p, NULL, m, "out"));
    assert_int_equal(whole_read(p), 42);
    OK(cuModuleUnload(m));
    list[1] = NULL;
    refused(CUDA_ERROR_INVALID_PTX, (const char *)&two, "twice");
    list[0] = NULL;
    IS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, &two));
    make_free(&a);
    make_free(&b);
}

static void test_files(void **state)
{
    CUmodule m;
    char path[] = "/tmp/moat-module-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, WHOLE_PTX, sizeof WHOLE_PTX - 1), sizeof WHOLE_PTX - 1);
    close(fd);
    OK(cuModuleLoad(&m, path));
    whole_function(m, "store");
    OK(cuModuleUnload(m));
    unlink(path);
    IS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, path));
}

// Every allocation of a load fails once.
static void test_out_of_memory(void **state)
{
    CUmodule m = NULL;
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
    for (long n = 0; n < 2000 && r; n++) {
        mem_fail_after(n);
        r = cuModuleLoadData(&m, WHOLE_PTX);
        mem_fail_after(-1);
        assert_true(r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY);
    }
    OK(r);
    OK(cuModuleUnload(m));
}

// Modules that the application does not unload are freed with the context.
static void test_left_behind(void **state)
{
    CUcontext c = whole_context();
    CUmodule m = whole_module();
    whole_function(m, "store");
    OK(cuCtxDestroy_v2(c));
    IS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newer_text),     cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_bad_pointers),   cmocka_unit_test(test_options),
        cmocka_unit_test(test_functions),      cmocka_unit_test(test_variables),
        cmocka_unit_test(test_attributes),     cmocka_unit_test(test_best_entry),
        cmocka_unit_test(test_nothing_for_us), cmocka_unit_test(test_wrappers),
        cmocka_unit_test(test_files),          cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_left_behind),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
