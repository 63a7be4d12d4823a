// SPDX-License-Identifier: MIT
#ifndef MOAT_GUARD_HOOK_CONTEXT_H
#define MOAT_GUARD_HOOK_CONTEXT_H

void hook_context_after_fork(void);

#endif
