// SPDX-License-Identifier: MIT
// Branches, calls and ends. Internal to src/exec.
#ifndef MOAT_EXEC_CONTROL_H
#define MOAT_EXEC_CONTROL_H

#include "exec/sched.h"

// flags of branches
enum {
    CONTROL_NEGATED = 1,     // taken by lanes whose predicate in a is false
    CONTROL_JOIN = 2,        // the target is a control_join
    CONTROL_SPINS = 4,       // back to the header of a loop that only waits
    CONTROL_COST_SHIFT = 8,  // fuel that the jump takes; 0: a forward jump
};

struct control_table {
    uint32_t n;
    const struct exec_insn *targets[];
};

struct control_call {
    const struct exec_func *func;  // NULL: the function's address is in slot a
    uint32_t nargs, nrets;
    const struct exec_place *args, *rets;  // in the caller's frame
};

exec_fn control_join;
exec_fn control_guard;  // the next instruction runs for lanes whose predicate in a holds
exec_fn control_bra;    // target
exec_fn control_bra_if;
exec_fn control_brx;   // a: index, ptr: control_table
exec_fn control_call;  // ptr: control_call
exec_fn control_ret;
exec_fn control_exit;  // ends all lanes; with CONTROL_IF, those whose predicate in a holds
exec_fn control_trap;
exec_fn control_illegal;
exec_fn control_nanosleep;
enum { CONTROL_IF = 16 };

#endif
