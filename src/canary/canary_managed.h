// SPDX-License-Identifier: MIT
// Plain buffers as in the GMODx paper, as a baseline for measurements: --canary-scan=managed. They are
// managed memory with canaries in pages of their own. The host reads these where they are, and the buffer is
// prefetched to the device.
//
//   | page: head of canary | buffer, and canary up to the end of its page | page: more canary |
//
// A struct canary_memory is all that the rest of the mode knows of it.
#ifndef MOAT_CANARY_CANARY_MANAGED_H
#define MOAT_CANARY_CANARY_MANAGED_H

#include "canary/canary_slab.h"

// Returns the memory of plain buffers, or NULL if the option asks for copies and they are suballocated.
const struct canary_memory *canary_managed_chosen(void);

#endif
