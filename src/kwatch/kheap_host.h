// SPDX-License-Identifier: MIT
// The heaps that canary mode gives to malloc and free inside kernels: one for each context in which a kernel is launched
// after a module came that calls them (rewrite.h redirects its calls; kheap.h has the heap itself). It is as large as
// cudaLimitMallocHeapSize says at that moment, or when the program sets the limit later, before the heap was used.
//
// The two heaps never mix. A module whose calls could not be redirected makes every redirected one in its context, for
// libraries in all contexts, go back to the driver's malloc, at once and for good; free goes by the address. What cannot be
// helped is that module freeing a buffer that a redirected kernel took before it came: a note says so.
#ifndef MOAT_KWATCH_KHEAP_HOST_H
#define MOAT_KWATCH_KHEAP_HOST_H

#include <stdatomic.h>
#include <stdbool.h>

#include "context/context.h"
#include "kheap/kheap.h"
#include "rewrite/modules.h"

// A context's heap. Made under kheap_host.c's lock; who finds it ready may read it, and what follows `ready` belongs to
// kheap_watch.c.
struct kheap_host {
    _Atomic(bool) ready;
    bool failed;     // there is none and will be none
    bool plain;      // malloc is the driver's
    uint64_t limit;  // that it was made for
    struct kheap about;
    struct error_ring *ring;
    CUmodule module;  // with the kernel that scans; NULL: nothing scans it
    CUfunction scan;
    CUstream stream;
    CUevent done;
    // Of kheap_watch.c, under the lock of scans.
    bool running;       // a scan was launched and has not been seen to end
    uint64_t launched;  // when
    uint64_t due;       // when the next may be
    uint64_t before;    // kernels that had ended when it was launched
    uint64_t clean;     // kernels up to that one are known to have done nothing
    uint64_t seen;      // launches when it was launched
    uint64_t lost;      // records that found no room, as far as was told
    unsigned quiet;     // scans in a row since the program launched something
    uint64_t mallocs;   // that were counted for the summary
    struct error_ring_reader reader;
};

extern _Atomic(bool)
    kheap_host_on;  // there are redirected modules. Relaxed: who loaded one launches after it

void kheap_host_start(void);  // once, before all else
void kheap_host_after_fork(void);

// A module or library was loaded whose calls are redirected; its row is held. NULL: no memory for one.
void kheap_host_module(struct modules_row *row);
// The driver is about to unload one, and has refused to.
void kheap_host_module_ends(const void *handle);
void kheap_host_module_stays(const void *handle);
// One was loaded that calls malloc or free of the driver's.
void kheap_host_foreign(bool library, const char *why);

// Before a launch: the current context has its heap, and its modules know it.
void kheap_host_prepare(void);
static inline void kheap_host_launch(void)
{
    if (__builtin_expect(atomic_load_explicit(&kheap_host_on, memory_order_relaxed), 0))
        kheap_host_prepare();
}

// The program has set the limit of the current context.
void kheap_host_limit_set(void);

// NULL: it has none. Under the lock of scans, so that it stays.
struct kheap_host *kheap_host_of(const struct context *ctx);
bool kheap_host_any(void);
// Under the lock of scans: all of it went with the context.
void kheap_host_context_gone(struct context *ctx);

#endif
