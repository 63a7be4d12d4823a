// SPDX-License-Identifier: MIT
// What the fencing pass puts in front of accesses.
#include <errno.h>

#include "flow/multiples.h"
#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

// --- an access ---------------------------------------------------------------------------------------------

// Whether a symbol's own size bounds the access, and its alignment is enough.
static bool is_inside_variable(const struct ptx_module *m, const struct ptx_mem *mem)
{
    const struct ptx_operand *addr = mem->addr;
    if (addr->sub != PTX_BASE_SYM)
        return false;
    const struct ptx_sym *s = ptx_sym_behind_alias(m, addr->id);
    uint64_t size = s->kind == PTX_SYM_VAR ? ptx_var_size(s->var) : 0;
    uint32_t align = fence_alignment(mem);
    return mem->extent == PTX_EXTENT_PLAIN && addr->value >= 0 && mem->bytes <= size &&
           (uint64_t)addr->value <= size - mem->bytes && !(addr->value & ((int64_t)align - 1)) &&
           1u << multiples_of_variable(s->var) >= align;
}

bool fence_wants(const struct fence_func *k, const struct ptx_mem *mem)
{
    enum ptx_space space = ptx_space_is((enum ptx_space)mem->space);
    return (space == PTX_SPACE_GENERIC || space == PTX_SPACE_GLOBAL || fence_is_shared(mem)) &&
           mem->addr->kind == PTX_ADDR && (mem->reads || mem->writes) &&
           !is_inside_variable(k->k->all.c->m, mem);
}

bool fence_is_shared(const struct ptx_mem *mem)
{
    enum ptx_space space = ptx_space_is((enum ptx_space)mem->space);
    return space == PTX_SPACE_SHARED || space == PTX_SPACE_SHARED_CLUSTER;
}

// What an access's address must be a multiple of.
uint32_t fence_alignment(const struct ptx_mem *mem)
{
    uint32_t n = mem->bytes;
    switch (mem->extent) {
    case PTX_EXTENT_ROWS: return 16;
    case PTX_EXTENT_COUNTED: n = n ? n : 16; break;  // a bulk copy; for cp.async, the most it writes
    case PTX_EXTENT_TENSOR: return fence_is_shared(mem) ? 128 : 1;
    case PTX_EXTENT_PLAIN: break;
    default: return 1;
    }
    return n && !(n & (n - 1)) ? n : 1;
}

// Sets a register to the pointer, with the offset if the instruction cannot keep it. Returns the offset that
// it keeps.
static int64_t load_pointer(struct fence_func *k, uint32_t at, const struct ptx_operand *addr, uint32_t to)
{
    bool far = addr->value >= KFENCE_OFFSET || addr->value <= -KFENCE_OFFSET;
    if (addr->sub == PTX_BASE_SYM) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(to), edit_sym_at(addr->id, addr->value));
        return 0;
    }
    if (addr->sub == PTX_BASE_NONE) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(to), edit_imm(addr->value));
        return 0;
    }
    bool narrow = ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, addr->id)->type) == 32;
    BEFORE(k, at, narrow ? "cvt.u64.u32 %0, %1;" : "mov.b64 %0, %1;", edit_reg(to), edit_reg(addr->id));
    if (!far)
        return addr->value;
    BEFORE(k, at, "add.s64 %0, %0, %1;", edit_reg(to), edit_imm(addr->value));
    return 0;
}

// Sets k->bad if k->bits are not all 0 and the access is to be made.
static void decide(struct fence_func *k, uint32_t at, const struct ptx_stmt *s)
{
    if (s->guard == PTX_NONE) {
        BEFORE(k, at, "setp.ne.b32 %0, %1, 0;", edit_reg(k->bad), edit_reg(k->bits));
        return;
    }
    struct ptx_operand guard = edit_reg(s->guard);
    guard.negated = s->guard_negated;
    BEFORE(k, at, "setp.ne.and.b32 %0, %1, 0, %2;", edit_reg(k->bad), edit_reg(k->bits), guard);
}

unsigned fence_flags(const struct ptx_mem *mem, uint32_t align)
{
    return (mem->reads ? KFENCE_READS : 0) | (mem->writes ? KFENCE_WRITES : 0) |
           (mem->atomic ? KFENCE_ATOMIC : 0) | (align > 1 ? KFENCE_ALIGNED : 0) |
           (mem->space == PTX_SPACE_GENERIC ? KFENCE_GENERIC : 0);
}

// Describes the access. *width: its bytes, at least 1.
static int new_site(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, uint32_t *width,
                    uint32_t *site)
{
    struct check_access a = {.stmt = at, .mem = *mem, .root = {.kind = ROOTS_OWN}};
    *width = !mem->bytes ? 1 : mem->bytes < UINT16_MAX ? mem->bytes : UINT16_MAX;
    a.mem.bytes = *width;
    return check_site(&k->site, &a, site);
}

// Sets k->bad if the pointer is outside of the partition, or of the variable that it was made from, or the
// access is not aligned, and is to be made.
static void compare(struct fence_func *k, uint32_t at, uint32_t to, int64_t offset, uint32_t align,
                    uint32_t variable, uint32_t width)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    BEFORE(k, at, "mov.b64 {%0, %1}, %2;", edit_reg(k->low), edit_reg(k->high), edit_reg(to));
    if (variable != PTX_NONE)
        fence_compare_variable(k, at, variable, to, offset, width);
    else
        BEFORE(k, at, "xor.b32 %0, %1, %2;\nand.b32 %0, %0, %3;", edit_reg(k->bits), edit_reg(k->high),
               edit_reg(k->base), edit_reg(k->outside));
    if (align > 1 && offset % align)
        BEFORE(k, at, "add.s32 %0, %0, %1;", edit_reg(k->low), edit_imm(offset % align));
    if (align > 1)
        BEFORE(k, at, "and.b32 %0, %0, %1;\nor.b32 %2, %2, %0;", edit_reg(k->low),
               edit_imm((int64_t)align - 1), edit_reg(k->bits));
    decide(k, at, s);
}

// --- shared memory -----------------------------------------------------------------------------------------

// What does not fit into 32 bits is as bad as the largest address.
void fence_load_shared(struct fence_func *k, uint32_t at, const struct ptx_operand *addr, uint32_t to)
{
    bool wide =
        addr->sub == PTX_BASE_REG && ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, addr->id)->type) == 64;
    if (addr->sub == PTX_BASE_SYM)
        BEFORE(k, at, "mov.u32 %0, %1;", edit_reg(to), edit_sym_at(addr->id, addr->value));
    else if (addr->sub == PTX_BASE_NONE)
        BEFORE(k, at, "mov.u32 %0, %1;", edit_reg(to), edit_imm((uint32_t)addr->value));
    else if (wide)
        BEFORE(k, at, "add.s64 %1, %2, %3;\nmin.u64 %1, %1, 0xFFFFFFFF;\ncvt.u32.u64 %0, %1;", edit_reg(to),
               edit_reg(k->what), edit_reg(addr->id), edit_imm(addr->value));
    else
        BEFORE(k, at, "add.s32 %0, %1, %2;", edit_reg(to), edit_reg(addr->id),
               edit_imm((int32_t)addr->value));
}

// Sets k->low to the address that is accessed in place of the one in `to`, and k->bits to their difference.
static void compare_shared(struct fence_func *k, uint32_t at, struct ptx_operand bytes, uint32_t align,
                           uint32_t to)
{
    uint32_t offset = k->k->exact_shared ? k->high : to;
    if (k->k->exact_shared)
        BEFORE(k, at, "sub.u32 %0, %1, %2;", edit_reg(offset), edit_reg(to), edit_reg(k->own));
    BEFORE(k, at, "sub.u32 %0, %1, %2;\nmin.u32 %0, %0, %3;\nand.b32 %0, %0, %4;", edit_reg(k->low),
           edit_reg(k->limit), bytes, edit_reg(offset), edit_imm(-(int64_t)align));
    if (k->k->exact_shared)
        BEFORE(k, at, "add.u32 %0, %0, %1;", edit_reg(k->low), edit_reg(k->own));
    BEFORE(k, at, "xor.b32 %0, %1, %2;", edit_reg(k->bits), edit_reg(k->low), edit_reg(to));
}

// The same for an address that may be in another block of the cluster: that of rank r is at r * 16 MiB.
static void compare_cluster(struct fence_func *k, uint32_t at, struct ptx_operand bytes, uint32_t align,
                            uint32_t to)
{
    BEFORE(k, at,
           "sub.u32 %0, %1, %2;\nand.b32 %6, %3, 0xFFFFFF;\nmin.u32 %0, %0, %6;\nand.b32 %0, %0, %4;\n"
           "mov.u32 %5, %cluster_nctarank;\nshl.b32 %5, %5, 24;\nsetp.lt.u32 %7, %3, %5;\n"
           "and.b32 %6, %3, 0xFF000000;\nselp.b32 %6, %6, %8, %7;\nor.b32 %0, %0, %6;\nxor.b32 %5, %0, %3;",
           edit_reg(k->low), edit_reg(k->limit), bytes, edit_reg(to), edit_imm(-(int64_t)align),
           edit_reg(k->bits), edit_reg(k->high), edit_reg(k->bad), edit_reg(k->own));
}

// A copy with such an address is left out. %0: what, %1: set if the address is not aligned.
static void leave_shared(struct fence_func *k, uint32_t at, uint64_t what, uint32_t align, unsigned row)
{
    uint64_t outside = what | KFENCE_WHAT(0, 0, KFENCE_KIND(KFENCE_OUT_OF_SHARED)),
             skewed = what | KFENCE_WHAT(0, 0, KFENCE_KIND(KFENCE_MISALIGNED));
    BEFORE(k, at, "and.b32 %0, %1, %2;\nsetp.ne.u32 %3, %0, 0;\nmov.u64 %4, %5;\n@%3 mov.u64 %4, %6;",
           edit_reg(k->bits), edit_reg(k->narrow[row]), edit_imm((int64_t)align - 1), edit_reg(k->bad),
           edit_reg(k->what), edit_imm((int64_t)outside), edit_imm((int64_t)skewed));
    BEFORE(k, at, "cvt.u64.u32 %0, %1;\ncall %2, (%3, %0);\nbra %4;", edit_reg(k->to[row]),
           edit_reg(k->narrow[row]), edit_sym(k->k->note), edit_reg(k->what), edit_sym(k->leave));
}

// The access is made at the address in k->low.
static void redirect_shared(struct fence_func *k, uint32_t at, uint64_t what, unsigned row)
{
    BEFORE(k, at, "mov.u64 %0, %1;\ncvt.u64.u32 %2, %3;\ncall %4, (%0, %2);\nmov.u32 %3, %5;",
           edit_reg(k->what), edit_imm((int64_t)what), edit_reg(k->to[row]), edit_reg(k->narrow[row]),
           edit_sym(k->k->shared), edit_reg(k->low));
}

// The address is compared with the bytes of shared memory that the block has; one outside becomes the last
// one at which the access fits.
static int fence_shared(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned row)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    uint32_t site, align = fence_alignment(mem), to = k->narrow[row], width;
    int err = new_site(k, at, mem, &width, &site);
    if (err)
        return err;
    fence_load_shared(k, at, mem->addr, to);
    uint32_t inside = edit_new_label(k->k->all.c->edit);
    struct ptx_operand bytes = fence_is_wide(mem) ? edit_reg(k->size) : edit_imm(width);
    bool cluster = ptx_space_is((enum ptx_space)mem->space) == PTX_SPACE_SHARED_CLUSTER;
    (cluster ? compare_cluster : compare_shared)(k, at, bytes, align, to);
    if (mem->extent == PTX_EXTENT_ROWS && mem->lanes < 32)
        BEFORE(k, at, "mov.u32 %0, %laneid;\nsetp.lt.u32 %1, %0, %2;\nselp.b32 %3, %3, 0, %1;",
               edit_reg(k->high), edit_reg(k->bad), edit_imm(mem->lanes), edit_reg(k->bits));
    decide(k, at, s);
    BEFORE(k, at, "@!%0 bra %1;", edit_reg(k->bad), edit_sym(inside));
    uint64_t what = KFENCE_WHAT(site, width, fence_flags(mem, align));
    if (k->leave != PTX_NONE)
        leave_shared(k, at, what, align, row);
    else
        redirect_shared(k, at, what, row);
    edit_place_label(k->k->all.c->edit, at, inside);
    struct ptx_operand address = edit_addr(to, 0);
    address.unified = mem->addr->unified;
    edit_set(k->k->all.c->edit, at, (unsigned)(mem->addr - k->f->stmts[at].operands), address);
    return 0;
}

// --- global memory -----------------------------------------------------------------------------------------

int fence_row(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned row, unsigned number)
{
    while (k->plan && k->next < k->plan->len && k->plan->items[k->next].stmt < at)
        k->next++;
    for (size_t i = k->next; k->plan && i < k->plan->len && k->plan->items[i].stmt == at; i++)
        if (k->plan->items[i].row == number) {
            fence_mask(k, &k->plan->items[i], mem);
            return 0;
        }
    uint32_t site, align = fence_alignment(mem), to = k->to[row], width;
    if (fence_is_shared(mem))
        return fence_shared(k, at, mem, row);
    int err = new_site(k, at, mem, &width, &site);
    if (err)
        return err;
    unsigned flags = fence_flags(mem, align);
    int64_t offset = load_pointer(k, at, mem->addr, to);
    bool wide = fence_is_wide(mem);
    const struct fence_variable *v = wide ? NULL : fence_variable_at(k, at, number);
    uint32_t inside = edit_new_label(k->k->all.c->edit);
    bool shared = v && v->shared;
    if (shared && k->f->stmts[at].guard != PTX_NONE)
        BEFORE(k, at, "@!%0 bra %1;", edit_guard(&k->f->stmts[at]), edit_sym(inside));
    if (!shared)
        fence_group(k, at, mem, to, v, inside);
    if (shared)
        fence_look_shared(k, at, to, offset, align, width, inside);
    else
        compare(k, at, to, offset, align, v ? v->sym : PTX_NONE, width);
    uint64_t what = wide ? KFENCE_WHAT(site, 0, flags | KFENCE_WIDE) : KFENCE_WHAT(site, width, flags);
    if (!shared)
        BEFORE(k, at, "@!%0 bra %1;", edit_reg(k->bad), edit_sym(inside));
    if (v && v->sym == PTX_NONE && !shared)
        fence_look_near(k, at, to, offset, align, inside);
    BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->what), edit_imm((int64_t)what));
    if (wide)
        fence_add_size(k, at);
    BEFORE(k, at, "add.s64 %2, %2, %3;\ncall (%2), %1, (%0, %2);\nsub.s64 %2, %2, %3;", edit_reg(k->what),
           edit_sym(k->k->find), edit_reg(to), edit_imm(offset));
    edit_place_label(k->k->all.c->edit, at, inside);
    struct ptx_operand address = edit_addr(to, offset);
    address.unified = mem->addr->unified;
    edit_set(k->k->all.c->edit, at, (unsigned)(mem->addr - k->f->stmts[at].operands), address);
    return 0;
}

// --- a statement -------------------------------------------------------------------------------------------

int fence_site(struct fence_func *k, uint32_t at, uint32_t *site)
{
    struct check_access a = {.stmt = at, .root = {.kind = ROOTS_OWN}};
    return check_site(&k->site, &a, site);
}

uint32_t fence_unless_guarded(struct fence_func *k, uint32_t at)
{
    uint32_t label = edit_new_label(k->k->all.c->edit);
    const struct ptx_stmt *s = &k->f->stmts[at];
    if (s->guard != PTX_NONE)
        BEFORE(k, at, "@!%0 bra %1;", edit_guard(s), edit_sym(label));
    return label;
}

void fence_end(struct fence_func *k, uint32_t at, uint64_t what, enum kfence_kind kind, uint32_t value)
{
    BEFORE(k, at, "mov.u64 %0, %1;\ncall %2, (%0, %3);", edit_reg(k->what),
           edit_imm((int64_t)(what | KFENCE_WHAT(0, 0, KFENCE_KIND(kind)))), edit_sym(k->k->note),
           edit_reg(value));
    if (k->leave == PTX_NONE)
        edit_before(k->k->all.c->edit, at, "exit;");
    else
        BEFORE(k, at, "bra %0;", edit_sym(k->leave));
}

// The instruction would end the context, with everyone in it, or cannot be fenced.
static int end_thread(struct fence_func *k, uint32_t at, enum kfence_kind kind)
{
    uint32_t site, stays = fence_unless_guarded(k, at);
    int err = fence_site(k, at, &site);
    BEFORE(k, at, "mov.u64 %0, 0;", edit_reg(k->to[0]));
    fence_end(k, at, KFENCE_WHAT(site, 0, 0), kind, k->to[0]);
    edit_place_label(k->k->all.c->edit, at, stays);
    edit_delete(k->k->all.c->edit, at);
    return err;
}

// Returns whether the access is right where the variant is launched: the proof says so, or the words by which
// blocks wait for each other are accessed.
static bool is_covered(const struct fence_func *k, uint32_t at, unsigned row)
{
    return (k->covered && fence_has_row(k->covered, at, row)) ||
           (k->grid_words && fence_has_row(k->grid_words, at, row));
}

static int fence_stmt(struct fence_func *k, uint32_t at)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    const struct ptx_stmt *s = &k->f->stmts[at];
    if (s->form->id == PTX_OP_TRAP || s->form->id == PTX_OP_BRKPT)
        return end_thread(k, at, KFENCE_TRAPPED);
    if (fence_is_refused(s))
        return end_thread(k, at, KFENCE_REFUSED);
    fence_redirect(k->k, k->f, at);
    int err = fence_call(k, at);
    if (!err)
        err = fence_barrier(k, at);
    if (!err)
        err = fence_loop(k, at);
    if (!err)
        err = fence_object(k, at);
    if (!err && fence_is_copy(s))
        return fence_copy(k, at);
    unsigned n = ptx_stmt_mem(k->f, s, mem), rows = 0, covered = 0;
    for (unsigned i = 0; i < n; i++)
        covered += is_covered(k, at, i);
    if (!err && (!n || covered < n))
        err = fence_size(k, at, mem, n);
    for (unsigned i = 0; i < n && !err; i++)
        if (is_covered(k, at, i))
            continue;
        else if (mem[i].extent == PTX_EXTENT_DESCRIPTOR && mem[i].addr->kind == PTX_REG)
            err = fence_descriptor(k, at, &mem[i]);
        else if (fence_is_loose_param(&mem[i]) && (mem[i].reads || mem[i].writes))
            err = fence_param(k, at, &mem[i]);
        else if (!fence_local(k, at, &mem[i], i, &err) && fence_wants(k, &mem[i]))
            err = rows == FENCE_ROWS ? -ENOTSUP : fence_row(k, at, &mem[i], rows++, i);
    return err;
}

// --- a function --------------------------------------------------------------------------------------------

static void registers(struct fence_func *k)
{
    struct edit *e = k->k->all.c->edit;
    k->base = edit_new_reg(e, PTX_B32);
    k->outside = edit_new_reg(e, PTX_B32);
    k->to[0] = edit_new_regs(e, PTX_B64, FENCE_ROWS);
    for (unsigned i = 1; i < FENCE_ROWS; i++)
        k->to[i] = k->to[0] + i;
    k->narrow[0] = edit_new_regs(e, PTX_B32, FENCE_ROWS);
    for (unsigned i = 1; i < FENCE_ROWS; i++)
        k->narrow[i] = k->narrow[0] + i;
    k->limit = edit_new_reg(e, PTX_B32);
    k->low = edit_new_reg(e, PTX_B32);
    k->high = edit_new_reg(e, PTX_B32);
    k->bits = edit_new_reg(e, PTX_B32);
    k->what = edit_new_reg(e, PTX_B64);
    k->own_size = edit_new_reg(e, PTX_B32);
    k->wide[0] = edit_new_reg(e, PTX_B64);
    k->wide[1] = edit_new_reg(e, PTX_B64);
    k->bad = edit_new_reg(e, PTX_PRED);
    edit_entry(e, "ld.const.b32 %0, [%1];\nld.const.b32 %2, [%3];", edit_reg(k->base),
               edit_sym_at(k->k->variable, offsetof(struct kfence_module, base) + 4), edit_reg(k->outside),
               edit_sym_at(k->k->variable, offsetof(struct kfence_module, outside) + 4));
    k->end = k->limit;
    if (!k->k->exact_shared) {
        edit_entry(e, "mov.u32 %0, %total_smem_size;\nadd.u32 %0, %0, 1024;", edit_reg(k->limit));
        return;
    }
    k->own = edit_new_reg(e, PTX_B32);
    k->end = edit_new_reg(e, PTX_B32);
    edit_entry(e,
               "mov.u32 %0, %cluster_ctarank;\nshl.b32 %0, %0, 24;\nmov.u32 %1, %aggr_smem_size;\n"
               "add.u32 %2, %0, %1;",
               edit_reg(k->own), edit_reg(k->limit), edit_reg(k->end));
}

int fence_func(struct fencing *all, uint32_t index, struct ptx_func *f, const fence_plan *plan,
               const fence_rows *covered)
{
    struct pass_context *c = all->all.c;
    struct fence_func k = {.k = all,
                           .f = f,
                           .plan = plan,
                           .covered = covered,
                           .locals = &all->locals[index],
                           .variables = &all->variables[index],
                           .handles = &all->handles[index],
                           .grid_words = plan ? &all->grid_words[index] : NULL,
                           .deep = all->deep[index],
                           .frame = PTX_NONE,
                           .leave = PTX_NONE,
                           .ends = PTX_NONE};
    k.site = (struct check_func){.k = &all->all, .f = k.f, .name = c->result->funcs[index].name};
    edit_func(c->edit, k.f);
    registers(&k);
    fence_load_heap(&k);
    int err = plan ? fence_mask_ends(&k) : 0;
    for (uint32_t i = 0; i < k.f->nstmts && !err; i++) {
        if (k.f->stmts[i].kind == PTX_INSN)
            err = fence_stmt(&k, i);
        if (!err)
            err = edit_error(c->edit);
    }
    return err;
}
