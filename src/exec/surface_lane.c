// SPDX-License-Identifier: MIT
// suld, sust and sured: texels of an array by coordinates, x in bytes, without conversion; sust.p converts,
// and sured.p addresses texels.
#include <string.h>

#include "exec/atomic.h"
#include "exec/sched.h"
#include "exec/sample_filter.h"
#include "exec/scalar_float.h"
#include "exec/space.h"
#include "exec/texture.h"
#include "exec/texture_lane.h"

static uint32_t word(const struct exec_warp *w, uint32_t slot, unsigned lane)
{
    return ((const uint32_t *)(w->regs + slot))[lane];
}

// Returns whether *at is inside; a coordinate outside is moved inside first if the instruction clamps.
// Returns false if there is not even one unit.
static bool fit(uint32_t *at, uint32_t size, uint32_t unit, enum surface_outside outside)
{
    if (size < unit)
        return false;
    if (*at < size)
        return true;
    *at = (int32_t)*at < 0 ? 0 : size - unit;
    return outside == SURFACE_CLAMP;
}

// Returns the device address of one lane's access; 0 if it is outside.
static uint64_t find(const struct exec_warp *w, const struct surface_lane *l, const struct texture *t,
                     unsigned lane, unsigned bytes)
{
    const struct texture_level *level = &t->level[0];
    uint32_t at[3] = {0}, layer = l->has_layer ? word(w, l->layer, lane) : 0;
    for (unsigned k = 0; k < l->nplace; k++)
        at[k] = word(w, l->place[k], lane);
    unsigned unit = l->formatted ? 1 : bytes;
    uint32_t row = l->formatted ? level->width : level->width * t->element;
    bool inside = fit(&at[0], row - row % unit, unit, (enum surface_outside)l->outside);
    inside &= fit(&at[1], level->height, 1, (enum surface_outside)l->outside);
    // Layers are unsigned.
    if (l->has_layer && layer >= level->slices) {
        layer = level->slices - 1;
        inside &= l->outside == SURFACE_CLAMP;
    } else if (!l->has_layer) {
        inside &= fit(&at[2], level->slices, 1, (enum surface_outside)l->outside);
    }
    if (!inside)
        return 0;
    uint64_t x = l->formatted ? (uint64_t)at[0] * t->element : at[0] - at[0] % unit;
    return level->at + (l->has_layer ? layer : at[2]) * level->slice + at[1] * level->pitch + x;
}

static void load(const struct exec_warp *w, const struct surface_lane *l, unsigned lane, const char *from)
{
    for (unsigned k = 0; k < l->count; k++) {
        uint64_t value = 0;
        if (from)
            memcpy(&value, from + k * l->bytes, l->bytes);
        char *to = w->regs + l->value[k];
        if (l->bits == 16)
            ((uint16_t *)(void *)to)[lane] = (uint16_t)value;
        else if (l->bits == 32)
            ((uint32_t *)(void *)to)[lane] = (uint32_t)value;
        else
            ((uint64_t *)(void *)to)[lane] = value;
    }
}

static void store(const struct exec_warp *w, const struct surface_lane *l, unsigned lane, char *to)
{
    for (unsigned k = 0; k < l->count; k++) {
        unsigned size = l->bits / 8;
        memcpy(to + k * l->bytes, w->regs + l->value[k] + lane * size, l->bytes);
    }
}

// Stores a component of a texel from a word that is a float or an integer, like the texels.
static void put(const struct texture *t, char *to, uint32_t value)
{
    uint16_t half;
    int32_t s = (int32_t)value;
    switch (t->type) {
    case TEXTURE_U8: *to = (char)(value > UINT8_MAX ? UINT8_MAX : value); return;
    case TEXTURE_S8: *to = (char)(s > INT8_MAX ? INT8_MAX : s < INT8_MIN ? INT8_MIN : s); return;
    case TEXTURE_U16: half = (uint16_t)(value > UINT16_MAX ? UINT16_MAX : value); break;
    case TEXTURE_S16: half = (uint16_t)(s > INT16_MAX ? INT16_MAX : s < INT16_MIN ? INT16_MIN : s); break;
    case TEXTURE_F16: half = sample_filter_half(f32_of(value)); break;
    default: memcpy(to, &value, sizeof value); return;
    }
    memcpy(to, &half, sizeof half);
}

static void store_formatted(const struct exec_warp *w, const struct surface_lane *l, const struct texture *t,
                            unsigned lane, char *to)
{
    unsigned size = t->element / t->channels;
    for (unsigned k = 0; k < l->count && k < t->channels; k++)
        put(t, to + k * size, word(w, l->value[k], lane));
}

// Texels that are not whole words have no reductions: they do not change.
static void reduce(const struct exec_warp *w, const struct surface_lane *l, const struct texture *t,
                   unsigned lane, char *to)
{
    uint32_t what = l->what;
    if (l->formatted && (t->element != 4 || (t->type != TEXTURE_U32 && t->type != TEXTURE_S32)))
        return;
    if (l->formatted && t->type == TEXTURE_S32 && (what >> ATOMIC_TYPE_SHIFT & 0xff) == PTX_U32)
        what += (uint32_t)(PTX_S32 - PTX_U32) << ATOMIC_TYPE_SHIFT;
    atomic_apply(to, what, w->regs + l->value[0] + lane * (l->bits / 8u));
}

const struct exec_insn *surface_lane_access(struct exec_warp *w, const struct exec_insn *i)
{
    const struct surface_lane *l = i->ptr;
    const struct texture *t = NULL;
    uint64_t last = 0;
    uint64_t at[EXEC_LANES];
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t handle = ((const uint64_t *)(w->regs + l->handle))[lane];
        if (!t || handle != last)
            t = texture_find(handle);
        last = handle;
        unsigned bytes = t && l->formatted ? t->element : l->bytes * l->count;
        if (!t || !t->surface)
            return fault_memory(w, i, EXEC_ILLEGAL_ADDRESS, lane, handle, bytes, l->stores, "surface");
        at[lane] = find(w, l, t, lane, bytes);
        if (!at[lane] && l->outside == SURFACE_TRAP)
            return fault_memory(w, i, EXEC_LAUNCH_FAILED, lane, handle, bytes, l->stores, "surface");
        if (at[lane] && l->reduces)
            reduce(w, l, t, lane, space_host(at[lane]));
        else if (at[lane] && l->stores && l->formatted)
            store_formatted(w, l, t, lane, space_host(at[lane]));
        else if (at[lane] && l->stores)
            store(w, l, lane, space_host(at[lane]));
    }
    if (!l->stores)
        for (uint32_t left = w->mask; left; left &= left - 1) {
            unsigned lane = (unsigned)__builtin_ctz(left);
            load(w, l, lane, at[lane] ? space_host(at[lane]) : NULL);
        }
    return i + 1;
}
