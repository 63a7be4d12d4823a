// SPDX-License-Identifier: MIT
// Arrays, and the objects that read them.
#include "runtime/rt_testing.h"

enum { WIDTH = 10, HEIGHT = 6 };

static cudaArray_t array;
static uint16_t from[HEIGHT][WIDTH], to[HEIGHT][WIDTH];
static const cudaChannelFormatDesc u16 = {16, 0, 0, 0, cudaChannelFormatKindUnsigned};

static int setup(void **state)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            from[y][x] = (uint16_t)(y * 100 + x);
    memset(to, 0, sizeof to);
    OK(cudaMallocArray(&array, &u16, WIDTH, HEIGHT, 0));
    OK(cudaMemcpy2DToArray(array, 0, 0, from, sizeof *from, sizeof *from, HEIGHT, cudaMemcpyHostToDevice));
    return 0;
}

static int teardown(void **state)
{
    OK(cudaFreeArray(array));
    cudaGetLastError();
    return 0;
}

static void read_all(cudaArray_t a)
{
    OK(cudaMemcpy2DFromArray(to, sizeof *to, a, 0, 0, sizeof *to, HEIGHT, cudaMemcpyDeviceToHost));
}

static void good_info(void **state)
{
    cudaChannelFormatDesc desc;
    cudaExtent extent;
    unsigned flags = 9;
    OK(cudaArrayGetInfo(&desc, &extent, &flags, array));
    assert_memory_equal(&desc, &u16, sizeof desc);
    assert_true(extent.width == WIDTH && extent.height == HEIGHT && extent.depth == 0 && flags == 0);
    OK(cudaArrayGetInfo(NULL, NULL, NULL, array));
    OK(cudaGetChannelDesc(&desc, array));
    assert_int_equal(desc.x, 16);
    IS(cudaErrorInvalidValue, cudaGetChannelDesc(NULL, array));
}

static void bad_arrays(void **state)
{
    cudaArray_t none;
    cudaChannelFormatDesc odd = {7, 0, 0, 0, cudaChannelFormatKindUnsigned};
    IS(cudaErrorInvalidValue, cudaMallocArray(NULL, &u16, 1, 1, 0));
    IS(cudaErrorInvalidValue, cudaMallocArray(&none, NULL, 1, 1, 0));
    IS(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&none, &odd, 1, 1, 0));
    OK(cudaFreeArray(NULL));
    OK(cudaFreeMipmappedArray(NULL));
}

// Positions and widths of planes are bytes; what lies outside of them stays.
static void good_planes(void **state)
{
    uint16_t part[2][3] = {{1, 2, 3}, {4, 5, 6}};
    OK(cudaMemcpy2DToArray(array, 4, 3, part, sizeof *part, sizeof *part, 2, cudaMemcpyHostToDevice));
    read_all(array);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            bool inside = x >= 2 && x < 5 && y >= 3 && y < 5;
            assert_int_equal(to[y][x], inside ? part[y - 3][x - 2] : from[y][x]);
        }
}

// A run of bytes begins within a row, and goes on over whole rows into the last one.
static void good_runs(void **state)
{
    uint16_t run[3 * WIDTH];
    OK(cudaMemcpyFromArray(run, array, 6, 1, sizeof run - 10, cudaMemcpyDeviceToHost));
    assert_memory_equal(run, &from[1][3], sizeof run - 10);
    for (int i = 0; i < 3 * WIDTH; i++)
        run[i] = (uint16_t)(7000 + i);
    OK(cudaMemcpyToArray(array, 16, 2, run, 25 * 2, cudaMemcpyHostToDevice));
    read_all(array);
    assert_memory_equal(to, from, (size_t)((char *)&from[2][8] - (char *)from));
    assert_memory_equal(&to[2][8], run, 25 * 2);
    assert_memory_equal(&to[2][8] + 25, &from[2][8] + 25, (HEIGHT * WIDTH - 2 * WIDTH - 8 - 25) * 2);
    // It must begin within a row.
    IS(cudaErrorInvalidValue, cudaMemcpyToArray(array, WIDTH * 2, 0, run, 2, cudaMemcpyHostToDevice));
}

static void good_between_arrays(void **state)
{
    cudaArray_t second;
    OK(cudaMallocArray(&second, &u16, WIDTH, HEIGHT, 0));
    OK(cudaMemcpy2DArrayToArray(second, 0, 0, array, 0, 0, sizeof *from, HEIGHT, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpyArrayToArray(second, 2, 5, array, 0, 0, 8, cudaMemcpyDeviceToDevice));
    read_all(second);
    assert_memory_equal(to, from, sizeof from - sizeof *from);
    assert_int_equal(to[5][0], from[5][0]);
    assert_memory_equal(&to[5][1], from[0], 8);
    assert_memory_equal(&to[5][5], &from[5][5], 10);
    OK(cudaFreeArray(second));
}

// In a copy of three dimensions, positions in an array and the width count its elements.
static void good_volumes(void **state)
{
    cudaArray_t cube;
    uint32_t in[2][3][4], out[2][3][4];
    const cudaChannelFormatDesc f32 = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    for (unsigned i = 0; i < 24; i++)
        in[i / 12][i / 4 % 3][i % 4] = i, out[i / 12][i / 4 % 3][i % 4] = 99;
    OK(cudaMalloc3DArray(&cube, &f32, (cudaExtent){4, 3, 2}, 0));
    cudaMemcpy3DParms copy = {
        .srcPtr = {in, 16, 16, 3}, .dstArray = cube, .extent = {4, 3, 2}, .kind = cudaMemcpyHostToDevice};
    OK(cudaMemcpy3D(&copy));
    copy = (cudaMemcpy3DParms){.srcArray = cube,
                               .srcPos = {1, 1, 1},
                               .dstPtr = {out, 16, 16, 3},
                               .extent = {2, 2, 1},
                               .kind = cudaMemcpyDeviceToHost};
    OK(cudaMemcpy3D(&copy));
    assert_int_equal(out[0][0][0], 17);
    assert_int_equal(out[0][0][1], 18);
    assert_int_equal(out[0][0][2], 99);
    assert_int_equal(out[0][1][1], 22);
    assert_int_equal(out[1][0][0], 99);
    OK(cudaFreeArray(cube));
}

static void good_mipmaps(void **state)
{
    cudaMipmappedArray_t mipmaps;
    cudaArray_t level;
    cudaExtent extent;
    OK(cudaMallocMipmappedArray(&mipmaps, &u16, (cudaExtent){16, 8, 0}, 3, 0));
    OK(cudaGetMipmappedArrayLevel(&level, mipmaps, 2));
    OK(cudaArrayGetInfo(NULL, &extent, NULL, level));
    assert_true(extent.width == 4 && extent.height == 2);
    IS(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&level, mipmaps, 3));
    OK(cudaFreeMipmappedArray(mipmaps));
}

// What an object was made of is what it says it is made of.
static void good_textures(void **state)
{
    cudaTextureObject_t texture;
    cudaResourceDesc resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.array = array}, found;
    cudaTextureDesc desc = {.addressMode = {CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_MIRROR},
                            .readMode = cudaReadModeNormalizedFloat,
                            .filterMode = CU_TR_FILTER_MODE_LINEAR,
                            .normalizedCoords = 1,
                            .borderColor = {1, 2, 3, 4}},
                    said;
    OK(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    OK(cudaGetTextureObjectResourceDesc(&found, texture));
    assert_int_equal(found.resType, CU_RESOURCE_TYPE_ARRAY);
    assert_ptr_equal(found.res.array.array, array);
    OK(cudaGetTextureObjectTextureDesc(&said, texture));
    assert_int_equal(said.readMode, cudaReadModeNormalizedFloat);
    assert_int_equal(said.addressMode[1], CU_TR_ADDRESS_MODE_MIRROR);
    assert_true(said.normalizedCoords && said.borderColor[3] == 4);
    OK(cudaDestroyTextureObject(texture));
    desc.readMode = cudaReadModeElementType;  // integers are not interpolated
    IS(cudaErrorInvalidFilterSetting, cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    resource.resType = 77;
    IS(cudaErrorInvalidValue, cudaCreateTextureObject(&texture, &resource, &desc, NULL));
}

// Memory as a texture, in a row and in rows; integers of 32 bits have no normalized form.
static void good_linear_textures(void **state)
{
    void *memory;
    cudaTextureObject_t texture;
    OK(cudaMalloc(&memory, 4096));
    cudaResourceDesc found, resource = {.resType = CU_RESOURCE_TYPE_LINEAR,
                                        .res.linear = {.devPtr = memory,
                                                       .desc = {32, 0, 0, 0, cudaChannelFormatKindSigned},
                                                       .sizeInBytes = 4096}};
    cudaTextureDesc desc = {.readMode = cudaReadModeElementType};
    OK(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    OK(cudaGetTextureObjectResourceDesc(&found, texture));
    assert_ptr_equal(found.res.linear.devPtr, memory);
    assert_int_equal(found.res.linear.sizeInBytes, 4096);
    assert_int_equal(found.res.linear.desc.f, cudaChannelFormatKindSigned);
    OK(cudaDestroyTextureObject(texture));
    desc.readMode = cudaReadModeNormalizedFloat;
    IS(cudaErrorInvalidNormSetting, cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    OK(cudaFree(memory));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_info),    TEST(bad_arrays),          TEST(good_planes),
        TEST(good_runs),    TEST(good_between_arrays), TEST(good_volumes),
        TEST(good_mipmaps), TEST(good_textures),       TEST(good_linear_textures),
    };
    return cmocka_run_group_tests(tests, rt_testing_start, NULL);
}
