// SPDX-License-Identifier: MIT
// Tensor maps that a kernel makes from nothing, as Triton's do (tl.make_tensor_descriptor): in shared memory
// each field is set by tensormap.replace, then tensormap.cp_fenceproxy copies the map to global memory, where
// copies of boxes find it.
//
// The thread that sets the fields notes them in local memory: a struct kcheck_map, and a mask of what it has
// set. When it copies a map all of whose fields it has set, and whose tensor is not all in one live buffer,
// it puts the struct into a table of the module, in the place that the map's address has there. Other maps
// need no comparisons, and one that was copied to the same address before is removed. A copy of a
// box looks into that place and takes its numbers from there, as from the hidden parameter, if the address
// and the launch are the same. Maps that share a place drive each other out; of those nothing is known then.
//
// A place is valid while its `map` is not 0: it is set to 0 before, and to the address after the other words.
// Who reads them reads it before and after.
#include <stdio.h>

#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)
#define IN_MAP(member) offsetof(struct kcheck_map, member)

enum {
    PLACES = 1024,
    PLACE_BYTES = 128,
    // Behind the struct, in the table: the map's address, and the launch. In local memory: the mask of what
    // is set, and the dimensions - 1.
    MAP = sizeof(struct kcheck_map),
    LAUNCH = MAP + 8,
    MASK = MAP,
    RANK = MASK + 4,
    NOTED_BYTES = RANK + 4,
    // Bits of the mask, the first four for dimension 0.
    BOX = 1,
    DIM = 1 << 8,
    STEP = 1 << 16,
    STRIDE = 1 << 24,
    ADDRESS = 1 << 29,
    OTHER = 1 << 30,  // something that is not understood
};
_Static_assert(LAUNCH + 8 <= PLACE_BYTES && PLACE_BYTES == 1 << 7, "a place has room, and the shift is 7");

static bool is_op(const struct ptx_stmt *s, enum ptx_op_id id)
{
    return s->kind == PTX_INSN && s->form->id == id && !s->form->odd;
}

// Whether a statement copies a map from shared to global memory.
static bool copies_map(const struct ptx_stmt *s)
{
    return is_op(s, PTX_OP_TENSORMAP_CP_FENCEPROXY) && s->form->nspaces == 2 &&
           ptx_space_is((enum ptx_space)s->form->spaces[0]) == PTX_SPACE_GLOBAL;
}

static bool sets_field(const struct ptx_stmt *s)
{
    return is_op(s, PTX_OP_TENSORMAP_REPLACE) && s->form->nspaces == 1 &&
           ptx_space_is((enum ptx_space)s->form->spaces[0]) == PTX_SPACE_SHARED;
}

bool check_makes_maps(struct check_func *k)
{
    bool makes = k->makes_maps;
    for (uint32_t i = 0; i < k->f->nstmts && !makes; i++)
        makes = copies_map(&k->f->stmts[i]);
    k->makes_maps = makes;
    return makes;
}

void check_open_made(struct check_func *k)
{
    if (!k->makes_maps)
        return;
    if (k->k->made == PTX_NONE) {
        struct str name = edit_name(k->k->c->edit, "maps");
        char text[120];
        int n = snprintf(text, sizeof text, ".global .align 128 .b8 " STR_FMT "[%u];", STR_ARG(name),
                         (unsigned)(PLACES * PLACE_BYTES));
        edit_add(k->k->c->edit, (struct str){text, (size_t)n});
        k->k->made = edit_find(k->k->c->edit, name);
    }
    k->noted = edit_new_local(k->k->c->edit, NOTED_BYTES);
    k->place = edit_new_reg(k->k->c->edit, PTX_U64);
    for (int64_t at = 0; at < NOTED_BYTES; at += 8)
        edit_entry(k->k->c->edit, "st.local.u64 [%0], 0;", edit_sym_at(k->noted, at));
}

// --- what a kernel makes -----------------------------------------------------------------------------------

static struct ptx_operand noted(const struct check_func *k, int64_t offset)
{
    return edit_sym_at(k->noted, offset);
}

// Adds a bit to the mask where k->any is set.
static void note_bit(struct check_func *k, uint32_t at, uint32_t bit)
{
    BEFORE(k, at, "ld.local.u32 %0, [%1];\nor.b32 %0, %0, %2;\n@%3 st.local.u32 [%1], %0;", edit_reg(k->x),
           noted(k, MASK), edit_imm(bit), edit_reg(k->any));
}

// Notes a number of 32 bits less `less`, or of 64 bits, where k->any is set.
static void note_word(struct check_func *k, uint32_t at, struct ptx_operand value, int64_t to, unsigned less)
{
    BEFORE(k, at, "mov.b32 %0, %1;\nsub.u32 %0, %0, %4;\n@%3 st.local.u32 [%2], %0;", edit_reg(k->x), value,
           noted(k, to), edit_reg(k->any), edit_imm(less));
}

static void note_long(struct check_func *k, uint32_t at, struct ptx_operand value, int64_t to)
{
    BEFORE(k, at, "mov.b64 %0, %1;\n@%3 st.local.u64 [%2], %0;", edit_reg(k->t), value, noted(k, to),
           edit_reg(k->any));
}

// Returns the bytes of an element, 0 if they are not whole ones.
static uint32_t element_of(const struct ptx_operand *type)
{
    static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4};
    bool known = type->kind == PTX_IMM && type->value >= 0 && type->value < (int64_t)sizeof bytes;
    return known ? bytes[type->value] : 0;
}

// Notes a field of a dimension.
static void note_dimension(struct check_func *k, uint32_t at, const struct ptx_form *form, int64_t d,
                           struct ptx_operand value)
{
    if (d < 0 || d >= KCHECK_MAP_RANK) {
        note_bit(k, at, OTHER);
    } else if (ptx_form_has(form, PTX_MOD_BOX_DIM)) {
        note_word(k, at, value, (int64_t)IN_MAP(extra) + 4 * d, 1);
        note_bit(k, at, (uint32_t)BOX << d);
    } else if (ptx_form_has(form, PTX_MOD_GLOBAL_DIM)) {
        note_word(k, at, value, (int64_t)IN_MAP(last) + 4 * d, 1);
        note_bit(k, at, (uint32_t)DIM << d);
    } else if (ptx_form_has(form, PTX_MOD_GLOBAL_STRIDE) && d < KCHECK_MAP_RANK - 1) {
        note_long(k, at, value, (int64_t)IN_MAP(stride) + 8 * d);
        note_bit(k, at, (uint32_t)STRIDE << d);
    } else {  // a step between elements, of which 1 is understood
        BEFORE(k, at, "mov.b32 %0, %1;\nsetp.eq.and.u32 %2, %0, 1, %2;", edit_reg(k->x), value,
               edit_reg(k->any));
        note_bit(k, at, (uint32_t)STEP << d);
    }
}

static void note_field(struct check_func *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    const struct ptx_operand *second = ptx_operand(s, 1), *third = ptx_operand(s, 2);
    const struct ptx_form *form = s->form;
    BEFORE(k, at, "mov.pred %0, 1;", edit_reg(k->any));
    if (s->guard != PTX_NONE)
        BEFORE(k, at, "@!%1 mov.pred %0, 0;", edit_reg(k->any), edit_guard(s));
    if (third) {
        note_dimension(k, at, form, second->kind == PTX_IMM ? second->value : -1, *third);
    } else if (ptx_form_has(form, PTX_MOD_GLOBAL_ADDRESS)) {
        note_long(k, at, *second, (int64_t)IN_MAP(address));
        note_bit(k, at, ADDRESS);
    } else if (ptx_form_has(form, PTX_MOD_RANK)) {
        note_word(k, at, *second, RANK, 0);
    } else if (ptx_form_has(form, PTX_MOD_ELEMTYPE)) {
        note_word(k, at, edit_imm(element_of(second)), (int64_t)IN_MAP(element), 0);
        if (!element_of(second))
            note_bit(k, at, OTHER);
    } else if (ptx_form_has(form, PTX_MOD_INTERLEAVE_LAYOUT) && (second->kind != PTX_IMM || second->value)) {
        note_bit(k, at, OTHER);
    }
}

// Sets k->bad if all of a map was noted, and k->other if anything was. A type that was not set is a byte.
static void is_whole(struct check_func *k, uint32_t at)
{
    BEFORE(k, at,
           "ld.local.u32 %0, [%1];\nld.local.u32 %2, [%3];\nmin.u32 %2, %2, 5;\nmov.u32 %4, 2;\n"
           "shl.b32 %4, %4, %2;\nsub.u32 %4, %4, 1;\nmul.lo.u32 %2, %4, 0x10101;\nshr.u32 %4, %4, 1;\n"
           "shl.b32 %4, %4, 24;\nadd.u32 %2, %2, %4;\nadd.u32 %2, %2, %5;\nsetp.eq.u32 %6, %0, %2;\n"
           "setp.ne.u32 %7, %0, 0;\nld.local.u32 %0, [%8];\nmax.u32 %0, %0, 1;\nst.local.u32 [%8], %0;",
           edit_reg(k->x), noted(k, MASK), edit_reg(k->narrow), noted(k, RANK), edit_reg(k->narrow_base),
           edit_imm(ADDRESS), edit_reg(k->bad), edit_reg(k->other), noted(k, (int64_t)IN_MAP(element)));
}

// Notes the bytes of a box, and lets k->bad be false if all of the tensor is in one live buffer, or if it has
// no elements.
static void is_outside(struct check_func *k, uint32_t at)
{
    BEFORE(k, at, "ld.local.u32 %0, [%1];\ncvt.u64.u32 %2, %0;", edit_reg(k->narrow),
           noted(k, (int64_t)IN_MAP(element)), edit_reg(k->limit));
    for (int64_t d = 0; d < KCHECK_MAP_RANK; d++) {
        BEFORE(k, at, "ld.local.u32 %0, [%1];\nsetp.ne.and.u32 %2, %0, 0xFFFFFFFF, %2;\ncvt.u64.u32 %3, %0;",
               edit_reg(k->x), noted(k, (int64_t)IN_MAP(last) + 4 * d), edit_reg(k->bad), edit_reg(k->first));
        if (d)
            BEFORE(k, at, "ld.local.u64 %0, [%1];", edit_reg(k->word),
                   noted(k, (int64_t)IN_MAP(stride) + 8 * (d - 1)));
        else
            BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->word), edit_reg(k->limit));
        BEFORE(k, at, "mad.lo.u64 %0, %1, %2, %0;\nld.local.u32 %3, [%4];\nmad.lo.u32 %5, %3, %5, %5;",
               edit_reg(k->limit), edit_reg(k->first), edit_reg(k->word), edit_reg(k->x),
               noted(k, (int64_t)IN_MAP(extra) + 4 * d), edit_reg(k->narrow));
    }
    BEFORE(k, at, "st.local.u32 [%0], %1;\nld.local.u64 %2, [%3];", noted(k, (int64_t)IN_MAP(box)),
           edit_reg(k->narrow), edit_reg(k->t), noted(k, (int64_t)IN_MAP(address)));
    check_lookup(k, EDIT_BEFORE, at, edit_reg(k->t), k->base, k->size);
    BEFORE(
        k, at,
        "sub.u64 %0, %1, %2;\nsetp.gt.u64 %3, %0, %4;\nsub.u64 %0, %4, %0;\nsetp.gt.or.u64 %3, %5, %0, %3;\n"
        "and.pred %6, %6, %3;",
        edit_reg(k->root), edit_reg(k->t), edit_reg(k->base), edit_reg(k->ok), edit_reg(k->size),
        edit_reg(k->limit), edit_reg(k->bad));
}

// Sets k->place to that of the map at the address in a register, and `there` if it has it.
static void find_place(struct check_func *k, uint32_t at, struct ptx_operand map, uint32_t there)
{
    BEFORE(
        k, at,
        "shr.u64 %0, %1, 7;\nand.b64 %0, %0, %2;\nshl.b64 %0, %0, 7;\nmov.u64 %3, %4;\nadd.u64 %0, %0, %3;\n"
        "ld.volatile.global.u64 %3, [%5];\nsetp.eq.u64 %6, %3, %1;",
        edit_reg(k->place), map, edit_imm(PLACES - 1), edit_reg(k->word), edit_sym(k->k->made),
        edit_addr(k->place, MAP), edit_reg(there));
}

// Puts what was noted into the place where k->bad is set; where it is not, but k->other is, nothing of the
// map stays there.
static void put(struct check_func *k, uint32_t at, const struct ptx_operand *map)
{
    check_address(k, at, map);
    find_place(k, at, edit_reg(k->t), k->ok);
    BEFORE(k, at,
           "and.pred %0, %0, %1;\nor.pred %0, %0, %2;\n@%0 st.volatile.global.u64 [%3], 0;\nmembar.gl;",
           edit_reg(k->ok), edit_reg(k->other), edit_reg(k->bad), edit_addr(k->place, MAP));
    for (int64_t w = 0; w < (int64_t)MAP; w += 8)
        BEFORE(k, at, "ld.local.u64 %0, [%1];\n@%2 st.volatile.global.u64 [%3], %0;", edit_reg(k->word),
               noted(k, w), edit_reg(k->bad), edit_addr(k->place, w));
    BEFORE(k, at,
           "ld.param.u64 %0, [%1];\n@%2 st.volatile.global.u64 [%3], %0;\nmembar.gl;\n"
           "@%2 st.volatile.global.u64 [%4], %5;",
           edit_reg(k->word), edit_sym_at(k->hidden, offsetof(struct kcheck_hidden, launch)),
           edit_reg(k->bad), edit_addr(k->place, LAUNCH), edit_addr(k->place, MAP), edit_reg(k->t));
}

void check_emit_made(struct check_func *k, uint32_t stmt)
{
    const struct ptx_stmt *s = &k->f->stmts[stmt];
    if (k->makes_maps && sets_field(s))
        note_field(k, stmt);
    if (!k->makes_maps || !copies_map(s))
        return;
    is_whole(k, stmt);
    is_outside(k, stmt);
    if (s->guard != PTX_NONE)
        BEFORE(k, stmt, "@!%1 mov.pred %0, 0;\n@!%1 mov.pred %2, 0;", edit_reg(k->bad), edit_guard(s),
               edit_reg(k->other));
    put(k, stmt, ptx_operand(s, 0));
    for (int64_t at = 0; at < NOTED_BYTES; at += 8)
        BEFORE(k, stmt, "@%0 st.local.u64 [%1], 0;", edit_reg(k->other), noted(k, at));
}

// --- what a copy of a box uses -----------------------------------------------------------------------------

void check_find_place(struct check_func *k, uint32_t at, const struct ptx_operand *map, uint32_t there)
{
    check_address(k, at, map);
    find_place(k, at, edit_reg(k->t), there);
    BEFORE(k, at, "ld.param.u64 %0, [%1];\nld.volatile.global.u64 %2, [%3];\nsetp.eq.and.u64 %4, %0, %2, %4;",
           edit_reg(k->word), edit_sym_at(k->hidden, offsetof(struct kcheck_hidden, launch)),
           edit_reg(k->first), edit_addr(k->place, LAUNCH), edit_reg(there));
}
