// SPDX-License-Identifier: MIT
#ifndef MOAT_GUARD_HOOK_CONTEXT_H
#define MOAT_GUARD_HOOK_CONTEXT_H

#include "guard/only.h"

// Where the program had several, who waits for what is in one has not waited for all.
extern struct only hook_contexts;

void hook_context_after_fork(void);

#endif
