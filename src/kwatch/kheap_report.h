// SPDX-License-Identifier: MIT
// From a record that the kernels' heap wrote to a report.
#ifndef MOAT_KWATCH_KHEAP_REPORT_H
#define MOAT_KWATCH_KHEAP_REPORT_H

#include "canary/canary_scan.h"
#include "kwatch/kheap_host.h"

// The record is a copy: nothing in it is trusted.
void kheap_tell(const struct kheap_record *record, const struct context *ctx, const struct kheap_host *heap,
                const struct canary_occasion *occasion);

// Where the size of a buffer was overwritten and its head canary was not: the size that goes with that canary. True: r has
// it, and what was made of it.
bool kheap_report_recover(const struct kheap *k, struct kheap_record *r);

#endif
