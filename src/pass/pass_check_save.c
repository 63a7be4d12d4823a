// SPDX-License-Identifier: MIT
// What lives across a call of KCHECK_ACCESS is kept in local memory while it runs.
//
// A kernel gets as many registers as are alive at a call beside those that the called function may change.
// Half as many threads would be resident, for code that correct programs never run; with the values in
// memory, a kernel needs few more than its own. Accesses through a generic address that are volatile are the
// only ones of local memory that the compiler does not turn into registers again.
//
// In the slow copy of a segment a value is put there once for all calls, and taken back where it is read.
// Where the segment ends, what is still needed is taken back.
//
// A value that is cheap to compute anew, of a register that is written once, is left to the compiler: what
// comes from memory is no longer known to be a constant, or equal for all threads of a warp.
#include <errno.h>

#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

enum { SLOT = 8 };  // bytes for each register
// Registers that are saved in a kernel, at all its calls together. In larger ones, as in Thrust and CUB,
// nothing is saved: the moves would be most of the kernel, and the driver's compiler would take several times
// as long.
enum { MOST_SAVED = 2048 };

// --- which registers ---------------------------------------------------------------------------------------

struct saving {
    struct check_func *k;
    const struct regs *regs;
    uint32_t *written_at;  // by index of the register: the statement that writes it, if there is one
    bool *cheap;           // by index
};

static unsigned bits_of(const struct check_func *k, uint32_t reg)
{
    const struct ptx_var *var = ptx_reg_var(k->f, reg);
    return var && var->vec == 1 ? ptx_type_bits((enum ptx_type)var->type) : 0;
}

enum { UNWRITTEN = UINT32_MAX, OFTEN = UINT32_MAX - 1 };

static void find_writes(struct saving *s)
{
    memset(s->written_at, 0xFF, (s->regs->n + 1u) * sizeof *s->written_at);
    for (uint32_t i = 0; i < s->k->f->nstmts; i++) {
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
        return s->k->f->is_entry && stmt->form->nspaces &&
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
    for (uint32_t i = 0; i < s->k->f->nstmts; i++) {
        struct regs_list list = regs_at(s->regs, i);
        for (uint32_t a = 0; a < list.n; a++)
            if (list.at[a].writes && s->written_at[list.at[a].reg] == i)
                s->cheap[list.at[a].reg] = is_constant(s, &s->k->f->stmts[i]);
    }
}

static bool wants(const struct saving *s, uint32_t index)
{
    unsigned bits = bits_of(s->k, s->regs->reg[index]);
    return (bits == 16 || bits == 32 || bits == 64) && !s->cheap[index];
}

// --- where -------------------------------------------------------------------------------------------------

static int keep(struct saving *s, const struct live_walk *w, uint32_t stmt)
{
    struct check_saved *to = &s->k->saved_at[stmt];
    int err = 0;
    to->first = (uint32_t)s->k->saved.len;
    for (uint32_t i = 0; i < w->n && !err; i++)
        if (wants(s, w->item[i]))
            err = vec_push(&s->k->saved, s->regs->reg[w->item[i]]);
    to->n = (uint32_t)s->k->saved.len - to->first;
    return err;
}

static int walk_blocks(struct saving *s, struct live_walk *w, const bool *asks)
{
    const struct cfg *cfg = s->k->cfg;
    int err = 0;
    for (uint32_t b = 0; b < cfg->nblocks && !err; b++) {
        live_walk_block(w, b);
        for (uint32_t i = cfg->blocks[b].last; i > cfg->blocks[b].first && !err; i--) {
            live_walk_back(w);
            if (asks[i - 1])
                err = keep(s, w, i - 1);
        }
    }
    return err;
}

static int find_live(struct saving *s, const struct live *live)
{
    struct check_func *k = s->k;
    struct live_walk w;
    bool *asks = ARENA_ARRAY(&k->arena, bool, k->f->nstmts + 1u);
    k->saved_at = ARENA_ARRAY(&k->arena, struct check_saved, k->f->nstmts + 1u);
    k->kept = ARENA_ARRAY(&k->arena, struct check_kept, k->reach->regs->n + 1u);
    if (!asks || !k->saved_at || !k->kept)
        return -ENOMEM;
    memset(asks, 0, k->f->nstmts + 1u);
    memset(k->saved_at, 0, (k->f->nstmts + 1u) * sizeof *k->saved_at);
    for (uint32_t i = 0; i < k->accesses.len; i++)
        asks[k->accesses.items[i].stmt] = true;
    for (uint32_t i = 0; i < k->whole_accesses.len; i++)
        asks[k->whole_accesses.items[i].stmt] = true;
    int err = live_walk_init(&w, live);
    if (!err) {
        err = walk_blocks(s, &w, asks);
        live_walk_free(&w);
    }
    return err;
}

int check_find_saved(struct check_func *k)
{
    const struct live *live;
    struct saving s = {.k = k};
    if (!k->accesses.len && !k->whole_accesses.len)
        return 0;
    int err = flow_regs(&k->flow, &s.regs);
    if (!err)
        err = flow_liveness(&k->flow, &live);
    if (err)
        return err == -E2BIG ? 0 : err;
    s.written_at = ARENA_ARRAY(&k->arena, uint32_t, s.regs->n + 1u);
    s.cheap = ARENA_ARRAY(&k->arena, bool, s.regs->n + 1u);
    if (!s.written_at || !s.cheap)
        return -ENOMEM;
    memset(s.cheap, 0, s.regs->n + 1u);
    find_writes(&s);
    find_cheap(&s);
    err = find_live(&s, live);
    if (!err && k->saved.len > MOST_SAVED)
        k->saved_at = NULL;
    return err;
}

// --- code --------------------------------------------------------------------------------------------------

// Gives the registers that are saved in a segment their places. Returns how many there are.
static uint32_t place_all(struct check_func *k, const struct check_segment *g)
{
    uint32_t n = 0;
    memset(k->kept, 0, k->reach->regs->n * sizeof *k->kept);
    for (uint32_t a = 0; a < g->naccesses; a++) {
        struct check_saved saved = k->saved_at[k->accesses.items[g->first_access + a].stmt];
        for (uint32_t i = 0; i < saved.n; i++) {
            struct check_kept *kept = &k->kept[regs_index(k->reach->regs, k->saved.items[saved.first + i])];
            if (!kept->has_slot)
                *kept = (struct check_kept){.has_slot = true, .slot = n++};
        }
    }
    return n;
}

static void move(struct check_func *k, uint32_t at, uint32_t reg, uint32_t slot, bool back)
{
    static const char *const texts[2][3] = {
        {"st.volatile.b16 [%0], %1;", "st.volatile.b32 [%0], %1;", "st.volatile.b64 [%0], %1;"},
        {"ld.volatile.b16 %1, [%0];", "ld.volatile.b32 %1, [%0];", "ld.volatile.b64 %1, [%0];"}};
    unsigned bits = bits_of(k, reg);
    BEFORE(k, at,
           texts[back][bits == 16   ? 0
                       : bits == 32 ? 1
                                    : 2],
           edit_addr(k->at_frame, SLOT * (int64_t)slot), edit_reg(reg));
}

static void open_frame(struct check_func *k, uint32_t at)
{
    BEFORE(k, at, "cvta.local.u64 %0, %1;", edit_reg(k->at_frame), edit_sym(k->frame));
}

// Moves what is saved for a statement: all of it, or in a segment what is in a register alone.
static void move_all(struct check_func *k, uint32_t at, uint32_t stmt, bool back)
{
    struct check_saved saved = k->saved_at ? k->saved_at[stmt] : (struct check_saved){0};
    bool opened = false;
    for (uint32_t i = 0; i < saved.n; i++) {
        uint32_t reg = k->saved.items[saved.first + i];
        struct check_kept *kept = k->keeps ? &k->kept[regs_index(k->reach->regs, reg)] : NULL;
        if (kept && back)
            kept->only = true;
        if (kept && (back || kept->stored))
            continue;
        if (!opened)
            open_frame(k, at);
        opened = true;
        move(k, at, reg, kept ? kept->slot : i, back);
        if (kept)
            kept->stored = true;
    }
}

void check_save(struct check_func *k, uint32_t at, uint32_t stmt)
{
    move_all(k, at, stmt, false);
}

void check_restore(struct check_func *k, uint32_t at, uint32_t stmt)
{
    move_all(k, at, stmt, true);
}

void check_save_begin(struct check_func *k, const struct check_segment *g)
{
    k->keeps = k->saved_at;
    if (k->keeps)
        place_all(k, g);
}

// Takes a register back, if it is in memory alone. *opened: its address is known.
static void take_back(struct check_func *k, uint32_t at, uint32_t index, bool *opened)
{
    struct check_kept *kept = &k->kept[index];
    if (!kept->only)
        return;
    if (!*opened)
        open_frame(k, at);
    *opened = true;
    move(k, at, k->reach->regs->reg[index], kept->slot, true);
    kept->only = false;
}

void check_save_need(struct check_func *k, uint32_t at, uint32_t reg)
{
    bool opened = false;
    if (k->keeps && reg != PTX_NONE)
        take_back(k, at, regs_index(k->reach->regs, reg), &opened);
}

void check_save_stmt(struct check_func *k, uint32_t at, uint32_t stmt)
{
    struct regs_list list = regs_at(k->reach->regs, stmt);
    bool opened = false;
    for (uint32_t i = 0; k->keeps && i < list.n; i++)
        if (list.at[i].reads || list.at[i].partial)
            take_back(k, at, list.at[i].reg, &opened);
    for (uint32_t i = 0; k->keeps && i < list.n; i++)
        if (list.at[i].writes) {
            k->kept[list.at[i].reg].only = false;
            k->kept[list.at[i].reg].stored = false;
        }
}

void check_save_end(struct check_func *k, uint32_t at, const struct check_segment *g)
{
    bool opened = false;
    if (k->keeps) {
        // What no access behind needs is dead.
        struct check_saved saved = k->saved_at[k->accesses.items[g->first_access + g->naccesses - 1].stmt];
        for (uint32_t i = 0; i < saved.n; i++)
            take_back(k, at, regs_index(k->reach->regs, k->saved.items[saved.first + i]), &opened);
    }
    k->keeps = false;
}

void check_save_open(struct check_func *k)
{
    uint32_t most = 0;
    for (uint32_t i = 0; k->saved_at && i < k->f->nstmts; i++)
        most = k->saved_at[i].n > most ? k->saved_at[i].n : most;
    for (uint32_t g = 0; k->saved_at && g < k->segments.len; g++) {
        uint32_t n = place_all(k, &k->segments.items[g]);
        most = n > most ? n : most;
    }
    if (most)
        k->frame = edit_new_local(k->k->c->edit, most * SLOT);
}
