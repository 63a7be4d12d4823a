// SPDX-License-Identifier: MIT
// Initialises the lock of hook_link.c anew in the child of a fork.
#ifndef MOAT_HOOK_HOOK_LINK_H
#define MOAT_HOOK_HOOK_LINK_H

void hook_link_after_fork(void);

#endif
