// SPDX-License-Identifier: MIT
#ifndef MOAT_GUARD_HOOK_CONTEXT_H
#define MOAT_GUARD_HOOK_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>

// The program had more than one: who waits for what is in one has not waited for all. Relaxed: set before it has the second.
extern _Atomic(bool) hook_context_several;

void hook_context_after_fork(void);

#endif
