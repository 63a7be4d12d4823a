// SPDX-License-Identifier: MIT
// Matrices of wgmma in shared memory. A descriptor, a number in a register of 64 bits, has the place of the
// first byte, two distances and the pattern in which 16-byte pieces are exchanged (exec/wgmma.h has its
// bits).
// A matrix has as many rows as the product, or columns, by 32 bytes of k. Which variable it was made for is
// not known: the last piece of the matrix is compared with the end of the block's shared memory. Addresses in
// descriptors count from the block's own, also in a cluster.
//
// With pieces exchanged within spans, it is not known which piece of the last span is read; the first one
// stands for all.
//
// tcgen05 is not covered: its operands lie in tensor memory or are described by more than one register.
#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

enum { LINES = 8, PIECE = 16, DEPTH = 32 };  // lines of an atom; bytes of a piece, and of k

struct described {
    uint32_t rows, size;  // bytes of an element
    bool by_row;          // rows are contiguous, not k
};

static uint32_t bytes_of(enum ptx_type type)
{
    return type == PTX_B1 ? 1 : ptx_type_bits(type) / 8;
}

// Finds what is known of a matrix, of A or of B. Returns false if it is not understood.
static bool find_matrix(const struct ptx_stmt *s, const struct ptx_operand *o, struct described *out)
{
    struct ptx_dims dims;
    const struct ptx_form *form = s->form;
    const struct ptx_operand *a = ptx_operand(s, 1);
    bool is_a = o == a, can_turn = form->ntypes == 3 && bytes_of((enum ptx_type)form->types[1]) == 2;
    if (form->id != PTX_OP_WGMMA_MMA || form->odd || form->ntypes != 3 || ptx_form_has(form, PTX_MOD_SP) ||
        ptx_form_has(form, PTX_MOD_SP_ORDERED_METADATA) || !ptx_form_dims(form, &dims) || dims.m != 64)
        return false;
    *out = (struct described){.rows = is_a ? dims.m : dims.n,
                              .size = bytes_of((enum ptx_type)form->types[is_a ? 1 : 2])};
    // D, A, B, whether to add, two signs, and for matrices in shared memory whether they are turned.
    const struct ptx_operand *turn = can_turn ? ptx_operand(s, is_a || ptx_is_group(a) ? 6 : 7) : NULL;
    out->by_row = turn && turn->kind == PTX_IMM && turn->value;
    return out->rows && out->size && (!can_turn || (turn && turn->kind == PTX_IMM));
}

bool check_is_described(const struct check_func *k, const struct check_access *a)
{
    struct described d;
    return a->mem.extent == PTX_EXTENT_DESCRIPTOR && a->mem.addr->kind == PTX_REG &&
           find_matrix(&k->f->stmts[a->stmt], a->mem.addr, &d);
}

// Sets k->limit to the distance of the last atom from the first one. k->first has the leading offset, k->size
// the stride, and k->word bits 62 and 63 of the descriptor; k->ok says then whether pieces are exchanged.
static void put_distance(struct check_func *k, uint32_t at, const struct described *d)
{
    struct ptx_operand to = edit_reg(k->limit), lead = edit_reg(k->first), stride = edit_reg(k->size);
    struct ptx_operand swizzle = edit_reg(k->word), other = edit_reg(k->base), spans = edit_reg(k->ok);
    uint32_t lines = d->by_row ? DEPTH / d->size : d->rows;
    BEFORE(k, at, "setp.ne.u64 %0, %1, 0;", spans, swizzle);
    if (!d->by_row) {
        BEFORE(k, at, "mul.lo.u64 %0, %1, %2;\n@!%3 add.u64 %0, %0, %4;", to, stride,
               edit_imm(lines / LINES - 1), spans, lead);
        return;
    }
    // Spans of 256 >> n bytes lie in a row.
    BEFORE(k, at,
           "cvt.u32.u64 %0, %1;\nsub.u32 %0, 8, %0;\nmov.u64 %2, %3;\nshr.u64 %2, %2, %0;\n"
           "mul.lo.u64 %2, %2, %4;\nmad.lo.u64 %2, %5, %6, %2;",
           edit_reg(k->x), swizzle, to, edit_imm((int64_t)d->rows * d->size - 1), lead, stride,
           edit_imm(lines / LINES - 1));
    BEFORE(k, at, "mul.lo.u64 %0, %1, %2;\nmad.lo.u64 %0, %3, %4, %0;\nselp.b64 %5, %5, %0, %6;", other,
           stride, edit_imm((int64_t)d->rows * d->size / PIECE - 1), lead, edit_imm(lines / LINES - 1), to,
           spans);
}

void check_described(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct ptx_stmt *s = &k->f->stmts[a->stmt];
    struct described d;
    if (!find_matrix(s, a->mem.addr, &d))
        return;
    // %aggr_smem_size, which counts the system's bytes in front of the variables too.
    pass_raise_to(k->k->c->m, 8, 1);
    BEFORE(k, at,
           "and.b64 %0, %1, 0x3FFF;\nshl.b64 %0, %0, 4;\nshr.u64 %2, %1, 16;\nand.b64 %2, %2, 0x3FFF;\n"
           "shl.b64 %2, %2, 4;\nshr.u64 %3, %1, 32;\nand.b64 %3, %3, 0x3FFF;\nshl.b64 %3, %3, 4;\n"
           "shr.u64 %4, %1, 62;",
           edit_reg(k->t), *a->mem.addr, edit_reg(k->first), edit_reg(k->size), edit_reg(k->word));
    put_distance(k, at, &d);
    // The span of the last line begins at a multiple of its length: 16 bytes, or 256 >> n.
    BEFORE(k, at,
           "cvt.u32.u64 %0, %1;\nmov.u64 %2, 256;\nshr.u64 %2, %2, %0;\nselp.b64 %2, %2, 16, %3;\n"
           "mad.lo.u64 %4, %2, 7, %4;\nadd.u64 %4, %4, %5;\nneg.s64 %2, %2;\nand.b64 %4, %4, %2;\n"
           "add.u64 %4, %4, 16;",
           edit_reg(k->x), edit_reg(k->word), edit_reg(k->base), edit_reg(k->ok), edit_reg(k->limit),
           edit_reg(k->t));
    BEFORE(k, at,
           "mov.u32 %0, %aggr_smem_size;\ncvt.u64.u32 %1, %0;\nsetp.gt.u64 %2, %3, %1;\nnot.pred %4, %2;\n"
           "sub.u64 %3, %3, %5;\nmov.u64 %6, 0;",
           edit_reg(k->x), edit_reg(k->size), edit_reg(k->bad), edit_reg(k->limit), edit_reg(k->ok),
           edit_reg(k->t), edit_reg(k->base));
    if (s->guard != PTX_NONE)
        BEFORE(k, at, "@!%1 mov.pred %0, 0;", edit_reg(k->bad), edit_guard(s));
}

void check_prepare_described(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct pass_check_site *site = &k->k->sites.items[a->site];
    uint64_t what = KCHECK_WHAT(KCHECK_SITE(k->k->tag, a->site), 0, site->flags | KCHECK_VARIABLE_LEFT);
    BEFORE(k, at, "mov.u64 %0, 0;\nmov.u64 %1, %2;", edit_reg(k->root), edit_reg(k->what),
           edit_imm((int64_t)what));
}

// --- registers ---------------------------------------------------------------------------------------------

// Products of wgmma stay in registers. The driver's compiler spills those of a kernel that has more than a
// thread's 255, but not once checks are among them: then it ends the process. A function that kernels call is
// never left: the fence could not keep its callers inside.
int check_find_crowded(struct pass_context *c, uint32_t index)
{
    enum { MOST_PRODUCTS = 200 };
    const struct ptx_func *f = c->funcs[index];
    const struct regs *regs = NULL;
    struct arena arena;
    uint32_t products = 0;
    bool any = false;
    for (uint32_t i = 0; f->is_entry && i < f->nstmts && !any; i++)
        any = f->stmts[i].kind == PTX_INSN && f->stmts[i].form->id == PTX_OP_WGMMA_MMA;
    int err = any ? flow_regs(pass_flow(c, index), &regs) : 0;
    if (err || !any)
        return err == -E2BIG ? 0 : err;
    arena_init(&arena, 0);
    bool *is_product = ARENA_ARRAY(&arena, bool, regs->n + 1u);
    if (is_product)
        memset(is_product, 0, regs->n + 1u);
    for (uint32_t i = 0; i < f->nstmts && is_product; i++) {
        if (f->stmts[i].kind != PTX_INSN || f->stmts[i].form->id != PTX_OP_WGMMA_MMA)
            continue;
        struct regs_list list = regs_at(regs, i);
        for (uint32_t a = 0; a < list.n; a++) {
            products += list.at[a].writes && !is_product[list.at[a].reg];
            is_product[list.at[a].reg] |= list.at[a].writes;
        }
    }
    err = is_product ? 0 : -ENOMEM;
    if (products > MOST_PRODUCTS)
        c->result->funcs[index].why = PASS_CROWDED;
    arena_free(&arena);
    return err;
}
