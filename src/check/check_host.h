// SPDX-License-Identifier: MIT
// What --mode=check keeps in the process: the table of all blocks (check_table.h), a copy of it for each
// context in which a checked kernel is launched (check_device.h), and the modules that were rewritten.
//
//   track_listener ──▶ the table ──▶ copies in all contexts
//   a launch       ──▶ check_host_launch: the context's copy exists, and the module's variable leads to
//                      it
#ifndef MOAT_CHECK_CHECK_HOST_H
#define MOAT_CHECK_CHECK_HOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "check/check_device.h"
#include "pass/pass_check.h"
#include "rewrite/rewrite.h"
#include "track/track.h"

// What --mode=shadow keeps beside the table: one shadow for each context, by its number (context_number).
// Called with the lock of check_host.c held, and the context current.
struct check_shadow_change {
    uint64_t base, size;  // of a block; size 0: the shadow does not change
    enum { CHECK_SHADOW_BLOCK, CHECK_SHADOW_PIECES, CHECK_SHADOW_RANGE } what;
    bool live;     // BLOCK and RANGE: else nothing in it may be accessed
    bool again;    // BLOCK: it was live before
    bool ordered;  // in the order of a stream, if the block is freed
    CUstream stream;
    bool per_thread;
};
struct check_shadow {
    unsigned shift;  // see kcheck_shadow.h
    // Makes the shadow of all blocks that are live, and of the heap of malloc in kernels, if it has bytes.
    // *at: its address for kernels.
    CUresult (*make)(unsigned number, struct context *ctx, uint64_t heap, uint64_t bytes, CUdeviceptr *at);
    // Not ordered: complete when it returns.
    CUresult (*change)(unsigned number, struct context *ctx, const struct check_shadow_change *c);
    CUdeviceptr (*at)(unsigned number);  // its address now, which a change may have changed
    void (*gone)(unsigned number);       // the context has ended, or could not be prepared
    // Pools: memory that is handed out in blocks that are announced. Each sets *c to what the shadow has to
    // be made anew for. They return 0 or -ENOMEM. *pool: an address in a block that has become a pool; 0:
    // none has. `due` is called until it returns false.
    int (*pool)(uint64_t base, uint64_t end, bool is_one, struct check_shadow_change *c, uint64_t *pool);
    int (*piece)(const struct track_copy *piece, struct check_shadow_change *c, uint64_t *pool);
    int (*taken_back)(uint64_t base, uint64_t end, uint32_t stack);
    void (*ended)(uint64_t launches);
    bool (*due)(struct check_shadow_change *c);
    void (*replaced)(uint64_t base, uint64_t end);  // another block is there, or none
    // Copies the announced block that an access of a pool is to be reported with.
    bool (*near)(uint64_t address, struct track_copy *piece);
    // Writes a sentence with the bytes around an address.
    void (*text)(uint64_t address, char *text, size_t size);
};
extern const struct check_shadow *check_host_shadow;  // set before the start; NULL: there is none

// Changes the shadow in all contexts.
void check_host_shadow_change(const struct check_shadow_change *change);

int check_host_start(void);  // 0 or -ENOMEM
void check_host_after_fork(void);
extern _Atomic(bool) check_host_on;  // set at the start; cleared when the driver shuts down

// The heap of malloc in kernels in the current context, and its size; 0: it has none.
uint64_t check_host_heap(uint64_t *bytes);
void check_host_limit_set(void);  // the heap of malloc in kernels may move

// Called for each launch of a checked kernel. Returns false if its context cannot be checked.
bool check_host_launch(void);

// A module or library was loaded whose kernels have checked variants; its row is held by the caller.
void check_host_module(struct modules_row *row);
void check_host_module_ends(const void *handle, bool ending);

// Calls f for a device with its module of that number under the lock: what is known of it stays meanwhile.
// Returns what is known of the text that a site is in (KCHECK_SITE); NULL: nothing. Requires the lock.
const struct pass_check *check_host_sites(uint64_t number, uint32_t site);
// Returns a kernel of a module or library; NULL: it has no checked variant. It stays while the module is
// loaded.
const struct pass_check_kernel *check_host_kernel(const void *handle, const char *name);
// Returns what is known of the text that a kernel of a module or library is in, and the number of the module,
// or of one that has variants of its kernels; NULL: none is loaded. Requires the lock.
const struct pass_check *check_host_part(const void *handle, const struct pass_check_kernel *kernel,
                                         uint64_t *number);
bool check_host_is_checked(const void *handle);  // a module or library that was rewritten

// Call f for each context that has a copy, with the lock held; the first makes the context current. The
// second, for the ring alone, does nothing if it would have to wait for the lock and `wait` is false.
void check_host_each(void (*f)(struct check_device *d, struct context *ctx, void *argument), void *argument);
void check_host_rings(void (*f)(struct check_device *d, struct context *ctx, void *argument), void *argument,
                      bool wait);
// The driver is about to shut down: rings and tables are no longer touched.
void check_host_close(void);
// Adds heaps of malloc in kernels that the CPU device has made since the last call.
void check_host_find_heaps(void);
extern void (*check_host_first)(void);  // called when the first context gets its copy, without the lock
void check_host_context_ends(CUcontext context, enum driver_id call);
void check_host_context_stays(CUcontext context);
void check_host_context_gone(CUcontext context);

// The free of a block in the order of a stream, before the driver's call; an allocation in the order of a
// stream by the calling thread, before the driver's call.
void check_host_free_in_order(uint64_t base, CUstream stream, bool per_thread);
void check_host_alloc_in_order(CUstream stream, bool per_thread);
void check_host_waited(uint64_t ended);  // launches that are known to have ended

#endif
