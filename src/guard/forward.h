// SPDX-License-Identifier: MIT
// Exports every symbol of libcuda as one jump through a table. A slot holds the driver's own function or, if
// hooks.def names the call, the guard's. Until the first call each slot holds a stub that starts the guard: a
// process that never uses CUDA pays nothing and opens nothing.
//
// A slot may hold forward_watched, which calls the function behind the slot and returns here to see the
// result. Its frame has room for a copy of 16 words of stack arguments: no call of the driver API has more.
#ifndef MOAT_GUARD_FORWARD_H
#define MOAT_GUARD_FORWARD_H

#include "hook/hook.h"

// What hook_install fills.
extern const struct hook_forwarder forward_tables;

#endif
