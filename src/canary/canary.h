// SPDX-License-Identifier: MIT
// --mode=canary: buffers between bytes that nobody may write, which a monitor reads while the program runs.
//
//   canary_bytes   the bytes                            canary_scan     reads canaries, of all buffers or of one
//   canary_slab    where in memory buffers lie          canary_look     tells which have changed, and reports
//   canary_slot    what is known of each buffer         canary_bench    streams and pinned memory for both ways
//   canary_store   which buffers there are              canary_write    writes canaries
//   canary_ground  device memory in regions             canary_free     frees, at once and in the order of a stream
//   canary_tract   or mapped, piece by piece            canary_order    reads what such a free leaves behind
//   canary_space   and what of it is taken              canary_monitor  when to scan: the thread, waits, ends
//   canary_shelf   freed ones for the next like them    canary_managed  plain buffers as GMODx has them
//
// What canaries cannot see: reads, and writes that jump over them. --mode=pages sees those that leave a page.
#ifndef MOAT_CANARY_CANARY_H
#define MOAT_CANARY_CANARY_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "canary/canary_monitor.h"
#include "mode/mode.h"

extern bool canary_on;  // set once, at the start; off in the child of a fork whose parent used it

void canary_start(void);  // once, when the options are read
void canary_after_fork(void);
void canary_use(void);   // something is to be watched from now on; later calls return at once
bool canary_used(void);  // whether it was called

// All of these: false: it is not for this mode to do, and the driver's own call must.
bool canary_alloc(CUdeviceptr *pointer, size_t size, CUresult *r);
bool canary_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                        CUresult *r);
bool canary_alloc_managed(CUdeviceptr *pointer, size_t size, unsigned flags, CUresult *r);
// flags NULL: cuMemAllocHost.
bool canary_alloc_host(void **pointer, size_t size, const unsigned *flags, CUresult *r);
// pool NULL: the device's current one. The stream is not captured.
bool canary_alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream,
                        bool per_thread, CUresult *r);
bool canary_free(CUdeviceptr pointer, enum driver_id call, CUresult *r);
bool canary_free_host(void *pointer, enum driver_id call, CUresult *r);
bool canary_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                       enum driver_id call, CUresult *r);

// The driver has no memory: gives back what it can. True: it is worth to try again.
bool canary_reclaim(void);
bool canary_reclaim_at_once(void);  // the same, but for what would have to be waited for
// Bytes of the current context that would be given back then, as far as is known without looking.
uint64_t canary_held(void);

// What is kept for buffers like those that were freed goes, if it is kept for so many nanoseconds. The context's context is
// current, and no scan is under way.
void canary_let_go(struct context *ctx, uint64_t age);
// The program is about to destroy a pool of its own.
void canary_pool_ends(CUmemoryPool pool);

// From now on buffers are plain: the program needs what those of this mode cannot do.
void canary_stop(const char *why);

// What a program's pointer is; *base and *size get the range of a buffer.
enum mode_what canary_ask(uint64_t address, uint64_t *base, uint64_t *size);

// A context: before it goes, while it still answers; when it did not; and when it has gone.
void canary_context_ends(CUcontext context, enum driver_id call);
void canary_context_stays(CUcontext context);
void canary_context_gone(CUcontext context);

// The program has waited; for all kernels that were launched before, their number, or for some: 0.
static inline void canary_synced(enum driver_id call, uint64_t ended)
{
    if (__builtin_expect(canary_on, 0))
        canary_monitor_synced(call, ended);
}

#endif
