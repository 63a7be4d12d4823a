// SPDX-License-Identifier: MIT
#include "pass/pass_cold.h"

#include <errno.h>
#include <string.h>

#include "flow/flow.h"

enum { OLDEST = 8, DEPTHS = 4, FEWEST = 16 };

// By the number of loops around a block. A block is cold for the compiler if others are executed a hundred
// times as often. With larger steps code outside of loops would be as cold as slow copies.
static struct str often[DEPTHS] = {
    {".pragma \"frequency 100\"", sizeof ".pragma \"frequency 100\"" - 1},
    {".pragma \"frequency 200\"", sizeof ".pragma \"frequency 200\"" - 1},
    {".pragma \"frequency 400\"", sizeof ".pragma \"frequency 400\"" - 1},
    {".pragma \"frequency 800\"", sizeof ".pragma \"frequency 800\"" - 1},
};
static struct str rarely = {".pragma \"frequency 1\"", sizeof ".pragma \"frequency 1\"" - 1};

static bool asks(const struct ptx_module *m, const struct ptx_func *f, const struct cfg_block *b)
{
    for (uint32_t i = b->first; i < b->last; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        const struct ptx_operand *callee =
            s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
        if (callee && callee->kind == PTX_SYM && str_eq(ptx_sym(m, callee->id)->name, STR(PASS_COLD_CALL)))
            return true;
    }
    return false;
}

static bool has_frequencies(const struct ptx_func *f)
{
    const struct str what = STR("frequency");
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_PRAGMA &&
            memmem(f->stmts[i].text->ptr, f->stmts[i].text->len, what.ptr, what.len))
            return true;
    return false;
}

// Sets hot[b] for the blocks that control can reach without a block that asks. Returns the number of blocks
// that it can reach otherwise only. work: room for all blocks.
static uint32_t find_hot(const struct ptx_module *m, const struct cfg *cfg, bool *hot, uint32_t *work)
{
    const struct graph *g = cfg->graph;
    uint32_t n = 0, nhot = 0;
    memset(hot, 0, cfg->nblocks * sizeof *hot);
    if (!asks(m, cfg->func, &cfg->blocks[g->entry])) {
        hot[g->entry] = true;
        work[n++] = g->entry;
    }
    while (n) {
        struct graph_nodes to = graph_succ(g, work[--n]);
        nhot++;
        for (uint32_t i = 0; i < to.n; i++)
            if (!hot[to.at[i]] && !asks(m, cfg->func, &cfg->blocks[to.at[i]])) {
                hot[to.at[i]] = true;
                work[n++] = to.at[i];
            }
    }
    return g->nreached - nhot;
}

// Inserts what is said of a block before its first instruction.
static int insert(struct ptx_module *m, struct ptx_func *f, const struct cfg *cfg, const struct loops *loops,
                  const bool *hot)
{
    struct ptx_stmt *stmts = ARENA_ARRAY(&m->arena, struct ptx_stmt, f->nstmts + (size_t)cfg->nblocks);
    uint32_t n = 0;
    if (!stmts)
        return -ENOMEM;
    for (uint32_t b = 0; b < cfg->nblocks; b++) {
        uint32_t depth = loops_depth(loops, b);
        bool said = false;
        for (uint32_t i = cfg->blocks[b].first; i < cfg->blocks[b].last; i++) {
            if (f->stmts[i].kind == PTX_INSN && !said) {
                struct str *text = hot[b] ? &often[depth < DEPTHS ? depth : DEPTHS - 1] : &rarely;
                stmts[n++] =
                    (struct ptx_stmt){.kind = PTX_PRAGMA, .pos = PTX_NONE, .guard = PTX_NONE, .text = text};
                said = true;
            }
            stmts[n++] = f->stmts[i];
        }
    }
    f->stmts = stmts;
    f->nstmts = n;
    return 0;
}

// The first version with the pragma. It changes nothing of what the module means.
static void raise_version(struct ptx_module *m)
{
    if (m->version_major >= 9)
        return;
    m->version_major = 9;
    m->version_minor = 0;
}

static int mark(struct ptx_module *m, struct ptx_func *f, bool *marked)
{
    struct flow w = {.m = m, .f = f};
    struct arena arena;
    const struct cfg *cfg;
    const struct loops *loops;
    arena_init(&arena, 0);
    int err = flow_cfg(&w, &cfg);
    if (!err && !cfg->uncertain && cfg->nblocks > 1 && !has_frequencies(f)) {
        bool *hot = ARENA_ARRAY(&arena, bool, cfg->nblocks);
        uint32_t *work = ARENA_ARRAY(&arena, uint32_t, cfg->nblocks);
        err = hot && work ? flow_loops(&w, &loops) : -ENOMEM;
        *marked = !err && find_hot(m, cfg, hot, work) >= FEWEST;
        if (*marked) {
            err = insert(m, f, cfg, loops, hot);
            raise_version(m);
        }
    }
    flow_drop(&w);
    arena_free(&arena);
    return err == -E2BIG ? 0 : err;
}

int pass_cold_mark(struct ptx_module *m, struct ptx_func *const *functions, size_t n, bool *marked)
{
    int err = 0;
    bool old = m->version_major < OLDEST;
    *marked = false;
    for (size_t i = 0; i < n && !err && !old; i++) {
        bool this_one = false;
        err = mark(m, functions[i], &this_one);
        *marked |= this_one && !i;
    }
    return err;
}
