// SPDX-License-Identifier: MIT
// Instructions that lanes of a warp execute together. Internal to src/exec.
#ifndef MOAT_EXEC_MEET_H
#define MOAT_EXEC_MEET_H

#include "exec/warp.h"

// flags
enum {
    MEET_KIND = 15,
    MEET_SYNC = 16,  // e: the members; without it, whoever is here
    MEET_SIGNED = 32,
    MEET_CONSTANT = 128,  // all lanes name the same members
};

enum meet_shuffle { MEET_IDX, MEET_UP, MEET_DOWN, MEET_BFLY };
enum meet_vote { MEET_ALL, MEET_ANY, MEET_UNI, MEET_BALLOT };
enum meet_reduction { MEET_ADD, MEET_MIN, MEET_MAX, MEET_AND, MEET_OR, MEET_XOR };

exec_fn meet_shfl;        // d, imm.lo: slot of the predicate p; a value, b lane, c clamp
exec_fn meet_vote;        // d, a: predicate
exec_fn meet_match_any;   // d, a: 32 or 64 bits, by flags & MEET_WIDE
exec_fn meet_match_all;   // d, imm.lo: slot of the predicate
exec_fn meet_redux;       // d, a
exec_fn meet_elect;       // d: the lane, imm.lo: slot of the predicate
exec_fn meet_activemask;  // d
exec_fn meet_barrier;     // bar.warp.sync
enum { MEET_WIDE = 64 };

#endif
