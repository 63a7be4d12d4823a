// SPDX-License-Identifier: MIT
// Functions of ours that rewritten kernels call, linked with them as a text of its own (struct pass_apart).
//
// The driver's linker gives a kernel as many registers as the most demanding function that it calls, and
// refuses it if its own limit is lower; without a linker the compiler puts a copy of the function into each
// kernel. So the functions are compiled once, apart, with a limit of their own.
#ifndef MOAT_PASS_PASS_APART_H
#define MOAT_PASS_PASS_APART_H

#include "base/out.h"
#include "ptx/ptx.h"

// Writes the declarations for a text that calls the weak functions that `text` defines, as script/device-ptx
// prints them; its weak variables are defined by both.
void pass_apart_declare(const char *text, struct out *to);

// Aligns static arrays in shared memory to 16 bytes. The compiler does that itself where nothing is linked,
// and loads vectors from them then. A function's arrays are left as they are if they could take more memory
// so.
void pass_apart_align(struct ptx_module *m);

#endif
