// SPDX-License-Identifier: MIT
// The copy of a kernel without a fence: KFENCE_BARE_PREFIX NAME. It is launched, by moat alone, where the
// kernel's proof (flow/proof.h) says for the launch that every access lies in the partition, or in the
// variable that it was meant for, and is aligned. Then the fence would have changed nothing.
//
// Whatever else could end a shared context keeps its kernel from having such a copy: it is a list of what is
// allowed, so that an instruction which is new to it is not.
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
    case PTX_OP_GRIDDEPCONTROL:
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

static bool is_allowed(const struct ptx_form *form)
{
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
    return space == PTX_SPACE_GENERIC && !async && !form->odd && !is_denied(form);
}

// Asks the proof for one access of a statement. Returns false if it cannot say that the access is right.
static bool ask(const struct check_proof *p, uint32_t at, unsigned row, const struct ptx_mem *mem,
                struct pass_check_asked *asked)
{
    uint32_t access = check_prove_find(p, at, row);
    if (access == PROOF_NONE || p->ranges->proof.accesses[access].reason)
        return false;
    asked[access] = (struct pass_check_asked){
        .site = 0, .root = PASS_CHECK_ANY_ROOT, .align = fence_alignment(mem), .rest = 0};
    return true;
}

static bool ask_stmt(const struct ptx_func *f, const struct check_proof *p, uint32_t at,
                     struct pass_check_asked *asked)
{
    const struct ptx_stmt *s = &f->stmts[at];
    struct ptx_mem mem[PTX_MAX_MEM];
    if (s->kind == PTX_VERBATIM || (s->kind == PTX_INSN && !is_allowed(s->form)))
        return false;
    unsigned n = s->kind == PTX_INSN ? ptx_stmt_mem(f, s, mem) : 0;
    for (unsigned i = 0; i < n; i++)
        if (ptx_space_is((enum ptx_space)mem[i].space) != PTX_SPACE_PARAM && !ask(p, at, i, &mem[i], asked))
            return false;
    return true;
}

// Whether a usual launch may be proved: then the copy is worth its compilation.
static bool is_worth_it(const struct check_proof *p)
{
    bool all = true;
    for (uint32_t i = 0; i < p->ranges->proof.head->naccesses; i++)
        all &= p->may_cover[i];
    return all || p->depends;
}

static int fill(struct fencing *k, uint32_t index, const struct check_proof *p, struct pass_check_kernel *row)
{
    const struct ptx_func *f = k->all.c->funcs[index];
    struct arena *arena = &k->all.c->result->arena;
    const struct proof_head *head = p->ranges->proof.head;
    struct pass_check_asked *asked = ARENA_ARRAY(arena, struct pass_check_asked, head->naccesses + 1u);
    char *bytes = arena_alloc(arena, head->size);
    bool proved = !head->ncalls && is_worth_it(p);
    if (!asked || !bytes)
        return -ENOMEM;
    for (uint32_t i = 0; i < head->naccesses; i++)
        asked[i] =
            (struct pass_check_asked){.site = PASS_CHECK_UNASKED, .root = PASS_CHECK_ANY_ROOT, .align = 1};
    for (uint32_t i = 0; i < f->nstmts && proved; i++)
        proved = ask_stmt(f, p, i, asked);
    for (uint32_t i = 0; i < head->naccesses && proved; i++)
        proved = asked[i].site != PASS_CHECK_UNASKED;
    if (!proved)
        return 0;
    memcpy(bytes, head, head->size);
    row->proof = (struct str){bytes, head->size};
    row->naccesses = head->naccesses;
    row->asked = asked;
    row->proved = PASS_CHECK_BARE;
    return 0;
}

int fence_find_bare(struct fencing *k, uint32_t index, struct pass_check_kernel *row)
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
    err = err == -E2BIG ? 0 : err ? err : fill(k, index, &p, row);
    check_prove_free(&p);
    return err;
}
