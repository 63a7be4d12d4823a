// SPDX-License-Identifier: MIT
// Code for the checks of a function: see pass_check.h.
#include <assert.h>

#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

// --- values that are computed early ------------------------------------------------------------------------

struct copying {
    struct check_func *k;
    uint32_t stmt, place, first;
};

// Returns a number for the statement before which a range is checked, and for the segment.
static uint32_t place_of(const struct check_func *k, uint32_t segment, const struct check_range *r)
{
    bool starts = r->at == k->segments.items[segment].first;
    return starts ? segment : (uint32_t)(k->segments.len + (size_t)(r - k->ranges.items));
}

static uint32_t written_by(const struct check_func *k, uint32_t stmt, uint32_t reg)
{
    const struct regs *regs = k->reach->regs;
    uint32_t index = regs_index(regs, reg);
    for (uint32_t a = regs->access_at[stmt]; a < regs->access_at[stmt + 1]; a++)
        if (regs->access[a].reg == index)
            return k->reach->written[a];
    return REACH_NONE;
}

static uint32_t rename_reg(void *ctx, uint32_t reg, bool writes)
{
    struct copying *c = ctx;
    struct check_func *k = c->k;
    uint32_t v =
        writes ? written_by(k, c->stmt, reg) : reach_read(k->reach, c->stmt, regs_index(k->reach->regs, reg));
    assert(v != REACH_NONE);
    if (!check_is_later(k, v, c->first))
        return reg;
    if (writes && k->renamed_in[v] != c->place) {
        const struct ptx_var *var = ptx_reg_var(k->f, reg);
        k->renamed_in[v] = c->place;
        k->renamed[v] = edit_new_reg(k->k->c->edit, (enum ptx_type)var->type);
    }
    return k->renamed[v];
}

// Computes a value before the statement `first`, whose number is `place`. Returns the register that holds it
// there.
static uint32_t compute(struct check_func *k, uint32_t place, uint32_t first, uint32_t value)
{
    const struct reach_value *v = &k->reach->value.items[value];
    if (!check_is_later(k, value, first))
        return k->reach->regs->reg[v->reg];
    if (k->renamed_in[value] == place)
        return k->renamed[value];
    struct regs_list list = regs_at(k->reach->regs, v->place);
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].reads)
            compute(k, place, first, reach_read(k->reach, v->place, list.at[i].reg));
    struct copying c = {k, v->place, place, first};
    edit_copy_renamed(k->k->c->edit, first, v->place, rename_reg, &c);
    return k->renamed[value];
}

// --- fast --------------------------------------------------------------------------------------------------

static uint32_t span_of(const struct check_range *r)
{
    return (uint32_t)(r->high - r->low);
}

// Returns how much less the base of a range's pair is than its buffer's.
static int64_t pair_at(const struct check_func *k, const struct check_range *r)
{
    return r->pair == PTX_NONE ? 0 : k->pairs.items[r->pair].at;
}

// Sets k->limit from the size of a buffer.
static void limit_of(struct check_func *k, uint32_t at, uint32_t size, uint32_t span)
{
    check_set_limit(k, EDIT_BEFORE, at, k->limit, size, span);
}

// Returns the limit for a variable whose size is known.
static int64_t limit_in(const struct check_func *k, const struct check_range *r)
{
    uint64_t size = ptx_var_size(ptx_sym(k->k->c->m, r->root.id)->var), span = span_of(r);
    return span <= size ? (int64_t)(size - span + 1) : 0;
}

struct ptx_operand check_range_bounds(struct check_func *k, uint32_t at, const struct check_range *r,
                                      uint32_t address)
{
    const struct check_bounds *known = check_bounds_of(k, r->root);
    if (r->pair != PTX_NONE) {
        int64_t pair = KCHECK_HIDDEN + 16 * (int64_t)r->pair;
        BEFORE(k, at, "ld.param.u64 %0, [%1];\nld.param.u64 %2, [%3];", edit_reg(k->base),
               edit_sym_at(k->hidden, pair), edit_reg(k->limit), edit_sym_at(k->hidden, pair + 8));
    } else if (check_is_dynamic(k, r->root)) {
        check_variable_bounds(k, EDIT_BEFORE, at, r->root, k->base, k->size);
        limit_of(k, at, k->size, span_of(r));
    } else if (check_is_variable(r->root)) {
        check_variable_base(k, EDIT_BEFORE, at, r->root, k->base);
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->limit), edit_imm(limit_in(k, r)));
    } else if (known && known->needed && known->span == span_of(r)) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->limit), edit_reg(known->limit));
        return edit_reg(known->base);
    } else if (known && known->needed) {
        limit_of(k, at, known->size, span_of(r));
        return edit_reg(known->base);
    } else {
        check_lookup(k, EDIT_BEFORE, at, edit_reg(address), k->base, k->size);
        limit_of(k, at, k->size, span_of(r));
    }
    return edit_reg(k->base);
}

// Sets k->t to the address of the range's first byte, less what its pair's base is less.
static void address_of(struct check_func *k, uint32_t segment, const struct check_range *r)
{
    uint32_t at = r->at;
    int64_t low = r->low - pair_at(k, r);
    if (r->sym != PTX_NONE) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_sym_at(r->sym, low));
    } else if (r->reg == PTX_NONE) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_imm(low));
    } else {
        uint32_t reg = r->value == REACH_NONE ? r->reg : compute(k, place_of(k, segment, r), r->at, r->value);
        if (check_is_narrow(k, r->reg))
            BEFORE(k, at, "add.s32 %0, %1, %2;\ncvt.u64.u32 %3, %0;", edit_reg(k->narrow), edit_reg(reg),
                   edit_imm((int32_t)low), edit_reg(k->t));
        else if (low)
            BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(k->t), edit_reg(reg), edit_imm(low));
        else
            BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_reg(reg));
    }
}

// Sets k->bad also if the address is not aligned.
static void check_aligned(struct check_func *k, uint32_t at, const struct check_range *r,
                          struct ptx_operand guard)
{
    if (!r->align || r->by_host)
        return;
    if (r->guard == PTX_NONE)
        BEFORE(k, at, "setp.ne.or.u32 %0, %1, 0, %0;", edit_reg(k->bad), edit_reg(k->x));
    else
        BEFORE(k, at, "setp.ne.and.u32 %2, %1, 0, %3;\nor.pred %0, %0, %2;", edit_reg(k->bad), edit_reg(k->x),
               edit_reg(k->other), guard);
}

// Sets k->x to what the address in k->t, or the one in a register of 32 bits, is more than a multiple of the
// alignment.
static void take_rest(struct check_func *k, uint32_t at, const struct check_range *r, uint32_t narrow)
{
    int64_t mask = (int64_t)r->align - 1, more = narrow == PTX_NONE ? r->low - pair_at(k, r) : 0;
    if (!r->align || r->by_host)
        return;
    if (narrow == PTX_NONE)
        BEFORE(k, at, "cvt.u32.u64 %0, %1;", edit_reg(k->x), edit_reg(k->t));
    else
        BEFORE(k, at, "mov.u32 %0, %1;", edit_reg(k->x), edit_reg(narrow));
    if ((r->aligned_at - more) & mask)
        BEFORE(k, at, "add.s32 %0, %0, %1;", edit_reg(k->x), edit_imm((r->aligned_at - more) & mask));
    BEFORE(k, at, "and.b32 %0, %0, %1;", edit_reg(k->x), edit_imm(mask));
}

// Sets k->bad if k->narrow is not less than the limit; `more`: it may be set already.
static void compare_narrow(struct check_func *k, uint32_t at, const struct check_range *r, bool more,
                           struct ptx_operand guard, struct ptx_operand limit)
{
    if (r->guard == PTX_NONE)
        BEFORE(k, at, more ? "setp.ge.or.u32 %0, %1, %2, %0;" : "setp.ge.u32 %0, %1, %2;", edit_reg(k->bad),
               edit_reg(k->narrow), limit);
    else
        BEFORE(k, at,
               more ? "setp.ge.and.u32 %3, %1, %2, %4;\nor.pred %0, %0, %3;"
                    : "setp.ge.and.u32 %0, %1, %2, %4;",
               edit_reg(k->bad), edit_reg(k->narrow), limit, edit_reg(k->other), guard);
}

// The same as the end of check_range, for the address of a variable in a register of 32 bits.
static void check_narrow(struct check_func *k, uint32_t segment, const struct check_range *r, bool more,
                         struct ptx_operand guard)
{
    uint32_t at = r->at;
    uint32_t reg = r->value == REACH_NONE ? r->reg : compute(k, place_of(k, segment, r), r->at, r->value);
    struct ptx_operand limit = edit_reg(k->narrow_limit);
    take_rest(k, at, r, reg);
    BEFORE(k, at, "mov.u32 %0, %1;\nsub.u32 %2, %3, %0;", edit_reg(k->narrow_base), edit_sym(r->root.id),
           edit_reg(k->narrow), edit_reg(reg));
    if (r->low)
        BEFORE(k, at, "add.s32 %0, %0, %1;", edit_reg(k->narrow), edit_imm((int32_t)r->low));
    if (!check_is_dynamic(k, r->root))
        limit = edit_imm(limit_in(k, r));
    else
        BEFORE(k, at, "mov.u32 %0, %dynamic_smem_size;", limit);
    if (check_is_dynamic(k, r->root) && span_of(r) > 1)
        BEFORE(k, at, "sub.s32 %0, %0, %1;\nmax.s32 %0, %0, 0;", limit, edit_imm((int64_t)span_of(r) - 1));
    compare_narrow(k, at, r, more, guard, limit);
    check_aligned(k, at, r, guard);
}

// Whether one comparison of the largest index is enough for both ranges.
static bool joins(const struct check_range *a, const struct check_range *b)
{
    return b->index.scale && a->pair == b->pair && a->at == b->at && a->level == b->level && !b->known &&
           a->guard == PTX_NONE && b->guard == PTX_NONE;
}

// Sets a register to the distance of a range's index from the smallest that is right; k->narrow_base has what
// is to be added.
static void distance_of(struct check_func *k, uint32_t segment, const struct check_range *r, uint32_t to)
{
    uint32_t reg = compute(k, place_of(k, segment, r), r->at, r->index.value);
    BEFORE(k, r->at, "add.s32 %0, %1, %2;", edit_reg(to), edit_reg(reg), edit_reg(k->narrow_base));
}

// The same as the end of check_range, for an index, and for those of all ranges that it joins. An addition
// and the maximum of its result are one instruction from sm_90 on.
static void check_index(struct check_func *k, uint32_t segment, const struct check_range *r, bool more,
                        struct ptx_operand guard)
{
    const struct check_segment *g = &k->segments.items[segment];
    int64_t pair = KCHECK_HIDDEN + 16 * (int64_t)r->pair;
    BEFORE(k, r->at, "ld.param.u32 %0, [%1];", edit_reg(k->narrow_base),
           edit_sym_at(k->hidden, pair + (int64_t)offsetof(struct kcheck_index, more)));
    distance_of(k, segment, r, k->narrow);
    for (uint32_t i = g->first_range; i < g->first_range + g->nranges; i++) {
        struct check_range *with = &k->ranges.items[i];
        if (with <= r || !joins(r, with))
            continue;
        distance_of(k, segment, with, k->x);
        BEFORE(k, r->at, "max.u32 %0, %0, %1;", edit_reg(k->narrow), edit_reg(k->x));
        with->joined = true;
    }
    BEFORE(k, r->at, "ld.param.u32 %0, [%1];", edit_reg(k->narrow_limit),
           edit_sym_at(k->hidden, pair + (int64_t)offsetof(struct kcheck_index, limit)));
    compare_narrow(k, r->at, r, more, guard, edit_reg(k->narrow_limit));
}

// Sets k->bad if the range is not inside; `more`: it may be set already.
static void check_range(struct check_func *k, uint32_t segment, const struct check_range *r, bool more)
{
    uint32_t at = r->at;
    struct ptx_operand guard = {0};
    if (r->guard != PTX_NONE) {
        guard = edit_reg(r->guard_value == REACH_NONE
                             ? r->guard
                             : compute(k, place_of(k, segment, r), r->at, r->guard_value));
        guard.negated = r->guard_negated;
    }
    if (r->root.kind == ROOTS_VARIABLE && check_is_narrow(k, r->reg)) {
        check_narrow(k, segment, r, more, guard);
        return;
    }
    if (r->index.scale) {
        check_index(k, segment, r, more, guard);
        return;
    }
    address_of(k, segment, r);
    if (check_by_shadow(k, r->root) && r->pair == PTX_NONE) {
        check_shadow_range(k, at, r, guard, more);
        return;
    }
    struct ptx_operand base = check_range_bounds(k, at, r, k->t);
    take_rest(k, at, r, PTX_NONE);
    BEFORE(k, at, "sub.u64 %0, %0, %1;", edit_reg(k->t), base);
    if (r->guard == PTX_NONE)
        BEFORE(k, at, more ? "setp.ge.or.u64 %0, %1, %2, %0;" : "setp.ge.u64 %0, %1, %2;", edit_reg(k->bad),
               edit_reg(k->t), edit_reg(k->limit));
    else
        BEFORE(k, at,
               more ? "setp.ge.and.u64 %3, %1, %2, %4;\nor.pred %0, %0, %3;"
                    : "setp.ge.and.u64 %0, %1, %2, %4;",
               edit_reg(k->bad), edit_reg(k->t), edit_reg(k->limit), edit_reg(k->other), guard);
    check_aligned(k, at, r, guard);
}

static void place_back(struct check_func *k, const struct check_segment *g)
{
    if (g->back != PTX_NONE)
        edit_place_label(k->k->c->edit, g->last + 1, g->back);
}

static void emit_fast(struct check_func *k, uint32_t segment)
{
    struct check_segment *g = &k->segments.items[segment];
    struct edit *e = k->k->c->edit;
    g->slow = edit_new_label(e);
    g->back = g->loop == PTX_NONE ? edit_new_label(e) : PTX_NONE;
    if (g->late)
        return;
    uint32_t kept = k->bad, known = g->known == PTX_NONE ? PTX_NONE : k->segments.items[g->known].bad;
    bool more = g->known != PTX_NONE && !g->all_known;
    k->bad = g->all_known && known != PTX_NONE ? known : g->bad != PTX_NONE ? g->bad : k->bad;
    if (more)
        BEFORE(k, g->first, "mov.pred %0, %1;", edit_reg(k->bad), edit_reg(known));
    for (uint32_t i = 0; i < g->nranges; i++) {
        const struct check_range *r = &k->ranges.items[g->first_range + i];
        if (r->known || r->joined)
            continue;
        check_range(k, segment, r, more);
        more = true;
    }
    if (known != PTX_NONE || more)
        BEFORE(k, g->first, "@%0 bra %1;", edit_reg(k->bad), edit_sym(g->slow));
    k->bad = kept;
    place_back(k, g);
}

// --- late segments -----------------------------------------------------------------------------------------

// Levels whose registers are set, and those of them that no other level's register contains.
struct late {
    unsigned set, apart;
};

// Lets a level's register say what the check says, and what lower levels say.
static void check_late(struct check_func *k, uint32_t segment, const struct check_range *r, struct late *late)
{
    unsigned own = 1u << r->level, lower = late->set & (own - 1);
    bool more = late->set & own;
    uint32_t bad = k->bad;
    k->bad = k->bad_at[r->level];
    if (lower) {
        unsigned from = 31 - (unsigned)__builtin_clz(lower);
        if (!more)
            BEFORE(k, r->at, "mov.pred %0, %1;", edit_reg(k->bad), edit_reg(k->bad_at[from]));
        else if (from > 0)  // level 0 does not change any more
            BEFORE(k, r->at, "or.pred %0, %0, %1;", edit_reg(k->bad), edit_reg(k->bad_at[from]));
        late->apart &= ~(1u << from);
    }
    check_range(k, segment, r, more || lower);
    late->set |= own;
    late->apart |= own;
    k->bad = bad;
}

// Branches where the segment starts, for checks that need none of its accesses: these need no guards then.
// Elsewhere than in a loop this would let the driver's compiler make all of them at once, and need as many
// registers.
static void branch_early(struct check_func *k, const struct check_segment *g, struct late *late)
{
    if (!(late->set & 1) || g->loop == PTX_NONE)
        return;
    BEFORE(k, g->first, "@%0 bra %1;", edit_reg(k->bad_at[0]), edit_sym(g->slow));
    *late = (struct late){0, 0};
}

static void branch_late(struct check_func *k, const struct check_segment *g, const struct late *late)
{
    if (!late->apart)
        return;
    uint32_t bad = k->bad_at[__builtin_ctz(late->apart)];
    for (unsigned more = late->apart & (late->apart - 1); more; more &= more - 1) {
        BEFORE(k, g->branch, "or.pred %0, %1, %2;", edit_reg(k->bad), edit_reg(bad),
               edit_reg(k->bad_at[__builtin_ctz(more)]));
        bad = k->bad;
    }
    if (g->bad != PTX_NONE)
        BEFORE(k, g->branch, "mov.pred %0, %1;", edit_reg(g->bad), edit_reg(bad));
    BEFORE(k, g->branch, "@%0 bra %1;", edit_reg(bad), edit_sym(g->slow));
}

static void guard_late(struct check_func *k, const struct check_segment *g, uint32_t stmt)
{
    for (uint32_t i = 0; i < g->naccesses; i++) {
        const struct check_access *a = &k->accesses.items[g->first_access + i];
        if (a->stmt != stmt || a->level == CHECK_UNCHECKED || (!a->level && g->loop != PTX_NONE))
            continue;
        BEFORE(k, stmt, "not.pred %0, %1;", edit_reg(k->ok), edit_reg(k->bad_at[a->level]));
        check_clear(k, stmt, &k->f->stmts[stmt], PTX_NONE);
        edit_copy_guarded(k->k->c->edit, stmt, stmt, k->ok);
        edit_delete(k->k->c->edit, stmt);
    }
}

// Code of a late segment at one of its statements.
static void emit_late(struct check_func *k, uint32_t segment, uint32_t stmt, struct late *late)
{
    const struct check_segment *g = &k->segments.items[segment];
    if (stmt == g->first)
        *late = (struct late){0, 0};
    for (uint32_t i = 0; i < g->nranges; i++)
        if (k->ranges.items[g->first_range + i].at == stmt && !k->ranges.items[g->first_range + i].joined)
            check_late(k, segment, &k->ranges.items[g->first_range + i], late);
    if (stmt == g->first)
        branch_early(k, g, late);
    if (stmt < g->branch)
        guard_late(k, g, stmt);
    if (stmt == g->branch || (stmt == g->last && g->branch > stmt))
        branch_late(k, g, late);
    if (stmt == g->last)
        place_back(k, g);
}

// --- all ---------------------------------------------------------------------------------------------------

static void new_registers(struct check_func *k)
{
    struct edit *e = k->k->c->edit;
    uint32_t *wide[] = {&k->t,    &k->base, &k->limit, &k->size,    &k->root,
                        &k->what, &k->word, &k->first, &k->at_frame};
    uint32_t *narrow[] = {&k->verdict, &k->slot, &k->x, &k->narrow, &k->narrow_base, &k->narrow_limit},
             *bits[] = {&k->bad, &k->other, &k->ok, &k->any};
    for (unsigned i = 0; i < CHECK_LEVELS; i++)
        k->bad_at[i] = edit_new_reg(e, PTX_PRED);
    for (size_t i = 0; i < k->segments.len; i++)
        k->segments.items[i].bad = k->segments.items[i].asked ? edit_new_reg(e, PTX_PRED) : PTX_NONE;
    for (unsigned i = 0; i < sizeof wide / sizeof *wide; i++)
        *wide[i] = edit_new_reg(e, PTX_U64);
    for (unsigned i = 0; i < sizeof narrow / sizeof *narrow; i++)
        *narrow[i] = edit_new_reg(e, PTX_U32);
    for (unsigned i = 0; i < sizeof bits / sizeof *bits; i++)
        *bits[i] = edit_new_reg(e, PTX_PRED);
}

static void emit_block(struct check_func *k, uint32_t block, uint32_t *segment, size_t *pass, size_t *whole)
{
    if (k->copied[block].begin != PTX_NONE)
        edit_place_label(k->k->c->edit, k->cfg->blocks[block].first, k->copied[block].begin);
    check_bounds_block(k, block, check_block_start(k, block));
    struct late late = {0, 0};
    uint32_t open = PTX_NONE;  // the late segment
    for (uint32_t i = k->cfg->blocks[block].first; i < k->cfg->blocks[block].last; i++) {
        if (*segment < k->segments.len && k->segments.items[*segment].first == i) {
            open = k->segments.items[*segment].late ? *segment : PTX_NONE;
            emit_fast(k, (*segment)++);
        }
        if (open != PTX_NONE && i <= k->segments.items[open].last)
            emit_late(k, open, i, &late);
        if (*pass < k->passes.len && k->passes.items[*pass].call == i)
            *pass = check_emit_passes(k, *pass);
        check_emit_made(k, i);
        if (*whole < k->wholes.len && k->wholes.items[*whole].stmt == i)
            check_emit_whole(k, &k->wholes.items[(*whole)++]);
        if (k->f->stmts[i].kind == PTX_INSN)
            check_bounds_after(k, i, EDIT_AFTER, i);
    }
}

void check_emit(struct check_func *k)
{
    uint32_t segment = 0;
    size_t pass = 0, whole = 0;
    bool enters = check_enters(k);
    if (!k->segments.len && !k->passes.len && !k->wholes.len && !k->frees.len && !enters)
        return;
    new_registers(k);
    check_save_open(k);
    if (enters)
        edit_entry(k->k->c->edit, "ld.param.u64 %0, [%1];\ncall %2, (%0);", edit_reg(k->size),
                   edit_sym_at(k->hidden, offsetof(struct kcheck_hidden, launch)), edit_sym(k->k->enter));
    check_bounds_registers(k);
    check_bounds_entry(k);
    if (k->k->shadow.shift)
        check_shadow_entry(k);
    check_open_loops(k);
    check_open_made(k);
    for (uint32_t b = 0; b < k->cfg->nblocks && !edit_error(k->k->c->edit); b++)
        emit_block(k, b, &segment, &pass, &whole);
    for (size_t i = 0; i < k->frees.len; i++)
        check_emit_free(k, &k->frees.items[i]);
    if (edit_falls_off(k->f))
        BEFORE(k, k->f->nstmts, "ret;");
    check_place_slow(k);
    check_place_wholes(k);
}
