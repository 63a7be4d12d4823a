// SPDX-License-Identifier: MIT
// Copies of boxes between tensors and shared memory. A tensor map that is a parameter of the kernel comes
// with what the host knows of it (struct kcheck_map): most often that nothing has to be compared, since the
// hardware leaves out what is outside of the tensor, and all of the tensor is in one live buffer. Else the
// first and the last byte of the box are compared with the buffer that the tensor starts in.
//
// A map that the kernel makes (pass_check_made.c) comes with the same in a table. Of others, in global or
// constant memory or changed by the kernel, nothing is known.
#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)
#define IN_MAP(member) offsetof(struct kcheck_map, member)

bool check_is_box(const struct check_access *a)
{
    return a->mem.extent == PTX_EXTENT_TENSOR && a->map != PTX_NONE && a->mem.addr->kind == PTX_TUPLE;
}

static bool is_by_pixels(const struct ptx_form *form)
{
    return ptx_form_has(form, PTX_MOD_IM2COL) || ptx_form_has(form, PTX_MOD_IM2COL_NO_OFFS);
}

bool check_copies_box(const struct ptx_stmt *s)
{
    static const enum ptx_mod other[] = {PTX_MOD_TILE_GATHER4, PTX_MOD_TILE_SCATTER4, PTX_MOD_IM2COL_W,
                                         PTX_MOD_IM2COL_W_128};
    const struct ptx_form *form = s->form;
    if (form->odd || (form->id != PTX_OP_CP_ASYNC_BULK_TENSOR && form->id != PTX_OP_CP_REDUCE_BULK_TENSOR))
        return false;
    for (unsigned i = 0; i < sizeof other / sizeof *other; i++)
        if (ptx_form_has(form, other[i]))
            return false;
    return true;
}

// Returns the operand [map, {coordinates}], NULL if it has another form.
static const struct ptx_operand *tuple_of(const struct ptx_stmt *s)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct ptx_operand *o = ptx_operand(s, i);
        if (o && o->kind == PTX_TUPLE && o->value == 2 && ptx_is_group(ptx_next(o + 1)) &&
            ptx_next(o + 1)->value <= KCHECK_MAP_RANK)
            return o;
    }
    return NULL;
}

uint32_t check_find_map(struct check_func *k, uint32_t stmt)
{
    const struct ptx_operand *tuple = tuple_of(&k->f->stmts[stmt]);
    if (!tuple || !k->f->is_entry || k->k->shadow.shift)
        return PTX_NONE;
    struct check_access a = {.stmt = stmt, .mem = {.addr = tuple + 1}};
    int64_t offset;
    uint64_t start;
    if (a.mem.addr->kind != PTX_ADDR)
        return PTX_NONE;
    a.root = roots_address(k->roots, stmt, a.mem.addr);
    if (roots_space(k->roots->m, a.root) != PTX_SPACE_PARAM || !roots_param_offset(k->f, a.root.id, &start) ||
        !check_offset(k, &a, &offset) || offset < 0 ||
        (uint64_t)offset + PASS_CHECK_MAP_BYTES > ptx_var_size(ptx_sym(k->k->c->m, a.root.id)->var))
        return check_makes_maps(k) ? CHECK_MADE : PTX_NONE;
    return check_map_pairs(k, (uint32_t)(start + (uint64_t)offset));
}

static bool is_made(const struct check_access *a)
{
    return a->map == CHECK_MADE;
}

// Loads a member of the map's struct, of 32 or 64 bits.
static void load(struct check_func *k, uint32_t at, const struct check_access *a, size_t offset,
                 unsigned bits, uint32_t to)
{
    if (is_made(a))
        BEFORE(k, at, bits == 64 ? "ld.volatile.global.u64 %0, [%1];" : "ld.volatile.global.u32 %0, [%1];",
               edit_reg(to), edit_addr(k->place, (int64_t)offset));
    else
        BEFORE(k, at, bits == 64 ? "ld.param.u64 %0, [%1];" : "ld.param.u32 %0, [%1];", edit_reg(to),
               edit_sym_at(k->hidden, KCHECK_HIDDEN + 16 * (int64_t)a->map + (int64_t)offset));
}

// The same for one of 32 bits into a register of 64.
static void load_wide(struct check_func *k, uint32_t at, const struct check_access *a, size_t offset,
                      uint32_t to)
{
    load(k, at, a, offset, 32, k->x);
    BEFORE(k, at, "cvt.u64.u32 %0, %1;", edit_reg(to), edit_reg(k->x));
}

// Finds the place of a map that the kernel has made, without changing k->t.
static void find_made(struct check_func *k, uint32_t at, const struct check_access *a, uint32_t there)
{
    BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->root), edit_reg(k->t));
    check_find_place(k, at, tuple_of(&k->f->stmts[a->stmt]) + 1, there);
    BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_reg(k->root));
}

void check_box_bytes(struct check_func *k, uint32_t at, const struct check_access *a, uint32_t size)
{
    if (is_made(a))
        find_made(k, at, a, k->ok);
    load_wide(k, at, a, IN_MAP(box), size);
    if (is_made(a))
        BEFORE(k, at, "@!%0 mov.u64 %1, 0;", edit_reg(k->ok), edit_reg(size));
}

// Sets k->t to the address of the tensor, and k->bad if something has to be compared.
static void find_tensor(struct check_func *k, uint32_t at, const struct check_access *a)
{
    if (is_made(a))
        find_made(k, at, a, k->bad);
    load(k, at, a, IN_MAP(address), 64, k->t);
    if (!is_made(a))
        BEFORE(k, at, "setp.ne.u64 %0, %1, 0;", edit_reg(k->bad), edit_reg(k->t));
}

static void only_under_guard(struct check_func *k, uint32_t at, const struct ptx_stmt *s)
{
    if (s->guard != PTX_NONE)
        BEFORE(k, at, "@!%1 mov.pred %0, 0;", edit_reg(k->bad), edit_guard(s));
}

void check_box_quickly(struct check_func *k, uint32_t at, const struct check_access *a)
{
    find_tensor(k, at, a);
    only_under_guard(k, at, &k->f->stmts[a->stmt]);
}

// Adds a dimension: k->t to the first element, k->limit to the last one, and k->bad is false where there is
// none.
static void add_dimension(struct check_func *k, uint32_t at, const struct check_access *a, unsigned d,
                          struct ptx_operand coordinate)
{
    struct ptx_operand low = edit_reg(k->size), high = edit_reg(k->first), last = edit_reg(k->word);
    BEFORE(k, at, "mov.b32 %0, %1;\ncvt.s64.s32 %2, %0;", edit_reg(k->x), coordinate, low);
    load_wide(k, at, a, IN_MAP(extra) + 4 * d, k->first);
    BEFORE(k, at, "add.s64 %1, %0, %1;\nmax.s64 %0, %0, 0;", low, high);
    load_wide(k, at, a, IN_MAP(last) + 4 * d, k->word);
    BEFORE(k, at, "min.s64 %1, %1, %2;\nsetp.le.and.s64 %3, %0, %1, %3;\nsub.s64 %1, %1, %0;", low, high,
           last, edit_reg(k->bad));
    if (d)
        load(k, at, a, IN_MAP(stride) + 8 * (d - 1), 64, k->word);
    else
        load_wide(k, at, a, IN_MAP(element), k->word);
    BEFORE(k, at, "mad.lo.u64 %0, %1, %4, %0;\nmad.lo.u64 %2, %3, %4, %2;", edit_reg(k->t), low,
           edit_reg(k->limit), high, last);
}

// Sets k->t to the first byte of the box, k->limit to the bytes from there to its last one, and k->bad if
// there are any. A box of pixels is represented by the first byte of the tensor.
static void find_box(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct ptx_stmt *s = &k->f->stmts[a->stmt];
    const struct ptx_operand *list = ptx_next(a->mem.addr + 1), *c = list + 1;
    find_tensor(k, at, a);
    load_wide(k, at, a, IN_MAP(element), k->limit);
    for (unsigned d = 0; d < (unsigned)list->value && !is_by_pixels(s->form); d++, c = ptx_next(c))
        add_dimension(k, at, a, d, *c);
    only_under_guard(k, at, s);
}

void check_box(struct check_func *k, uint32_t at, const struct check_access *a)
{
    find_box(k, at, a);
    load(k, at, a, IN_MAP(address), 64, k->root);
    check_lookup(k, EDIT_BEFORE, at, edit_reg(k->root), k->base, k->size);
    BEFORE(
        k, at,
        "sub.u64 %0, %1, %2;\nsetp.gt.u64 %3, %0, %4;\nsub.u64 %0, %4, %0;\nsetp.gt.or.u64 %3, %5, %0, %3;\n"
        "not.pred %6, %3;\nand.pred %7, %7, %3;",
        edit_reg(k->root), edit_reg(k->t), edit_reg(k->base), edit_reg(k->other), edit_reg(k->size),
        edit_reg(k->limit), edit_reg(k->ok), edit_reg(k->bad));
    if (!is_made(a))
        return;
    // It is still the same map.
    find_made(k, at, a, k->other);
    BEFORE(k, at, "and.pred %0, %0, %1;", edit_reg(k->bad), edit_reg(k->other));
}

void check_prepare_box(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct pass_check_site *site = &k->k->sites.items[a->site];
    uint64_t what = KCHECK_WHAT(KCHECK_SITE(k->k->tag, a->site), 0, site->flags | KCHECK_ROOT);
    load(k, at, a, IN_MAP(address), 64, k->root);
    BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->what), edit_imm((int64_t)what));
}
