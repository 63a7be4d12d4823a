// SPDX-License-Identifier: MIT
#include <unistd.h>

#include "base/mem.h"
#include "cpu/whole_testing.h"

static CUcontext ctx;
static CUmodule module;
static CUdeviceptr out;

static int begin(void **state)
{
    ctx = whole_context();
    module = whole_module();
    OK(cuMemAlloc_v2(&out, 64));
    return 0;
}

static int end(void **state)
{
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}

static CUfunction get(const char *name)
{
    return whole_function(module, name);
}

static void test_parameters(void **state)
{
    uint32_t b = 100000, d[3] = {1, 2, 3000};
    uint8_t c = 200;
    void *params[] = {&out, &b, &c, d};
    OK(whole_launch(get("mixed"), params));
    assert_int_equal(whole_read(out), 103200);
    params[3] = NULL;
    IS(CUDA_ERROR_INVALID_VALUE, whole_launch(get("mixed"), params));
    IS(CUDA_ERROR_INVALID_VALUE, whole_launch(get("mixed"), NULL));
    OK(whole_launch(get("empty"), NULL));
}

static CUresult with_buffer(CUfunction f, const void *bytes, size_t size)
{
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
}

static void test_buffer(void **state)
{
    struct {
        CUdeviceptr a;
        uint32_t b;
        uint8_t c, pad[3];
        uint32_t d[3];
    } args = {out, 5, 6, {0}, {0, 0, 7}};
    OK(with_buffer(get("mixed"), &args, 28));
    assert_int_equal(whole_read(out), 18);
    IS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, with_buffer(get("mixed"), &args, 32));
    IS(CUDA_ERROR_INVALID_VALUE, with_buffer(get("mixed"), &args, 16));
    IS(CUDA_ERROR_INVALID_VALUE, with_buffer(get("mixed"), &args, 0));
    IS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, with_buffer(get("empty"), &args, 4));
}

static void test_bad_extra(void **state)
{
    char bytes[32];
    size_t size = 28;
    void *params[] = {bytes, bytes, bytes, bytes};
    void *half[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_END};
    void *unknown[] = {(void *)7, bytes, CU_LAUNCH_PARAM_END};
    void *nothing[] = {CU_LAUNCH_PARAM_END};
    void *whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUfunction f = get("mixed"), e = get("empty");
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, half));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(e, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, unknown));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, nothing));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, whole));
    OK(cuLaunchKernel(e, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, nothing));
    OK(cuLaunchKernel(e, 1, 1, 1, 1, 1, 1, 0, NULL, params, nothing));
}

static CUresult shaped(const char *name, const uint32_t s[7])
{
    CUdeviceptr p = out;
    uint32_t v = 0;
    void *params[] = {&p, &v};
    return cuLaunchKernel(get(name), s[0], s[1], s[2], s[3], s[4], s[5], s[6], NULL, params, NULL);
}

static void test_shapes(void **state)
{
    static const struct {
        const char *name;
        uint32_t shape[7];
        CUresult result;
    } rows[] = {
        {"empty", {1, 1, 1, 1024, 1, 1, 0}, CUDA_SUCCESS},
        {"empty", {3, 2, 2, 4, 4, 64, 0}, CUDA_SUCCESS},
        {"empty", {0, 1, 1, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 0, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 1, 1, 0, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {0x80000000u, 1, 1, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 65536, 1, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 1, 1025, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 1, 1024, 2, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 1, 1, 1, 65, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 1, 65536, 65536, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 1, 1, 1, 1, 49152}, CUDA_SUCCESS},
        {"empty", {1, 1, 1, 1, 1, 1, 49153}, CUDA_ERROR_INVALID_VALUE},
        {"empty", {1, 1, 1, 1, 1, 1, 0xffffffffu}, CUDA_ERROR_INVALID_VALUE},
        {"shared", {1, 1, 1, 1, 1, 1, 48128}, CUDA_SUCCESS},
        {"shared", {1, 1, 1, 1, 1, 1, 48129}, CUDA_ERROR_INVALID_VALUE},
        {"required", {1, 1, 1, 32, 2, 1, 0}, CUDA_SUCCESS},
        {"required", {1, 1, 1, 64, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"most", {1, 1, 1, 64, 1, 1, 0}, CUDA_SUCCESS},
        {"most", {1, 1, 1, 65, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (shaped(rows[i].name, rows[i].shape) != rows[i].result)
            fail_msg("row %zu", i);
    OK(cuCtxSynchronize());
}

static void test_more_shared_memory(void **state)
{
    const uint32_t fits[7] = {1, 1, 1, 1, 1, 1, 100000}, not_any_more[7] = {1, 1, 1, 1, 1, 1, 100001};
    OK(cuFuncSetAttribute(get("shared"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(shaped("shared", fits));
    assert_int_equal(whole_read(out), 5);
    IS(CUDA_ERROR_INVALID_VALUE, shaped("shared", not_any_more));
}

static void test_bad_handles(void **state)
{
    char junk[64] = {0};
    CUfunction wild[] = {NULL, (CUfunction)1, (CUfunction)junk, (CUfunction)(void *)module,
                         (CUfunction)(void *)ctx};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        IS(CUDA_ERROR_INVALID_HANDLE, whole_launch(wild[i], NULL));
        IS(CUDA_ERROR_INVALID_HANDLE, cuLaunch(wild[i]));
    }
    CUcontext other = whole_context();
    CUstream stream;
    OK(cuStreamCreate(&stream, 0));
    IS(CUDA_ERROR_INVALID_HANDLE, whole_launch(get("empty"), NULL));
    OK(cuCtxSetCurrent(ctx));
    assert_true(cuLaunchKernel(get("empty"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) != CUDA_SUCCESS);
    assert_true(cuLaunchKernel(get("empty"), 1, 1, 1, 1, 1, 1, 0, (CUstream)junk, NULL, NULL) !=
                CUDA_SUCCESS);
    OK(cuCtxDestroy_v2(other));
}

static void test_cooperative(void **state)
{
    int blocks;
    CUfunction f = get("empty");
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1024, 0));
    blocks *= (int)device_sm_count();
    OK(cuLaunchCooperativeKernel(f, (unsigned)blocks, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    IS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
       cuLaunchCooperativeKernel(f, (unsigned)blocks + 1, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    IS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
       cuLaunchCooperativeKernel(f, 0x7fffffff, 65535, 65535, 1, 1, 1, 0, NULL, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL));
    OK(cuCtxSynchronize());
}

static CUresult with_attribute(unsigned blocks, CUlaunchAttribute a)
{
    CUlaunchConfig c = {blocks, 1, 1, 32, 1, 1, 0, NULL, &a, 1};
    return cuLaunchKernelEx(&c, get("empty"), NULL, NULL);
}

static CUlaunchAttribute cluster(unsigned x)
{
    return (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {x, 1, 1}};
}

static void test_attributes(void **state)
{
    CUlaunchConfig plain = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
    CUevent event;
    OK(cuLaunchKernelEx(&plain, get("empty"), NULL, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(NULL, get("empty"), NULL, NULL));
    plain.numAttrs = 1;
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&plain, get("empty"), NULL, NULL));
    OK(with_attribute(1, (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -99}));
    OK(with_attribute(1, (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION}));
    IS(CUDA_ERROR_INVALID_VALUE, with_attribute(1, (CUlaunchAttribute){.id = (CUlaunchAttributeID)99}));
    CUlaunchAttribute carveout = {.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
    carveout.value.sharedMemCarveout = 100;
    OK(with_attribute(1, carveout));
    carveout.value.sharedMemCarveout = 200;
    IS(CUDA_ERROR_INVALID_VALUE, with_attribute(1, carveout));
    OK(with_attribute(1, cluster(0)));
    OK(with_attribute(1, cluster(1)));
    OK(with_attribute(8, cluster(8)));
    IS(CUDA_ERROR_INVALID_CLUSTER_SIZE, with_attribute(3, cluster(2)));
    IS(CUDA_ERROR_INVALID_CLUSTER_SIZE, with_attribute(16, cluster(16)));
    CUlaunchAttribute all = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    OK(with_attribute(1, all));
    IS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, with_attribute(10000000, all));
    CUlaunchAttribute done = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
    IS(CUDA_ERROR_INVALID_HANDLE, with_attribute(1, done));
    OK(cuEventCreate(&event, 0));
    done.value.launchCompletionEvent.event = event;
    OK(with_attribute(1, done));
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy_v2(event));
}

static void test_as_of_old(void **state)
{
    CUfunction f = get("store");
    OK(cuFuncSetBlockShape(f, 2, 1, 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(f, 0, 1, 1));
    OK(cuFuncSetSharedSize(f, 100));
    OK(cuParamSetv(f, 0, &out, sizeof out));
    OK(cuParamSeti(f, 8, 1234));
    IS(CUDA_ERROR_INVALID_VALUE, cuParamSeti(f, -1, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuParamSeti(f, 4094, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuParamSetv(f, 8, &out, 4096));
    IS(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(f, 4097));
    OK(cuParamSetSize(f, 12));
    OK(cuLaunch(f));
    assert_int_equal(whole_read(out), 1234);
    OK(cuParamSetf(f, 8, 1.5f));
    OK(cuLaunchGrid(f, 2, 2));
    assert_int_equal(whole_read(out), 0x3fc00000);
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(f, 0, 2));
    OK(cuLaunchGridAsync(f, 1, 1, NULL));
    OK(cuCtxSynchronize());
}

// Many launches at once each keep their own parameters.
static void test_slots(void **state)
{
    enum { MANY = 2000 };
    CUdeviceptr many;
    CUfunction f = get("store");
    uint32_t *read = malloc(MANY * sizeof *read);
    OK(cuMemAlloc_v2(&many, MANY * sizeof *read));
    for (uint32_t i = 0; i < MANY; i++) {
        CUdeviceptr p = many + i * sizeof *read;
        void *params[] = {&p, &i};
        OK(whole_launch(f, params));
    }
    OK(cuMemcpyDtoH_v2(read, many, MANY * sizeof *read));
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(read[i], i);
    OK(cuMemFree_v2(many));
    free(read);
}

// A host and a kernel that communicate through memory are a data race by C's rules.
__attribute__((no_sanitize("thread"))) static void *let_go(void *flag)
{
    usleep(20000);
    *(volatile uint32_t *)flag = 1;
    return NULL;
}

// Unloading waits for the kernel that uses the module.
static void test_unload_while_running(void **state)
{
    CUmodule m = whole_module();
    pthread_t thread;
    void *flag;
    OK(cuMemHostAlloc(&flag, 4096, 0));
    *(volatile uint32_t *)flag = 0;
    void *params[] = {&flag};
    OK(whole_launch(whole_function(m, "spin"), params));
    assert_int_equal(pthread_create(&thread, NULL, let_go, flag), 0);
    OK(cuModuleUnload(m));
    assert_int_equal(*(volatile uint32_t *)flag, 1);
    pthread_join(thread, NULL);
    OK(cuMemFreeHost(flag));
}

// Every allocation of a launch fails once, including those of the threads that run it: so each round has its
// own context.
static void test_out_of_memory(void **state)
{
    CUresult launched = CUDA_ERROR_OUT_OF_MEMORY, ended = CUDA_ERROR_OUT_OF_MEMORY;
    for (long n = 0; n < 100 && (launched || ended); n++) {
        CUcontext own = whole_context();
        CUfunction f = whole_function(whole_module(), "empty");
        mem_fail_after(n);
        launched = whole_launch(f, NULL);
        ended = cuCtxSynchronize();
        mem_fail_after(-1);
        assert_true(launched == CUDA_SUCCESS || launched == CUDA_ERROR_OUT_OF_MEMORY);
        assert_true(ended == CUDA_SUCCESS || ended == CUDA_ERROR_OUT_OF_MEMORY);
        OK(cuCtxDestroy_v2(own));
    }
    OK(launched);
    OK(ended);
}

static void test_faults_stick(void **state)
{
    CUcontext dead = whole_context();
    CUmodule m = whole_module();
    CUdeviceptr wild = 0x12340;
    uint32_t v = 1;
    void *params[] = {&wild, &v};
    OK(whole_launch(whole_function(m, "store"), params));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, whole_launch(NULL, NULL));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuModuleUnload(m));
    assert_int_equal(dead->fault.address, wild);
    assert_true(dead->fault.write);
    assert_true(str_eq(dead->fault.kernel->name, STR("store")));
    OK(cuCtxDestroy_v2(dead));
    dead = whole_context();
    OK(whole_launch(whole_function(whole_module(), "die"), NULL));
    IS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    OK(cuCtxDestroy_v2(dead));
    OK(whole_launch(get("empty"), NULL));
    OK(cuCtxSynchronize());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_bad_extra),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_bad_handles),
        cmocka_unit_test(test_cooperative),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_as_of_old),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_unload_while_running),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_faults_stick),
        cmocka_unit_test(test_more_shared_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
