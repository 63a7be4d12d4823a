// SPDX-License-Identifier: MIT
// Names that outlive their source, each kept once. kernels.h holds all else about kernels.
#ifndef MOAT_CONTEXT_NAMES_H
#define MOAT_CONTEXT_NAMES_H

#include <stdint.h>

// Returns a copy of the text that is valid until the process ends. Returns NULL for NULL, or if there is no
// room.
const char *names_keep(const char *text);

void names_after_fork(void);

#endif
