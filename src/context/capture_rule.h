// SPDX-License-Identifier: MIT
// Captures that forbid their thread, or every thread, to allocate. Memory that a mode divides up itself takes no call of the
// driver's, which would refuse: whoever gives it out asks here first.
#ifndef MOAT_CONTEXT_CAPTURE_RULE_H
#define MOAT_CONTEXT_CAPTURE_RULE_H

#include <stdbool.h>

#include "driver/driver.h"

void capture_rule_begun(CUstream stream, CUstreamCaptureMode mode);
void capture_rule_ended(CUstream stream);

// Whether the driver would refuse this thread. Cheap where nobody captures.
bool capture_rule_forbids(void);

void capture_rule_after_fork(void);

#endif
