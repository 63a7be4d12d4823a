// SPDX-License-Identifier: MIT
// Bounds through calls. A copy of a function has two more parameters, base and size, for each of its SLOTS:
// places in its parameters that hold a pointer whose bounds it needs, for an access or to pass it on. Checked
// code that calls the copy by its name passes them. A pointer that was moved out of its buffer before the
// call is thereby judged by the buffer that it was meant for.
//
// What is passed means the same as in registers (struct check_bounds), so that a root that is in no buffer
// stays what it is. Where the bounds of an argument are not known, its own value is looked up in the table,
// as the function would do itself; where not even the value is, UNKNOWN is passed: each access then asks
// KCHECK_ACCESS, which goes by the address.
//
// A pointer that a function returns has the bounds of the argument that it was always computed from, if there
// is one; the caller has them. Others are looked up, as are the pointers that functions get whose address is
// taken: those keep their parameters.
#include <errno.h>
#include <string.h>

#include "pass/pass_check_state.h"

static const int64_t UNKNOWN = -1;

#define PUT(k, place, at, text, ...) \
    edit_insert((k)->k->c->edit, (place), (at), (text), EDIT_ARGS(__VA_ARGS__))

// --- which function calls which ----------------------------------------------------------------------------

uint32_t check_callee(const struct checking *k, const struct ptx_stmt *s)
{
    const struct ptx_module *m = k->c->m;
    const struct ptx_operand *callee =
        s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
    if (!callee || callee->kind != PTX_SYM)
        return PTX_NONE;
    const struct ptx_sym *sym = ptx_sym_behind_alias(m, callee->id);
    if (sym->kind != PTX_SYM_FUNC)
        return PTX_NONE;
    uint32_t to = map_get(&k->by_sym, ptx_sym(m, sym->func->sym)->name);
    return to == MAP_NONE ? PTX_NONE : to;
}

// A function whose calls are being followed, from statement `next` on.
struct step {
    uint32_t func, next;
};

static uint32_t next_callee(const struct checking *k, struct step *step)
{
    const struct ptx_func *f = k->copies[step->func];
    while (f && step->next < f->nstmts) {
        uint32_t to = check_callee(k, &f->stmts[step->next++]);
        if (to != PTX_NONE)
            return to;
    }
    return PTX_NONE;
}

int check_call_order(struct checking *k, uint32_t *order)
{
    VEC(struct step) open = {0};
    uint32_t n = k->c->result->nfuncs, listed = 0;
    bool *seen = ARENA_ARRAY(&k->c->m->arena, bool, n + 1u);
    int err = seen ? 0 : -ENOMEM;
    for (uint32_t i = 0; i <= n && !err; i++)
        seen[i] = false, order[i] = PTX_NONE;
    for (uint32_t i = 0; i < n && !err; i++) {
        if (!seen[i])
            err = vec_push(&open, (struct step){i, 0});
        seen[i] = true;
        while (open.len && !err) {
            uint32_t to = next_callee(k, &open.items[open.len - 1]);
            if (to == PTX_NONE)
                order[listed++] = open.items[--open.len].func;
            else if (!seen[to])
                err = vec_push(&open, (struct step){to, 0});
            if (to != PTX_NONE)
                seen[to] = true;
        }
    }
    vec_free(&open);
    return err;
}

// --- parameters of the function ----------------------------------------------------------------------------

static bool is_param_form(const struct ptx_form *form)
{
    return form->nspaces && form->ntypes &&
           ptx_space_is((enum ptx_space)form->spaces[0]) == PTX_SPACE_PARAM &&
           ptx_type_bits((enum ptx_type)form->types[form->ntypes - 1]) == 64;
}

// Returns the position of a register among the items of an operand; -1 if it is not there.
static int position(const struct ptx_operand *o, uint32_t reg)
{
    if (!ptx_is_group(o))
        return o->kind == PTX_REG && o->id == reg ? 0 : -1;
    for (int i = 0; i < o->span; i++)
        if (o[1 + i].kind == PTX_REG && o[1 + i].id == reg)
            return i;
    return -1;
}

// Finds the place in the parameters that a value is loaded from. Returns false if there is none.
static bool loaded_from(const struct check_func *k, uint32_t value, struct check_slot *slot)
{
    const struct reach_value *v = &k->reach->value.items[value];
    if (k->f->is_entry || v->kind != REACH_DEF || v->partial)
        return false;
    const struct ptx_stmt *s = &k->f->stmts[v->place];
    const struct ptx_operand *to = ptx_operand(s, 0), *addr = ptx_operand(s, 1);
    if (s->form->id != PTX_OP_LD || !is_param_form(s->form) || !to || !addr || addr->kind != PTX_ADDR ||
        addr->sub != PTX_BASE_SYM || addr->value < 0)
        return false;
    int item = position(to, k->reach->regs->reg[v->reg]);
    for (uint32_t i = 0; item >= 0 && i < k->f->nparams; i++) {
        uint64_t at = (uint64_t)addr->value + 8u * (unsigned)item;
        if (k->f->params[i].sym == addr->id && at + 8 <= ptx_var_size(&k->f->params[i])) {
            *slot = (struct check_slot){.param = i, .offset = (uint32_t)at};
            return true;
        }
    }
    return false;
}

static uint32_t find_slot(const struct check_slots *slots, const struct check_slot *slot)
{
    for (uint32_t i = 0; i < slots->n; i++)
        if (slots->at[i].param == slot->param && slots->at[i].offset == slot->offset)
            return i;
    return CHECK_MOST_SLOTS;
}

uint32_t check_slot_of(const struct check_func *k, uint32_t value)
{
    struct check_slot slot;
    if (!k->slots || k->roots->of[value].kind != ROOTS_VALUE || !loaded_from(k, value, &slot))
        return CHECK_MOST_SLOTS;
    return find_slot(k->slots, &slot);
}

// Follows a root to the parameter that it came from, through calls that return what they were passed. Returns
// false if there is none.
static bool came_from(const struct check_func *k, struct roots_of root, struct check_slot *slot)
{
    for (unsigned i = 0; i < 16 && root.kind == ROOTS_VALUE; i++) {
        if (loaded_from(k, root.id, slot))
            return true;
        const struct check_pass *p = check_pass_of(k, root.id);
        root.kind = p ? p->root.kind : ROOTS_NONE;
        root.id = p ? p->root.id : 0;
    }
    return false;
}

static bool is_store_to(const struct ptx_stmt *s, uint32_t sym)
{
    const struct ptx_operand *addr =
        s->kind == PTX_INSN && s->form->id == PTX_OP_ST ? ptx_operand(s, 0) : NULL;
    return addr && addr->kind == PTX_ADDR && addr->sub == PTX_BASE_SYM && addr->id == sym;
}

// Finds the parameter that every result is computed from. Returns false if there is none.
static bool find_returned(const struct check_func *k, struct check_slot *slot)
{
    const struct ptx_func *f = k->f;
    bool found = false;
    if (f->nrets != 1 || f->rets[0].space != PTX_SPACE_PARAM || ptx_var_size(&f->rets[0]) != 8)
        return false;
    for (uint32_t i = 0; i < f->nstmts; i++) {
        struct check_slot from = {0};
        const struct ptx_stmt *s = &f->stmts[i];
        if (!is_store_to(s, f->rets[0].sym))
            continue;
        const struct ptx_operand *o = ptx_operand(s, 1);
        uint32_t reg =
            o->kind == PTX_REG && o->sub == PTX_SEL_NONE ? regs_index(k->reach->regs, o->id) : REGS_NONE;
        uint32_t value = reg == REGS_NONE || s->guard != PTX_NONE ? REACH_NONE : reach_read(k->reach, i, reg);
        if (value == REACH_NONE || !is_param_form(s->form) || !came_from(k, k->roots->of[value], &from) ||
            (found && (from.param != slot->param || from.offset != slot->offset)))
            return false;
        *slot = from;
        found = true;
    }
    return found;
}

int check_find_slots(struct check_func *k, struct check_slots **out)
{
    struct check_slots found = {.returned = CHECK_MOST_SLOTS};
    struct check_slot slot;
    if (find_returned(k, &slot)) {
        found.returned = found.n;
        found.at[found.n++] = slot;
    }
    for (uint32_t v = 0; v < k->reach->ndefs && found.n < CHECK_MOST_SLOTS; v++)
        if (k->bounds[v].needed && k->roots->of[v].kind == ROOTS_VALUE && loaded_from(k, v, &slot) &&
            find_slot(&found, &slot) == CHECK_MOST_SLOTS)
            found.at[found.n++] = slot;
    *out = NULL;
    if (!found.n)
        return 0;
    *out = ARENA_NEW(&k->k->c->m->arena, struct check_slots);
    if (!*out)
        return -ENOMEM;
    **out = found;
    return 0;
}

void check_add_slots(struct checking *k, struct ptx_func *f, struct check_slots *slots)
{
    for (uint32_t i = 0; i < slots->n; i++) {
        slots->at[i].base = edit_add_param(k->c->edit, f, PTX_B64, 0, 1);
        slots->at[i].size = edit_add_param(k->c->edit, f, PTX_B64, 0, 1);
    }
}

// --- arguments of calls ------------------------------------------------------------------------------------

// Sets what is passed: a register of 64 bits, or a number.
static void set_pointer(const struct check_func *k, struct check_pass *p, uint32_t stmt,
                        const struct ptx_operand *o)
{
    if (o->kind == PTX_IMM && o->sub == PTX_IMM_INT)
        p->pointer = edit_imm(o->value);
    if (o->kind != PTX_REG || o->sub != PTX_SEL_NONE)
        return;
    enum ptx_type type = (enum ptx_type)ptx_reg_var(k->f, o->id)->type;
    if (ptx_type_bits(type) != 64 || ptx_type_class(type) == PTX_CLASS_FLOAT)
        return;
    uint32_t value = reach_read(k->reach, stmt, regs_index(k->reach->regs, o->id));
    p->pointer = edit_reg(o->id);
    if (value != REACH_NONE)
        p->root = k->roots->of[value];
}

// Looks at a statement before a call. Returns whether it writes any of the 8 bytes at `offset` of the
// argument; *p then says what, if it is known.
static bool stores(const struct check_func *k, uint32_t stmt, uint32_t arg, uint32_t offset,
                   struct check_pass *p)
{
    const struct ptx_stmt *s = &k->f->stmts[stmt];
    struct ptx_mem mem[PTX_MAX_MEM];
    const struct ptx_operand *addr =
        s->kind == PTX_INSN && s->form->id == PTX_OP_ST ? ptx_operand(s, 0) : NULL;
    if (!addr || addr->kind != PTX_ADDR || addr->sub != PTX_BASE_SYM || addr->id != arg ||
        !ptx_stmt_mem(k->f, s, mem) || addr->value >= (int64_t)offset + 8 ||
        addr->value + mem[0].bytes <= (int64_t)offset)
        return false;
    int64_t item = ((int64_t)offset - addr->value) / 8;
    const struct ptx_operand *from = ptx_operand(s, 1);
    bool whole = is_param_form(s->form) && s->guard == PTX_NONE && addr->value + 8 * item == (int64_t)offset;
    p->store = stmt;
    if (whole && ptx_is_group(from) ? item < from->span : whole && item == 0)
        set_pointer(k, p, stmt, ptx_is_group(from) ? &from[1 + item] : from);
    return true;
}

struct check_pass check_find_pass(const struct check_func *k, uint32_t call, const struct check_slot *slot)
{
    struct check_pass p = {.call = call, .store = call, .pointer = {.kind = PTX_SINK}};
    const struct ptx_operand *list = ptx_operand(&k->f->stmts[call], 2), *arg = list + 1;
    for (uint32_t i = 0; i < slot->param; i++)
        arg = ptx_next(arg);
    p.root.kind = ROOTS_OWN;
    if (arg->kind == PTX_SYM) {
        uint32_t first = k->cfg->blocks[k->cfg->block_of[call]].first;
        for (uint32_t i = call; i > first && !stores(k, i - 1, arg->id, slot->offset, &p);)
            i--;
    } else if (!slot->offset) {
        set_pointer(k, &p, call, arg);
    }
    return p;
}

int check_find_passes(struct check_func *k)
{
    for (uint32_t b = 0; b < k->cfg->nblocks; b++)
        for (uint32_t i = k->cfg->blocks[b].first; i < k->cfg->blocks[b].last; i++) {
            uint32_t to = check_callee(k->k, &k->f->stmts[i]);
            const struct check_slots *slots = to == PTX_NONE ? NULL : k->k->slots[to];
            for (uint32_t n = 0; slots && n < slots->n; n++)
                if (vec_push(&k->passes, check_find_pass(k, i, &slots->at[n])))
                    return -ENOMEM;
        }
    return 0;
}

// Returns the call whose result is in the variable, before a statement of its block; PTX_NONE if there is
// none.
static uint32_t call_before(const struct check_func *k, uint32_t stmt, uint32_t result)
{
    uint32_t first = k->cfg->blocks[k->cfg->block_of[stmt]].first;
    for (uint32_t i = stmt; i-- > first;) {
        const struct ptx_stmt *s = &k->f->stmts[i];
        const struct ptx_operand *list =
            s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 0) : NULL;
        if (list && list->kind == PTX_LIST && list->span == 1 && list[1].kind == PTX_SYM &&
            list[1].id == result)
            return s->guard == PTX_NONE ? i : PTX_NONE;
        if (is_store_to(s, result))
            return PTX_NONE;
    }
    return PTX_NONE;
}

// Returns the first of the call's items of k->passes, which are in the order of statements; NULL if it has
// none.
static const struct check_pass *first_pass(const struct check_func *k, uint32_t call)
{
    size_t low = 0, high = k->passes.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->passes.items[middle].call < call)
            low = middle + 1;
        else
            high = middle;
    }
    return low < k->passes.len && k->passes.items[low].call == call ? &k->passes.items[low] : NULL;
}

uint32_t check_call_of(const struct check_func *k, uint32_t value)
{
    const struct reach_value *v = &k->reach->value.items[value];
    if (v->kind != REACH_DEF || v->partial)
        return PTX_NONE;
    const struct ptx_stmt *s = &k->f->stmts[v->place];
    const struct ptx_operand *to = ptx_operand(s, 0), *addr = ptx_operand(s, 1);
    if (s->form->id != PTX_OP_LD || !is_param_form(s->form) || !to || to->kind != PTX_REG || !addr ||
        addr->kind != PTX_ADDR || addr->sub != PTX_BASE_SYM || addr->value)
        return PTX_NONE;
    return call_before(k, v->place, addr->id);
}

const struct check_pass *check_pass_of(const struct check_func *k, uint32_t value)
{
    uint32_t call = check_call_of(k, value);
    uint32_t callee = call == PTX_NONE ? PTX_NONE : check_callee(k->k, &k->f->stmts[call]);
    const struct check_slots *slots = callee == PTX_NONE ? NULL : k->k->slots[callee];
    const struct check_pass *p = slots && slots->returned < slots->n ? first_pass(k, call) : NULL;
    return p && p[slots->returned].pointer.kind != PTX_SINK ? &p[slots->returned] : NULL;
}

// The bounds of a parameter of a kernel, from the host: if they are 0, the root is in no live buffer, and its
// own value stands for it.
static void set_param(struct check_func *k, enum edit_place place, const struct check_pass *p, uint32_t base,
                      uint32_t size)
{
    check_set_bounds(k, place, p->store, p->root, base, size);
    for (uint32_t i = 0; i < k->f->nparams; i++) {
        uint64_t at;
        const struct ptx_var *v = &k->f->params[i];
        if (roots_param_offset(k->f, v->sym, &at) && p->root.id >= at &&
            p->root.id + 8 <= at + ptx_var_size(v))
            PUT(k, place, p->store, "setp.eq.u64 %0, %1, 0;\n@%0 ld.param.u64 %1, [%2];", edit_reg(k->ok),
                edit_reg(base), edit_sym_at(v->sym, p->root.id - (int64_t)at));
    }
}

static void emit_pass(struct check_func *k, const struct check_pass *p, uint32_t base, uint32_t size)
{
    enum edit_place place = p->store == p->call ? EDIT_BEFORE : EDIT_AFTER;
    if (p->pointer.kind == PTX_SINK) {
        PUT(k, place, p->store, "mov.u64 %0, %2;\nmov.u64 %1, 0;", edit_reg(base), edit_reg(size),
            edit_imm(UNKNOWN));
    } else if (p->root.kind == ROOTS_PARAM) {
        set_param(k, place, p, base, size);
    } else if (p->root.kind == ROOTS_VALUE || p->root.kind == ROOTS_VARIABLE) {
        check_set_bounds(k, place, p->store, p->root, base, size);
    } else {
        PUT(k, place, p->store, "mov.u64 %0, %1;", edit_reg(k->t), p->pointer);
        check_lookup(k, place, p->store, edit_reg(k->t), base, size);
    }
    if (p->root.kind == ROOTS_WEB && p->pointer.kind != PTX_SINK) {
        // A web that holds a number has no bounds: then the value itself was looked up.
        const struct check_bounds *web = check_bounds_of(k, p->root);
        PUT(k, place, p->store, "setp.ne.u64 %0, %1, 0;\n@%0 mov.u64 %2, %1;\n@%0 mov.u64 %3, %4;",
            edit_reg(k->ok), edit_reg(web->base), edit_reg(base), edit_reg(size), edit_reg(web->size));
    }
}

size_t check_emit_passes(struct check_func *k, size_t first)
{
    struct ptx_operand args[2 * CHECK_MOST_SLOTS];
    struct edit *e = k->k->c->edit;
    uint32_t call = k->passes.items[first].call;
    size_t i = first;
    for (; i < k->passes.len && k->passes.items[i].call == call; i++) {
        const struct check_pass *p = &k->passes.items[i];
        emit_pass(k, p, p->base, p->size);
        args[2 * (i - first)] = edit_reg(p->base);
        args[2 * (i - first) + 1] = edit_reg(p->size);
    }
    edit_add_args(e, call, 2 * (unsigned)(i - first), args);
    return i;
}

// --- the launch --------------------------------------------------------------------------------------------

bool check_is_systems(struct str name)
{
    static const char *const theirs[] = {"vprintf", "malloc", "free", "cuda", "__"};
    for (unsigned i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (name.len >= strlen(theirs[i]) && !memcmp(name.ptr, theirs[i], strlen(theirs[i])))
            return true;
    return false;
}

// Returns whether a call may lead to checked code: of a function that has a checked copy, through a pointer,
// or of one in another module.
static bool calls_checked(const struct checking *k, const struct ptx_stmt *s)
{
    const struct ptx_operand *callee =
        s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
    uint32_t to = callee ? check_callee(k, s) : PTX_NONE;
    if (!callee || to != PTX_NONE)
        return callee && k->copies[to];
    if (callee->kind != PTX_SYM)
        return true;
    return !check_is_systems(ptx_sym(k->c->m, callee->id)->name);
}

bool check_calls_checked(const struct check_func *k)
{
    for (uint32_t i = 0; i < k->f->nstmts; i++)
        if (calls_checked(k->k, &k->f->stmts[i]))
            return true;
    return false;
}

bool check_enters(const struct check_func *k)
{
    return k->hidden != PTX_NONE && check_calls_checked(k);
}
