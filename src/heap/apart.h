// SPDX-License-Identifier: MIT
// Threads of ours have descriptors of their own. While a table of descriptors is one thread's, the kernel need not count who
// uses a file during a call: a program that is one thread stays as quick as it was. And what we open takes no number that the
// program could have got.
//
// Such a thread holds none of the program's files open. It fetches standard error when it has something to say: whatever that is
// by then.
#ifndef MOAT_HEAP_APART_H
#define MOAT_HEAP_APART_H

#include <stdbool.h>

// The calling thread gets an empty table. False: the system cannot do it, or not get standard error back.
bool apart_leave(void);
bool apart_is(void);  // whether the calling thread has left

// The program's standard error, as a descriptor that the caller closes; -1: there is none.
int apart_standard_error(void);

#endif
