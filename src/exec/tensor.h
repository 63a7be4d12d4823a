// SPDX-License-Identifier: MIT
// Copies of boxes of tensors between global and shared memory: cp.async.bulk.tensor and related instructions.
//
// A tensor map describes an array of up to five dimensions in global memory, innermost first, and a box of
// it. In shared memory a box is contiguous, except that its 16-byte pieces may be permuted (swizzle), and
// that rows shorter than the span of the swizzle lie a span apart, with gaps that are not touched.
//
// In im2col mode (by_columns) the dimensions are channels, one to three dimensions of an image, and images. A
// box is box[0] channels of box[1] pixels; successive pixels are `step` apart within a bounding box of the
// image, and then continue in the next image. An instruction gives the first pixel, and the offset by which
// all pixels are shifted.
#ifndef MOAT_EXEC_TENSOR_H
#define MOAT_EXEC_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/warp.h"

enum {
    TENSOR_RANK = 5,
    TENSOR_MAGIC = 0x706d746d,
    TENSOR_BOX_MOST = 256,      // elements in a dimension of a box
    TENSOR_PIXELS_MOST = 1024,  // pixels of an im2col box
    TENSOR_IMAGE_DIMS = 3,      // dimensions of an image
    TENSOR_STEP_MOST = 8,
    TENSOR_BYTES_MOST = 1 << 18,  // of a box: more than shared memory has
};

enum tensor_type {  // as the driver numbers them
    TENSOR_U8,
    TENSOR_U16,
    TENSOR_U32,
    TENSOR_S32,
    TENSOR_U64,
    TENSOR_S64,
    TENSOR_F16,
    TENSOR_F32,
    TENSOR_F64,
    TENSOR_BF16,
    TENSOR_F32_FTZ,
    TENSOR_TF32,
    TENSOR_TF32_FTZ,
    TENSOR_TYPES,
};

// The application keeps this as its opaque 128 bytes and passes it to kernels.
struct tensor_map {
    uint32_t magic;
    uint8_t rank, type, swizzle;  // swizzle: 0, or 1 to 3 for 32, 64, 128 bytes
    uint8_t nan_fill;             // 1: elements outside the tensor read as NaN, not 0
    // CUTLASS and Triton clear bit 21 of these 8 bytes in a finished map of drivers up to 13.1.
    uint64_t unused;
    uint64_t address;
    uint64_t stride[TENSOR_RANK];  // bytes; stride[0] is the element's size
    uint32_t last[TENSOR_RANK];    // elements of each dimension - 1
    uint16_t box[TENSOR_RANK];     // elements
    uint8_t step[TENSOR_RANK];     // the box takes every step-th element
    uint8_t by_columns;
    int16_t lower[TENSOR_IMAGE_DIMS];  // im2col: the bounding box's first pixel
    int16_t upper[TENSOR_IMAGE_DIMS];  // im2col: its last pixel, relative to the image's last
};
_Static_assert(sizeof(struct tensor_map) <= 128, "the application has room for this much");

unsigned tensor_type_bytes(enum tensor_type type);

enum tensor_kind { TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE };

struct tensor_lane {
    uint8_t kind, rank;
    bool signals, multicast, by_columns;
    uint32_t at[TENSOR_RANK];            // slots of the coordinates
    uint32_t offset[TENSOR_IMAGE_DIMS];  // im2col: 16-bit slots of the pixel offsets
    uint8_t noffsets;
    uint32_t blocks;  // multicast: slot with the mask of the cluster's blocks
    uint32_t op;      // enum atomic_op
};

// ptr: struct tensor_lane. Addresses: i + 1 shared memory, i + 2 the map, i + 3 no address but the flags of
// the accesses to global memory, i + 4 the mbarrier, if there is one.
exec_fn tensor_copy;

// tensormap.replace: sets a field of the map at i + 1. flags: the field; b: the value, 64 bits; lo: the
// dimension, if the field has several.
enum tensor_field {
    TENSOR_FIELD_ADDRESS,
    TENSOR_FIELD_RANK,
    TENSOR_FIELD_BOX,
    TENSOR_FIELD_DIM,
    TENSOR_FIELD_STRIDE,
    TENSOR_FIELD_STEP,
    TENSOR_FIELD_TYPE,
    TENSOR_FIELD_INTERLEAVE,
    TENSOR_FIELD_SWIZZLE,
    TENSOR_FIELD_FILL,
    TENSOR_FIELDS,
};
exec_fn tensor_replace;
exec_fn tensor_copy_map;  // tensormap.cp_fenceproxy: copies 128 bytes from i + 2 to i + 1

#endif
