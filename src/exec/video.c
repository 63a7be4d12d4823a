// SPDX-License-Identifier: MIT
#include "exec/video.h"

typedef __int128 wide;  // nothing that is computed here overflows it

static wide least(wide x, wide y)
{
    return x < y ? x : y;
}

static wide most(wide x, wide y)
{
    return x > y ? x : y;
}

static wide extend(uint64_t value, struct video_type type)
{
    uint64_t sign = (uint64_t)1 << (type.bits - 1);
    wide low = value & (sign * 2 - 1);
    return type.is_signed && value & sign ? low - (wide)sign * 2 : low;
}

static wide clamp(wide value, struct video_type type)
{
    wide above = (wide)1 << (type.bits - type.is_signed);  // the greatest value and one
    return most(least(value, above - 1), type.is_signed ? -above : 0);
}

static bool compare(enum video_compare how, wide x, wide y)
{
    switch (how) {
    case VIDEO_EQ:
        return x == y;
    case VIDEO_NE:
        return x != y;
    case VIDEO_LT:
        return x < y;
    case VIDEO_LE:
        return x <= y;
    case VIDEO_GT:
        return x > y;
    default:
        return x >= y;
    }
}

static wide compute(const struct video *v, wide x, wide y)
{
    wide distance = v->wraps ? y & 31 : least(y, 32);
    switch ((enum video_op)v->op) {
    case VIDEO_ADD:
        return x + y;
    case VIDEO_SUB:
        return x - y;
    case VIDEO_ABSDIFF:
        return x < y ? y - x : x - y;
    case VIDEO_MIN:
        return least(x, y);
    case VIDEO_MAX:
        return most(x, y);
    case VIDEO_SHL:
        return x * ((wide)1 << distance);
    case VIDEO_SHR:
        return x >> distance;
    case VIDEO_AVRG:
        return (x + y + (x + y >= 0)) >> 1;
    default:
        return compare((enum video_compare)v->compare, x, y);
    }
}

// d so far, and one more result.
static uint32_t then(const struct video *v, uint32_t d, wide result, unsigned to)
{
    struct video_type word = {32, v->result.is_signed};
    wide x = extend((uint64_t)result, word), y = extend(d, word);
    uint32_t part = (uint32_t)(((uint64_t)1 << v->result.bits) - 1);
    switch ((enum video_then)v->then) {
    case VIDEO_PUT:
        return (d & ~(part << to)) | ((uint32_t)result & part) << to;
    case VIDEO_THEN_ADD:
        return d + (uint32_t)result;
    case VIDEO_THEN_MIN:
        return (uint32_t)least(x, y);
    default:
        return (uint32_t)most(x, y);
    }
}

static uint32_t all_parts(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t both = a | (uint64_t)b << 32;
    uint32_t d = c;
    for (unsigned k = 0; k < v->nparts; k++) {
        const struct video_part *p = &v->parts[k];
        wide result = compute(v, extend(both >> p->from[0], v->source[0]), extend(both >> p->from[1], v->source[1]));
        if (v->saturates)
            result = clamp(result, v->result);
        d = then(v, d, result, p->to);
    }
    return d;
}

static uint32_t mad(const struct video_mad *v, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t both = a | (uint64_t)b << 32;
    struct video_type word = {32, v->is_signed};
    wide product = extend(both >> v->from[0], v->source[0]) * extend(both >> v->from[1], v->source[1]);
    wide sum = (v->negates_product ? -product : product) + v->plus_one;
    sum += v->negates_c ? -extend(c, word) : extend(c, word);
    sum >>= v->shift;
    return (uint32_t)(v->saturates ? clamp(sum, word) : sum);
}

#define LANES(type, function)                                                                         \
    const uint32_t *a = (const uint32_t *)(w->regs + i->a), *b = (const uint32_t *)(w->regs + i->b);  \
    const uint32_t *c = (const uint32_t *)(w->regs + i->c);                                           \
    uint32_t *d = (uint32_t *)(w->regs + i->d);                                                       \
    const type *v = i->ptr;                                                                           \
    for (unsigned l = 0; l < EXEC_LANES; l++)                                                         \
        if (w->mask >> l & 1)                                                                         \
            d[l] = function(v, a[l], b[l], c[l]);                                                     \
    return i + 1;

const struct exec_insn *video_parts(struct exec_warp *w, const struct exec_insn *i)
{
    LANES(struct video, all_parts)
}

const struct exec_insn *video_mad(struct exec_warp *w, const struct exec_insn *i)
{
    LANES(struct video_mad, mad)
}
