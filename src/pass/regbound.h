// SPDX-License-Identifier: MIT
// How many registers kernels may have that call functions of ours.
//
// The compiler gives a kernel as many registers as it and all it calls want together. A kernel that was written with large
// blocks in mind, and needs few itself, could then not be launched any more. So each kernel that says nothing about it,
// neither by .maxnreg nor by the size of its blocks, gets a bound: what blocks of 1,024 threads leave room for, or what it needs
// itself, if that is more.
#ifndef MOAT_PASS_REGBOUND_H
#define MOAT_PASS_REGBOUND_H

#include "pass/pass.h"

enum { REGBOUND_LEAST = 64 };

// Requires that no statement of the module's functions was changed yet. 0 or a negative code.
int regbound_add(struct pass_context *c);

#endif
