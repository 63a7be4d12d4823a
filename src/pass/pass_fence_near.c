// SPDX-License-Identifier: MIT
// What each access of a masked variant needs (pass_fence_mask.c). Where it is made, its pointer may be known
// to lie in the partition, or a few bytes beside it: it was loaded from a parameter that the host has looked
// at, or it was masked for an access on every path that leads here, and only constants were added since. Then
// there is nothing to mask. Or it is known to lie in the sinks around the partition, since numbers that are
// not large were added as well (pass_fence_far.c): then it is noted, and not masked. The same holds for
// addresses in shared memory that were compared before. Which powers of two an address is a multiple of comes
// from flow/multiples.h, or from an earlier access as well.
//
// Accesses of shared memory by one register are compared together, by the first, if the others are made for
// certain when that one is.
//
// What is known only gets less while the solution is sought, so that it ends; what is found is right for the
// code that is made, since a statement masks whenever nothing is known there in the end.
#include <errno.h>
#include <string.h>

#include "flow/multiples.h"
#include "pass/pass_fence_state.h"

enum {
    STEPS = 15,
    MORE_STEPS = 8,  // constants beside an index
    FAR_STEPS = (int)(KFENCE_FAR >> 20) + MORE_STEPS,
    STEP = 1 << 20,  // bytes, the most that a constant may add for one step
    MOST = 1 << 25,  // bytes of all blocks' states; larger functions have states inside of blocks only
    MOST_LESS = 50,  // times that less is known where a block begins, until nothing is
    MOST_POWER = 15,
    MOST_KNOWN = MULTIPLES_MOST,  // no access needs more
    MOST_OFFSET = 1 << 14,
    MOST_BLOCKS = 8,    // between two that follow for certain
    MOST_AHEAD = 1000,  // statements that are looked at for accesses to compare together
    // Bytes of those: no block has less shared memory, with what the system has of it, and with what the
    // least and the last address lose where they are rounded.
    MOST_SPAN = 1024 - 64,
};
_Static_assert((uint64_t)(STEPS + MORE_STEPS) * STEP + KFENCE_OFFSET + FENCE_FAR_SLACK < KFENCE_ZONE,
               "sinks are around the partition");

// What is known of a register.
struct state {
    // The pointer is at most STEPS - near steps from one that lies in the partition, or of which it is noted
    // that it does not and that lies in the sinks around it; 0: unknown.
    uint8_t near;
    uint16_t far;   // the pointer is at most FAR_STEPS - far steps beside the partition; 0: unknown
    uint8_t power;  // a multiple of 2^power
    // Bytes [low, high) from it on are in the block's shared memory, or in a variable of the module in global
    // memory if the register has 64 bits, if low < high.
    int16_t low, high;
};
static const struct state nothing = {.low = INT16_MAX, .high = INT16_MIN};

struct solving {
    const struct ptx_func *f;
    const struct ptx_module *m;
    const struct cfg *cfg;
    const struct regs *regs;
    struct fence_far *far;
    fence_plan *plan;
    uint32_t *number;   // by index of a register: among those of 32 and 64 bits, or PTX_NONE
    uint32_t n;         // of those
    struct state *in;   // by block and number; NULL: nothing is known where a block begins
    struct state *now;  // by number
    uint8_t *less;      // by block: times that less was known where it begins
    bool *changed;      // by block: so it was since it was looked at
    size_t next;        // item of the plan
    const bool *kept;   // by index of a register: no mask changes it; NULL: none
};

static bool meet(struct state *a, struct state b)
{
    struct state was = *a;
    a->near = a->near < b.near ? a->near : b.near;
    a->far = a->far < b.far ? a->far : b.far;
    a->power = a->power < b.power ? a->power : b.power;
    a->low = a->low > b.low ? a->low : b.low;
    a->high = a->high < b.high ? a->high : b.high;
    return a->near != was.near || a->far != was.far || a->power != was.power || a->low != was.low ||
           a->high != was.high;
}

// --- a value -----------------------------------------------------------------------------------------------

static struct state state_of(const struct solving *s, const struct ptx_operand *o)
{
    bool is = o && o->kind == PTX_REG && o->sub == PTX_SEL_NONE;
    uint32_t number = is ? s->number[regs_index(s->regs, o->id)] : PTX_NONE;
    return number == PTX_NONE ? nothing : s->now[number];
}

static bool is_small(int64_t n)
{
    return n < MOST_OFFSET && n > -MOST_OFFSET;
}

// What is known of a sum with a number.
static struct state add(struct state to, int64_t number)
{
    struct state sum = nothing;
    unsigned power = number ? (unsigned)__builtin_ctzll((uint64_t)number) : MOST_POWER;
    if (number >= STEP || number <= -STEP)
        return nothing;
    sum.near = number && to.near ? to.near - 1u : to.near;
    sum.far = number && to.far ? to.far - 1u : to.far;
    sum.power = power < to.power ? (uint8_t)power : to.power;
    if (to.low < to.high && is_small(to.low - number) && is_small(to.high - number)) {
        sum.low = (int16_t)(to.low - number);
        sum.high = (int16_t)(to.high - number);
    }
    return sum;
}

static struct state add_operand(struct state to, const struct ptx_operand *o, bool negative)
{
    bool number = o && o->kind == PTX_IMM && o->sub == PTX_IMM_INT;
    return number && o->value < STEP && o->value > -STEP ? add(to, negative ? -o->value : o->value) : nothing;
}

// What is known of a pointer to which an operand of a statement was added, a number in a register.
static struct state add_number(const struct solving *s, struct state to, uint32_t at, unsigned operand)
{
    uint64_t most = fence_far_most(s->far, at, operand), steps = most / STEP + (most % STEP != 0);
    struct state sum = nothing;
    sum.far = to.far > steps ? (uint16_t)(to.far - steps) : 0;
    return sum;
}

static struct state more(struct state a, struct state b)
{
    return b.near > a.near || b.far > a.far || b.power > a.power || b.low < b.high ? b : a;
}

// A sum: of a register with a constant, or of a pointer with a number.
static struct state sum_of(const struct solving *s, uint32_t at, bool negative)
{
    const struct ptx_stmt *stmt = &s->f->stmts[at];
    const struct ptx_operand *a = ptx_operand(stmt, 1), *b = ptx_operand(stmt, 2);
    if (a->kind == PTX_IMM)
        return negative ? nothing : add_operand(state_of(s, b), a, false);
    if (!b || b->kind == PTX_IMM)
        return add_operand(state_of(s, a), b, negative);
    struct state left = add_number(s, state_of(s, a), at, 2);
    return negative ? left : more(left, add_number(s, state_of(s, b), at, 1));
}

// The address of a variable in shared memory, if it has 32 bits, or in global memory.
static struct state of_variable(const struct solving *s, const struct ptx_operand *o, unsigned bits)
{
    const struct ptx_sym *sym = ptx_sym_behind_alias(s->m, o->id);
    bool shared = bits == 32 && sym->kind == PTX_SYM_VAR &&
                  ptx_space_is((enum ptx_space)sym->var->space) == PTX_SPACE_SHARED;
    uint64_t size = shared ? ptx_var_size(sym->var) : bits == 64 ? fence_variable_bytes(s->m, o->id) : 0;
    struct state all = nothing;
    if (o->value < 0 || o->value >= (int64_t)size)
        return nothing;
    size -= (uint64_t)o->value;
    all.low = 0;
    all.high = (int16_t)(size < MOST_OFFSET ? size : MOST_OFFSET);
    return all;
}

// Returns whether the statement loads a pointer that the host looks at before the launch: one from which an
// access of the plan has its address.
static bool is_parameter(const struct solving *s, const struct ptx_stmt *stmt)
{
    const struct ptx_form *form = stmt->form;
    const struct ptx_operand *to = ptx_operand(stmt, 0), *addr = ptx_operand(stmt, 1);
    uint64_t offset;
    if (form->id != PTX_OP_LD || !form->nspaces || !form->ntypes || !addr || to->kind != PTX_REG ||
        ptx_space_is((enum ptx_space)form->spaces[0]) != PTX_SPACE_PARAM || addr->kind != PTX_ADDR ||
        addr->sub != PTX_BASE_SYM || ptx_type_bits((enum ptx_type)form->types[form->ntypes - 1]) != 64 ||
        !roots_param_offset(s->f, addr->id, &offset))
        return false;
    for (size_t i = 0; i < s->plan->len; i++)
        if (fence_is_of_param(&s->plan->items[i]) &&
            s->plan->items[i].offset == offset + (uint64_t)addr->value)
            return true;
    return false;
}

// What the register holds that the statement writes.
static struct state written(const struct solving *s, uint32_t at)
{
    const struct ptx_stmt *stmt = &s->f->stmts[at];
    const struct ptx_form *form = stmt->form;
    const struct ptx_operand *to = ptx_operand(stmt, 0), *a = ptx_operand(stmt, 1);
    struct state parameter = nothing;
    unsigned bits = form->ntypes ? ptx_type_bits((enum ptx_type)form->types[0]) : 0;
    if (!to || to->kind != PTX_REG || !a || (bits != 32 && bits != 64))
        return nothing;
    bool same = bits == ptx_type_bits((enum ptx_type)ptx_reg_var(s->f, to->id)->type);
    bool global = !form->nspaces || ptx_space_is((enum ptx_space)form->spaces[0]) == PTX_SPACE_GLOBAL;
    parameter.near = STEPS;
    parameter.far = FAR_STEPS;
    if (form->id == PTX_OP_MAD && (ptx_form_has(form, PTX_MOD_WIDE) || bits == 64))
        return ptx_type_bits((enum ptx_type)ptx_reg_var(s->f, to->id)->type) != 64 || form->odd
                   ? nothing
                   : add_number(s, state_of(s, ptx_operand(stmt, 3)), at, 1);
    switch (form->id) {
    case PTX_OP_MOV:
        if (a->kind == PTX_SYM && same)
            return of_variable(s, a, bits);
        return same ? state_of(s, a) : nothing;
    case PTX_OP_CVTA: return same && global ? state_of(s, a) : nothing;
    case PTX_OP_ADD:
    case PTX_OP_SUB: return same && !form->odd ? sum_of(s, at, form->id == PTX_OP_SUB) : nothing;
    default: return is_parameter(s, stmt) ? parameter : nothing;
    }
}

// --- an access ---------------------------------------------------------------------------------------------

// Returns whether every thread that executes the statement makes the access.
static bool is_certain(const struct ptx_stmt *stmt, const struct fence_masked *m)
{
    return stmt->guard == PTX_NONE && !m->lanes;
}

// Returns whether bytes [low, high) from a register on fit into the variable that they are to lie in, if the
// register is a multiple of what the variable is one of.
static bool fits(const struct solving *s, const struct fence_masked *m, int32_t low, int32_t high)
{
    return m->variable == PTX_NONE || (uint64_t)(high - low + fence_variable_skew(s->m, m->variable, low)) <=
                                          fence_variable_bytes(s->m, m->variable);
}

static void look_global(const struct ptx_stmt *stmt, struct fence_masked *m, int64_t offset,
                        struct state *now, bool kept)
{
    unsigned power = (unsigned)__builtin_ctz(m->align);
    bool whole = !(offset & ((int64_t)m->align - 1));
    m->notes = !now->near;
    m->masks = m->notes && !now->far;
    m->aligns = m->align > 1 && !(whole && power <= now->power);
    // A pointer that a guard keeps from being used may be anything, and another access may count on it.
    m->in_place = !kept && stmt->guard == PTX_NONE && (whole || !m->aligns);
    bool stays = m->notes && !m->masks && stmt->guard == PTX_NONE;
    now->near = stays || (m->masks && m->in_place) ? STEPS : now->near;
    if (!m->in_place)
        return;
    now->far = m->masks ? FAR_STEPS : now->far;
    now->power = m->aligns && now->power < power ? (uint8_t)power : now->power;
}

static void look_shared(const struct solving *s, struct fence_masked *m, int64_t offset, struct state *now,
                        bool kept)
{
    const struct ptx_stmt *stmt = &s->f->stmts[m->stmt];
    unsigned power = (unsigned)__builtin_ctz(m->align);
    bool whole = !(offset & ((int64_t)m->align - 1));
    m->aligns = m->align > 1 && !(whole && power <= now->power);
    // What is rounded down is compared anew.
    m->masks = m->aligns || now->low > offset || now->high < offset + m->width;
    m->in_place =
        !kept && m->shares && is_certain(stmt, m) && (whole || !m->aligns) && fits(s, m, m->low, m->high);
    if (!m->in_place)
        return;
    // Where the mask changes the register, what was known of others of its bytes no longer holds.
    bool small = is_small(m->low) && is_small(m->high);
    if (m->masks) {
        now->low = small ? (int16_t)m->low : nothing.low;
        now->high = small ? (int16_t)m->high : nothing.high;
    }
    now->power = m->aligns && now->power < power ? (uint8_t)power : now->power;
    unsigned known = m->known > now->power ? m->known : now->power;
    m->power = known < MOST_KNOWN ? (uint8_t)known : MOST_KNOWN;
}

// Decides what the access needs, and notes what is known after it.
static void look_access(struct solving *s, struct fence_masked *m)
{
    // No register has the address for another access.
    m->masks = m->reg == PTX_NONE || m->generic;
    m->aligns = m->generic && m->align > 1;
    if (m->masks)
        return;
    struct state *now = &s->now[s->number[regs_index(s->regs, m->reg)]];
    bool kept = s->kept && s->kept[regs_index(s->regs, m->reg)];
    if (!fence_is_of_param(m))
        look_shared(s, m, m->start, now, kept);
    else
        look_global(&s->f->stmts[m->stmt], m, m->start, now, kept);
}

// Returns whether a thread that executes a statement goes on, here or where it branches to, and keeps the
// register.
static bool goes_on(const struct solving *s, uint32_t at, uint32_t reg)
{
    const struct ptx_stmt *stmt = &s->f->stmts[at];
    if (stmt->kind != PTX_INSN)
        return true;
    struct regs_list list = regs_at(s->regs, at);
    uint8_t control = stmt->form->op->control;
    bool is = control == PTX_FALLS || control == PTX_BARRIER || control == PTX_BRANCH;
    for (uint32_t i = 0; i < list.n && is; i++)
        is = !list.at[i].writes || list.at[i].reg != reg;
    return is;
}

// Returns the next block to which all paths from the end of this one lead, forward in the text and keeping
// the register; nblocks if there is none within a few.
static uint32_t next_block(const struct solving *s, uint32_t b, uint32_t reg)
{
    uint32_t to = b + 1, none = s->cfg->nblocks;
    for (uint32_t i = b; i < to; i++) {
        struct graph_nodes out = graph_succ(s->cfg->graph, i);
        if (s->cfg->exits[i] || !out.n)
            return none;
        for (uint32_t e = 0; e < out.n; e++) {
            if (out.at[e] <= i)
                return none;
            to = out.at[e] > to ? out.at[e] : to;
        }
        if (to - b > MOST_BLOCKS)
            return none;
        for (uint32_t at = s->cfg->blocks[i].first; i > b && at < s->cfg->blocks[i].last; at++)
            if (!goes_on(s, at, reg))
                return none;
    }
    return to < none ? to : none;
}

// Adds the bytes that a statement accesses by the item's register, if it accesses them for certain.
static void add_access(const struct solving *s, struct fence_masked *m, const struct fence_masked *n)
{
    uint64_t bytes = m->shared ? MOST_SPAN : fence_variable_bytes(s->m, m->variable);
    int32_t most = bytes < MOST_SPAN ? (int32_t)bytes : MOST_SPAN;
    int32_t low = n->start < m->low ? n->start : m->low;
    int32_t high = n->start + n->width > m->high ? n->start + n->width : m->high;
    if (n->shared != m->shared || n->generic || n->variable != m->variable || n->reg != m->reg ||
        !is_certain(&s->f->stmts[n->stmt], n) || high - low > most || !fits(s, m, low, high))
        return;
    m->low = low;
    m->high = high;
}

// Finds the bytes that are accessed by the item's register from its statement on, in the same block and those
// that follow for certain: each of these accesses is made if the first one is.
static void find_group(const struct solving *s, size_t first)
{
    struct fence_masked *m = &s->plan->items[first];
    m->low = m->start;
    m->high = m->start + m->width;
    if (fence_is_of_param(m) || m->generic || m->reg == PTX_NONE || !is_certain(&s->f->stmts[m->stmt], m))
        return;
    uint32_t reg = regs_index(s->regs, m->reg), at = m->stmt, none = s->cfg->nblocks;
    size_t next = first + 1;
    for (uint32_t b = s->cfg->block_of[at]; b < none; b = next_block(s, b, reg)) {
        const struct cfg_block *block = &s->cfg->blocks[b];
        for (at = at > block->first ? at : block->first; at < block->last; at++) {
            for (; next < s->plan->len && s->plan->items[next].stmt <= at; next++)
                if (s->plan->items[next].stmt == at)
                    add_access(s, m, &s->plan->items[next]);
            if (!goes_on(s, at, reg) || at - m->stmt >= MOST_AHEAD)
                return;
        }
    }
}

// A sum of a register with a constant.
struct sum {
    uint32_t from, to;
    int32_t more;
};
typedef VEC(struct sum) sum_list;

static int find_sums(const struct ptx_func *f, sum_list *to)
{
    int err = 0;
    for (uint32_t i = 0; i < f->nstmts && !err; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind != PTX_INSN || (s->form->id != PTX_OP_ADD && s->form->id != PTX_OP_MOV))
            continue;
        const struct ptx_operand *a = ptx_operand(s, 0), *b = ptx_operand(s, 1), *c = ptx_operand(s, 2);
        if (a && a->kind == PTX_REG && b && b->kind == PTX_REG && (!c || c->kind == PTX_IMM))
            err = vec_push(to, ((struct sum){b->id, a->id, c ? (int32_t)c->value : 0}));
    }
    return err;
}

enum { MOST_SHARED = 1024 };  // accesses, or sums, among which others that profit are looked for

static bool profits(const fence_plan *plan, const struct fence_masked *m, uint32_t reg, int32_t more)
{
    for (size_t i = 0; i < plan->len; i++) {
        const struct fence_masked *n = &plan->items[i];
        int64_t start = (int64_t)n->start + more;
        if (n != m && n->reg == reg && (m->align > 1 || (start >= m->low && start + n->width <= m->high)))
            return true;
    }
    return false;
}

// Returns whether another access may profit from a register that the item's code has changed.
static bool shares(const fence_plan *plan, const sum_list *sums, const struct fence_masked *m)
{
    bool may =
        !m->shared || plan->len > MOST_SHARED || sums->len > MOST_SHARED || profits(plan, m, m->reg, 0);
    for (size_t i = 0; i < sums->len && !may; i++)
        may = sums->items[i].from == m->reg && profits(plan, m, sums->items[i].to, sums->items[i].more);
    return may;
}

static void look_stmt(struct solving *s, uint32_t at)
{
    const struct ptx_stmt *stmt = &s->f->stmts[at];
    for (; s->next < s->plan->len && s->plan->items[s->next].stmt == at; s->next++)
        look_access(s, &s->plan->items[s->next]);
    if (stmt->kind != PTX_INSN)
        return;
    struct regs_list list = regs_at(s->regs, at);
    struct state value = nothing;
    bool known = false;
    for (uint32_t i = 0; i < list.n; i++) {
        uint32_t number = s->number[list.at[i].reg];
        if (!list.at[i].writes || number == PTX_NONE)
            continue;
        if (!known)
            value = written(s, at);
        known = true;
        if (list.at[i].partial)
            meet(&s->now[number], value);
        else
            s->now[number] = value;
    }
}

// --- the function ------------------------------------------------------------------------------------------

static void look_block(struct solving *s, uint32_t b)
{
    const struct cfg_block *block = &s->cfg->blocks[b];
    for (uint32_t i = 0; i < s->n; i++)
        s->now[i] = s->in ? s->in[(size_t)b * s->n + i] : nothing;
    size_t low = 0, high = s->plan->len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->plan->items[middle].stmt < block->first)
            low = middle + 1;
        else
            high = middle;
    }
    s->next = low;
    for (uint32_t at = block->first; at < block->last; at++)
        look_stmt(s, at);
}

// Passes what holds at the end of a block on. Of a register of which less is known again and again, in a
// loop, nothing is.
static void pass_on(struct solving *s, uint32_t b)
{
    struct graph_nodes to = graph_succ(s->cfg->graph, b);
    for (uint32_t e = 0; e < to.n; e++) {
        struct state *in = s->in + (size_t)to.at[e] * s->n;
        bool less = false;
        for (uint32_t r = 0; r < s->n; r++) {
            bool lower = meet(&in[r], s->now[r]);
            less |= lower;
            if (lower && s->less[to.at[e]] == MOST_LESS)
                in[r] = nothing;
        }
        s->less[to.at[e]] += less && s->less[to.at[e]] < MOST_LESS;
        s->changed[to.at[e]] |= less;
    }
}

static void solve(struct solving *s)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t b = 0; b < s->cfg->nblocks; b++) {
            if (!s->changed[b])
                continue;
            again = true;
            s->changed[b] = false;
            look_block(s, b);
            pass_on(s, b);
        }
    }
}

static int start(struct solving *s, struct arena *arena)
{
    size_t blocks = s->cfg->nblocks;
    s->number = ARENA_ARRAY(arena, uint32_t, s->regs->n + 1u);
    s->changed = ARENA_ARRAY(arena, bool, blocks + 1u);
    s->less = ARENA_ARRAY(arena, uint8_t, blocks + 1u);
    if (!s->number || !s->changed || !s->less)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->regs->n; i++) {
        const struct ptx_var *v = ptx_reg_var(s->f, s->regs->reg[i]);
        s->number[i] = ptx_type_bits((enum ptx_type)v->type) >= 32 ? s->n++ : PTX_NONE;
    }
    memset(s->changed, true, blocks);
    memset(s->less, 0, blocks);
    s->now = ARENA_ARRAY(arena, struct state, s->n + 1u);
    if (!s->now)
        return -ENOMEM;
    if (!s->n || blocks > MOST / sizeof(struct state) / s->n)
        return 0;
    s->in = ARENA_ARRAY(arena, struct state, s->n * blocks);
    if (!s->in)
        return -ENOMEM;
    const struct state all = {
        .near = STEPS, .far = FAR_STEPS, .power = MOST_POWER, .low = INT16_MIN, .high = INT16_MAX};
    for (size_t i = 0; i < s->n * blocks; i++)
        s->in[i] = i < s->n ? nothing : all;
    return 0;
}

int fence_find_near(struct fencing *k, uint32_t index, fence_plan *plan, const bool *kept)
{
    struct solving s = {.f = k->all.c->funcs[index], .m = k->all.c->m, .plan = plan, .kept = kept};
    struct flow *flow = pass_flow(k->all.c, index);
    const struct reach *reach;
    const struct loops *loops;
    sum_list sums = {0};
    struct arena arena;
    arena_init(&arena, 0);
    int err = flow_cfg(flow, &s.cfg);
    if (!err)
        err = flow_reaching(flow, &reach);
    if (!err)
        err = flow_loops(flow, &loops);
    if (!err)
        err = fence_far_build(s.f, reach, &arena, &s.far);
    if (!err)
        err = flow_regs(flow, &s.regs);
    if (!err)
        err = start(&s, &arena);
    if (!err)
        err = find_sums(s.f, &sums);
    for (size_t i = 0; !err && i < plan->len; i++) {
        plan->items[i].often = loops_repeats(loops, s.cfg->block_of[plan->items[i].stmt]);
        find_group(&s, i);
        plan->items[i].shares = shares(plan, &sums, &plan->items[i]);
    }
    vec_free(&sums);
    if (!err && s.in)
        solve(&s);
    for (uint32_t b = 0; !err && b < s.cfg->nblocks; b++)
        look_block(&s, b);
    arena_free(&arena);
    return err;
}
