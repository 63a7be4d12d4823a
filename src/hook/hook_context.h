// SPDX-License-Identifier: MIT
#ifndef MOAT_HOOK_HOOK_CONTEXT_H
#define MOAT_HOOK_HOOK_CONTEXT_H

void hook_context_after_fork(void);

#endif
