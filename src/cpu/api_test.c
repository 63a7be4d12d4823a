// SPDX-License-Identifier: MIT
#include <unistd.h>

#include "cpu/whole_testing.h"

static void *address(CUdriverProcAddressQueryResult *status, const char *name, int version, int flags)
{
    void *p = (void *)-1;
    OK(cuGetProcAddress_v2(name, &p, version, (cuuint64_t)flags, status));
    return p;
}

static void test_versions(void **state)
{
    CUdriverProcAddressQueryResult status;
    assert_ptr_equal(address(&status, "cuMemAlloc", 13000, 0), (void *)cuMemAlloc_v2);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    assert_ptr_equal(address(&status, "cuMemAlloc", 2000, 0), (void *)cuMemAlloc);
    assert_ptr_equal(address(&status, "cuCtxSynchronize", 13000, 0), (void *)cuCtxSynchronize_v2);
    assert_ptr_equal(address(&status, "cuLaunchKernel", 12000, 2), (void *)cuLaunchKernel_ptsz);
    assert_ptr_equal(address(&status, "cuInit", 12000, 2), (void *)cuInit);
    assert_null(address(&status, "cuLibraryLoadData", 11000, 0));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_null(address(&status, "cuNope", 13000, 0));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_null(address(&status, "cuMemAlloc_v2", 13000, 0));
    assert_null(address(&status, "cuInit", 13010, 0));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

static void test_bad_questions(void **state)
{
    void *p = &p;
    OK(cuGetProcAddress_v2("cuNope", &p, 13000, 0, NULL));
    assert_null(p);
    IS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNope", &p, 13000, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(NULL, &p, 13000, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", NULL, 13000, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &p, 13000, 3));
}

static void test_errors_have_names(void **state)
{
    const char *text;
    OK(cuGetErrorName(CUDA_ERROR_ASSERT, &text));
    assert_string_equal(text, "CUDA_ERROR_ASSERT");
    OK(cuGetErrorString(CUDA_ERROR_ASSERT, &text));
    assert_string_equal(text, "device-side assert triggered");
    IS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
    assert_null(text);
    IS(CUDA_ERROR_INVALID_VALUE, cuGetErrorString((CUresult)-1, &text));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(CUDA_SUCCESS, NULL));
}

// Captures standard error meanwhile.
struct capture {
    int saved, pipe[2];
    char text[600];
};

static void capture_begin(struct capture *c)
{
    c->saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(c->pipe), 0);
    dup2(c->pipe[1], STDERR_FILENO);
    close(c->pipe[1]);
}

static void capture_end(struct capture *c)
{
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    ssize_t n = read(c->pipe[0], c->text, sizeof c->text - 1);
    assert_true(n >= 0);
    c->text[n] = '\0';
    close(c->pipe[0]);
}

static void test_missing_calls_say_their_name_once(void **state)
{
    struct capture c;
    capture_begin(&c);
    IS(CUDA_ERROR_NOT_SUPPORTED, cuGLInit());
    IS(CUDA_ERROR_NOT_SUPPORTED, cuGLInit());
    IS(CUDA_ERROR_NOT_SUPPORTED, cuVDPAUGetDevice(NULL, 0, NULL));
    capture_end(&c);
    assert_string_equal(c.text, "moat: cuGLInit is not supported by the CPU device\n"
                                "moat: cuVDPAUGetDevice is not supported by the CPU device\n");
}

static void test_no_export_table(void **state)
{
    struct capture c;
    CUuuid id = {{1}};
    const void *table = &table;
    capture_begin(&c);
    IS(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&table, &id));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&table, &id));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&table, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(NULL, &id));
    capture_end(&c);
    assert_null(table);
    assert_non_null(strstr(c.text, "moat link-flags"));
    assert_int_equal(strncmp(c.text, "moat: api_test carries ", 23), 0);
    assert_ptr_equal(strchr(c.text, '\n'), c.text + strlen(c.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),          cmocka_unit_test(test_bad_questions),
        cmocka_unit_test(test_errors_have_names), cmocka_unit_test(test_missing_calls_say_their_name_once),
        cmocka_unit_test(test_no_export_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
