// SPDX-License-Identifier: MIT
// A launch as a person writes it, in CUDA's syntax:
//
//   scale<<<4096,256>>>(*4000, 2.0, 1000)
//   blur<<<(64,64),(16,16),2k>>>(*1M, *1M+512, {1024, 768, *64})
//
//   launch  kernel <<< shape , shape [, bytes] >>> ( [value {, value}] )
//   shape   N, or (x), (x,y), (x,y,z), also after the word dim3
//   bytes   of dynamic shared memory: N, with k, M or G for 2^10, 2^20 and 2^30
//   value   an integer, as C writes it: 1000, -1, 0xff; or true, false
//           a number with a point, exponent or f: 2.0, 1e-3, .5f; or inf, nan
//           a pointer: *BYTES, to the start of a buffer of that many bytes; *BYTES+N, to byte N of one; *, to
//           a buffer of unknown size; null or nullptr
//           a structure: {value, value, ...}, laid out as C does: integers have 4 bytes, with l or ll 8, with
//           :1, :2, :4 or :8 so many; numbers with a point have 8, with f 4; pointers have 8
//
// launch_bind.h lays the values out as a kernel's parameters.
#ifndef MOAT_FLOW_LAUNCH_TEXT_H
#define MOAT_FLOW_LAUNCH_TEXT_H

#include "base/diag.h"
#include "base/str.h"

enum { LAUNCH_TEXT_VALUES = 1024 };

enum launch_text_kind {
    LAUNCH_TEXT_INT,
    LAUNCH_TEXT_FLOAT,
    LAUNCH_TEXT_POINTER,
    LAUNCH_TEXT_NULL,
    LAUNCH_TEXT_STRUCT,  // its members follow it
};

struct launch_text_value {
    uint8_t kind;
    uint8_t bytes;      // inside a structure
    bool negative;      // INT: the bits are those of a negative number
    bool sized;         // POINTER: the size of its buffer is known
    uint32_t pos, len;  // in the text
    uint32_t members;   // STRUCT: how many values follow that are its own, those of inner structures included
    uint64_t bits;      // INT
    double number;      // FLOAT
    uint64_t size, into;  // POINTER: bytes of its buffer, and where in it
};

struct launch_text {
    struct diag_source source;
    struct str kernel;  // as written, without blanks at its ends
    uint32_t kernel_pos;
    uint32_t grid[3], block[3], shared;
    uint32_t nvalues;   // of which those inside structures are not arguments
    uint32_t args_pos;  // of the opening parenthesis
    struct launch_text_value values[LAUNCH_TEXT_VALUES];
};

// Reads a text, which must outlive *out. Returns 0, or -EINVAL after a report that has the place in the text.
int launch_text_read(struct str text, struct diag_sink *sink, struct launch_text *out);

#endif
