// SPDX-License-Identifier: MIT
// Tensor maps: descriptions of the application, checked and converted for the engine.
#include <string.h>

#include "cpu/cpu.h"
#include "exec/tensor.h"

enum { ALIGN = 16 };
#define MOST_DIM (UINT64_C(1) << 32)
#define MOST_STRIDE (UINT64_C(1) << 40)

struct description {
    CUtensorMapDataType type;
    cuuint32_t rank;
    const void *address;
    const cuuint64_t *dims, *strides;
    const cuuint32_t *box, *steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapFloatOOBfill fill;
    // im2col: box is {channels, pixels, 1, ...}.
    bool by_columns;
    const int *lower, *upper;
};

static bool is_float(CUtensorMapDataType type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

static bool good_sizes(const struct description *q)
{
    for (cuuint32_t k = 0; k < q->rank; k++) {
        unsigned most = q->by_columns && k == 1 ? TENSOR_PIXELS_MOST : TENSOR_BOX_MOST;
        if (!q->dims[k] || q->dims[k] > MOST_DIM || !q->box[k] || q->box[k] > most || !q->steps[k] ||
            q->steps[k] > TENSOR_STEP_MOST)
            return false;
    }
    for (cuuint32_t k = 0; k + 1 < q->rank; k++)
        if (q->strides[k] % ALIGN || q->strides[k] >= MOST_STRIDE)
            return false;
    return true;
}

// Checks the corners of the bounding box: they must be within the offsets of an instruction, and the box must
// not be empty.
static bool good_part(const struct description *q)
{
    static const int most[TENSOR_RANK + 1] = {[3] = 32768, [4] = 128, [5] = 16};
    if (!q->by_columns)
        return true;
    if (q->rank < 3 || !q->lower || !q->upper)
        return false;
    for (cuuint32_t k = 0; k < q->rank - 2; k++) {
        int m = most[q->rank];
        int64_t pixels = (int64_t)q->dims[k + 1] + q->upper[k] - q->lower[k];
        if (q->lower[k] < -m || q->lower[k] >= m || q->upper[k] < -m || q->upper[k] >= m || pixels <= 0)
            return false;
    }
    return true;
}

// Checks the size of a row of the box: a multiple of 16 bytes, and within the span of the swizzle.
static bool good_row(const struct description *q, unsigned size)
{
    unsigned step = q->by_columns ? 1 : q->steps[0], bytes = (q->box[0] + step - 1) / step * size;
    return bytes % ALIGN == 0 && (!q->swizzle || bytes <= 16u << q->swizzle);
}

static CUresult check(const struct description *q)
{
    unsigned size = tensor_type_bytes((enum tensor_type)q->type);
    if ((unsigned)q->type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || !q->rank || q->rank > TENSOR_RANK ||
        !q->address || (uintptr_t)q->address % ALIGN || !q->dims || (q->rank > 1 && !q->strides) || !q->box ||
        !q->steps || (unsigned)q->interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
        (unsigned)q->swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B || (unsigned)q->fill > 1 ||
        !good_sizes(q) || !good_part(q))
        return CUDA_ERROR_INVALID_VALUE;
    if (!size || q->interleave || q->swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return not_supported_notify("a tensor map that is packed or interleaved");
    if (!good_row(q, size) || (q->fill && !is_float(q->type)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult encode(CUtensorMap *out, const struct description *q, CUtensorMapL2promotion promotion)
{
    if (!out || (uintptr_t)out % 64 || (unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = check(q);
    if (r)
        return r;
    struct tensor_map m = {.magic = TENSOR_MAGIC,
                           .rank = (uint8_t)q->rank,
                           .type = (uint8_t)q->type,
                           .swizzle = (uint8_t)q->swizzle,
                           .nan_fill = q->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
                           .by_columns = q->by_columns,
                           .address = (uintptr_t)q->address};
    m.stride[0] = tensor_type_bytes((enum tensor_type)q->type);
    for (cuuint32_t k = 0; k < q->rank; k++) {
        if (k)
            m.stride[k] = q->strides[k - 1];
        m.last[k] = (uint32_t)(q->dims[k] - 1);
        m.box[k] = (uint16_t)q->box[k];
        m.step[k] = (uint8_t)(q->by_columns && !k ? 1 : q->steps[k]);
    }
    for (cuuint32_t k = 0; q->by_columns && k < q->rank - 2; k++) {
        m.lower[k] = (int16_t)q->lower[k];
        m.upper[k] = (int16_t)q->upper[k];
    }
    memset(out, 0, sizeof *out);
    memcpy(out, &m, sizeof m);
    return CUDA_SUCCESS;
}

// Describes what maps of both kinds have.
static struct description describe(CUtensorMapDataType type, cuuint32_t rank, const void *address,
                                   const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *steps,
                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                   CUtensorMapFloatOOBfill fill)
{
    return (struct description){.type = type,
                                .rank = rank,
                                .address = address,
                                .dims = dims,
                                .strides = strides,
                                .steps = steps,
                                .interleave = interleave,
                                .swizzle = swizzle,
                                .fill = fill};
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    struct description q = describe(type, rank, address, dims, strides, steps, interleave, swizzle, fill);
    q.box = box;
    return encode(out, &q, promotion);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                 const cuuint64_t *dims, const cuuint64_t *strides, const int *lower,
                                 const int *upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill)
{
    const cuuint32_t box[TENSOR_RANK] = {channels, pixels, 1, 1, 1};
    struct description q = describe(type, rank, address, dims, strides, steps, interleave, swizzle, fill);
    q.box = box;
    q.by_columns = true;
    q.lower = lower;
    q.upper = upper;
    return encode(out, &q, promotion);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    struct tensor_map m;
    if (!map || !address || (uintptr_t)address % ALIGN)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&m, map, sizeof m);
    if (m.magic != TENSOR_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    m.address = (uintptr_t)address;
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}
