// SPDX-License-Identifier: MIT
// Rewritten texts are compiled by the driver's linker, together with the functions that they call.
#ifndef MOAT_REWRITE_REWRITE_LINK_H
#define MOAT_REWRITE_REWRITE_LINK_H

#include "rewrite/rewrite_jit.h"

// Begins a link. *link is NULL after a failure; otherwise cuLinkDestroy must follow.
CUresult rewrite_link_open(struct rewrite_jit *jit, CUlinkState *link);
// Adds a text that a NUL follows. registers: most that the compiler may use for it; 0: no limit of its own.
CUresult rewrite_link_add(CUlinkState link, struct str text, const char *name, unsigned registers);
// Adds the functions that `caller` calls, compiled with few registers. NULL: it calls none.
CUresult rewrite_link_apart(CUlinkState link, struct str caller, const struct pass_apart *apart);

#endif
