// SPDX-License-Identifier: MIT
// Bounds that are kept in registers: of pointers that are loaded, passed, returned or merged.
//
// A VALUE's bounds are looked up in the table right behind its definition, unless it is a parameter of a
// function that gets them from its callers (pass_check_calls.c). Where different roots meet in a
// register, the register has a shadow, two more registers that are set to the new bounds whenever the
// register is written; at the start of the block in which they meet, the WEB's bounds are copied from the
// shadow.
#include <errno.h>

#include "pass/pass_check_state.h"

// --- what is needed ----------------------------------------------------------------------------------------

struct needing {
    struct check_func *k;
    VEC(uint32_t) work;  // values whose bounds are needed
    VEC(uint32_t) joins;
    bool *walked;  // by value: its inputs feed the shadow
    int err;
};

static void need_value(struct needing *n, uint32_t v)
{
    if (n->k->bounds[v].needed || n->err)
        return;
    n->k->bounds[v].needed = true;
    n->err = vec_push(&n->work, v);
}

static void need_param(struct needing *n, uint32_t offset)
{
    struct check_func *k = n->k;
    for (size_t i = 0; i < k->params.len; i++)
        if (k->params.items[i] == offset)
            return;
    if (!n->err)
        n->err = vec_push(&k->params, offset);
    if (!n->err)
        n->err = vec_push(&k->param_bounds, (struct check_bounds){.needed = true});
}

static void need_root(struct needing *n, struct roots_of root)
{
    if (root.kind == ROOTS_VALUE || root.kind == ROOTS_WEB)
        need_value(n, root.id);
    else if (root.kind == ROOTS_PARAM && check_pair(n->k, root.id, 1) == PTX_NONE)
        need_param(n, root.id);
}

// Lets every definition that reaches the JOIN set the shadow of its register.
static void need_shadow(struct needing *n, uint32_t join)
{
    struct check_func *k = n->k;
    k->shadow[k->reach->value.items[join].reg].needed = true;
    n->joins.len = 0;
    if (!n->walked[join])
        n->err = vec_push(&n->joins, join);
    n->walked[join] = true;
    while (n->joins.len && !n->err) {
        struct reach_list in = reach_inputs(k->reach, n->joins.items[--n->joins.len]);
        for (uint32_t i = 0; i < in.n && !n->err; i++) {
            uint32_t v = in.at[i];
            if (v == REACH_NONE || n->walked[v])
                continue;
            n->walked[v] = true;
            if (k->reach->value.items[v].kind == REACH_JOIN) {
                n->err = vec_push(&n->joins, v);
            } else {
                k->feeds[v] = true;
                need_root(n, k->roots->of[v]);
            }
        }
    }
}

static void need_inputs(struct needing *n, uint32_t v)
{
    struct check_func *k = n->k;
    const struct reach_value *value = &k->reach->value.items[v];
    struct roots_of picked[2];
    if (k->roots->of[v].kind != ROOTS_WEB)
        return;
    if (value->kind == REACH_JOIN) {
        need_shadow(n, v);
    } else if (roots_picked(k->roots, v, picked) || roots_summed(k->roots, v, picked)) {
        need_root(n, picked[0]);
        need_root(n, picked[1]);
    } else if (value->partial) {
        if (k->roots->made[v].id != v)
            need_root(n, k->roots->made[v]);
        need_root(n, k->roots->of[value->input]);
    }
}

// Chooses the bytes of each root's first check.
static void choose_spans(struct check_func *k)
{
    for (size_t i = 0; i < k->ranges.len; i++) {
        const struct check_range *r = &k->ranges.items[i];
        struct check_bounds *b = (struct check_bounds *)(uintptr_t)check_bounds_of(k, r->root);
        if (b && !b->span && r->high - r->low <= INT32_MAX)
            b->span = (uint32_t)(r->high - r->low);
    }
}

int check_need(struct check_func *k)
{
    struct needing n = {.k = k};
    n.walked = ARENA_ARRAY(&k->arena, bool, k->reach->value.len + 1);
    if (!n.walked)
        return -ENOMEM;
    memset(n.walked, 0, k->reach->value.len + 1);
    for (size_t i = 0; i < k->ranges.len; i++) {
        const struct check_range *r = &k->ranges.items[i];
        if (r->root.kind == ROOTS_PARAM && r->pair == PTX_NONE)
            need_param(&n, r->root.id);
        else if (r->root.kind != ROOTS_PARAM)
            need_root(&n, r->root);
    }
    for (size_t i = 0; i < k->whole_accesses.len; i++)
        need_root(&n, k->whole_accesses.items[i].root);
    for (size_t i = 0; i < k->passes.len; i++)
        need_root(&n, k->passes.items[i].root);
    while (n.work.len && !n.err)
        need_inputs(&n, n.work.items[--n.work.len]);
    if (k->k->find == PTX_NONE)  // else sizes change in other places
        choose_spans(k);
    vec_free(&n.work);
    vec_free(&n.joins);
    return n.err;
}

static void new_bounds(struct check_func *k, struct check_bounds *b)
{
    if (!b->needed)
        return;
    b->base = edit_new_reg(k->k->c->edit, PTX_U64);
    b->size = edit_new_reg(k->k->c->edit, PTX_U64);
    if (b->span)
        b->limit = edit_new_reg(k->k->c->edit, PTX_U64);
}

// Values that are loaded from one slot share its registers.
static void share_slot(struct check_func *k, uint32_t v)
{
    uint32_t slot = k->bounds[v].needed ? check_slot_of(k, v) : CHECK_MOST_SLOTS;
    if (slot == CHECK_MOST_SLOTS) {
        new_bounds(k, &k->bounds[v]);
        if (k->memo_of[v] != PTX_NONE) {
            k->bounds[v].base = k->memos.items[k->memo_of[v]].base;
            k->bounds[v].size = k->memos.items[k->memo_of[v]].size;
        }
        return;
    }
    if (!k->slot_bounds[slot].needed) {
        k->slot_bounds[slot].needed = true;
        k->slot_bounds[slot].span = k->bounds[v].span;
        new_bounds(k, &k->slot_bounds[slot]);
    }
    k->bounds[v] = k->slot_bounds[slot];
}

void check_bounds_registers(struct check_func *k)
{
    check_memo_entry(k);
    for (uint32_t v = 0; v < k->reach->value.len; v++)
        share_slot(k, v);
    for (size_t i = 0; i < k->passes.len; i++) {
        k->passes.items[i].base = edit_new_reg(k->k->c->edit, PTX_U64);
        k->passes.items[i].size = edit_new_reg(k->k->c->edit, PTX_U64);
    }
    for (uint32_t r = 0; r < k->reach->regs->n; r++)
        new_bounds(k, &k->shadow[r]);
    for (size_t i = 0; i < k->param_bounds.len; i++)
        new_bounds(k, &k->param_bounds.items[i]);
}

const struct check_bounds *check_bounds_of(struct check_func *k, struct roots_of root)
{
    if (root.kind == ROOTS_VALUE || root.kind == ROOTS_WEB)
        return &k->bounds[root.id];
    for (size_t i = 0; root.kind == ROOTS_PARAM && i < k->params.len; i++)
        if (k->params.items[i] == root.id)
            return &k->param_bounds.items[i];
    return NULL;
}

// --- code --------------------------------------------------------------------------------------------------

#define PUT(k, place, at, text, ...) \
    edit_insert((k)->k->c->edit, (place), (at), (text), EDIT_ARGS(__VA_ARGS__))

// See kcheck.h. A pointer that is not inside the block of its slot has no bounds. %0 pointer, %1 base, %2
// size; %3 to %7 are scratch; %8: the module's variable.
#define LOOKUP(directory_known, records_known)                                 \
    "setp.lt.u64 %7, %0, 0x800000000000;\n"                                    \
    "ld.const.u64 %6, [%8];\n" directory_known "shr.u64 %3, %0, 21;\n"         \
    "shl.b64 %3, %3, 3;\n"                                                     \
    "add.u64 %6, %6, %3;\n"                                                    \
    "mov.u64 %3, 0;\n"                                                         \
    "@%7 ld.global.u64 %3, [%6];\n"                                            \
    "cvt.u32.u64 %5, %3;\n"                                                    \
    "shr.u64 %6, %3, 32;\n"                                                    \
    "shr.u64 %3, %0, 7;\n"                                                     \
    "cvt.u32.u64 %4, %3;\n"                                                    \
    "and.b32 %4, %4, 0x3FFF;\n"                                                \
    "mul.hi.u32 %4, %4, %5;\n"                                                 \
    "cvt.u64.u32 %3, %4;\n"                                                    \
    "add.u64 %6, %6, %3;\n"                                                    \
    "shl.b64 %6, %6, 4;\n"                                                     \
    "ld.const.u64 %3, [%8+8];\n"                                               \
    "add.u64 %6, %6, %3;\n" records_known "ld.global.v2.u64 {%1, %2}, [%6];\n" \
    "setp.ge.u64 %7, %2, 0x800000000000;\n"                                    \
    "sub.u64 %3, %0, %1;\n"                                                    \
    "setp.ge.or.u64 %7, %3, %2, %7;\n"                                         \
    "@%7 mov.u64 %1, %0;\n"                                                    \
    "@%7 mov.u64 %2, 0;\n"
static const char lookup[] = LOOKUP("", "");
// In a function whose address is taken, and in a kernel that kernels launch: kernels that are not checked may
// call it too, even before the host has set the module's variable.
#define CAREFUL_LOOKUP                                                                                \
    LOOKUP("setp.ne.and.u64 %7, %6, 0, %7;\n", "setp.ne.u64 %7, %3, 0;\nmov.u64 %1, 0;\nmov.u64 %2, " \
                                               "0;\n@%7 ")
static const char careful_lookup[] = CAREFUL_LOOKUP;
_Static_assert(KCHECK_ADDRESS_BITS == 47 && KCHECK_CHUNK_BITS == 21 &&
                   offsetof(struct kcheck_module, records) == 8,
               "lookup has them");

// Where kernels call malloc, a pointer into its heap is not looked up in the table, but by a call of the
// function %9. What it does not find has no bounds.
#define LOOKUP_WITH_HEAP(kept, table)         \
    kept "ld.const.u64 %3, [%8+32];\n"        \
         "sub.u64 %3, %0, %3;\n"              \
         "ld.const.u64 %6, [%8+40];\n"        \
         "setp.lt.u64 %7, %3, %6;\n"          \
         "@%7 bra HEAP;\n" table "bra END;\n" \
         "HEAP:\n"                            \
         "call (%3), %9, (%0);\n"             \
         "shr.u64 %6, %3, 32;\n"              \
         "sub.u64 %1, %0, %6;\n"              \
         "and.b64 %2, %3, 0xFFFFFFFF;\n"      \
         "END:\n"
static const char lookup_with_heap[] = LOOKUP_WITH_HEAP("", LOOKUP("", ""));
static const char careful_lookup_with_heap[] = LOOKUP_WITH_HEAP("", CAREFUL_LOOKUP);
// The same, unless the pointer is the one that was looked up last, %10.
#define KEPT "setp.eq.u64 %7, %0, %10;\n@%7 bra END;\nmov.u64 %10, %0;\n"
static const char kept_lookup[] = LOOKUP_WITH_HEAP(KEPT, LOOKUP("", ""));
static const char careful_kept_lookup[] = LOOKUP_WITH_HEAP(KEPT, CAREFUL_LOOKUP);
_Static_assert(offsetof(struct kcheck_module, heap) == 32 && offsetof(struct kcheck_module, heap_bytes) == 40,
               "lookup_with_heap has them");

void check_set_limit(struct check_func *k, enum edit_place place, uint32_t at, uint32_t limit, uint32_t size,
                     uint32_t span)
{
    if (span == 1)
        PUT(k, place, at, "mov.u64 %0, %1;", edit_reg(limit), edit_reg(size));
    else
        PUT(k, place, at, "sub.s64 %0, %1, %2;\nmax.s64 %0, %0, 0;", edit_reg(limit), edit_reg(size),
            edit_imm((int64_t)span - 1));
}

static void set_limit(struct check_func *k, enum edit_place place, uint32_t at, const struct check_bounds *b)
{
    if (b->needed && b->span)
        check_set_limit(k, place, at, b->limit, b->size, b->span);
}

void check_lookup(struct check_func *k, enum edit_place place, uint32_t at, struct ptx_operand pointer,
                  uint32_t base, uint32_t size)
{
    bool heap = k->k->find != PTX_NONE, careful = k->in_place || k->child;
    const char *text = heap      ? careful ? careful_lookup_with_heap : lookup_with_heap
                       : careful ? careful_lookup
                                 : lookup;
    PUT(k, place, at, text, pointer, edit_reg(base), edit_reg(size), edit_reg(k->word), edit_reg(k->x),
        edit_reg(k->slot), edit_reg(k->first), edit_reg(k->ok), edit_sym(k->k->variable),
        edit_sym(k->k->find));
}

static void look_up_value(struct check_func *k, enum edit_place place, uint32_t at, uint32_t v)
{
    struct ptx_operand pointer = edit_reg(k->reach->regs->reg[k->reach->value.items[v].reg]);
    const struct check_memo *m = k->memo_of[v] == PTX_NONE ? NULL : &k->memos.items[k->memo_of[v]];
    if (m)
        PUT(k, place, at, k->in_place || k->child ? careful_kept_lookup : kept_lookup, pointer,
            edit_reg(m->base), edit_reg(m->size), edit_reg(k->word), edit_reg(k->x), edit_reg(k->slot),
            edit_reg(k->first), edit_reg(k->ok), edit_sym(k->k->variable), edit_sym(k->k->find),
            edit_reg(m->last));
    else
        check_lookup(k, place, at, pointer, k->bounds[v].base, k->bounds[v].size);
}

void check_set_bounds(struct check_func *k, enum edit_place place, uint32_t at, struct roots_of root,
                      uint32_t base, uint32_t size)
{
    const struct check_bounds *known = check_bounds_of(k, root);
    if (known && known->needed) {
        PUT(k, place, at, "mov.u64 %0, %1;\nmov.u64 %2, %3;", edit_reg(base), edit_reg(known->base),
            edit_reg(size), edit_reg(known->size));
    } else if (root.kind == ROOTS_PARAM) {
        int64_t pair = KCHECK_HIDDEN + 16 * (int64_t)check_pair(k, root.id, 1);
        PUT(k, place, at, "ld.param.u64 %0, [%1];\nld.param.u64 %2, [%3];", edit_reg(base),
            edit_sym_at(k->hidden, pair), edit_reg(size), edit_sym_at(k->hidden, pair + 8));
    } else if (check_is_variable(root)) {
        check_variable_bounds(k, place, at, root, base, size);
    } else {
        PUT(k, place, at, "mov.u64 %0, 0;\nmov.u64 %1, 0;", edit_reg(base), edit_reg(size));
    }
}

// Chooses the side of a sum that points into the heap of malloc in kernels, if neither side has bounds: the
// judge finds its block. The sides' bases are in k->root and k->base, their sizes in k->limit and k->size.
static void set_sum_in_heap(struct check_func *k, const struct check_bounds *b, enum edit_place place,
                            uint32_t at)
{
    static const char find[] = "ld.const.u64 %0, [%4+32];\nsub.u64 %1, %2, %0;\nsub.u64 %0, %3, %0;\n"
                               "ld.const.u64 %5, [%4+40];\n"
                               "setp.lt.u64 %6, %1, %5;\nsetp.lt.u64 %7, %0, %5;\n"
                               "setp.eq.and.u64 %6, %8, 0, %6;\nsetp.eq.and.u64 %7, %8, 0, %7;\n";
    static const char choose[] = "@%0 mov.u64 %2, %3;\n@%1 mov.u64 %2, %4;\n"
                                 "@%0 selp.b64 %2, 0, %2, %1;\n";
    PUT(k, place, at, "or.b64 %0, %1, %2;", edit_reg(k->limit), edit_reg(k->limit), edit_reg(k->size));
    PUT(k, place, at, find, edit_reg(k->word), edit_reg(k->first), edit_reg(k->root), edit_reg(k->base),
        edit_sym(k->k->variable), edit_reg(k->size), edit_reg(k->ok), edit_reg(k->any), edit_reg(k->limit));
    PUT(k, place, at, choose, edit_reg(k->ok), edit_reg(k->any), edit_reg(b->base), edit_reg(k->root),
        edit_reg(k->base));
}

// Chooses the side of a sum that has bounds, if the other has none.
static void set_sum(struct check_func *k, const struct roots_of sides[2], const struct check_bounds *b,
                    enum edit_place place, uint32_t at)
{
    check_set_bounds(k, place, at, sides[0], k->root, k->limit);
    check_set_bounds(k, place, at, sides[1], k->base, k->size);
    PUT(k, place, at,
        "mov.u64 %0, 0;\nmov.u64 %1, 0;\n"
        "setp.eq.u64 %6, %5, 0;\nsetp.ne.and.u64 %6, %3, 0, %6;\n@%6 mov.u64 %0, %2;\n@%6 mov.u64 %1, %3;\n"
        "setp.eq.u64 %6, %3, 0;\nsetp.ne.and.u64 %6, %5, 0, %6;\n@%6 mov.u64 %0, %4;\n@%6 mov.u64 %1, %5;\n",
        edit_reg(b->base), edit_reg(b->size), edit_reg(k->root), edit_reg(k->limit), edit_reg(k->base),
        edit_reg(k->size), edit_reg(k->ok));
    set_sum_in_heap(k, b, place, at);
}

static void set_merged(struct check_func *k, uint32_t v, enum edit_place place, uint32_t at)
{
    const struct reach_value *value = &k->reach->value.items[v];
    const struct ptx_stmt *s = &k->f->stmts[value->place];
    const struct check_bounds *b = &k->bounds[v];
    struct roots_of picked[2];
    if (s->form->id == PTX_OP_SELP && roots_picked(k->roots, v, picked)) {
        check_set_bounds(k, place, at, picked[0], k->root, k->limit);
        check_set_bounds(k, place, at, picked[1], k->base, k->size);
        PUT(k, place, at, "selp.b64 %0, %1, %2, %6;\nselp.b64 %3, %4, %5, %6;", edit_reg(b->base),
            edit_reg(k->root), edit_reg(k->base), edit_reg(b->size), edit_reg(k->limit), edit_reg(k->size),
            *ptx_operand(s, 3));
    } else if (roots_summed(k->roots, v, picked)) {
        set_sum(k, picked, b, place, at);
    } else if (check_is_narrow(k, k->reach->regs->reg[value->reg]) &&
               (s->guard == PTX_NONE || k->roots->made[v].id == v)) {
        PUT(k, place, at, "mov.u64 %0, 0;\nmov.u64 %1, 0;", edit_reg(b->base), edit_reg(b->size));
    } else if (s->guard == PTX_NONE || k->roots->made[v].id == v) {
        check_lookup(k, place, at, edit_reg(k->reach->regs->reg[value->reg]), b->base, b->size);
    } else {
        check_set_bounds(k, place, at, k->roots->of[value->input], b->base, b->size);
        check_set_bounds(k, place, at, k->roots->made[v], k->base, k->size);
        PUT(k, place, at, "@%0 mov.u64 %1, %2;\n@%0 mov.u64 %3, %4;", edit_guard(s), edit_reg(b->base),
            edit_reg(k->base), edit_reg(b->size), edit_reg(k->size));
    }
}

// Sets the bounds of a pointer that is a root itself.
static void set_root(struct check_func *k, uint32_t v, enum edit_place place, uint32_t at)
{
    const struct check_bounds *b = &k->bounds[v];
    const struct check_pass *passed = check_pass_of(k, v);
    struct roots_of mapped;
    if (check_is_mapped(k, k->roots->of[v], &mapped))
        check_mapped_bounds(k, place, at, v, b->base, b->size);
    else if (passed)
        PUT(k, place, at, "mov.u64 %0, %1;\nmov.u64 %2, %3;", edit_reg(b->base), edit_reg(passed->base),
            edit_reg(b->size), edit_reg(passed->size));
    else if (check_slot_of(k, v) == CHECK_MOST_SLOTS)
        look_up_value(k, place, at, v);
}

// Sets the bounds, and the shadow, of a value that has just been written.
static void set_value(struct check_func *k, uint32_t v, enum edit_place place, uint32_t at)
{
    const struct reach_value *value = &k->reach->value.items[v];
    if (k->bounds[v].needed && k->roots->of[v].kind == ROOTS_WEB)
        set_merged(k, v, place, at);
    else if (k->bounds[v].needed)
        set_root(k, v, place, at);
    if (k->bounds[v].needed && check_slot_of(k, v) == CHECK_MOST_SLOTS)
        set_limit(k, place, at, &k->bounds[v]);
    if (k->feeds[v])
        check_set_bounds(k, place, at, k->roots->of[v], k->shadow[value->reg].base,
                         k->shadow[value->reg].size);
}

void check_bounds_after(struct check_func *k, uint32_t stmt, enum edit_place place, uint32_t at)
{
    const struct regs *regs = k->reach->regs;
    check_drop_freed(k, stmt, place, at);
    check_memo_after(k, stmt, place, at);
    for (uint32_t a = regs->access_at[stmt]; a < regs->access_at[stmt + 1]; a++)
        if (k->reach->written[a] != REACH_NONE)
            set_value(k, k->reach->written[a], place, at);
}

uint32_t check_block_start(const struct check_func *k, uint32_t block)
{
    uint32_t i = k->cfg->blocks[block].first;
    while (i < k->cfg->blocks[block].last && k->f->stmts[i].kind != PTX_INSN)
        i++;
    return i;
}

void check_bounds_block(struct check_func *k, uint32_t block, uint32_t at)
{
    for (uint32_t v = k->joins_at[block]; v != REACH_NONE; v = k->next_join[v - k->reach->ndefs]) {
        const struct check_bounds *b = &k->bounds[v], *from = &k->shadow[k->reach->value.items[v].reg];
        if (b->needed)
            PUT(k, EDIT_BEFORE, at, "mov.u64 %0, %1;\nmov.u64 %2, %3;", edit_reg(b->base),
                edit_reg(from->base), edit_reg(b->size), edit_reg(from->size));
        set_limit(k, EDIT_BEFORE, at, b);
    }
}

static void load_param(struct check_func *k, uint32_t offset)
{
    for (uint32_t i = 0; i < k->f->nparams; i++) {
        uint64_t at;
        const struct ptx_var *p = &k->f->params[i];
        if (roots_param_offset(k->f, p->sym, &at) && offset >= at && offset + 8 <= at + ptx_var_size(p))
            PUT(k, EDIT_ENTRY, 0, "ld.param.u64 %0, [%1];", edit_reg(k->t),
                edit_sym_at(p->sym, offset - (int64_t)at));
    }
}

void check_bounds_entry(struct check_func *k)
{
    for (uint32_t i = 0; k->slots && i < k->slots->n; i++)
        if (k->slot_bounds[i].needed) {
            PUT(k, EDIT_ENTRY, 0, "ld.param.u64 %0, [%1];\nld.param.u64 %2, [%3];",
                edit_reg(k->slot_bounds[i].base), edit_sym(k->slots->at[i].base),
                edit_reg(k->slot_bounds[i].size), edit_sym(k->slots->at[i].size));
            set_limit(k, EDIT_ENTRY, 0, &k->slot_bounds[i]);
        }
    for (size_t i = 0; i < k->params.len; i++) {
        load_param(k, k->params.items[i]);
        check_lookup(k, EDIT_ENTRY, 0, edit_reg(k->t), k->param_bounds.items[i].base,
                     k->param_bounds.items[i].size);
        set_limit(k, EDIT_ENTRY, 0, &k->param_bounds.items[i]);
    }
    for (uint32_t r = 0; r < k->reach->regs->n; r++)
        if (k->shadow[r].needed)
            PUT(k, EDIT_ENTRY, 0, "mov.u64 %0, 0;\nmov.u64 %1, 0;", edit_reg(k->shadow[r].base),
                edit_reg(k->shadow[r].size));
    for (uint32_t v = k->reach->ndefs; v < k->reach->value.len; v++)
        if (k->reach->value.items[v].kind == REACH_ENTRY)
            set_value(k, v, EDIT_ENTRY, 0);
}
