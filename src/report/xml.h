// SPDX-License-Identifier: MIT
// Writes XML in the shape of compute-sanitizer's, for programs that read that.
#ifndef MOAT_REPORT_XML_H
#define MOAT_REPORT_XML_H

#include "base/out.h"
#include "report/document.h"

void xml_write(struct out *o, const struct document *d);  // failures are kept in o

#endif
