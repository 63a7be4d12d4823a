// SPDX-License-Identifier: MIT
// Reads the lines that json_out.h writes. They come from processes that may be corrupted and from files that
// may be anything. Unknown keys are skipped, so that older commands read newer reports.
#ifndef MOAT_REPORT_JSON_IN_H
#define MOAT_REPORT_JSON_IN_H

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "report/report.h"

// Parses a line, which may end with a line end. *out lives in the arena and does not refer to `line`. Returns
// 0; -EINVAL with the reason in `why` ("column 12: ..."); or -ENOMEM, also at the arena's limit: a->on_fail
// is not used.
int json_in_line(struct arena *a, struct str line, struct report_line *out, char *why, size_t size);

#endif
