// SPDX-License-Identifier: MIT
// Accesses whose bytes are known only when they run: bulk copies, and matrices with a stride in a register. A
// register gets the bytes, and both ends of the access are compared. A thread whose access is larger than
// what can be compared, or than shared memory, is recorded, and ends.
#include <errno.h>

#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

// Moves an operand of 32 or 64 bits to k->size; what does not fit becomes the largest number.
static void load(struct fence_func *k, uint32_t at, const struct ptx_operand *from)
{
    if (from->kind == PTX_IMM)
        BEFORE(k, at, "mov.u32 %0, %1;", edit_reg(k->size),
               edit_imm(from->value < 0 || from->value > UINT32_MAX ? UINT32_MAX : from->value));
    else if (from->kind != PTX_REG)
        BEFORE(k, at, "mov.u32 %0, 0xFFFFFFFF;", edit_reg(k->size));
    else if (ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, from->id)->type) == 64)
        BEFORE(k, at, "min.u64 %1, %2, 0xFFFFFFFF;\ncvt.u32.u64 %0, %1;", edit_reg(k->size),
               edit_reg(k->what), edit_reg(from->id));
    else
        BEFORE(k, at, "mov.b32 %0, %1;", edit_reg(k->size), edit_reg(from->id));
}

// Ends the thread if k->bad is set; one that copies, when the bytes have been completed.
static void end_if_bad(struct fence_func *k, uint32_t at, uint32_t site, enum kfence_kind kind)
{
    uint32_t good = edit_new_label(k->k->all.c->edit);
    BEFORE(k, at, "@!%0 bra %1;\ncvt.u64.u32 %2, %3;", edit_reg(k->bad), edit_sym(good), edit_reg(k->to[0]),
           edit_reg(k->size));
    if (k->ends != PTX_NONE)
        BEFORE(k, at, "setp.eq.b32 %0, 0, 0;", edit_reg(k->ends));
    fence_end(k, at, KFENCE_WHAT(site, 0, KFENCE_READS), kind, k->to[0]);
    edit_place_label(k->k->all.c->edit, at, good);
}

// The stride times the lines, plus the last line.
static void load_tile(struct fence_func *k, uint32_t at, uint32_t site, const struct ptx_mem *mem)
{
    uint64_t lines = mem->lines > 1 ? mem->lines - 1u : 1, bits = mem->element_bits ? mem->element_bits : 8;
    load(k, at, mem->stride);
    BEFORE(k, at, "setp.gt.u32 %0, %1, %2;", edit_reg(k->bad), edit_reg(k->size),
           edit_imm((int64_t)(FENCE_WIDEST / 2 * 8 / bits / lines)));
    end_if_bad(k, at, site, KFENCE_BAD_STRIDE);
    BEFORE(k, at, "mul.lo.u32 %0, %0, %1;\nadd.u32 %0, %0, %2;\nshr.u32 %0, %0, 3;", edit_reg(k->size),
           edit_imm((int64_t)(lines * bits)), edit_imm((int64_t)(mem->length * bits + 7)));
}

bool fence_is_wide(const struct ptx_mem *mem)
{
    bool register_has_it = mem->extent == PTX_EXTENT_COUNTED || mem->extent == PTX_EXTENT_TILE;
    return mem->extent == PTX_EXTENT_TENSOR || (register_has_it && !mem->bytes && mem->size);
}

int fence_size(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned n)
{
    const struct ptx_mem *wide = NULL, *shared = NULL;
    for (unsigned i = 0; i < n; i++)
        if (fence_is_wide(&mem[i]) && (mem[i].reads || mem[i].writes)) {
            wide = &mem[i];
            shared = fence_is_shared(&mem[i]) ? &mem[i] : shared;
        }
    if (!wide)
        return 0;
    uint32_t site, guarded = fence_unless_guarded(k, at);
    int err = fence_site(k, at, &site);
    if (wide->extent != PTX_EXTENT_TENSOR)
        k->size = k->own_size;
    if (wide->extent == PTX_EXTENT_TILE)
        load_tile(k, at, site, wide);
    if (wide->extent == PTX_EXTENT_COUNTED) {
        load(k, at, wide->size);
        BEFORE(k, at, "and.b32 %1, %2, %3;\nsetp.ne.u32 %0, %1, 0;", edit_reg(k->bad), edit_reg(k->low),
               edit_reg(k->size), edit_imm(k->f->stmts[at].form->id == PTX_OP_ST_BULK ? 7 : 15));
        end_if_bad(k, at, site, KFENCE_BAD_SIZE);
    }
    if (shared || wide->extent == PTX_EXTENT_COUNTED) {
        BEFORE(k, at, "setp.gt.u32 %0, %1, %2;", edit_reg(k->bad), edit_reg(k->size), edit_reg(k->limit));
        end_if_bad(k, at, site, KFENCE_OUT_OF_SHARED);
    }
    edit_place_label(k->k->all.c->edit, at, guarded);
    return err;
}

// Adds k->size to `what`, whose own width is 0.
void fence_add_size(struct fence_func *k, uint32_t at)
{
    BEFORE(k, at,
           "cvt.u64.u32 %1, %2;\nshl.b64 %3, %1, 48;\nshr.u64 %3, %3, 16;\nor.b64 %0, %0, %3;\n"
           "shr.u64 %3, %1, 16;\nshl.b64 %3, %3, 56;\nor.b64 %0, %0, %3;",
           edit_reg(k->what), edit_reg(k->wide[0]), edit_reg(k->size), edit_reg(k->wide[1]));
}
