// SPDX-License-Identifier: MIT
// cp.async: done at once, which the instruction allows. Internal to src/exec.
#ifndef MOAT_EXEC_CP_ASYNC_H
#define MOAT_EXEC_CP_ASYNC_H

#include "exec/warp.h"

// b: slot of the bytes that exist, c: predicate to ignore them; 0 if absent. The two instructions behind it have the
// addresses, from and to, as for a load and a store: so a fault knows its place.
exec_fn cp_async;

#endif
