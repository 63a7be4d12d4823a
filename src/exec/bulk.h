// SPDX-License-Identifier: MIT
// Bulk copies, and stores that signal an mbarrier. They complete at once, which the instructions allow.
// Internal to src/exec.
#ifndef MOAT_EXEC_BULK_H
#define MOAT_EXEC_BULK_H

#include "exec/warp.h"

// flags
enum {
    BULK_SIGNALS = 1,     // signals the bytes to the mbarrier addressed by the last instruction
    BULK_REDUCES = 2,     // cp.reduce: e has the operation, as in atomic.h
    BULK_MULTICAST = 4,   // c: mask of the cluster's blocks that receive the bytes
    BULK_SIZE_SHIFT = 8,  // st.async, red.async: bytes
};

exec_fn bulk_copy;    // b: bytes; addresses: i + 1 destination, i + 2 source, i + 3 mbarrier
exec_fn bulk_signal;  // st.async and red.async: signals the bytes stored; i + 1: the mbarrier

#endif
