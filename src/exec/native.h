// SPDX-License-Identifier: MIT
// Functions that are executed in C in place of their PTX: base/native_rows.h. Internal to src/exec, except
// exec_native_add (exec.h).
#ifndef MOAT_EXEC_NATIVE_H
#define MOAT_EXEC_NATIVE_H

#include "base/native_rows.h"
#include "exec/control.h"
#include "exec/load.h"

// What a function of a program is executed by.
struct native_bound {
    const struct native_row *row;
    uint64_t variables[NATIVE_VARIABLES];
};

// Sets `native` of the program's functions whose texts are those of offered rows. Call it when all variables
// have been placed and all names resolved.
void native_bind(struct load *l);

// Makes the call i, of a function with `native`, for the lanes of w->mask. Returns false if no lane's call is
// done. Otherwise the caller continues behind the call with the lanes of w->mask; the others, if any, have
// been split off and will make the call again.
bool native_call(struct exec_warp *w, const struct exec_insn *i, const struct exec_func *f);

#endif
