// SPDX-License-Identifier: MIT
// Copies and memsets in one, two and three dimensions, compared with loops over bytes.
#include "runtime/rt_copy3d.h"

#include "runtime/rt_testing.h"

enum { BYTES = 4096 };
static unsigned char from[BYTES], to[BYTES], expected[BYTES];
static unsigned char *device, *other;

static int setup(void **state)
{
    for (int i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    memset(to, 0xee, sizeof to);
    memset(expected, 0xee, sizeof expected);
    OK(cudaMalloc((void **)&device, BYTES));
    OK(cudaMalloc((void **)&other, BYTES));
    OK(cudaMemset(device, 0xee, BYTES));
    OK(cudaMemset(other, 0xee, BYTES));
    return 0;
}

static int teardown(void **state)
{
    OK(cudaFree(device));
    OK(cudaFree(other));
    cudaGetLastError();
    return 0;
}

static void assert_device(const unsigned char *memory)
{
    OK(cudaMemcpy(to, memory, BYTES, cudaMemcpyDeviceToHost));
    assert_memory_equal(to, expected, BYTES);
}

// Every kind, and the one that the driver finds out, moves the bytes and no others.
static void good_bytes(void **state)
{
    OK(cudaMemcpy(device + 3, from, 100, cudaMemcpyHostToDevice));
    memcpy(expected + 3, from, 100);
    assert_device(device);
    OK(cudaMemcpy(other, device, BYTES, cudaMemcpyDeviceToDevice));
    assert_device(other);
    OK(cudaMemcpy(device + 200, from + 5, 50, cudaMemcpyDefault));
    memcpy(expected + 200, from + 5, 50);
    assert_device(device);
    OK(cudaMemcpy(to, from, 77, cudaMemcpyHostToHost));
    assert_memory_equal(to, from, 77);
    OK(cudaMemcpyAsync(other + 1, from, 9, cudaMemcpyHostToDevice, NULL));
    OK(cudaMemcpyAsync(other + 10, other + 1, 9, cudaMemcpyDeviceToDevice, NULL));
    OK(cudaMemcpyAsync(to, other + 10, 9, cudaMemcpyDeviceToHost, NULL));
    OK(cudaDeviceSynchronize());
    assert_memory_equal(to, from, 9);
}

static void bad_bytes(void **state)
{
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, from, 4, (cudaMemcpyKind)5));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpyAsync(device, from, 4, (cudaMemcpyKind)-1, NULL));
    OK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(NULL, from, 4, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(device + BYTES, from, 1 << 20, cudaMemcpyHostToDevice));
    assert_device(device);
}

static void good_planes(void **state)
{
    enum { WIDTH = 13, HEIGHT = 9, SOURCE = 17, TARGET = 40 };
    OK(cudaMemcpy2D(device, TARGET, from, SOURCE, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
    for (int y = 0; y < HEIGHT; y++)
        memcpy(expected + y * TARGET, from + y * SOURCE, WIDTH);
    assert_device(device);
    OK(cudaMemcpy2D(other, TARGET, device, TARGET, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice));
    assert_device(other);
    memset(to, 0, sizeof to);
    OK(cudaMemcpy2DAsync(to, SOURCE, other, TARGET, WIDTH, HEIGHT, cudaMemcpyDeviceToHost, NULL));
    OK(cudaDeviceSynchronize());
    for (int y = 0; y < HEIGHT; y++) {
        assert_memory_equal(to + y * SOURCE, from + y * SOURCE, WIDTH);
        for (int x = WIDTH; x < SOURCE; x++)
            assert_int_equal(to[y * SOURCE + x], 0);
    }
}

static void bad_planes(void **state)
{
    IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 8, from, 16, 9, 2, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 16, from, 8, 9, 2, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy2D(device, 16, from, 16, 9, 2, (cudaMemcpyKind)9));
    OK(cudaMemcpy2D(device, 1, from, 1, 9, 0, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(device, 1, from, 1, 0, 9, cudaMemcpyHostToDevice));
    assert_device(device);
}

static cudaMemcpy3DParms box_copy(void)
{
    return (cudaMemcpy3DParms){
        .srcPtr = {from, 16, 16, 10},
        .srcPos = {2, 1, 2},
        .dstPtr = {device, 32, 32, 8},
        .dstPos = {5, 2, 3},
        .extent = {7, 4, 3},
        .kind = cudaMemcpyHostToDevice,
    };
}

static void good_volumes(void **state)
{
    cudaMemcpy3DParms copy = box_copy();
    OK(cudaMemcpy3D(&copy));
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 4; y++)
            memcpy(expected + (z + 3) * 256 + (y + 2) * 32 + 5, from + (z + 2) * 160 + (y + 1) * 16 + 2, 7);
    assert_device(device);
    OK(cudaMemset(device, 0xee, BYTES));
    OK(cudaMemcpy3DAsync(&copy, NULL));
    assert_device(device);
}

static void bad_volumes(void **state)
{
    cudaMemcpy3DParms copy = box_copy();
    IS(cudaErrorInvalidValue, cudaMemcpy3D(NULL));
    copy.srcPtr.ptr = NULL;  // neither an array nor memory
    IS(cudaErrorInvalidValue, cudaMemcpy3D(&copy));
    copy = box_copy();
    copy.dstArray = (cudaArray_t)device;  // both
    IS(cudaErrorInvalidValue, cudaMemcpy3D(&copy));
    copy = box_copy();
    copy.kind = (cudaMemcpyKind)77;
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&copy));
    copy.extent.depth = 0;  // nothing to copy, so nothing is looked at
    OK(cudaMemcpy3D(&copy));
    assert_device(device);
}

// The driver's form of a copy, and the runtime's form of that, describe the same copy.
static void good_back_and_forth(void **state)
{
    for (int kind = cudaMemcpyHostToHost; kind <= cudaMemcpyDefault; kind++) {
        cudaMemcpy3DParms copy = box_copy(), again;
        CUDA_MEMCPY3D driver;
        copy.kind = (cudaMemcpyKind)kind;
        OK(rt_copy3d_to_driver(&driver, &copy));
        assert_int_equal(driver.srcMemoryType, rt_copy_source_type(copy.kind));
        assert_int_equal(driver.dstMemoryType, rt_copy_target_type(copy.kind));
        assert_int_equal(driver.WidthInBytes, 7);
        OK(rt_copy3d_from_driver(&again, &driver));
        assert_int_equal(again.kind, copy.kind);
        assert_ptr_equal(again.srcPtr.ptr, from);
        assert_ptr_equal(again.dstPtr.ptr, device);
        assert_memory_equal(&again.srcPos, &copy.srcPos, sizeof copy.srcPos);
        assert_memory_equal(&again.dstPos, &copy.dstPos, sizeof copy.dstPos);
        assert_memory_equal(&again.extent, &copy.extent, sizeof copy.extent);
    }
}

static void good_memsets(void **state)
{
    OK(cudaMemset(device + 10, 0x1ab, 20));  // the value's lowest byte
    memset(expected + 10, 0xab, 20);
    OK(cudaMemset2D(device + 64, 32, 3, 5, 4));
    for (int y = 0; y < 4; y++)
        memset(expected + 64 + y * 32, 3, 5);
    // Rows that are equally far apart in all planes, and rows that are not.
    OK(cudaMemset3D((cudaPitchedPtr){device + 512, 16, 16, 4}, 4, (cudaExtent){9, 4, 3}));
    for (int y = 0; y < 12; y++)
        memset(expected + 512 + y * 16, 4, 9);
    OK(cudaMemset3DAsync((cudaPitchedPtr){device + 1024, 16, 16, 8}, 5, (cudaExtent){9, 4, 3}, NULL));
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 4; y++)
            memset(expected + 1024 + z * 128 + y * 16, 5, 9);
    assert_device(device);
    IS(cudaErrorInvalidValue, cudaMemset2D(device, 4, 1, 5, 2));
    OK(cudaMemset2D(device, 4, 0xee, 5, 1));  // the pitch of a single row says nothing
    OK(cudaMemset(device, 1, 0));
    OK(cudaMemset3D((cudaPitchedPtr){device, 4, 4, 1}, 1, (cudaExtent){9, 0, 3}));
    assert_device(device);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_bytes),   TEST(bad_bytes),   TEST(good_planes),         TEST(bad_planes),
        TEST(good_volumes), TEST(bad_volumes), TEST(good_back_and_forth), TEST(good_memsets),
    };
    return cmocka_run_group_tests(tests, rt_testing_start, NULL);
}
