// SPDX-License-Identifier: MIT
// Short forms of the names of C++ functions, for people: those of a library of templates may take a
// thousand bytes.
#ifndef MOAT_REPORT_BRIEF_NAME_H
#define MOAT_REPORT_BRIEF_NAME_H

#include <stddef.h>

// Names up to this length stay as they are; brief ones may be longer still.
enum { BRIEF_NAME_MOST = 100 };

// Leaves out of a demangled name, in this order, and only until it is short enough: namespaces that are
// versions of Thrust, CUB and the C++ library; what template arguments are, as <...>; what parameters are,
// as (...). Of a name that is still mangled the names before the first template arguments are left. Returns
// `name`, or its brief form in `buffer`; `name` too if it does not fit.
const char *brief_name(const char *name, char *buffer, size_t size);

#endif
