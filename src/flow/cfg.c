// SPDX-License-Identifier: MIT
#include "flow/cfg.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "flow/build.h"

struct input {
    const struct ptx_module *m;
    const struct ptx_func *f;
};

// How a statement passes control on.
struct ending {
    bool jumps;  // to the labels that it names
    bool exits;
    bool no_fall;  // control does not continue with the next statement
    bool unsure;   // may pass control on in ways that we do not know
};

// An iterator (next_target) over the labels that a statement names, itself or in a list.
struct targets {
    const struct input *in;
    const struct ptx_operand *at, *end;
    uint32_t next_in_list;
    bool bad_entry;  // a list has an entry that is no label of this function
};

static struct targets targets_of(const struct input *in, const struct ptx_stmt *s)
{
    if (s->kind != PTX_INSN || !s->nslots)
        return (struct targets){0};
    return (struct targets){in, s->operands, s->operands + s->nslots, 0, false};
}

// Returns the statement of a label, PTX_NONE if it is not a label of this function.
static uint32_t label_stmt(const struct input *in, const struct ptx_sym *sym)
{
    if (sym->kind != PTX_SYM_LABEL || sym->stmt >= in->f->nstmts)
        return PTX_NONE;
    const struct ptx_stmt *s = &in->f->stmts[sym->stmt];
    return s->kind == PTX_LABEL && ptx_sym(in->m, s->sym) == sym ? sym->stmt : PTX_NONE;
}

// Returns the statement of the next label, PTX_NONE after the last.
static uint32_t next_target(struct targets *t)
{
    for (; t->at < t->end; t->at++) {
        if (t->at->kind != PTX_SYM)
            continue;
        const struct ptx_sym *sym = ptx_sym(t->in->m, t->at->id);
        uint32_t label = label_stmt(t->in, sym);
        if (label != PTX_NONE) {
            t->at++;
            return label;
        }
        if (sym->kind != PTX_SYM_TARGETS || sym->targets->calls)
            continue;
        while (t->next_in_list < sym->targets->ntargets) {
            uint32_t to = label_stmt(t->in, ptx_sym(t->in->m, sym->targets->targets[t->next_in_list++]));
            if (to != PTX_NONE)
                return to;
            t->bad_entry = true;
        }
        t->next_in_list = 0;
    }
    return PTX_NONE;
}

static bool func_returns(const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->ndirectives; i++)
        if (str_eq(f->directives[i].name, STR(".noreturn")))
            return false;
    return true;
}

static bool proto_returns(const struct ptx_proto *proto)
{
    struct str all = proto->directives, word = STR(".noreturn");
    return !all.len || !memmem(all.ptr, all.len, word.ptr, word.len);
}

// Returns whether a call returns: the callee says so, or for a call through a register its prototype.
static bool call_returns(const struct input *in, const struct ptx_stmt *s)
{
    const struct ptx_operand *end = s->operands + s->nslots;
    for (const struct ptx_operand *o = s->operands; o < end; o = ptx_next(o)) {
        if (o->kind != PTX_SYM)
            continue;
        const struct ptx_sym *sym = ptx_sym_behind_alias(in->m, o->id);
        if (sym->kind == PTX_SYM_FUNC && !func_returns(sym->func))
            return false;
        if (sym->kind == PTX_SYM_PROTO && !proto_returns(sym->proto))
            return false;
    }
    return true;
}

static struct ending ending_of(const struct input *in, const struct ptx_stmt *s)
{
    bool always = s->guard == PTX_NONE;
    if (s->kind != PTX_INSN)
        return (struct ending){.unsure = s->kind == PTX_VERBATIM};
    struct targets t = targets_of(in, s);
    bool names_label = next_target(&t) != PTX_NONE;
    if (s->form->id == PTX_OP_UNKNOWN || s->form->odd)
        return (struct ending){.jumps = names_label, .unsure = true};
    switch (s->form->op->control) {
    case PTX_BRANCH:
    case PTX_SWITCH:
        return (struct ending){.jumps = true, .no_fall = always && names_label, .unsure = !names_label};
    case PTX_RETURN:
    case PTX_EXIT:
    case PTX_TRAP: return (struct ending){.exits = true, .no_fall = always};
    case PTX_CALL:
        if (!call_returns(in, s))
            return (struct ending){.exits = true, .no_fall = always};
        return (struct ending){0};
    default: return (struct ending){.unsure = names_label};
    }
}

// Sets starts[s] if a block starts at statement s, counts the edges, and sets c->uncertain if a statement is
// not understood.
static int find_starts(struct cfg *c, const struct input *in, bool *starts, size_t *nedges)
{
    const struct ptx_func *f = in->f;
    bool verbatim = false;
    starts[0] = true;
    for (uint32_t s = 0; s < f->nstmts; s++) {
        struct ending e = ending_of(in, &f->stmts[s]);
        struct targets t = targets_of(in, &f->stmts[s]);
        c->uncertain |= e.unsure;
        verbatim |= f->stmts[s].kind == PTX_VERBATIM;
        for (uint32_t to = next_target(&t); to != PTX_NONE; to = next_target(&t)) {
            starts[to] = true;
            if (++*nedges > CFG_MOST_EDGES)
                return -E2BIG;
        }
        c->uncertain |= t.bad_entry;
        if (e.jumps || e.exits)
            starts[s + 1] = true;
    }
    // The labels that a verbatim statement names are not known, so every label starts a block.
    for (uint32_t s = 0; verbatim && s < f->nstmts; s++)
        starts[s] |= f->stmts[s].kind == PTX_LABEL;
    return 0;
}

static void cut(struct cfg *c, const bool *starts, struct arena *keep)
{
    uint32_t nstmts = c->func->nstmts;
    c->nblocks = 1;
    for (uint32_t s = 1; s < nstmts; s++)
        c->nblocks += starts[s];
    c->blocks = ARENA_ARRAY(keep, struct cfg_block, c->nblocks);
    c->exits = ARENA_ARRAY(keep, bool, c->nblocks);
    c->block_of = ARENA_ARRAY(keep, uint32_t, (size_t)nstmts + 1);
    uint32_t b = 0;
    for (uint32_t s = 1; s < nstmts; s++) {
        if (starts[s]) {
            c->blocks[b].last = s;
            c->blocks[++b].first = s;
        }
        c->block_of[s] = b;
    }
    c->blocks[b].last = nstmts;
}

static size_t connect(struct cfg *c, const struct input *in, struct graph_edge *edges)
{
    size_t n = 0;
    for (uint32_t b = 0; b < c->nblocks; b++) {
        struct ending e = {0};
        if (c->blocks[b].last > c->blocks[b].first) {
            const struct ptx_stmt *s = &in->f->stmts[c->blocks[b].last - 1];
            struct targets t = targets_of(in, s);
            e = ending_of(in, s);
            for (uint32_t to = e.jumps ? next_target(&t) : PTX_NONE; to != PTX_NONE; to = next_target(&t))
                edges[n++] = (struct graph_edge){b, c->block_of[to]};
        }
        bool last = b == c->nblocks - 1;
        if (!e.no_fall && !last)
            edges[n++] = (struct graph_edge){b, b + 1};
        c->falls_off = !e.no_fall && last;
        c->exits[b] = e.exits || c->falls_off;
    }
    return n;
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    struct cfg *c = result;
    const struct input *in = input;
    bool *starts = ARENA_ARRAY(scratch, bool, (size_t)in->f->nstmts + 1);
    size_t nedges = 0;
    int err = find_starts(c, in, starts, &nedges);
    if (err)
        return err;
    cut(c, starts, keep);
    struct graph_edge *edges = ARENA_ARRAY(scratch, struct graph_edge, nedges + c->nblocks);
    nedges = connect(c, in, edges);
    return graph_build(c->nblocks, 0, edges, nedges, &c->graph);
}

int cfg_build(const struct ptx_module *m, const struct ptx_func *f, struct cfg **out)
{
    assert(f->has_body);
    struct cfg *c = mem_zalloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    struct input in = {m, f};
    c->func = f;
    int err = build_run(fill, c, &in, &c->arena);
    if (err) {
        mem_free(c);
        return err;
    }
    *out = c;
    return 0;
}

void cfg_free(struct cfg *c)
{
    if (!c)
        return;
    graph_free(c->graph);
    arena_free(&c->arena);
    mem_free(c);
}

bool cfg_valid(const struct cfg *c)
{
    uint32_t nstmts = c->func->nstmts, at = 0;
    if (c->graph->n != c->nblocks || c->graph->entry != 0)
        return false;
    for (uint32_t b = 0; b < c->nblocks; b++) {
        if (c->blocks[b].first != at || (c->blocks[b].last <= at && nstmts))
            return false;
        for (; at < c->blocks[b].last; at++)
            if (c->block_of[at] != b)
                return false;
        if (graph_succ(c->graph, b).n == 0 && !c->exits[b])
            return false;
    }
    return at == nstmts && graph_valid(c->graph);
}
