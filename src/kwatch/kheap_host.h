// SPDX-License-Identifier: MIT
// The heaps that canary and check mode provide for malloc and free inside kernels: one for each context in
// which a kernel is launched after a module was loaded that calls them (rewrite.h redirects its calls;
// kheap.h has the heap itself). Its size is cudaLimitMallocHeapSize at that moment, or when the program sets
// the limit later, before the heap was used.
//
// The driver's heap and ours never mix. If the calls of a module cannot be redirected, all redirected modules
// in its context (for a library: in all contexts) go back to the driver's malloc, at once and for good; free
// decides by the address. It remains possible that such a module frees a buffer that a redirected kernel
// allocated before; a note says so.
#ifndef MOAT_KWATCH_KHEAP_HOST_H
#define MOAT_KWATCH_KHEAP_HOST_H

#include <stdatomic.h>
#include <stdbool.h>

#include "context/context.h"
#include "kheap/kheap.h"
#include "rewrite/modules.h"

// The heap of a context. It is made under kheap_host.c's lock; whoever finds it ready may read it. The
// members from `running` on belong to kheap_watch.c.
struct kheap_host {
    _Atomic(bool) ready;
    bool failed;     // there is none and will be none
    bool plain;      // malloc is the driver's
    bool ending;     // its context may be ending: nothing of it is read; under the scan lock
    uint64_t limit;  // that it was made for
    struct kheap about;
    struct error_ring *ring;
    CUmodule module;  // has the kernel that scans
    CUfunction scan;
    CUstream stream;
    CUevent done;
    // For kheap_watch.c, under the scan lock.
    bool running;       // a scan was launched and is not known to have ended
    uint64_t launched;  // when it was
    uint64_t due;       // earliest time of the next one
    uint64_t before;    // kernels that had ended when it was launched
    uint64_t clean;     // kernels up to this one have damaged nothing
    uint64_t seen;      // launches when it was launched
    uint64_t lost;      // records without room in the ring that were counted for the summary
    unsigned quiet;     // scans in a row since the last launch of the program
    uint64_t mallocs;   // calls that were counted for the summary
    struct error_ring_reader reader;
};

// There are redirected modules. Relaxed: whoever loaded one launches after that.
extern _Atomic(bool) kheap_host_on;

// found: the block of any address can be found, for --mode=check. name: of the mode, for notes.
void kheap_host_start(const char *name, bool found);  // called once, before all else
void kheap_host_after_fork(void);

// A module or library was loaded whose calls are redirected; the caller holds its row. NULL: no memory for a
// row.
void kheap_host_module(struct modules_row *row);
// The driver is about to unload a module or library; it has refused to.
void kheap_host_module_ends(const void *handle);
void kheap_host_module_stays(const void *handle);
// A module or library was loaded that calls the driver's malloc or free.
void kheap_host_foreign(bool library, const char *why);

// Called before a launch: makes the heap of the current context, and sets the variables of its modules.
void kheap_host_prepare(void);
static inline void kheap_host_launch(void)
{
    if (__builtin_expect(atomic_load_explicit(&kheap_host_on, memory_order_relaxed), 0))
        kheap_host_prepare();
}

// The program has set a limit of the current context.
void kheap_host_limit_set(void);

// The address and size of the current heap of a context, in which blocks can be found; 0: it has none.
uint64_t kheap_host_found(const struct context *ctx, uint64_t *bytes);

// Returns the heap of a context, or NULL if it has none. The heap stays while the scan lock is held.
struct kheap_host *kheap_host_of(const struct context *ctx);
bool kheap_host_any(void);
// The heap was freed with its context. Requires the scan lock.
void kheap_host_context_gone(struct context *ctx);

#endif
