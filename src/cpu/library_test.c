// SPDX-License-Identifier: MIT
#include "cpu/whole_testing.h"

static CUlibrary load(const char *text)
{
    CUlibrary l;
    OK(cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    return l;
}

static CUkernel kernel(CUlibrary l, const char *name)
{
    CUkernel k;
    OK(cuLibraryGetKernel(&k, l, name));
    return k;
}

static void test_without_context(void **state)
{
    CUlibrary l, of;
    CUkernel k, again, all[WHOLE_KERNELS + 1] = {NULL};
    CUfunction f;
    CUdeviceptr p;
    const char *name;
    size_t size, offset;
    unsigned n;
    int v;
    IS(CUDA_ERROR_NOT_INITIALIZED, cuLibraryLoadData(&l, WHOLE_PTX, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuInit(0));
    l = load(WHOLE_PTX);
    k = kernel(l, "mixed");
    assert_ptr_equal(kernel(l, "mixed"), k);
    IS(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&again, l, "nope"));
    IS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(&again, l, NULL));
    OK(cuLibraryGetKernelCount(&n, l));
    assert_int_equal(n, WHOLE_KERNELS);
    OK(cuLibraryEnumerateKernels(all, WHOLE_KERNELS + 1, l));
    assert_null(all[WHOLE_KERNELS]);
    OK(cuKernelGetName(&name, k));
    assert_string_equal(name, "mixed");
    OK(cuKernelGetLibrary(&of, k));
    assert_ptr_equal(of, l);
    OK(cuKernelGetParamInfo(k, 1, &offset, &size));
    assert_int_equal(offset, 8);
    OK(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
    assert_int_equal(v, 1024);
    IS(CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 3));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuKernelGetFunction(&f, k));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuLibraryGetGlobal(&p, &size, l, "gv"));
    OK(cuLibraryGetManaged(&p, &size, l, "mv"));
    assert_int_equal(*(uint32_t *)(uintptr_t)p, 11);
    OK(cuLibraryUnload(l));
    IS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(l));
    IS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, k));
}

static void test_bad_input(void **state)
{
    CUlibrary l;
    CUlibraryOption option = CU_LIBRARY_NUM_OPTIONS;
    CUjit_option jit = CU_JIT_NUM_OPTIONS;
    void *value = NULL;
    IS(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&l, NULL, NULL, NULL, 0, NULL, NULL, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(NULL, WHOLE_PTX, NULL, NULL, 0, NULL, NULL, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&l, WHOLE_PTX, NULL, NULL, 0, &option, &value, 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&l, WHOLE_PTX, NULL, NULL, 0, NULL, NULL, 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&l, WHOLE_PTX, &jit, &value, 1, NULL, NULL, 0));
    IS(CUDA_ERROR_FILE_NOT_FOUND, cuLibraryLoadFromFile(&l, "/dev/null/none", NULL, NULL, 0, NULL, NULL, 0));
    IS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(NULL));
    IS(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernelCount(&(unsigned){0}, (CUlibrary)0x1230));
}

// An error in a text is not noticed before something of the library is needed; then the result stays the
// same.
static void test_errors_come_late(void **state)
{
    CUlibrary l = load(WHOLE_HEAD ".entry x() { mov.u32 %r1, 3; }");
    CUkernel k;
    IS(CUDA_ERROR_INVALID_PTX, cuLibraryGetKernel(&k, l, "x"));
    IS(CUDA_ERROR_INVALID_PTX, cuLibraryGetKernelCount(&(unsigned){0}, l));
    OK(cuLibraryUnload(l));
}

static void run_store(CUfunction f, uint32_t value)
{
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 4));
    void *params[] = {&p, &value};
    OK(whole_launch(f, params));
    assert_int_equal(whole_read(p), value);
    OK(cuMemFree_v2(p));
}

static void test_launch_of_a_kernel(void **state)
{
    CUcontext ctx = whole_context();
    CUlibrary l = load(WHOLE_PTX);
    CUkernel k = kernel(l, "store");
    CUfunction f;
    CUmodule m, of;
    int v;
    run_store((CUfunction)k, 5);
    run_store((CUfunction)k, 6);
    OK(cuKernelGetFunction(&f, k));
    run_store(f, 7);
    IS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)k));
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, k, 0));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    assert_int_equal(v, 100000);
    OK(cuLibraryGetModule(&m, l));
    OK(cuFuncGetModule(&of, f));
    assert_ptr_equal(of, m);
    IS(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(m));
    OK(cuLibraryUnload(l));
    IS(CUDA_ERROR_INVALID_HANDLE, whole_launch((CUfunction)k, NULL));
    IS(CUDA_ERROR_INVALID_HANDLE, whole_launch(f, NULL));
    IS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunctionCount(&(unsigned){0}, m));
    OK(cuCtxDestroy_v2(ctx));
}

// Each context has variables of its own; a kernel runs in the current context.
static void test_two_contexts(void **state)
{
    CUlibrary l = load(WHOLE_PTX);
    CUkernel k = kernel(l, "store");
    CUcontext a = whole_context(), b = whole_context();
    CUdeviceptr in_a, in_b, p;
    CUfunction f;
    OK(cuLibraryGetGlobal(&in_b, NULL, l, "seven"));
    run_store((CUfunction)k, 1);
    OK(cuKernelGetFunction(&f, k));
    OK(cuCtxSetCurrent(a));
    IS(CUDA_ERROR_INVALID_HANDLE, whole_launch(f, (void *[]){&in_b, &in_b}));
    OK(cuLibraryGetGlobal(&in_a, NULL, l, "seven"));
    run_store((CUfunction)k, 2);
    CUmodule m, of;
    OK(cuKernelGetFunction(&f, k));
    OK(cuFuncGetModule(&of, f));
    OK(cuLibraryGetModule(&m, l));
    assert_ptr_equal(of, m);
    OK(cuCtxPushCurrent_v2(b));
    OK(cuLibraryGetModule(&m, l));
    assert_true(of != m);
    OK(cuKernelGetFunction(&f, k));
    OK(cuFuncGetModule(&of, f));
    assert_ptr_equal(of, m);
    OK(cuCtxPopCurrent_v2(NULL));
    assert_true(in_a != in_b);
    assert_int_equal(whole_read(in_a), 7);
    IS(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&p, NULL, l, "nope"));
    IS(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&p, NULL, l, "seven"));
    IS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetGlobal(NULL, NULL, l, "seven"));
    // The library outlives a context, and is loaded again into the next.
    OK(cuCtxDestroy_v2(a));
    OK(cuCtxDestroy_v2(b));
    a = whole_context();
    run_store((CUfunction)k, 3);
    OK(cuLibraryUnload(l));
    OK(cuCtxDestroy_v2(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_context),  // must be the first
        cmocka_unit_test(test_bad_input),          cmocka_unit_test(test_errors_come_late),
        cmocka_unit_test(test_launch_of_a_kernel), cmocka_unit_test(test_two_contexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
