// SPDX-License-Identifier: MIT
// Which tensor maps can be made. src/exec/tensor_test.c tests what they do.
#include "cpu/whole_testing.h"
#include "exec/tensor.h"

struct request {
    CUtensorMapDataType type;
    cuuint32_t rank;
    uintptr_t address;
    cuuint64_t dims[5], strides[4];
    cuuint32_t box[5], steps[5];
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

static CUtensorMap map;

static struct request usual(void)
{
    return (struct request){.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                            .rank = 3,
                            .address = 0x10000,
                            .dims = {100, 50, 20},
                            .strides = {208, 208 * 50},
                            .box = {64, 32, 2},
                            .steps = {1, 1, 1},
                            .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
}

static CUresult encode(const struct request *q)
{
    return cuTensorMapEncodeTiled(&map, q->type, q->rank, (void *)q->address, q->dims, q->strides, q->box,
                                  q->steps, q->interleave, q->swizzle, q->promotion, q->fill);
}

static void good_map(void **state)
{
    struct request q = usual();
    struct tensor_map m;
    q.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
    OK(encode(&q));
    memcpy(&m, &map, sizeof m);
    assert_true(m.rank == 3 && m.type == TENSOR_F16 && m.swizzle == 3 && m.nan_fill && m.address == 0x10000);
    assert_true(m.stride[0] == 2 && m.stride[1] == 208 && m.stride[2] == 208 * 50);
    assert_true(m.last[0] == 99 && m.last[2] == 19 && m.box[1] == 32 && m.step[2] == 1);
    OK(cuTensorMapReplaceAddress(&map, (void *)0x20000));
    memcpy(&m, &map, sizeof m);
    assert_int_equal(m.address, 0x20000);
    // One dimension has no strides.
    q.rank = 1;
    OK(cuTensorMapEncodeTiled(&map, q.type, 1, (void *)q.address, q.dims, NULL, q.box, q.steps, 0, 0, 0, 0));
}

static CUresult columns(cuuint32_t rank, const int *lower, const int *upper, cuuint32_t channels,
                        cuuint32_t pixels)
{
    struct request q = usual();
    q.dims[3] = q.dims[4] = 2;
    q.strides[2] = q.strides[3] = 208 * 1000;
    q.steps[3] = q.steps[4] = 1;
    return cuTensorMapEncodeIm2col(&map, q.type, rank, (void *)q.address, q.dims, q.strides, lower, upper,
                                   channels, pixels, q.steps, q.interleave, q.swizzle, q.promotion, q.fill);
}

static void good_columns(void **state)
{
    struct tensor_map m;
    OK(columns(4, (int[]){-1, -2}, (int[]){-3, 4}, 64, 1024));
    memcpy(&m, &map, sizeof m);
    assert_true(m.rank == 4 && m.by_columns && m.box[0] == 64 && m.box[1] == 1024 && m.box[2] == 1);
    assert_true(m.lower[0] == -1 && m.lower[1] == -2 && m.upper[0] == -3 && m.upper[1] == 4);
    OK(columns(3, (int[]){-1000}, (int[]){1000}, 64, 1));
}

static void bad_columns(void **state)
{
    const int zero[3] = {0}, far[3] = {-129, 0, 0}, less[3] = {-50, 0, 0}, more[3] = {16, 0, 0};
    IS(CUDA_ERROR_INVALID_VALUE, columns(2, zero, zero, 64, 16));
    IS(CUDA_ERROR_INVALID_VALUE, columns(4, far, zero, 64, 16));
    IS(CUDA_ERROR_INVALID_VALUE, columns(5, zero, more, 64, 16));
    IS(CUDA_ERROR_INVALID_VALUE, columns(4, zero, less, 64, 16));
    IS(CUDA_ERROR_INVALID_VALUE, columns(4, NULL, zero, 64, 16));
    IS(CUDA_ERROR_INVALID_VALUE, columns(4, zero, zero, 64, 1025));
    IS(CUDA_ERROR_INVALID_VALUE, columns(4, zero, zero, 65, 16));
    IS(CUDA_ERROR_INVALID_VALUE, columns(4, zero, zero, 128, 16));
}

static void bad_maps(void **state)
{
#define TRY(change)                               \
    do {                                          \
        struct request q = usual();               \
        change;                                   \
        IS(CUDA_ERROR_INVALID_VALUE, encode(&q)); \
    } while (0)
    TRY(q.rank = 0);
    TRY(q.rank = 6);
    TRY(q.address = 0);
    TRY(q.address = 0x10008);
    TRY(q.dims[1] = 0);
    TRY(q.dims[1] = (UINT64_C(1) << 32) + 1);
    TRY(q.strides[1] = 1000);
    TRY(q.strides[0] = UINT64_C(1) << 40);
    TRY(q.box[2] = 0);
    TRY(q.box[2] = 257);
    TRY(q.box[0] = 63);   // not a multiple of 16 bytes
    TRY(q.box[0] = 128);  // more than the span
    TRY(q.steps[0] = 9);
    TRY(q.steps[0] = 0);
    TRY(q.type = (CUtensorMapDataType)16);
    TRY(q.promotion = (CUtensorMapL2promotion)4);
    TRY(q.type = CU_TENSOR_MAP_DATA_TYPE_UINT16; q.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    struct request q = usual();
    q.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
    IS(CUDA_ERROR_NOT_SUPPORTED, encode(&q));
    memset(&map, 0, sizeof map);
    IS(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(&map, (void *)0x20000));
    IS(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(NULL, (void *)0x20000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_map), cmocka_unit_test(good_columns),
                                       cmocka_unit_test(bad_columns), cmocka_unit_test(bad_maps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
