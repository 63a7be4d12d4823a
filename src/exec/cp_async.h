// SPDX-License-Identifier: MIT
// cp.async: done at once, which the instruction allows. Internal to src/exec.
#ifndef MOAT_EXEC_CP_ASYNC_H
#define MOAT_EXEC_CP_ASYNC_H

#include "exec/warp.h"

struct cp_async_places {
    struct exec_insn from, to;  // their addresses, as for a load and a store
};

exec_fn
    cp_async;  // ptr: cp_async_places; b: slot of the bytes that exist, c: predicate to ignore them; 0 if absent

#endif
