// SPDX-License-Identifier: MIT
// Processes one register at a time: walks from each block that reads it before writing it, against the edges,
// up to the blocks that write it. Every step adds an element to the result, so there is nothing to iterate. A
// first pass over all registers counts, a second one fills the lists; registers in ascending order make
// ascending lists.
#include "flow/live.h"

#include <errno.h>

#include "base/mem.h"
#include "flow/build.h"

struct input {
    const struct cfg *c;
    const struct regs *r;
    size_t limit;
};

struct by_reg {
    uint32_t *at;  // by register, and one past the last
    uint32_t *blocks;
};

// State of a block: `in` is where it starts, `out` where it ends.
struct block_state {
    uint32_t written, was_in, was_out;  // mark of the last register that it writes, live in, live out
    uint32_t nin, nout;                 // registers live in, out; in the second pass, index of the next one
};

struct flood {
    const struct cfg *c;
    struct live *l;
    struct by_reg reads;   // blocks that read a register before they write it
    struct by_reg writes;  // blocks that write the whole of it
    bool filling;
    uint32_t mark;               // of the current register
    struct block_state *states;  // by block
    uint32_t *stack, depth;
    uint64_t total, most;
};

// Collects, once each, the pairs of a block and a register that it reads before writing it, and that it
// writes.
struct summary {
    uint32_t *read_in, *written_in;  // by register: the last block + 1
    struct by_reg *reads, *writes;
    bool filling;
};

static void add(struct summary *s, struct by_reg *to, uint32_t *latest, uint32_t reg, uint32_t block)
{
    if (latest[reg] == block + 1)
        return;
    latest[reg] = block + 1;
    if (s->filling)
        to->blocks[to->at[reg]++] = block;
    else
        to->at[reg + 1]++;
}

static void summarise(struct summary *s, const struct cfg *c, const struct regs *r)
{
    memset(s->read_in, 0, r->n * sizeof *s->read_in);
    memset(s->written_in, 0, r->n * sizeof *s->written_in);
    for (uint32_t b = 0; b < c->nblocks; b++) {
        uint32_t end = r->access_at[c->blocks[b].last];
        for (uint32_t stmt = c->blocks[b].first, i = r->access_at[stmt]; i < end; stmt++) {
            uint32_t first = i, last = r->access_at[stmt + 1];
            for (; i < last; i++)
                if (r->access[i].reads && s->written_in[r->access[i].reg] != b + 1)
                    add(s, s->reads, s->read_in, r->access[i].reg, b);
            for (i = first; i < last; i++)
                if (r->access[i].writes && !r->access[i].partial)
                    add(s, s->writes, s->written_in, r->access[i].reg, b);
        }
    }
}

// Allocates the lists. at[reg + 1] holds counts before; afterwards lists are filled through at[reg]++, which
// ends at the next list's start.
static void make_room(struct by_reg *x, uint32_t nregs, struct arena *scratch)
{
    for (uint32_t i = 0; i < nregs; i++)
        x->at[i + 1] += x->at[i];
    x->blocks = ARENA_ARRAY(scratch, uint32_t, (size_t)x->at[nregs] + 1);
}

static void shift_back(struct by_reg *x, uint32_t nregs)
{
    memmove(x->at + 1, x->at, nregs * sizeof *x->at);
    x->at[0] = 0;
}

static void find_blocks(struct flood *f, const struct cfg *c, const struct regs *r, struct arena *scratch)
{
    f->reads.at = ARENA_ARRAY(scratch, uint32_t, (size_t)r->n + 1);
    f->writes.at = ARENA_ARRAY(scratch, uint32_t, (size_t)r->n + 1);
    struct summary s = {
        .read_in = ARENA_ARRAY(scratch, uint32_t, (size_t)r->n + 1),
        .written_in = ARENA_ARRAY(scratch, uint32_t, (size_t)r->n + 1),
        .reads = &f->reads,
        .writes = &f->writes,
    };
    summarise(&s, c, r);
    make_room(&f->reads, r->n, scratch);
    make_room(&f->writes, r->n, scratch);
    s.filling = true;
    summarise(&s, c, r);
    shift_back(&f->reads, r->n);
    shift_back(&f->writes, r->n);
}

static void reach_start(struct flood *f, uint32_t reg, uint32_t block)
{
    struct block_state *at = &f->states[block];
    if (at->was_in == f->mark)
        return;
    at->was_in = f->mark;
    if (f->filling)
        f->l->in[at->nin] = reg;
    at->nin++;
    f->total++;
    f->stack[f->depth++] = block;
}

static void reach_end(struct flood *f, uint32_t reg, uint32_t block)
{
    struct block_state *at = &f->states[block];
    if (at->was_out == f->mark)
        return;
    at->was_out = f->mark;
    if (f->filling)
        f->l->out[at->nout] = reg;
    at->nout++;
    f->total++;
    if (at->written != f->mark)
        reach_start(f, reg, block);
}

static int flood_reg(struct flood *f, uint32_t reg, bool at_end)
{
    f->mark++;
    for (uint32_t i = f->writes.at[reg]; i < f->writes.at[reg + 1]; i++)
        f->states[f->writes.blocks[i]].written = f->mark;
    for (uint32_t i = f->reads.at[reg]; i < f->reads.at[reg + 1]; i++)
        reach_start(f, reg, f->reads.blocks[i]);
    if (at_end)
        reach_end(f, reg, f->c->nblocks - 1);
    while (f->depth) {
        struct graph_nodes from = graph_pred(f->c->graph, f->stack[--f->depth]);
        for (uint32_t i = 0; i < from.n; i++)
            reach_end(f, reg, from.at[i]);
        if (f->total > f->most)
            return -E2BIG;
    }
    return 0;
}

static int flood_all(struct flood *f, const struct regs *r)
{
    uint32_t next = 0;
    f->total = 0;
    for (uint32_t reg = 0; reg < r->n; reg++) {
        bool returned = next < r->nreturned && r->returned[next] == reg;
        next += returned;
        if (f->reads.at[reg] == f->reads.at[reg + 1] && !returned)
            continue;
        int err = flood_reg(f, reg, returned && f->c->falls_off);
        if (err)
            return err;
    }
    return 0;
}

// Turns the counts into lists that the second pass fills.
static void lay_out(struct flood *f, struct arena *keep)
{
    struct live *l = f->l;
    uint32_t n = f->c->nblocks;
    l->in_at = ARENA_ARRAY(keep, uint32_t, (size_t)n + 1);
    l->out_at = ARENA_ARRAY(keep, uint32_t, (size_t)n + 1);
    for (uint32_t b = 0; b < n; b++) {
        l->in_at[b + 1] = l->in_at[b] + f->states[b].nin;
        l->out_at[b + 1] = l->out_at[b] + f->states[b].nout;
        f->states[b].nin = l->in_at[b];
        f->states[b].nout = l->out_at[b];
    }
    l->in = ARENA_ARRAY(keep, uint32_t, (size_t)l->in_at[n] + 1);
    l->out = ARENA_ARRAY(keep, uint32_t, (size_t)l->out_at[n] + 1);
    f->filling = true;
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    const struct input *in = input;
    size_t most = (in->limit ? in->limit : BUILD_LIMIT) / sizeof(uint32_t);
    struct flood f = {
        .c = in->c,
        .l = result,
        .states = ARENA_ARRAY(scratch, struct block_state, in->c->nblocks),
        .stack = ARENA_ARRAY(scratch, uint32_t, in->c->nblocks),
        .most = most < UINT32_MAX ? most : UINT32_MAX - 1,
    };
    find_blocks(&f, in->c, in->r, scratch);
    int err = flood_all(&f, in->r);
    if (err)
        return err;
    lay_out(&f, keep);
    return flood_all(&f, in->r);
}

int live_build(const struct cfg *c, const struct regs *r, size_t limit, struct live **out)
{
    struct live *l = mem_zalloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    struct input in = {c, r, limit};
    l->regs = r;
    l->cfg = c;
    int err = build_run(fill, l, &in, &l->arena);
    if (err) {
        mem_free(l);
        return err;
    }
    *out = l;
    return 0;
}

void live_free(struct live *l)
{
    if (!l)
        return;
    arena_free(&l->arena);
    mem_free(l);
}

bool live_list_has(struct live_list list, uint32_t reg)
{
    while (list.n) {
        uint32_t half = list.n / 2;
        if (list.at[half] == reg)
            return true;
        if (list.at[half] < reg) {
            list.at += half + 1;
            list.n -= half + 1;
        } else {
            list.n = half;
        }
    }
    return false;
}

static bool ascends(struct live_list list, uint32_t nregs)
{
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i] >= nregs || (i && list.at[i - 1] >= list.at[i]))
            return false;
    return true;
}

// Checks that lists ascend, and that registers live where a block starts are live where each of its
// predecessors ends.
bool live_valid(const struct live *l)
{
    for (uint32_t b = 0; b < l->cfg->nblocks; b++) {
        struct live_list in = live_in(l, b);
        struct graph_nodes from = graph_pred(l->cfg->graph, b);
        if (!ascends(in, l->regs->n) || !ascends(live_out(l, b), l->regs->n))
            return false;
        for (uint32_t i = 0; i < in.n; i++)
            for (uint32_t j = 0; j < from.n; j++)
                if (!live_list_has(live_out(l, from.at[j]), in.at[i]))
                    return false;
    }
    return true;
}

int live_walk_init(struct live_walk *w, const struct live *l)
{
    *w = (struct live_walk){.live = l};
    w->item = mem_zalloc(l->regs->n, sizeof *w->item);
    w->place = mem_zalloc(l->regs->n, sizeof *w->place);
    if (w->item && w->place)
        return 0;
    live_walk_free(w);
    return -ENOMEM;
}

void live_walk_free(struct live_walk *w)
{
    mem_free(w->item);
    mem_free(w->place);
    *w = (struct live_walk){0};
}

static void insert(struct live_walk *w, uint32_t reg)
{
    if (live_walk_has(w, reg))
        return;
    w->place[reg] = w->n;
    w->item[w->n++] = reg;
}

static void drop(struct live_walk *w, uint32_t reg)
{
    if (!live_walk_has(w, reg))
        return;
    uint32_t moved = w->item[--w->n];
    w->item[w->place[reg]] = moved;
    w->place[moved] = w->place[reg];
}

void live_walk_block(struct live_walk *w, uint32_t block)
{
    struct live_list out = live_out(w->live, block);
    w->n = 0;
    w->stmt = w->live->cfg->blocks[block].last;
    for (uint32_t i = 0; i < out.n; i++)
        insert(w, out.at[i]);
}

void live_walk_back(struct live_walk *w)
{
    struct regs_list list = regs_at(w->live->regs, --w->stmt);
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].writes && !list.at[i].partial)
            drop(w, list.at[i].reg);
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].reads)
            insert(w, list.at[i].reg);
}
