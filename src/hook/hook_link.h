// SPDX-License-Identifier: MIT
// What hook_link.c must be told besides the calls that it wraps.
#ifndef MOAT_HOOK_HOOK_LINK_H
#define MOAT_HOOK_HOOK_LINK_H

void hook_link_after_fork(void);

#endif
