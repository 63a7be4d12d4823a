// SPDX-License-Identifier: MIT
// Detects the end of the program's last thread. libc counts threads and calls exit when the last one ends; it
// counts ours too, so the process would never end. So each program thread that has allocated checks at its
// end whether it was the last. Threads that never allocated do not come here: for them the deliverer detects
// that none is left, which is too late to run exit handlers.
#ifndef MOAT_HEAP_LAST_THREAD_H
#define MOAT_HEAP_LAST_THREAD_H

#include <stdbool.h>

// To be called when the calling thread ends and its producer has retired. Does not return if it was the
// program's last thread.
void last_thread_leaves(void);

// For a thread of ours: returns whether no thread of the program is left.
bool last_thread_has_left(void);

#endif
