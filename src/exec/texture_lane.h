// SPDX-License-Identifier: MIT
// Instructions that read textures and access surfaces. Internal to src/exec.
#ifndef MOAT_EXEC_TEXTURE_LANE_H
#define MOAT_EXEC_TEXTURE_LANE_H

#include "exec/warp.h"

// Slots of tex and tld4.
struct texture_lane {
    uint32_t handle;  // slot of 64 bits
    uint8_t shape, how, gather;
    bool integers;
    uint8_t nplace;  // coordinates, without the layer
    bool has_layer, has_offset, has_resident;
    uint8_t halves;  // f16 results: 1: one per register, 2: two per register
    uint32_t place[3], layer, level, dx[3], dy[3], offset[3];
    uint32_t to[4];
    uint32_t resident;  // slot of a predicate: the texel is resident; always true here
};

// What sm_90 supports; its compiler drops kernels that query anything else.
enum texture_question { TEXTURE_WIDTH, TEXTURE_HEIGHT, TEXTURE_DEPTH };

enum surface_outside { SURFACE_TRAP, SURFACE_CLAMP, SURFACE_ZERO };

// suld, sust and sured. Coordinates are as in texture_lane; x is in bytes unless the access is formatted.
struct surface_lane {
    uint32_t handle;
    uint8_t shape, nplace, outside;
    bool has_layer, stores, formatted;
    bool reduces;  // then `what` is the operation as in atomic.h, without a type if formatted
    uint32_t what;
    uint32_t place[3], layer;
    uint8_t count, bytes;  // values; bytes of each in memory
    uint8_t bits;          // bits of their registers
    uint32_t value[4];
};

exec_fn texture_lane_sample;  // ptr: struct texture_lane
exec_fn texture_lane_query;   // d: result; a: handle; b: level, if any; lo: enum texture_question
exec_fn surface_lane_access;  // ptr: struct surface_lane

enum { TEXTURE_LANE_LEVEL = 1, TEXTURE_LANE_SURFACE = 2 };  // flags of texture_lane_query

#endif
