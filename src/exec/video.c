// SPDX-License-Identifier: MIT
// Current GPUs have hardly any of these instructions: ptxas emulates them, and its scalar ones do not always
// match the manual. This is what an H200 does:
//   .sat       unsigned words have no upper bound; bytes and halves get their greatest value from a negative
//              result; a shift is clamped as a word, by the low 34 bits of its result, whatever part of d
//              it writes
//   .min .max  results of vadd, vsub and shifts with .sat are truncated to a signed word first, even if c is
//              unsigned
//   d.h1       gets the high half of the result
//   vmad       words are signed, whatever their type; if nothing is signed, .sat with .shr gives the
//              greatest value for a negative sum
#include "exec/video.h"

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static int64_t extend(uint64_t value, unsigned bits, bool is_signed)
{
    uint64_t up = value << (64 - bits);
    return is_signed ? (int64_t)up >> (64 - bits) : (int64_t)(up >> (64 - bits));
}

static int64_t source(uint64_t both, unsigned from, struct video_type type)
{
    return extend(both >> from, type.bits, type.is_signed);
}

static int64_t clamp(int64_t value, unsigned bits, bool is_signed)
{
    int64_t above = (int64_t)1 << (bits - is_signed);
    return most(least(value, above - 1), is_signed ? -above : 0);
}

static bool compare(enum video_compare how, int64_t x, int64_t y)
{
    switch (how) {
    case VIDEO_EQ: return x == y;
    case VIDEO_NE: return x != y;
    case VIDEO_LT: return x < y;
    case VIDEO_LE: return x <= y;
    case VIDEO_GT: return x > y;
    default: return x >= y;
    }
}

static int64_t compute(const struct video *v, int64_t x, int64_t y)
{
    int64_t distance = v->wraps ? y & 31 : least(y, 32);
    switch ((enum video_op)v->op) {
    case VIDEO_ADD: return x + y;
    case VIDEO_SUB: return x - y;
    case VIDEO_ABSDIFF: return x < y ? y - x : x - y;
    case VIDEO_MIN: return least(x, y);
    case VIDEO_MAX: return most(x, y);
    case VIDEO_SHL: return (int64_t)((uint64_t)x << distance);
    case VIDEO_SHR: return x >> distance;
    case VIDEO_AVRG: return (x + y + (x + y >= 0)) >> 1;
    default: return compare((enum video_compare)v->compare, x, y);
    }
}

static int64_t limit(enum video_limit how, struct video_type type, int64_t result)
{
    switch (how) {
    case VIDEO_NO_LIMIT: return result;
    case VIDEO_CLAMP: return clamp(result, type.bits, type.is_signed);
    case VIDEO_NOT_NEGATIVE: return most(result, 0);
    case VIDEO_AT_MOST: return clamp(result < 0 ? INT64_MAX : result, type.bits, type.is_signed);
    default: return clamp(extend((uint64_t)result, 34, true), 32, type.is_signed);
    }
}

static bool is_less(const struct video *v, int64_t result, uint32_t c)
{
    if (v->op == VIDEO_ADD || v->op == VIDEO_SUB || v->limit == VIDEO_SHIFTED)
        result = (int32_t)result;
    return v->result.is_signed ? result < (int32_t)c : (uint64_t)result < c;
}

static uint32_t all_parts(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t both = a | (uint64_t)b << 32;
    uint32_t d = c;
    for (unsigned k = 0; k < v->nparts; k++) {
        const struct video_part *p = &v->parts[k];
        int64_t x = source(both, p->from[0], v->source[0]), y = source(both, p->from[1], v->source[1]);
        int64_t result = limit((enum video_limit)v->limit, v->result, compute(v, x, y));
        if (v->then == VIDEO_PUT)
            d = (d & ~p->mask) | ((uint32_t)result << p->shift & p->mask);
        else if (v->then == VIDEO_THEN_ADD)
            d += (uint32_t)result;
        else
            d = is_less(v, result, c) == (v->then == VIDEO_THEN_MIN) ? (uint32_t)result : c;
    }
    return d;
}

static uint32_t multiply_add(const struct video_mad *v, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t both = a | (uint64_t)b << 32;
    int64_t x = source(both, v->from[0], v->source[0]), y = source(both, v->from[1], v->source[1]);
    int64_t product = v->negates_product ? -(x * y) : x * y;
    int64_t sum = product + (v->negates_c ? -(int64_t)(int32_t)c : (int32_t)c) + v->plus_one;
    return (uint32_t)limit((enum video_limit)v->limit, v->result, sum >> v->shift);
}

#define LANES(type, function)                                                                        \
    const uint32_t *a = (const uint32_t *)(w->regs + i->a), *b = (const uint32_t *)(w->regs + i->b); \
    const uint32_t *c = (const uint32_t *)(w->regs + i->c);                                          \
    uint32_t *d = (uint32_t *)(w->regs + i->d);                                                      \
    const type *v = i->ptr;                                                                          \
    for (unsigned l = 0; l < EXEC_LANES; l++)                                                        \
        if (w->mask >> l & 1)                                                                        \
            d[l] = function(v, a[l], b[l], c[l]);                                                    \
    return i + 1;

const struct exec_insn *video_parts(struct exec_warp *w, const struct exec_insn *i)
{
    LANES(struct video, all_parts)
}

const struct exec_insn *video_mad(struct exec_warp *w, const struct exec_insn *i)
{
    LANES(struct video_mad, multiply_add)
}
