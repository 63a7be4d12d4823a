// SPDX-License-Identifier: MIT
#ifndef MOAT_BASE_READABLE_H
#define MOAT_BASE_READABLE_H

#include <stdbool.h>
#include <stddef.h>

// Returns whether the process may read the n bytes at p, without risking a fault. Where the system denies the
// query, readable_bytes returns true: the caller is trusted. errno is kept.
bool readable_bytes(const void *p, size_t n);
bool readable_surely(const void *p, size_t n);  // returns false where the system denies the query

#endif
