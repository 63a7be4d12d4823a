// SPDX-License-Identifier: MIT
// --mode=pages: buffers in mapped memory of their own, with nothing behind them and addresses that are not used twice.
//
//   pages_address   which addresses               context          devices and contexts
//   pages_memory    which physical memory         canary_bytes  the bytes in the slack
//   pages_block     one buffer: all of these      pages_order   frees in the order of a stream
//   pages_pool      which pools may be replaced   hook_query    what else must answer as for plain memory
//
// Measured on an H200: a mapping can be taken away while kernels run, so a free waits as cuMemFree does: by a cuMemFree,
// of a few bytes of the same context. cuCtxSynchronize would break a capture; cuMemFree does not.
#ifndef MOAT_PAGES_PAGES_H
#define MOAT_PAGES_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/driver.h"
#include "mode/mode.h"
#include "pages/pages_order.h"

extern bool pages_on;  // set once, at the start; off in the child of a fork whose parent used it

// Once, when the options are read.
void pages_start(void);
void pages_after_fork(void);

// All of these: false: it is not for this mode to do, and the driver's own call must.
bool pages_alloc(CUdeviceptr *pointer, size_t size, CUresult *r);
bool pages_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                       CUresult *r);
// pool NULL: the device's current one. The stream is not captured.
bool pages_alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream, bool per_thread,
                       CUresult *r);
bool pages_free(CUdeviceptr pointer, enum driver_id call, CUresult *r);
// captured: the free becomes part of a graph. A graph cannot unmap, so the buffer stays; it is counted.
bool pages_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                      enum driver_id call, CUresult *r);

// The driver has no memory for a plain allocation: gives back what it can. True: it is worth to try again.
bool pages_reclaim(void);

// A handle by which another process that moat watches can open the buffer. False: it is not of this mode, or cannot be shared.
bool pages_share(CUdeviceptr pointer, CUipcMemHandle *handle);

// From now on all memory is plain: the program needs what mapped memory cannot do.
void pages_stop(const char *why);

// What a program's pointer is, or may be mistaken for.
enum mode_what pages_ask(uint64_t address, struct mode_answer *answer);

// A context: before it goes, while it still answers; and when it has gone.
void pages_context_ends(CUcontext context, enum driver_id call);
void pages_context_gone(CUcontext context);

// Now and then, from calls that have to do with the order of streams.
static inline void pages_poll(void)
{
    // Relaxed: a block that is missed is found by the next call.
    if (__builtin_expect(atomic_load_explicit(&pages_order_waiting, memory_order_relaxed) != 0, 0))
        pages_order_settle(8, false);
}

#endif
