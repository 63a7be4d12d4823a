// SPDX-License-Identifier: MIT
// Which lane holds which element of a matrix. PTX specifies this for mma; for wmma it does not, and this is
// what an H200 does.
#include <string.h>

#include "exec/matrix.h"

static unsigned bits_of(const struct matrix_kind *k)
{
    return ptx_type_bits((enum ptx_type)k->type);
}

// Returns the depth; elements of less than 16 bits count as words along k.
static unsigned depth(const struct matrix_kind *k)
{
    unsigned bits = bits_of(k);
    return bits < 16 ? k->shape.k * bits / 32 : k->shape.k;
}

// Sets the map's dimensions. Registers of A and B hold 32 bits along k, or an f64; those of C and D also
// pairs of f16.
static void set_size(const struct matrix_kind *k, struct matrix_map *map)
{
    unsigned m = k->shape.m, n = k->shape.n;
    map->rows = (uint16_t)(k->which == MATRIX_B ? depth(k) : m);
    map->columns = (uint16_t)(k->which == MATRIX_A ? depth(k) : n);
    map->parts = bits_of(k) == 16 ? 2 : 1;
}

static void put(struct matrix_map *map, unsigned reg, unsigned lane, unsigned part, unsigned row,
                unsigned column)
{
    map->at[reg][lane][part] = (uint16_t)(row * map->columns + column);
}

// --- mma ---------------------------------------------------------------------------------------------------

// 8 or 16 rows and 8 columns. Lanes form groups of four: a group holds a row of A and of C, and a column of
// B.
static bool make_groups(struct matrix_map *map)
{
    const struct matrix_kind *k = &map->kind;
    unsigned halves = k->shape.m / 8, parts = map->parts;
    if (k->shape.n != 8 || (k->shape.m != 8 && k->shape.m != 16))
        return false;
    unsigned of_lane = (unsigned)map->rows * map->columns / EXEC_LANES;
    if ((unsigned)map->rows * map->columns % (EXEC_LANES * parts) || of_lane / parts > MATRIX_REGS ||
        of_lane < parts)
        return false;
    map->nregs = (uint8_t)(of_lane / parts);
    for (unsigned r = 0; r < map->nregs; r++)
        for (unsigned l = 0; l < EXEC_LANES; l++)
            for (unsigned p = 0; p < parts; p++) {
                unsigned group = l / 4, member = l % 4;
                if (k->which == MATRIX_A)
                    put(map, r, l, p, group + 8 * (r % halves), (member + 4 * (r / halves)) * parts + p);
                else if (k->which == MATRIX_B)
                    put(map, r, l, p, (member + 4 * r) * parts + p, group);
                else if (parts == 2)
                    put(map, r, l, p, group + 8 * r, member * 2 + p);
                else
                    put(map, r, l, p, group + 8 * (r / 2), member * 2 + r % 2);
            }
    return true;
}

// m8n8k4 of f16: eight lanes, four of the lower half warp and four of the upper, compute a product of their
// own. The four products lie one after the other.
static void put_eight(struct matrix_map *map, unsigned lane, unsigned i)
{
    const struct matrix_kind *k = &map->kind;
    unsigned upper = lane / 16 * 4, member = lane % 4, product = lane / 4 % 4, row, column;
    if (k->which == MATRIX_A) {
        row = k->by_column ? i + upper : member + upper;
        column = k->by_column ? member : i;
    } else if (k->which == MATRIX_B) {
        row = k->by_column ? i : member;
        column = k->by_column ? member + upper : i + upper;
    } else if (map->parts == 2) {
        row = member + upper;
        column = i;
    } else {
        row = (lane & 1) + (i & 2) + upper;
        column = (i & 4) + (lane & 2) + (i & 1);
    }
    unsigned size = (unsigned)map->rows * map->columns;
    map->at[i / map->parts][lane][i % map->parts] = (uint16_t)(product * size + row * map->columns + column);
}

static bool make_eights(struct matrix_map *map)
{
    unsigned of_lane = (unsigned)map->rows * map->columns / 8;
    map->nregs = (uint8_t)(of_lane / map->parts);
    for (unsigned l = 0; l < EXEC_LANES; l++)
        for (unsigned i = 0; i < of_lane; i++)
            put_eight(map, l, i);
    return true;
}

// --- wmma --------------------------------------------------------------------------------------------------

// Lane l is member l % 4 of group l / 4. A group holds a row of A, a column of B; a member holds words of k.
// If a matrix is taller or wider than 8, further registers hold what is 8 further. f16 always fills eight
// registers: the contents repeat.
static void put_factor(struct matrix_map *map, unsigned r, unsigned lane, unsigned part)
{
    const struct matrix_kind *k = &map->kind;
    unsigned side = k->which == MATRIX_A ? k->shape.m : k->shape.n, words = depth(k) / map->parts;
    unsigned deep = words / 4, line, word;
    if (side == 8 || deep == 1) {
        line = r / deep;
        word = r % deep;
    } else if (side == 16) {
        // The second half of k comes last in A, second in B.
        line = k->which == MATRIX_A ? r % 2 : r / 2;
        word = k->which == MATRIX_A ? r / 2 : r % 2;
    } else {
        line = r % 2 + r / 4 * 2;
        word = r / 2 % 2;
    }
    unsigned along = (lane % 4 + 4 * word) * map->parts + part, across = lane / 4 + 8 * line;
    if (k->which == MATRIX_A)
        put(map, r, lane, part, across, along);
    else
        put(map, r, lane, part, along, across);
}

// Places element e of a lane in C or D.
static void put_sum(struct matrix_map *map, unsigned lane, unsigned e)
{
    const struct matrix_shape *s = &map->kind.shape;
    unsigned group = lane / 4, member = lane % 4 * 2, r = e / map->parts, p = e % map->parts;
    if (s->m == 16)
        put(map, r, lane, p, group + e / 2 % 2 * 8, member + e % 2 + e / 4 * 8);
    else if (s->n == 32)
        put(map, r, lane, p, member + e % 2, group + e / 2 * 8);
    else
        put(map, r, lane, p, group + e / 2 * 8, member + e % 2);
}

static bool is_warp_shape(const struct matrix_shape *s)
{
    return (s->m == 16 && s->n == 16) || (s->m == 8 && s->n == 32) || (s->m == 32 && s->n == 8) ||
           (s->m == 8 && s->n == 8);
}

static bool make_warp(struct matrix_map *map)
{
    const struct matrix_kind *k = &map->kind;
    unsigned elements = (unsigned)map->rows * map->columns / EXEC_LANES;
    if (!is_warp_shape(&k->shape) || elements < map->parts || elements / map->parts > MATRIX_REGS)
        return false;
    unsigned own = elements / map->parts;
    map->nregs = (uint8_t)(k->which != MATRIX_C && k->type == PTX_F16 ? MATRIX_REGS : own);
    for (unsigned l = 0; l < EXEC_LANES; l++)
        for (unsigned e = 0; e < elements; e++) {
            if (k->which == MATRIX_C)
                put_sum(map, l, e);
            else
                put_factor(map, e / map->parts, l, e % map->parts);
        }
    for (unsigned r = own; r < map->nregs; r++)
        memcpy(map->at[r], map->at[r - own], sizeof map->at[r]);
    return true;
}

// --- existing kinds ----------------------------------------------------------------------------------------

// The depths of A and B: for mma with m = 8, with m = 16, and for wmma. 0: none.
static const struct {
    uint8_t type;
    uint16_t eight, sixteen[3], warp;
} depths[] = {
    {PTX_F16, 4, {8, 16, 0}, 16},  {PTX_BF16, 0, {8, 16, 0}, 16}, {PTX_TF32, 0, {4, 8, 0}, 8},
    {PTX_F64, 4, {4, 8, 16}, 4},   {PTX_S8, 16, {16, 32, 0}, 16}, {PTX_U8, 16, {16, 32, 0}, 16},
    {PTX_S4, 32, {32, 64, 0}, 32}, {PTX_U4, 32, {32, 64, 0}, 32}, {PTX_B1, 128, {128, 256, 0}, 128},
    {PTX_E4M3, 0, {16, 32, 0}, 0}, {PTX_E5M2, 0, {16, 32, 0}, 0},
};

// C and D have no depth, but not all types.
static bool is_known(const struct matrix_kind *kind)
{
    unsigned k = kind->shape.k;
    if (kind->which == MATRIX_C || kind->which == MATRIX_D)
        return kind->type == PTX_F16 || kind->type == PTX_F32 || kind->type == PTX_S32 ||
               kind->type == PTX_F64;
    for (size_t n = 0; n < sizeof depths / sizeof *depths; n++) {
        if (depths[n].type != kind->type)
            continue;
        if (kind->warp_level)
            return k == depths[n].warp;
        if (kind->of_sparse && k == 2 * depths[n].sixteen[1])
            return true;
        return kind->shape.m == 8
                   ? k == depths[n].eight
                   : k == depths[n].sixteen[0] || k == depths[n].sixteen[1] || k == depths[n].sixteen[2];
    }
    return false;
}

bool matrix_map_make(const struct matrix_kind *kind, struct matrix_map *out)
{
    memset(out, 0, sizeof *out);
    out->kind = *kind;
    set_size(kind, out);
    if (!is_known(kind) || !out->rows || !out->columns)
        return false;
    if (kind->warp_level)
        return make_warp(out);
    bool eights = kind->shape.m == 8 && kind->shape.n == 8 && kind->shape.k == 4;
    // m8n8k4 of f64 is laid out like the other shapes.
    return eights && bits_of(kind) != 64 ? make_eights(out) : make_groups(out);
}
