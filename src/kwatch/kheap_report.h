// SPDX-License-Identifier: MIT
// Turns records of the kernels' heap into reports.
#ifndef MOAT_KWATCH_KHEAP_REPORT_H
#define MOAT_KWATCH_KHEAP_REPORT_H

#include "canary/canary_scan.h"
#include "kwatch/kheap_host.h"

// Reports a record. It is a copy, and nothing in it is trusted.
void kheap_report_record(const struct kheap_record *record, const struct context *ctx,
                         const struct kheap_host *heap, const struct canary_occasion *occasion);

// Recovers the size of a buffer from its head canary, if only the size was overwritten. Returns true if r was
// updated with the size and the canary that goes with it.
bool kheap_report_recover(const struct kheap *k, struct kheap_record *r);

#endif
