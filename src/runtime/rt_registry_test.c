// SPDX-License-Identifier: MIT
#include "runtime/rt_registry.h"

#include <pthread.h>

#include "runtime/rt_testing.h"

static char store, mark, die, none, stranger, gv, no_variable, many[2000];
static void *mv;
static void **module;

static int setup(void **state)
{
    mv = NULL;
    module = rt_testing_module();
    rt_testing_kernel(module, &store, "store");
    rt_testing_kernel(module, &mark, "mark");
    rt_testing_kernel(module, &die, "die");
    rt_testing_kernel(module, &none, "none");
    __cudaRegisterVar(module, &gv, "gv", "gv", 0, 40, 0, 0);
    __cudaRegisterVar(module, &no_variable, "nv", "nv", 0, 4, 0, 0);
    __cudaRegisterManagedVar(module, &mv, "mv", "mv", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(module);
    return 0;
}

static int teardown(void **state)
{
    __cudaUnregisterFatBinary(module);
    cudaGetLastError();
    return 0;
}

static void test_launch(void **state)
{
    void *p;
    int v = 42, got = 0;
    OK(cudaMalloc(&p, 4));
    OK(rt_testing_launch(&store, (void *[]){&p, &v}));
    OK(cudaMemcpy(&got, p, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(got, 42);
    OK(cudaFree(p));
    IS(cudaErrorInvalidDeviceFunction, rt_testing_launch(&none, NULL));
    IS(cudaErrorInvalidResourceHandle, rt_testing_launch(&stranger, NULL));
    IS(cudaErrorInvalidDeviceFunction, rt_testing_launch(NULL, NULL));
    // A variable is no kernel.
    IS(cudaErrorInvalidResourceHandle, rt_testing_launch(&gv, NULL));
}

// A kernel is found by its handle, and its stub by the handle.
static void test_handles(void **state)
{
    cudaKernel_t kernel;
    OK(cudaGetKernel(&kernel, &mark));
    assert_ptr_equal(rt_registry_stub(kernel), &mark);
    OK(rt_testing_launch(kernel, NULL));
    IS(cudaErrorInvalidValue, cudaGetKernel(NULL, &mark));
    IS(cudaErrorInvalidDeviceFunction, cudaGetKernel(&kernel, &none));
    assert_null(kernel);
    // Compiled code launches what it could not get as NULL, and hears why.
    IS(cudaErrorInvalidDeviceFunction,
       __cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
}

static void test_variables(void **state)
{
    void *address;
    size_t size;
    int got = 0, v = 3;
    OK(cudaGetSymbolAddress(&address, &gv));
    OK(cudaGetSymbolSize(&size, &gv));
    assert_int_equal(size, 40);
    OK(rt_testing_launch(&mark, NULL));
    OK(cudaMemcpyFromSymbol(&got, &gv, 4, 0, cudaMemcpyDeviceToHost));
    assert_int_equal(got, 5);
    OK(cudaMemcpyToSymbol(&gv, &v, 4, 36, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(&got, (char *)address + 36, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(got, 3);
    IS(cudaErrorInvalidValue, cudaMemcpyToSymbol(&gv, &v, 4, 37, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpyToSymbol(&gv, &v, 4, SIZE_MAX - 1, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &no_variable));
    IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &stranger));
    IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &mark));
    IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, NULL));
}

// Host code reads a managed variable through a pointer, which loading fills.
static void test_managed(void **state)
{
    void *address;
    assert_null(mv);
    assert_int_equal(__cudaInitModule(module), 1);
    assert_non_null(mv);
    assert_int_equal(*(int *)mv, 11);
    OK(cudaGetSymbolAddress(&address, &mv));
    assert_ptr_equal(address, mv);
    OK(cudaGetSymbolAddress(&address, mv));
    assert_ptr_equal(address, mv);
}

// The first registration of an address stays, and the second does not go with it.
static void test_twice(void **state)
{
    void **second = rt_testing_module();
    rt_testing_kernel(second, &mark, "none");
    OK(rt_testing_launch(&mark, NULL));
    __cudaUnregisterFatBinary(second);
    OK(rt_testing_launch(&mark, NULL));
}

// More than the table has room for at first; those of a module that is gone are found no more.
static void test_many(void **state)
{
    for (int round = 0; round < 3; round++) {
        void **second = rt_testing_module();
        for (size_t i = 0; i < sizeof many; i++)
            rt_testing_kernel(second, &many[i], "mark");
        for (size_t i = 0; i < sizeof many; i += 97)
            OK(rt_testing_launch(&many[i], NULL));
        OK(rt_testing_launch(&mark, NULL));
        __cudaUnregisterFatBinary(second);
        for (size_t i = 0; i < sizeof many; i += 97)
            IS(cudaErrorInvalidResourceHandle, rt_testing_launch(&many[i], NULL));
    }
}

static void test_bad_image(void **state)
{
    static char image[] = "this is no image";
    void **bad = __cudaRegisterFatBinary(image);
    rt_testing_kernel(bad, &stranger, "mark");
    assert_true(rt_testing_launch(&stranger, NULL) != cudaSuccess);
    assert_int_equal(__cudaInitModule(bad), 0);
    __cudaUnregisterFatBinary(bad);
    __cudaUnregisterFatBinary(NULL);
    OK(rt_testing_launch(&mark, NULL));
}

// --- <<<>>> ---

static void test_configurations(void **state)
{
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    IS(cudaErrorMissingConfiguration, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    for (unsigned i = 0; i < RT_CONFIGS; i++)
        assert_int_equal(__cudaPushCallConfiguration((dim3){i, 2, 3}, (dim3){4, 5, i}, i, NULL), 0);
    assert_int_equal(__cudaPushCallConfiguration((dim3){99, 1, 1}, (dim3){1, 1, 1}, 0, NULL),
                     cudaErrorMissingConfiguration);
    for (unsigned i = RT_CONFIGS; i-- > 0;) {
        OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
        assert_true(grid.x == i && grid.y == 2 && grid.z == 3 && block.x == 4 && block.y == 5 &&
                    block.z == i);
        assert_int_equal(shared, i);
        assert_null(stream);
    }
    IS(cudaErrorMissingConfiguration, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
}

static void test_bad_shapes(void **state)
{
    const dim3 one = {1, 1, 1};
    assert_true(cudaLaunchKernel(&mark, (dim3){0, 1, 1}, one, NULL, 0, NULL) != cudaSuccess);
    assert_true(cudaLaunchKernel(&mark, one, (dim3){1025, 1, 1}, NULL, 0, NULL) != cudaSuccess);
    IS(cudaErrorInvalidValue, cudaLaunchKernel(&mark, one, one, NULL, (size_t)1 << 32, NULL));
    IS(cudaErrorInvalidValue, cudaLaunchKernelExC(NULL, &mark, NULL));
    cudaLaunchConfig_t config = {.gridDim = one, .blockDim = one};
    OK(cudaLaunchKernelExC(&config, &mark, NULL));
    OK(cudaDeviceSynchronize());
}

// --- errors ---

static void test_last_error(void **state)
{
    OK(cudaGetLastError());
    IS(cudaErrorInvalidValue, cudaGetKernel(NULL, &mark));
    // What succeeds does not take it away.
    OK(cudaDeviceSynchronize());
    IS(cudaErrorInvalidValue, cudaPeekAtLastError());
    IS(cudaErrorInvalidDevice, cudaSetDevice(-1));
    IS(cudaErrorInvalidDevice, cudaGetLastError());
    OK(cudaGetLastError());
}

static void *fail_there(void *found)
{
    *(cudaError_t *)found = cudaGetLastError();
    cudaSetDevice(10000);
    return NULL;
}

static void test_last_error_of_each_thread(void **state)
{
    cudaError_t found = cudaErrorUnknown;
    pthread_t thread;
    cudaGetKernel(NULL, &mark);
    assert_int_equal(pthread_create(&thread, NULL, fail_there, &found), 0);
    pthread_join(thread, NULL);
    OK(found);
    IS(cudaErrorInvalidValue, cudaGetLastError());
}

static void test_names(void **state)
{
    assert_string_equal(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
    assert_string_equal(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument");
    assert_string_equal(cudaGetErrorString((cudaError_t)-1), "unrecognized error code");
}

// A reset ends what the context had; modules are loaded again when they are needed.
static void test_reset(void **state)
{
    void *p;
    int got = 0;
    OK(rt_testing_launch(&mark, NULL));
    OK(cudaMalloc(&p, 4));
    OK(cudaDeviceReset());
    assert_true(cudaFree(p) != cudaSuccess);
    OK(rt_testing_launch(&mark, NULL));
    OK(cudaMemcpyFromSymbol(&got, &gv, 4, 0, cudaMemcpyDeviceToHost));
    assert_int_equal(got, 5);
}

// A fault stays: each call returns it until the device is reset.
static void test_sticky(void **state)
{
    void *p;
    OK(rt_testing_launch(&die, NULL));
    assert_true(cudaDeviceSynchronize() != cudaSuccess);
    assert_true(cudaGetLastError() != cudaSuccess);
    assert_true(cudaMalloc(&p, 4) != cudaSuccess);
    assert_true(cudaDeviceSynchronize() != cudaSuccess);
    OK(cudaDeviceReset());
    cudaGetLastError();
    OK(cudaMalloc(&p, 4));
    OK(cudaFree(p));
    OK(rt_testing_launch(&mark, NULL));
    OK(cudaDeviceSynchronize());
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_launch),
        TEST(test_handles),
        TEST(test_variables),
        TEST(test_managed),
        TEST(test_twice),
        TEST(test_many),
        TEST(test_bad_image),
        TEST(test_configurations),
        TEST(test_bad_shapes),
        TEST(test_last_error),
        TEST(test_last_error_of_each_thread),
        TEST(test_names),
        TEST(test_reset),
        TEST(test_sticky),
    };
    return cmocka_run_group_tests(tests, rt_testing_start, NULL);
}
