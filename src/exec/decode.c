// SPDX-License-Identifier: MIT
#include "exec/decode.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "exec/control.h"
#include "exec/lane.h"
#include "exec/order.h"
#include "flow/live.h"
#include "flow/regs.h"

void decode_fail(struct decode *d, int err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    diag_vreport(d->load->sink, DIAG_ERROR, &d->module->ptx->source,
                 d->stmt_pos == PTX_NONE ? 0 : d->stmt_pos, 1, fmt, args);
    va_end(args);
    longjmp(d->fail, err);
}

void decode_unsupported(struct decode *d)
{
    decode_fail(d, -ENOTSUP, "the CPU device does not execute " STR_FMT, STR_ARG(d->stmt->form->name));
}

static void out_of_memory(struct decode *d)
{
    longjmp(d->fail, -ENOMEM);
}

struct exec_insn *decode_emit(struct decode *d, exec_fn *fn)
{
    if (vec_push(&d->code, (struct exec_insn){.fn = fn}) || vec_push(&d->pos, d->stmt_pos) ||
        vec_push(&d->loc, d->stmt_loc))
        out_of_memory(d);
    return &d->code.items[d->code.len - 1];
}

void decode_jump(struct decode *d, uint32_t block)
{
    if (vec_push(&d->fixups, (struct decode_fixup){(uint32_t)d->code.len - 1, block}))
        out_of_memory(d);
}

// --- constants and temporaries -----------------------------------------------------------------------------

static uint32_t take_slot(struct decode *d, unsigned class)
{
    uint32_t at = d->regs_size;
    if (at >= SLOTS_MOST)
        decode_fail(d, -ENOTSUP, "too many registers and constants");
    // Predicates take a whole cache line: there are few.
    d->regs_size += slots_size[class] < 64 ? 64 : slots_size[class];
    return at;
}

static uint32_t hash(unsigned bits, uint64_t value)
{
    return (uint32_t)((value * 0x9e3779b97f4a7c15 + bits) >> 40);
}

static void grow_consts(struct decode *d)
{
    uint32_t mask = d->const_mask ? d->const_mask * 2 + 1 : 63;
    uint32_t *table = mem_zalloc((size_t)mask + 1, sizeof *table);
    if (!table)
        out_of_memory(d);
    for (uint32_t k = 0; k < d->consts.len; k++) {
        uint32_t at = hash(d->consts.items[k].bits, d->consts.items[k].value) & mask;
        while (table[at])
            at = (at + 1) & mask;
        table[at] = k + 1;
    }
    mem_free(d->const_table);
    d->const_table = table;
    d->const_mask = mask;
}

uint32_t decode_const(struct decode *d, unsigned bits, uint64_t value)
{
    if (bits < 64)
        value &= ((uint64_t)1 << bits) - 1;
    if (d->consts.len * 2 >= d->const_mask)
        grow_consts(d);
    uint32_t at = hash(bits, value) & d->const_mask;
    for (; d->const_table[at]; at = (at + 1) & d->const_mask) {
        const struct exec_const *c = &d->consts.items[d->const_table[at] - 1];
        if (c->bits == bits && c->value == value)
            return c->slot;
    }
    struct exec_const c = {take_slot(d, slots_class(bits)), (uint8_t)bits, value};
    if (vec_push(&d->consts, c))
        out_of_memory(d);
    d->const_table[at] = (uint32_t)d->consts.len;
    return c.slot;
}

uint32_t decode_temp(struct decode *d, unsigned bits)
{
    unsigned class = slots_class(bits);
    unsigned n = d->ntemps[class]++;
    if (n >= sizeof d->temps[0] / sizeof d->temps[0][0])
        return take_slot(d, class);
    if (!d->temps[class][n])
        d->temps[class][n] = take_slot(d, class);
    return d->temps[class][n];
}

// --- lanes -------------------------------------------------------------------------------------------------

static enum ptx_type fit_type(const struct ptx_form *form, unsigned fit)
{
    unsigned n = fit <= PTX_FIT_TYPE3 ? fit : fit == PTX_FIT_LOOSE1 ? 1 : 0;
    switch (fit) {
    case PTX_FIT_PRED: return PTX_PRED;
    case PTX_FIT_32: return PTX_B32;
    case PTX_FIT_64: return PTX_B64;
    case PTX_FIT_WIDE:
        if (ptx_form_has(form, PTX_MOD_WIDE))
            return ptx_type_bits((enum ptx_type)form->types[0]) == 16 ? PTX_B32 : PTX_B64;
        break;
    default: break;
    }
    return n < form->ntypes ? (enum ptx_type)form->types[n] : PTX_B32;
}

// Returns the type of an operand. Where the table allows any type, the row fixes it: the second value of a
// cvt has the type of the first, and cvt.pack takes words.
static enum ptx_type operand_type(struct decode *d, unsigned i)
{
    const struct ptx_form *form = d->stmt->form;
    unsigned fit = i < form->nrules ? form->rules[i].fit : PTX_FIT_ANY;
    if (fit != PTX_FIT_ANY)
        return fit_type(form, fit);
    return form->id == PTX_OP_CVT ? fit_type(form, PTX_FIT_TYPE1) : PTX_B32;
}

// Returns whether the operands have the number and kinds that the row assumes.
static bool suits_row(struct decode *d, unsigned count, bool pair)
{
    const struct ptx_form *form = d->stmt->form;
    switch (form->id) {
    case PTX_OP_SETP: return true;
    case PTX_OP_LOP3: {
        bool boolean = ptx_form_has(form, PTX_MOD_AND) || ptx_form_has(form, PTX_MOD_OR);
        return decode_operand(d, 4)->kind == PTX_IMM && pair == boolean && (count == 6) == boolean;
    }
    case PTX_OP_CVT: {
        bool two = ptx_type_class((enum ptx_type)form->types[0]) == PTX_CLASS_PACKED && form->ntypes > 1 &&
                   ptx_type_class((enum ptx_type)form->types[1]) == PTX_CLASS_FLOAT;
        return !pair && count == (two ? 3u : 2u);
    }
    default: return !pair;
    }
}

void decode_lane(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    unsigned count = 0;
    for (const struct ptx_operand *o = d->stmt->operands; o < d->stmt->operands + d->stmt->nslots;
         o = ptx_next(o))
        count++;
    struct lane_op op;
    if (!count || lane_pick(form, count - 1, &op)) {
        if (!count || !decode_pair(d))
            decode_unsupported(d);
        return;
    }
    const struct ptx_operand *first = decode_operand(d, 0), *second = NULL;
    if (!suits_row(d, count, first->kind == PTX_PAIR))
        decode_unsupported(d);
    if (first->kind == PTX_PAIR) {
        first = first + 1;
        second = ptx_next(first);
    }
    uint32_t source[5] = {0}, table = 0, q = 0;
    unsigned n = 0;
    for (unsigned i = 1; i < count; i++) {
        const struct ptx_operand *o = decode_operand(d, i);
        if (form->id == PTX_OP_LOP3 && i == 4) {
            table = (uint32_t)o->value & 0xff;
            continue;
        }
        uint32_t slot = decode_source(d, o, operand_type(d, i));
        if (form->id == PTX_OP_LOP3 && i == 5)
            q = slot;
        else if (n < 5)
            source[n++] = slot;
    }
    struct decode_dest dest = decode_dest(d, first, operand_type(d, 0)), other = {0};
    bool two = second || form->id == PTX_OP_SETP || (form->id == PTX_OP_LOP3 && count > 5);
    if (second)
        other = decode_dest(d, second, PTX_PRED);
    else if (two)
        other.slot = decode_temp(d, 1);
    struct exec_insn *i = decode_emit(d, lane_fn(op.row));
    i->d = dest.slot;
    i->a = source[0];
    i->b = source[1];
    i->c = source[2];
    i->e = two ? other.slot : source[3];
    i->flags = op.flags;
    if (form->id == PTX_OP_LOP3) {
        i->lo = table;
        i->hi = q;
    }
    decode_finish(d, &dest);
}

// --- statements --------------------------------------------------------------------------------------------

uint32_t decode_skip_begin(struct decode *d)
{
    if (d->stmt->guard == PTX_NONE)
        return PTX_NONE;
    struct exec_insn *i = decode_emit(d, control_bra_if);
    i->a = decode_guard(d);
    i->flags = (d->stmt->guard_negated ? 0 : CONTROL_NEGATED) | CONTROL_JOIN;
    return (uint32_t)d->code.len - 1;
}

void decode_skip_end(struct decode *d, uint32_t at)
{
    if (at == PTX_NONE)
        return;
    // Targets within the statement are distances until the code has its final address.
    d->code.items[at].imm = d->code.len - at;
    decode_emit(d, control_join);
}

static bool guards_itself(const struct ptx_form *form)
{
    switch (form->op->control) {
    case PTX_FALLS:
        return (form->flags & PTX_WARP && form->id != PTX_OP_ACTIVEMASK) || form->id == PTX_OP_NANOSLEEP ||
               form->id == PTX_OP_MBARRIER_TRY_WAIT;
    default: return true;
    }
}

static void dispatch(struct decode *d)
{
    switch (d->stmt->form->id) {
    case PTX_OP_MOV: decode_mov(d); return;
    case PTX_OP_LD:
    case PTX_OP_LDU:
    case PTX_OP_ST:
    case PTX_OP_ATOM:
    case PTX_OP_RED:
    case PTX_OP_CP_ASYNC: decode_memory(d); return;
    case PTX_OP_BRA:
    case PTX_OP_BRX_IDX:
    case PTX_OP_CALL:
    case PTX_OP_RET:
    case PTX_OP_EXIT:
    case PTX_OP_TRAP:
    case PTX_OP_BRKPT: decode_control(d); return;
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:
    case PTX_OP_BAR_RED:
    case PTX_OP_BARRIER_RED:
    case PTX_OP_BAR_CTA_RED:
    case PTX_OP_BARRIER_CTA_RED:
    case PTX_OP_BAR_WARP:
    case PTX_OP_SHFL:
    case PTX_OP_VOTE:
    case PTX_OP_MATCH:
    case PTX_OP_REDUX:
    case PTX_OP_ACTIVEMASK:
    case PTX_OP_ELECT:
    case PTX_OP_BARRIER_CLUSTER: decode_collective(d); return;
    case PTX_OP_TEX:
    case PTX_OP_TLD4:
    case PTX_OP_TXQ:
    case PTX_OP_SULD:
    case PTX_OP_SURED:
    case PTX_OP_SUST:
    case PTX_OP_SUQ: decode_texture(d); return;
    case PTX_OP_MEMBAR:
    case PTX_OP_FENCE:
    case PTX_OP_CVTA:
    case PTX_OP_ISSPACEP:
    case PTX_OP_ALLOCA:
    case PTX_OP_STACKSAVE:
    case PTX_OP_STACKRESTORE:
    case PTX_OP_CREATEPOLICY:
    case PTX_OP_NANOSLEEP: decode_special(d); return;
    case PTX_OP_PREFETCH:
    case PTX_OP_PREFETCHU:
    case PTX_OP_APPLYPRIORITY:
    case PTX_OP_DISCARD:
    case PTX_OP_PMEVENT:
    case PTX_OP_SETMAXNREG:
    case PTX_OP_GRIDDEPCONTROL:
    case PTX_OP_CP_ASYNC_COMMIT:
    case PTX_OP_CP_ASYNC_WAIT:
    case PTX_OP_CP_ASYNC_WAIT_ALL:
    case PTX_OP_CP_ASYNC_BULK_PREFETCH:
    case PTX_OP_CP_ASYNC_BULK_PREFETCH_TENSOR:
    case PTX_OP_CP_ASYNC_BULK_COMMIT:
    case PTX_OP_CP_ASYNC_BULK_WAIT: return;  // hints, and waits for operations that complete at once here
    case PTX_OP_CP_ASYNC_BULK_TENSOR:
    case PTX_OP_CP_REDUCE_BULK_TENSOR:
    case PTX_OP_TENSORMAP_REPLACE:
    case PTX_OP_TENSORMAP_CP_FENCEPROXY: decode_tensor(d); return;
    case PTX_OP_MAPA:
    case PTX_OP_GETCTARANK:
    case PTX_OP_ST_ASYNC:
    case PTX_OP_RED_ASYNC:
    case PTX_OP_CP_ASYNC_MBARRIER:
    case PTX_OP_CP_ASYNC_BULK:
    case PTX_OP_CP_REDUCE_BULK:
    case PTX_OP_MBARRIER_INIT:
    case PTX_OP_MBARRIER_INVAL:
    case PTX_OP_MBARRIER_EXPECT_TX:
    case PTX_OP_MBARRIER_COMPLETE_TX:
    case PTX_OP_MBARRIER_ARRIVE:
    case PTX_OP_MBARRIER_ARRIVE_DROP:
    case PTX_OP_MBARRIER_TEST_WAIT:
    case PTX_OP_MBARRIER_TRY_WAIT:
    case PTX_OP_MBARRIER_PENDING_COUNT: decode_cluster(d); return;
    case PTX_OP_WGMMA_MMA:
    case PTX_OP_WGMMA_FENCE:
    case PTX_OP_WGMMA_COMMIT:
    case PTX_OP_WGMMA_WAIT: decode_wgmma(d); return;
    case PTX_OP_WMMA_LOAD:
    case PTX_OP_WMMA_STORE:
    case PTX_OP_WMMA_MMA:
    case PTX_OP_MMA:
    case PTX_OP_LDMATRIX:
    case PTX_OP_STMATRIX:
    case PTX_OP_MOVMATRIX: decode_matrix(d); return;
    default:
        if (d->stmt->form->id >= PTX_OP_VADD && d->stmt->form->id <= PTX_OP_VSET4)
            decode_video(d);
        else
            decode_lane(d);
    }
}

static void decode_insn(struct decode *d)
{
    if (d->stmt->form->odd || d->stmt->form->id == PTX_OP_UNKNOWN)
        decode_unsupported(d);
    memset(d->ntemps, 0, sizeof d->ntemps);
    uint32_t before = (uint32_t)d->code.len;
    if (d->stmt->guard == PTX_NONE || guards_itself(d->stmt->form)) {
        dispatch(d);
        return;
    }
    struct exec_insn *guard = decode_emit(d, control_guard);
    guard->a = decode_guard(d);
    guard->flags = d->stmt->guard_negated ? CONTROL_NEGATED : 0;
    dispatch(d);
    uint32_t made = (uint32_t)d->code.len - before - 1;
    if (made == 1)
        return;
    // Several instructions, or none: branch over them.
    d->code.items[before].fn = control_bra_if;
    d->code.items[before].flags = (d->stmt->guard_negated ? 0 : CONTROL_NEGATED) | CONTROL_JOIN;
    decode_skip_end(d, before);
}

// Line 0 says that the compiler moved code away from its line: the line before it in the text says more.
static bool names_line(const struct ptx_stmt *s)
{
    return s->kind == PTX_LOC && s->loc->line;
}

// Collects every .loc with a line in text order, whatever the block order becomes: an instruction belongs to
// the last one before it in the text.
static void note_locs(struct decode *d)
{
    uint32_t block = 0;
    d->func->first_loc = (uint32_t)d->load->locs.len;
    for (uint32_t s = 0; s < d->f->nstmts; s++) {
        while (block < d->cfg->nblocks && d->cfg->blocks[block].first <= s)
            d->block_loc[block++] = (uint32_t)d->load->locs.len;
        if (names_line(&d->f->stmts[s]) && vec_push(&d->load->locs, d->f->stmts[s].loc))
            out_of_memory(d);
    }
    while (block < d->cfg->nblocks)
        d->block_loc[block++] = (uint32_t)d->load->locs.len;
}

static bool ends_in_jump(const struct decode *d, uint32_t block)
{
    for (uint32_t s = d->cfg->blocks[block].last; s > d->cfg->blocks[block].first; s--) {
        const struct ptx_stmt *stmt = &d->f->stmts[s - 1];
        if (stmt->kind != PTX_INSN)
            continue;
        unsigned control = stmt->form->op->control;
        return stmt->guard == PTX_NONE &&
               (control == PTX_BRANCH || control == PTX_SWITCH || control == PTX_RETURN ||
                control == PTX_EXIT || control == PTX_TRAP);
    }
    return false;
}

// Returns whether control may reach the next block in the text.
static bool falls_on(const struct decode *d, uint32_t block)
{
    if (block + 1 == d->cfg->nblocks)
        return d->cfg->falls_off;
    struct graph_nodes succ = graph_succ(d->cfg->graph, block);
    for (uint32_t k = 0; k < succ.n; k++)
        if (succ.at[k] == block + 1)
            return true;
    return false;
}

static void decode_block(struct decode *d, uint32_t block, uint32_t next)
{
    d->block = block;
    d->block_at[block] = (uint32_t)d->code.len;
    uint32_t next_loc = d->block_loc[block];
    d->stmt_loc = next_loc > d->func->first_loc ? next_loc - 1 : PTX_NONE;
    if (d->join[block])
        decode_emit(d, control_join);
    const struct cfg_block *b = &d->cfg->blocks[block];
    for (uint32_t s = b->first; s < b->last; s++) {
        d->stmt = &d->f->stmts[s];
        d->stmt_pos = d->stmt->pos;
        if (names_line(d->stmt))
            d->stmt_loc = next_loc++;
        else if (d->stmt->kind == PTX_INSN)
            decode_insn(d);
        else if (d->stmt->kind == PTX_VERBATIM)
            decode_fail(d, -ENOTSUP, "an unknown statement");
    }
    if (ends_in_jump(d, block))
        return;
    uint32_t falls = block + 1 < d->cfg->nblocks ? block + 1 : DECODE_RETURN;
    if (d->cfg->exits[block] && !falls_on(d, block)) {
        // Reached only if a call that must not return has returned.
        decode_emit(d, control_illegal);
    } else if (falls != next) {
        decode_emit(d, control_bra);
        decode_jump(d, falls);
    }
}

// --- loops that wait ---------------------------------------------------------------------------------------

// Returns whether a statement may wait for other threads; sets *stores if it stores, calls or is a barrier.
// Loops that may wait give up their turn sooner.
static uint8_t stmt_waits(const struct ptx_stmt *s, bool *stores)
{
    if (s->kind != PTX_INSN)
        return 0;
    const struct ptx_form *form = s->form;
    switch (form->id) {
    case PTX_OP_ST:
        if (!ptx_form_has(form, PTX_MOD_SPACE_PARAM))
            *stores = true;
        return 0;
    case PTX_OP_CALL:
    case PTX_OP_BAR:
    case PTX_OP_BARRIER: *stores = true; return 0;
    case PTX_OP_LD:
        return ptx_form_has(form, PTX_MOD_VOLATILE) || ptx_form_has(form, PTX_MOD_ACQUIRE) ||
               ptx_form_has(form, PTX_MOD_RELAXED) || ptx_form_has(form, PTX_MOD_CV);
    case PTX_OP_ATOM:
    case PTX_OP_MBARRIER_TEST_WAIT:
    case PTX_OP_MBARRIER_TRY_WAIT:
    case PTX_OP_NANOSLEEP: return 1;
    default: return 0;
    }
}

static uint8_t loop_cost(const struct decode *d, const struct loop *l)
{
    bool waits = false, stores = false;
    uint32_t insns = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        const struct cfg_block *b = &d->cfg->blocks[d->loops->nodes[l->first + k]];
        for (uint32_t s = b->first; s < b->last; s++) {
            waits |= stmt_waits(&d->f->stmts[s], &stores);
            insns += d->f->stmts[s].kind == PTX_INSN;
        }
    }
    if (!waits)
        return SCHED_STEP;
    return !stores && insns <= 32 ? SCHED_SPIN : SCHED_LOCK;
}

// --- a function --------------------------------------------------------------------------------------------

static void find_joins(struct decode *d)
{
    for (uint32_t k = 0; k < d->norder; k++) {
        uint32_t b = d->order[k];
        struct graph_nodes pred = graph_pred(d->cfg->graph, b);
        d->join[b] = pred.n > 1;
    }
    for (uint32_t k = 0; k < d->loops->nloops; k++)
        d->loop_fuel[d->loops->loops[k].header] = loop_cost(d, &d->loops->loops[k]);
}

// Returns whether the function uses registers declared outside functions, which come first in regs; their
// values would outlive a call.
static bool uses_shared_registers(const struct decode *d)
{
    return d->regs->n && ptx_reg_var(d->f, d->regs->reg[0])->pos < d->f->pos;
}

// Rejects vector registers that do not fit in one slot, elements one after the other.
static void check_registers(struct decode *d)
{
    for (uint32_t k = 0; k < d->f->nreg_vars; k++) {
        const struct ptx_var *v = d->f->reg_vars[k];
        unsigned bits = ptx_type_bits((enum ptx_type)v->type);
        if (v->vec > 1 && (bits < 8 || bits * v->vec > 128 || (v->vec != 2 && v->vec != 4))) {
            d->stmt_pos = v->pos;
            decode_fail(d, -EINVAL, "there is no such vector register");
        }
    }
}

static void prepare(struct decode *d)
{
    struct arena *a = &d->load->program->arena;
    int err = cfg_build(d->module->ptx, d->f, &d->cfg);
    if (!err)
        err = dom_build(d->cfg->graph, &d->dom);
    if (!err)
        err = loops_build(d->cfg->graph, d->dom, &d->loops);
    if (!err)
        err = regs_build(d->f, 0, &d->regs);
    if (!err)
        err = live_build(d->cfg, d->regs, 0, &d->live);
    if (err == -E2BIG)
        decode_fail(d, -ENOTSUP, "the control flow of " STR_FMT " is too complex", STR_ARG(d->func->name));
    if (err)
        longjmp(d->fail, err);
    if (uses_shared_registers(d))
        decode_fail(d, -ENOTSUP, "registers outside functions are not executed");
    check_registers(d);
    d->order = ARENA_ARRAY(a, uint32_t, d->cfg->nblocks);
    d->block_at = ARENA_ARRAY(a, uint32_t, d->cfg->nblocks);
    d->block_loc = ARENA_ARRAY(a, uint32_t, d->cfg->nblocks);
    d->join = ARENA_ARRAY(a, bool, d->cfg->nblocks);
    d->loop_fuel = ARENA_ARRAY(a, uint8_t, d->cfg->nblocks);
    d->slot = ARENA_ARRAY(a, uint32_t, d->regs->n);
    uint32_t words = 0;
    err = order_blocks(d->cfg, d->loops, d->order, &d->norder);
    if (!err)
        err = slots_assign(d->cfg, d->regs, d->live, d->order, d->norder, d->slot, &d->regs_size, &words);
    if (err == -E2BIG)
        decode_fail(d, -ENOTSUP, "too many registers and constants");
    if (err)
        longjmp(d->fail, err);
    if (d->func->kernel) {
        uint32_t most = d->func->kernel->max_registers;
        d->func->kernel->nregs = words + 8 < 16 ? 16 : words + 8 > most ? most : words + 8;
    }
    find_joins(d);
    note_locs(d);
}

static void resolve(struct decode *d, struct exec_insn *code, uint32_t end)
{
    for (uint32_t k = 0; k < d->code.len; k++)
        if ((code[k].fn == control_bra_if) && code[k].imm)
            code[k].target = code + k + code[k].imm;
    for (size_t k = 0; k < d->fixups.len; k++) {
        const struct decode_fixup *f = &d->fixups.items[k];
        struct exec_insn *i = &code[f->insn];
        i->target = code + (f->block == DECODE_RETURN ? end : d->block_at[f->block]);
        if (f->block == DECODE_RETURN || d->join[f->block])
            i->flags |= CONTROL_JOIN;
        if (i->target <= i) {
            unsigned cost = d->loop_fuel[f->block] ? d->loop_fuel[f->block] : SCHED_STEP;
            i->flags |= cost == SCHED_SPIN ? CONTROL_SPINS : 0;
            // The longer the jump back, the fewer iterations make a turn: so a turn ends soon, whatever it
            // runs.
            cost += (unsigned)(i - i->target) / SCHED_STRETCH;
            i->flags |= (cost < SCHED_FUEL ? cost : SCHED_FUEL) << CONTROL_COST_SHIFT;
        }
    }
    for (size_t k = 0; k < d->tables.len; k++) {
        struct control_table *t = d->tables.items[k];
        for (uint32_t n = 0; n < t->n; n++)
            t->targets[n] = code + d->block_at[(uintptr_t)t->targets[n]];
    }
}

static void keep(struct decode *d, uint32_t end)
{
    struct arena *a = &d->load->program->arena;
    struct exec_func *f = d->func;
    f->ncode = (uint32_t)d->code.len;
    f->code = ARENA_ARRAY(a, struct exec_insn, f->ncode);
    f->pos = ARENA_ARRAY(a, uint32_t, f->ncode);
    f->loc = ARENA_ARRAY(a, uint32_t, f->ncode);
    memcpy(f->code, d->code.items, f->ncode * sizeof *f->code);
    memcpy(f->pos, d->pos.items, f->ncode * sizeof *f->pos);
    memcpy(f->loc, d->loc.items, f->ncode * sizeof *f->loc);
    resolve(d, f->code, end);
    f->nconsts = (uint32_t)d->consts.len;
    f->consts = ARENA_ARRAY(a, struct exec_const, f->nconsts);
    if (f->nconsts)
        memcpy(f->consts, d->consts.items, f->nconsts * sizeof *f->consts);
    f->ncallees = (uint32_t)d->callees.len;
    f->callees = ARENA_ARRAY(a, struct exec_func *, f->ncallees);
    if (f->ncallees)
        memcpy(f->callees, d->callees.items, f->ncallees * sizeof *f->callees);
    f->regs_size = d->regs_size;
}

static void decode_all(struct decode *d)
{
    d->stmt_loc = PTX_NONE;
    d->stmt_pos = d->f->pos;
    prepare(d);
    decode_enter(d);
    for (uint32_t k = 0; k < d->norder; k++)
        decode_block(d, d->order[k], k + 1 < d->norder ? d->order[k + 1] : DECODE_RETURN);
    uint32_t end = (uint32_t)d->code.len;
    decode_emit(d, control_join);
    decode_leave(d);
    decode_emit(d, control_ret);
    keep(d, end);
}

static void decode_free(struct decode *d)
{
    live_free(d->live);
    regs_free(d->regs);
    loops_free(d->loops);
    dom_free(d->dom);
    cfg_free(d->cfg);
    vec_free(&d->code);
    vec_free(&d->pos);
    vec_free(&d->loc);
    vec_free(&d->fixups);
    vec_free(&d->consts);
    vec_free(&d->callees);
    vec_free(&d->tables);
    mem_free(d->const_table);
}

int decode_func(struct load *l, struct exec_func *f)
{
    struct decode d = {.load = l, .func = f, .module = f->module, .f = f->ptx};
    jmp_buf *outer = l->program->arena.on_fail;
    int err = setjmp(d.fail);
    if (!err) {
        l->program->arena.on_fail = &d.fail;
        decode_all(&d);
    }
    l->program->arena.on_fail = outer;
    decode_free(&d);
    return err;
}
