// SPDX-License-Identifier: MIT
// Textures and surfaces as kernels see them: the object that a 64-bit handle stands for.
//
// A .texref or .surfref of a module is a variable that holds a handle. An instruction that names one, or
// passes its address, uses the handle that it holds.
#ifndef MOAT_EXEC_TEXTURE_H
#define MOAT_EXEC_TEXTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum texture_type {
    TEXTURE_U8,
    TEXTURE_S8,
    TEXTURE_U16,
    TEXTURE_S16,
    TEXTURE_U32,
    TEXTURE_S32,
    TEXTURE_F16,
    TEXTURE_F32,
};

enum texture_mode {
    TEXTURE_WRAP,
    TEXTURE_CLAMP,
    TEXTURE_MIRROR,
    TEXTURE_BORDER
};  // as the driver numbers them

// Slices are the depth of a volume, otherwise layers; a cube has six for each layer.
enum texture_shape {
    TEXTURE_1D,
    TEXTURE_2D,
    TEXTURE_3D,
    TEXTURE_A1D,
    TEXTURE_A2D,
    TEXTURE_CUBE,
    TEXTURE_ACUBE,
    TEXTURE_LINEAR,  // linear memory, by index
};

enum { TEXTURE_LEVELS = 18 };

// Texel (x, y, z) lies at at + z * slice + y * pitch + x * element.
struct texture_level {
    uint64_t at;
    uint32_t width, height, slices;  // at least 1 each
    uint64_t pitch, slice;
};

struct texture {
    uint8_t shape, type, channels, element;  // element: bytes of a texel
    uint8_t mode[3];
    bool surface;
    bool normalized;   // coordinates are normalized
    bool as_integers;  // texels are integers
    bool srgb, linear, linear_levels, seamless;
    bool array;  // the memory is an array's: texture_lose may invalidate it
    uint8_t anisotropy;
    uint8_t nlevels;
    float border[4], bias, least, most;  // least, most: range of levels
    struct texture_level level[TEXTURE_LEVELS];
};

// Registers a copy of t and returns its handle; 0 when out of space. All functions here are thread-safe.
uint64_t texture_add(const struct texture *t);
// No running kernel may use the handle.
void texture_remove(uint64_t handle);
// Returns the object; NULL if the handle is unknown, or if its array has been freed. The object stays until
// texture_remove.
const struct texture *texture_get(uint64_t handle);
// Like texture_get, but the handle may also be the address of a reference.
const struct texture *texture_find(uint64_t handle);
// An array's memory [at, at + size) is being freed: textures and surfaces on it become invalid.
void texture_lose(uint64_t at, uint64_t size);

#endif
