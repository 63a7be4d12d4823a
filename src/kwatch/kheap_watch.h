// SPDX-License-Identifier: MIT
// Looks at the heaps of kheap_host.h: launches the kernel that compares canaries and releases what was freed, reads what it
// and free have put into the ring, and reports.
//
// The kernel is short, runs on a stream of ours and is never waited for with a lock that the program may want for longer than
// a moment: on a GPU that is full of blocks it waits for one of them to end. So the monitor launches one and looks a
// little later whether it has ended. The ring is the host's memory: double frees are read from it while their kernel runs.
#ifndef MOAT_KWATCH_KHEAP_WATCH_H
#define MOAT_KWATCH_KHEAP_WATCH_H

#include "canary/canary_scan.h"

// Under the lock of scans, one context after the other. Reads and reports what is there; needs nothing of the driver, so also of
// a context that is in error.
void kheap_watch_read(struct context *ctx, const struct canary_occasion *occasion);

// With the context's context current. The monitor's own: launches a scan if one is due, and waits for nothing. On others'
// occasions: a scan that begins now, and waits until it has ended, a short while where the program goes on and a longer one
// before an end.
CUresult kheap_watch_context(struct context *ctx, const struct canary_occasion *occasion);

#endif
