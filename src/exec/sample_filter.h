// SPDX-License-Identifier: MIT
// Texels and how they are mixed. Internal to src/exec.
#ifndef MOAT_EXEC_SAMPLE_FILTER_H
#define MOAT_EXEC_SAMPLE_FILTER_H

#include "exec/texture.h"

// What a result is mixed from: texels of one level, or of two, in groups of four. Weights are 256ths; where one is 0,
// there is no texel.
struct sample_taps {
    unsigned n;
    uint32_t weights[16], texels[16][4];
};

// The components of the texel at a place inside, floats or integers as the texture says; those that it has not are 0.
// False: memory that kernels may not read, at *bad.
bool sample_filter_texel(const struct texture *t, const struct texture_level *l, uint32_t x, uint32_t y,
                         uint32_t z, uint32_t out[4], uint64_t *bad);
void sample_filter_components(const struct texture *t, const char *from, uint32_t out[4]);
void sample_filter_border(const struct texture *t, uint32_t out[4]);
void sample_filter_mix(const struct texture *t, const struct sample_taps *from, uint32_t out[4]);

// Towards zero; what is too large becomes the largest.
uint16_t sample_filter_half(float f);

#endif
