// SPDX-License-Identifier: MIT
#include "exec/sample_fast.h"

#include <math.h>
#include <string.h>

#include "exec/sample_filter.h"
#include "exec/scalar_float.h"
#include "exec/space.h"

// Rights are checked page by page, for at most this many bytes.
enum { MOST = 64 << 20 };

static bool readable(const struct texture *t)
{
    const struct texture_level *l = &t->level[0];
    uint64_t size = (l->height - 1) * l->pitch + (uint64_t)l->width * t->element;
    return t->array || (size <= MOST && space_allows(l->at, size, SPACE_READ));
}

bool sample_fast_suits(const struct texture *t, const struct sample *s)
{
    bool flat = t->shape == TEXTURE_1D || t->shape == TEXTURE_2D || t->shape == TEXTURE_LINEAR;
    bool by_index = s->integers && (t->shape == TEXTURE_2D || t->shape == TEXTURE_LINEAR);
    bool borders = t->mode[0] == TEXTURE_BORDER || t->mode[1] == TEXTURE_BORDER;
    return flat && (s->shape == TEXTURE_1D || s->shape == TEXTURE_2D) && t->nlevels == 1 && !s->gather &&
           (by_index || (!s->integers && !borders)) && readable(t);
}

// --- along an axis -----------------------------------------------------------------------------------------

// Returns a normalised coordinate in units of 2^-bits, from 0 to two texture widths; 0 if it is too large or
// NaN.
static int64_t normal(float x, unsigned bits, enum texture_mode mode)
{
    int64_t one = (int64_t)1 << bits;
    if (mode == TEXTURE_CLAMP)
        return !(x > 0) ? 0 : x >= 1 ? one : (int64_t)(x * (float)one);
    if (!(fabsf(x) < 0x1p30f))
        return 0;
    double scaled = (double)x * (double)one;
    int64_t i = (int64_t)scaled;
    i -= (double)i > scaled;
    return i & (2 * one - 1);
}

static uint32_t fold(int64_t i, uint32_t size, enum texture_mode mode)
{
    int64_t n = size;
    if (mode == TEXTURE_CLAMP)
        return (uint32_t)(i < 0 ? 0 : i < n ? i : n - 1);
    // i is from -1 to two widths.
    i = i < 0 ? i + 2 * n : i;
    i = i >= 2 * n ? i - 2 * n : i;
    return (uint32_t)(i < n ? i : mode == TEXTURE_WRAP ? i - n : 2 * n - 1 - i);
}

static unsigned bits_of(uint32_t size)
{
    return size <= 8192 ? 21 : size <= 65536 ? 22 : 23;
}

static uint32_t nearest(const struct texture *t, float x, uint32_t size, enum texture_mode mode)
{
    if (!t->normalized) {
        float last = (float)(size - 1);
        return !(x > 0) ? 0 : x < last ? (uint32_t)x : size - 1;
    }
    unsigned bits = bits_of(size);
    return fold(normal(x, bits, mode) * size >> bits, size, mode);
}

// Two texels, and the weight of the second.
struct pair {
    uint32_t at[2], weight;
};

static struct pair neighbours(const struct texture *t, float x, uint32_t size, enum texture_mode mode)
{
    int64_t fixed, last = ((int64_t)size - 1) * 256;
    if (!t->normalized) {
        double u = !(x > 0) ? 0 : (double)x < size ? (double)x : size;
        fixed = (int64_t)(u * 256 + 0.5) - 128;
    } else {
        unsigned bits = bits_of(size), drop = bits - 8;
        fixed = ((normal(x, bits, mode) * size + ((int64_t)1 << (drop - 1))) >> drop) - 128;
    }
    if (mode == TEXTURE_CLAMP)
        fixed = fixed < 0 ? 0 : fixed > last ? last : fixed;
    return (struct pair){{fold(fixed >> 8, size, mode), fold((fixed >> 8) + 1, size, mode)}, fixed & 255};
}

// --- texels ------------------------------------------------------------------------------------------------

static void read_near(const struct texture *t, const struct sample *s, uint32_t out[4])
{
    const struct texture_level *l = &t->level[0];
    uint32_t x = nearest(t, s->place[0].f, l->width, (enum texture_mode)t->mode[0]);
    uint32_t y = l->height > 1 ? nearest(t, s->place[1].f, l->height, (enum texture_mode)t->mode[1]) : 0;
    sample_filter_components(t, space_host(l->at + y * l->pitch) + (uint64_t)x * t->element, out);
}

static void read_by_index(const struct texture *t, const struct sample *s, uint32_t out[4])
{
    const struct texture_level *l = &t->level[0];
    uint32_t x = s->place[0].u, y = t->shape == TEXTURE_LINEAR ? 0 : s->place[1].u;
    if (x < l->width && y < l->height)
        sample_filter_components(t, space_host(l->at + y * l->pitch) + (uint64_t)x * t->element, out);
    else
        memset(out, 0, 4 * sizeof *out);
}

static void read_mixed(const struct texture *t, const struct sample *s, uint32_t out[4])
{
    const struct texture_level *l = &t->level[0];
    struct pair x = neighbours(t, s->place[0].f, l->width, (enum texture_mode)t->mode[0]);
    struct pair y = {{0, 0}, 0};
    if (l->height > 1)
        y = neighbours(t, s->place[1].f, l->height, (enum texture_mode)t->mode[1]);
    uint32_t both = (x.weight * y.weight + 128) >> 8;
    struct sample_taps taps;
    taps.n = 4;
    taps.weights[0] = 256 - x.weight - y.weight + both;
    taps.weights[1] = x.weight - both;
    taps.weights[2] = y.weight - both;
    taps.weights[3] = both;
    for (unsigned k = 0; k < 4; k++)
        sample_filter_components(
            t, space_host(l->at + y.at[k >> 1] * l->pitch) + (uint64_t)x.at[k & 1] * t->element,
            taps.texels[k]);
    sample_filter_mix(t, &taps, out);
}

void sample_fast_read(const struct texture *t, const struct sample *s, uint32_t out[4])
{
    if (s->integers)
        read_by_index(t, s, out);
    else if (t->linear)
        read_mixed(t, s, out);
    else
        read_near(t, s, out);
}
