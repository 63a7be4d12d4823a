// SPDX-License-Identifier: MIT
// Texels and how they are filtered. Internal to src/exec.
#ifndef MOAT_EXEC_SAMPLE_FILTER_H
#define MOAT_EXEC_SAMPLE_FILTER_H

#include "exec/texture.h"

// The inputs of a filtered result: texels of one or two levels, in groups of four. Weights are in units of
// 1/256; a texel of weight 0 is absent.
struct sample_taps {
    unsigned n;
    uint32_t weights[16], texels[16][4];
};

// Reads the components of the texel at (x, y, z), which is inside, as floats or integers according to the
// texture; missing components are 0. Returns false if kernels may not read the memory at *bad.
bool sample_filter_texel(const struct texture *t, const struct texture_level *l, uint32_t x, uint32_t y,
                         uint32_t z, uint32_t out[4], uint64_t *bad);
void sample_filter_components(const struct texture *t, const char *from, uint32_t out[4]);
void sample_filter_border(const struct texture *t, uint32_t out[4]);
void sample_filter_mix(const struct texture *t, const struct sample_taps *from, uint32_t out[4]);

// Rounds towards zero; values that are too large become the largest.
uint16_t sample_filter_half(float f);

#endif
