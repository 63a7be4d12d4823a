// SPDX-License-Identifier: MIT
#include "flow/dump.h"

#include <assert.h>
#include <errno.h>

#include "flow/flow.h"

enum { MOST_SOURCES = 16 };

struct view {
    const struct ptx_module *m;
    const struct ptx_func *f;
    struct out *to;
    struct flow flow;
    struct reach_set sources;
    int err;
};

static void put_reg(const struct view *v, uint32_t index)
{
    out_char(v->to, ' ');
    ptx_print_reg(v->m, v->f, v->flow.regs->reg[index], v->to);
}

static void put_number(const struct view *v, uint32_t number)
{
    out_char(v->to, ' ');
    out_u64(v->to, number);
}

static void put_blocks(const struct view *v, const char *what, struct graph_nodes list)
{
    out_cstr(v->to, what);
    for (uint32_t i = 0; i < list.n; i++)
        put_number(v, list.at[i]);
    if (!list.n)
        out_lit(v->to, " none");
}

// --- one per row of analyses.def: says what is known at a block or statement -------------------------------

static void note_cfg(struct view *v, uint32_t block, uint32_t stmt)
{
    (void)v, (void)block, (void)stmt;
}

static void put_idom(struct view *v, const char *what, const struct dom *d, uint32_t block)
{
    uint32_t up = d->idom[block];
    out_cstr(v->to, what);
    if (up == GRAPH_NONE)
        out_lit(v->to, " none");
    else if (up == v->flow.cfg->nblocks)
        out_lit(v->to, " the exit");
    else
        put_number(v, up);
}

static void note_dominators(struct view *v, uint32_t block, uint32_t stmt)
{
    if (stmt == PTX_NONE)
        put_idom(v, ", dominator", v->flow.dominators, block);
}

static void note_postdominators(struct view *v, uint32_t block, uint32_t stmt)
{
    if (stmt == PTX_NONE)
        put_idom(v, ", post-dominator", v->flow.postdominators, block);
}

static void note_loops(struct view *v, uint32_t block, uint32_t stmt)
{
    uint32_t inner = v->flow.loops->inner[block];
    if (stmt != PTX_NONE)
        return;
    if (inner != GRAPH_NONE) {
        const struct loop *l = &v->flow.loops->loops[inner];
        out_fmt(v->to, ", loop %u at depth %u", inner, l->depth);
        if (l->header == block)
            put_blocks(v, ", its header, latches",
                       (struct graph_nodes){v->flow.loops->latches + l->first_latch, l->nlatches});
    }
    if (v->flow.loops->region[block] != GRAPH_NONE)
        out_fmt(v->to, ", irreducible region %u", v->flow.loops->region[block]);
}

static void put_sources(struct view *v, uint32_t value)
{
    int err = reach_sources(v->flow.reaching, value, &v->sources);
    v->err = v->err ? v->err : err;
    for (size_t i = 0; !err && i < v->sources.items.len; i++) {
        uint32_t source = v->sources.items.items[i];
        if (i == MOST_SOURCES) {
            out_fmt(v->to, " and %zu more", v->sources.items.len - i);
            return;
        }
        if (v->flow.reaching->value.items[source].kind == REACH_ENTRY)
            out_lit(v->to, " entry");
        else
            out_fmt(v->to, " #%u", source);
    }
}

static void note_reaching(struct view *v, uint32_t block, uint32_t stmt)
{
    (void)block;
    if (stmt == PTX_NONE)
        return;
    uint32_t first = v->flow.regs->access_at[stmt], last = v->flow.regs->access_at[stmt + 1];
    const char *before = "\t// reads";
    for (uint32_t a = first; a < last; a++) {
        if (!v->flow.regs->access[a].reads)
            continue;
        out_cstr(v->to, before);
        before = ",";
        put_reg(v, v->flow.regs->access[a].reg);
        put_sources(v, v->flow.reaching->read[a]);
    }
    before = *before == ',' ? "; writes" : "\t// writes";
    for (uint32_t a = first; a < last; a++) {
        if (!v->flow.regs->access[a].writes)
            continue;
        out_cstr(v->to, before);
        before = ",";
        put_reg(v, v->flow.regs->access[a].reg);
        out_fmt(v->to, " #%u%s", v->flow.reaching->written[a],
                v->flow.regs->access[a].partial ? " in part" : "");
    }
    if (first != last)
        out_char(v->to, '\n');
}

static void put_root(struct view *v, struct roots_of of)
{
    out_fmt(v->to, " %s", roots_kind_names[of.kind]);
    if (of.kind == ROOTS_VARIABLE || of.kind == ROOTS_GENERIC)
        out_fmt(v->to, " " STR_FMT, STR_ARG(ptx_sym(v->m, of.id)->name));
    else if (of.kind == ROOTS_PARAM)
        out_fmt(v->to, " at %u", of.id);
    else if (of.kind == ROOTS_VALUE || of.kind == ROOTS_WEB)
        out_fmt(v->to, " #%u", of.id);
}

static bool has_root(enum ptx_space space, const struct ptx_operand *addr)
{
    switch (ptx_space_is(space)) {
    case PTX_SPACE_GENERIC:
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER:
    case PTX_SPACE_LOCAL:
    case PTX_SPACE_CONST: return true;
    case PTX_SPACE_PARAM: return addr->sub != PTX_BASE_SYM;
    default: return false;
    }
}

static void note_roots(struct view *v, uint32_t block, uint32_t stmt)
{
    (void)block;
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = stmt == PTX_NONE ? 0 : ptx_stmt_mem(v->f, &v->f->stmts[stmt], mem), shown = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!has_root((enum ptx_space)mem[i].space, mem[i].addr))
            continue;
        out_cstr(v->to, shown++ ? "," : "\t// root");
        put_root(v, roots_address(v->flow.roots, stmt, mem[i].addr));
    }
    if (shown)
        out_char(v->to, '\n');
}

static void put_live(struct view *v, const char *what, struct live_list list)
{
    out_cstr(v->to, what);
    for (uint32_t i = 0; i < list.n; i++)
        put_reg(v, list.at[i]);
    if (!list.n)
        out_lit(v->to, " none");
}

static void note_liveness(struct view *v, uint32_t block, uint32_t stmt)
{
    if (stmt != PTX_NONE)
        return;
    put_live(v, ", live in", live_in(v->flow.liveness, block));
    put_live(v, ", live out", live_out(v->flow.liveness, block));
}

// --- the table ---------------------------------------------------------------------------------------------

#define ANALYSIS(name, type, text)            \
    static int make_##name(struct flow *flow) \
    {                                         \
        return flow_##name(flow, NULL);       \
    }
#include "flow/analyses.def"

static const struct analysis {
    const char *name;
    int (*make)(struct flow *);
    void (*note)(struct view *, uint32_t block, uint32_t stmt);  // stmt PTX_NONE: the note of the block
} analyses[] = {
#define ANALYSIS(name, type, text) {#name, make_##name, note_##name},
#include "flow/analyses.def"
};

enum { COUNT = sizeof analyses / sizeof *analyses };

#define ANALYSIS(name, type, text) ", " #name
static const char names[] =
#include "flow/analyses.def"
    ;

const char *const flow_analysis_names = names + 2;

static const struct analysis *find(const char *name)
{
    for (unsigned i = 0; i < COUNT; i++)
        if (!strcmp(analyses[i].name, name))
            return &analyses[i];
    return NULL;
}

bool flow_analysis_known(const char *name)
{
    return find(name) != NULL;
}

static void free_view(struct view *v)
{
    reach_set_free(&v->sources);
    flow_drop(&v->flow);
}

static void put_block(struct view *v, const struct analysis *a, uint32_t block)
{
    out_fmt(v->to, "// block %u:", block);
    put_blocks(v, " pred", graph_pred(v->flow.cfg->graph, block));
    put_blocks(v, ", succ", graph_succ(v->flow.cfg->graph, block));
    if (v->flow.cfg->exits[block])
        out_lit(v->to, ", exits");
    if (!graph_reached(v->flow.cfg->graph, block))
        out_lit(v->to, ", never reached");
    a->note(v, block, PTX_NONE);
    out_char(v->to, '\n');
    for (uint32_t s = v->flow.cfg->blocks[block].first; s < v->flow.cfg->blocks[block].last; s++) {
        a->note(v, block, s);
        ptx_print_stmt(v->m, v->f, &v->f->stmts[s], v->to);
    }
}

int flow_dump(const char *analysis, const struct ptx_module *m, const struct ptx_func *f, struct out *to)
{
    const struct analysis *last = find(analysis);
    struct view v = {.m = m, .f = f, .to = to, .flow = {.m = m, .f = f}};
    assert(last);
    if (!f->has_body) {
        ptx_print_func(m, f, to);
        return 0;
    }
    v.err = last->make(&v.flow);
    if (v.err) {
        out_fmt(to, "// %s: %s\n", analysis, v.err == -E2BIG ? "the function is too large" : "out of memory");
        ptx_print_func(m, f, to);
    } else {
        ptx_print_func_head(m, f, to);
        if (v.flow.cfg->uncertain)
            out_lit(to, "// uncertain: there are instructions that are not known\n");
        for (uint32_t b = 0; b < v.flow.cfg->nblocks; b++)
            put_block(&v, last, b);
        out_lit(to, "}\n");
    }
    free_view(&v);
    return v.err;
}

int flow_dump_module(const char *analysis, const struct ptx_module *m, struct out *to)
{
    int err = 0;
    ptx_print_header(m, to);
    for (uint32_t i = 0; i < m->nitems && err != -ENOMEM && !to->error; i++) {
        if (m->items[i].kind == PTX_ITEM_FUNC) {
            int one = flow_dump(analysis, m, m->items[i].func, to);
            err = one ? one : err;
        } else {
            ptx_print_item(m, &m->items[i], to);
        }
    }
    return err;
}
