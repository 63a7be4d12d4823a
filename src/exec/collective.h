// SPDX-License-Identifier: MIT
// Warp collectives: instructions that lanes of a warp execute together. Internal to src/exec.
#ifndef MOAT_EXEC_COLLECTIVE_H
#define MOAT_EXEC_COLLECTIVE_H

#include "exec/warp.h"

// flags
enum {
    COLLECTIVE_KIND = 15,
    COLLECTIVE_SYNC = 16,  // e: the members; otherwise, the active lanes
    COLLECTIVE_SIGNED = 32,
    COLLECTIVE_CONSTANT = 128,  // all lanes name the same members
};

enum collective_shuffle { COLLECTIVE_IDX, COLLECTIVE_UP, COLLECTIVE_DOWN, COLLECTIVE_BFLY };
enum collective_vote { COLLECTIVE_ALL, COLLECTIVE_ANY, COLLECTIVE_UNI, COLLECTIVE_BALLOT };
enum collective_reduction {
    COLLECTIVE_ADD,
    COLLECTIVE_MIN,
    COLLECTIVE_MAX,
    COLLECTIVE_AND,
    COLLECTIVE_OR,
    COLLECTIVE_XOR
};

exec_fn collective_shfl;        // d, imm.lo: slot of the predicate p; a: value, b: lane, c: clamp
exec_fn collective_vote;        // d, a: predicate
exec_fn collective_match_any;   // d, a: 32 or 64 bits, by flags & COLLECTIVE_WIDE
exec_fn collective_match_all;   // d, imm.lo: slot of the predicate
exec_fn collective_redux;       // d, a
exec_fn collective_elect;       // d: the lane; imm.lo: slot of the predicate
exec_fn collective_activemask;  // d
exec_fn collective_barrier;     // bar.warp.sync
enum { COLLECTIVE_WIDE = 64 };

#endif
