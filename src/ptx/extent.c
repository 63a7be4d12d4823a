// SPDX-License-Identifier: MIT
// ptx_stmt_mem: which memory an instruction touches. The rows of ops.def say how the extent of an access is
// found; this file adds the dimensions of matrices.
#include "ptx/ptx.h"

enum { WARP_LANES = 32, ROW_BYTES = 16, BARRIER_BYTES = 8 };

// --- sizes that instructions spell -------------------------------------------------------------------------

static void set_plain(const struct ptx_form *form, uint32_t bytes, struct ptx_mem *out)
{
    if (form->odd)  // the unknown modifier may change the size
        return;
    out->extent = PTX_EXTENT_PLAIN;
    out->bytes = out->share = bytes;
}

static unsigned register_bits(const struct ptx_func *f, const struct ptx_operand *o)
{
    if (o->kind != PTX_REG || o->sub != PTX_SEL_NONE)
        return 0;
    const struct ptx_var *var = ptx_reg_var(f, o->id);
    return ptx_type_bits((enum ptx_type)var->type) * var->vec;
}

// The operand gives the number of bytes, at most `most` if that is not 0.
static void set_counted(const struct ptx_func *f, const struct ptx_stmt *s, const struct ptx_operand *o,
                        uint32_t most, struct ptx_mem *out)
{
    if (!o)
        return;
    if (o->kind == PTX_IMM && o->sub == PTX_IMM_INT && o->value >= 0 && o->value <= UINT32_MAX) {
        set_plain(s->form, (uint32_t)o->value, out);
        return;
    }
    unsigned bits = register_bits(f, o);
    if (o->negated || (bits != 32 && bits != 64))
        return;
    out->extent = PTX_EXTENT_COUNTED;
    out->size = o;
    out->bytes = most;
}

// cp.async reads as many of the bytes that it writes as an operand behind the size says, or none if that
// operand is a predicate and true. The rest is written as zeroes.
static void set_copy(const struct ptx_func *f, const struct ptx_stmt *s, struct ptx_mem *out)
{
    bool hint = ptx_form_has(s->form, PTX_MOD_L2_CACHE_HINT);
    set_counted(f, s, ptx_operand(s, 2), 0, out);
    if (out->writes || !ptx_operand(s, hint ? 4 : 3))
        return;
    const struct ptx_operand *less = ptx_operand(s, 3);
    if (register_bits(f, less) == 1) {
        out->unless = less;
        out->share = 0;
        return;
    }
    uint32_t most = out->bytes;
    out->extent = PTX_EXTENT_UNSIZED;
    out->bytes = out->share = 0;
    set_counted(f, s, less, most, out);
}

// --- matrices ----------------------------------------------------------------------------------------------

// Rows of one matrix for which lanes hold addresses. .trans does not change the layout in memory.
static const struct {
    uint8_t m, n, rows;
} row_matrices[] = {{8, 8, 8}, {8, 16, 8}, {16, 16, 16}, {16, 8, 8}};

static void set_rows(const struct ptx_form *form, struct ptx_mem *out)
{
    struct ptx_dims dims;
    unsigned matrices = ptx_form_has(form, PTX_MOD_X4) ? 4 : ptx_form_has(form, PTX_MOD_X2) ? 2 : 1;
    unsigned rows = 0, type = form->ntypes ? form->types[form->ntypes - 1u] : PTX_TYPE_NONE;
    if (!ptx_form_dims(form, &dims))
        return;
    for (unsigned i = 0; i < sizeof row_matrices / sizeof *row_matrices; i++)
        if (row_matrices[i].m == dims.m && row_matrices[i].n == dims.n)
            rows = row_matrices[i].rows * matrices;
    if (!rows || rows > WARP_LANES)
        return;
    out->share = ROW_BYTES * rows / WARP_LANES;
    if (form->odd)
        return;
    out->extent = PTX_EXTENT_ROWS;
    out->bytes = ROW_BYTES;
    out->lanes = (uint8_t)rows;
    out->padding = type == PTX_B6X16_P32 ? 4 : type == PTX_B4X16_P64 ? 8 : 0;
}

// Rows and columns of the wmma matrices, in terms of the dimensions of the product.
enum dim { DIM_M, DIM_N, DIM_K };
static const struct {
    uint16_t mod;
    uint8_t rows, columns;
} tile_matrices[] = {{PTX_MOD_A, DIM_M, DIM_K},
                     {PTX_MOD_B, DIM_K, DIM_N},
                     {PTX_MOD_C, DIM_M, DIM_N},
                     {PTX_MOD_D, DIM_M, DIM_N}};

static bool find_tile(const struct ptx_form *form, struct ptx_mem *out)
{
    struct ptx_dims dims;
    if (form->ntypes != 1 || !ptx_form_dims(form, &dims) || !dims.k)
        return false;
    const uint16_t size[] = {[DIM_M] = dims.m, [DIM_N] = dims.n, [DIM_K] = dims.k};
    bool by_column = ptx_form_has(form, PTX_MOD_COL);
    for (unsigned i = 0; i < sizeof tile_matrices / sizeof *tile_matrices; i++) {
        if (!ptx_form_has(form, (enum ptx_mod)tile_matrices[i].mod))
            continue;
        uint16_t rows = size[tile_matrices[i].rows], columns = size[tile_matrices[i].columns];
        out->lines = by_column ? columns : rows;
        out->length = by_column ? rows : columns;
        out->element_bits = (uint8_t)ptx_type_bits((enum ptx_type)form->types[0]);
        return true;
    }
    return false;
}

static uint32_t tile_bytes(const struct ptx_mem *tile)
{
    const struct ptx_operand *stride = tile->stride;
    uint64_t step = tile->length;
    if (stride) {
        if (stride->kind != PTX_IMM || stride->sub != PTX_IMM_INT || stride->value < 0 ||
            stride->value > INT32_MAX)
            return 0;
        step = (uint64_t)stride->value;
    }
    uint64_t bytes = ((tile->lines - 1u) * step + tile->length) * tile->element_bits / 8;
    return bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
}

static void set_tile(const struct ptx_stmt *s, struct ptx_mem *out)
{
    if (!find_tile(s->form, out))
        return;
    out->share = (uint32_t)out->lines * out->length * out->element_bits / 8 / WARP_LANES;
    if (s->form->odd)
        return;
    out->extent = PTX_EXTENT_TILE;
    out->stride = ptx_operand(s, 2);
    out->bytes = tile_bytes(out);
}

// --- all ---------------------------------------------------------------------------------------------------

static void set_tensor(const struct ptx_stmt *s, struct ptx_mem *out)
{
    const struct ptx_operand *o = s->operands, *end = o + s->nslots;
    while (o < end && o->kind != PTX_TUPLE)
        o = ptx_next(o);
    if (o == end || s->form->odd)
        return;
    out->extent = PTX_EXTENT_TENSOR;
    out->map = o;
}

static void set_extent(const struct ptx_func *f, const struct ptx_stmt *s, struct ptx_mem *out)
{
    const struct ptx_form *form = s->form;
    switch ((enum ptx_width)form->op->width) {
    case PTX_WIDTH_TYPE:
        if (form->ntypes)
            set_plain(form, ptx_type_bits((enum ptx_type)form->types[form->ntypes - 1]) * form->vec / 8, out);
        break;
    case PTX_WIDTH_OPERAND1: set_counted(f, s, ptx_operand(s, 1), 0, out); break;
    case PTX_WIDTH_OPERAND2: set_counted(f, s, ptx_operand(s, 2), 0, out); break;
    case PTX_WIDTH_OPERAND3: set_counted(f, s, ptx_operand(s, 3), 0, out); break;
    case PTX_WIDTH_COPY: set_copy(f, s, out); break;
    case PTX_WIDTH_FIXED4: set_plain(form, 4, out); break;
    case PTX_WIDTH_FIXED8: set_plain(form, 8, out); break;
    case PTX_WIDTH_FIXED16: set_plain(form, 16, out); break;
    case PTX_WIDTH_FIXED128: set_plain(form, 128, out); break;
    case PTX_WIDTH_ROWS: set_rows(form, out); break;
    case PTX_WIDTH_TILE: set_tile(s, out); break;
    case PTX_WIDTH_TENSOR: set_tensor(s, out); break;
    case PTX_WIDTH_NONE:
    case PTX_WIDTH_OPAQUE: break;
    }
}

// Spaces are spelled in the order of the operands; a single one applies to all.
static uint8_t space_of(const struct ptx_form *form, unsigned nth)
{
    if (form->nspaces == 0)
        return form->op->space;
    return form->spaces[nth < form->nspaces ? nth : form->nspaces - 1u];
}

static const struct {
    bool is_memory, reads, writes, atomic;  // is_memory: the bracketed operand is memory
} roles[] = {
    [PTX_ROLE_MEM_READ] = {.is_memory = true, .reads = true},
    [PTX_ROLE_MEM_WRITE] = {.is_memory = true, .writes = true},
    [PTX_ROLE_MEM_ATOMIC] = {.is_memory = true, .reads = true, .writes = true, .atomic = true},
    [PTX_ROLE_ADDRESS] = {.is_memory = true},
    [PTX_ROLE_DESCRIPTOR] = {.is_memory = true, .reads = true},
    [PTX_ROLE_PROTO] = {.is_memory = false},
};

// Fills the nth row of an instruction, for one of its operands. Returns false if the operand does not stand
// for memory.
static bool fill(const struct ptx_func *f, const struct ptx_stmt *s, const struct ptx_operand *o,
                 enum ptx_role role, unsigned nth, struct ptx_mem *out)
{
    bool brackets = o->kind == PTX_ADDR || o->kind == PTX_TUPLE;
    bool describes = role == PTX_ROLE_DESCRIPTOR && register_bits(f, o) == 64;
    if (!describes && (!brackets || !roles[role].is_memory))
        return false;
    // The barrier that a copy signals is written after the copied operands and lies in the destination's
    // space.
    bool barrier = nth > 0 && role == PTX_ROLE_MEM_ATOMIC;
    *out = (struct ptx_mem){.addr = o,
                            .space = space_of(s->form, barrier ? 0 : nth),
                            .reads = roles[role].reads,
                            .writes = roles[role].writes,
                            .atomic = roles[role].atomic,
                            .collective = s->form->flags & PTX_WARP};
    if (describes) {
        out->space = PTX_SPACE_SHARED;
        out->extent = PTX_EXTENT_DESCRIPTOR;
    } else if (barrier) {
        out->extent = PTX_EXTENT_PLAIN;
        out->bytes = out->share = BARRIER_BYTES;
    } else {
        set_extent(f, s, out);
    }
    return true;
}

unsigned ptx_stmt_mem(const struct ptx_func *f, const struct ptx_stmt *s, struct ptx_mem out[PTX_MAX_MEM])
{
    if (s->kind != PTX_INSN)
        return 0;
    const struct ptx_form *form = s->form;
    const struct ptx_operand *o = s->operands, *end = o + s->nslots;
    unsigned n = 0;
    for (unsigned i = 0; o < end && i < form->nrules && n < PTX_MAX_MEM; o = ptx_next(o), i++)
        n += fill(f, s, o, (enum ptx_role)form->rules[i].role, n, &out[n]);
    return n;
}
