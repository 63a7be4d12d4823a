// SPDX-License-Identifier: MIT
// The copy of a kernel without a fence: KFENCE_BARE_PREFIX NAME. It is launched, by moat alone, where the
// kernel's proof (flow/proof.h) says for the launch that every access lies in the partition, or in the
// variable that it was meant for, and is aligned. Then the fence would have changed nothing.
//
// Where it says so of the accesses that it may bound in usual launches, and not of all, moat launches
// KFENCE_REST_PREFIX NAME: the variant that masks, without a fence for these. There a mask changes no
// register of the program's, since the proof speaks of what these hold.
//
// Whatever else could end a shared context keeps its kernel from having a copy without a fence: it is a list
// of what is allowed, so that an instruction which is new to it is not.
#include <errno.h>
#include <string.h>

#include "flow/ranges.h"
#include "pass/pass_fence_state.h"

// Operations that a proof does not speak of, and whose misuse may fault.
static bool is_denied(const struct ptx_form *form)
{
    switch (form->id) {
    case PTX_OP_BRKPT:
    case PTX_OP_ALLOCA:
    case PTX_OP_STACKSAVE:
    case PTX_OP_STACKRESTORE:
    case PTX_OP_SETMAXNREG:
    case PTX_OP_BARRIER_CLUSTER:
    case PTX_OP_MAPA:
    case PTX_OP_MULTIMEM_LD_REDUCE:
    case PTX_OP_MULTIMEM_ST:
    case PTX_OP_MULTIMEM_RED:
    case PTX_OP_PREFETCH:
    case PTX_OP_PREFETCHU:
    case PTX_OP_APPLYPRIORITY:
    case PTX_OP_DISCARD:
    case PTX_OP_CREATEPOLICY:
    case PTX_OP_TCGEN05_ALLOC:
    case PTX_OP_TCGEN05_DEALLOC:
    case PTX_OP_TENSORMAP_REPLACE:
    case PTX_OP_TENSORMAP_CP_FENCEPROXY:
    case PTX_OP_CLC_QUERY_CANCEL: return true;
    default: return false;
    }
}

// Whether the statement makes a policy for a share of all lines, which names no memory. The driver's compiler
// looks at a fraction that is a number.
static bool is_fraction(const struct ptx_stmt *s)
{
    const struct ptx_operand *fraction = ptx_operand(s, 1);
    return s->form->id == PTX_OP_CREATEPOLICY && ptx_form_has(s->form, PTX_MOD_FRACTIONAL) &&
           (!fraction || fraction->kind == PTX_IMM);
}

static bool is_allowed(const struct ptx_stmt *s)
{
    const struct ptx_form *form = s->form;
    enum ptx_space space = (enum ptx_space)form->op->space;
    // What copies asynchronously moves bytes that other instructions count; cp.async does not.
    bool async = (form->flags & PTX_ASYNC) && form->id != PTX_OP_CP_ASYNC;
    switch (form->op->control) {
    case PTX_FALLS:
    case PTX_BRANCH:
    case PTX_RETURN:
    case PTX_EXIT:
    case PTX_BARRIER: break;
    default: return false;  // calls, traps and indirect branches
    }
    return space == PTX_SPACE_GENERIC && !async && !form->odd && (!is_denied(form) || is_fraction(s));
}

// Asks the proof for one access of a statement. Returns false if it cannot say that the access is right.
static bool ask(const struct check_proof *p, uint32_t at, unsigned row, const struct ptx_mem *mem,
                struct pass_check_asked *asked)
{
    uint32_t access = check_prove_find(p, at, row), align = fence_alignment(mem);
    if (access == PROOF_NONE || p->ranges->proof.accesses[access].reason)
        return false;
    bool rest = p->may_cover[access] && 1u << p->powers[access] >= align;
    asked[access] =
        (struct pass_check_asked){.site = 0, .root = PASS_CHECK_ANY_ROOT, .align = align, .rest = rest};
    return true;
}

// Returns whether a kernel that is proved needs no fence for the statement.
static bool ask_stmt(const struct fencing *k, uint32_t index, const struct check_proof *p, uint32_t at,
                     struct pass_check_asked *asked)
{
    const struct ptx_func *f = k->all.c->funcs[index];
    const struct ptx_stmt *s = &f->stmts[at];
    struct ptx_mem mem[PTX_MAX_MEM];
    bool all = true;
    // The host looks the handle up.
    if (s->kind == PTX_INSN && !s->form->odd && fence_handle_at(&k->handles[index], at))
        return true;
    if (s->kind == PTX_VERBATIM || (s->kind == PTX_INSN && (!is_allowed(s) || fence_is_loose_barrier(s))))
        return false;
    unsigned n = s->kind == PTX_INSN ? ptx_stmt_mem(f, s, mem) : 0;
    for (unsigned i = 0; i < n; i++)
        if ((ptx_space_is((enum ptx_space)mem[i].space) != PTX_SPACE_PARAM ||
             fence_is_loose_param(&mem[i])) &&
            !fence_has_row(&k->grid_words[index], at, i))
            all &= ask(p, at, i, &mem[i], asked);
    return all;
}

// Returns whether an access of the proof needs none.
static bool is_free(const struct fencing *k, uint32_t index, const struct check_proof *p, uint32_t access)
{
    const struct proof_access *a = &p->ranges->proof.accesses[access];
    return fence_has_row(&k->grid_words[index], a->stmt, a->row);
}

// Whether a usual launch may be proved: then the copy is worth its compilation.
static bool is_worth_it(const struct fencing *k, uint32_t index, const struct check_proof *p)
{
    bool all = true;
    for (uint32_t i = 0; i < p->ranges->proof.head->naccesses; i++)
        all &= p->may_cover[i] || is_free(k, index, p, i);
    return all || p->depends;
}

// Chooses which copies there are. bare: nothing keeps the kernel from having one without a fence.
static enum pass_check_proved choose(struct fencing *k, uint32_t index, const struct check_proof *p,
                                     const struct pass_check_kernel *row, bool bare)
{
    uint32_t all = 0, rest = 0;
    for (uint32_t i = 0; i < row->naccesses; i++) {
        bare &= row->asked[i].site != PASS_CHECK_UNASKED || is_free(k, index, p, i);
        all += row->asked[i].site != PASS_CHECK_UNASKED;
        rest += row->asked[i].rest;
    }
    // The driver's compiler copies the heap of malloc into each kernel: one more is not worth its time.
    bool heap = k->taker[0] != PTX_NONE || k->taker[1] != PTX_NONE;
    if (heap || !rest || (bare && rest == all))
        return bare ? PASS_CHECK_BARE : PASS_CHECK_FULL;
    return bare ? PASS_CHECK_EITHER : PASS_CHECK_REST;
}

// Lists the accesses that the rest variant does not fence.
static int list_covered(const struct check_proof *p, const struct pass_check_kernel *row, fence_rows *to)
{
    const struct proof *proof = &p->ranges->proof;
    int err = 0;
    for (uint32_t i = 0; i < row->naccesses && !err; i++)
        if (row->asked[i].rest)
            err =
                vec_push(to, ((struct fence_row){proof->accesses[i].stmt, (uint8_t)proof->accesses[i].row}));
    return err;
}

static int fill(struct fencing *k, uint32_t index, const struct check_proof *p, struct pass_check_kernel *row,
                fence_rows *covered)
{
    struct arena *arena = &k->all.c->result->arena;
    const struct proof_head *head = p->ranges->proof.head;
    struct pass_check_asked *asked = ARENA_ARRAY(arena, struct pass_check_asked, head->naccesses + 1u);
    char *bytes = arena_alloc(arena, head->size);
    bool bare = !head->ncalls && is_worth_it(k, index, p), maps = false;
    if (!asked || !bytes)
        return -ENOMEM;
    for (uint32_t i = 0; i < head->naccesses; i++)
        asked[i] =
            (struct pass_check_asked){.site = PASS_CHECK_UNASKED, .root = PASS_CHECK_ANY_ROOT, .align = 1};
    for (uint32_t i = 0; i < k->all.c->funcs[index]->nstmts; i++) {
        const struct ptx_stmt *s = &k->all.c->funcs[index]->stmts[i];
        bare &= ask_stmt(k, index, p, i, asked);
        maps |= s->kind == PTX_INSN && s->form->id == PTX_OP_MAPA;
    }
    // A proof does not say that a block of the cluster exists.
    for (uint32_t i = 0; i < head->naccesses && maps; i++)
        asked[i].rest &= p->ranges->proof.accesses[i].space != PTX_SPACE_GENERIC &&
                         p->ranges->proof.accesses[i].space != PTX_SPACE_SHARED_CLUSTER;
    memcpy(bytes, head, head->size);
    row->proof = (struct str){bytes, head->size};
    row->naccesses = head->naccesses;
    row->asked = asked;
    row->proved = (uint8_t)choose(k, index, p, row, bare);
    return pass_check_has_rest((enum pass_check_proved)row->proved) ? list_covered(p, row, covered) : 0;
}

int fence_find_bare(struct fencing *k, uint32_t index, struct pass_check_kernel *row, fence_rows *covered)
{
    struct pass_context *c = k->all.c;
    if (!c->funcs[index]->is_entry || c->result->funcs[index].why != PASS_REWRITTEN)
        return 0;
    // A proof says nothing of whether a loop ends.
    if (k->watchdog && fence_has_loop(k, c->funcs[index]))
        return 0;
    struct check_proof p = {.ranges = NULL};
    arena_init(&p.arena, 0);
    int err = check_prove_look(pass_flow(c, index), &p);
    err = err == -E2BIG ? 0 : err ? err : fill(k, index, &p, row, covered);
    check_prove_free(&p);
    return err;
}
