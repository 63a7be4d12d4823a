// SPDX-License-Identifier: MIT
// Words that the parser reads and the printer writes, indexed by enumerator; [0] is empty.
#ifndef MOAT_PTX_WORDS_H
#define MOAT_PTX_WORDS_H

#include "ptx/ptx.h"

enum { WORDS_SELECT = PTX_SEL_H1 + 1, WORDS_LINKAGE = PTX_COMMON + 1 };

extern const char *const words_select[WORDS_SELECT];    // enum ptx_select: ".x"
extern const char *const words_linkage[WORDS_LINKAGE];  // enum ptx_linkage: ".visible"

#endif
