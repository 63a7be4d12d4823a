// SPDX-License-Identifier: MIT
// Prints PTX with comments that show the result of an analysis. The output is PTX that parses to the same
// module.
#ifndef MOAT_FLOW_DUMP_H
#define MOAT_FLOW_DUMP_H

#include "ptx/ptx.h"

extern const char *const flow_analysis_names;  // all of them, for a message: "cfg, dominators, ..."
bool flow_analysis_known(const char *name);

// Prints a function, or every one, with the results of an analysis of analyses.def, whose name must be known.
// What cannot be analysed is printed without results, with a comment. Returns 0, -ENOMEM or -E2BIG; failures
// of the output are in `to`.
int flow_dump(const char *analysis, const struct ptx_module *m, const struct ptx_func *f, struct out *to);
int flow_dump_module(const char *analysis, const struct ptx_module *m, struct out *to);

#endif
