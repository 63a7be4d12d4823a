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

// The module.
struct fencing {
    struct checking all;  // for sites, which are described as those of pass_check
    uint32_t variable;    // symbols: KFENCE_VARIABLE, and the functions above
    uint32_t find, note, shared;
    bool exact_shared;  // a special register has the bytes of shared memory with those of the system
    uint32_t taker[2], instead[2];  // malloc and its kin, and what is called in their place; PTX_NONE
};

enum { FENCE_ROWS = 3 };  // most memory operands of one instruction that are fenced

// A function that is rewritten; the members after `f` are registers.
struct fence_func {
    struct fencing *k;
    struct check_func site;  // for check_site: its name and statements
    struct ptx_func *f;
    uint32_t base, outside;       // the upper halves of the module's variable
    uint32_t limit;               // bytes of shared memory
    uint32_t to[FENCE_ROWS];      // fenced pointers
    uint32_t narrow[FENCE_ROWS];  // and those into shared memory
    uint32_t low, high, bits, bad, what;
};

// pass_fence.c: calls of malloc in a statement become calls of ours.
void fence_redirect(struct fencing *k, struct ptx_func *f, uint32_t at);

// pass_fence_emit.c: rewrites the function of that index. 0 or a negative code.
int fence_func(struct fencing *k, uint32_t index);

#endif
