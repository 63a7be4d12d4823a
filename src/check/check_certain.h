// SPDX-License-Identifier: MIT
// Errors that a launch is certain to make, reported before it is made.
//
// What the kernel's proof bounds exactly, some thread of the launch touches, whatever memory contains. If that
// lies outside of the root's buffer, the report is out before the kernel runs: a kernel that faults, never
// ends, or runs unchecked after all, cannot prevent it. It is made of the record that the kernel would write,
// with the thread for which the proof gives a wrong address, so that it says the same. The kernel's own record
// of the error then is not a report of its own (guard_report.h, foretold).
//
// Left to the kernel: whatever might be right after all. That is memory whose end is not the end of what is
// there (registered and mapped memory, memory of graphs), buffers that a stream frees in its order, a pointer
// that is the end of another buffer, and roots that may be numbers.
#ifndef MOAT_CHECK_CHECK_CERTAIN_H
#define MOAT_CHECK_CHECK_CERTAIN_H

#include "check/check_kernel.h"
#include "track/track.h"

// Returns whether an access by way of a pointer into such memory is wrong wherever it leaves its block.
bool check_certain_may_be(enum track_family family);

// number: of the launch, whose stack is known, and its parameters if a proof is to be shown.
void check_certain_report(const struct launch_call *l, const struct check_kernel *k,
                          const struct check_certain *c, uint64_t number, const void *bytes, size_t size);

#endif
