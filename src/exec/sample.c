// SPDX-License-Identifier: MIT
// Which texels a coordinate selects, and with which weights. All of it is what an H200 does, derived from its
// results (test/golden/sampling.h): coordinates become fixed-point numbers with 8 bits of fraction, and
// weights are multiples of 1/256 that are rounded in a certain order, so that their sum is always one.
#include "exec/sample.h"

#include <math.h>
#include <string.h>

#include "exec/sample_filter.h"

// --- along an axis -----------------------------------------------------------------------------------------

// One or two texels, and the weight of the second in 256ths. A texel outside is the border colour.
struct axis {
    uint32_t at[2];
    bool outside[2];
    uint32_t weight;
};

static void place(struct axis *a, unsigned k, int64_t i, uint32_t size, enum texture_mode mode)
{
    int64_t n = size;
    a->outside[k] = mode == TEXTURE_BORDER && (i < 0 || i >= n);
    switch (mode) {
    case TEXTURE_WRAP: i = (i % n + n) % n; break;
    case TEXTURE_MIRROR:
        i = (i % (2 * n) + 2 * n) % (2 * n);
        i = i < n ? i : 2 * n - 1 - i;
        break;
    default: i = i < 0 ? 0 : i >= n ? n - 1 : i; break;
    }
    a->at[k] = (uint32_t)i;
}

static double limit(double x)
{
    return x > 0x1p40 ? 0x1p40 : x < -0x1p40 ? -0x1p40 : x;
}

// Returns a coordinate in texels; NaN becomes 0. Normalised coordinates lose bits before they are multiplied.
static double in_texels(const struct texture *t, float x, uint32_t size, enum texture_mode mode)
{
    if (x != x)
        return 0;
    if (!t->normalized)
        return limit((double)x);
    double unit = size <= 8192 ? 0x1p21 : size <= 65536 ? 0x1p22 : 0x1p23;
    double fixed = floor((double)x * unit) / unit;
    if (mode == TEXTURE_WRAP || mode == TEXTURE_MIRROR)
        return isinf(x) ? 0 : (fixed - 2 * floor(fixed / 2)) * size;
    return limit(fixed * size);
}

static void along(const struct texture *t, const struct sample *s, unsigned number, uint32_t size,
                  struct axis *a)
{
    enum texture_mode mode = (enum texture_mode)t->mode[number];
    double u = in_texels(t, s->place[number].f, size, mode) + s->offset[number];
    if (!t->linear && !s->gather) {
        place(a, 0, (int64_t)floor(u), size, mode);
        return;
    }
    int64_t fixed = (int64_t)floor(u * 256 + 0.5) - 128, last = ((int64_t)size - 1) * 256;
    if (mode == TEXTURE_CLAMP && !s->gather)
        fixed = fixed < 0 ? 0 : fixed > last ? last : fixed;
    place(a, 0, fixed >> 8, size, mode);
    place(a, 1, (fixed >> 8) + 1, size, mode);
    a->weight = (uint32_t)(fixed & 255);
}

// Returns the number of axes. A texture of one dimension has a second coordinate, which is 0; it matters only
// if both axes have a border.
static unsigned axes(const struct texture *t)
{
    return t->shape == TEXTURE_3D ? 3 : t->shape == TEXTURE_A1D ? 1 : 2;
}

static void find_axes(const struct texture *t, const struct sample *s, const struct texture_level *l,
                      struct axis a[3])
{
    const uint32_t size[3] = {l->width, l->height, l->slices};
    memset(a, 0, 3 * sizeof *a);
    for (unsigned k = 0; k < axes(t); k++)
        along(t, s, k, size[k], &a[k]);
}

// --- weights -----------------------------------------------------------------------------------------------

// Splits a weight in two, by another weight.
static void cut(uint32_t whole, uint32_t weight, uint32_t *first, uint32_t *second)
{
    *second = (whole * weight + 128) >> 8;
    *first = whole - *second;
}

// Along the height, half units go to the outer texel on either side.
static void cut_outwards(const uint32_t whole[2], uint32_t weight, uint32_t out[4])
{
    cut(whole[0], 256 - weight, &out[2], &out[0]);
    cut(whole[1], weight, &out[1], &out[3]);
}

static void share(const struct texture *t, const struct axis a[3], uint32_t whole, uint32_t out[8])
{
    uint32_t near = whole, far = 0, p[2];
    if (t->shape == TEXTURE_3D)
        cut(whole, a[2].weight, &near, &far);
    cut(near, a[0].weight, &p[0], &p[1]);
    cut_outwards(p, a[1].weight, out);
    cut(far, a[0].weight, &p[0], &p[1]);
    cut_outwards(p, a[1].weight, out + 4);
}

// --- texels ------------------------------------------------------------------------------------------------

// Layers are unsigned.
static uint32_t slice_of(const struct sample *s, const struct texture_level *l)
{
    return s->layer < l->slices ? s->layer : l->slices - 1;
}

static bool corner(const struct texture *t, const struct sample *s, const struct texture_level *l,
                   const struct axis a[3], unsigned number, uint32_t out[4], uint64_t *bad)
{
    unsigned x = number & 1, y = number >> 1 & 1, z = number >> 2 & 1;
    bool volume = t->shape == TEXTURE_3D;
    if (a[0].outside[x] || a[1].outside[y] || (volume && a[2].outside[z])) {
        sample_filter_border(t, out);
        return true;
    }
    return sample_filter_texel(t, l, a[0].at[x], a[1].at[y], volume ? a[2].at[z] : slice_of(s, l), out, bad);
}

static bool take(const struct texture *t, const struct sample *s, const struct texture_level *l,
                 uint32_t whole, struct sample_taps *to, uint64_t *bad)
{
    unsigned n = !t->linear ? 1 : t->shape == TEXTURE_3D ? 8 : 4;
    uint32_t *weights = to->weights + to->n;
    struct axis a[3];
    find_axes(t, s, l, a);
    memset(weights, 0, 8 * sizeof *weights);
    if (n == 1)
        weights[0] = whole;
    else
        share(t, a, whole, weights);
    for (unsigned k = 0; k < n; k++)
        if (weights[k] && !corner(t, s, l, a, k, to->texels[to->n + k], bad))
            return false;
    to->n += n < 4 ? 4 : n;
    return true;
}

static bool gather(const struct texture *t, const struct sample *s, const struct texture_level *l,
                   uint32_t out[4], uint64_t *bad)
{
    static const uint8_t order[4] = {2, 3, 1, 0};
    struct axis a[3];
    find_axes(t, s, l, a);
    for (unsigned k = 0; k < 4; k++) {
        uint32_t texel[4];
        if (!corner(t, s, l, a, order[k], texel, bad))
            return false;
        out[k] = texel[s->gather - 1];
    }
    return true;
}

// Fetches by integer coordinates: address modes do not apply, and texels outside are 0. Every texel of
// a one-dimensional array is 0 too: that instruction is for linear memory.
static bool fetch(const struct texture *t, const struct sample *s, const struct texture_level *l,
                  uint32_t out[4], uint64_t *bad)
{
    const uint32_t size[3] = {l->width, l->height, l->slices};
    bool layered = t->shape >= TEXTURE_A1D && t->shape <= TEXTURE_ACUBE;
    bool row = t->shape == TEXTURE_1D || t->shape == TEXTURE_LINEAR;
    uint32_t at[3] = {0};
    bool inside = !(t->shape == TEXTURE_1D && t->array) && (!layered || s->layer < l->slices);
    for (unsigned k = 0; k < (row ? 1 : axes(t)); k++) {
        at[k] = s->place[k].u + (uint32_t)s->offset[k];
        inside &= at[k] < size[k];
    }
    if (inside)
        return sample_filter_texel(t, l, at[0], at[1], layered ? s->layer : at[2], out, bad);
    memset(out, 0, 4 * sizeof *out);
    return true;
}

// --- levels ------------------------------------------------------------------------------------------------

// Returns the length of a vector, as a GPU approximates it.
static double length(const double v[3])
{
    double most = 0, sum = 0;
    for (unsigned k = 0; k < 3; k++) {
        most = fmax(most, fabs(v[k]));
        sum += fabs(v[k]);
    }
    return most + 0.34375 * (sum - most);
}

// Returns the distance of neighbouring samples in texels, from the derivatives and from their diagonals.
static double spread(const struct texture *t, const struct sample *s)
{
    const struct texture_level *l = &t->level[0];
    const uint32_t size[3] = {l->width, l->height, l->slices};
    unsigned n = t->shape == TEXTURE_3D ? 3 : t->shape == TEXTURE_1D || t->shape == TEXTURE_A1D ? 1 : 2;
    double dx[3] = {0}, dy[3] = {0}, sum[3] = {0}, difference[3] = {0};
    for (unsigned k = 0; k < n; k++) {
        dx[k] = (double)s->dx[k] * size[k];
        dy[k] = (double)s->dy[k] * size[k];
        sum[k] = dx[k] + dy[k];
        difference[k] = dx[k] - dy[k];
    }
    return fmax(fmax(length(dx), length(dy)), 0.6875 * fmax(length(sum), length(difference)));
}

// Returns the level in 256ths.
static unsigned level_of(const struct texture *t, const struct sample *s)
{
    double level = 0;
    if (s->how == SAMPLE_LEVEL)
        level = s->level == s->level ? trunc(limit((double)s->level) * 256) / 256 : 0;
    else if (s->how == SAMPLE_GRADIENT)
        level = rint(log2(spread(t, s)) * 256) / 256;
    if (s->how == SAMPLE_LEVEL || s->how == SAMPLE_GRADIENT)
        level += floor((double)t->bias * 256) / 256;
    level = level > (double)t->most ? (double)t->most : level;
    // Also if the level is NaN.
    level = level >= (double)t->least ? level : (double)t->least;
    level = level >= 0 ? level : 0;
    return (unsigned)(fmin(level, t->nlevels - 1) * 256);
}

static bool read_level(const struct texture *t, const struct sample *s, unsigned level, uint32_t out[4],
                       uint64_t *bad)
{
    const struct texture_level *l = &t->level[level];
    if (s->integers)
        return fetch(t, s, l, out, bad);
    if (s->gather)
        return gather(t, s, l, out, bad);
    if (!t->linear) {
        struct axis a[3];
        find_axes(t, s, l, a);
        return corner(t, s, l, a, 0, out, bad);
    }
    struct sample_taps taps = {0};
    if (!take(t, s, l, 256, &taps, bad))
        return false;
    sample_filter_mix(t, &taps, out);
    return true;
}

static bool read_between(const struct texture *t, const struct sample *s, unsigned level, uint32_t weight,
                         uint32_t out[4], uint64_t *bad)
{
    struct sample_taps taps = {0};
    if (!take(t, s, &t->level[level], 256 - weight, &taps, bad) ||
        !take(t, s, &t->level[level + 1], weight, &taps, bad))
        return false;
    sample_filter_mix(t, &taps, out);
    return true;
}

// --- cubes -------------------------------------------------------------------------------------------------

static bool less(float a, float b)
{
    return a != a || a < b;
}

// Replaces NaN by 0.
static float known(float f)
{
    return f == f ? f : 0;
}

// Converts a direction to a cube's face and a position on it. The vector is first multiplied by a reciprocal
// that is never subnormal.
static void on_face(struct sample *s, uint32_t slices)
{
    float v[3], size[3], most = 0;
    for (unsigned k = 0; k < 3; k++)
        most = fmaxf(most, fabsf(s->place[k].f));
    float scale = most < 0x1p-126f || most > 0x1p126f ? 0 : 1 / most;
    for (unsigned k = 0; k < 3; k++) {
        v[k] = s->place[k].f * scale;
        size[k] = fabsf(v[k]);
    }
    unsigned major = !less(size[2], size[0]) && !less(size[2], size[1]) ? 2 : !less(size[1], size[0]) ? 1 : 0;
    bool negative = v[major] < 0;
    float x = known(v[0]), y = known(v[1]), z = known(v[2]);
    float across = major == 0 ? (negative ? z : -z) : major == 1 || !negative ? x : -x;
    float down = major != 1 ? -y : negative ? -z : z;
    double unit = size[major] > 0 ? (double)size[major] : 1;
    uint32_t layer = s->layer < slices / 6 ? s->layer : slices / 6 - 1;
    s->layer = layer * 6 + 2 * major + negative;
    s->place[0].f = (float)(((double)across / unit + 1) / 2);
    s->place[1].f = (float)(((double)down / unit + 1) / 2);
}

// --- all ---------------------------------------------------------------------------------------------------

// Returns whether the instruction suits the texture's shape: one and two dimensions and linear memory are
// interchangeable.
static bool suits(const struct texture *t, const struct sample *s)
{
    bool flat = t->shape == TEXTURE_1D || t->shape == TEXTURE_2D || t->shape == TEXTURE_LINEAR;
    return flat ? s->shape == TEXTURE_1D || s->shape == TEXTURE_2D : t->shape == s->shape;
}

bool sample_read(const struct texture *t, const struct sample *s, uint32_t out[4], uint64_t *bad)
{
    struct sample flat;
    if (!suits(t, s)) {
        memset(out, 0, 4 * sizeof *out);
        return true;
    }
    if (t->shape == TEXTURE_CUBE || t->shape == TEXTURE_ACUBE) {
        flat = *s;
        on_face(&flat, t->level[0].slices);
        s = &flat;
    }
    if (t->nlevels == 1)
        return read_level(t, s, 0, out, bad);
    unsigned level = level_of(t, s);
    if (!t->linear_levels || s->integers || s->gather)
        return read_level(t, s, (level + 128) >> 8, out, bad);
    return level & 255 ? read_between(t, s, level >> 8, level & 255, out, bad)
                       : read_level(t, s, level >> 8, out, bad);
}
