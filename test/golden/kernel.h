// SPDX-License-Identifier: MIT
// The kernel of a combination. Thread i of the grid loads the i-th tuple from `in`, executes the instruction
// and stores its results to `out`: a row of 64-bit words each. An instruction that accesses memory has a cell
// of 16 bytes for each thread, filled from the first two words of the tuple; its contents afterwards are
// stored behind the other results. Loads from global memory read the tuple itself, so that .nc is allowed.
#ifndef MOAT_TEST_GOLDEN_KERNEL_H
#define MOAT_TEST_GOLDEN_KERNEL_H

#include "combos.h"

enum { KERNEL_BLOCK = 256, KERNEL_CLUSTER = 4, KERNEL_PARAM = 512, KERNEL_WORDS = 2 * (COMBO_MOST + 1) };

static bool kernel_has_cell(const struct combo *c)
{
    return c->group == COMBO_MEMORY;
}

static bool kernel_is_load(const struct combo *c)
{
    return c->form->id == PTX_OP_LD || c->form->id == PTX_OP_LDU;
}

// Returns true if the cell is not the tuple itself: it must be filled, and may be changed.
static bool kernel_fills_cell(const struct combo *c)
{
    unsigned space = ptx_space_is(c->space);
    if (space == PTX_SPACE_CONST || space == PTX_SPACE_PARAM)
        return false;
    return kernel_has_cell(c) &&
           !(kernel_is_load(c) && (space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC));
}

static bool kernel_shows_cell(const struct combo *c)
{
    return kernel_has_cell(c) && !kernel_is_load(c);
}

static unsigned slot_words(const struct combo_slot *s)
{
    return s->bits == 128 ? 2 : 1;
}

// Describes what the words of a tuple hold; returns their number.
static unsigned kernel_inputs(const struct combo *c, struct input in[KERNEL_WORDS])
{
    unsigned n = 0;
    if (kernel_has_cell(c)) {
        enum ptx_type t = c->form->types[c->form->ntypes - 1];
        struct input cell = input_of_type(t, 64);
        if (cell.kind == INPUT_BYTES || cell.bits < 8)
            cell = (struct input){.kind = INPUT_INT, .bits = 64};
        cell.parts = (uint8_t)(64 / cell.bits);
        in[n++] = cell;
        in[n++] = cell;
    }
    for (unsigned i = 0; i < c->nin; i++)
        for (unsigned w = 0; w < slot_words(&c->in[i]); w++)
            in[n++] = c->in[i].input;
    if (c->form->flags & PTX_CC_READ)
        in[n++] = input_of_type(PTX_PRED, 1);
    if (kernel_has_cell(c) && n % 2)
        in[n++] = input_of_type(PTX_PRED, 1);
    return n;
}

static unsigned kernel_outputs(const struct combo *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->nout; i++)
        n += slot_words(&c->out[i]);
    return n + !!(c->form->flags & PTX_CC_WRITE) + (kernel_shows_cell(c) ? 2 : 0);
}

// --- writing it -------------------------------------------------------------------------------------------

static void kernel_declare_one(struct out *to, char letter, unsigned i, unsigned bits)
{
    if (bits == 1)
        out_fmt(to, "    .reg .pred %%%c%u;\n", letter, i);
    else
        out_fmt(to, "    .reg .b%u %%%c%u;\n", bits, letter, i);
}

static void kernel_declare(const struct combo *c, struct out *to)
{
    out_cstr(to, "    .reg .b32 %t, %n;\n    .reg .b64 %in, %out, %a, %lo, %hi;\n    .reg .pred %g;\n");
    for (unsigned i = 0; i < c->nin; i++)
        kernel_declare_one(to, 's', i, c->in[i].bits);
    for (unsigned i = 0; i < c->nout; i++)
        kernel_declare_one(to, 'd', i, c->out[i].bits);
    unsigned space = ptx_space_is(c->space);
    if (space == PTX_SPACE_SHARED || space == PTX_SPACE_SHARED_CLUSTER)
        out_fmt(to, "    .shared .align 16 .b8 cell[%u];\n", KERNEL_BLOCK * COMBO_CELL);
    if (space == PTX_SPACE_LOCAL)
        out_fmt(to, "    .local .align 16 .b8 cell[%u];\n", COMBO_CELL);
}

static void kernel_places(const struct combo *c, unsigned nin, unsigned nout, struct out *to)
{
    out_fmt(to,
            "    mov.u32 %%n, %%ctaid.x;\n    mov.u32 %%t, %%tid.x;\n    mad.lo.u32 %%t, %%n, %u, %%t;\n"
            "    ld.param.u64 %%in, [in];\n    mad.wide.u32 %%in, %%t, %u, %%in;\n"
            "    ld.param.u64 %%out, [out];\n    mad.wide.u32 %%out, %%t, %u, %%out;\n",
            KERNEL_BLOCK, nin * 8, nout * 8);
    if (!kernel_has_cell(c))
        return;
    switch (ptx_space_is(c->space)) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER:
        out_cstr(to, "    mov.u32 %t, %tid.x;\n    mov.u64 %a, cell;\n    mad.wide.u32 %a, %t, 16, %a;\n");
        break;
    case PTX_SPACE_LOCAL: out_cstr(to, "    mov.u64 %a, cell;\n"); break;
    case PTX_SPACE_CONST:
        out_cstr(to,
                 "    mov.u32 %t, %tid.x;\n    mov.u64 %a, constants;\n    mad.wide.u32 %a, %t, 16, %a;\n");
        break;
    case PTX_SPACE_PARAM:
        out_cstr(to, "    and.b32 %t, %t, 31;\n    mov.u64 %a, bytes;\n    mad.wide.u32 %a, %t, 16, %a;\n");
        break;
    default:
        if (kernel_is_load(c))
            out_cstr(to, "    mov.u64 %a, %in;\n");
        else
            out_cstr(to, "    ld.param.u64 %a, [mem];\n    mad.wide.u32 %a, %t, 16, %a;\n");
    }
}

static const char *cell_word(const struct combo *c)
{
    switch (ptx_space_is(c->space)) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER: return "shared";
    case PTX_SPACE_LOCAL: return "local";
    default: return "global";
    }
}

static void kernel_load(const struct combo *c, struct out *to)
{
    unsigned word = 0;
    if (kernel_fills_cell(c))
        out_fmt(to, "    ld.global.v2.b64 {%%lo, %%hi}, [%%in];\n    st.%s.v2.b64 [%%a], {%%lo, %%hi};\n",
                cell_word(c));
    if (kernel_has_cell(c))
        word = 2;
    for (unsigned i = 0; i < c->nin; i++) {
        unsigned bits = c->in[i].bits;
        if (c->hinted && i == c->nin - 1u)
            out_fmt(to, "    createpolicy.fractional.L2::evict_normal.b64 %%s%u, 1.0;\n", i);
        else if (bits == 1)
            out_fmt(to, "    ld.global.b32 %%t, [%%in+%u];\n    setp.ne.u32 %%s%u, %%t, 0;\n", word * 8, i);
        else if (bits == 128)
            out_fmt(to,
                    "    ld.global.b64 %%lo, [%%in+%u];\n    ld.global.b64 %%hi, [%%in+%u];\n"
                    "    mov.b128 %%s%u, {%%lo, %%hi};\n",
                    word * 8, word * 8 + 8, i);
        else
            out_fmt(to, "    ld.global.b%u %%s%u, [%%in+%u];\n", bits, i, word * 8);
        word += slot_words(&c->in[i]);
    }
    if (c->form->flags & PTX_CC_READ)
        out_fmt(to, "    ld.global.b32 %%t, [%%in+%u];\n", word * 8);
}

static bool kernel_borrows(const struct combo *c)
{
    return c->form->id == PTX_OP_SUB || c->form->id == PTX_OP_SUBC;
}

static void kernel_execute(const struct combo *c, struct out *to)
{
    if (c->form->flags & PTX_CC_READ)
        out_cstr(to,
                 kernel_borrows(c) ? "    sub.cc.u32 %n, 0, %t;\n" : "    add.cc.u32 %n, %t, 0xffffffff;\n");
    if (c->masked) {
        for (unsigned i = 0; i < c->nout; i++) {
            if (c->out[i].bits == 1)
                out_fmt(to, "    setp.ne.u32 %%d%u, %%n, %%n;\n", i);
            else
                out_fmt(to, "    mov.b%u %%d%u, 0;\n", c->out[i].bits, i);
        }
        out_fmt(to,
                "    mov.u32 %%t, %%laneid;\n    shr.u32 %%t, %%s%u, %%t;\n    and.b32 %%t, %%t, 1;\n"
                "    setp.ne.u32 %%g, %%t, 0;\n    @%%g ",
                c->nin - 1);
    } else {
        out_cstr(to, "    ");
    }
    out_cstr(to, c->text);
    out_char(to, '\n');
    if (c->form->flags & PTX_CC_WRITE)
        out_cstr(to, kernel_borrows(c) ? "    subc.u32 %t, 0, 0;\n" : "    addc.u32 %t, 0, 0;\n");
}

static void kernel_store(const struct combo *c, struct out *to)
{
    unsigned word = 0;
    if (c->form->flags & PTX_CC_WRITE)
        out_fmt(to, "    st.global.b32 [%%out+%u], %%t;\n", word++ * 8);
    for (unsigned i = 0; i < c->nout; i++) {
        unsigned bits = c->out[i].bits;
        if (bits == 1)
            out_fmt(to, "    selp.u32 %%t, 1, 0, %%d%u;\n    st.global.b32 [%%out+%u], %%t;\n", i, word * 8);
        else if (bits == 128)
            out_fmt(to,
                    "    mov.b128 {%%lo, %%hi}, %%d%u;\n    st.global.b64 [%%out+%u], %%lo;\n"
                    "    st.global.b64 [%%out+%u], %%hi;\n",
                    i, word * 8, word * 8 + 8);
        else
            out_fmt(to, "    st.global.b%u [%%out+%u], %%d%u;\n", bits, word * 8, i);
        word += slot_words(&c->out[i]);
    }
    if (kernel_shows_cell(c))
        out_fmt(to,
                "    ld.%s.v2.b64 {%%lo, %%hi}, [%%a];\n    st.global.b64 [%%out+%u], %%lo;\n"
                "    st.global.b64 [%%out+%u], %%hi;\n",
                cell_word(c), word * 8, word * 8 + 8);
}

// Prints from the parameters to the closing brace: all but the name.
static void kernel_print(const struct combo *c, struct out *to)
{
    struct input in[KERNEL_WORDS];
    out_cstr(to, "(.param .u64 in, .param .u64 out, .param .u64 mem");
    if (kernel_has_cell(c) && ptx_space_is(c->space) == PTX_SPACE_PARAM)
        out_fmt(to, ", .param .align 16 .b8 bytes[%u]", KERNEL_PARAM);
    out_cstr(to, ")\n");
    if (c->clusters)
        out_fmt(to, ".explicitcluster\n.reqnctapercluster %u, 1, 1\n", KERNEL_CLUSTER);
    out_cstr(to, "{\n");
    kernel_declare(c, to);
    kernel_places(c, kernel_inputs(c, in), kernel_outputs(c), to);
    kernel_load(c, to);
    kernel_execute(c, to);
    kernel_store(c, to);
    out_cstr(to, "    ret;\n}\n");
}

// A byte of the constant bank and of the parameter.
static unsigned kernel_byte(unsigned i)
{
    return (i * 167u + (i >> 4) * 59u + 129u) & 255;
}

static void kernel_print_header(struct out *to)
{
    out_cstr(to, ".version 9.0\n.target sm_90\n.address_size 64\n\n");
    out_fmt(to, ".const .align 16 .b8 constants[%u] = {", KERNEL_BLOCK * COMBO_CELL);
    for (unsigned i = 0; i < KERNEL_BLOCK * COMBO_CELL; i++)
        out_fmt(to, "%s%u", i ? (i % 32 ? ", " : ",\n    ") : "\n    ", kernel_byte(i));
    out_cstr(to, "\n};\n\n");
}

#endif
