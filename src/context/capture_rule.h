// SPDX-License-Identifier: MIT
// Captures that forbid their thread, or every thread, to allocate. When a mode suballocates memory there is
// no call of the driver that could refuse, so the mode asks here first.
#ifndef MOAT_CONTEXT_CAPTURE_RULE_H
#define MOAT_CONTEXT_CAPTURE_RULE_H

#include <stdbool.h>

#include "driver/driver.h"

void capture_rule_begun(CUstream stream, CUstreamCaptureMode mode);
void capture_rule_ended(CUstream stream);

// Returns whether the driver would refuse an allocation of this thread. Cheap while no capture is under way.
bool capture_rule_forbids(void);

void capture_rule_after_fork(void);

#endif
