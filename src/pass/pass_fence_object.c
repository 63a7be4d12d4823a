// SPDX-License-Identifier: MIT
// What kernels use by handles. A texture or surface handle in a register is looked up among those that the
// program has made; the one that was found last is known. A handle that is a parameter of the kernel is
// looked up by the host where it launches a variant, which then has no code for it. A tensor map must lie in
// the kernel's parameters, which kernels cannot write, and be one that a call has encoded for memory of the
// program.
//
// A thread that would use another one is recorded, and ends; so does one that executes an instruction that
// cannot be fenced.
#include <errno.h>

#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

bool fence_is_refused(const struct ptx_stmt *s)
{
    switch (s->form->id) {
    case PTX_OP_MULTIMEM_LD_REDUCE:
    case PTX_OP_MULTIMEM_ST:
    case PTX_OP_MULTIMEM_RED:
    case PTX_OP_TENSORMAP_REPLACE:
    case PTX_OP_TENSORMAP_CP_FENCEPROXY:
    case PTX_OP_TCGEN05_CP:
    case PTX_OP_TCGEN05_MMA: return true;
    default: return false;
    }
}

static enum kfence_object_kind kind_of(const struct ptx_stmt *s)
{
    switch (s->form->id) {
    case PTX_OP_TEX:
    case PTX_OP_TLD4:
    case PTX_OP_TXQ: return KFENCE_TEXTURE;
    case PTX_OP_SULD:
    case PTX_OP_SUST:
    case PTX_OP_SURED:
    case PTX_OP_SUQ: return KFENCE_SURFACE;
    case PTX_OP_CP_ASYNC_BULK_TENSOR:
    case PTX_OP_CP_REDUCE_BULK_TENSOR:
    case PTX_OP_CP_ASYNC_BULK_PREFETCH_TENSOR: return KFENCE_MAP;
    default: return 0;
    }
}

// The operand that names the object: the first address, or that in the tuple.
static const struct ptx_operand *object_of(const struct ptx_stmt *s, bool tuple)
{
    bool in = !tuple;
    for (uint32_t i = 0; i < s->nslots; i++) {
        in |= s->operands[i].kind == PTX_TUPLE;
        if (in && s->operands[i].kind == PTX_ADDR)
            return &s->operands[i];
    }
    return NULL;
}

// --- textures and surfaces ---------------------------------------------------------------------------------

enum { MOST_COPIES = 8 };

// Returns whether a register holds a parameter of 64 bits as it is.
static bool is_parameter(const struct ptx_func *f, const struct reach *r, uint32_t at, uint32_t reg,
                         uint32_t *offset)
{
    for (unsigned i = 0; i < MOST_COPIES; i++) {
        uint32_t index = regs_index(r->regs, reg);
        uint32_t v = index == REGS_NONE ? REACH_NONE : reach_read(r, at, index);
        if (v == REACH_NONE || r->value.items[v].kind != REACH_DEF || r->value.items[v].partial)
            return false;
        at = r->value.items[v].place;
        const struct ptx_stmt *s = &f->stmts[at];
        const struct ptx_operand *to = ptx_operand(s, 0), *from = ptx_operand(s, 1);
        unsigned bits = s->form->ntypes ? ptx_type_bits((enum ptx_type)s->form->types[0]) : 0;
        uint64_t start;
        if (s->guard != PTX_NONE || bits != 64 || s->form->ntypes != 1 || !from || to->kind != PTX_REG)
            return false;
        if (s->form->id == PTX_OP_MOV && from->kind == PTX_REG && from->sub == PTX_SEL_NONE) {
            reg = from->id;
            continue;
        }
        if (s->form->id != PTX_OP_LD || !s->form->nspaces ||
            ptx_space_is((enum ptx_space)s->form->spaces[0]) != PTX_SPACE_PARAM || from->kind != PTX_ADDR ||
            from->sub != PTX_BASE_SYM || !roots_param_offset(f, from->id, &start))
            return false;
        *offset = (uint32_t)(start + (uint64_t)from->value);
        return true;
    }
    return false;
}

int fence_find_handles(struct fencing *k, uint32_t index, fence_handles *to)
{
    const struct ptx_func *f = k->all.c->funcs[index];
    const struct reach *reach = NULL;
    int err = 0;
    for (uint32_t i = 0; i < f->nstmts && f->is_entry && !err; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        enum kfence_object_kind kind = s->kind == PTX_INSN ? kind_of(s) : 0;
        const struct ptx_operand *addr = kind && kind != KFENCE_MAP ? object_of(s, false) : NULL;
        struct fence_handle h = {.stmt = i, .surface = kind == KFENCE_SURFACE};
        if (!addr || addr->sub != PTX_BASE_REG)
            continue;
        if (!reach)
            err = flow_reaching(pass_flow(k->all.c, index), &reach);
        if (err)
            return err == -E2BIG ? 0 : err;
        if (is_parameter(f, reach, i, addr->id, &h.offset))
            err = vec_push(to, h);
    }
    return err;
}

const struct fence_handle *fence_handle_at(const fence_handles *all, uint32_t at)
{
    size_t low = 0, high = all->len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all->items[middle].stmt < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->len && all->items[low].stmt == at ? &all->items[low] : NULL;
}

static int find_handle(struct fence_func *k, uint32_t at, enum kfence_object_kind kind, uint32_t reg)
{
    struct edit *e = k->k->all.c->edit;
    uint32_t site, known = fence_unless_guarded(k, at), found = edit_new_label(e), to = k->to[0];
    uint32_t *last = &k->last[kind - KFENCE_TEXTURE];
    int err = fence_site(k, at, &site);
    if (!*last) {
        *last = edit_new_reg(e, PTX_B64);
        edit_entry(e, "mov.u64 %0, 0;", edit_reg(*last));
    }
    BEFORE(k, at,
           "setp.eq.b64 %0, %1, %2;\n@%0 bra %3;\nand.b64 %4, %1, 0x3FFFFFFFFFFFFFFF;\n"
           "or.b64 %4, %4, %5;\ncall (%4), %6, (%4);\nsetp.ne.b64 %0, %4, 0;\n@%0 bra %7;",
           edit_reg(k->bad), edit_reg(reg), edit_reg(*last), edit_sym(known), edit_reg(to),
           edit_imm((int64_t)KFENCE_OBJECT(kind, 0)), edit_sym(k->k->object), edit_sym(found));
    BEFORE(k, at, "mov.b64 %0, %1;", edit_reg(to), edit_reg(reg));
    fence_end(k, at, KFENCE_WHAT(site, 0, 0), KFENCE_BAD_HANDLE, to);
    edit_place_label(e, at, found);
    BEFORE(k, at, "mov.b64 %0, %1;", edit_reg(*last), edit_reg(reg));
    edit_place_label(e, at, known);
    return err;
}

// --- tensor maps -------------------------------------------------------------------------------------------

// Returns the shape, as of KFENCE_MAP_OF, of the maps that an instruction takes; 0 if that is not known.
static uint32_t shape_of(const struct ptx_form *form)
{
    static const enum ptx_mod ranks[] = {PTX_MOD_D_1D, PTX_MOD_D_2D, PTX_MOD_D_3D, PTX_MOD_D_4D,
                                         PTX_MOD_D_5D};
    bool columns = ptx_form_has(form, PTX_MOD_IM2COL) || ptx_form_has(form, PTX_MOD_IM2COL_NO_OFFS);
    if (ptx_form_has(form, PTX_MOD_IM2COL_W) || ptx_form_has(form, PTX_MOD_IM2COL_W_128))
        return 0;
    for (uint32_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (ptx_form_has(form, ranks[i]))
            return i + 1 + (columns ? KFENCE_BY_COLUMNS : 0);
    return 0;
}

// Returns a bit for each type that the instruction reduces, or may reduce; all if it does not reduce.
static uint32_t types_of(const struct ptx_form *form)
{
#define BIT(type) (1u << KFENCE_##type)
    static const struct {
        uint16_t mod;
        uint32_t types;
    } ops[] = {
        {PTX_MOD_ADD, ~(BIT(UINT8) | BIT(UINT16) | BIT(INT64))},
        {PTX_MOD_MIN, ~(BIT(UINT8) | BIT(UINT16) | BIT(FLOAT32) | BIT(FLOAT64))},
        {PTX_MOD_MAX, ~(BIT(UINT8) | BIT(UINT16) | BIT(FLOAT32) | BIT(FLOAT64))},
        {PTX_MOD_INC, BIT(UINT32)},
        {PTX_MOD_DEC, BIT(UINT32)},
        {PTX_MOD_AND, BIT(UINT32) | BIT(INT32) | BIT(UINT64)},
        {PTX_MOD_OR, BIT(UINT32) | BIT(INT32) | BIT(UINT64)},
        {PTX_MOD_XOR, BIT(UINT32) | BIT(INT32) | BIT(UINT64)},
    };
#undef BIT
    for (unsigned i = 0; form->id == PTX_OP_CP_REDUCE_BULK_TENSOR && i < sizeof ops / sizeof *ops; i++)
        if (ptx_form_has(form, (enum ptx_mod)ops[i].mod))
            return ops[i].types;
    return UINT32_MAX;
}

// A GPU calls the instruction illegal if the map, of which k->what has 1 more than the bytes, has other
// dimensions, is of the other kind, or has elements that are not reduced.
static void look_at_kind(struct fence_func *k, uint32_t at, uint64_t what, uint32_t to)
{
    const struct ptx_form *form = k->f->stmts[at].form;
    uint32_t shape = shape_of(form), types = types_of(form), good = edit_new_label(k->k->all.c->edit);
    if (!shape)
        return;
    BEFORE(k, at,
           "shr.u64 %0, %1, 32;\ncvt.u32.u64 %2, %0;\nand.b32 %3, %2, 0xFF;\nsetp.eq.u32 %4, %3, 0;\n@%4 bra "
           "%5;",
           edit_reg(k->wide[0]), edit_reg(k->what), edit_reg(k->low), edit_reg(k->high), edit_reg(k->bad),
           edit_sym(good));
    BEFORE(k, at,
           "shr.u32 %0, %0, 8;\nand.b32 %0, %0, 0xFF;\nmov.u32 %3, %6;\nshr.u32 %3, %3, %0;\n"
           "and.b32 %3, %3, 1;\n"
           "setp.eq.u32 %2, %1, %5;\nsetp.ne.and.u32 %2, %3, 0, %2;\n@%2 bra %4;",
           edit_reg(k->low), edit_reg(k->high), edit_reg(k->bad), edit_reg(k->bits), edit_sym(good),
           edit_imm(shape), edit_imm(types));
    fence_end(k, at, what, KFENCE_BAD_MAP, to);
    edit_place_label(k->k->all.c->edit, at, good);
}

// Sets k->size to the bytes that the box takes in shared memory. What an instruction has found stays in
// registers of its own: it often stands in a loop with others.
static int find_map(struct fence_func *k, uint32_t at, const struct ptx_operand *addr)
{
    struct edit *e = k->k->all.c->edit;
    uint32_t site, last = edit_new_reg(e, PTX_B64), to = k->to[0], known = fence_unless_guarded(k, at);
    uint32_t inside = edit_new_label(e), found = edit_new_label(e);
    uint64_t what;
    int err = fence_site(k, at, &site);
    what = KFENCE_WHAT(site, 0, 0);
    k->size = edit_new_reg(e, PTX_B32);
    edit_entry(e, "mov.u64 %0, 0;\nmov.u32 %1, 0;", edit_reg(last), edit_reg(k->size));
    if (addr->sub == PTX_BASE_REG && ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, addr->id)->type) == 64)
        BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(to), edit_reg(addr->id), edit_imm(addr->value));
    else
        BEFORE(k, at, "mov.u64 %0, 0;", edit_reg(to));
    BEFORE(k, at, "setp.eq.b64 %0, %1, %2;\n@%0 bra %3;\nisspacep.param %0, %1;\n@%0 bra %4;",
           edit_reg(k->bad), edit_reg(to), edit_reg(last), edit_sym(known), edit_sym(inside));
    fence_end(k, at, what, KFENCE_REFUSED, to);
    edit_place_label(e, at, inside);
    BEFORE(k, at, "call (%4), %1, (%2);\nsetp.ne.b64 %0, %4, 0;\n@%0 bra %3;", edit_reg(k->bad),
           edit_sym(k->k->map), edit_reg(to), edit_sym(found), edit_reg(k->what));
    fence_end(k, at, what, KFENCE_BAD_MAP, to);
    edit_place_label(e, at, found);
    look_at_kind(k, at, what, to);
    BEFORE(k, at,
           "mov.b64 %0, %1;\ncvt.u32.u64 %2, %3;\nsub.u32 %2, %2, 1;\nshr.u64 %3, %3, %5;\n"
           "cvt.u32.u64 %4, %3;\nshl.b32 %4, %4, 4;\nadd.u32 %2, %2, %4;",
           edit_reg(last), edit_reg(to), edit_reg(k->size), edit_reg(k->what), edit_reg(k->low),
           edit_imm(KFENCE_GAPS_AT));
    edit_place_label(e, at, known);
    return err;
}

uint32_t fence_box_bytes(struct fence_func *k, uint32_t at)
{
    const struct ptx_operand *map = object_of(&k->f->stmts[at], true);
    BEFORE(k, at, "add.s64 %1, %2, %3;\ncall (%0), %4, (%1);\ncvt.u32.u64 %5, %0;\nsub.u32 %5, %5, 1;",
           edit_reg(k->what), edit_reg(k->to[0]), edit_reg(map->id), edit_imm(map->value),
           edit_sym(k->k->map), edit_reg(k->own_size));
    return k->own_size;
}

// --- descriptors -------------------------------------------------------------------------------------------

// The address in it must lie in the block's shared memory. What its strides add is not looked at.
int fence_descriptor(struct fence_func *k, uint32_t at, const struct ptx_mem *mem)
{
    uint32_t site, past = fence_unless_guarded(k, at);
    int err = fence_site(k, at, &site);
    BEFORE(k, at,
           "cvt.u32.u64 %0, %1;\nand.b32 %0, %0, 0x3FFF;\nshl.b32 %0, %0, 4;\nsetp.lt.u32 %2, %0, %3;\n"
           "@%2 bra %4;\ncvt.u64.u32 %5, %0;",
           edit_reg(k->low), edit_reg(mem->addr->id), edit_reg(k->bad), edit_reg(k->limit), edit_sym(past),
           edit_reg(k->to[0]));
    fence_end(k, at, KFENCE_WHAT(site, 0, KFENCE_READS), KFENCE_OUT_OF_SHARED, k->to[0]);
    edit_place_label(k->k->all.c->edit, at, past);
    return err;
}

int fence_object(struct fence_func *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    enum kfence_object_kind kind = kind_of(s);
    const struct ptx_operand *addr = kind ? object_of(s, kind == KFENCE_MAP) : NULL;
    if (!addr)
        return kind ? -ENOTSUP : 0;
    if (kind == KFENCE_MAP)
        return find_map(k, at, addr);
    if (k->plan && fence_handle_at(k->handles, at))
        return 0;
    // A handle that is no register is a variable of the module, which the driver sets.
    return addr->sub == PTX_BASE_REG ? find_handle(k, at, kind, addr->id) : 0;
}
