// SPDX-License-Identifier: MIT
// Names that outlive whoever told them, each kept once, and the names of functions by their handles.
#ifndef MOAT_CONTEXT_NAMES_H
#define MOAT_CONTEXT_NAMES_H

#include <stdint.h>

// The same text, valid until the process ends; NULL for NULL, or when there is no more room.
const char *names_keep(const char *text);

// A CUfunction or CUkernel, and what it is called. A handle that comes again gets its new name.
void names_function(const void *handle, const char *name);
const char *names_of_function(const void *handle);  // NULL: not known

void names_after_fork(void);

#endif
