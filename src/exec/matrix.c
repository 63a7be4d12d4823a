// SPDX-License-Identifier: MIT
// Moves matrices between memory and the registers of a warp.
#include "exec/matrix.h"

#include <string.h>

#include "exec/access.h"

bool matrix_converge(struct exec_warp *w, const struct exec_insn *i, const struct exec_insn **next)
{
    if (!w->released && !(w->alive & ~w->mask))
        return true;
    return sched_converge(w, i, EXEC_ALL, next);
}

// --- registers ---------------------------------------------------------------------------------------------

void matrix_gather32(const struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                     uint32_t *out)
{
    for (unsigned r = 0; r < map->nregs; r++) {
        const uint32_t *reg = (const uint32_t *)(w->regs + slot[r]);
        if (map->parts == 1)
            for (unsigned l = 0; l < EXEC_LANES; l++)
                out[map->at[r][l][0]] = reg[l];
        else
            for (unsigned l = 0; l < EXEC_LANES; l++) {
                out[map->at[r][l][0]] = reg[l] & 0xffff;
                out[map->at[r][l][1]] = reg[l] >> 16;
            }
    }
}

void matrix_scatter32(struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                      const uint32_t *from)
{
    for (unsigned r = 0; r < map->nregs; r++) {
        uint32_t *reg = (uint32_t *)(w->regs + slot[r]);
        for (unsigned l = 0; l < EXEC_LANES; l++) {
            const uint16_t *at = map->at[r][l];
            if (w->mask >> l & 1)
                reg[l] = map->parts == 1 ? from[at[0]] : (from[at[0]] & 0xffff) | from[at[1]] << 16;
        }
    }
}

void matrix_gather64(const struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                     uint64_t *out)
{
    for (unsigned r = 0; r < map->nregs; r++)
        for (unsigned l = 0; l < EXEC_LANES; l++)
            out[map->at[r][l][0]] = ((const uint64_t *)(w->regs + slot[r]))[l];
}

void matrix_scatter64(struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                      const uint64_t *from)
{
    for (unsigned r = 0; r < map->nregs; r++)
        for (unsigned l = 0; l < EXEC_LANES; l++)
            if (w->mask >> l & 1)
                ((uint64_t *)(w->regs + slot[r]))[l] = from[map->at[r][l][0]];
}

// --- wmma.load, wmma.store ---------------------------------------------------------------------------------

// Returns the bytes of a map's unit: an element, or a word of small elements.
static unsigned unit(const struct matrix_tile *t)
{
    unsigned bits = ptx_type_bits((enum ptx_type)t->type);
    return bits < 32 && bits != 16 ? 4 : bits / 8;
}

// Returns an element's offset from the first. Words of small elements lie along k, which is contiguous in
// memory.
static uint64_t offset(const struct exec_warp *w, const struct matrix_tile *t, unsigned lane, unsigned at)
{
    const struct matrix_map *m = t->map;
    unsigned row = at / m->columns, column = at % m->columns, bits = ptx_type_bits((enum ptx_type)t->type);
    unsigned per_unit = bits < 16 ? 32 / bits : 1;
    bool by_column = m->kind.by_column;
    uint64_t natural = (uint64_t)(by_column ? m->rows : m->columns) * per_unit;
    uint64_t stride = t->stride ? ((const uint32_t *)(w->regs + t->stride))[lane] : natural;
    uint64_t line = by_column ? column : row, along = by_column ? row : column;
    return line * stride * bits / 8 + along * unit(t);
}

// For 8-bit integers, A by columns and B by rows have their words across memory: one byte from each line.
static bool is_across(const struct matrix_map *m)
{
    unsigned bits = ptx_type_bits((enum ptx_type)m->kind.type);
    return bits < 16 && ((m->kind.which == MATRIX_A && m->kind.by_column) ||
                         (m->kind.which == MATRIX_B && !m->kind.by_column));
}

static uint64_t offset_across(const struct exec_warp *w, const struct matrix_tile *t, unsigned lane,
                              unsigned at, unsigned byte)
{
    const struct matrix_map *m = t->map;
    unsigned row = at / m->columns, column = at % m->columns;
    bool a = m->kind.which == MATRIX_A;
    uint64_t stride =
        t->stride ? ((const uint32_t *)(w->regs + t->stride))[lane] : (uint64_t)(a ? m->rows : m->columns);
    return ((uint64_t)(a ? column : row) * 4 + byte) * stride + (a ? row : column);
}

struct matrix_lines matrix_lines(const struct exec_warp *w, const struct exec_insn *i, unsigned lane)
{
    const struct matrix_tile *t = i->ptr;
    const struct matrix_kind *k = &t->map->kind;
    unsigned bits = ptx_type_bits((enum ptx_type)t->type);
    unsigned rows = k->which == MATRIX_B ? k->shape.k : k->shape.m;
    unsigned columns = k->which == MATRIX_A ? k->shape.k : k->shape.n;
    unsigned lines = k->by_column ? columns : rows, along = k->by_column ? rows : columns;
    uint64_t stride = t->stride ? ((const uint32_t *)(w->regs + t->stride))[lane] : along;
    return (struct matrix_lines){access_address(w, i + 1, lane), stride * bits / 8, lines, along * bits / 8};
}

static bool load_word(struct exec_warp *w, const struct exec_insn *i, const struct matrix_tile *t,
                      unsigned lane, unsigned r, uint64_t *out)
{
    const struct matrix_map *m = t->map;
    uint64_t base = access_address(w, i + 1, lane);
    unsigned size = unit(t);
    *out = 0;
    if (is_across(m)) {
        for (unsigned b = 0; b < 4; b++)
            if (!access_read(w, i + 1, lane, base + offset_across(w, t, lane, m->at[r][lane][0], b),
                             (char *)out + b, 1))
                return false;
        return true;
    }
    for (unsigned p = 0; p < m->parts; p++)
        if (!access_read(w, i + 1, lane, base + offset(w, t, lane, m->at[r][lane][p]), (char *)out + p * size,
                         size))
            return false;
    return true;
}

const struct exec_insn *matrix_load(struct exec_warp *w, const struct exec_insn *i)
{
    const struct matrix_tile *t = i->ptr;
    const struct exec_insn *next;
    if (!matrix_converge(w, i, &next))
        return next;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        // The address may be in a register that is overwritten.
        uint64_t value[MATRIX_REGS];
        for (unsigned r = 0; r < t->map->nregs; r++)
            if (!load_word(w, i, t, lane, r, &value[r]))
                return NULL;
        for (unsigned r = 0; r < t->map->nregs; r++) {
            char *to = w->regs + t->slot[r];
            if (t->type == PTX_F64)
                ((uint64_t *)to)[lane] = value[r];
            else
                ((uint32_t *)to)[lane] = (uint32_t)value[r];
        }
    }
    return i + 2;
}

const struct exec_insn *matrix_store(struct exec_warp *w, const struct exec_insn *i)
{
    const struct matrix_tile *t = i->ptr;
    const struct exec_insn *next;
    if (!matrix_converge(w, i, &next))
        return next;
    unsigned size = unit(t);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t base = access_address(w, i + 1, lane);
        for (unsigned r = 0; r < t->map->nregs; r++) {
            const char *from = w->regs + t->slot[r];
            uint64_t value =
                t->type == PTX_F64 ? ((const uint64_t *)from)[lane] : ((const uint32_t *)from)[lane];
            for (unsigned p = 0; p < t->map->parts; p++)
                if (!access_write(w, i + 1, lane, base + offset(w, t, lane, t->map->at[r][lane][p]),
                                  (const char *)&value + p * size, size))
                    return NULL;
        }
    }
    return i + 2;
}

// --- ldmatrix, stmatrix, movmatrix -------------------------------------------------------------------------

enum { SIDE = 8 };

// Matrices have 8 rows of 8 halves. Lane l holds two of row l / 4; transposed, of column l / 4.
static unsigned half_at(unsigned lane, unsigned part, bool transpose)
{
    unsigned line = lane / 4, along = lane % 4 * 2 + part;
    return transpose ? along * SIDE + line : line * SIDE + along;
}

static uint32_t *matrix_slot(const struct exec_warp *w, const struct exec_insn *i, unsigned k)
{
    return (uint32_t *)(w->regs + (k == 0 ? i->d : k == 1 ? i->b : k == 2 ? i->c : i->e));
}

const struct exec_insn *matrix_ldmatrix(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!matrix_converge(w, i, &next))
        return next;
    uint16_t rows[4][SIDE][SIDE] = {0};
    unsigned n = i->flags & MATRIX_COUNT;
    for (unsigned l = 0; l < n * SIDE; l++)
        if (w->mask >> l & 1 &&
            !access_read(w, i + 1, l, access_address(w, i + 1, l), rows[l / SIDE][l % SIDE], 16))
            return NULL;
    for (unsigned k = 0; k < n; k++)
        for (uint32_t left = w->mask; left; left &= left - 1) {
            unsigned l = (unsigned)__builtin_ctz(left);
            const uint16_t *all = &rows[k][0][0];
            matrix_slot(w, i, k)[l] = all[half_at(l, 0, i->flags & MATRIX_TRANSPOSE)] |
                                      (uint32_t)all[half_at(l, 1, i->flags & MATRIX_TRANSPOSE)] << 16;
        }
    return i + 2;
}

const struct exec_insn *matrix_stmatrix(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!matrix_converge(w, i, &next))
        return next;
    unsigned n = i->flags & MATRIX_COUNT;
    uint16_t rows[4][SIDE][SIDE];
    for (unsigned k = 0; k < n; k++)
        for (unsigned l = 0; l < EXEC_LANES; l++)
            for (unsigned p = 0; p < 2; p++)
                (&rows[k][0][0])[half_at(l, p, i->flags & MATRIX_TRANSPOSE)] =
                    (uint16_t)(matrix_slot(w, i, k)[l] >> (16 * p));
    for (unsigned l = 0; l < n * SIDE; l++)
        if (w->mask >> l & 1 &&
            !access_write(w, i + 1, l, access_address(w, i + 1, l), rows[l / SIDE][l % SIDE], 16))
            return NULL;
    return i + 2;
}

const struct exec_insn *matrix_movmatrix(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!matrix_converge(w, i, &next))
        return next;
    uint16_t all[SIDE * SIDE];
    const uint32_t *a = (const uint32_t *)(w->regs + i->a);
    uint32_t *d = (uint32_t *)(w->regs + i->d);
    for (unsigned l = 0; l < EXEC_LANES; l++)
        for (unsigned p = 0; p < 2; p++)
            all[half_at(l, p, false)] = (uint16_t)(a[l] >> (16 * p));
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        d[l] = all[half_at(l, 0, true)] | (uint32_t)all[half_at(l, 1, true)] << 16;
    }
    return i + 1;
}
