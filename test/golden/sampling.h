// SPDX-License-Identifier: MIT
// Cases of texture and surface instructions: a resource, a texture object or surface, an instruction, and
// coordinates.
//
// A case is run by one kernel: thread i loads the eight words of row i, executes the instruction and stores
// the four words that it wrote. The contents of the resource and of the rows follow from the case by a fixed
// rule.
#ifndef MOAT_TEST_GOLDEN_SAMPLING_H
#define MOAT_TEST_GOLDEN_SAMPLING_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda_api.h"
#include "exec/scalar_half.h"

enum { SAMPLING_IN = 8, SAMPLING_OUT = 4, SAMPLING_ROWS = 1024, SAMPLING_LEVELS = 8 };

enum shape {
    SHAPE_1D,
    SHAPE_2D,
    SHAPE_3D,
    SHAPE_A1D,
    SHAPE_A2D,
    SHAPE_CUBE,
    SHAPE_ACUBE,
    SHAPE_LINEAR,
    SHAPE_PITCH
};

// What the texels hold.
enum fill {
    FILL_RANDOM,
    FILL_STEPS,  // 0 and 1 in turn, as floats: a filter's result is its weight
    FILL_INDEX,  // the texel's number
    FILL_WIDE,   // floats of all sizes
    FILL_LEVEL,  // the number of the level, as a float
};

// What a word of a row holds.
enum word {
    WORD_NONE,
    WORD_X,  // a coordinate along the width, the height, the depth
    WORD_Y,
    WORD_Z,
    WORD_IX,  // the same as integers
    WORD_IY,
    WORD_IZ,
    WORD_BX,  // the same in bytes
    WORD_LAYER,
    WORD_FACE,  // of all faces of all layers
    WORD_DIRECTION,
    WORD_LEVEL,
    WORD_GRADIENT,
    WORD_BITS,
    WORD_ROW,  // the row's number
};

struct sampling {
    char name[128];
    enum shape shape;
    unsigned width, height, depth, levels;  // depth: of layers, without a cube's faces
    CUarray_format format;
    unsigned channels, array_flags;
    enum fill fill;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view, surface;
    bool shows;  // what the array holds afterwards is the result
    char code[256];
    uint8_t words[SAMPLING_IN];
    unsigned rows;
};

struct samplings {
    struct sampling *items;
    size_t n, room;
};

static uint32_t sampling_hash(uint32_t a, uint32_t b)
{
    uint64_t h = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t sampling_seed(const struct sampling *s)
{
    uint32_t h = 1;
    for (const char *c = s->name; *c; c++)
        h = sampling_hash(h, (unsigned char)*c);
    return h;
}

static uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

// [0, 1), with 24 bits.
static float unit(uint32_t h)
{
    return (float)(h >> 8) * 0x1p-24f;
}

// --- sizes ------------------------------------------------------------------------------------------------

static unsigned format_bytes(CUarray_format f)
{
    switch (f) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    default: return 4;
    }
}

static unsigned sampling_element(const struct sampling *s)
{
    return format_bytes(s->format) * s->channels;
}

static unsigned at_level(unsigned size, unsigned level)
{
    return size >> level ? size >> level : 1;
}

// Rows of texels and slices of them in a level.
static unsigned sampling_height(const struct sampling *s, unsigned level)
{
    bool flat = s->shape == SHAPE_1D || s->shape == SHAPE_A1D || s->shape == SHAPE_LINEAR;
    return flat ? 1 : at_level(s->height, level);
}

static unsigned sampling_slices(const struct sampling *s, unsigned level)
{
    switch (s->shape) {
    case SHAPE_3D: return at_level(s->depth, level);
    case SHAPE_A1D:
    case SHAPE_A2D: return s->depth;
    case SHAPE_CUBE: return 6;
    case SHAPE_ACUBE: return 6 * s->depth;
    default: return 1;
    }
}

static size_t sampling_bytes(const struct sampling *s, unsigned level)
{
    return (size_t)at_level(s->width, level) * sampling_height(s, level) * sampling_slices(s, level) *
           sampling_element(s);
}

// --- texels -----------------------------------------------------------------------------------------------

static float texel_float(const struct sampling *s, unsigned level, uint32_t i, uint32_t h)
{
    switch (s->fill) {
    case FILL_LEVEL: return (float)level;
    case FILL_STEPS: return (float)(i / s->channels & 1);
    case FILL_INDEX: return (float)(i / s->channels);
    case FILL_WIDE: return ldexpf(unit(h) + 1, (int)(h & 15) - 8) * (h & 16 ? -1 : 1);
    default: return unit(h) * 2 - 1;
    }
}

static void sampling_texels(const struct sampling *s, unsigned level, void *to)
{
    uint32_t seed = sampling_hash(sampling_seed(s), level),
             n = (uint32_t)(sampling_bytes(s, level) / format_bytes(s->format));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t h = sampling_hash(seed, i), value = s->fill == FILL_INDEX ? i / s->channels : h;
        if (s->format == CU_AD_FORMAT_FLOAT)
            ((uint32_t *)to)[i] = float_bits(texel_float(s, level, i, h));
        else if (s->format == CU_AD_FORMAT_HALF)
            ((uint16_t *)to)[i] = half_from_f32(texel_float(s, level, i, h));
        else if (format_bytes(s->format) == 4)
            ((uint32_t *)to)[i] = value;
        else if (format_bytes(s->format) == 2)
            ((uint16_t *)to)[i] = (uint16_t)value;
        else
            ((uint8_t *)to)[i] = (uint8_t)value;
    }
}

// --- coordinates ------------------------------------------------------------------------------------------

static float strange(unsigned row)
{
    static const float values[] = {0.0f,   -0.0f,    0.5f,      1.0f,      -0.5f,     -1.0f, 1.5f,
                                   2.0f,   0x1p-30f, -0x1p-30f, 0x1p-130f, 1e6f,      -1e6f, 1e10f,
                                   -1e10f, 3e38f,    -3e38f,    INFINITY,  -INFINITY, NAN};
    return values[row % (sizeof values / sizeof *values)];
}

static float coordinate(const struct sampling *s, unsigned row, uint32_t h, unsigned size)
{
    bool normal = s->texture.flags & CU_TRSF_NORMALIZED_COORDINATES;
    float scale = normal ? 1 : (float)size, value;
    if (row < 64)
        return row & 1 ? strange(h % 20) : strange(row / 2);
    switch (row % 4) {
    case 0: return (unit(h) * 4 - 1.5f) * scale;
    case 1:  // a few steps from where one texel ends
        value = (float)(h % (4 * size)) / 2 - (float)(size / 2);
        return bits_float(float_bits(normal ? value / (float)size : value) + (h >> 16) % 9 - 4);
    case 2:  // of a 512th part of a texel
        value = (float)(h % (512 * size)) / 512;
        return normal ? value / (float)size : value;
    default: return unit(h) * scale;
    }
}

static uint32_t integer(uint32_t h, unsigned size)
{
    return h % 16 ? h / 16 % size : h / 16 % (3 * size) - size;
}

static unsigned axis_size(const struct sampling *s, unsigned axis)
{
    return axis == 0 ? s->width : axis == 1 ? (s->height ? s->height : 1) : s->depth ? s->depth : 1;
}

// In a store, no two rows go to the same place: the last ones go outside.
static uint32_t store_place(const struct sampling *s, unsigned row, uint32_t h, enum word what)
{
    unsigned size = what == WORD_FACE    ? sampling_slices(s, 0)
                    : what == WORD_LAYER ? axis_size(s, 2)
                    : what == WORD_BX    ? s->width
                                         : axis_size(s, what - WORD_IX);
    if (what != WORD_BX && what != WORD_IX)
        return row < 11 ? h % size : size;
    uint32_t x = row < 9 ? row + 1 : row == 9 ? (uint32_t)-2 : row == 10 ? size + 2 : 10;
    return what == WORD_BX && row == 10 && size < 12 ? size * sampling_element(s)
           : what == WORD_BX                         ? x * sampling_element(s)
                                                     : x;
}

static uint32_t sampling_word(const struct sampling *s, unsigned row, unsigned word)
{
    uint32_t h = sampling_hash(sampling_seed(s) + word, row);
    enum word what = s->words[word];
    if (s->shows && what >= WORD_IX && what <= WORD_FACE)
        return store_place(s, row, h, what);
    switch (what) {
    case WORD_X:
    case WORD_Y:
    case WORD_Z: return float_bits(coordinate(s, row, h, axis_size(s, what - WORD_X)));
    case WORD_IX:
    case WORD_IY:
    case WORD_IZ: return integer(h, axis_size(s, what - WORD_IX));
    case WORD_BX: return integer(h, s->width) * sampling_element(s);
    case WORD_LAYER: return integer(h, s->depth ? s->depth : 1);
    case WORD_FACE: return integer(h, sampling_slices(s, 0));
    case WORD_DIRECTION:
        if (row < 64)
            return float_bits((float)((int)(h % 5) - 2) / 2);
        return row < 80 ? float_bits(strange(h % 20)) : float_bits((unit(h) * 2 - 1) * (row & 1 ? 1 : 10));
    case WORD_LEVEL: return float_bits(row < 40 ? strange(row / 2) : unit(h) * ((float)s->levels + 2) - 1);
    case WORD_GRADIENT: return float_bits(ldexpf(unit(h) * 2 - 1, -(int)(h % 8)));
    case WORD_BITS: return h;
    case WORD_ROW: return row;
    default: return 0;
    }
}

#endif
