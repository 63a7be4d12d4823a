// SPDX-License-Identifier: MIT
// Suppressions: errors that the user does not want reported. A file of suppressions has lines of the form
//
//   # a comment
//   type:pattern
//
// where type is an error's name or *, and pattern, in which * stands for any text and ? for any character, is
// compared with the kernel, the call, and the functions, objects and source files of the report's stack,
// which for a leak, and for what a monitor of the CPU heap finds, is that of the allocation. Lines of a saved
// report (JSON Lines) suppress errors equal to theirs: same type, call, kernel and place in it, and functions
// of the stack.
#ifndef MOAT_REPORT_SUPPRESS_H
#define MOAT_REPORT_SUPPRESS_H

#include <stdbool.h>

#include "base/diag.h"
#include "report/demangle.h"
#include "report/report.h"

struct suppress;
struct suppress *suppress_new(void);  // NULL if out of memory
void suppress_free(struct suppress *s);

// Adds the suppressions of a file; several files may be added. Returns 0; -EINVAL after reporting each bad
// line to the sink (the good ones are added); -ENOMEM; suppress_load also the negative errno of reading,
// which is not reported.
int suppress_load(struct suppress *s, const char *path, struct diag_sink *sink);
int suppress_parse(struct suppress *s, const char *name, struct str text, struct diag_sink *sink);

// Returns whether an error is suppressed. It must have been symbolised (symbol.h). It is compared with saved
// reports by names, not by addresses.
bool suppress_match(struct suppress *s, const struct report *r, const struct demangle *demangle);

#endif
