// SPDX-License-Identifier: MIT
// Checked variants of kernels in modules of their own (--check-variants=apart): the program's image is loaded
// unchanged, and a variant is compiled by the thread whose launch first needs it. A launch that is proved
// needs none.
//
// A variant's module is loaded beside the program's, as a module in the same context or as a library, and is
// unloaded after it. Its text, and how it reaches the program's variables, is in pass/pass_variants.h.
#ifndef MOAT_CHECK_CHECK_APART_H
#define MOAT_CHECK_CHECK_APART_H

#include <stdbool.h>

#include "check/check_kernel.h"

// Returns whether the variants of the kernels of a module or library are made when they are wanted.
bool check_apart_has(const void *owner);

// Returns what is known of a program's kernel after its variant, the rest or the full one, was made if it is
// one that is made when it is wanted. The variant has no handle if that failed, which is reported once, or if
// it is a library's and no context is current. Call it in any context, also while a stream is being captured.
const struct check_kernel *check_apart_want(const void *handle, const struct check_kernel *k, bool rest);

// The same for a cooperative launch, after check_apart_want: if not all of its blocks can run at once with
// the variant, but could with the program's kernel, another variant is made that uses fewer registers, and is
// the kernel's from then on. If that does not suffice, the variant remains what it was.
const struct check_kernel *check_apart_want_together(const struct launch_call *l,
                                                     const struct check_kernel *k, bool rest);

// A module or library of the program is about to be unloaded, or not after all; it was.
void check_apart_ends(const void *handle, bool ending);
void check_apart_gone(const void *handle);
void check_apart_context_gone(CUcontext context);

void check_apart_after_fork(void);

#endif
