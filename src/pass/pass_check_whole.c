// SPDX-License-Identifier: MIT
// Accesses of matrices, asynchronous copies and the like: instructions that stay where they are, because all
// lanes of a warp execute them together or because they signal a barrier when they are done. If one of its
// accesses is wrong, the whole instruction is left out, for all lanes if it is one of a warp, and a barrier
// that waits for its bytes receives their number:
//
//            checks of all accesses; one branch
//   perform: the instruction
//   past:    ...
//   at the end of the scope:
//   slow:    each access that fails asks KCHECK_ACCESS
//            bra perform, unless one is to be skipped
//            results are cleared; mbarrier.complete_tx
//            bra past
#include <errno.h>

#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

// --- which instructions ------------------------------------------------------------------------------------

static bool is_covered_op(const struct ptx_form *form)
{
    if (ptx_form_has(form, PTX_MOD_MULTICAST_CLUSTER_ALL))
        return false;
    switch ((enum ptx_op_id)form->id) {
    case PTX_OP_CP_ASYNC:
    case PTX_OP_ST_ASYNC:
    case PTX_OP_RED_ASYNC:
    case PTX_OP_ST_BULK:
    case PTX_OP_DISCARD:
    case PTX_OP_MULTIMEM_LD_REDUCE:
    case PTX_OP_MULTIMEM_ST:
    case PTX_OP_MULTIMEM_RED:
    case PTX_OP_WMMA_LOAD:
    case PTX_OP_WMMA_STORE:
    case PTX_OP_LDMATRIX:
    case PTX_OP_STMATRIX:
    case PTX_OP_CP_ASYNC_BULK:
    case PTX_OP_CP_REDUCE_BULK:
    case PTX_OP_CP_ASYNC_MBARRIER:
    case PTX_OP_MBARRIER_INIT:
    case PTX_OP_MBARRIER_INVAL:
    case PTX_OP_MBARRIER_EXPECT_TX:
    case PTX_OP_MBARRIER_COMPLETE_TX:
    case PTX_OP_MBARRIER_ARRIVE:
    case PTX_OP_MBARRIER_ARRIVE_DROP:
    case PTX_OP_MBARRIER_TEST_WAIT:
    case PTX_OP_MBARRIER_TRY_WAIT:
    case PTX_OP_TENSORMAP_REPLACE:
    case PTX_OP_TENSORMAP_CP_FENCEPROXY: return !form->odd;
    // Which barriers a pair of blocks signals is not known.
    case PTX_OP_CP_ASYNC_BULK_TENSOR:
        return !ptx_form_has(form, PTX_MOD_CTA_GROUP_1) && !ptx_form_has(form, PTX_MOD_CTA_GROUP_2);
    case PTX_OP_CP_REDUCE_BULK_TENSOR: return true;
    default: return false;
    }
}

// What an address must be a multiple of, where that is the width of the access.
static uint32_t align_of(const struct ptx_form *form, const struct ptx_mem *mem)
{
    bool power = mem->bytes && !(mem->bytes & (mem->bytes - 1));
    switch ((enum ptx_op_id)form->id) {
    case PTX_OP_CP_ASYNC: return mem->extent == PTX_EXTENT_PLAIN && power ? mem->bytes : 1;
    case PTX_OP_LDMATRIX:
    case PTX_OP_STMATRIX: return mem->padding ? 1 : mem->bytes;
    case PTX_OP_CP_ASYNC_MBARRIER:
    case PTX_OP_MBARRIER_INIT:
    case PTX_OP_MBARRIER_INVAL:
    case PTX_OP_MBARRIER_EXPECT_TX:
    case PTX_OP_MBARRIER_COMPLETE_TX:
    case PTX_OP_MBARRIER_ARRIVE:
    case PTX_OP_MBARRIER_ARRIVE_DROP:
    case PTX_OP_MBARRIER_TEST_WAIT:
    case PTX_OP_MBARRIER_TRY_WAIT: return mem->bytes;
    default: return 1;
    }
}

static enum pass_check_left why_left(const struct ptx_stmt *s, const struct ptx_mem *mem)
{
    return mem->collective              ? PASS_CHECK_COLLECTIVE
           : s->form->flags & PTX_ASYNC ? PASS_CHECK_ASYNC
                                        : PASS_CHECK_UNSIZED;
}

static bool has_extent(const struct check_access *a)
{
    const struct ptx_mem *mem = &a->mem;
    switch ((enum ptx_extent)mem->extent) {
    case PTX_EXTENT_PLAIN:
    case PTX_EXTENT_ROWS: return mem->bytes != 0;
    case PTX_EXTENT_COUNTED:
    case PTX_EXTENT_TILE: return true;
    case PTX_EXTENT_TENSOR: return a->map != PTX_NONE;
    default: return false;
    }
}

static uint32_t scope_end(const struct ptx_func *f, uint32_t stmt)
{
    uint32_t depth = 0;
    for (uint32_t i = stmt; i < f->nstmts; i++) {
        depth += f->stmts[i].kind == PTX_OPEN;
        if (f->stmts[i].kind == PTX_CLOSE && !depth--)
            return i;
    }
    return f->nstmts;
}

// Whether the access is inside its variable and aligned whatever the program does.
static bool is_right(const struct check_func *k, const struct check_access *a)
{
    struct check_range range = {0};
    if (a->mem.extent != PTX_EXTENT_PLAIN || !check_is_variable(a->root) || !check_is_inside(k, a))
        return false;
    check_alignment(k, a, &range);
    return !range.align;
}

// Returns whether an access has to be checked; counts it if it cannot be.
static bool wants(struct check_func *k, struct check_access *a)
{
    const struct ptx_stmt *s = &k->f->stmts[a->stmt];
    enum ptx_space space = ptx_space_is((enum ptx_space)a->mem.space);
    bool address = a->mem.addr->kind == PTX_ADDR || check_is_box(a);
    if (check_is_described(k, a)) {
        a->root = (struct roots_of){ROOTS_OWN, 0};
        return !k->k->shadow.shift;
    }
    if (!is_covered_op(s->form) || !address || !has_extent(a)) {
        k->left.left[why_left(s, &a->mem)]++;
        return false;
    }
    if (check_is_box(a)) {
        a->root = (struct roots_of){ROOTS_OWN, 0};
        return true;
    }
    a->root = roots_address(k->roots, a->stmt, a->mem.addr);
    if (k->k->shadow.shift && !check_is_shadowed(k, a->root, space))
        return false;
    bool reaches = check_by_shadow(k, a->root) || check_reaches(k, a->root, space);
    k->left.left[check_why_unknown(space)] += !reaches;
    return reaches && !is_right(k, a);
}

int check_plan_whole(struct check_func *k, uint32_t stmt)
{
    const struct ptx_stmt *s = &k->f->stmts[stmt];
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(k->f, s, mem);
    struct check_whole w = {.stmt = stmt, .first = (uint32_t)k->whole_accesses.len};
    uint32_t map = check_copies_box(s) ? check_find_map(k, stmt) : PTX_NONE;
    int err = 0;
    for (unsigned i = 0; i < n && !err; i++) {
        if ((!mem[i].reads && !mem[i].writes) || !check_is_memory(ptx_space_is((enum ptx_space)mem[i].space)))
            continue;
        // A proof covers all accesses of the instruction that are checked, or none.
        if (k->rest && check_prove_covers(k->proof, stmt, i))
            continue;
        struct check_access a = {.stmt = stmt,
                                 .row = (uint8_t)i,
                                 .mem = mem[i],
                                 .align = align_of(s->form, &mem[i]),
                                 .map = mem[i].extent == PTX_EXTENT_TENSOR ? map : PTX_NONE};
        if (!wants(k, &a))
            continue;
        if (k->rest)  // the sites of a statement follow each other
            a.site = k->proof->site_at[stmt] + (uint32_t)k->whole_accesses.len - w.first;
        else
            err = check_site(k, &a, &a.site);
        if (!err)
            err = vec_push(&k->whole_accesses, a);
    }
    w.n = (uint32_t)k->whole_accesses.len - w.first;
    w.end = w.n ? scope_end(k->f, stmt) : 0;
    return err || !w.n ? err : vec_push(&k->wholes, w);
}

// --- one access --------------------------------------------------------------------------------------------

// Sets k->limit to the number of bytes.
static void count_bytes(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct ptx_mem *mem = &a->mem;
    if (mem->extent == PTX_EXTENT_TENSOR) {
        check_box_bytes(k, at, a, k->limit);
    } else if (mem->extent == PTX_EXTENT_COUNTED) {
        bool narrow = mem->size->kind == PTX_REG && check_is_narrow(k, mem->size->id);
        BEFORE(k, at, narrow ? "cvt.u64.u32 %0, %1;" : "mov.u64 %0, %1;", edit_reg(k->limit), *mem->size);
        if (mem->bytes)
            BEFORE(k, at, "min.u64 %0, %0, %1;", edit_reg(k->limit), edit_imm(mem->bytes));
    } else if (mem->extent == PTX_EXTENT_TILE && !mem->bytes) {
        // In bits, since elements may be smaller than bytes.
        BEFORE(k, at, "mov.u64 %0, %3;\nmad.wide.u32 %0, %1, %2, %0;\nadd.u64 %0, %0, 7;\nshr.u64 %0, %0, 3;",
               edit_reg(k->limit), *mem->stride, edit_imm((int64_t)(mem->lines - 1) * mem->element_bits),
               edit_imm((int64_t)mem->length * mem->element_bits));
    } else {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->limit), edit_imm((int64_t)mem->bytes - mem->padding));
    }
}

// Lets k->bad be false where the access is not made.
static void only_if_made(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct ptx_stmt *s = &k->f->stmts[a->stmt];
    const struct ptx_mem *mem = &a->mem;
    if (mem->extent == PTX_EXTENT_COUNTED || mem->extent == PTX_EXTENT_TENSOR)
        BEFORE(k, at, "setp.ne.and.u64 %0, %1, 0, %0;", edit_reg(k->bad), edit_reg(k->limit));
    if (mem->extent == PTX_EXTENT_PLAIN && mem->unless)
        BEFORE(k, at, "@%1 mov.pred %0, 0;", edit_reg(k->bad), *mem->unless);
    if (mem->extent == PTX_EXTENT_ROWS && mem->lanes < 32)
        BEFORE(k, at, "mov.u32 %1, %laneid;\nsetp.lt.and.u32 %0, %1, %2, %0;", edit_reg(k->bad),
               edit_reg(k->x), edit_imm(mem->lanes));
    // Outside of global memory, what has no bounds is performed; KCHECK_ACCESS knows nothing of it.
    if (!check_is_global((enum ptx_space)mem->space) && !check_is_variable(a->root))
        BEFORE(k, at, "setp.ne.and.u64 %0, %1, 0, %0;", edit_reg(k->bad), edit_reg(k->size));
    if (s->guard != PTX_NONE)
        BEFORE(k, at, "@!%1 mov.pred %0, 0;", edit_reg(k->bad), edit_guard(s));
}

// The same with the shadow, which is asked about the first and the last byte.
static void check_shadow_whole(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct ptx_stmt *s = &k->f->stmts[a->stmt];
    struct ptx_operand guard = {.kind = PTX_SINK};
    if (s->guard != PTX_NONE)
        guard = edit_guard(s);
    count_bytes(k, at, a);
    check_shadow_access(k, at, k->t, 1, guard, k->bad, false);
    BEFORE(k, at, "add.u64 %0, %1, %2;\nsub.u64 %0, %0, 1;", edit_reg(k->root), edit_reg(k->t),
           edit_reg(k->limit));
    check_shadow_access(k, at, k->root, 1, guard, k->bad, true);
    // KCHECK_ACCESS gets no bounds.
    BEFORE(k, at, "mov.u64 %0, 0;\nmov.u64 %1, 0;\nmov.pred %2, 0;", edit_reg(k->base), edit_reg(k->size),
           edit_reg(k->ok));
    only_if_made(k, at, a);
}

// Sets k->t to the address, k->limit to the bytes, k->ok if the access is inside, and k->bad if it has to be
// judged. `quickly`: k->bad may be set for an access that is right, and then the rest is not set.
static void check_one(struct check_func *k, uint32_t at, const struct check_access *a, bool quickly)
{
    struct check_range range = {0};
    if (check_is_box(a)) {
        (quickly ? check_box_quickly : check_box)(k, at, a);
        return;
    }
    if (a->mem.extent == PTX_EXTENT_DESCRIPTOR) {
        check_described(k, at, a);
        return;
    }
    check_address(k, at, a->mem.addr);
    if (check_by_shadow(k, a->root)) {
        check_shadow_whole(k, at, a);
        return;
    }
    if (a->root.kind == ROOTS_OWN)
        check_lookup(k, EDIT_BEFORE, at, edit_reg(k->t), k->base, k->size);
    else
        check_set_bounds(k, EDIT_BEFORE, at, a->root, k->base, k->size);
    count_bytes(k, at, a);
    BEFORE(
        k, at,
        "sub.u64 %0, %1, %2;\nsetp.gt.u64 %3, %0, %4;\nsub.u64 %0, %4, %0;\nsetp.gt.or.u64 %3, %5, %0, %3;\n"
        "not.pred %6, %3;",
        edit_reg(k->root), edit_reg(k->t), edit_reg(k->base), edit_reg(k->bad), edit_reg(k->size),
        edit_reg(k->limit), edit_reg(k->ok));
    check_alignment(k, a, &range);
    if (range.align)
        BEFORE(k, at, "and.b64 %0, %1, %2;\nsetp.ne.or.u64 %3, %0, 0, %3;", edit_reg(k->root), edit_reg(k->t),
               edit_imm((int64_t)range.align - 1), edit_reg(k->bad));
    only_if_made(k, at, a);
}

// Asks about an access for which check_one has set k->bad; k->bad is then set if it is to be skipped.
static void ask_about(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const int64_t most = UINT16_MAX;
    if (check_is_box(a))
        check_prepare_box(k, at, a);
    else if (a->mem.extent == PTX_EXTENT_DESCRIPTOR)
        check_prepare_described(k, at, a);
    else
        check_prepare(k, at, a, true);
    if (a->mem.extent == PTX_EXTENT_COUNTED || a->mem.extent == PTX_EXTENT_TILE ||
        a->mem.extent == PTX_EXTENT_TENSOR || a->mem.extent == PTX_EXTENT_DESCRIPTOR || a->mem.bytes > most) {
        // The width has 16 bits. Of a longer access that starts inside, the last bytes are judged.
        BEFORE(k, at,
               "sub.u64 %0, %1, %2;\nsetp.lt.u64 %3, %0, %4;\nsetp.gt.and.u64 %3, %5, %6, %3;\n"
               "@%3 add.u64 %1, %1, %5;\n@%3 sub.u64 %1, %1, %6;\nmin.u64 %0, %5, %6;\nshl.b64 %0, %0, 32;\n"
               "and.b64 %7, %7, 0xFFFF0000FFFFFFFF;\nor.b64 %7, %7, %0;",
               edit_reg(k->first), edit_reg(k->t), edit_reg(k->base), edit_reg(k->bad), edit_reg(k->size),
               edit_reg(k->limit), edit_imm(most), edit_reg(k->what));
    }
    check_call(k, at, a->stmt);
}

// --- the instruction ---------------------------------------------------------------------------------------

static bool is_warp(const struct ptx_stmt *s)
{
    return s->form->flags & PTX_WARP;
}

static void vote(struct check_func *k, uint32_t at, uint32_t predicate)
{
    BEFORE(k, at, "vote.sync.any.pred %0, %0, 0xFFFFFFFF;", edit_reg(predicate));
}

void check_emit_whole(struct check_func *k, struct check_whole *w)
{
    struct edit *e = k->k->c->edit;
    uint32_t at = w->stmt;
    w->slow = edit_new_label(e);
    w->perform = edit_new_label(e);
    w->past = edit_new_label(e);
    for (uint32_t i = 0; i < w->n; i++) {
        check_one(k, at, &k->whole_accesses.items[w->first + i], true);
        if (w->n > 1)
            BEFORE(k, at, i ? "or.pred %0, %0, %1;" : "mov.pred %0, %1;", edit_reg(k->any), edit_reg(k->bad));
    }
    uint32_t any = w->n > 1 ? k->any : k->bad;
    if (is_warp(&k->f->stmts[at]))
        vote(k, at, any);
    BEFORE(k, at, "@%0 bra %1;", edit_reg(any), edit_sym(w->slow));
    edit_place_label(e, at, w->perform);
    edit_place_label(e, at + 1, w->past);
}

// Finds the barrier that receives the number of bytes of a copy.
static bool find_barrier(const struct check_func *k, const struct ptx_stmt *s, struct ptx_mem *barrier)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(k->f, s, mem);
    if (n < 2 || !ptx_form_has(s->form, PTX_MOD_MBARRIER_COMPLETE_TX_BYTES) || !mem[n - 1].atomic ||
        mem[n - 1].bytes != 8)
        return false;
    *barrier = mem[n - 1];
    return true;
}

const struct ptx_operand *check_copy_blocks(const struct ptx_stmt *s, const struct ptx_mem *barrier)
{
    const struct ptx_operand *o = ptx_next(barrier->addr), *end = s->operands + s->nslots;
    if (!ptx_form_has(s->form, PTX_MOD_MULTICAST_CLUSTER))
        return NULL;
    while (o < end && ptx_is_group(o))  // offsets of pixels
        o = ptx_next(o);
    return o < end ? o : NULL;
}

// Each block that a copy is made to has a barrier at the same place as this one.
static const char complete_all[] =
    "mov.u32 %0, 0;\ncvt.u32.u64 %1, %2;\ncvt.u32.u16 %3, %5;\n"
    "next:\nand.b32 %6, %3, 1;\nsetp.ne.u32 %7, %6, 0;\n"
    "@%7 mapa.shared::cluster.u32 %6, %1, %0;\n"
    "@%7 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%6], %4;\n"
    "shr.u32 %3, %3, 1;\nadd.u32 %0, %0, 1;\nsetp.ne.u32 %7, %3, 0;\n@%7 bra next;\n";

// Whether the barrier is certain to be one of the thread's own block.
static bool is_own(const struct check_func *k, uint32_t stmt, const struct ptx_mem *barrier)
{
    struct roots_of root = roots_address(k->roots, stmt, barrier->addr);
    return root.kind == ROOTS_VARIABLE && roots_space(k->roots->m, root) == PTX_SPACE_SHARED;
}

static void complete(struct check_func *k, uint32_t at, const struct check_whole *w)
{
    const struct ptx_stmt *s = &k->f->stmts[w->stmt];
    const struct check_access *data = &k->whole_accesses.items[w->first], *last = data + w->n - 1;
    struct ptx_mem barrier;
    if (!find_barrier(k, s, &barrier))
        return;
    // k->bad is what was said of the last access.
    if (last->mem.addr == barrier.addr)
        BEFORE(k, at, "@%0 bra %1;", edit_reg(k->bad), edit_sym(w->past));
    if (data->mem.addr == barrier.addr)  // nothing else can be wrong
        return;
    count_bytes(k, at, data);
    BEFORE(k, at, "cvt.u32.u64 %0, %1;", edit_reg(k->x), edit_reg(k->limit));
    check_address(k, at, barrier.addr);
    const struct ptx_operand *blocks = check_copy_blocks(s, &barrier);
    if (blocks)
        BEFORE(k, at, complete_all, edit_reg(k->slot), edit_reg(k->narrow_base), edit_reg(k->t),
               edit_reg(k->narrow_limit), edit_reg(k->x), *blocks, edit_reg(k->verdict), edit_reg(k->ok));
    else if (is_own(k, w->stmt, &barrier))
        BEFORE(k, at, "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;", edit_reg(k->t),
               edit_reg(k->x));
    else
        BEFORE(k, at, "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;", edit_reg(k->t),
               edit_reg(k->x));
}

// What the instruction would have written is 0, and a wait is over.
static void clear(struct check_func *k, uint32_t at, const struct ptx_stmt *s)
{
    const struct ptx_operand *to = ptx_operand(s, 0);
    bool waits = s->form->id == PTX_OP_MBARRIER_TEST_WAIT || s->form->id == PTX_OP_MBARRIER_TRY_WAIT;
    if (!waits)
        check_clear(k, at, s, PTX_NONE);
    else if (to->kind == PTX_REG)
        BEFORE(k, at, "mov.pred %0, 1;", *to);
}

static void emit_slow(struct check_func *k, const struct check_whole *w)
{
    struct edit *e = k->k->c->edit;
    const struct ptx_stmt *s = &k->f->stmts[w->stmt];
    uint32_t at = w->end;
    edit_place_label(e, at, w->slow);
    BEFORE(k, at, "mov.pred %0, 0;", edit_reg(k->any));
    for (uint32_t i = 0; i < w->n; i++) {
        const struct check_access *a = &k->whole_accesses.items[w->first + i];
        uint32_t next = edit_new_label(e);
        check_one(k, at, a, false);
        BEFORE(k, at, "@!%0 bra %1;", edit_reg(k->bad), edit_sym(next));
        ask_about(k, at, a);
        BEFORE(k, at, "or.pred %0, %0, %1;", edit_reg(k->any), edit_reg(k->bad));
        edit_place_label(e, at, next);
    }
    if (is_warp(s))
        vote(k, at, k->any);
    BEFORE(k, at, "@!%0 bra %1;", edit_reg(k->any), edit_sym(w->perform));
    clear(k, at, s);
    complete(k, at, w);
    BEFORE(k, at, "bra %0;", edit_sym(w->past));
}

void check_place_wholes(struct check_func *k)
{
    struct edit *e = k->k->c->edit;
    for (size_t i = 0; i < k->wholes.len && !edit_error(e); i++) {
        const struct check_whole *w = &k->wholes.items[i];
        uint32_t past = w->end < k->f->nstmts ? edit_new_label(e) : PTX_NONE;
        if (past != PTX_NONE)
            BEFORE(k, w->end, "bra %0;", edit_sym(past));
        emit_slow(k, w);
        if (past != PTX_NONE)
            edit_place_label(e, w->end, past);
    }
}
