// SPDX-License-Identifier: MIT
// Accesses of the module's own variables in global memory, which lie outside of the partition, and of shared
// memory by generic addresses. An address
// that was made from a variable's is compared with the bytes of this variable, in a few instructions; what
// lies elsewhere is looked up as other addresses are. The same holds for pointers that a function has loaded
// or got, if they are neither in the partition nor in two pieces of memory that are compared first: the
// module's variables, among them the tables of virtual functions, and the heap of malloc in kernels. In the
// masked variant it becomes the variable's first byte.
#include <errno.h>

#include "flow/multiples.h"
#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

enum { MOST_POWER = 5 };  // no access has to be aligned to more

uint64_t fence_variable_bytes(const struct ptx_module *m, uint32_t sym)
{
    const struct ptx_sym *s = ptx_sym_behind_alias(m, sym);
    const struct ptx_var *v = s->kind == PTX_SYM_VAR ? s->var : NULL;
    bool own = v && v->space == PTX_SPACE_GLOBAL && v->linkage != PTX_EXTERN && v->linkage != PTX_COMMON;
    return own ? ptx_var_size(v) : 0;
}

unsigned fence_variable_power(const struct ptx_module *m, uint32_t sym)
{
    unsigned power = multiples_of_variable(ptx_sym_behind_alias(m, sym)->var);
    return power < MOST_POWER ? power : MOST_POWER;
}

int32_t fence_variable_skew(const struct ptx_module *m, uint32_t sym, int32_t low)
{
    return low & ((1 << fence_variable_power(m, sym)) - 1);
}

uint32_t fence_variable_of(const struct roots *r, struct roots_of root, const struct ptx_mem *mem)
{
    enum ptx_space space = ptx_space_is((enum ptx_space)mem->space);
    bool may = (space == PTX_SPACE_GENERIC || space == PTX_SPACE_GLOBAL) && root.kind == ROOTS_VARIABLE &&
               mem->extent == PTX_EXTENT_PLAIN && mem->bytes;
    return may && fence_variable_bytes(r->m, root.id) >= mem->bytes ? root.id : PTX_NONE;
}

// Returns whether the address was made from a pointer that may be one to any memory, and the access lies in a
// window if its first byte does.
static bool is_pointer(struct roots_of root, const struct ptx_mem *mem)
{
    return (root.kind == ROOTS_VALUE || root.kind == ROOTS_WEB || root.kind == ROOTS_OWN) &&
           mem->extent == PTX_EXTENT_PLAIN && mem->bytes && mem->bytes <= KFENCE_GRANULE &&
           fence_alignment(mem) == mem->bytes;
}

bool fence_is_generic_shared(const struct roots *r, struct roots_of root, const struct ptx_mem *mem)
{
    if (mem->space != PTX_SPACE_GENERIC || mem->extent != PTX_EXTENT_PLAIN || !mem->bytes ||
        mem->bytes > FENCE_MOST_SHARED)
        return false;
    if (root.kind == ROOTS_GENERIC)
        return roots_space(r->m, root) == PTX_SPACE_SHARED;
    if (root.kind != ROOTS_VALUE)
        return false;
    const struct reach_value *v = &r->reach->value.items[root.id];
    return v->kind == REACH_DEF && r->f->stmts[v->place].kind == PTX_INSN &&
           r->f->stmts[v->place].form->id == PTX_OP_MAPA;
}

int fence_find_variables(struct fencing *k, uint32_t index, fence_variables *to)
{
    const struct ptx_func *f = k->all.c->funcs[index];
    const struct roots *roots;
    int err = flow_roots(pass_flow(k->all.c, index), &roots);
    if (err)
        return err == -E2BIG ? 0 : err;
    for (uint32_t i = 0; i < f->nstmts && !err; i++) {
        struct ptx_mem mem[PTX_MAX_MEM];
        const struct ptx_stmt *s = &f->stmts[i];
        unsigned n = s->kind == PTX_INSN ? ptx_stmt_mem(f, s, mem) : 0;
        for (unsigned row = 0; row < n && !err; row++) {
            const struct ptx_operand *addr = mem[row].addr;
            if (addr->kind != PTX_ADDR || addr->sub != PTX_BASE_REG)
                continue;
            struct roots_of root = roots_address(roots, i, addr);
            uint32_t sym = fence_variable_of(roots, root, &mem[row]);
            bool shared = fence_is_generic_shared(roots, root, &mem[row]);
            if (sym != PTX_NONE || shared || is_pointer(root, &mem[row]))
                err = vec_push(to, ((struct fence_variable){i, sym, (uint8_t)row, shared}));
        }
    }
    return err;
}

const struct fence_variable *fence_variable_at(struct fence_func *k, uint32_t at, unsigned row)
{
    const fence_variables *all = k->variables;
    while (k->next_variable < all->len && all->items[k->next_variable].stmt < at)
        k->next_variable++;
    for (size_t i = k->next_variable; i < all->len && all->items[i].stmt == at; i++)
        if (all->items[i].row == row)
            return &all->items[i];
    return NULL;
}

void fence_compare_variable(struct fence_func *k, uint32_t at, uint32_t sym, uint32_t to, int64_t offset,
                            uint32_t width)
{
    uint64_t bytes = fence_variable_bytes(k->k->all.c->m, sym);
    BEFORE(k, at, "mov.u64 %0, %1;\nsub.s64 %0, %2, %0;", edit_reg(k->what), edit_sym(sym), edit_reg(to));
    if (offset)
        BEFORE(k, at, "add.s64 %0, %0, %1;", edit_reg(k->what), edit_imm(offset));
    BEFORE(k, at, "setp.gt.u64 %0, %1, %2;\nselp.b32 %3, 1, 0, %0;", edit_reg(k->bad), edit_reg(k->what),
           edit_imm((int64_t)(bytes - width)), edit_reg(k->bits));
}

static bool has_heap(const struct fencing *k)
{
    return k->taker[0] != PTX_NONE || k->taker[1] != PTX_NONE;
}

// Loads the ends of the heap if the host has said where they are.
static const char ends_text[] = "ld.const.b64 %0, [%1];\nsetp.ne.u64 %2, %0, 0;\n"
                                "@%2 ld.global.v2.b64 {%3, %4}, [%5];";

void fence_load_heap(struct fence_func *k)
{
    struct edit *e = k->k->all.c->edit;
    bool loads = false;
    for (size_t i = 0; i < k->variables->len; i++)
        loads |= k->variables->items[i].sym == PTX_NONE && !k->variables->items[i].shared;
    if (!has_heap(k->k) || !loads)
        return;
    k->heap_low = edit_new_reg(e, PTX_B64);
    k->heap_high = edit_new_reg(e, PTX_B64);
    edit_entry(e, "mov.b64 %0, 0;\nmov.b64 %1, 0;", edit_reg(k->heap_low), edit_reg(k->heap_high));
    edit_entry(e, ends_text, edit_reg(k->wide[0]),
               edit_sym_at(k->k->variable, offsetof(struct kfence_module, state)), edit_reg(k->bad),
               edit_reg(k->heap_low), edit_reg(k->heap_high),
               edit_addr(k->wide[0], (int64_t)offsetof(struct kfence_state, heap_low)));
}

// Sets k->bad if the address in k->what is in the heap as it was.
static void compare_heap(struct fence_func *k, uint32_t at)
{
    BEFORE(k, at, "setp.ge.u64 %0, %1, %2;\nsetp.lt.and.u64 %0, %1, %3, %0;", edit_reg(k->bad),
           edit_reg(k->what), edit_reg(k->heap_low), edit_reg(k->heap_high));
}

// Sets k->wide[0] to the distance of the address in k->what from the window's begin, and k->wide[1] to the
// window's bytes.
static void load_window(struct fence_func *k, uint32_t at)
{
    BEFORE(k, at, "ld.const.b64 %0, [%1];\nsub.s64 %0, %2, %0;\nld.const.b64 %3, [%4];", edit_reg(k->wide[0]),
           edit_sym_at(k->k->variable, offsetof(struct kfence_module, window)), edit_reg(k->what),
           edit_reg(k->wide[1]), edit_sym_at(k->k->variable, offsetof(struct kfence_module, window_bytes)));
}

void fence_add_near(struct fence_func *k, uint32_t at, uint32_t to, int64_t low, int64_t high, uint32_t good)
{
    if (!k->k->has_window && !k->heap_low)
        return;
    BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(k->what), edit_reg(to), edit_imm(low));
    if (k->k->has_window) {
        load_window(k, at);
        BEFORE(k, at,
               "setp.lt.u64 %0, %1, %2;\nadd.s64 %1, %1, %3;\nsetp.lt.and.u64 %0, %1, %2, %0;\n"
               "or.pred %4, %4, %0;",
               edit_reg(k->bad), edit_reg(k->wide[0]), edit_reg(k->wide[1]), edit_imm(high - low - 1),
               edit_reg(good));
    }
    if (k->heap_low)
        BEFORE(k, at,
               "setp.ge.u64 %0, %1, %2;\nadd.s64 %1, %1, %4;\nsetp.le.and.u64 %0, %1, %3, %0;\n"
               "or.pred %5, %5, %0;",
               edit_reg(k->bad), edit_reg(k->what), edit_reg(k->heap_low), edit_reg(k->heap_high),
               edit_imm(high - low), edit_reg(good));
}

// The heap is looked at again before FENCE_FIND is called: what the function has loaded is older than its own
// blocks. What is cached of the heap's ends is at worst narrower than the heap is now.
void fence_look_near(struct fence_func *k, uint32_t at, uint32_t to, int64_t offset, uint32_t align,
                     uint32_t inside)
{
    uint32_t past = edit_new_label(k->k->all.c->edit);
    if (!k->heap_low && !k->k->has_window)
        return;
    if (align > 1)
        BEFORE(k, at, "setp.ne.b32 %0, %1, 0;\n@%0 bra %2;", edit_reg(k->bad), edit_reg(k->low),
               edit_sym(past));
    BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(k->what), edit_reg(to), edit_imm(offset));
    if (k->heap_low)
        compare_heap(k, at);
    if (k->k->has_window) {
        load_window(k, at);
        BEFORE(k, at, k->heap_low ? "setp.lt.or.u64 %0, %1, %2, %0;" : "setp.lt.u64 %0, %1, %2;",
               edit_reg(k->bad), edit_reg(k->wide[0]), edit_reg(k->wide[1]));
    }
    BEFORE(k, at, "@%0 bra %1;", edit_reg(k->bad), edit_sym(inside));
    if (k->heap_low) {
        BEFORE(k, at, ends_text, edit_reg(k->wide[0]),
               edit_sym_at(k->k->variable, offsetof(struct kfence_module, state)), edit_reg(k->bad),
               edit_reg(k->heap_low), edit_reg(k->heap_high),
               edit_addr(k->wide[0], (int64_t)offsetof(struct kfence_state, heap_low)));
        compare_heap(k, at);
        BEFORE(k, at, "@%0 bra %1;", edit_reg(k->bad), edit_sym(inside));
    }
    edit_place_label(k->k->all.c->edit, at, past);
}

// The bytes that a block has are more than the widest access: some belong to the system. The memory of the
// block of rank r is at r * 16 MiB, as FENCE_FIND has it.
void fence_look_shared(struct fence_func *k, uint32_t at, uint32_t to, int64_t offset, uint32_t align,
                       uint32_t width, uint32_t inside)
{
    bool exact = k->k->exact_shared;
    uint32_t past = edit_new_label(k->k->all.c->edit);
    BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(k->what), edit_reg(to), edit_imm(offset));
    BEFORE(k, at,
           exact ? "isspacep.shared::cluster %0, %1;\n@!%0 bra %2;\ncvta.to.shared::cluster.u64 %1, %1;"
                 : "isspacep.shared %0, %1;\n@!%0 bra %2;\ncvta.to.shared.u64 %1, %1;",
           edit_reg(k->bad), edit_reg(k->what), edit_sym(past));
    BEFORE(k, at, "cvt.u32.u64 %0, %1;\nsub.u32 %2, %3, %4;", edit_reg(k->high), edit_reg(k->what),
           edit_reg(k->bits), edit_reg(k->limit), edit_imm(width));
    if (exact)
        BEFORE(k, at,
               "and.b32 %0, %1, 0xFFFFFF;\nsetp.le.u32 %2, %0, %3;\nmov.u32 %3, %cluster_nctarank;\n"
               "shl.b32 %3, %3, 24;\nsetp.lt.and.u32 %2, %1, %3, %2;",
               edit_reg(k->low), edit_reg(k->high), edit_reg(k->bad), edit_reg(k->bits));
    else
        BEFORE(k, at, "setp.le.u32 %0, %1, %2;", edit_reg(k->bad), edit_reg(k->high), edit_reg(k->bits));
    if (align > 1)
        BEFORE(k, at, "and.b32 %0, %1, %2;\nsetp.eq.and.b32 %3, %0, 0, %3;", edit_reg(k->low),
               edit_reg(k->high), edit_imm((int64_t)align - 1), edit_reg(k->bad));
    BEFORE(k, at, "@%0 bra %1;", edit_reg(k->bad), edit_sym(inside));
    edit_place_label(k->k->all.c->edit, at, past);
}

// The bytes that are compared are not more than the variable has, so that they fit at its first byte. A
// register that is changed becomes a multiple of what the variable is one of, since other accesses by it are
// known to be aligned if it is.
void fence_mask_variable(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem)
{
    struct edit *e = k->k->all.c->edit;
    uint64_t bytes = fence_variable_bytes(k->k->all.c->m, m->variable);
    uint32_t to = m->in_place ? m->reg : edit_new_reg(e, PTX_B64), first = k->wide[0], distance = k->what;
    int32_t low = m->in_place ? m->low : m->start, high = m->in_place ? m->high : m->start + m->width;
    BEFORE(k, m->stmt, "mov.u64 %0, %1;", edit_reg(first), edit_sym(m->variable));
    if (low)
        BEFORE(k, m->stmt, "sub.s64 %0, %0, %1;", edit_reg(first), edit_imm(low));
    BEFORE(k, m->stmt, "sub.s64 %0, %1, %2;", edit_reg(distance), edit_reg(m->reg), edit_reg(first));
    fence_note_above(k, m, distance, bytes - (uint64_t)(high - low));
    if (m->in_place && fence_variable_skew(k->k->all.c->m, m->variable, low))
        BEFORE(k, m->stmt, "add.s64 %0, %0, %1;", edit_reg(first),
               edit_imm(fence_variable_skew(k->k->all.c->m, m->variable, low)));
    BEFORE(k, m->stmt, "selp.b64 %0, %1, %2, %3;", edit_reg(to), edit_reg(first), edit_reg(m->reg),
           edit_reg(k->noted[FENCE_APART]));
    struct ptx_operand address = edit_addr(to, m->start);
    address.unified = mem->addr->unified;
    edit_set(e, m->stmt, (unsigned)(mem->addr - k->f->stmts[m->stmt].operands), address);
}
