// SPDX-License-Identifier: MIT
// Tensor maps among the parameters of a launch.
#ifndef MOAT_CHECK_CHECK_TENSOR_H
#define MOAT_CHECK_CHECK_TENSOR_H

#include <stdint.h>

#include "kcheck/kcheck.h"

// Fills what a checked kernel gets to know of the map in these 128 bytes. Call it inside an epoch section.
void check_tensor_fill(const char *bytes, struct kcheck_map *out);

// Returns a sentence about the last map of a tensor at the address, NULL if there is none. The text stays
// until the next call, which must not run at the same time.
const char *check_tensor_note(uint64_t address);

#endif
