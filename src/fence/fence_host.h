// SPDX-License-Identifier: MIT
// What --mode=fence keeps for each context: the state that fenced kernels read (kfence.h), with the list of
// further ranges, the ring of what they record, and which modules know of it.
//
//   track_listener, variables of modules ──▶ the list of ranges ──▶ tables in all contexts
//   a launch ──▶ fence_host_launch: the context has a state, and the variables of all modules are set
#ifndef MOAT_FENCE_FENCE_HOST_H
#define MOAT_FENCE_FENCE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "context/context.h"
#include "kfence/kfence.h"
#include "pass/pass_check.h"
#include "rewrite/rewrite.h"

struct fence_device {
    bool ready, failed;
    bool ending;        // the driver may be ending the context: nothing of it is touched
    CUdeviceptr state;  // a struct kfence_state
    struct error_ring *ring;
    struct error_ring_reader reader;
    uint32_t *notes;       // behind the ring: KFENCE_NOTES words, which kernels may write at any time
    CUdeviceptr notes_at;  // on the device
    uint64_t noted[64];    // a bit for each note that was reported, by a hash
    unsigned table;        // the one that holds
    uint64_t version;      // of that table
    uint64_t generation;   // of the partition, when the modules' variables were set
};

int fence_host_start(void);  // 0 or -ENOMEM
void fence_host_after_fork(void);
extern _Atomic(bool) fence_host_on;
extern void (*fence_host_first)(void);  // called when the first context gets its state, without the lock

// Called for each launch. Returns false if the current context cannot be fenced.
bool fence_host_launch(void);
void fence_host_changed(void);  // a partition has grown: modules learn it before the next launch
// Returns whether the program has memory outside of its partitions that kernels may access.
bool fence_host_has_ranges(void);
// Waits for the kernels of all contexts of ctx's device; ctx is current.
CUresult fence_host_wait_all(struct context *ctx);

void fence_host_module(const struct rewrite_module *module);
void fence_host_module_ends(const void *handle, bool ending);
void fence_host_module_gone(const void *handle);
// Returns what is known of a module's sites by its number; NULL: unknown. Requires the lock, as f below has.
const struct pass_check *fence_host_sites(uint64_t number);
// Returns the number of the latest module that has the tag of a note; 0: none.
uint64_t fence_host_tagged(uint32_t note);

// For fence_handles.c: calls f with the lock held; returns a context's state, NULL if there is none; finds
// the range outside of the partitions that memory is in. The latter two require the lock.
void fence_host_locked(void (*f)(void *argument), void *argument);
struct fence_device *fence_host_device(unsigned context);
bool fence_host_is_range(uint64_t base, uint64_t bytes, uint64_t *range);

// Calls f for each context that has a state, with the lock held. Without `wait`, returns false if another
// thread has it.
bool fence_host_rings(void (*f)(struct fence_device *d, struct context *ctx, void *argument), void *argument,
                      bool wait);
void fence_host_each(void (*f)(struct fence_device *d, struct context *ctx, void *argument), void *argument);
void fence_host_close(void);  // the driver is about to shut down
void fence_host_context_ends(CUcontext context, enum driver_id call);
void fence_host_context_stays(CUcontext context);
void fence_host_context_gone(CUcontext context);
void fence_host_limit_set(CUlimit limit);             // in the current context, by the program
bool fence_host_limit(CUlimit limit, size_t *value);  // the program's own, if the driver's is another one

#endif
