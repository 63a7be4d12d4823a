// SPDX-License-Identifier: MIT
// Tensor maps. What is recorded here is compared with the buffers when a map is passed to a kernel. A map
// that says more than its buffer has is no error: kernels may use a part of it, and some libraries encode
// maps whose sizes they replace later. One of a freed buffer is reported at once.
#include "base/cancel.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "mode/mode.h"
#include "track/guard_report.h"
#include "track/stack.h"
#include "track/encoded_map.h"
#include "track/track.h"

// What all calls that encode a map are given.
struct given {
    CUtensorMapDataType type;
    cuuint32_t rank;
    const void *address;
    const cuuint64_t *dims, *strides;
    const cuuint32_t *steps;
    CUtensorMapInterleave interleave;
};

// Returns 0 for types whose elements are not whole bytes.
static uint32_t element_of(CUtensorMapDataType type)
{
    static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return (unsigned)type < sizeof bytes ? bytes[type] : 0;
}

static struct encoded_map describe(enum driver_id call, const struct given *g)
{
    struct encoded_map about = {.address = (uintptr_t)g->address,
                                .rank = g->rank,
                                .element = g->interleave ? 0 : element_of(g->type),
                                .made_by = call};
    for (cuuint32_t i = 0; i < g->rank && i < ENCODED_MAP_RANK; i++) {
        about.size[i] = g->dims[i];
        about.stride[i] = i ? g->strides[i - 1] : about.element;
    }
    encoded_map_measure(&about);
    return about;
}

// Reports a map of memory that was freed.
static void judge(enum driver_id call, uint64_t address)
{
    unsigned section = epoch_enter();
    const struct track_block *b =
        track_announced(address) || track_live(address) ? NULL : track_freed(address);
    bool freed = b;
    struct guard_finding f = {.type = REPORT_USE_AFTER_FREE,
                              .call = call,
                              .address = address,
                              .access = REPORT_NO_ACCESS,
                              .note = "a tensor map is made of it"};
    if (freed)
        f.buffers[f.nbuffers++] = track_copy(b, true);
    epoch_leave(section);
    if (freed && guard.watching)
        guard_report_finding(&f);
}

// Records a map that the driver has made.
static void made(const CUtensorMap *map, struct encoded_map *about)
{
    cancel_hold();
    about->made_stack = stack_capture(NULL, (unsigned)guard.options.stack_depth);
    encoded_map_add(map, about);
    judge(about->made_by, about->address);
    cancel_release();
}

CUresult hook_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                     void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                     const cuuint32_t *box, const cuuint32_t *steps,
                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CUresult r = guard.real.cuTensorMapEncodeTiled(map, type, rank, address, dims, strides, box, steps,
                                                   interleave, swizzle, promotion, fill);
    if (r)
        return r;
    const struct given g = {type, rank, address, dims, strides, steps, interleave};
    struct encoded_map about = describe(DRIVER_cuTensorMapEncodeTiled, &g);
    uint64_t bytes = about.element;
    for (cuuint32_t i = 0; i < rank && i < ENCODED_MAP_RANK; i++) {
        // The step of the first dimension is ignored. Of a box with steps, only the first element is known to
        // be used.
        uint32_t step = i && steps[i] ? steps[i] : 1;
        about.box[i] = step == 1 ? box[i] - 1 : 0;
        bytes *= (box[i] + step - 1) / step;
    }
    about.box_bytes = rank && steps[0] == 1 && bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
    about.box_row = rank ? box[0] * about.element : 0;
    about.box_span = encoded_map_span(swizzle);
    made(map, &about);
    mode_tensor(map, &(struct mode_tensor){type, rank, about.address, dims, strides, box, steps, false, false,
                                           about.box_span});
    return r;
}

CUresult hook_cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                      void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                      const int *lower, const int *upper, cuuint32_t channels,
                                      cuuint32_t pixels, const cuuint32_t *steps,
                                      CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CUresult r =
        guard.real.cuTensorMapEncodeIm2col(map, type, rank, address, dims, strides, lower, upper, channels,
                                           pixels, steps, interleave, swizzle, promotion, fill);
    if (r)
        return r;
    const struct given g = {type, rank, address, dims, strides, steps, interleave};
    struct encoded_map about = describe(DRIVER_cuTensorMapEncodeIm2col, &g);
    uint64_t bytes = (uint64_t)about.element * channels * pixels;
    about.box[0] = channels - 1;
    about.box_bytes = bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
    about.box_row = channels * about.element;
    about.box_span = encoded_map_span(swizzle);
    made(map, &about);
    const cuuint32_t box[ENCODED_MAP_RANK] = {channels, pixels, 1, 1, 1};
    mode_tensor(map, &(struct mode_tensor){type, rank, about.address, dims, strides, box, NULL, true, false,
                                           about.box_span});
    return r;
}

CUresult hook_cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                          void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                          int lower, int upper, cuuint32_t channels, cuuint32_t pixels,
                                          const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                          CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                          CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CUresult r = guard.real.cuTensorMapEncodeIm2colWide(map, type, rank, address, dims, strides, lower, upper,
                                                        channels, pixels, steps, interleave, mode, swizzle,
                                                        promotion, fill);
    if (r)
        return r;
    const struct given g = {type, rank, address, dims, strides, steps, interleave};
    struct encoded_map about = describe(DRIVER_cuTensorMapEncodeIm2colWide, &g);
    made(map, &about);
    return r;
}

CUresult hook_cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    struct encoded_map about;
    bool known = map && encoded_map_find(map, &about);
    CUresult r = guard.real.cuTensorMapReplaceAddress(map, address);
    if (r || !known)
        return r;
    about.address = (uintptr_t)address;
    about.made_by = DRIVER_cuTensorMapReplaceAddress;
    made(map, &about);
    if (!about.bytes || !about.box_bytes)
        return r;
    // A row of as many bytes has the same bounds.
    const cuuint64_t dims[] = {about.bytes, 1}, stride = 0;
    const cuuint32_t box[] = {about.box_row, about.box_bytes / about.box_row};
    mode_tensor(map, &(struct mode_tensor){CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, about.address, dims, &stride,
                                           box, NULL, false, true, about.box_span});
    return r;
}
