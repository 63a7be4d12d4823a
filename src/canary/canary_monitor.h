// SPDX-License-Identifier: MIT
// The thread that scans while the program runs, and the scans that calls of the program trigger:
// synchronisation, and the end of a context or of the process.
#ifndef MOAT_CANARY_CANARY_MONITOR_H
#define MOAT_CANARY_CANARY_MONITOR_H

#include "canary/canary_scan.h"

// Checks that run along with scans: the kernels' heaps. All are called with the scan lock held, except any().
struct canary_companion {
    bool (*any)(void);  // whether there is anything to check
    // Reports what has arrived already. Makes no driver call, since the context may be in error.
    void (*read)(struct context *ctx, const struct canary_occasion *occasion);
    // Checks the context, which is current. Returns the driver's result.
    CUresult (*check)(struct context *ctx, const struct canary_occasion *occasion);
};
// Called once, before the monitor starts.
void canary_monitor_set_companion(const struct canary_companion *companion);

// Called at the first buffer.
void canary_monitor_start(void);
void canary_monitor_after_fork(void);

// The scan lock keeps scans from running, for whoever removes memory that a scan may be reading.
void canary_monitor_lock(void);
void canary_monitor_unlock(void);
bool canary_monitor_trylock(void);  // false: a scan is running, or another thread holds it
// Returns whether all that the program launched is known to have ended.
bool canary_monitor_is_idle(void);
// Returns whether the context is neither failed nor about to be destroyed. Requires the scan lock.
bool canary_monitor_watches(const struct context *ctx);

// Scans one slab unless the scan lock is taken. Call it in an epoch section, with ctx current.
void canary_monitor_check(struct context *ctx, struct canary_slab *slab,
                          const struct canary_occasion *occasion);

// The program has waited for its kernels: scans, unless the monitor has done so since the last launch or it
// would cost too much. ended: the new value of canary_scan_ended; 0: the program did not wait for all
// kernels.
void canary_monitor_synced(enum driver_id call, uint64_t ended);

// Scans a context that is about to be destroyed twice. From then on the monitor skips it, unless
// canary_monitor_context_stays is called.
void canary_monitor_context_ends(CUcontext context, enum driver_id call);
void canary_monitor_context_stays(CUcontext context);
void canary_monitor_context_gone(struct context *ctx);

// At exit: waits a while for running kernels, scans twice, and ends the thread.
void canary_monitor_end(void);
// The same when the program calls abort, where any lock of ours may be held, by this thread too: without one,
// there is no look after a while.
void canary_monitor_aborts(void);

#endif
