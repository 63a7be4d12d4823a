// SPDX-License-Identifier: MIT
// Like sample.c, this is what an H200 does: the precision in which texels are filtered, and where it rounds.
#include "exec/sample_filter.h"

#include <math.h>
#include <string.h>

#include "exec/sample_srgb.h"
#include "exec/scalar_half.h"
#include "exec/space.h"

// --- texels ------------------------------------------------------------------------------------------------

// With two channels only the first is a colour.
static bool is_srgb(const struct texture *t, unsigned channel)
{
    return t->srgb && t->type == TEXTURE_U8 && channel < (t->channels == 4 ? 3 : 1);
}

static float normal(const struct texture *t, int32_t value, unsigned channel)
{
    float f;
    switch (t->type) {
    case TEXTURE_U8:
        return is_srgb(t, channel) ? f32_of((uint32_t)sample_srgb[value] << 16) : (float)value / 255;
    case TEXTURE_U16: return (float)value / 65535;
    case TEXTURE_S8: f = (float)value / 127; break;
    default: f = (float)value / 32767; break;
    }
    // -128 reads as -1 by itself, and as less when filtered.
    return f < -1 && !(t->linear && t->type == TEXTURE_S8) ? -1 : f;
}

static uint32_t component(const struct texture *t, const char *from, unsigned channel)
{
    uint16_t h;
    int32_t value;
    switch (t->type) {
    case TEXTURE_U8: value = *(const uint8_t *)from; break;
    case TEXTURE_S8: value = *(const int8_t *)from; break;
    case TEXTURE_U16:
    case TEXTURE_S16:
    case TEXTURE_F16:
        memcpy(&h, from, sizeof h);
        if (t->type == TEXTURE_F16)
            return f32_bits(half_to_f32(h));
        value = t->type == TEXTURE_U16 ? (int32_t)h : (int16_t)h;
        break;
    default: memcpy(&value, from, sizeof value); return (uint32_t)value;
    }
    return t->as_integers ? (uint32_t)value : f32_bits(normal(t, value, channel));
}

void sample_filter_components(const struct texture *t, const char *from, uint32_t out[4])
{
    if (t->element == 4 && t->channels == 1) {
        memcpy(out, from, 4);
        out[1] = out[2] = out[3] = 0;
        return;
    }
    unsigned size = t->element / t->channels;
    for (unsigned k = 0; k < 4; k++)
        out[k] = k < t->channels ? component(t, from + k * size, k) : 0;
}

bool sample_filter_texel(const struct texture *t, const struct texture_level *l, uint32_t x, uint32_t y,
                         uint32_t z, uint32_t out[4], uint64_t *bad)
{
    uint64_t at = l->at + z * l->slice + y * l->pitch + (uint64_t)x * t->element;
    if (!t->array && !space_access(at, t->element, SPACE_READ)) {
        *bad = at;
        return false;
    }
    sample_filter_components(t, space_host(at), out);
    return true;
}

// --- the border --------------------------------------------------------------------------------------------

uint16_t sample_filter_half(float f)
{
    float size = fabsf(f);
    if (f != f || isinf(f))
        return half_from_f32(f);
    uint16_t h = size > 65504 ? 0x7bff : half_from_f32(size);
    if (half_to_f32(h) > size)
        h--;
    return (uint16_t)(h | (f32_bits(f) >> 16 & 0x8000u));
}

static double steps(const struct texture *t)
{
    switch (t->type) {
    case TEXTURE_U8: return 255;
    case TEXTURE_S8: return 127;
    case TEXTURE_U16: return 65535;
    case TEXTURE_S16: return 32767;
    default: return 0;
    }
}

static uint32_t cut_bits(const struct texture *t, uint32_t bits)
{
    switch (t->type) {
    case TEXTURE_U8: return (uint8_t)bits;
    case TEXTURE_S8: return (uint32_t)(int8_t)bits;
    case TEXTURE_U16: return (uint16_t)bits;
    case TEXTURE_S16: return (uint32_t)(int16_t)bits;
    default: return bits;
    }
}

// The border colour passes through the texture's format: integers are truncated to it, fractions are rounded.
static uint32_t border(const struct texture *t, unsigned channel)
{
    double f = (double)t->border[channel], most = steps(t);
    if (t->as_integers || t->type == TEXTURE_F32)
        return cut_bits(t, f32_bits(t->border[channel]));
    if (t->type == TEXTURE_F16)
        return f != f ? 0x7fc00000 : f32_bits(half_to_f32(sample_filter_half(t->border[channel])));
    double least = t->type == TEXTURE_U8 || t->type == TEXTURE_U16 ? 0 : -1;
    f = f != f ? 0 : f > 1 ? 1 : f < least ? least : f;
    if (is_srgb(t, channel)) {
        f = f <= 0.0031308 ? f * 12.92 : 1.055 * pow(f, 1 / 2.4) - 0.055;
        return (uint32_t)sample_srgb[(unsigned)ceil(f * 255 - 0.5)] << 16;
    }
    return f32_bits((float)((ceil((double)((float)f * (float)most) - 0.5) + 0.0) / most));
}

void sample_filter_border(const struct texture *t, uint32_t out[4])
{
    for (unsigned k = 0; k < 4; k++)
        out[k] = k < t->channels ? border(t, k) : 0;
}

// --- filtering ---------------------------------------------------------------------------------------------

// The representation of a component while it is filtered.
enum mix_as {
    MIX_FLOAT,
    MIX_HALF,
    MIX_COLOUR,  // of sRGB
    MIX_U16,     // multiples of 1/65535
    MIX_S8,      // multiples of 1/32767, from texels in 1/127
    MIX_S16,     // multiples of 1/32767
};

static enum mix_as mix_as(const struct texture *t, unsigned channel)
{
    switch (t->type) {
    case TEXTURE_U8: return is_srgb(t, channel) ? MIX_COLOUR : MIX_U16;
    case TEXTURE_U16: return MIX_U16;
    case TEXTURE_S8: return MIX_S8;
    case TEXTURE_S16: return MIX_S16;
    case TEXTURE_F16: return MIX_HALF;
    default: return MIX_FLOAT;
    }
}

static double widen(enum mix_as as, float f)
{
    switch (as) {
    case MIX_U16: return rint((double)f * 65535);
    case MIX_S8: return rint((double)f * 127);
    case MIX_S16: return rint((double)f * 32767);
    default: return (double)f;
    }
}

// Aligns the four texels of a group to the largest one's exponent with `bits` bits below it, and truncates
// the rest.
static void align(double v[4], int bits, int digits)
{
    double most = 0, least = INFINITY;
    for (unsigned k = 0; k < 4; k++) {
        double size = fabs(v[k]);
        most = size > most ? size : most;
        least = size > 0 && size < least ? size : least;
    }
    // Values of `digits` bits: nothing of the smallest one is truncated.
    if (least * (double)(1 << (bits - digits)) >= most || isinf(most))
        return;
    double unit = ldexp(1, ilogb(most) - bits);
    for (unsigned k = 0; k < 4; k++)
        v[k] = trunc(v[k] / unit) * unit;
}

// Rounds to nearest with `bits` bits of fraction, ties away from zero.
static float round_away(double x, unsigned bits)
{
    uint64_t u, unit = UINT64_C(1) << (52 - bits);
    if (x != x || isinf(x))
        return (float)x;
    memcpy(&u, &x, sizeof u);
    u = (u + unit / 2) & ~(unit - 1);
    memcpy(&x, &u, sizeof x);
    return (float)x;
}

static float narrow(enum mix_as as, double sum)
{
    switch (as) {
    case MIX_U16: return (float)(floor(sum + 0.5) / 65535);
    case MIX_S8: return (float)(fmax(floor(sum * 32767 / 127 + 0.5), -32767) / 32767);
    case MIX_S16: return (float)(floor(sum + 0.5) / 32767);
    case MIX_HALF:
    case MIX_COLOUR: return round_away(sum, 10);
    default: return round_away(sum, 23);
    }
}

void sample_filter_mix(const struct texture *t, const struct sample_taps *from, uint32_t out[4])
{
    memset(out, 0, 4 * sizeof *out);
    for (unsigned channel = 0; channel < t->channels; channel++) {
        enum mix_as as = mix_as(t, channel);
        double v[16], sum = 0;
        for (unsigned k = 0; k < from->n; k++)
            v[k] = from->weights[k] ? widen(as, f32_of(from->texels[k][channel])) : 0;
        for (unsigned k = 0; k < from->n && as <= MIX_COLOUR; k += 4)
            if (as == MIX_FLOAT)
                align(v + k, 27, 23);
            else
                align(v + k, as == MIX_HALF ? 14 : 7, as == MIX_HALF ? 10 : 7);
        for (unsigned k = 0; k < from->n; k++)
            sum += from->weights[k] * v[k];
        out[channel] = f32_bits(narrow(as, sum / 256));
    }
}
