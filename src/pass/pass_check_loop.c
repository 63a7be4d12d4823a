// SPDX-License-Identifier: MIT
// Which loops are copied for slow code: see pass_check_slow.c. All of such a loop may be executed in two
// places by the lanes of a warp.
#include <errno.h>
#include <stdlib.h>

#include "flow/loops.h"
#include "pass/pass_check_state.h"

enum { MOST_STMTS = 512 };  // of a loop

bool check_is_bra(const struct ptx_stmt *s)
{
    return s->kind == PTX_INSN && s->form->id == PTX_OP_BRA;
}

bool check_falls(const struct check_func *k, uint32_t block)
{
    for (uint32_t i = k->cfg->blocks[block].last; i-- > k->cfg->blocks[block].first;)
        if (k->f->stmts[i].kind == PTX_INSN)
            return !check_is_bra(&k->f->stmts[i]) || k->f->stmts[i].guard != PTX_NONE;
    return true;
}

uint32_t check_first_segment(const struct check_func *k, uint32_t stmt)
{
    size_t low = 0, high = k->segments.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->segments.items[middle].first < stmt)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static bool may_copy_block(const struct check_func *k, uint32_t block)
{
    for (uint32_t i = k->cfg->blocks[block].first; i < k->cfg->blocks[block].last; i++) {
        const struct ptx_stmt *s = &k->f->stmts[i];
        bool bra = check_is_bra(s) && !s->form->odd && ptx_operand(s, 0)->kind == PTX_SYM;
        if (!bra && s->kind != PTX_PRAGMA && !check_may_copy(k, s))
            return false;
    }
    return !check_falls(k, block) || block + 1 < k->cfg->nblocks;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Adds the loop if it is to be copied. Returns 0 or -ENOMEM.
static int add(struct check_func *k, const struct loops *all, const struct loop *l)
{
    struct check_loop loop = {.number = (uint32_t)k->loops.len, .nblocks = l->count, .end = PTX_NONE};
    uint32_t stmts = 0;
    bool may = !l->irreducible;
    for (uint32_t i = 0; i < l->count && may; i++) {
        uint32_t block = all->nodes[l->first + i];
        stmts += k->cfg->blocks[block].last - k->cfg->blocks[block].first;
        may = stmts <= MOST_STMTS && may_copy_block(k, block);
    }
    if (!may)
        return 0;
    loop.blocks = ARENA_ARRAY(&k->arena, uint32_t, l->count);
    if (!loop.blocks)
        return -ENOMEM;
    memcpy(loop.blocks, all->nodes + l->first, l->count * sizeof *loop.blocks);
    qsort(loop.blocks, l->count, sizeof *loop.blocks, compare);
    for (uint32_t i = 0; i < l->count; i++) {
        const struct cfg_block *b = &k->cfg->blocks[loop.blocks[i]];
        for (uint32_t g = check_first_segment(k, b->first);
             g < k->segments.len && k->segments.items[g].first < b->last; g++) {
            k->segments.items[g].loop = loop.number;
            loop.end = k->segments.items[g].end;
        }
    }
    if (loop.end == PTX_NONE)  // nothing in it is checked
        return 0;
    for (uint32_t i = 0; i < l->count; i++)
        k->copied[loop.blocks[i]].loop = loop.number;
    return vec_push(&k->loops, loop);
}

int check_find_loops(struct check_func *k)
{
    const struct loops *all;
    k->copied = ARENA_ARRAY(&k->arena, struct check_copied, k->cfg->nblocks + 1u);
    if (!k->copied)
        return -ENOMEM;
    memset(k->copied, 0xFF, (k->cfg->nblocks + 1u) * sizeof *k->copied);
    if (k->cfg->uncertain || !k->segments.len)
        return 0;
    int err = flow_loops(&k->flow, &all);
    for (uint32_t l = 0; !err && l < all->nloops; l++) {
        bool innermost = true;  // outer loops come first
        for (uint32_t i = l + 1; i < all->nloops && innermost; i++)
            innermost = all->loops[i].parent != l;
        if (innermost)
            err = add(k, all, &all->loops[l]);
    }
    return err;
}

void check_open_loops(struct check_func *k)
{
    struct edit *e = k->k->c->edit;
    for (size_t l = 0; l < k->loops.len; l++)
        for (uint32_t i = 0; i < k->loops.items[l].nblocks; i++) {
            uint32_t block = k->loops.items[l].blocks[i];
            k->copied[block].slow = edit_new_label(e);
            if (check_falls(k, block) && k->copied[block + 1].begin == PTX_NONE)
                k->copied[block + 1].begin = edit_new_label(e);
        }
}
