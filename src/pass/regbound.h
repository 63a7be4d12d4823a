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

// Adds the limits. Requires that no statement of the module's functions has been changed yet. Returns 0 or a
// negative code.
int regbound_add(struct pass_context *c);

#endif
