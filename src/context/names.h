// SPDX-License-Identifier: MIT
// Names that outlive whoever told them, each kept once. What else is known of kernels is in kernels.h.
#ifndef MOAT_CONTEXT_NAMES_H
#define MOAT_CONTEXT_NAMES_H

#include <stdint.h>

// The same text, valid until the process ends; NULL for NULL, or when there is no more room.
const char *names_keep(const char *text);

// A CUfunction or CUkernel, and what it is called (kernels_found, kernels_name). A handle that comes again
// gets its new name.
void names_function(const void *handle, const char *name);
const char *names_of_function(const void *handle);  // NULL: not known

void names_after_fork(void);

#endif
