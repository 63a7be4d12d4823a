// SPDX-License-Identifier: MIT
// Threads of ours have descriptors of their own. While a table of descriptors is one thread's, the kernel need not count who
// uses a file during a call: a program that is one thread stays as quick as it was. And what we open takes no number that the
// program could have got.
//
// Such a thread holds none of the program's files open. It fetches standard error when it has something to say: whatever that is
// by then, from the process's first thread, or from another one if that has ended.
#ifndef MOAT_HEAP_OWN_FDS_H
#define MOAT_HEAP_OWN_FDS_H

#include <stdbool.h>
#include <sys/types.h>

// The calling thread gets an empty table. False: the system cannot do it, or not get standard error back.
bool own_fds_leave(void);
bool own_fds_is(void);  // whether the calling thread has left

// All threads of ours, whether they could leave or not: each joins at its start.
enum { OWN_FDS_MOST = 32 };
void own_fds_join(void);
bool own_fds_is_ours(void);             // whether the calling thread is one of them
unsigned own_fds_threads(pid_t *tids);  // how many; room for OWN_FDS_MOST
void own_fds_after_fork(void);          // in the child: there are none

// The program's standard error, as a descriptor that the caller closes; -1: there is none.
int own_fds_standard_error(void);

#endif
