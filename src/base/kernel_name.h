// SPDX-License-Identifier: MIT
// Kernels by name: what --kernel-name chooses.
//
// A pattern, a POSIX extended regular expression, is searched in a kernel's mangled name and in its name as
// it stands in the source, without template arguments and parameters: `_ZN3net4ReLUIfEEvPT_` is net::ReLU.
#ifndef MOAT_BASE_KERNEL_NAME_H
#define MOAT_BASE_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct kernel_name_pattern;

// Compiles a pattern. Returns 0; -EINVAL with the reason in why, if the text is no regular expression; or
// -ENOMEM.
int kernel_name_compile(const char *text, struct kernel_name_pattern **out, char *why, size_t size);
void kernel_name_free(struct kernel_name_pattern *p);
// Returns whether a kernel of this mangled name is chosen. Several threads may ask at once.
bool kernel_name_matches(const struct kernel_name_pattern *p, const char *mangled);

// Writes the name in the source; names beyond the size are cut off. Returns false if the name is not mangled,
// or in a way that is not known; the buffer then holds the name as it is.
bool kernel_name_plain(const char *mangled, char *plain, size_t size);

#endif
