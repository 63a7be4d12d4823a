// SPDX-License-Identifier: MIT
// Copies of many bytes, and stores that signal a barrier. They are done at once, which the instructions allow. Internal
// to src/exec.
#ifndef MOAT_EXEC_BULK_H
#define MOAT_EXEC_BULK_H

#include "exec/warp.h"

// flags
enum {
    BULK_SIGNALS = 1,     // a barrier is told the bytes: its address is the last instruction's
    BULK_REDUCES = 2,     // cp.reduce: e has the operation, as of atomic.h
    BULK_MULTICAST = 4,   // c: which blocks of the cluster get it
    BULK_SIZE_SHIFT = 8,  // st.async, red.async: bytes
};

exec_fn bulk_copy;    // b: bytes; addresses: i + 1 to, i + 2 from, i + 3 of the barrier
exec_fn bulk_signal;  // st.async and red.async: what was stored is told; i + 1: the barrier

#endif
