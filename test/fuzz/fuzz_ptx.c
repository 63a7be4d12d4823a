// SPDX-License-Identifier: MIT
// Any bytes as PTX: what is parsed must print to a text that parses, verifies and prints alike. On the way
// every query of a module is made, and small functions go through every analysis.
//
//   make BUILD=build/asan CC=clang OPT=-O1 SAN=address,undefined,fuzzer-no-link build/asan/fuzz/fuzz_ptx
//   build/asan/fuzz/fuzz_ptx -dict=test/fuzz/ptx.dict NEW-CORPUS test/fuzz/corpus/ptx
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "flow/cfg.h"
#include "flow/dom.h"
#include "flow/live.h"
#include "flow/loops.h"
#include "flow/reach.h"
#include "ptx/ptx.h"
#include "ptx_mutate.h"

enum { MOST_STMTS = 300, MOST_MEMORY = 32 << 20, MOST_FLOW = 4 << 20 };

static volatile uint64_t consumed;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void emit_nothing(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    if (d->source.text.ptr)
        consumed += diag_locate(d->source.text, d->offset).column;
    consumed += strlen(d->source.name) + strlen(d->message);
}

// --- questions --------------------------------------------------------------------------------------------

struct asker {
    const struct ptx_module *m;
    const struct ptx_func *f;
};

static void see_register(void *ctx, struct ptx_access access)
{
    const struct asker *a = ctx;
    const struct ptx_var *var = ptx_reg_var(a->f, access.reg);
    uint32_t count = var->range ? var->range : 1;
    require(access.reg >= var->first_reg && access.reg - var->first_reg < count);
    require(access.reads || access.writes);
    consumed += var->type;
}

static void ask_memory(const struct ptx_func *f, const struct ptx_stmt *s)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(f, s, mem);
    require(n <= PTX_MAX_MEM);
    for (unsigned i = 0; i < n; i++) {
        require(mem[i].addr >= s->operands && mem[i].addr < s->operands + s->nslots);
        require(mem[i].extent != PTX_EXTENT_PLAIN || !mem[i].share || mem[i].share == mem[i].bytes);
        require(mem[i].extent != PTX_EXTENT_COUNTED || mem[i].size);
        require(mem[i].extent != PTX_EXTENT_TENSOR || mem[i].map);
        require(mem[i].extent != PTX_EXTENT_ROWS || (mem[i].lanes && mem[i].lanes <= 32));
        consumed += mem[i].bytes + mem[i].space;
    }
}

// The top-level operands with what is inside them are all slots, no more and no less.
static void ask_operands(const struct ptx_stmt *s)
{
    unsigned slots = 0, i = 0;
    for (const struct ptx_operand *o; (o = ptx_operand(s, i)); i++)
        slots += (unsigned)(ptx_next(o) - o);
    require(slots == s->nslots);
}

static void ask_init(const struct ptx_module *m, const struct ptx_var *var)
{
    struct str rest = var->init;
    struct ptx_init element;
    size_t before = rest.len;
    while (ptx_init_next(&rest, &element) > 0) {
        require(rest.len < before);
        before = rest.len;
        consumed += (uint64_t)element.value + element.mask + (ptx_find(m, element.text) != NULL);
    }
    consumed += ptx_var_size(var);
}

static void ask_func(const struct ptx_module *m, const struct ptx_func *f)
{
    struct asker a = {m, f};
    consumed += ptx_func_name(m, f).len;
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind == PTX_DECL)
            ask_init(m, s->var);
        if (s->kind == PTX_LABEL)
            require(ptx_sym(m, s->sym)->kind == PTX_SYM_LABEL && ptx_sym(m, s->sym)->stmt == i);
        if (s->kind != PTX_INSN)
            continue;
        ptx_stmt_regs(s, see_register, &a);
        ask_memory(f, s);
        ask_operands(s);
    }
}

// --- analyses ---------------------------------------------------------------------------------------------

static bool built(int err)
{
    require(err == 0 || err == -E2BIG || err == -ENOMEM);
    return err == 0;
}

static void analyse_registers(const struct cfg *c, const struct dom *d)
{
    struct regs *r = NULL;
    struct live *live = NULL;
    struct reach *reach = NULL;
    if (built(regs_build(c->func, MOST_FLOW, &r))) {
        require(regs_valid(r));
        if (built(live_build(c, r, MOST_FLOW, &live)))
            require(live_valid(live));
        if (built(reach_build(c, d, r, MOST_FLOW, &reach)))
            require(reach_valid(reach));
    }
    reach_free(reach);
    live_free(live);
    regs_free(r);
}

static void analyse(const struct ptx_module *m, const struct ptx_func *f)
{
    struct cfg *c;
    struct dom *d = NULL, *post = NULL;
    struct loops *loops = NULL;
    if (!built(cfg_build(m, f, &c)))
        return;
    require(cfg_valid(c));
    if (built(dom_build(c->graph, &d))) {
        require(dom_valid(d, c->graph));
        if (built(loops_build(c->graph, d, &loops)))
            require(loops_valid(loops, c->graph, d));
        analyse_registers(c, d);
    }
    built(dom_build_post(c->graph, c->exits, &post));
    loops_free(loops);
    dom_free(post);
    dom_free(d);
    cfg_free(c);
}

static void ask(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_item *item = &m->items[i];
        if (item->kind == PTX_ITEM_VAR)
            ask_init(m, item->var);
        if (item->kind != PTX_ITEM_FUNC)
            continue;
        ask_func(m, item->func);
        if (item->func->has_body && item->func->nstmts <= MOST_STMTS)
            analyse(m, item->func);
    }
}

// --- there and back ---------------------------------------------------------------------------------------

static struct ptx_module *parse(struct str text, struct diag_sink *sink)
{
    struct ptx_limits limits = {.memory = MOST_MEMORY};
    struct ptx_module *m;
    int err = ptx_parse("input", text, sink, &limits, &m);
    require(err == 0 || err == -EINVAL || err == -ENOMEM);
    require(err ? !m && sink->errors == 1 : m && sink->errors == 0);
    return m;
}

static struct str print(const struct ptx_module *m, struct out *to)
{
    require(out_to_memory(to) == 0);
    ptx_print(m, to);
    require(to->error == 0);
    return (struct str){to->buf, to->len};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct diag_sink sink = {.emit = emit_nothing}, sink2 = sink;
    struct ptx_module *m = parse((struct str){(const char *)bytes, len}, &sink);
    if (!m)
        return 0;
    unsigned wrong, wrong2;
    ptx_verify(m, &sink, &wrong);
    ask(m);
    struct out once, twice;
    struct str printed = print(m, &once);
    struct ptx_module *m2 = parse(printed, &sink2);
    require(m2 != NULL);
    ptx_verify(m2, &sink2, &wrong2);
    require(wrong == wrong2 && sink.errors == sink2.errors && sink.warnings == sink2.warnings);
    require(str_eq(printed, print(m2, &twice)));
    ptx_free(m2);
    ptx_free(m);
    out_close(&twice);
    out_close(&once);
    return 0;
}
