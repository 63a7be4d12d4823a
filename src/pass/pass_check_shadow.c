// SPDX-License-Identifier: MIT
// The passes behind --mode=shadow: kernels are rewritten as by `check`, but an access of global memory is
// compared with the byte of the shadow that describes its granule (kcheck/kcheck_shadow.h), whatever pointer
// it was made from.
//
// In the pass `shadow`, those with the pointer of a parameter are compared with its buffer, as in `check`,
// where the host knows it and all of it may be accessed. What lies outside, and all else, is compared with
// the shadow: a load costs more than the bounds, which are parameters.
//
// Accesses with one base are compared at both ends of the bytes that they reach, if these are no further
// apart than the narrowest redzone: then nothing forbidden is between two accessible ends. The segment's slow
// copy asks about each access by itself.
#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

// A function whose address is taken is changed in place, and may run before the host has set the module's
// variable, in kernels that are not checked: there it loads nothing.
static bool runs_unchecked(const struct check_func *k)
{
    const struct pass_context *c = k->k->c;
    for (uint32_t i = 0; i < c->result->nfuncs; i++)
        if (c->funcs[i] == k->f)
            return true;
    return false;
}

void check_shadow_entry(struct check_func *k)
{
    struct edit *e = k->k->c->edit;
    struct check_shadow_regs *r = &k->shadow_regs;
    uint32_t *wide[] = {&r->at, &r->rest},
             *narrow[] = {&r->base, &r->zero, &r->next, &r->low, &r->high, &r->byte, &r->offset};
    for (unsigned i = 0; i < sizeof wide / sizeof *wide; i++)
        *wide[i] = edit_new_reg(e, PTX_U64);
    for (unsigned i = 0; i < sizeof narrow / sizeof *narrow; i++)
        *narrow[i] = edit_new_reg(e, PTX_U32);
    // The shadow is at a multiple of its size: the upper half of its address is enough.
    edit_entry(e, "ld.const.u32 %0, [%1];", edit_reg(r->base),
               edit_sym_at(k->k->variable, offsetof(struct kcheck_module, shadow) + 4));
    if (k->k->shadow.unloaded)
        edit_entry(e, "ld.const.u32 %0, [%1];", edit_reg(r->zero),
                   edit_sym_at(k->k->variable, offsetof(struct kcheck_module, zero)));
    r->there = PTX_NONE;
    if (runs_unchecked(k)) {
        r->there = edit_new_reg(e, PTX_PRED);
        edit_entry(e, "setp.ne.u32 %0, %1, 0;", edit_reg(r->there), edit_reg(r->base));
    }
}

// Sets r->at to the address of the shadow's byte, and r->low to the lower half of the address.
static void find_byte(struct check_func *k, uint32_t at, uint32_t address)
{
    const struct check_shadow_regs *r = &k->shadow_regs;
    unsigned shift = k->k->shadow.shift;
    // Bits from KCHECK_SHADOW_BITS on are left out: any address has a byte that can be loaded.
    BEFORE(k, at, "mov.b64 {%0, %1}, %2;", edit_reg(r->low), edit_reg(r->high), edit_reg(address));
    BEFORE(k, at, "shf.r.wrap.b32 %0, %1, %2, %3;", edit_reg(r->offset), edit_reg(r->low), edit_reg(r->high),
           edit_imm(shift));
    if (shift == 8)  // the second byte, and the upper three of the base
        BEFORE(k, at, "prmt.b32 %0, %0, %1, 0x7651;", edit_reg(r->high), edit_reg(r->base));
    else
        BEFORE(k, at, "bfe.u32 %0, %0, %1, %2;\nor.b32 %0, %0, %3;", edit_reg(r->high), edit_imm(shift),
               edit_imm(KCHECK_SHADOW_BITS - 32 - (int)shift), edit_reg(r->base));
    BEFORE(k, at, "mov.b64 %0, {%1, %2};", edit_reg(r->at), edit_reg(r->offset), edit_reg(r->high));
}

// Loads the byte at r->at, or the next one, where the guard lets it.
static void load_byte(struct check_func *k, uint32_t at, struct ptx_operand guard, uint32_t to, int64_t next)
{
    const struct check_shadow_regs *r = &k->shadow_regs;
    if (k->k->shadow.unloaded)
        BEFORE(k, at, "cvt.u32.u64 %0, %1;\nand.b32 %0, %0, %2;", edit_reg(to), edit_reg(r->at),
               edit_reg(r->zero));
    else if (guard.kind != PTX_SINK)
        BEFORE(k, at, "@%0 ld.global.nc.u8 %1, [%2];", guard, edit_reg(to), edit_addr(r->at, next));
    else
        BEFORE(k, at, "ld.global.nc.u8 %0, [%1];", edit_reg(to), edit_addr(r->at, next));
}

// Returns the guard with r->there.
static struct ptx_operand whole_guard(struct check_func *k, uint32_t at, struct ptx_operand guard)
{
    uint32_t there = k->shadow_regs.there;
    if (there == PTX_NONE)
        return guard;
    if (guard.kind == PTX_SINK)
        return edit_reg(there);
    BEFORE(k, at, "mov.pred %0, 0;\n@%1 mov.pred %0, %2;", edit_reg(k->ok), guard, edit_reg(there));
    return edit_reg(k->ok);
}

// Sets `bad` if r->offset is more than `most`.
static void compare(struct check_func *k, uint32_t at, int64_t most, struct ptx_operand guard, uint32_t bad,
                    bool more)
{
    const struct check_shadow_regs *r = &k->shadow_regs;
    if (guard.kind == PTX_SINK)
        BEFORE(k, at, more ? "setp.gt.or.u32 %0, %1, %2, %0;" : "setp.gt.u32 %0, %1, %2;", edit_reg(bad),
               edit_reg(r->offset), edit_imm(most));
    else
        BEFORE(k, at,
               more ? "setp.gt.and.u32 %3, %1, %2, %4;\nor.pred %0, %0, %3;"
                    : "setp.gt.and.u32 %0, %1, %2, %4;",
               edit_reg(bad), edit_reg(r->offset), edit_imm(most), edit_reg(k->other), guard);
}

void check_shadow_access(struct check_func *k, uint32_t at, uint32_t address, uint32_t width,
                         struct ptx_operand guard, uint32_t bad, bool more)
{
    const struct check_shadow_regs *r = &k->shadow_regs;
    uint32_t size = 1u << k->k->shadow.shift;
    guard = whole_guard(k, at, guard);
    find_byte(k, at, address);
    load_byte(k, at, guard, r->byte, 0);
    BEFORE(k, at, "and.b32 %0, %1, %2;", edit_reg(r->offset), edit_reg(r->low), edit_imm(size - 1));
    if (width == 1 && k->k->shadow.shift == 8)
        BEFORE(k, at, "max.u32 %0, %0, 1;", edit_reg(r->offset));
    BEFORE(k, at, "add.u32 %0, %0, %1;", edit_reg(r->offset), edit_reg(r->byte));
    compare(k, at, width < size ? size - width : 0, guard, bad, more);
}

// Compares `span` bytes, at most a granule, with two bytes of the shadow. With x and y missing in the granule
// of the first byte and in the next one, the range may end at size - x, or, if x is 0, at 2 * size - y.
// Requires that what is in the next granule has two bytes at least: 255 is always wrong then.
static void two_granules(struct check_func *k, uint32_t at, uint32_t span, struct ptx_operand guard,
                         bool more)
{
    const struct check_shadow_regs *r = &k->shadow_regs;
    uint32_t size = 1u << k->k->shadow.shift;
    guard = whole_guard(k, at, guard);
    find_byte(k, at, k->t);
    load_byte(k, at, guard, r->byte, 0);
    load_byte(k, at, guard, r->next, 1);
    BEFORE(k, at,
           "and.b32 %0, %1, %2;\nsetp.ne.u32 %3, %4, 0;\nadd.u32 %4, %4, %5;\nselp.b32 %6, %4, %6, %3;",
           edit_reg(r->offset), edit_reg(r->low), edit_imm(size - 1), edit_reg(k->other), edit_reg(r->byte),
           edit_imm(size), edit_reg(r->next));
    BEFORE(k, at, "add.u32 %0, %0, %1;", edit_reg(r->offset), edit_reg(r->next));
    compare(k, at, 2 * (int64_t)size - span, guard, k->bad, more);
}

void check_shadow_range(struct check_func *k, uint32_t at, const struct check_range *r,
                        struct ptx_operand guard, bool more)
{
    const struct check_shadow_regs *regs = &k->shadow_regs;
    uint32_t size = 1u << k->k->shadow.shift, span = (uint32_t)(r->high - r->low);
    if (r->guard == PTX_NONE)
        guard = (struct ptx_operand){.kind = PTX_SINK};
    // An access may be wider than a granule of 8 bytes.
    uint32_t first = r->first_width < size ? r->first_width : size,
             last = r->last_width < size ? r->last_width : size;
    if (span > first && span <= size && last > 1) {
        two_granules(k, at, span, guard, more);
        return;
    }
    check_shadow_access(k, at, k->t, first, guard, k->bad, more);
    if (span == first)
        return;
    BEFORE(k, at, "add.u64 %0, %1, %2;", edit_reg(regs->rest), edit_reg(k->t), edit_imm(span - last));
    check_shadow_access(k, at, regs->rest, last, guard, k->bad, true);
}

struct way {
    unsigned shift;
    bool unloaded, roots;
};

static int run(struct pass_context *c, struct way way)
{
    struct checking k = {.c = c,
                         .shadow = {.shift = way.shift, .unloaded = way.unloaded, .roots = way.roots}};
    return check_module(&k);
}

int pass_shadow(struct pass_context *c)
{
    return run(c, (struct way){.shift = 8, .roots = true});
}

int pass_shadow_alone(struct pass_context *c)
{
    return run(c, (struct way){.shift = 8});
}

int pass_shadow_128(struct pass_context *c)
{
    return run(c, (struct way){.shift = 7});
}

int pass_shadow_8(struct pass_context *c)
{
    return run(c, (struct way){.shift = 3});
}

int pass_shadow_unloaded(struct pass_context *c)
{
    return run(c, (struct way){.shift = 8, .unloaded = true});
}

int pass_shadow_unloaded_128(struct pass_context *c)
{
    return run(c, (struct way){.shift = 7, .unloaded = true});
}

int pass_shadow_unloaded_8(struct pass_context *c)
{
    return run(c, (struct way){.shift = 3, .unloaded = true});
}
