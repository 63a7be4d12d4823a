// SPDX-License-Identifier: MIT
// --mode=pages: each buffer is mapped by itself, with nothing mapped behind it, at addresses that are not
// reused.
//
//   pages_address   which addresses               context       devices and contexts
//   pages_memory    which physical memory         canary_bytes  the bytes in the slack
//   pages_block     one buffer: all of these      pages_order   frees in stream order
//   pages_pool      which pools may be replaced   hook_query    queries that must answer as for plain memory
//
// Measured on an H200: memory can be unmapped while kernels run, so a free must wait as cuMemFree does. It
// waits by a cuMemFree of a few bytes in the same context; cuCtxSynchronize would break a capture, cuMemFree
// does not.
#ifndef MOAT_PAGES_PAGES_H
#define MOAT_PAGES_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/driver.h"
#include "mode/mode.h"
#include "pages/pages_order.h"

extern bool pages_on;  // set once, at the start; cleared in a forked child whose parent used the mode

// Called once, when the options are known.
void pages_start(void);
void pages_after_fork(void);

// The allocations and frees return false if this mode does not handle the call; the caller then makes the
// driver's own call. If they return true, *r is the result for the program.
bool pages_alloc(CUdeviceptr *pointer, size_t size, CUresult *r);
bool pages_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                       CUresult *r);
// pool == NULL stands for the device's current pool. The stream must not be capturing.
bool pages_alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream, bool per_thread,
                       CUresult *r);
bool pages_free(CUdeviceptr pointer, enum driver_id call, CUresult *r);
// captured: the free becomes part of a graph. A graph cannot unmap, so the buffer stays mapped, and is
// counted.
bool pages_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                      enum driver_id call, CUresult *r);

// Returns memory to the driver after a plain allocation ran out. Returns true if a retry makes sense.
bool pages_reclaim(void);

// Makes a handle by which another process that moat watches can open the buffer. Returns false if the pointer
// is in no buffer of this mode, or the buffer cannot be shared.
bool pages_share(CUdeviceptr pointer, CUipcMemHandle *handle);

// Makes all later allocations plain, since the program needs what mapped memory cannot do; a note says why.
void pages_stop(const char *why);

// Classifies an address of the program; *answer is set if it is in mapped memory of this mode.
enum mode_what pages_ask(uint64_t address, struct mode_answer *answer);

// A context is about to be destroyed and still answers; it has been destroyed.
void pages_context_ends(CUcontext context, enum driver_id call);
void pages_context_gone(CUcontext context);

// Called now and then, from calls that concern the order of streams.
static inline void pages_poll(void)
{
    // Relaxed: a block that is missed is found by the next call.
    if (__builtin_expect(atomic_load_explicit(&pages_order_waiting, memory_order_relaxed) != 0, 0))
        pages_order_unmap(8, false);
}

#endif
