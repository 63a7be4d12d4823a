// SPDX-License-Identifier: MIT
// PTX with comments that say what an analysis found. It is still PTX, and parses to the same module.
#ifndef MOAT_FLOW_DUMP_H
#define MOAT_FLOW_DUMP_H

#include "ptx/ptx.h"

extern const char *const flow_analysis_names;  // all of them, for a message: "cfg, dominators, ..."
bool flow_analysis_known(const char *name);

// Requires a known name; see analyses.def. What cannot be analysed is printed plain, with a comment.
// 0, -ENOMEM or -E2BIG; failures of the output are the output's.
int flow_dump(const char *analysis, const struct ptx_module *m, const struct ptx_func *f, struct out *to);
int flow_dump_module(const char *analysis, const struct ptx_module *m, struct out *to);

#endif
