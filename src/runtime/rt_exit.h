// SPDX-License-Identifier: MIT
//
// Says whether the process has begun to exit. Compiled code unregisters its modules in exit handlers, which
// run when the process exits and when a library is closed: only in the second case may they be unloaded.
#ifndef MOAT_RUNTIME_RT_EXIT_H
#define MOAT_RUNTIME_RT_EXIT_H

#include <stdbool.h>

// Makes rt_exit_begun true in exit handlers that were registered before this call: handlers run in the
// opposite order. To be called after each first use of a module, whose own handler was registered with it.
void rt_exit_watch(void);

bool rt_exit_begun(void);

#endif
