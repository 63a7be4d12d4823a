// SPDX-License-Identifier: MIT
// ptxas as a program of its own, as JAX, Triton and nvcc start it. libmoat.so is in each process that a
// watched one starts, and where that is ptxas, libmoat.so keeps the PTX by the machine code (ptx_store.h)
// when ptxas ends.
#ifndef MOAT_GUARD_PTXAS_H
#define MOAT_GUARD_PTXAS_H

#include <stdbool.h>

#include "base/str.h"

// Called when libmoat.so is loaded. Does nothing if this process is not ptxas or nobody wants its PTX.
void ptxas_watch(void);

// Finds the only input and the output in ptxas's arguments, each with its NUL, as /proc/self/cmdline has
// them. Returns false if there are several inputs, none, or no output.
bool ptxas_files(struct str arguments, const char **input, const char **output);

#endif
