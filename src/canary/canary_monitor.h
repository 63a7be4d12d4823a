// SPDX-License-Identifier: MIT
// The thread that scans while the program runs, and the scans that the program's own calls bring about: at
// synchronisation, at the end of a context and of the process.
#ifndef MOAT_CANARY_CANARY_MONITOR_H
#define MOAT_CANARY_CANARY_MONITOR_H

#include "canary/canary_scan.h"

// What is looked at whenever canaries are: the kernels' heaps. All three are called under the lock of scans,
// but for any.
struct canary_companion {
    bool (*any)(void);  // there is something to look at
    // Reports what is there already. Calls nothing of the driver, whose context may be in error.
    void (*read)(struct context *ctx, const struct canary_occasion *occasion);
    // Looks, with the context's context current. The result is the driver's.
    CUresult (*look)(struct context *ctx, const struct canary_occasion *occasion);
};
void canary_monitor_accompany(const struct canary_companion *companion);  // once, before the monitor starts

// At the first buffer.
void canary_monitor_start(void);
void canary_monitor_after_fork(void);

// No scan is under way in between: for what takes memory away that a scan may be reading.
void canary_monitor_hold(void);
void canary_monitor_go_on(void);
bool canary_monitor_try_hold(void);  // false: one is under way, or somebody else keeps them from it
// All that the program launched is known to have ended.
bool canary_monitor_is_idle(void);
// In between: a context whose context is well, and stays.
bool canary_monitor_watches(const struct context *ctx);

// Looks at one slab, if no scan is under way. In an epoch section; the context's context is current.
void canary_monitor_check(struct context *ctx, struct canary_slab *slab,
                          const struct canary_occasion *occasion);

// The program has waited for its kernels: looks at what they left, unless the monitor did or it would cost too much.
// ended: see canary_scan_ended; 0: not all.
void canary_monitor_synced(enum driver_id call, uint64_t ended);

// Two scans of a context that is about to end; the monitor leaves it alone from then on, until it stays after all.
void canary_monitor_context_ends(CUcontext context, enum driver_id call);
void canary_monitor_context_stays(CUcontext context);
void canary_monitor_context_gone(struct context *ctx);

// At exit: waits a while for what still runs, scans twice, and ends the thread.
void canary_monitor_end(void);

#endif
