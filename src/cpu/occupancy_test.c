// SPDX-License-Identifier: MIT
// The figures are those of an H200 for kernels that need no more than 32 registers.
#include "cpu/whole_testing.h"

static CUmodule module;

static int begin(void **state)
{
    whole_context();
    module = whole_module();
    return 0;
}

static CUfunction get(const char *name)
{
    return whole_function(module, name);
}

static int blocks(int threads, size_t shared)
{
    int n = -1;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, get("empty"), threads, shared));
    return n;
}

static void test_blocks(void **state)
{
    static const int threads[][2] = {{32, 32}, {33, 32}, {64, 32},  {128, 16}, {256, 8},
                                     {512, 4}, {768, 2}, {1024, 2}, {1025, 0}};
    static const int shared[][2] = {{1, 16},    {1000, 16}, {10000, 16}, {28160, 8},
                                    {28161, 7}, {40000, 5}, {49152, 4},  {49153, 0}};
    int n;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        assert_int_equal(blocks(threads[i][0], 0), threads[i][1]);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        assert_int_equal(blocks(128, (size_t)shared[i][0]), shared[i][1]);
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, get("empty"), 0, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, get("empty"), -1, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, get("empty"), 32, 0));
    IS(CUDA_ERROR_INVALID_HANDLE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, NULL, 32, 0));
    IS(CUDA_ERROR_INVALID_VALUE,
       cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, get("empty"), 32, 0, 9));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, get("empty"), 128, SIZE_MAX, 1));
    assert_int_equal(n, 0);
}

static size_t hundred_each(int threads)
{
    return 100 * (size_t)threads;
}

static void expect_size(const char *name, CUoccupancyB2DSize size_of, size_t shared, int limit, int per_sm,
                        int block)
{
    int grid, size;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &size, get(name), size_of, shared, limit));
    assert_int_equal(size, block);
    assert_int_equal(grid, per_sm * (int)device_sm_count());
}

static void test_block_sizes(void **state)
{
    int grid, size;
    expect_size("empty", NULL, 0, 0, 2, 1024);
    expect_size("empty", hundred_each, 0, 0, 8, 256);
    expect_size("empty", NULL, 0, 200, 16, 128);
    expect_size("empty", NULL, 49152, 0, 2, 1024);
    expect_size("most", NULL, 0, 0, 32, 64);
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(NULL, &size, get("empty"), NULL, 0, 0));
    IS(CUDA_ERROR_INVALID_HANDLE,
       cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &size, NULL, NULL, 0, 0, 0));
}

static void test_shared_memory_left(void **state)
{
    size_t n;
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&n, get("empty"), 2, 128));
    assert_int_equal(n, 49152);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&n, get("empty"), 16, 128));
    assert_int_equal(n, 14592);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&n, get("shared"), 4, 128));
    assert_int_equal(n, 49152 - 1024);
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&n, get("empty"), 17, 128));
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&n, get("empty"), 0, 128));
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(NULL, get("empty"), 1, 128));
}

static void test_clusters(void **state)
{
    CUlaunchConfig c = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 1, .blockDimZ = 1};
    int n;
    OK(cuOccupancyMaxPotentialClusterSize(&n, get("empty"), &c));
    assert_int_equal(n, 8);
    OK(cuOccupancyMaxActiveClusters(&n, get("empty"), &c));
    assert_int_equal(n, 16 * (int)device_sm_count());
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 2, 1}};
    c.attrs = &a;
    c.numAttrs = 1;
    OK(cuOccupancyMaxActiveClusters(&n, get("empty"), &c));
    assert_int_equal(n, 4 * (int)device_sm_count());
    c.numAttrs = 0;
    c.blockDimX = c.blockDimY = c.blockDimZ = UINT32_MAX;
    OK(cuOccupancyMaxActiveClusters(&n, get("empty"), &c));
    assert_int_equal(n, 0);
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(&n, get("empty"), NULL));
}

// A kernel in which `live` registers are in use at once.
static int blocks_of(const char *directives, unsigned live)
{
    char text[1 << 14];
    int n = snprintf(text, sizeof text,
                     WHOLE_HEAD ".entry k(.param .u64 out) %s { .reg .b32 r<%u>; .reg .b64 p;\n"
                                "ld.param.u64 p, [out];\n",
                     directives, live),
        found = -1;
    for (unsigned i = 0; i < live; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "ld.volatile.global.u32 r%u, [p];\n", i);
    for (unsigned i = 0; i < live; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "st.volatile.global.u32 [p], r%u;\n", i);
    snprintf(text + n, sizeof text - (size_t)n, "ret; }\n");
    CUmodule m;
    OK(cuModuleLoadData(&m, text));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&found, whole_function(m, "k"), 1024, 0));
    OK(cuModuleUnload(m));
    return found;
}

// __launch_bounds__(1024, 2): the compiler keeps to so few registers that two blocks fit.
static void test_least_blocks(void **state)
{
    assert_int_equal(blocks_of("", 60), 1);
    assert_int_equal(blocks_of(".maxntid 1024 .minnctapersm 2", 60), 2);
    assert_int_equal(blocks_of(".maxntid 1024, 1, 1 .minnctapersm 1", 60), 1);
    assert_int_equal(blocks_of(".maxnreg 32", 60), 2);
    assert_int_equal(blocks_of(".maxntid 1024 .minnctapersm 4000000000", 60), 1);
    assert_int_equal(blocks_of(".maxntid 1024 .minnctapersm 2", 5), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_block_sizes),
        cmocka_unit_test(test_shared_memory_left),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_least_blocks),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
