// SPDX-License-Identifier: MIT
// Limits the registers of kernels that call functions of ours.
//
// The compiler gives a kernel as many registers as it and all functions that it calls need together. A kernel
// that was written for large blocks, and needs few registers itself, could then no longer be launched. So
// each kernel that has none of .maxnreg, .maxntid and .reqntid gets a .maxnreg: what blocks of 1,024 threads
// leave room for, or an estimate of what the module's most demanding function needs, if that is more.
#ifndef MOAT_PASS_REGBOUND_H
#define MOAT_PASS_REGBOUND_H

#include "pass/pass.h"

enum { REGBOUND_LEAST = 64 };

// Raises *most to the number of 32-bit registers that the function needs at least. Returns 0 or a negative
// code.
int regbound_pressure(struct flow *flow, const struct ptx_func *f, uint32_t *most);
// Adds a .maxnreg to a kernel. Returns 0 or -ENOMEM.
int regbound_limit(struct ptx_module *m, struct ptx_func *f, uint32_t registers);
// Returns whether the kernel has one of these directives already.
bool regbound_is_bounded(const struct ptx_func *f);

// Adds the limits. Requires that no statement of the module's functions has been changed yet. Returns 0 or a
// negative code.
int regbound_add(struct pass_context *c);

#endif
