// SPDX-License-Identifier: MIT
// Closed forms: the answer for a launch, generalised to launches with other numbers.
//
// closed_build evaluates a proof program a second time, for the launch of an answer, with polynomials over
// the launch's numbers in place of numbers. Where a rule depends on a number's size, it notes a condition.
// What comes out is a short program without branches: it computes the bounds of all accesses from the
// numbers of another launch, and says no if a condition does not hold there. Then only proof_eval helps.
//
// The caller gives all memory; nothing is allocated or locked. doc/proofs.md says why it is sound.
#ifndef MOAT_FLOW_CLOSED_H
#define MOAT_FLOW_CLOSED_H

#include "flow/proof.h"

// Returns the bytes of memory that a closed form of a program needs at most.
size_t closed_size(const struct proof *p);

// Makes a closed form from a launch and proof_eval's answer for it. `work`: memory as for proof_eval. Returns
// false if there is none that says the same for that launch.
bool closed_build(const struct proof *p, const struct proof_launch *l, const struct proof_bound *answer,
                  void *work, void *memory);

// Returns the bytes of memory that a closed form uses.
size_t closed_used(const void *memory, const struct proof *p);

// Computes the answer for a launch that proof_eval would accept. `regs`: memory as for proof_eval. Returns
// false if the closed form does not hold for it; then `out` has no meaning.
bool closed_eval(const void *memory, const struct proof *p, const struct proof_launch *l, void *regs,
                 struct proof_bound *out);

// The same for a launch with the grid, block and dynamic shared memory of one for which it was true, if the
// registers are as it has left them: what does not depend on parameters is not computed again.
bool closed_eval_again(const void *memory, const struct proof *p, const struct proof_launch *l, void *regs,
                       struct proof_bound *out);
size_t closed_regs_size(const struct proof *p);  // most bytes of registers

#endif
