// SPDX-License-Identifier: MIT
// Which kernels --mode=check let run unchecked, and how often. Any thread may count, without a lock.
#ifndef MOAT_CHECK_CHECK_UNCHECKED_H
#define MOAT_CHECK_CHECK_UNCHECKED_H

// Counts a launch. Names are compared as pointers (names.h); NULL: the name is not known.
void check_unchecked_count(const char *name);
void check_unchecked_report(void);  // sends the list, most launches first; nothing if it is empty
void check_unchecked_after_fork(void);

#endif
