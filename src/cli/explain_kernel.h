// SPDX-License-Identifier: MIT
// What moat ptx explain knows of a kernel: its accesses with their places and verdicts, the most
// important first.
#ifndef MOAT_CLI_EXPLAIN_KERNEL_H
#define MOAT_CLI_EXPLAIN_KERNEL_H

#include "base/arena.h"
#include "flow/judge.h"
#include "flow/launch_bind.h"
#include "flow/place.h"
#include "flow/ranges.h"

struct explain_access {
    const struct proof_access *access;
    enum judge_verdict verdict;
    enum proof_reason reason;    // UNKNOWN
    const struct ptx_form *op;   // UNKNOWN, OPERATOR: the instruction that is not understood; may be NULL
    uint32_t root;               // PROOF_NONE if not known
    struct proof_bound bound;    // with a launch
    struct judge_buffer buffer;  // with a launch
    struct judge_answer answer;  // with a launch
    uint32_t alike;              // further accesses that the text shows together with this one
    bool shown;                  // false: it is one of those
    unsigned nframes;
    struct place_frame *frames;  // innermost first
    uint32_t ptx_line;
    struct str words, guard,
        loops;  // the address, and when it is touched, in words; empty if unknown or none
};

struct explain_kernel {
    struct arena arena;
    const struct ptx_module *m;
    const struct ptx_func *f;
    struct ranges *ranges;
    const struct launch_bind *launch;  // NULL: none
    uint32_t naccesses;
    struct explain_access *accesses;
    uint32_t counts[JUDGE_VERDICTS];
};

// Explains a function with a body, for a launch if there is one. Returns 0, -ENOMEM, -E2BIG, or -EINVAL
// if no device can launch it so. explain_kernel_free must follow in any case. The launch must outlive
// it.
int explain_kernel_make(struct explain_kernel *k, const struct ptx_module *m, const struct ptx_func *f,
                        const struct launch_bind *launch);
void explain_kernel_free(struct explain_kernel *k);

// Returns the frame of the program's own code: the innermost that is not in a header of the toolkit.
const struct place_frame *explain_kernel_place(const struct explain_access *a);

#endif
