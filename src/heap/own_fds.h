// SPDX-License-Identifier: MIT
// Gives our threads descriptor tables of their own. While a table belongs to one thread, the kernel need not
// count references to a file during a call, so a single-threaded program stays as fast as without us. And
// what we open takes no descriptor number from the program.
//
// Such a thread keeps none of the program's files open. When it has something to report, it fetches standard
// error, whatever that is by then, from the process's first thread, or from another one if that has ended.
#ifndef MOAT_HEAP_OWN_FDS_H
#define MOAT_HEAP_OWN_FDS_H

#include <stdbool.h>
#include <sys/types.h>

// Gives the calling thread an empty table. Returns false if the system does not support this, or would not
// let us fetch standard error.
bool own_fds_unshare(void);
bool own_fds_has(void);  // whether the calling thread has its own table

// The list of all our threads, with or without a table of their own: each registers at its start.
enum { OWN_FDS_MOST = 32 };
void own_fds_register(void);
bool own_fds_is_our_thread(void);       // whether the calling thread is one of ours
unsigned own_fds_threads(pid_t *tids);  // returns how many; tids has room for OWN_FDS_MOST
void own_fds_after_fork(void);          // in the child: our threads do not exist

// Returns the program's standard error as a descriptor that the caller closes; -1 if there is none.
int own_fds_standard_error(void);

#endif
