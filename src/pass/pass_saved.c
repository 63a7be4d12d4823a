// SPDX-License-Identifier: MIT
#include "pass/pass_saved.h"

#include <errno.h>
#include <string.h>

// --- which registers ---------------------------------------------------------------------------------------

struct saving {
    const struct ptx_func *f;
    const struct regs *regs;
    uint32_t *written_at;  // by index of the register: the statement that writes it, if there is one
    bool *cheap;           // by index
};

static unsigned bits_of(const struct ptx_func *f, uint32_t reg)
{
    const struct ptx_var *var = ptx_reg_var(f, reg);
    return var && var->vec == 1 ? ptx_type_bits((enum ptx_type)var->type) : 0;
}

enum { UNWRITTEN = UINT32_MAX, OFTEN = UINT32_MAX - 1 };

static void find_writes(struct saving *s)
{
    memset(s->written_at, 0xFF, (s->regs->n + 1u) * sizeof *s->written_at);
    for (uint32_t i = 0; i < s->f->nstmts; i++) {
        struct regs_list list = regs_at(s->regs, i);
        for (uint32_t a = 0; a < list.n; a++) {
            uint32_t *at = &s->written_at[list.at[a].reg];
            if (list.at[a].writes)
                *at = *at == UNWRITTEN && !list.at[a].partial ? i : OFTEN;
        }
    }
}

// Returns whether a statement computes the same value wherever it stands, from launch constants alone.
static bool is_constant(const struct saving *s, const struct ptx_stmt *stmt)
{
    const struct ptx_operand *from = stmt->nslots > 1 ? ptx_operand(stmt, 1) : NULL;
    if (stmt->kind != PTX_INSN || stmt->guard != PTX_NONE || !from)
        return false;
    switch (stmt->form->id) {
    case PTX_OP_LD:
        return s->f->is_entry && stmt->form->nspaces &&
               ptx_space_is((enum ptx_space)stmt->form->spaces[0]) == PTX_SPACE_PARAM;
    case PTX_OP_MOV:
    case PTX_OP_CVTA:
        return from->kind == PTX_SREG || from->kind == PTX_SYM || from->kind == PTX_IMM ||
               (from->kind == PTX_REG && !from->sub && s->cheap[regs_index(s->regs, from->id)]);
    default: return false;
    }
}

// A register that is computed from another one stands behind it in nearly all code; where it does not, it is
// not taken for cheap.
static void find_cheap(struct saving *s)
{
    for (uint32_t i = 0; i < s->f->nstmts; i++) {
        struct regs_list list = regs_at(s->regs, i);
        for (uint32_t a = 0; a < list.n; a++)
            if (list.at[a].writes && s->written_at[list.at[a].reg] == i)
                s->cheap[list.at[a].reg] = is_constant(s, &s->f->stmts[i]);
    }
}

static bool wants(const struct saving *s, uint32_t index)
{
    unsigned bits = bits_of(s->f, s->regs->reg[index]);
    return (bits == 16 || bits == 32 || bits == 64) && !s->cheap[index];
}

// --- where -------------------------------------------------------------------------------------------------

static int keep(struct saved *to, const struct saving *s, const struct live_walk *w, uint32_t stmt)
{
    struct saved_row *row = &to->at[stmt];
    int err = 0;
    row->first = (uint32_t)to->all.len;
    for (uint32_t i = 0; i < w->n && !err; i++)
        if (wants(s, w->item[i]))
            err = vec_push(&to->all, s->regs->reg[w->item[i]]);
    row->n = (uint32_t)to->all.len - row->first;
    return err;
}

static int walk_blocks(struct saved *to, const struct saving *s, const struct cfg *cfg, struct live_walk *w,
                       const bool *asks)
{
    int err = 0;
    for (uint32_t b = 0; b < cfg->nblocks && !err; b++) {
        live_walk_block(w, b);
        for (uint32_t i = cfg->blocks[b].last; i > cfg->blocks[b].first && !err; i--) {
            live_walk_back(w);
            if (asks[i - 1])
                err = keep(to, s, w, i - 1);
        }
    }
    return err;
}

int saved_find(struct saved *to, struct flow *flow, const struct ptx_func *f, struct arena *arena,
               const bool *asks)
{
    const struct live *live;
    const struct cfg *cfg;
    struct saving s = {.f = f};
    struct live_walk w;
    int err = flow_cfg(flow, &cfg);
    if (!err)
        err = flow_regs(flow, &s.regs);
    if (!err)
        err = flow_liveness(flow, &live);
    if (err)
        return err == -E2BIG ? 0 : err;
    s.written_at = ARENA_ARRAY(arena, uint32_t, s.regs->n + 1u);
    s.cheap = ARENA_ARRAY(arena, bool, s.regs->n + 1u);
    to->at = ARENA_ARRAY(arena, struct saved_row, f->nstmts + 1u);
    if (!s.written_at || !s.cheap || !to->at)
        return -ENOMEM;
    memset(s.cheap, 0, s.regs->n + 1u);
    memset(to->at, 0, (f->nstmts + 1u) * sizeof *to->at);
    find_writes(&s);
    find_cheap(&s);
    err = live_walk_init(&w, live);
    if (!err) {
        err = walk_blocks(to, &s, cfg, &w, asks);
        live_walk_free(&w);
    }
    return err;
}

void saved_free(struct saved *s)
{
    vec_free(&s->all);
}

// --- code --------------------------------------------------------------------------------------------------

// Accesses through a generic address that are volatile are the only ones of local memory that the driver's
// compiler does not turn into registers again.
void saved_move(struct edit *e, const struct ptx_func *f, uint32_t at, uint32_t frame, uint32_t slot,
                uint32_t reg, bool back)
{
    static const char *const texts[2][3] = {
        {"st.volatile.b16 [%0], %1;", "st.volatile.b32 [%0], %1;", "st.volatile.b64 [%0], %1;"},
        {"ld.volatile.b16 %1, [%0];", "ld.volatile.b32 %1, [%0];", "ld.volatile.b64 %1, [%0];"}};
    unsigned bits = bits_of(f, reg), width = bits == 16 ? 0 : bits == 32 ? 1 : 2;
    edit_before(e, at, texts[back][width], edit_addr(frame, SAVED_SLOT * (int64_t)slot), edit_reg(reg));
}
