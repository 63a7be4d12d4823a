// SPDX-License-Identifier: MIT
// An event as one line of JSON. The keys are documented in doc/reports.md and stay as they are; new ones may come.
// Addresses are strings, "0x7f2a00000400": JSON's numbers lose bits of them.
//
// No heap, no stdio: it runs inside the watched process too.
#ifndef MOAT_REPORT_JSON_OUT_H
#define MOAT_REPORT_JSON_OUT_H

#include "report/report.h"
#include "report/text_buffer.h"

// With JSON_OUT_LEAST bytes of room, what says which event it is of which process always fits.
#define JSON_OUT_LEAST 512

// Appends the line and its '\n'. What does not fit is left out member by member, the last frames and notes first; the
// line is whole JSON all the same, says "truncated":true, and b->cut is set. With less room than JSON_OUT_LEAST
// possibly nothing is written.
void json_out_line(struct text_buffer *b, const struct report_line *line);

#endif
