// SPDX-License-Identifier: MIT
// --kernel-name in a watched process: which kernels a mode rewrites, checks or names in reports.
#ifndef MOAT_CONTEXT_KERNEL_FILTER_H
#define MOAT_CONTEXT_KERNEL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

// Compiles guard.options.kernel_name, once, before the modes start. If that fails, all kernels are chosen and
// the reason is written to why; it returns false.
bool kernel_filter_start(char *why, size_t size);

bool kernel_filter_on(void);  // false: all kernels are chosen
bool kernel_filter_wants(struct str name);
// Returns whether one of these kernels is chosen, or none is known.
bool kernel_filter_any(const char *const *names, unsigned n);
uint64_t kernel_filter_sum(void);  // of the pattern, for the key of a cache

#endif
