// SPDX-License-Identifier: MIT
// Private to check_launch.c and check_graph.c: a kernel, its variants, and which of them a launch gets.
#ifndef MOAT_CHECK_CHECK_KERNEL_H
#define MOAT_CHECK_CHECK_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prove/check_prove.h"
#include "kcheck/kcheck.h"
#include "launch/launch_call.h"
#include "pass/pass_check.h"

enum { CHECK_KERNEL_PAIRS = (LAUNCH_CALL_MORE_BYTES - 16 - KCHECK_HIDDEN) / 16 };
_Static_assert(CHECK_KERNEL_PAIRS == (int)KCHECK_MOST_PAIRS, "no variant has more than a launch can take");

// A kernel that may be launched in place of the program's.
struct check_variant {
    const void *handle;     // a CUfunction or CUkernel; NULL: there is none
    unsigned most_threads;  // that a block of it can have; 0: unknown
};

// What a launch needs to know of a kernel, in its data of kernels.h. It stays for the life of the process.
struct check_kernel {
    struct check_variant full, rest;
    // The variants are made when they are wanted (check_apart.h), and have no handles before that: the module
    // or library of the kernel. NULL: they are in it.
    const void *apart;
    CUkernel of;  // the kernel of a library whose function in a context this is; NULL: it is none
    const struct pass_check_kernel *checks;
    const struct check_prove *prove;  // NULL: a proof would save nothing
    bool idle;                        // it accesses nothing that is checked
};

// The hidden parameter of a variant; it ends behind the variant's pairs.
struct check_hidden {
    struct kcheck_hidden head;
    struct kcheck_pair pairs[CHECK_KERNEL_PAIRS];
};
_Static_assert(offsetof(struct check_hidden, pairs) == KCHECK_HIDDEN, "the pairs follow the head");

// Returns NULL if the kernel has no variant.
const struct check_kernel *check_kernel_of(const void *handle);

// Gives a kernel other variants: what `like` says. Returns what is known of it then.
const struct check_kernel *check_kernel_set(const void *handle, const struct check_kernel *like);

// Returns whether a variant with so many pairs can be launched with this shape.
bool check_kernel_fits(const struct launch_call *l, const struct check_variant *v, uint32_t npairs);

// Fills the bounds of the buffers that the parameters point into, as they are now. Returns whether they are
// the same as long as track_changes is and there is no heap of malloc in kernels.
bool check_kernel_pairs(const struct pass_check_variant *v, const char *bytes, size_t size,
                        struct kcheck_pair *pairs);

// Returns what is proved of the launch with the buffers as they are now. certain, lasts: as for
// check_prove_holds.
enum check_proved check_kernel_proved(const struct launch_call *l, const struct check_kernel *k,
                                      const void *bytes, size_t size, struct check_certain *certain,
                                      bool *lasts);

#endif
