// SPDX-License-Identifier: MIT
// A process ends when its last thread has: libc counts them, and then calls exit. It counts ours too, so the process would stay
// for ever, without a thread of the program. So each of the program's threads that is known to allocate looks at its end whether it was
// the last. Others do not pass by here: the deliverer finds that nobody is left, but that is too late for what exit does.
#ifndef MOAT_HEAP_LAST_THREAD_H
#define MOAT_HEAP_LAST_THREAD_H

#include <stdbool.h>

// The calling thread ends, and its writer has retired. Does not return if it was the program's last.
void last_thread_leaves(void);

// For a thread of ours: whether nobody is left.
bool last_thread_has_left(void);

#endif
