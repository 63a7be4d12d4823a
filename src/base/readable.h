// SPDX-License-Identifier: MIT
#ifndef MOAT_BASE_READABLE_H
#define MOAT_BASE_READABLE_H

#include <stdbool.h>
#include <stddef.h>

// Whether the process may read these bytes, found out without a fault. Where the system lets nobody ask, true: the
// caller is trusted. Keeps errno.
bool readable_bytes(const void *p, size_t n);
bool readable_surely(const void *p, size_t n);  // false where the system does not tell

#endif
