// SPDX-License-Identifier: MIT
#include "exec/texture_lane.h"

#include <string.h>

#include "exec/sample_fast.h"
#include "exec/scalar_half.h"
#include "exec/sched.h"

static uint32_t word(const struct exec_warp *w, uint32_t slot, unsigned lane)
{
    return ((const uint32_t *)(w->regs + slot))[lane];
}

static float number(const struct exec_warp *w, uint32_t slot, unsigned lane)
{
    return ((const float *)(w->regs + slot))[lane];
}

static uint64_t handle_of(const struct exec_warp *w, uint32_t slot, unsigned lane)
{
    return ((const uint64_t *)(w->regs + slot))[lane];
}

// The last lookup: a warp's lanes nearly always use the same texture.
struct last_lookup {
    uint64_t handle;
    const struct texture *texture;
};

static const struct texture *find_texture(struct last_lookup *s, uint64_t handle)
{
    if (!s->texture || s->handle != handle) {
        s->handle = handle;
        s->texture = texture_find(handle);
    }
    return s->texture;
}

static const struct exec_insn *raise_fault(struct exec_warp *w, const struct exec_insn *i, unsigned lane,
                                           uint64_t address, unsigned size, bool write, const char *space)
{
    return fault_memory(w, i, EXEC_ILLEGAL_ADDRESS, lane, address, size, write, space);
}

static void make_sample(const struct exec_warp *w, const struct texture_lane *l, unsigned lane,
                        struct sample *s)
{
    for (unsigned k = 0; k < l->nplace; k++) {
        s->place[k].u = word(w, l->place[k], lane);
        if (l->how == SAMPLE_GRADIENT) {
            s->dx[k] = number(w, l->dx[k], lane);
            s->dy[k] = number(w, l->dy[k], lane);
        }
        if (l->has_offset)
            s->offset[k] = (int32_t)word(w, l->offset[k], lane);
    }
    if (l->has_layer)
        s->layer = word(w, l->layer, lane);
    if (l->how == SAMPLE_LEVEL)
        s->level = l->integers ? (float)(int32_t)word(w, l->level, lane) : number(w, l->level, lane);
}

static void give_halves(struct exec_warp *w, const struct texture_lane *l, uint32_t out[EXEC_LANES][4])
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned k = 0; k < 4; k++) {
            uint16_t half = half_from_f32(f32_of(out[lane][k]));
            // The first of a pair lies in the lower half.
            unsigned slot = l->to[k / l->halves], at = lane * l->halves + k % l->halves;
            ((uint16_t *)(void *)(w->regs + slot))[at] = half;
        }
    }
}

const struct exec_insn *texture_lane_sample(struct exec_warp *w, const struct exec_insn *i)
{
    const struct texture_lane *l = i->ptr;
    struct sample s = {.shape = l->shape, .how = l->how, .integers = l->integers, .gather = l->gather};
    struct last_lookup last_lookup = {0};
    bool fast = false;
    uint32_t out[EXEC_LANES][4];
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t handle = handle_of(w, l->handle, lane), bad = handle;
        const struct texture *before = last_lookup.texture, *t = find_texture(&last_lookup, handle);
        if (t != before)
            fast = t && !t->surface && !l->has_offset && sample_fast_suits(t, &s);
        make_sample(w, l, lane, &s);
        // A handle of 0 is a texture without texels.
        if (!handle)
            memset(out[lane], 0, sizeof out[lane]);
        else if (t && fast)
            sample_fast_read(t, &s, out[lane]);
        else if (!t || t->surface || !sample_read(t, &s, out[lane], &bad))
            return raise_fault(w, i, lane, bad, t ? t->element : 0, false, "texture");
    }
    // All lanes are read before the first result is written: a result may overwrite a coordinate.
    if (l->halves)
        give_halves(w, l, out);
    for (unsigned k = 0; k < 4 && !l->halves; k++)
        for (uint32_t left = w->mask; left; left &= left - 1) {
            unsigned lane = (unsigned)__builtin_ctz(left);
            ((uint32_t *)(w->regs + l->to[k]))[lane] = out[lane][k];
        }
    if (l->has_resident)
        *(uint32_t *)(w->regs + l->resident) |= w->mask;
    return i + 1;
}

// --- queries -----------------------------------------------------------------------------------------------

// Returns the height as the resource was described: 0 if it has none, but 1 for a one-dimensional texture.
static uint32_t height(const struct texture *t, const struct texture_level *l)
{
    switch (t->shape) {
    case TEXTURE_1D: return t->surface ? 0 : 1;
    case TEXTURE_LINEAR: return 0;
    case TEXTURE_A1D: return l->slices;
    default: return l->height;
    }
}

static uint32_t depth(const struct texture *t, const struct texture_level *l)
{
    switch (t->shape) {
    case TEXTURE_3D:
    case TEXTURE_A2D: return l->slices;
    case TEXTURE_CUBE: return t->surface ? l->slices : 0;
    case TEXTURE_ACUBE: return t->surface ? l->slices : l->slices / 6;
    default: return 0;
    }
}

static uint32_t answer(const struct texture *t, enum texture_question q, uint32_t level)
{
    const struct texture_level *l = &t->level[level < t->nlevels ? level : t->nlevels - 1u];
    switch (q) {
    case TEXTURE_WIDTH: return l->width;
    case TEXTURE_HEIGHT: return height(t, l);
    default: return depth(t, l);
    }
}

const struct exec_insn *texture_lane_query(struct exec_warp *w, const struct exec_insn *i)
{
    struct last_lookup last_lookup = {0};
    bool surface = i->flags & TEXTURE_LANE_SURFACE;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t handle = handle_of(w, i->a, lane);
        const struct texture *t = find_texture(&last_lookup, handle);
        if (!t)
            return raise_fault(w, i, lane, handle, 0, false, surface ? "surface" : "texture");
        uint32_t level = i->flags & TEXTURE_LANE_LEVEL ? word(w, i->b, lane) : 0;
        ((uint32_t *)(w->regs + i->d))[lane] = answer(t, (enum texture_question)i->lo, level);
    }
    return i + 1;
}
