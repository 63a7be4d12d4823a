// SPDX-License-Identifier: MIT
// Captures that forbid their thread, or every thread, to allocate. When a mode suballocates memory there is
// no call of the driver that could refuse, so the mode asks here first.
#ifndef MOAT_CONTEXT_CAPTURE_RULE_H
#define MOAT_CONTEXT_CAPTURE_RULE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/driver.h"

// A capture has begun, or may have while moat was paused. Relaxed: a launch that may become part of a capture
// comes after the call that began it.
extern _Atomic(bool) capture_rule_any;
static inline void capture_rule_begins(void)
{
    atomic_store_explicit(&capture_rule_any, true, memory_order_relaxed);
}

void capture_rule_begun(CUstream stream, CUstreamCaptureMode mode);
void capture_rule_ended(CUstream stream);

// Returns whether the driver would refuse an allocation of this thread. Cheap while no capture is under way.
bool capture_rule_forbids(void);

void capture_rule_after_fork(void);

#endif
