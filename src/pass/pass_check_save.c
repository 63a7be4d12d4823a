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
#include <errno.h>

#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

// Registers that are saved in a kernel, at all its calls together. In larger ones, as in Thrust and CUB,
// nothing is saved: the moves would be most of the kernel, and the driver's compiler would take several times
// as long.
enum { MOST_SAVED = 2048 };

int check_find_saved(struct check_func *k)
{
    if (!k->accesses.len && !k->whole_accesses.len)
        return 0;
    bool *asks = ARENA_ARRAY(&k->arena, bool, k->f->nstmts + 1u);
    if (!asks)
        return -ENOMEM;
    memset(asks, 0, k->f->nstmts + 1u);
    for (uint32_t i = 0; i < k->accesses.len; i++)
        asks[k->accesses.items[i].stmt] = true;
    for (uint32_t i = 0; i < k->whole_accesses.len; i++)
        asks[k->whole_accesses.items[i].stmt] = true;
    int err = saved_find(&k->saved, &k->flow, k->f, &k->arena, asks);
    if (!err && k->saved.at) {
        k->kept = ARENA_ARRAY(&k->arena, struct check_kept, k->reach->regs->n + 1u);
        if (!k->kept)
            return -ENOMEM;
        if (k->saved.all.len > MOST_SAVED)
            k->saved.at = NULL;
    }
    return err;
}

// --- code --------------------------------------------------------------------------------------------------

// Gives the registers that are saved in a segment their places. Returns how many there are.
static uint32_t place_all(struct check_func *k, const struct check_segment *g)
{
    uint32_t n = 0;
    memset(k->kept, 0, k->reach->regs->n * sizeof *k->kept);
    for (uint32_t a = 0; a < g->naccesses; a++) {
        struct saved_row saved = k->saved.at[k->accesses.items[g->first_access + a].stmt];
        for (uint32_t i = 0; i < saved.n; i++) {
            struct check_kept *kept =
                &k->kept[regs_index(k->reach->regs, k->saved.all.items[saved.first + i])];
            if (!kept->has_slot)
                *kept = (struct check_kept){.has_slot = true, .slot = n++};
        }
    }
    return n;
}

static void move(struct check_func *k, uint32_t at, uint32_t reg, uint32_t slot, bool back)
{
    saved_move(k->k->c->edit, k->f, at, k->at_frame, slot, reg, back);
}

static void open_frame(struct check_func *k, uint32_t at)
{
    BEFORE(k, at, "cvta.local.u64 %0, %1;", edit_reg(k->at_frame), edit_sym(k->frame));
}

// Moves what is saved for a statement: all of it, or in a segment what is in a register alone.
static void move_all(struct check_func *k, uint32_t at, uint32_t stmt, bool back)
{
    struct saved_row saved = k->saved.at ? k->saved.at[stmt] : (struct saved_row){0};
    bool opened = false;
    for (uint32_t i = 0; i < saved.n; i++) {
        uint32_t reg = k->saved.all.items[saved.first + i];
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
    k->keeps = k->saved.at;
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
        struct saved_row saved = k->saved.at[k->accesses.items[g->first_access + g->naccesses - 1].stmt];
        for (uint32_t i = 0; i < saved.n; i++)
            take_back(k, at, regs_index(k->reach->regs, k->saved.all.items[saved.first + i]), &opened);
    }
    k->keeps = false;
}

void check_save_open(struct check_func *k)
{
    uint32_t most = 0;
    for (uint32_t i = 0; k->saved.at && i < k->f->nstmts; i++)
        most = k->saved.at[i].n > most ? k->saved.at[i].n : most;
    for (uint32_t g = 0; k->saved.at && g < k->segments.len; g++) {
        uint32_t n = place_all(k, &k->segments.items[g]);
        most = n > most ? n : most;
    }
    if (most)
        k->frame = edit_new_local(k->k->c->edit, most * SAVED_SLOT);
}
