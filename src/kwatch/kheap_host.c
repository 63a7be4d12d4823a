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
#include "context/home_copy.h"
#include "track/guard_report.h"

// Our data of the row of a module or library whose calls are redirected. Rows are taken under the lock only,
// so all of them are there.
struct module {
    uint64_t told;  // homes in which its variable is set, a bit for each
    bool ending;    // the driver is about to unload it
};
_Static_assert(HOME_CONTEXTS <= 64, "a bit for each home");

_Atomic(bool) kheap_host_on;
static _Atomic(unsigned) heaps_ready;  // relaxed: whether it is worth to look

// Behind the lock of scans, before all others of ours; held over calls into the driver, as only a launch, a load and a limit
// need what it protects, and those wait for the driver anyway.
static struct lock lock = LOCK_INIT(KHEAP);
static struct kheap_host heaps[HOME_CONTEXTS];
static unsigned client;
static bool refused;  // in every context: a library calls the driver's functions
// The context of the last launch, if all is set there. Acquire and release: who finds it sees what was set.
static _Atomic(CUcontext) ready_in;

void kheap_host_start(void)
{
    client = modules_client(mem_free);
}

void kheap_host_after_fork(void)
{
    lock_after_fork(&lock);
    // The driver does not work in the child; what the parent has there is the parent's.
    atomic_store_explicit(&kheap_host_on, false, memory_order_relaxed);
    atomic_store_explicit(&heaps_ready, 0, memory_order_relaxed);
    memset(heaps, 0, sizeof heaps);
    refused = false;
}

bool kheap_host_any(void)
{
    return atomic_load_explicit(&heaps_ready, memory_order_relaxed);
}

struct kheap_host *kheap_host_of(const struct home *home)
{
    struct kheap_host *h = &heaps[home_number(home)];
    // Acquire pairs with the release in make.
    return atomic_load_explicit(&h->ready, memory_order_acquire) ? h : NULL;
}

// --- making -------------------------------------------------------------------------------------------------

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

// All of it on a stream of our own: the program's may be at work.
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
    if (!r && kheap_plan(&h->about, limit, (uint32_t)guard.options.kheap_arrays, keys))
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
        guard_report_note(
            "canary: no heap of %zu bytes for malloc inside kernels (%s): the driver's heap is used "
            "and not watched",
            limit, name_of(r));
        return;
    }
    h->limit = limit;
    guard_count(GUARD_KHEAPS);
    atomic_fetch_add_explicit(&heaps_ready, 1, memory_order_relaxed);
    // Release pairs with the acquire in kheap_host_of.
    atomic_store_explicit(&h->ready, true, memory_order_release);
}

// --- telling modules ----------------------------------------------------------------------------------------

// The home's context is current. address 0: malloc is the driver's.
static CUresult tell(struct home *home, const struct modules_row *row, uint64_t address)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = 0;
    size_t size = 0;
    CUresult r = row->library ? d->cuLibraryGetGlobal(&at, &size, (CUlibrary)row->handle, KHEAP_VARIABLE)
                              : d->cuModuleGetGlobal_v2(&at, &size, (CUmodule)row->handle, KHEAP_VARIABLE);
    const struct home_copy copy = {at, &address, sizeof address};
    if (!r && size != sizeof address)
        r = CUDA_ERROR_INVALID_VALUE;
    return r ? r : home_write(home, &copy, 1);
}

// Under the lock.
static void tell_all(struct home *home, CUcontext context, uint64_t address, bool again)
{
    static bool told;
    uint64_t bit = (uint64_t)1 << home_number(home);
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client]) {
        struct module *m = row->data[client];
        if (m->ending)
            m->told &= ~bit;  // it is told if it stays
        if (m->ending || (row->context && row->context != context) || (!again && m->told & bit))
            continue;
        CUresult r = tell(home, row, address);
        m->told |= bit;
        if (r && !told) {
            told = true;
            guard_report_note(
                "canary: the heap of a module could not be set (%s): its kernels use the driver's "
                "heap, which is not watched",
                name_of(r));
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
    struct home *home = home_enter(context, &pushed);
    if (!home)
        return;
    canary_use();
    CUstreamCaptureMode mode = home_calm();
    lock_take(&lock);
    struct kheap_host *h = &heaps[home_number(home)];
    if (!atomic_load_explicit(&h->ready, memory_order_relaxed) && !h->failed && !h->plain && !refused)
        make(h);
    if (atomic_load_explicit(&h->ready, memory_order_relaxed))
        tell_all(home, context, h->about.base, false);
    atomic_store_explicit(&ready_in, context, memory_order_release);
    lock_give(&lock);
    home_stir(mode);
    home_leave(pushed);
    errno = saved;
}

// --- modules ------------------------------------------------------------------------------------------------

void kheap_host_module(struct modules_row *row)
{
    struct module *m = row && (row->library || row->context) ? mem_zalloc(1, sizeof *m) : NULL;
    if (!m) {
        // Its variable stays 0: its kernels have the driver's heap.
        guard_count(GUARD_KHEAP_NONE);
        return;
    }
    lock_take(&lock);
    modules_set(row, client, m);
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    atomic_store_explicit(&kheap_host_on, true, memory_order_relaxed);
    lock_give(&lock);
}

// Whoever tells modules has the lock, so nobody asks the driver for this one once it may be unloaded.
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

// --- the driver's own functions -----------------------------------------------------------------------------

// The home's context is current, or was made so. Under the lock.
static void go_plain(struct kheap_host *h, struct home *home)
{
    uint64_t set[2] = {1, 1};
    const struct home_copy copy = {h->about.base + offsetof(struct kheap, plain), set, sizeof set};
    _Static_assert(offsetof(struct kheap, foreign) == offsetof(struct kheap, plain) + sizeof(uint64_t),
                   "set at once");
    if (atomic_load_explicit(&h->ready, memory_order_relaxed) && !h->plain && !home_write(home, &copy, 1))
        guard_report_note("canary: that module must not free what kernels have taken from malloc so far: "
                          "its free would pass it to the driver's heap");
    h->plain = true;
}

static void go_plain_everywhere(void)
{
    refused = true;
    for (unsigned i = 0; i < HOME_CONTEXTS; i++) {
        struct home *home = home_of_number(i);
        bool pushed;
        if (!home || !home_enter(atomic_load_explicit(&home->context, memory_order_relaxed), &pushed))
            continue;
        go_plain(&heaps[i], home);
        home_leave(pushed);
    }
}

void kheap_host_foreign(bool library, const char *why)
{
    bool pushed;
    struct home *home = home_enter_owner(&pushed);
    guard_count(GUARD_KHEAP_PLAIN);
    lock_take(&lock);
    bool first = library ? !refused : home && !heaps[home_number(home)].plain;
    if (first)
        guard_report_note("canary: a module calls malloc or free and could not be redirected (%s): from now "
                          "on kernels use the driver's heap, which is not watched",
                          why);
    if (library)
        go_plain_everywhere();
    else if (home)
        go_plain(&heaps[home_number(home)], home);
    lock_give(&lock);
    home_leave(pushed);
}

// --- the limit ----------------------------------------------------------------------------------------------

// A heap from which nothing was taken yet.
static bool is_unused(struct home *home, const struct kheap_host *h)
{
    struct kheap_counts counts[KHEAP_COUNTS];
    const struct home_copy copy = {h->about.counts, counts, sizeof counts};
    if (home_read(home, &copy, 1))
        return false;
    uint64_t calls = 0;
    for (unsigned i = 0; i < KHEAP_COUNTS; i++)
        calls |= counts[i].mallocs | counts[i].failed;
    return !calls;
}

void kheap_host_limit_set(void)
{
    size_t limit = 0;
    struct home *home = kheap_host_any() ? home_current() : NULL;
    if (!home || guard.real.cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE))
        return;
    CUstreamCaptureMode mode = home_calm();
    canary_monitor_hold();
    lock_take(&lock);
    struct kheap_host *h = kheap_host_of(home);
    CUcontext context = atomic_load_explicit(&home->context, memory_order_relaxed);
    // The driver refuses where a kernel has used its heap. Ours may be in use all the same: then it stays as it is.
    if (h && h->limit != limit && !h->plain && !guard.real.cuCtxSynchronize() && is_unused(home, h)) {
        tell_all(home, context, 0, true);
        unmake(h);
        atomic_fetch_sub_explicit(&heaps_ready, 1, memory_order_relaxed);
        make(h);
        if (atomic_load_explicit(&h->ready, memory_order_relaxed))
            tell_all(home, context, h->about.base, true);
    }
    lock_give(&lock);
    canary_monitor_go_on();
    home_stir(mode);
}

// --- the end of a context -----------------------------------------------------------------------------------

void kheap_host_context_gone(struct home *home)
{
    unsigned n = home_number(home);
    if (!atomic_load_explicit(&kheap_host_on, memory_order_relaxed) && !heaps[n].plain)
        return;
    lock_take(&lock);
    if (atomic_load_explicit(&heaps[n].ready, memory_order_relaxed))
        atomic_fetch_sub_explicit(&heaps_ready, 1, memory_order_relaxed);
    heaps[n] = (struct kheap_host){.failed = false};
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client])
        ((struct module *)row->data[client])->told &= ~((uint64_t)1 << n);
    modules_give(client, all);
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    lock_give(&lock);
}
