// SPDX-License-Identifier: MIT
// Quotes names in messages. A C++ name can be longer than a whole message, so only its beginning is printed.
//
//   report("... " QUOTE_FMT " is not declared", QUOTE_ARG(name))
#ifndef MOAT_PTX_QUOTE_H
#define MOAT_PTX_QUOTE_H

#include "base/str.h"

enum { QUOTE_MOST = 80 };

#define QUOTE_FMT "'%.*s%s'"
#define QUOTE_ARG(s) \
    (int)((s).len > QUOTE_MOST ? QUOTE_MOST : (s).len), (s).ptr, (s).len > QUOTE_MOST ? "..." : ""

#endif
