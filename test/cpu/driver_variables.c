// SPDX-License-Identifier: MIT
// Module variables: initial values, constants, pointers between them, managed ones; libraries and kernels.
#include "driver_check.h"

static unsigned read_counter(CUdeviceptr p)
{
    unsigned value = 0;
    TRY(cuMemcpyDtoH_v2(&value, p, 4));
    return value;
}

static void initial_values(CUmodule module)
{
    CUdeviceptr p;
    size_t size;
    unsigned table[6];
    TRY(cuModuleGetGlobal_v2(&p, &size, module, "table"));
    EQUAL(size, sizeof table);
    TRY(cuMemcpyDtoH_v2(table, p, sizeof table));
    for (unsigned i = 0; i < 6; i++)
        EQUAL(table[i], (i + 1) % 6);
    TRY(cuModuleGetGlobal_v2(&p, NULL, module, "factor"));
    TRY(cuModuleGetGlobal_v2(NULL, &size, module, "counter"));
    EQUAL(size, 4);
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&p, &size, module, "absent"));
    CUfunction f;
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&f, module, "absent"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&f, module, "table"));
}

static void use(CUmodule module)
{
    CUdeviceptr counter, factor, total, out = check_zeroed(4);
    size_t size;
    TRY(cuModuleGetGlobal_v2(&counter, &size, module, "counter"));
    TRY(cuModuleGetGlobal_v2(&factor, &size, module, "factor"));
    TRY(cuModuleGetGlobal_v2(&total, &size, module, "total"));
    CUfunction f = check_function(module, "variables");
    TRY(LAUNCH(f, 10, 64, 0, NULL, &out));
    TRY(cuCtxSynchronize());
    EQUAL(read_counter(counter), 640);
    float result = 0;
    TRY(cuMemcpyDtoH_v2(&result, out, 4));
    CHECK(result == 6.0f);
    // The host accesses a managed variable in place.
    volatile uint64_t *shared = (volatile uint64_t *)(uintptr_t)total;
    EQUAL(*shared, 647);
    *shared = 1000;
    float ten = 10;
    TRY(cuMemcpyHtoD_v2(factor, &ten, 4));
    TRY(cuMemsetD32_v2(counter, 5, 1));
    TRY(LAUNCH(f, 1, 1, 0, NULL, &out));
    TRY(cuCtxSynchronize());
    EQUAL(read_counter(counter), 6);
    EQUAL(*shared, 1001);
    TRY(cuMemcpyDtoH_v2(&result, out, 4));
    CHECK(result == 30.0f);
    TRY(cuMemFree_v2(out));
}

// Two loads of one text share nothing.
static void two_modules(CUmodule first)
{
    CUmodule second = check_module("basic.ptx");
    CUdeviceptr one, two;
    TRY(cuModuleGetGlobal_v2(&one, NULL, first, "counter"));
    TRY(cuModuleGetGlobal_v2(&two, NULL, second, "counter"));
    CHECK(one != two);
    EQUAL(read_counter(two), 0);
    TRY(cuMemsetD32_v2(one, 9, 1));
    EQUAL(read_counter(two), 0);
    TRY(cuModuleUnload(second));
    EQUAL(read_counter(one), 9);
}

static void libraries(void)
{
    char *text = check_read("basic.ptx");
    CUlibrary library;
    TRY(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    CUkernel kernel;
    TRY(cuLibraryGetKernel(&kernel, library, "variables"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "absent"));
    TRY(cuLibraryGetKernel(&kernel, library, "variables"));
    CUdeviceptr counter, out = check_zeroed(4);
    size_t size;
    TRY(cuLibraryGetGlobal(&counter, &size, library, "counter"));
    EQUAL(size, 4);
    unsigned count = 0;
    TRY(cuLibraryGetKernelCount(&count, library));
    EQUAL(count, 6);
    TRY(LAUNCH((CUfunction)kernel, 3, 7, 0, NULL, &out));
    TRY(cuCtxSynchronize());
    EQUAL(read_counter(counter), 21);
    CUfunction f;
    TRY(cuKernelGetFunction(&f, kernel));
    TRY(LAUNCH(f, 1, 1, 0, NULL, &out));
    TRY(cuCtxSynchronize());
    EQUAL(read_counter(counter), 22);
    const char *name = NULL;
    TRY(cuKernelGetName(&name, kernel));
    CHECK(name && strcmp(name, "variables") == 0);
    TRY(cuMemFree_v2(out));
    TRY(cuLibraryUnload(library));
}

int main(void)
{
    CUcontext context = check_context();
    CUmodule module = check_module("basic.ptx");
    initial_values(module);
    use(module);
    two_modules(module);
    libraries();
    TRY(cuModuleUnload(module));
    TRY(cuCtxDestroy_v2(context));
    return check_end("driver_variables");
}
