// SPDX-License-Identifier: MIT
#include "kwatch/kheap_host.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "canary/canary.h"
#include "core/lock.h"
#include "core/canary_bytes.h"
#include "context/green.h"
#include "core/guard.h"
#include "context/context_copy.h"
#include "track/guard_report.h"

// Our data of the row of a redirected module or library. Rows are taken under the lock only, so
// modules_take_all returns all of them.
struct module {
    uint64_t set_in;  // contexts in which its variable is set, a bit for each
    bool ending;      // the driver is about to unload it
};
_Static_assert(CONTEXT_CONTEXTS <= 64, "a bit for each ctx");

_Atomic(bool) kheap_host_on;
static _Atomic(unsigned) heaps_ready;  // relaxed: a hint whether there are any

// After the scan lock, before all others of ours. It is held over driver calls: only launches, loads and
// limits need what it protects, and those wait for the driver anyway.
static struct lock lock = LOCK_INIT(KHEAP);
static struct kheap_host heaps[CONTEXT_CONTEXTS];
static unsigned client;
static bool refused;  // in every context, since a library calls the driver's functions
// The context of the last launch, if its heap and all variables are set. Acquire and release: who finds the
// context here sees what was set.
static _Atomic(CUcontext) ready_in;

static const char *mode_name;
static bool found;

void kheap_host_start(const char *name, bool with_found)
{
    mode_name = name;
    found = with_found;
    client = modules_client(mem_free);
}

void kheap_host_after_fork(void)
{
    lock_after_fork(&lock);
    // The driver does not work in the child; what is on the device belongs to the parent.
    atomic_store_explicit(&kheap_host_on, false, memory_order_relaxed);
    atomic_store_explicit(&heaps_ready, 0, memory_order_relaxed);
    memset(heaps, 0, sizeof heaps);
    refused = false;
}

bool kheap_host_any(void)
{
    return atomic_load_explicit(&heaps_ready, memory_order_relaxed);
}

struct kheap_host *kheap_host_of(const struct context *ctx)
{
    struct kheap_host *h = &heaps[context_number(ctx)];
    // Acquire pairs with the release in make.
    return atomic_load_explicit(&h->ready, memory_order_acquire) ? h : NULL;
}

uint64_t kheap_host_found(const struct context *ctx, uint64_t *bytes)
{
    const struct kheap_host *h = kheap_host_of(ctx);
    *bytes = h && h->about.bounds ? h->about.bytes : 0;
    return *bytes ? h->about.base : 0;
}

// --- making heaps ------------------------------------------------------------------------------------------

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuCtxGetLimit && d->cuMemHostAlloc && d->cuMemHostGetDevicePointer_v2 && d->cuMemFreeHost &&
           d->cuMemsetD8Async && d->cuLaunchKernel && d->cuModuleLoadData && d->cuModuleGetFunction &&
           d->cuModuleUnload && d->cuModuleGetGlobal_v2;
}

static void unmake(struct kheap_host *h)
{
    const struct driver *d = &guard.real;
    if (h->about.base)
        d->cuMemFree_v2(h->about.base);
    if (h->ring)
        d->cuMemFreeHost(h->ring);
    if (h->module)
        d->cuModuleUnload(h->module);
    if (h->done)
        d->cuEventDestroy_v2(h->done);
    if (h->stream && d->cuStreamDestroy_v2)
        d->cuStreamDestroy_v2(h->stream);
    *h = (struct kheap_host){.failed = h->failed, .plain = h->plain};
}

static CUresult make_ring(struct kheap_host *h, CUdeviceptr *ring)
{
    void *p = NULL;
    CUresult r = guard.real.cuMemHostAlloc(&p, kheap_ring_bytes(),
                                           CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (r)
        return r;
    h->ring = p;
    memset(p, 0, kheap_ring_bytes());
    error_ring_reader_start(&h->reader, h->ring, KHEAP_RECORDS);
    return guard.real.cuMemHostGetDevicePointer_v2(ring, p, 0);
}

// All work goes to a stream of our own, since the program's streams may be busy.
static CUresult make_memory(struct kheap_host *h)
{
    const struct driver *d = &guard.real;
    CUdeviceptr base = 0, ring = 0;
    CUresult r = make_ring(h, &ring);
    if (!r)
        r = d->cuMemAlloc_v2(&base, h->about.bytes);
    if (r)
        return r;
    kheap_place(&h->about, base, ring);
    r = d->cuMemsetD8Async(base, 0, h->about.clear, h->stream);
    if (!r)
        r = d->cuMemcpyHtoDAsync_v2(base, &h->about, sizeof h->about, h->stream);
    return r ? r : d->cuStreamSynchronize(h->stream);
}

static CUresult make_scan(struct kheap_host *h)
{
    const struct driver *d = &guard.real;
    CUresult r = d->cuModuleLoadData(&h->module, kheap_scan_ptx);
    if (r)
        h->module = NULL;
    if (!r)
        r = d->cuModuleGetFunction(&h->scan, h->module, KHEAP_SCAN);
    return r ? r : d->cuEventCreate(&h->done, CU_EVENT_DISABLE_TIMING);
}

static const char *name_of(CUresult r)
{
    return driver_result_name(r) ? driver_result_name(r) : "an unknown error";
}

static void make(struct kheap_host *h)
{
    size_t limit = 0;
    uint64_t keys[KHEAP_KEYS];
    canary_bytes_draw(keys, KHEAP_KEYS);
    CUresult r =
        has_calls() ? guard.real.cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE) : CUDA_ERROR_NOT_SUPPORTED;
    if (!r &&
        (found ? kheap_plan_found : kheap_plan)(&h->about, limit, (uint32_t)guard.options.kheap_arrays, keys))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = guard.real.cuStreamCreate(&h->stream, CU_STREAM_NON_BLOCKING);
    if (!r)
        r = make_scan(h);
    if (!r)
        r = make_memory(h);
    if (r) {
        unmake(h);
        h->failed = true;
        guard_count(GUARD_KHEAP_NONE);
        guard_report_note("%s: no heap of %zu bytes for malloc inside kernels (%s): the driver's heap is "
                          "used and not watched",
                          mode_name, limit, name_of(r));
        return;
    }
    h->limit = limit;
    guard_count(GUARD_KHEAPS);
    atomic_fetch_add_explicit(&heaps_ready, 1, memory_order_relaxed);
    // Release pairs with the acquire in kheap_host_of.
    atomic_store_explicit(&h->ready, true, memory_order_release);
}

// --- the modules' variables --------------------------------------------------------------------------------

// Sets the variable of a module to the address of its heap; 0: malloc is the driver's. Requires ctx to be
// current.
static CUresult set_variable(struct context *ctx, const struct modules_row *row, uint64_t address)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = 0;
    size_t size = 0;
    CUresult r = row->library ? d->cuLibraryGetGlobal(&at, &size, (CUlibrary)row->handle, KHEAP_VARIABLE)
                              : d->cuModuleGetGlobal_v2(&at, &size, (CUmodule)row->handle, KHEAP_VARIABLE);
    const struct context_copy copy = {at, &address, sizeof address};
    if (!r && size != sizeof address)
        r = CUDA_ERROR_INVALID_VALUE;
    return r ? r : context_write(ctx, &copy, 1);
}

// Sets the variables of all modules in a context; again: also those that are set already. Requires the lock.
static void set_variables(struct context *ctx, CUcontext context, uint64_t address, bool again)
{
    static bool noted;
    uint64_t bit = (uint64_t)1 << context_number(ctx);
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client]) {
        struct module *m = row->data[client];
        if (m->ending)
            m->set_in &= ~bit;  // it is set if the module stays
        if (m->ending || (row->context && row->context != context) || (!again && m->set_in & bit))
            continue;
        CUresult r = set_variable(ctx, row, address);
        m->set_in |= bit;
        if (r && !noted) {
            noted = true;
            guard_report_note("%s: the heap of a module could not be set (%s): its kernels use the "
                              "driver's heap, which is not watched",
                              mode_name, name_of(r));
        }
    }
    modules_give(client, all);
}

void kheap_host_prepare(void)
{
    CUcontext context = NULL;
    bool pushed;
    if (guard.real.cuCtxGetCurrent(&context) || !context)
        return;
    context = green_owner(context);
    if (atomic_load_explicit(&ready_in, memory_order_acquire) == context)
        return;
    int saved = errno;
    struct context *ctx = context_enter(context, &pushed);
    if (!ctx)
        return;
    if (canary_on)
        canary_use();
    CUstreamCaptureMode mode = context_capture_relax();
    lock_take(&lock);
    struct kheap_host *h = &heaps[context_number(ctx)];
    if (!atomic_load_explicit(&h->ready, memory_order_relaxed) && !h->failed && !h->plain && !refused)
        make(h);
    if (atomic_load_explicit(&h->ready, memory_order_relaxed))
        set_variables(ctx, context, h->about.base, false);
    atomic_store_explicit(&ready_in, context, memory_order_release);
    lock_give(&lock);
    context_capture_restore(mode);
    context_leave(pushed);
    errno = saved;
}

// --- modules -----------------------------------------------------------------------------------------------

void kheap_host_module(struct modules_row *row)
{
    struct module *m = row && (row->library || row->context) ? mem_zalloc(1, sizeof *m) : NULL;
    if (!m) {
        // Its variable stays 0, so its kernels use the driver's heap.
        guard_count(GUARD_KHEAP_NONE);
        return;
    }
    lock_take(&lock);
    modules_set(row, client, m);
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    atomic_store_explicit(&kheap_host_on, true, memory_order_relaxed);
    lock_give(&lock);
}

// Variables are set under the lock, so nobody asks the driver for this module's once it may be unloaded.
static void set_ending(const void *handle, bool ending)
{
    if (!atomic_load_explicit(&kheap_host_on, memory_order_relaxed))
        return;
    lock_take(&lock);
    struct modules_row *row = modules_take(client, handle);
    if (row) {
        ((struct module *)row->data[client])->ending = ending;
        atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    }
    modules_give(client, row);
    lock_give(&lock);
}

void kheap_host_module_ends(const void *handle)
{
    set_ending(handle, true);
}

void kheap_host_module_stays(const void *handle)
{
    set_ending(handle, false);
}

// --- the driver's own functions ----------------------------------------------------------------------------

// Sends malloc in this context back to the driver. Requires the lock, and ctx to be current.
static void go_plain(struct kheap_host *h, struct context *ctx)
{
    uint64_t set[2] = {1, 1};
    const struct context_copy copy = {h->about.base + offsetof(struct kheap, plain), set, sizeof set};
    _Static_assert(offsetof(struct kheap, foreign) == offsetof(struct kheap, plain) + sizeof(uint64_t),
                   "set at once");
    if (atomic_load_explicit(&h->ready, memory_order_relaxed) && !h->plain && !context_write(ctx, &copy, 1))
        guard_report_note("%s: that module must not free what kernels have taken from malloc so far: its "
                          "free would pass it to the driver's heap",
                          mode_name);
    h->plain = true;
}

static void go_plain_everywhere(void)
{
    refused = true;
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++) {
        struct context *ctx = context_of_number(i);
        bool pushed;
        if (!ctx || !context_enter(atomic_load_explicit(&ctx->handle, memory_order_relaxed), &pushed))
            continue;
        go_plain(&heaps[i], ctx);
        context_leave(pushed);
    }
}

void kheap_host_foreign(bool library, const char *why)
{
    bool pushed;
    struct context *ctx = context_enter_owner(&pushed);
    guard_count(GUARD_KHEAP_PLAIN);
    lock_take(&lock);
    bool first = library ? !refused : ctx && !heaps[context_number(ctx)].plain;
    if (first)
        guard_report_note("%s: a module calls malloc or free and could not be redirected (%s): from now "
                          "on kernels use the driver's heap, which is not watched",
                          mode_name, why);
    if (library)
        go_plain_everywhere();
    else if (ctx)
        go_plain(&heaps[context_number(ctx)], ctx);
    lock_give(&lock);
    context_leave(pushed);
}

// --- the limit ---------------------------------------------------------------------------------------------

// Returns whether nothing has been allocated from the heap.
static bool is_unused(struct context *ctx, const struct kheap_host *h)
{
    struct kheap_counts counts[KHEAP_COUNTS];
    const struct context_copy copy = {h->about.counts, counts, sizeof counts};
    if (context_read(ctx, &copy, 1))
        return false;
    uint64_t calls = 0;
    for (unsigned i = 0; i < KHEAP_COUNTS; i++)
        calls |= counts[i].mallocs | counts[i].failed;
    return !calls;
}

void kheap_host_limit_set(void)
{
    size_t limit = 0;
    struct context *ctx = kheap_host_any() ? context_current() : NULL;
    if (!ctx || guard.real.cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE))
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    canary_monitor_lock();
    lock_take(&lock);
    struct kheap_host *h = kheap_host_of(ctx);
    CUcontext context = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
    // The driver refuses a new limit if a kernel has used its heap. Ours may be in use all the same: then it
    // stays.
    if (h && h->limit != limit && !h->plain && !guard.real.cuCtxSynchronize() && is_unused(ctx, h)) {
        set_variables(ctx, context, 0, true);
        unmake(h);
        atomic_fetch_sub_explicit(&heaps_ready, 1, memory_order_relaxed);
        make(h);
        if (atomic_load_explicit(&h->ready, memory_order_relaxed))
            set_variables(ctx, context, h->about.base, true);
    }
    lock_give(&lock);
    canary_monitor_unlock();
    context_capture_restore(mode);
}

// --- the end of a context ----------------------------------------------------------------------------------

void kheap_host_context_gone(struct context *ctx)
{
    unsigned n = context_number(ctx);
    if (!atomic_load_explicit(&kheap_host_on, memory_order_relaxed) && !heaps[n].plain)
        return;
    lock_take(&lock);
    if (atomic_load_explicit(&heaps[n].ready, memory_order_relaxed))
        atomic_fetch_sub_explicit(&heaps_ready, 1, memory_order_relaxed);
    heaps[n] = (struct kheap_host){.failed = false};
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client])
        ((struct module *)row->data[client])->set_in &= ~((uint64_t)1 << n);
    modules_give(client, all);
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    lock_give(&lock);
}
