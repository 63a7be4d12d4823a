// SPDX-License-Identifier: MIT
// Private to the pass_fence*.c files.
#ifndef MOAT_PASS_PASS_FENCE_STATE_H
#define MOAT_PASS_PASS_FENCE_STATE_H

#include "kfence/kfence.h"
#include "pass/pass_check_state.h"

#define FENCE_FIND EDIT_PREFIX "fence_find"
#define FENCE_NOTE EDIT_PREFIX "fence_note"
#define FENCE_SHARED EDIT_PREFIX "fence_shared"
#define FENCE_TOOK EDIT_PREFIX "fence_took"

// An access whose address a kernel computes from a parameter: the variant with the mask only masks it.
struct fence_masked {
    uint32_t stmt;
    unsigned row;     // of ptx_stmt_mem
    uint32_t offset;  // of the parameter
};
typedef VEC(struct fence_masked) fence_plan;

// The module.
struct fencing {
    struct checking all;  // for sites, which are described as those of pass_check
    uint32_t variable;    // symbols: KFENCE_VARIABLE, and the functions above
    uint32_t find, note, shared;
    fence_plan *plans;           // by index of result->funcs
    struct ptx_func **variants;  // NULL: none
    bool *bare;                  // by index of result->funcs: a copy without a fence is kept
    bool modulo;                 // variants use modulo, not a mask
    bool exact_shared;           // a special register has the bytes of shared memory with those of the system
    uint32_t taker[2], instead[2];  // malloc and its kin, and what is called in their place; PTX_NONE
};

enum { FENCE_ROWS = 3 };  // most memory operands of one instruction that are fenced

// What was put in front of an earlier access by the same pointer, in the same run of statements.
struct fence_cached {
    uint32_t run;    // number of the run; 0: nothing
    uint32_t to;     // register
    uint32_t align;  // that it was made a multiple of
};

// A function that is rewritten.
struct fence_func {
    struct fencing *k;
    struct check_func site;  // for check_site: its name and statements
    struct ptx_func *f;
    const fence_plan *plan;       // NULL: nothing is masked
    size_t next;                  // item of the plan
    struct fence_cached *cached;  // by register of f
    uint32_t ncached, run;
    // Registers.
    uint32_t mask, noted;         // the mask's upper half; what the masks had to change
    uint32_t pages, base64;       // for modulo
    uint32_t skewed;              // what alignments had to change
    uint32_t base, outside;       // the upper halves of the module's variable
    uint32_t limit;               // bytes of shared memory
    uint32_t to[FENCE_ROWS];      // fenced pointers
    uint32_t narrow[FENCE_ROWS];  // and those into shared memory
    uint32_t low, high, bits, bad, what;
};

// pass_fence.c: calls of malloc in a statement become calls of ours.
void fence_redirect(struct fencing *k, struct ptx_func *f, uint32_t at);

// pass_fence_emit.c: rewrites a function, that of the index or a copy of it. 0 or a negative code.
int fence_func(struct fencing *k, uint32_t index, struct ptx_func *f, const fence_plan *plan);

// pass_fence_mask.c: finds the accesses of a kernel that need only a mask. Requires that nothing has been
// edited.
int fence_find_masked(struct fencing *k, uint32_t index, fence_plan *plan);
// Adds the kernel's variant to the result: which parameters must point into the partition.
int fence_add_kernel(struct fencing *k, uint32_t index, const fence_plan *plan,
                     const struct pass_check_kernel *bare);
// pass_fence_bare.c: finds whether a proof at the launch may show that a kernel needs no fence, and then
// fills the proof of its row. Requires that nothing has been edited. 0 or a negative code.
int fence_find_bare(struct fencing *k, uint32_t index, struct pass_check_kernel *row);
// Code for an access of the plan.
int fence_mask(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned row);
// Code at the entry and the exits of a variant.
int fence_mask_ends(struct fence_func *k);
// What was masked is forgotten where control may come from elsewhere, or the pointer changes.
void fence_mask_forget(struct fence_func *k, uint32_t at);
bool fence_wants(const struct fence_func *k, const struct ptx_mem *mem);
uint32_t fence_alignment(const struct ptx_mem *mem);
#define FENCE_BEFORE(k, at, text, ...) edit_before((k)->k->all.c->edit, at, text, __VA_ARGS__)

#endif
