// SPDX-License-Identifier: MIT
// Powers of two that values are multiples of, by themselves and relative to their roots: whether an access is
// aligned, or is if its root is.
#ifndef MOAT_FLOW_MULTIPLES_H
#define MOAT_FLOW_MULTIPLES_H

#include "flow/roots.h"

enum { MULTIPLES_MOST = 5 };  // 32 bytes: the widest access

// For each value of `reach`:
//   own[v]     the value is a multiple of 2^own[v]
//   beyond[v]  for every k <= beyond[v]: if the value's root (roots->of[v]) is a multiple of 2^k, so is the
//              value
struct multiples {
    const uint8_t *own, *beyond;
};

// Both arrays come from the arena. Returns 0 or -ENOMEM.
int multiples_build(const struct roots *roots, struct arena *arena, struct multiples *out);

// Returns the k for which a variable is certain to be at a multiple of 2^k; at most MULTIPLES_MOST.
unsigned multiples_of_variable(const struct ptx_var *var);

#endif
