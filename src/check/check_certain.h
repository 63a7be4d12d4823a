// SPDX-License-Identifier: MIT
// Errors that a launch is certain to make, reported before it is made.
//
// What the kernel's proof bounds exactly, some thread of the launch touches, whatever memory contains. If
// that lies outside of the root's buffer, the report is out before the kernel runs: a kernel that faults,
// never ends, or runs unchecked after all, cannot prevent it. It is made of the record that the kernel would
// write, with the thread for which the proof gives a wrong address, so that it says the same. The kernel's
// own record of the error then is not a report of its own (guard_report.h, foretold).
//
// Left to the kernel: whatever might be right after all. That is memory whose end is not the end of what is
// there (registered and mapped memory, memory of graphs), buffers that a stream frees in its order, a pointer
// that is the end of another buffer, and roots that may be numbers.
#ifndef MOAT_CHECK_CHECK_CERTAIN_H
#define MOAT_CHECK_CHECK_CERTAIN_H

// Has launches report such errors (check_launch.h).
void check_certain_start(void);

#endif
