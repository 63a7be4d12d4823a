// SPDX-License-Identifier: MIT
// cp.async, which completes at once, as the instruction allows. Internal to src/exec.
#ifndef MOAT_EXEC_CP_ASYNC_H
#define MOAT_EXEC_CP_ASYNC_H

#include "exec/warp.h"

// b: slot of the bytes to read from the source; c: predicate that ignores the source; 0 if absent. The two
// instructions that follow carry the addresses, source and destination, as a load and a store do, so that a
// fault has its address.
exec_fn cp_async;

#endif
