// SPDX-License-Identifier: MIT
// Checks the heaps of kheap_host.h: launches the kernel that verifies canaries and releases freed buffers,
// reads the records that it and free have put into the ring, and reports them.
//
// The kernel is short and runs on a stream of our own. On a GPU that is full of blocks it has to wait for one
// of them to end, so nobody waits for it for long with a lock that the program may need: the monitor launches
// it, and finds out later whether it has ended. The ring is in host memory: double frees are read from it
// while their kernel runs.
#ifndef MOAT_KWATCH_KHEAP_WATCH_H
#define MOAT_KWATCH_KHEAP_WATCH_H

#include "canary/canary_scan.h"

// Reads and reports the records that have arrived. It makes no driver call, so it works for a context in
// error. Requires the scan lock.
void kheap_watch_read(struct context *ctx, const struct canary_occasion *occasion);

// For check mode alone, which has no monitor (they do nothing in canary mode): reads and reports what has
// arrived from all contexts. `all`: waits for another thread that is reading, and adds to the summary.
void kheap_watch_read_all(bool all);
void kheap_watch_close(void);  // the driver is about to shut down: nothing is read any more
// Returns whether the driver may be ending a context, which may be NULL: then nothing of its heap is read.
void kheap_watch_ending(const struct context *ctx, bool ending);

// Checks a context, which must be current. For the monitor, launches a scan if one is due, and does not wait.
// On other occasions, launches a scan now and waits for it: a short while if the program goes on, longer
// before the end of a context or process.
CUresult kheap_watch_context(struct context *ctx, const struct canary_occasion *occasion);

#endif
