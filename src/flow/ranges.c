// SPDX-License-Identifier: MIT
// Builds the proof program of a function: marks the values that addresses and branches depend on, then
// emits the blocks in reverse postorder, each with its ways in, the values that meet there, and its
// statements.
#include "flow/ranges.h"

#include <errno.h>
#include <string.h>

#include "flow/build.h"
#include "flow/grid_words.h"
#include "flow/ranges_build.h"

// --- instructions ------------------------------------------------------------------------------------------

static bool may_share(uint8_t op)
{
    return op != PROOF_BLOCK && op != PROOF_OPAQUE && op != PROOF_BETWEEN && op != PROOF_CHANCE &&
           op != PROOF_LOOP && op != PROOF_ACCESS && op != PROOF_EXTENT && op != PROOF_MERGE &&
           op != PROOF_MEET && op != PROOF_MAPPED;
}

uint32_t ranges_emit(struct ranges_build *b, struct proof_insn i)
{
    uint32_t n = (uint32_t)b->insns.len, least = n > b->block_start + 24 ? n - 24 : b->block_start;
    for (uint32_t k = n; may_share(i.op) && k > least; k--)
        if (!memcmp(&b->insns.items[k - 1], &i, sizeof i))
            return k - 1;
    if (vec_push(&b->insns, i)) {
        b->failed = true;
        return 0;
    }
    return n;
}

uint32_t ranges_const(struct ranges_build *b, int64_t v)
{
    return ranges_emit(b, (struct proof_insn){.op = PROOF_CONST, .imm = v});
}

uint32_t ranges_extend(struct ranges_build *b, uint32_t a, unsigned bits, bool sign)
{
    return ranges_emit(b,
                       (struct proof_insn){.op = PROOF_EXTEND, .bits = (uint8_t)bits, .sign = sign, .a = a});
}

uint32_t ranges_opaque(struct ranges_build *b, uint32_t reg, uint8_t reason, const struct ptx_form *form)
{
    unsigned bits = 64;
    if (reg != REGS_NONE) {
        enum ptx_type type = (enum ptx_type)ptx_reg_var(b->f, b->regs->reg[reg])->type;
        if (type == PTX_PRED)
            return ranges_emit(b, (struct proof_insn){.op = PROOF_CHANCE});
        bits = ptx_type_bits(type);
    }
    uint32_t at = ranges_emit(
        b, (struct proof_insn){
               .op = PROOF_OPAQUE, .bits = (uint8_t)(bits > 64 ? 64 : bits), .sign = 1, .reason = reason});
    while (form && !b->failed && b->forms.len <= at)
        b->failed |= vec_push(&b->forms, NULL) != 0;
    if (form && !b->failed)
        b->forms.items[at] = form;
    return at;
}

uint32_t ranges_root(struct ranges_build *b, struct proof_root root, struct str name)
{
    for (uint32_t i = 0; i < b->roots.len; i++) {
        const struct proof_root *r = &b->roots.items[i];
        struct str known = {b->names.items + r->name, r->name_len};
        if (r->kind == root.kind && r->param == root.param && r->inside == root.inside &&
            (root.kind == PROOF_ROOT_PARAM || str_eq(known, name)))
            return i;
    }
    if (b->roots.len == PROOF_MOST_ROOTS)
        return PROOF_NONE;
    root.name = (uint32_t)b->names.len;
    root.name_len = (uint32_t)name.len;
    for (size_t i = 0; i < name.len; i++)
        b->failed |= vec_push(&b->names, name.ptr[i]) != 0;
    b->failed |= vec_push(&b->roots, root) != 0;
    return b->failed ? PROOF_NONE : (uint32_t)b->roots.len - 1;
}

// --- values ------------------------------------------------------------------------------------------------

uint32_t ranges_read(const struct ranges_build *b, uint32_t stmt, uint32_t reg)
{
    uint32_t index = regs_index(b->regs, reg);
    return index == REGS_NONE ? REACH_NONE : reach_read(b->reach, stmt, index);
}

bool ranges_is_pred(const struct ranges_build *b, uint32_t value)
{
    uint32_t reg = b->regs->reg[b->reach->value.items[value].reg];
    return ptx_reg_var(b->f, reg)->type == PTX_PRED;
}

void ranges_need(struct ranges_build *b, uint32_t value)
{
    if (value == REACH_NONE || b->needed[value])
        return;
    b->needed[value] = 1;
    b->failed |= vec_push(&b->todo, value) != 0;
}

uint32_t ranges_node_of(struct ranges_build *b, uint32_t value, void *ctx)
{
    const uint32_t *reg = ctx;
    if (value == REACH_NONE)
        return ranges_opaque(b, reg ? *reg : REGS_NONE, PROOF_WHY_UNDEFINED, NULL);
    if (b->node[value] != PROOF_NONE)
        return b->node[value];
    const struct reach_value *v = &b->reach->value.items[value];
    return ranges_opaque(b, v->reg, v->kind == REACH_ENTRY ? PROOF_WHY_UNDEFINED : PROOF_WHY_COMPLEX, NULL);
}

static void need_operands(struct ranges_build *b, uint32_t stmt)
{
    struct regs_list list = regs_at(b->regs, stmt);
    uint32_t first = b->regs->access_at[stmt];
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].reads || list.at[i].partial)
            ranges_need(b, b->reach->read[first + i]);
}

static bool is_header(const struct ranges_build *b, uint32_t block)
{
    uint32_t l = b->loops->inner[block];
    return l != GRAPH_NONE && b->loops->loops[l].header == block;
}

static void look_at(struct ranges_build *b, uint32_t value)
{
    const struct reach_value *v = &b->reach->value.items[value];
    if (v->kind == REACH_ENTRY)
        return;
    if (v->kind == REACH_DEF) {
        if (ranges_understood(&b->f->stmts[v->place]) || v->partial)
            need_operands(b, v->place);
        if (v->partial)
            ranges_need(b, v->input);
        return;
    }
    if (is_header(b, v->place)) {
        ranges_need_counter(b, value);
        return;
    }
    struct reach_list in = reach_inputs(b->reach, value);
    for (uint32_t i = 0; i < in.n; i++)
        ranges_need(b, in.at[i]);
}

// --- control -----------------------------------------------------------------------------------------------

// The instruction that ends a block, PTX_NONE if control just goes on.
static uint32_t terminator(const struct ranges_build *b, uint32_t block)
{
    for (uint32_t s = b->cfg->blocks[block].last; s > b->cfg->blocks[block].first; s--) {
        const struct ptx_stmt *stmt = &b->f->stmts[s - 1];
        if (stmt->kind != PTX_INSN)
            continue;
        unsigned control = stmt->form->op->control;
        bool ends = control == PTX_BRANCH || control == PTX_SWITCH || control == PTX_RETURN ||
                    control == PTX_EXIT || control == PTX_TRAP ||
                    (control == PTX_CALL && b->cfg->exits[block]);
        return ends ? s - 1 : PTX_NONE;
    }
    return PTX_NONE;
}

bool ranges_condition(const struct ranges_build *b, uint32_t u, uint32_t v, struct ranges_condition *out)
{
    uint32_t at = terminator(b, u);
    if (at == PTX_NONE || b->f->stmts[at].guard == PTX_NONE)
        return false;
    const struct ptx_stmt *s = &b->f->stmts[at];
    unsigned control = s->form->op->control;
    bool next = v == u + 1, jumped = false;
    if (control == PTX_BRANCH) {
        const struct ptx_operand *o = ptx_operand(s, 0);
        const struct ptx_sym *sym = o && o->kind == PTX_SYM ? ptx_sym(b->m, o->id) : NULL;
        if (!sym || sym->kind != PTX_SYM_LABEL)
            return false;
        jumped = b->cfg->block_of[sym->stmt] == v;
    } else if (control == PTX_SWITCH) {
        return false;
    }
    if (next == jumped)
        return false;
    *out = (struct ranges_condition){at, s->guard, jumped ? s->guard_negated : !s->guard_negated};
    return true;
}

static void need_control(struct ranges_build *b)
{
    for (uint32_t block = 0; block < b->cfg->nblocks; block++) {
        uint32_t at = terminator(b, block);
        if (at != PTX_NONE && b->f->stmts[at].guard != PTX_NONE && graph_reached(b->cfg->graph, block))
            ranges_need(b, ranges_read(b, at, b->f->stmts[at].guard));
    }
}

// --- accesses ----------------------------------------------------------------------------------------------

static bool has_row(const struct ptx_mem *mem)
{
    switch (ptx_space_is((enum ptx_space)mem->space)) {
    case PTX_SPACE_GENERIC:
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER:
    case PTX_SPACE_LOCAL:
    case PTX_SPACE_CONST:
        return (mem->reads || mem->writes) && !(mem->extent == PTX_EXTENT_PLAIN && !mem->bytes);
    default: return false;
    }
}

// Returns whether the proof has the access: the driver has chosen the addresses of a grid's words.
static bool is_listed(const struct ranges_build *b, uint32_t stmt, const struct ptx_mem *mem)
{
    return has_row(mem) && !grid_words_address(b->f, b->reach, stmt, mem->addr);
}

// The register that gives the size of an access: its number of bytes, or the stride of a tile. NULL if the
// instruction gives the size, or none can be found.
static const struct ptx_operand *size_operand(const struct ptx_mem *mem)
{
    const struct ptx_operand *o = mem->extent == PTX_EXTENT_COUNTED                              ? mem->size
                                  : mem->extent == PTX_EXTENT_TILE && mem->element_bits % 8 == 0 ? mem->stride
                                                                                                 : NULL;
    return o && !mem->bytes && o->kind == PTX_REG && o->sub == PTX_SEL_NONE && !o->negated ? o : NULL;
}

// The register of cp.async that says how many bytes are read, or NULL.
static const struct ptx_operand *copied_bytes(const struct ptx_mem *mem)
{
    const struct ptx_operand *o = mem->extent == PTX_EXTENT_COUNTED && mem->bytes ? mem->size : NULL;
    return o && o->kind == PTX_REG && o->sub == PTX_SEL_NONE ? o : NULL;
}

static void need_copy_condition(struct ranges_build *b, uint32_t s, const struct ptx_mem *mem)
{
    const struct ptx_operand *o = mem->extent == PTX_EXTENT_PLAIN ? mem->unless : copied_bytes(mem);
    if (o && o->kind == PTX_REG)
        ranges_need(b, ranges_read(b, s, o->id));
}

// Emits the condition under which cp.async reads: its predicate does not hold, or the number of bytes is not
// 0. PROOF_NONE if there is none.
static uint32_t emit_copy_condition(struct ranges_build *b, uint32_t s, const struct ptx_mem *mem)
{
    if (mem->extent == PTX_EXTENT_PLAIN && mem->unless)
        return ranges_emit(
            b, (struct proof_insn){.op = PROOF_OPPOSITE, .a = ranges_predicate(b, s, mem->unless)});
    return copied_bytes(mem) ? ranges_not_zero(b, ranges_read(b, s, mem->size->id)) : PROOF_NONE;
}

static void need_accesses(struct ranges_build *b)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    for (uint32_t s = 0; s < b->f->nstmts; s++) {
        const struct ptx_stmt *stmt = &b->f->stmts[s];
        if (stmt->kind != PTX_INSN || !graph_reached(b->cfg->graph, b->cfg->block_of[s]))
            continue;
        b->ncalls += stmt->form->op->control == PTX_CALL;
        unsigned n = ptx_stmt_mem(b->f, stmt, mem);
        for (unsigned i = 0; i < n; i++) {
            if (!is_listed(b, s, &mem[i]))
                continue;
            if (mem[i].addr->kind == PTX_ADDR && mem[i].addr->sub == PTX_BASE_REG)
                ranges_need(b, ranges_read(b, s, mem[i].addr->id));
            if (size_operand(&mem[i]))
                ranges_need(b, ranges_read(b, s, size_operand(&mem[i])->id));
            need_copy_condition(b, s, &mem[i]);
            if (stmt->guard != PTX_NONE)
                ranges_need(b, ranges_read(b, s, stmt->guard));
        }
    }
}

// Emits the bytes that an access touches behind those of its row, which are a line of a tile or none:
// PROOF_NONE if the operand that gives them has no value.
static uint32_t emit_distance(struct ranges_build *b, uint32_t s, const struct ptx_mem *mem)
{
    const struct ptx_operand *o = size_operand(mem);
    uint32_t v = ranges_read(b, s, o->id);
    if (v == REACH_NONE)
        return PROOF_NONE;
    unsigned bits = ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, o->id)->type);
    uint32_t at = ranges_extend(b, ranges_node_of(b, v, NULL), bits, false);
    if (mem->extent == PTX_EXTENT_COUNTED)
        return at;
    uint32_t lines = ranges_const(b, (mem->lines - 1) * (mem->element_bits / 8));
    return ranges_emit(b, (struct proof_insn){.op = PROOF_MUL, .a = at, .b = lines});
}

// Adds a condition, which may be PROOF_NONE, to the predicate of an ACCESS.
static void also_if(struct ranges_build *b, uint32_t condition, struct proof_insn *i)
{
    if (condition == PROOF_NONE)
        return;
    if (i->b != PROOF_NONE && i->sign)
        i->b = ranges_emit(b, (struct proof_insn){.op = PROOF_OPPOSITE, .a = i->b});
    if (i->b != PROOF_NONE)
        condition = ranges_emit(b, (struct proof_insn){.op = PROOF_BOTH, .a = i->b, .b = condition});
    i->b = condition;
    i->sign = 0;
}

static void emit_access(struct ranges_build *b, uint32_t s, unsigned row, const struct ptx_mem *mem,
                        bool known)
{
    const struct ptx_stmt *stmt = &b->f->stmts[s];
    struct proof_access a = {.stmt = s, .bytes = mem->bytes, .row = (uint8_t)row};
    uint32_t distance = known && size_operand(mem) ? emit_distance(b, s, mem) : PROOF_NONE;
    bool sized = mem->bytes && mem->bytes <= 1u << 30 &&
                 (mem->extent == PTX_EXTENT_PLAIN || mem->extent == PTX_EXTENT_COUNTED ||
                  mem->extent == PTX_EXTENT_ROWS || mem->extent == PTX_EXTENT_TILE);
    if (distance != PROOF_NONE) {
        sized = true;
        a.more = 1;
        a.bytes = mem->extent == PTX_EXTENT_TILE ? (uint32_t)mem->length * mem->element_bits / 8 : 0;
    }
    a.offset = mem->addr->kind == PTX_ADDR ? mem->addr->value : 0;
    a.space = (uint8_t)ptx_space_is((enum ptx_space)mem->space);
    a.does =
        (mem->reads ? PROOF_READS : 0) | (mem->writes ? PROOF_WRITES : 0) | (mem->atomic ? PROOF_ATOMIC : 0);
    a.reason = known ? sized ? PROOF_WHY_NONE : PROOF_WHY_EXTENT : PROOF_WHY_CONTROL;
    a.upto = mem->extent != PTX_EXTENT_PLAIN || mem->unless;
    if (!sized)
        a.bytes = 0;
    a.bits = 64;
    if (mem->addr->kind == PTX_ADDR && mem->addr->sub == PTX_BASE_REG)
        a.bits = (uint8_t)ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, mem->addr->id)->type);
    if (a.bits != 32)
        a.bits = 64;
    struct proof_insn i = {.op = PROOF_ACCESS, .b = PROOF_NONE, .c = (uint32_t)b->accesses.len};
    if (known) {
        i.a = ranges_address(b, s, mem->addr, ranges_node_of, NULL);
        uint32_t guard = stmt->guard == PTX_NONE ? REACH_NONE : ranges_read(b, s, stmt->guard);
        if (guard != REACH_NONE)
            i.b = ranges_node_of(b, guard, NULL);
        i.sign = stmt->guard_negated;
        also_if(b, emit_copy_condition(b, s, mem), &i);
    } else {
        i.a = ranges_const(b, 0);
    }
    ranges_emit(b, i);
    if (distance != PROOF_NONE)
        ranges_emit(b, (struct proof_insn){.op = PROOF_EXTENT, .a = distance, .c = i.c});
    b->failed |= vec_push(&b->accesses, a) != 0;
}

static void emit_accesses(struct ranges_build *b, uint32_t s, bool known)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(b->f, &b->f->stmts[s], mem);
    for (unsigned i = 0; i < n; i++)
        if (is_listed(b, s, &mem[i]))
            emit_access(b, s, i, &mem[i], known);
}

// --- blocks ------------------------------------------------------------------------------------------------

static void emit_edges(struct ranges_build *b, uint32_t block)
{
    struct graph_nodes preds = graph_pred(b->cfg->graph, block);
    for (uint32_t i = 0; i < preds.n; i++) {
        struct proof_edge e = {.predicate = PROOF_NONE};
        struct ranges_condition c;
        if (!ranges_forward(b, preds.at[i], block))
            continue;
        e.block = b->number[preds.at[i]];
        if (ranges_condition(b, preds.at[i], block, &c)) {
            uint32_t v = ranges_read(b, c.stmt, c.reg);
            // A predicate that was not emitted says nothing.
            e.predicate = v == REACH_NONE ? PROOF_NONE : b->node[v];
            e.negated = c.negated;
        } else {
            e.predicate = b->chance[preds.at[i]];
        }
        b->failed |= vec_push(&b->edges, e) != 0;
    }
}

static void emit_stmt(struct ranges_build *b, uint32_t s)
{
    if (b->f->stmts[s].kind != PTX_INSN)
        return;
    emit_accesses(b, s, true);
    struct regs_list list = regs_at(b->regs, s);
    uint32_t first = b->regs->access_at[s];
    for (uint32_t i = 0; i < list.n; i++) {
        uint32_t v = b->reach->written[first + i];
        if (list.at[i].writes && v != REACH_NONE && b->needed[v])
            b->node[v] = ranges_choice(b, v, ranges_translate(b, v, ranges_node_of, NULL));
    }
}

// A block with several ways on, of which no predicate says which one is taken, such as a switch: who comes
// out of it has met a condition.
static void emit_choice(struct ranges_build *b, uint32_t block)
{
    struct graph_nodes to = graph_succ(b->cfg->graph, block);
    struct ranges_condition c;
    bool known = to.n < 2;
    for (uint32_t i = 0; i < to.n && !known; i++)
        known = ranges_condition(b, block, to.at[i], &c) && ranges_read(b, c.stmt, c.reg) != REACH_NONE;
    b->chance[block] = known ? PROOF_NONE : ranges_emit(b, (struct proof_insn){.op = PROOF_CHANCE});
}

static void emit_block(struct ranges_build *b, uint32_t block, uint32_t number)
{
    uint32_t first = (uint32_t)b->edges.len;
    b->number[block] = number;
    emit_edges(b, block);
    b->block_start = (uint32_t)b->insns.len;
    ranges_emit(b, (struct proof_insn){
                       .op = PROOF_BLOCK, .a = first, .b = (uint32_t)b->edges.len - first, .c = number});
    if (is_header(b, block)) {
        ranges_loop(b, block);
    } else {
        for (uint32_t i = b->join_at[block]; i < b->join_at[block + 1]; i++)
            if (b->needed[b->joins[i]])
                b->node[b->joins[i]] = ranges_choice(b, b->joins[i], ranges_merge(b, b->joins[i]));
    }
    for (uint32_t s = b->cfg->blocks[block].first; s < b->cfg->blocks[block].last; s++)
        emit_stmt(b, s);
    emit_choice(b, block);
}

// Every access, without a bound: for functions whose control flow is not understood, and for too large
// ones.
static void emit_unknown(struct ranges_build *b, uint8_t reason)
{
    b->insns.len = b->edges.len = b->tests.len = b->inputs.len = b->roots.len = b->accesses.len = 0;
    b->names.len = b->forms.len = 0;
    b->block_start = 0;
    ranges_emit(b, (struct proof_insn){.op = PROOF_BLOCK});
    for (uint32_t s = 0; s < b->f->nstmts && b->accesses.len + PTX_MAX_MEM < PROOF_MOST_ACCESSES; s++)
        if (b->f->stmts[s].kind == PTX_INSN)
            emit_accesses(b, s, false);
    for (size_t i = 0; i < b->accesses.len; i++)
        b->accesses.items[i].reason = reason;
}

static void list_joins(struct ranges_build *b, struct arena *scratch)
{
    const struct reach *r = b->reach;
    b->join_at = ARENA_ARRAY(scratch, uint32_t, b->cfg->nblocks + 2);
    b->joins = ARENA_ARRAY(scratch, uint32_t, r->value.len + 1);
    for (uint32_t v = r->ndefs; v < r->value.len; v++)
        if (r->value.items[v].kind == REACH_JOIN)
            b->join_at[r->value.items[v].place + 2]++;
    for (uint32_t i = 2; i < b->cfg->nblocks + 2; i++)
        b->join_at[i] += b->join_at[i - 1];
    for (uint32_t v = r->ndefs; v < r->value.len; v++)
        if (r->value.items[v].kind == REACH_JOIN)
            b->joins[b->join_at[r->value.items[v].place + 1]++] = v;
}

// Parameters lie one behind the other, each aligned to its type or as it says.
static void lay_out_params(struct ranges_build *b, struct arena *scratch)
{
    uint64_t at = 0;
    b->param_at = ARENA_ARRAY(scratch, uint32_t, b->f->nparams + 1);
    for (uint32_t i = 0; i < b->f->nparams; i++) {
        const struct ptx_var *v = &b->f->params[i];
        uint64_t align = v->align ? v->align : ptx_type_bits((enum ptx_type)v->type) / 8 * v->vec;
        align = align ? align : 1;
        at = (at + align - 1) / align * align;
        b->param_at[i] = (uint32_t)at;
        at += ptx_var_size(v);
    }
}

static void emit_all(struct ranges_build *b, struct arena *scratch)
{
    size_t nvalues = b->reach->value.len;
    b->node = ARENA_ARRAY(scratch, uint32_t, nvalues + 1);
    b->needed = ARENA_ARRAY(scratch, uint8_t, nvalues + 1);
    b->number = ARENA_ARRAY(scratch, uint32_t, b->cfg->nblocks + 1);
    b->chance = ARENA_ARRAY(scratch, uint32_t, b->cfg->nblocks + 1);
    memset(b->node, 0xFF, nvalues * sizeof *b->node);
    list_joins(b, scratch);
    lay_out_params(b, scratch);
    need_accesses(b);
    need_control(b);
    ranges_need_loops(b);
    while (b->todo.len)
        look_at(b, b->todo.items[--b->todo.len]);
    for (uint32_t i = 0; i < b->cfg->graph->nreached && b->insns.len <= PROOF_MOST_INSNS && !b->failed; i++)
        emit_block(b, b->cfg->graph->order[i], i);
    if (b->insns.len > PROOF_MOST_INSNS || b->accesses.len > PROOF_MOST_ACCESSES)
        emit_unknown(b, PROOF_WHY_COMPLEX);
}

// --- the result --------------------------------------------------------------------------------------------

static void append(char **to, const void *from, size_t n)
{
    if (n)
        memcpy(*to, from, n);
    *to += (n + 7) & ~(size_t)7;
}

static int assemble(struct ranges_build *b, struct arena *keep, struct proof *out)
{
    struct proof_head h = {
        .magic = "moPf", .version = PROOF_VERSION, .params = b->params, .ncalls = b->ncalls};
#define TABLES(DO)    \
    DO(ninsns, insns) \
    DO(nedges, edges) \
    DO(ntests, tests) DO(ninputs, inputs) DO(nroots, roots) DO(naccesses, accesses) DO(names, names)
    size_t size = sizeof h;
#define SIZE(count, table)            \
    h.count = (uint32_t)b->table.len; \
    size += (b->table.len * sizeof *b->table.items + 7) & ~(size_t)7;
    TABLES(SIZE)
    for (size_t i = 0; i < b->insns.len; i++)
        h.nblocks += b->insns.items[i].op == PROOF_BLOCK;
    if (size > UINT32_MAX)
        return -E2BIG;
    h.size = (uint32_t)size;
    char *bytes = arena_alloc(keep, size), *at = bytes;
    append(&at, &h, sizeof h);
#define APPEND(count, table) append(&at, b->table.items, b->table.len * sizeof *b->table.items);
    TABLES(APPEND)
    int err = proof_read(bytes, size, out);
    return err ? -E2BIG : 0;
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    struct ranges *r = result;
    struct ranges_build *b = (struct ranges_build *)(uintptr_t)input;
    bool understood = !b->cfg->uncertain && !b->loops->nregions;
    for (uint32_t i = 0; i < b->loops->nloops; i++)
        understood &= !b->loops->loops[i].irreducible;
    if (understood)
        emit_all(b, scratch);
    else
        emit_unknown(b, PROOF_WHY_CONTROL);
    if (b->failed)
        return -ENOMEM;
    int err = assemble(b, keep, &r->proof);
    if (!err)
        ranges_classify(b, r, keep, scratch);
    return err;
}

int ranges_build(struct flow *w, struct ranges **out)
{
    struct ranges_build b = {.m = w->m, .f = w->f};
    int err = flow_whole(w);
    if (!err)
        err = flow_cfg(w, &b.cfg);
    if (!err)
        err = flow_dominators(w, &b.dom);
    if (!err)
        err = flow_loops(w, &b.loops);
    if (!err)
        err = flow_reaching(w, &b.reach);
    if (!err)
        err = flow_regs(w, &b.regs);
    if (err)
        return err;
    struct ranges *r = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->m = w->m;
    r->f = w->f;
    err = build_run(fill, r, &b, &r->arena);
    vec_free(&b.insns);
    vec_free(&b.edges);
    vec_free(&b.tests);
    vec_free(&b.inputs);
    vec_free(&b.roots);
    vec_free(&b.accesses);
    vec_free(&b.names);
    vec_free(&b.todo);
    vec_free(&b.forms);
    if (err) {
        mem_free(r);
        return err;
    }
    *out = r;
    return 0;
}

void ranges_free(struct ranges *r)
{
    if (!r)
        return;
    arena_free(&r->arena);
    mem_free(r);
}

bool ranges_source(const struct ptx_module *m, const struct ptx_func *f, uint32_t stmt,
                   struct ptx_source *out)
{
    for (uint32_t s = stmt + 1; s > 0; s--)
        if (f->stmts[s - 1].kind == PTX_LOC && f->stmts[s - 1].loc->line)
            return ptx_loc_source(m, f->stmts[s - 1].loc, out);
    return false;
}
