// SPDX-License-Identifier: MIT
// --mode=canary: each buffer lies between canaries, bytes that nobody may write. A monitor thread reads them
// while the program runs.
//
//   canary_bytes     the bytes                        canary_scan     reads canaries, of all buffers or one
//   canary_slab      layout of buffers in memory      canary_verify   compares them, and reports changes
//   canary_slot      state of each buffer             canary_staging  streams and pinned memory for copies
//   canary_store     which buffers exist              canary_write    writes canaries
//   canary_regions   device memory from cuMemAlloc    canary_free     frees, at once and in stream order
//   canary_mapped    or mapped, piece by piece        canary_order    readbacks before stream-ordered frees
//   canary_suballoc  free ranges in either            canary_monitor  when to scan: thread, waits, exits
//   canary_cache     freed places kept for reuse      canary_managed  plain buffers as in the GMODx paper
//
// Canaries cannot detect reads, nor writes that jump over them. --mode=pages detects those that leave a page.
#ifndef MOAT_CANARY_CANARY_H
#define MOAT_CANARY_CANARY_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "canary/canary_monitor.h"
#include "mode/mode.h"

extern bool canary_on;  // set once, at the start; cleared in a forked child whose parent used the mode

void canary_start(void);  // called once, when the options are known
void canary_after_fork(void);
// Starts the monitor and registers the exit handler on the first call; later calls return at once.
void canary_use(void);
bool canary_used(void);    // whether canary_use was called
void canary_aborts(void);  // the program calls abort: looks at all buffers once more

// The allocations and frees return false if this mode does not handle the call; the caller then makes the
// driver's own call. If they return true, *r is the result for the program.
bool canary_alloc(CUdeviceptr *pointer, size_t size, CUresult *r);
bool canary_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                        CUresult *r);
bool canary_alloc_managed(CUdeviceptr *pointer, size_t size, unsigned flags, CUresult *r);
// flags == NULL stands for cuMemAllocHost.
bool canary_alloc_host(void **pointer, size_t size, const unsigned *flags, CUresult *r);
// pool == NULL stands for the device's current pool. The stream must not be capturing.
bool canary_alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream,
                        bool per_thread, CUresult *r);
bool canary_free(CUdeviceptr pointer, enum driver_id call, CUresult *r);
bool canary_free_host(void *pointer, enum driver_id call, CUresult *r);
bool canary_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                       enum driver_id call, CUresult *r);

// Returns memory to the driver after it ran out. Returns true if anything was returned, so that a retry makes
// sense. May wait for the program's streams.
bool canary_reclaim(void);
bool canary_reclaim_at_once(void);  // the same without waiting for kernels or streams
// Returns the bytes of the current context that canary_reclaim would return, as far as known without a scan.
uint64_t canary_reclaimable(void);

// Frees the cached places of ctx that have been in the cache for at least `age` nanoseconds. Requires ctx to
// be current and the scan lock to be held.
void canary_drop_cached(struct context *ctx, uint64_t age);
// Frees the cached places of a pool that the program is about to destroy.
void canary_pool_ends(CUmemoryPool pool);

// Makes all later allocations plain, since the program needs what buffers of this mode cannot do; a note says
// why.
void canary_stop(const char *why);

// Classifies an address of the program; for a buffer, *base and *size are set to its range.
enum mode_what canary_ask(uint64_t address, uint64_t *base, uint64_t *size);

// A context is about to be destroyed and still answers; its destruction failed; it has been destroyed.
void canary_context_ends(CUcontext context, enum driver_id call);
void canary_context_stays(CUcontext context);
void canary_context_gone(CUcontext context);

// Called after the program waited. ended: how many kernels are known to have ended; 0: it did not wait for
// all.
static inline void canary_synced(enum driver_id call, uint64_t ended)
{
    if (__builtin_expect(canary_on, 0))
        canary_monitor_synced(call, ended);
}

#endif
