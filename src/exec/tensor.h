// SPDX-License-Identifier: MIT
// Boxes of tensors between global and shared memory: cp.async.bulk.tensor and its kin, by tiles.
//
// A tensor map describes an array of up to five dimensions in global memory, the innermost first, and a box of it. In
// shared memory a box lies without gaps, but for its 16-byte pieces, which may be exchanged (swizzle).
//
// By columns (im2col) the dimensions are channels, one to three of a picture, and pictures. A box is box[0] channels of
// box[1] pixels, which follow each other, `step` apart, within a part of the picture, and then in the next picture; an
// instruction gives the first pixel, and by how much all of them are shifted.
#ifndef MOAT_EXEC_TENSOR_H
#define MOAT_EXEC_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/warp.h"

enum {
    TENSOR_RANK = 5,
    TENSOR_MAGIC = 0x706d746d,
    TENSOR_BOX_MOST = 256,      // elements in a dimension of a box
    TENSOR_PIXELS_MOST = 1024,  // of a box by columns
    TENSOR_PICTURE = 3,         // dimensions
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

// What the application keeps as its opaque 128 bytes, and passes to kernels.
struct tensor_map {
    uint32_t magic;
    uint8_t rank, type, swizzle;  // swizzle: 0, or 1 to 3 for 32, 64, 128 bytes
    uint8_t nan_fill;             // 1: what lies outside is a NaN, not 0
    uint64_t address;
    uint64_t stride[TENSOR_RANK];  // bytes; the first is the element's size
    uint32_t last[TENSOR_RANK];    // elements of each dimension, less 1
    uint16_t box[TENSOR_RANK];     // elements
    uint8_t step[TENSOR_RANK];     // every so many elements of the box are taken
    uint8_t by_columns;
    int16_t lower[TENSOR_PICTURE];  // by columns: the first pixel's place in the part of the picture
    int16_t upper[TENSOR_PICTURE];  // and the last one's, from the picture's last
};
_Static_assert(sizeof(struct tensor_map) <= 128, "the application has room for this much");

unsigned tensor_type_bytes(enum tensor_type type);

enum tensor_way { TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE };

struct tensor_lane {
    uint8_t way, rank;
    bool signals, multicast, by_columns;
    uint32_t at[TENSOR_RANK];     // slots of the coordinates
    uint32_t by[TENSOR_PICTURE];  // by columns: slots of 16 bits of how far pixels are shifted
    uint8_t nby;
    uint32_t blocks;  // multicast: slot of the blocks of the cluster
    uint32_t op;      // enum atomic_op
};

// ptr: struct tensor_lane; addresses: i + 1 in shared memory, i + 2 of the map, i + 3 of nothing, with the flags of the
// accesses to global memory, i + 4 of the barrier, if there is one.
exec_fn tensor_copy;

// tensormap.replace: a field of the map at i + 1. flags: which; b: the value, 64 bits; lo: the dimension, if it has several.
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
exec_fn tensor_copy_map;  // tensormap.cp_fenceproxy: 128 bytes; i + 1 to, i + 2 from

#endif
