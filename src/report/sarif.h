// SPDX-License-Identifier: MIT
// Writes a SARIF 2.1.0 document, which code hosts and editors show beside the source.
#ifndef MOAT_REPORT_SARIF_H
#define MOAT_REPORT_SARIF_H

#include "base/out.h"
#include "report/document.h"

void sarif_write(struct out *o, const struct document *d);  // failures are kept in o

#endif
