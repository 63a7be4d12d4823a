// SPDX-License-Identifier: MIT
// Plain buffers as the GMODx paper has them, for measurements to compare with: --canary-scan=managed. They
// become managed memory with canaries in pages of their own; the host reads these where they are, and the
// buffer is taken to the device.
//
//   | page: head of canary | buffer, and canary up to the end of its page | page: more canary |
//
// The rest of the mode knows of it what a row of struct canary_memory says.
#ifndef MOAT_CANARY_CANARY_MANAGED_H
#define MOAT_CANARY_CANARY_MANAGED_H

#include "canary/canary_slab.h"

// The memory that plain buffers get; NULL: the option asks for copies, and they lie in memory that we divide
// up.
const struct canary_memory *canary_managed_chosen(void);

#endif
