// SPDX-License-Identifier: MIT
#ifndef MOAT_HOOK_HOOK_CONTEXT_H
#define MOAT_HOOK_HOOK_CONTEXT_H

#include "core/only.h"

// Where the program had several, who waits for what is in one has not waited for all.
extern struct only hook_contexts;

void hook_context_after_fork(void);

#endif
