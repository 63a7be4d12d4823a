// SPDX-License-Identifier: MIT
// Tensor maps: what an application describes, checked, as the engine wants it.
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
};

static bool is_float(CUtensorMapDataType type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

static bool good_sizes(const struct description *q)
{
    for (cuuint32_t k = 0; k < q->rank; k++)
        if (!q->dims[k] || q->dims[k] > MOST_DIM || !q->box[k] || q->box[k] > TENSOR_BOX_MOST ||
            !q->steps[k] || q->steps[k] > TENSOR_STEP_MOST)
            return false;
    for (cuuint32_t k = 0; k + 1 < q->rank; k++)
        if (q->strides[k] % ALIGN || q->strides[k] >= MOST_STRIDE)
            return false;
    return true;
}

// The span within which pieces are exchanged holds a row of the box.
static bool good_row(const struct description *q, unsigned size)
{
    unsigned bytes = (q->box[0] + q->steps[0] - 1) / q->steps[0] * size;
    return bytes % ALIGN == 0 && (!q->swizzle || bytes <= 16u << q->swizzle);
}

static CUresult check(const struct description *q)
{
    unsigned size = tensor_type_bytes((enum tensor_type)q->type);
    if ((unsigned)q->type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || !q->rank || q->rank > TENSOR_RANK ||
        !q->address || (uintptr_t)q->address % ALIGN || !q->dims || (q->rank > 1 && !q->strides) || !q->box ||
        !q->steps || (unsigned)q->interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
        (unsigned)q->swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B || (unsigned)q->fill > 1 || !good_sizes(q))
        return CUDA_ERROR_INVALID_VALUE;
    if (!size || q->interleave || q->swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return not_supported("a tensor map that is packed or interleaved");
    if (!good_row(q, size) || (q->fill && !is_float(q->type)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    struct description q = {type, rank, address, dims, strides, box, steps, interleave, swizzle, fill};
    if (!out || (uintptr_t)out % 64 || (unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = check(&q);
    if (r)
        return r;
    struct tensor_map m = {.magic = TENSOR_MAGIC,
                           .rank = (uint8_t)rank,
                           .type = (uint8_t)type,
                           .swizzle = (uint8_t)swizzle,
                           .nan_fill = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
                           .address = (uintptr_t)address};
    m.stride[0] = tensor_type_bytes((enum tensor_type)type);
    for (cuuint32_t k = 0; k < rank; k++) {
        if (k)
            m.stride[k] = strides[k - 1];
        m.last[k] = (uint32_t)(dims[k] - 1);
        m.box[k] = (uint16_t)box[k];
        m.step[k] = (uint8_t)steps[k];
    }
    memset(out, 0, sizeof *out);
    memcpy(out, &m, sizeof m);
    return CUDA_SUCCESS;
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
