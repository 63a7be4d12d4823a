// SPDX-License-Identifier: MIT
// Names that outlive whoever told them, each kept once. What else is known of kernels is in kernels.h.
#ifndef MOAT_CONTEXT_NAMES_H
#define MOAT_CONTEXT_NAMES_H

#include <stdint.h>

// The same text, valid until the process ends; NULL for NULL, or when there is no more room.
const char *names_keep(const char *text);

void names_after_fork(void);

#endif
