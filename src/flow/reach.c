// SPDX-License-Identifier: MIT
// Processes one register at a time. One walk over the statements resolves reads after a write in their own
// block. For the others: if one block writes the register and dominates all blocks with an unresolved read,
// its value is the result; this is the case nearly always. Otherwise the blocks from which such a read can be
// reached without a write, its region, get a value each in reverse postorder, with a JOIN where values meet
// or where one is not known yet; finally JOINs of a value with itself are removed.
#include "flow/reach.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "flow/build.h"

// Flag in the number of a JOIN that is a draft: not stored yet, perhaps to be removed.
#define DRAFT 0x80000000u

struct input {
    const struct cfg *c;
    const struct dom *d;
    const struct regs *r;
    size_t limit;
};

// The last write of a register in a block.
struct write {
    uint32_t block, value, next;
};

struct draft {
    uint32_t block;
    uint32_t first, n;  // inputs[first .. first + n)
    uint32_t same;      // itself, or the value that replaces it
    uint32_t kept;      // its number among the values
};

struct solver {
    const struct cfg *c;
    const struct graph *g;
    const struct dom *d;
    const struct regs *regs;
    struct reach *r;
    // by register
    uint32_t *first_write, *first_wait;
    struct write *writes;
    uint32_t nwrites;
    uint32_t *next_wait, *wait_block;  // by access: reads unresolved at their block's start
    // by block, for the current register
    uint32_t mark;
    uint32_t *written, *value_out;   // written[b] == mark: value_out[b] is the value after b
    uint32_t *in_region, *value_in;  // in_region[b] == mark: value_in[b] is the value before b
    uint32_t *region, nregion;       // ranks of its blocks
    uint64_t *bits;                  // by rank; all clear between two registers
    uint32_t entry;                  // the ENTRY value, REACH_NONE until it is needed
    struct draft *drafts;
    uint32_t ndrafts, *inputs, ninputs;
    uint64_t work, most;
};

// --- within a block ----------------------------------------------------------------------------------------

static int add_value(struct reach *r, struct reach_value v, uint32_t *number)
{
    if (r->value.len >= DRAFT - 1)
        return -E2BIG;
    *number = (uint32_t)r->value.len;
    return vec_push(&r->value, v);
}

static int number_defs(struct solver *s)
{
    struct reach *r = s->r;
    for (uint32_t stmt = 0; stmt < s->regs->nstmts; stmt++) {
        for (uint32_t a = s->regs->access_at[stmt]; a < s->regs->access_at[stmt + 1]; a++) {
            const struct regs_access *at = &s->regs->access[a];
            r->read[a] = r->written[a] = REACH_NONE;
            if (!at->writes)
                continue;
            struct reach_value v = {at->reg, stmt, REACH_NONE, REACH_DEF, at->partial};
            int err = add_value(r, v, &r->written[a]);
            if (err)
                return err;
        }
    }
    r->ndefs = (uint32_t)r->value.len;
    return 0;
}

static bool written_here(const struct solver *s, uint32_t reg, uint32_t block)
{
    uint32_t w = s->first_write[reg];
    return w != REACH_NONE && s->writes[w].block == block;
}

static void settle(struct solver *s, uint32_t access, uint32_t value)
{
    struct reach *r = s->r;
    r->read[access] = value;
    if (s->regs->access[access].partial)
        r->value.items[r->written[access]].input = value;
}

static void walk_stmt(struct solver *s, uint32_t block, uint32_t stmt)
{
    uint32_t first = s->regs->access_at[stmt], last = s->regs->access_at[stmt + 1];
    for (uint32_t a = first; a < last; a++) {
        const struct regs_access *at = &s->regs->access[a];
        if (!at->reads && !at->partial)
            continue;
        if (written_here(s, at->reg, block)) {
            settle(s, a, s->writes[s->first_write[at->reg]].value);
        } else {
            s->wait_block[a] = block;
            s->next_wait[a] = s->first_wait[at->reg];
            s->first_wait[at->reg] = a;
        }
    }
    for (uint32_t a = first; a < last; a++) {
        const struct regs_access *at = &s->regs->access[a];
        if (!at->writes)
            continue;
        if (!written_here(s, at->reg, block)) {
            s->writes[s->nwrites] = (struct write){.block = block, .next = s->first_write[at->reg]};
            s->first_write[at->reg] = s->nwrites++;
        }
        s->writes[s->first_write[at->reg]].value = s->r->written[a];
    }
}

// --- between blocks ----------------------------------------------------------------------------------------

static int entry_value(struct solver *s, uint32_t reg, uint32_t *value)
{
    int err = 0;
    if (s->entry == REACH_NONE)
        err = add_value(s->r, (struct reach_value){reg, 0, REACH_NONE, REACH_ENTRY, false}, &s->entry);
    *value = s->entry;
    return err;
}

// Resolves all reads of a register if one block writes it and dominates them, or if none writes it; *done
// says whether.
static int try_one_source(struct solver *s, uint32_t reg, bool *done)
{
    uint32_t w = s->first_write[reg], value;
    *done = false;
    if (w == REACH_NONE) {
        int err = entry_value(s, reg, &value);
        if (err)
            return err;
    } else {
        if (s->writes[w].next != REACH_NONE)
            return 0;
        for (uint32_t a = s->first_wait[reg]; a != REACH_NONE; a = s->next_wait[a])
            if (!dom_strictly(s->d, s->writes[w].block, s->wait_block[a]))
                return 0;
        value = s->writes[w].value;
    }
    for (uint32_t a = s->first_wait[reg]; a != REACH_NONE; a = s->next_wait[a])
        settle(s, a, value);
    *done = true;
    return 0;
}

static void add_to_region(struct solver *s, uint32_t block)
{
    if (s->in_region[block] == s->mark)
        return;
    s->in_region[block] = s->mark;
    s->region[s->nregion++] = s->g->rank[block];
}

static int by_rank(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Sorts the region through a bit per block, unless it is a few blocks far apart.
static void sort_region(struct solver *s)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < s->nregion; i++) {
        least = s->region[i] < least ? s->region[i] : least;
        most = s->region[i] > most ? s->region[i] : most;
    }
    if ((most - least) / 64 > 16 * s->nregion) {
        qsort(s->region, s->nregion, sizeof *s->region, by_rank);
        return;
    }
    for (uint32_t i = 0; i < s->nregion; i++)
        s->bits[s->region[i] / 64] |= (uint64_t)1 << s->region[i] % 64;
    s->nregion = 0;
    for (uint32_t w = least / 64; w <= most / 64; w++) {
        for (; s->bits[w]; s->bits[w] &= s->bits[w] - 1)
            s->region[s->nregion++] = w * 64 + (uint32_t)__builtin_ctzll(s->bits[w]);
    }
}

static int find_region(struct solver *s, uint32_t reg)
{
    s->mark++;
    s->nregion = 0;
    for (uint32_t w = s->first_write[reg]; w != REACH_NONE; w = s->writes[w].next) {
        s->written[s->writes[w].block] = s->mark;
        s->value_out[s->writes[w].block] = s->writes[w].value;
    }
    for (uint32_t a = s->first_wait[reg]; a != REACH_NONE; a = s->next_wait[a])
        add_to_region(s, s->wait_block[a]);
    for (uint32_t i = 0; i < s->nregion; i++) {
        struct graph_nodes from = graph_pred(s->g, s->g->order[s->region[i]]);
        for (uint32_t j = 0; j < from.n; j++)
            if (s->written[from.at[j]] != s->mark && graph_reached(s->g, from.at[j]))
                add_to_region(s, from.at[j]);
        s->work += from.n + 1;
        if (s->work > s->most)
            return -E2BIG;
    }
    sort_region(s);
    return 0;
}

// Returns the register's value at the end of a predecessor.
static uint32_t value_from(const struct solver *s, uint32_t block)
{
    if (!graph_reached(s->g, block))
        return REACH_NONE;
    return s->written[block] == s->mark ? s->value_out[block] : s->value_in[block];
}

// Returns the value at a block's start if all predecessors agree on it and are known, else REACH_NONE. Blocks
// that come earlier in the region have their value.
static uint32_t only_value(const struct solver *s, uint32_t block)
{
    struct graph_nodes from = graph_pred(s->g, block);
    uint32_t only = block == s->g->entry ? s->entry : REACH_NONE;
    for (uint32_t i = 0; i < from.n; i++) {
        uint32_t p = from.at[i];
        if (!graph_reached(s->g, p))
            continue;
        if (s->written[p] != s->mark && s->g->rank[p] >= s->g->rank[block])
            return REACH_NONE;
        uint32_t value = value_from(s, p);
        if (only != REACH_NONE && only != value)
            return REACH_NONE;
        only = value;
    }
    return only;
}

static int draft_values(struct solver *s, uint32_t reg)
{
    s->ndrafts = s->ninputs = 0;
    for (uint32_t i = 0; i < s->nregion; i++) {
        uint32_t block = s->g->order[s->region[i]], unused;
        int err = block == s->g->entry ? entry_value(s, reg, &unused) : 0;
        if (err)
            return err;
        s->value_in[block] = only_value(s, block);
        if (s->value_in[block] != REACH_NONE)
            continue;
        s->value_in[block] = s->ndrafts | DRAFT;
        s->drafts[s->ndrafts] = (struct draft){.block = block, .same = s->ndrafts | DRAFT};
        s->ndrafts++;
    }
    for (uint32_t i = 0; i < s->ndrafts; i++) {
        struct draft *d = &s->drafts[i];
        struct graph_nodes from = graph_pred(s->g, d->block);
        d->first = s->ninputs;
        for (uint32_t j = 0; j < from.n; j++)
            s->inputs[s->ninputs++] = value_from(s, from.at[j]);
        if (d->block == s->g->entry)
            s->inputs[s->ninputs++] = s->entry;
        d->n = s->ninputs - d->first;
    }
    return 0;
}

static bool is_draft(uint32_t value)
{
    return value != REACH_NONE && (value & DRAFT);
}

// Returns the value that finally replaces a value; halves the path to it.
static uint32_t final(struct solver *s, uint32_t value)
{
    while (is_draft(value)) {
        struct draft *d = &s->drafts[value & ~DRAFT];
        if (d->same == value)
            break;
        if (is_draft(d->same))
            d->same = s->drafts[d->same & ~DRAFT].same;
        value = d->same;
    }
    return value;
}

static bool is_trivial(struct solver *s, const struct draft *d, uint32_t self, uint32_t *same)
{
    *same = REACH_NONE;
    for (uint32_t i = d->first; i < d->first + d->n; i++) {
        uint32_t value = final(s, s->inputs[i]);
        s->work++;
        if (value == REACH_NONE || value == self || value == *same)
            continue;
        if (*same != REACH_NONE)
            return false;
        *same = value;
    }
    return true;
}

// Removes JOINs of a value with itself. Inner loops come after outer ones and must be processed first.
static int drop_trivial(struct solver *s)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = s->ndrafts; i-- > 0;) {
            uint32_t same;
            if (s->drafts[i].same != (i | DRAFT) || !is_trivial(s, &s->drafts[i], i | DRAFT, &same))
                continue;
            s->drafts[i].same = same;
            changed = true;
        }
        if (s->work > s->most)
            return -E2BIG;
    }
    return 0;
}

static uint32_t kept(struct solver *s, uint32_t value)
{
    value = final(s, value);
    return is_draft(value) ? s->drafts[value & ~DRAFT].kept : value;
}

static int keep_drafts(struct solver *s, uint32_t reg)
{
    for (uint32_t i = 0; i < s->ndrafts; i++) {
        struct draft *d = &s->drafts[i];
        if (d->same != (i | DRAFT))
            continue;
        struct reach_value v = {reg, d->block, (uint32_t)s->r->input.len, REACH_JOIN, false};
        int err = add_value(s->r, v, &d->kept);
        if (!err && vec_reserve(&s->r->input, d->n))
            err = -ENOMEM;
        if (err)
            return err;
        s->r->input.len += d->n;
        if (s->r->input.len > s->most)
            return -E2BIG;
    }
    for (uint32_t i = 0; i < s->ndrafts; i++) {
        const struct draft *d = &s->drafts[i];
        for (uint32_t j = 0; d->same == (i | DRAFT) && j < d->n; j++)
            s->r->input.items[s->r->value.items[d->kept].input + j] = kept(s, s->inputs[d->first + j]);
    }
    return 0;
}

static int solve_reg(struct solver *s, uint32_t reg)
{
    bool done;
    s->entry = REACH_NONE;
    int err = try_one_source(s, reg, &done);
    if (err || done)
        return err;
    err = find_region(s, reg);
    err = err ? err : draft_values(s, reg);
    err = err ? err : drop_trivial(s);
    err = err ? err : keep_drafts(s, reg);
    if (err)
        return err;
    for (uint32_t a = s->first_wait[reg]; a != REACH_NONE; a = s->next_wait[a])
        settle(s, a, kept(s, s->value_in[s->wait_block[a]]));
    return 0;
}

static int solve(struct solver *s)
{
    int err = number_defs(s);
    if (err)
        return err;
    for (uint32_t reg = 0; reg < s->regs->n; reg++)
        s->first_write[reg] = s->first_wait[reg] = REACH_NONE;
    for (uint32_t b = 0; b < s->c->nblocks; b++)
        for (uint32_t i = s->c->blocks[b].first; graph_reached(s->g, b) && i < s->c->blocks[b].last; i++)
            walk_stmt(s, b, i);
    for (uint32_t reg = 0; !err && reg < s->regs->n; reg++)
        if (s->first_wait[reg] != REACH_NONE)
            err = solve_reg(s, reg);
    return err;
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    const struct input *in = input;
    struct solver s = {.c = in->c, .g = in->c->graph, .d = in->d, .regs = in->r, .r = result};
    size_t limit = in->limit ? in->limit : BUILD_LIMIT;
    uint32_t nregs = in->r->n, nblocks = in->c->nblocks, naccess = in->r->access_at[in->r->nstmts];
    s.most = limit / sizeof *s.inputs < DRAFT ? limit / sizeof *s.inputs : DRAFT;
    if ((uint64_t)naccess * 2 > s.most)
        return -E2BIG;
    s.r->read = ARENA_ARRAY(keep, uint32_t, (size_t)naccess + 1);
    s.r->written = ARENA_ARRAY(keep, uint32_t, (size_t)naccess + 1);
    s.first_write = ARENA_ARRAY(scratch, uint32_t, (size_t)nregs + 1);
    s.first_wait = ARENA_ARRAY(scratch, uint32_t, (size_t)nregs + 1);
    s.writes = ARENA_ARRAY(scratch, struct write, (size_t)naccess + 1);
    s.next_wait = ARENA_ARRAY(scratch, uint32_t, (size_t)naccess + 1);
    s.wait_block = ARENA_ARRAY(scratch, uint32_t, (size_t)naccess + 1);
    s.written = ARENA_ARRAY(scratch, uint32_t, nblocks);
    s.value_out = ARENA_ARRAY(scratch, uint32_t, nblocks);
    s.in_region = ARENA_ARRAY(scratch, uint32_t, nblocks);
    s.value_in = ARENA_ARRAY(scratch, uint32_t, nblocks);
    s.region = ARENA_ARRAY(scratch, uint32_t, nblocks);
    s.bits = ARENA_ARRAY(scratch, uint64_t, nblocks / 64 + 1);
    s.drafts = ARENA_ARRAY(scratch, struct draft, nblocks);
    s.inputs = ARENA_ARRAY(scratch, uint32_t, (size_t)s.g->nedges + 1);
    return solve(&s);
}

int reach_build(const struct cfg *c, const struct dom *d, const struct regs *r, size_t limit,
                struct reach **out)
{
    struct reach *reach = mem_zalloc(1, sizeof *reach);
    if (!reach)
        return -ENOMEM;
    struct input in = {c, d, r, limit};
    reach->cfg = c;
    reach->regs = r;
    int err = build_run(fill, reach, &in, &reach->arena);
    if (err) {
        reach_free(reach);
        return err;
    }
    *out = reach;
    return 0;
}

void reach_free(struct reach *r)
{
    if (!r)
        return;
    arena_free(&r->arena);
    vec_free(&r->value);
    vec_free(&r->input);
    mem_free(r);
}

// --- answers -----------------------------------------------------------------------------------------------

static uint32_t access_of(const struct reach *r, uint32_t stmt, uint32_t reg)
{
    uint32_t a = r->regs->access_at[stmt], last = r->regs->access_at[stmt + 1];
    while (a < last && r->regs->access[a].reg != reg)
        a++;
    return a < last ? a : REACH_NONE;
}

uint32_t reach_read(const struct reach *r, uint32_t stmt, uint32_t reg)
{
    uint32_t a = access_of(r, stmt, reg);
    return a != REACH_NONE && r->regs->access[a].reads ? r->read[a] : REACH_NONE;
}

struct reach_list reach_inputs(const struct reach *r, uint32_t value)
{
    const struct reach_value *v = &r->value.items[value];
    if (v->kind == REACH_JOIN) {
        uint32_t entered = v->place == r->cfg->graph->entry;
        uint32_t n = graph_pred(r->cfg->graph, v->place).n + entered;
        return (struct reach_list){r->input.items + v->input, n};
    }
    bool partial = v->partial && v->input != REACH_NONE;
    return (struct reach_list){&v->input, partial};
}

static int visit(struct reach_set *set, uint32_t value)
{
    if (value == REACH_NONE || set->mark[value] == set->clock)
        return 0;
    set->mark[value] = set->clock;
    return vec_push(&set->stack, value);
}

static int prepare(const struct reach *r, struct reach_set *set)
{
    set->items.len = set->stack.len = 0;
    if (set->nmarks < r->value.len || set->clock == UINT32_MAX) {
        mem_free(set->mark);
        set->nmarks = set->clock = 0;
        set->mark = mem_zalloc(r->value.len, sizeof *set->mark);
        if (!set->mark)
            return -ENOMEM;
        set->nmarks = (uint32_t)r->value.len;
    }
    set->clock++;
    return 0;
}

int reach_sources(const struct reach *r, uint32_t value, struct reach_set *set)
{
    int err = prepare(r, set);
    err = err ? err : visit(set, value);
    while (!err && set->stack.len) {
        uint32_t v = set->stack.items[--set->stack.len];
        struct reach_list inputs = reach_inputs(r, v);
        if (r->value.items[v].kind != REACH_JOIN)
            err = vec_push(&set->items, v);
        for (uint32_t i = 0; !err && i < inputs.n; i++)
            err = visit(set, inputs.at[i]);
    }
    if (!err && set->items.len)
        qsort(set->items.items, set->items.len, sizeof *set->items.items, by_rank);
    return err;
}

void reach_set_free(struct reach_set *set)
{
    vec_free(&set->items);
    vec_free(&set->stack);
    mem_free(set->mark);
    *set = (struct reach_set){0};
}

static bool value_valid(const struct reach *r, uint32_t v)
{
    const struct reach_value *at = &r->value.items[v];
    struct reach_list inputs = reach_inputs(r, v);
    if ((at->kind == REACH_DEF) != (v < r->ndefs) || at->reg >= r->regs->n || (at->partial && v >= r->ndefs))
        return false;
    uint32_t other = REACH_NONE;
    bool differ = false;
    for (uint32_t i = 0; i < inputs.n; i++) {
        if (inputs.at[i] == REACH_NONE || inputs.at[i] == v)
            continue;
        if (inputs.at[i] >= r->value.len || r->value.items[inputs.at[i]].reg != at->reg)
            return false;
        differ |= other != REACH_NONE && other != inputs.at[i];
        other = inputs.at[i];
    }
    return at->kind != REACH_JOIN || differ;
}

// Checks that values have inputs of their own register, JOINs at least two, and that every read of a reached
// statement has a value.
bool reach_valid(const struct reach *r)
{
    const struct regs *regs = r->regs;
    for (uint32_t v = 0; v < r->value.len; v++)
        if (!value_valid(r, v))
            return false;
    for (uint32_t stmt = 0; stmt < regs->nstmts; stmt++) {
        bool reached = graph_reached(r->cfg->graph, r->cfg->block_of[stmt]);
        for (uint32_t a = regs->access_at[stmt]; a < regs->access_at[stmt + 1]; a++) {
            const struct regs_access *at = &regs->access[a];
            bool needs = reached && (at->reads || at->partial);
            if (needs != (r->read[a] != REACH_NONE) || at->writes != (r->written[a] != REACH_NONE))
                return false;
            if (needs && r->value.items[r->read[a]].reg != at->reg)
                return false;
        }
    }
    return true;
}
