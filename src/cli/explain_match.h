// SPDX-License-Identifier: MIT
// Finds the kernel that a user means by a name: mangled, demangled with or without its parameters, or
// the start of either if only one kernel starts so.
#ifndef MOAT_CLI_EXPLAIN_MATCH_H
#define MOAT_CLI_EXPLAIN_MATCH_H

#include "base/diag.h"
#include "flow/launch_text.h"
#include "ptx/ptx.h"
#include "report/demangle.h"

// Finds the kernel of a launch in a module. Returns 0; -ENOENT if there is none; or -EINVAL after a
// report that lists those that are meant as well as each other.
int explain_match(const struct ptx_module *m, const struct launch_text *launch, const struct demangle *names,
                  struct diag_sink *sink, const struct ptx_func **out);

// Returns how well a name fits: 0 not at all, 1 as the start, 2 without parameters, 3 wholly.
int explain_match_name(struct str wanted, const char *mangled, const char *demangled);

// Appends the names of a module's kernels, without their parameters, to a list; truncated to its size.
void explain_match_list(const struct ptx_module *m, const struct demangle *names, char *list, size_t size);

// Writes a demangled name without its return type and parameters: "scale<float>".
void explain_match_short(const char *demangled, char *name, size_t size);

#endif
