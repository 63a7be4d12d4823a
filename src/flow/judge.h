// SPDX-License-Identifier: MIT
// Whether what an access touches (proof.h) lies inside its buffer.
#ifndef MOAT_FLOW_JUDGE_H
#define MOAT_FLOW_JUDGE_H

#include "flow/proof.h"
#include "ptx/ptx.h"

// From the most important to the least.
enum judge_verdict {
    JUDGE_OUTSIDE,      // certain: some thread leaves the buffer
    JUDGE_MAYBE,        // bounded, and the bound exceeds the buffer; whether a thread does is not known
    JUDGE_UNKNOWN,      // not bounded
    JUDGE_BOUNDED,      // bounded, but no buffer is known to compare with
    JUDGE_INSIDE,       // certain
    JUDGE_UNREACHABLE,  // no thread of the launch gets there
    JUDGE_VERDICTS,
};

// "outside", "maybe outside", "not bounded", ...
const char *judge_text(enum judge_verdict verdict);
const char *judge_key(enum judge_verdict verdict);  // for programs: "maybe_outside"

// The buffer that a root lies in.
struct judge_buffer {
    bool known;
    bool soft;      // nothing outside is certain, for example because the memory may go on behind its end
    uint64_t size;  // in bytes
    uint64_t into;  // the root's place in it
};

struct judge_answer {
    enum judge_verdict verdict;
    // OUTSIDE, MAYBE: the first and last byte of the bound as places in the buffer, and what is wrong.
    int64_t first, last;
    uint64_t before, needs;  // bytes before the buffer, or bytes that it would have to have; 0: neither
};

// Returns the buffer of a variable: a root that is no parameter. Dynamic shared memory has `dynamic` bytes.
struct judge_buffer judge_variable(const struct proof_root *root, uint32_t dynamic);

// Writes the name of a root: "p0" for the first parameter, "p0.8" for a pointer 8 bytes into it, the name of
// a variable, or "p0 or p1"; truncated.
void judge_root(const struct proof *p, uint32_t root, char *text, size_t size);

struct judge_answer judge_bound(const struct proof_bound *bound, const struct judge_buffer *buffer);

#endif
