// SPDX-License-Identifier: MIT
// Video instructions: arithmetic on parts of registers. Internal to src/exec.
#ifndef MOAT_EXEC_VIDEO_H
#define MOAT_EXEC_VIDEO_H

#include "exec/warp.h"

enum video_op {
    VIDEO_ADD,
    VIDEO_SUB,
    VIDEO_ABSDIFF,
    VIDEO_MIN,
    VIDEO_MAX,
    VIDEO_SHL,
    VIDEO_SHR,
    VIDEO_AVRG,
    VIDEO_SET,
    VIDEO_MAD,  // video_mad
};

enum video_compare { VIDEO_EQ, VIDEO_NE, VIDEO_LT, VIDEO_LE, VIDEO_GT, VIDEO_GE };

// What .sat does to a result.
enum video_limit {
    VIDEO_NO_LIMIT,
    VIDEO_CLAMP,         // to the type's range
    VIDEO_NOT_NEGATIVE,  // at least 0
    VIDEO_AT_MOST,       // at most the type's greatest value, which also replaces negative results
    VIDEO_SHIFTED,       // truncated to 34 bits, then clamped to a word of that signedness
};

// How a result is combined with c, which provides the bits of d that no result has.
enum video_then { VIDEO_PUT, VIDEO_THEN_ADD, VIDEO_THEN_MIN, VIDEO_THEN_MAX };

struct video_type {
    uint8_t bits;  // 8, 16 or 32
    bool is_signed;
};

struct video_part {
    uint8_t from[2];  // first bit of each source, in the 64 bits b:a
    uint8_t shift;    // VIDEO_PUT: left shift
    uint32_t mask;    // bits of d that it writes
};

struct video {
    uint8_t op, compare, limit, then;
    bool wraps;  // shifts: by b modulo 32; otherwise by at most 32
    struct video_type source[2], result;
    uint8_t nparts;
    struct video_part parts[4];
};

struct video_mad {
    struct video_type source[2], result;
    uint8_t from[2];
    uint8_t limit;
    bool negates_product, negates_c, plus_one;  // at most one is set
    uint8_t shift;                              // right shift
};

exec_fn video_parts;  // d, a, b, c: 32 bits; ptr: struct video
exec_fn video_mad;    // the same; ptr: struct video_mad

#endif
