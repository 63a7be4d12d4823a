// SPDX-License-Identifier: MIT
// Writes an event as one line of JSON. The keys are documented in doc/reports.md and stable; new ones may be
// added. Addresses are strings, "0x7f2a00000400": JSON's numbers lose bits of them.
// Bytes that are not UTF-8 are written as \udc80 to \udcff, so that paths keep them.
//
// It uses no heap and no stdio, because it runs inside the watched process too.
#ifndef MOAT_REPORT_JSON_OUT_H
#define MOAT_REPORT_JSON_OUT_H

#include "report/report.h"
#include "report/text_buffer.h"

// JSON_OUT_LEAST bytes always have room for the members that identify the event and its process.
#define JSON_OUT_LEAST 512

// Appends the line and its '\n'. Members that do not fit are left out, the last frames and notes first; the
// line is still valid JSON, has "truncated":true, and b->cut is set. With less room than JSON_OUT_LEAST
// possibly nothing is written.
void json_out_line(struct text_buffer *b, const struct report_line *line);

#endif
