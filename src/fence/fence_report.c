// SPDX-License-Identifier: MIT
#include "fence/fence_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "context/context_copy.h"
#include "context/names.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "core/own_thread.h"
#include "fence/fence_client.h"
#include "fence/fence_host.h"
#include "kfence/kfence_word.h"
#include "launch/kernel_fault.h"
#include "launch/launch_ring.h"
#include "rewrite/site_place.h"
#include "track/guard_report.h"
#include "track/track.h"

enum {
    NEAR = 1 << 20,  // bytes from a buffer within which an access is shown with it
    NULL_PAGE = 1 << 16,
    PAUSE = 50000000,  // nanoseconds between two looks at the rings
};

// What the program's calls return. Relaxed: a number that stands alone.
static _Atomic(int) contained;
static _Atomic(bool) watched;     // a thread reads the rings; relaxed: who does not see it reads too
static _Atomic uint64_t records;  // that were read; relaxed: a number that stands alone
static uint64_t counted[CONTEXT_CONTEXTS];  // faults that were added to the summary; under the lock
static int owner;                           // the process in which kernels are fenced

void fence_report_after_fork(void)
{
    memset(counted, 0, sizeof counted);
    atomic_store_explicit(&records, 0, memory_order_relaxed);
    atomic_store_explicit(&watched, false, memory_order_relaxed);
    fence_report_forget();
}

void fence_report_forget(void)
{
    atomic_store_explicit(&contained, CUDA_SUCCESS, memory_order_relaxed);
}

// --- records -----------------------------------------------------------------------------------------------

// Adds the nearest buffer. Returns the type of error that this suggests.
static enum report_type add_nearest(struct guard_finding *f)
{
    unsigned section = epoch_enter();
    const struct track_block *before = track_before(f->address, NEAR);
    const struct track_block *after = track_after(f->address, f->address + NEAR);
    const struct track_block *freed = track_freed(f->address);
    uint64_t behind = before ? f->address - track_end(before) : UINT64_MAX;
    uint64_t ahead = after ? after->range.base - f->address : UINT64_MAX;
    enum report_type type = REPORT_WILD_ACCESS;
    if (freed)
        f->buffers[f->nbuffers++] = track_copy(freed, true);
    else if (before || after)
        f->buffers[f->nbuffers++] = track_copy(behind <= ahead ? before : after, false);
    if (freed)
        type = REPORT_USE_AFTER_FREE;
    else if (before || after)
        type = behind <= ahead ? REPORT_HEAP_OVERFLOW : REPORT_HEAP_UNDERFLOW;
    epoch_leave(section);
    return type;
}

// Of the errors that end a thread, or that leave a copy out.
static const char *const notes[KFENCE_KINDS] = {
    [KFENCE_STACK_FULL] =
        "contained: recursion without room on the stack; the thread ended, and no other one",
    [KFENCE_BAD_CALL] =
        "contained: a call through a pointer to no function of the module that may be called so, or a "
        "branch by an index of no target; the thread ended, and no other one",
    [KFENCE_BAD_HANDLE] =
        "contained: the handle of no texture or surface; the thread ended, and no other one",
    [KFENCE_BAD_MAP] =
        "contained: a tensor map that no call has encoded for memory of the program; the thread "
        "ended, and no other one",
    [KFENCE_BAD_SIZE] = "contained: a bulk copy of a size that is no multiple of 16; the thread ended",
    [KFENCE_BAD_BARRIER] = "contained: a number or a count that no barrier has; the thread ended",
    [KFENCE_BAD_BLOCKS] = "contained: a copy to blocks that the cluster does not have; it was left out",
    [KFENCE_BEFORE] = "contained: a box that begins in front of its tensor can be loaded, but not stored or "
                      "reduced; the copy was left out",
    [KFENCE_BAD_STRIDE] = "contained: a stride that no matrix has; the thread ended, and no other one",
    [KFENCE_REFUSED] = "refused: this instruction cannot be fenced; the thread ended, and no other one",
    [KFENCE_ENDLESS] = "contained: a loop ran longer than --fence-watchdog allows; the thread ended",
};

static void describe(struct guard_finding *f, const struct error_ring_record *r)
{
    switch (r->kind) {
    case KFENCE_MISALIGNED:
        f->type = REPORT_MISALIGNED;
        f->note =
            "contained: the access was made at the aligned address below; a bulk copy, or an access of local "
            "memory, was left out";
        break;
    case KFENCE_TRAPPED:
        f->type = REPORT_KERNEL_FAULT;
        f->nowhere = true;
        f->note = "contained: the thread ended, and no other one";
        break;
    case KFENCE_OUT_OF_SHARED:
        f->type = REPORT_SHARED_OVERFLOW;
        f->note = "contained: the access was made inside the block's own shared memory, or not at all";
        break;
    case KFENCE_MASKED:
    case KFENCE_SKEWED:
    case KFENCE_LEFT_SHARED:
        f->type = r->kind == KFENCE_MASKED   ? REPORT_WILD_ACCESS
                  : r->kind == KFENCE_SKEWED ? REPORT_MISALIGNED
                                             : REPORT_SHARED_OVERFLOW;
        f->nowhere = true;
        f->thread_known = false;
        f->access = REPORT_NO_ACCESS;
        f->note = "contained: found when a thread ended; --fence=check says which access and thread it was";
        break;
    case KFENCE_OUT_OF_LOCAL:
        f->type = REPORT_LOCAL_OVERFLOW;
        f->nowhere = true;
        f->note = "contained: the access was not made, or at the sink";
        break;
    case KFENCE_STACK_FULL:
    case KFENCE_BAD_CALL:
    case KFENCE_BAD_HANDLE:
    case KFENCE_BAD_MAP:
    case KFENCE_BAD_SIZE:
    case KFENCE_BAD_BARRIER:
    case KFENCE_BAD_BLOCKS:
    case KFENCE_BEFORE:
    case KFENCE_BAD_STRIDE:
    case KFENCE_REFUSED:
    case KFENCE_ENDLESS:
        f->type = REPORT_KERNEL_FAULT;
        f->nowhere = true;
        // These leave the copy out, and the thread goes on.
        if (r->kind != KFENCE_BAD_BLOCKS && r->kind != KFENCE_BEFORE)
            f->access = REPORT_NO_ACCESS;
        f->note = notes[r->kind];
        break;
    default:
        f->type = f->address < NULL_PAGE ? REPORT_NULL_DEREFERENCE : add_nearest(f);
        f->note = "contained: the access was kept inside the partition";
        break;
    }
}

static CUresult result_of(unsigned kind)
{
    switch (kind) {
    case KFENCE_MISALIGNED:
    case KFENCE_SKEWED: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case KFENCE_TRAPPED: return CUDA_ERROR_LAUNCH_FAILED;
    case KFENCE_BAD_CALL: return CUDA_ERROR_INVALID_PC;
    case KFENCE_BAD_BARRIER:
    case KFENCE_BAD_BLOCKS:
    case KFENCE_BEFORE:
    case KFENCE_BAD_SIZE: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case KFENCE_REFUSED: return CUDA_ERROR_NOT_PERMITTED;
    case KFENCE_ENDLESS: return CUDA_ERROR_LAUNCH_TIMEOUT;
    default: return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
}

static const char *only_kernel(void)
{
    const char *names[2];
    unsigned n = launch_ring_recent(names, 2);
    return launch_ring_is_certain(names, n) && launch_ring_has_all_since(0) ? names[0] : NULL;
}

static void report(const struct error_ring_record *r, const struct context *ctx)
{
    static struct driver_fault fault;  // under the lock; too large for the program's stacks
    uint64_t what = r->payload[0], flags = what >> 48;
    const struct pass_check *sites = fence_host_sites(r->payload[1]);
    const struct pass_check_site *site = sites && r->site < sites->nsites ? &sites->sites[r->site] : NULL;
    const char *kernel = only_kernel();
    fault = (struct driver_fault){.address = r->address};
    if (site)
        site_place(&fault, site, kernel);
    else if (kernel)
        snprintf(fault.kernel, sizeof fault.kernel, "%s", kernel);
    memcpy(fault.block, r->block, sizeof fault.block);
    memcpy(fault.thread, r->thread, sizeof fault.thread);
    struct guard_finding f = {
        .in_kernel = true,
        .stackless = true,
        .device_known = true,
        .device = ctx->device,
        .address = r->address,
        .bytes = what >> 32 & 0xffff,
        .access = r->kind == KFENCE_TRAPPED ? REPORT_NO_ACCESS
                  : flags & KFENCE_WRITES   ? REPORT_WRITE
                                            : REPORT_READ,
        .fault = &fault,
        .thread_known = true,
        .by_source = true,
    };
    describe(&f, r);
    guard_report_finding(&f);
}

static void take_record(const struct error_ring_record *r, const struct context *ctx)
{
    int none = CUDA_SUCCESS;
    atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
    if (guard.options.on_error != OPTION_ON_ERROR_SKIP)
        atomic_compare_exchange_strong_explicit(&contained, &none, (int)result_of(r->kind),
                                                memory_order_relaxed, memory_order_relaxed);
    report(r, ctx);
}

static void take(struct fence_device *d, struct context *ctx)
{
    struct error_ring_record r;
    while (error_ring_take(&d->reader, &r))
        if (r.client == ERROR_RING_FENCE && r.kind && r.kind < KFENCE_KINDS)
            take_record(&r, ctx);
}

// --- notes of masks ----------------------------------------------------------------------------------------

static bool has_note(const struct fence_device *d)
{
    uint32_t any = 0;
    // Relaxed: a note is one word.
    for (unsigned i = 0; i < KFENCE_NOTES; i++)
        any |= __atomic_load_n(&d->notes[i], __ATOMIC_RELAXED);
    return any;
}

static void take_note(struct fence_device *d, struct context *ctx, uint32_t note)
{
    static const enum kfence_kind kinds[KFENCE_NOTE_KINDS] = {
        [KFENCE_NOTE_MASKED] = KFENCE_MASKED,
        [KFENCE_NOTE_SKEWED] = KFENCE_SKEWED,
        [KFENCE_NOTE_OUT_OF_SHARED] = KFENCE_LEFT_SHARED,
    };
    uint64_t bit = kfence_hash(note) % (64 * 64), *seen = &d->noted[bit / 64];
    struct error_ring_record r = {
        .client = ERROR_RING_FENCE,
        .kind = kinds[note / KFENCE_NOTE_SITES % KFENCE_NOTE_KINDS],
        .site = note % KFENCE_NOTE_SITES == KFENCE_NOTE_SITES - 1 ? UINT32_MAX : note % KFENCE_NOTE_SITES,
        .payload = {0, fence_host_tagged(note)},
    };
    if (!r.kind || guard.options.fence_silent || *seen >> bit % 64 & 1)
        return;
    *seen |= 1ull << bit % 64;
    guard_count(GUARD_FENCE_FAULTS);
    take_record(&r, ctx);
}

static void take_notes(struct fence_device *d, struct context *ctx)
{
    for (unsigned i = 0; i < KFENCE_NOTES; i++) {
        uint32_t note = __atomic_exchange_n(&d->notes[i], 0, __ATOMIC_RELAXED);
        if (note)
            take_note(d, ctx, note);
    }
}

static void read_one(struct fence_device *d, struct context *ctx, void *all)
{
    const struct error_ring_reader *r = &d->reader;
    const struct error_ring_record *next = &r->ring->records[r->taken % r->size];
    // Acquire: as in error_ring_take, which looks again.
    if (*(bool *)all || __atomic_load_n(&next->sequence, __ATOMIC_ACQUIRE) == r->taken + 1)
        take(d, ctx);
    if (has_note(d))
        take_notes(d, ctx);
}

void fence_report_read(bool all)
{
    if (fence_host_on)
        fence_host_rings(read_one, &all, all);
}

CUresult fence_report_error(bool launch)
{
    bool all = false;
    if (launch && atomic_load_explicit(&watched, memory_order_relaxed))
        return (CUresult)atomic_load_explicit(&contained, memory_order_relaxed);
    // Another thread that has the lock may have taken a record whose error it has not set yet.
    if (fence_host_on && !fence_host_rings(read_one, &all, false))
        fence_host_rings(read_one, &all, true);
    return (CUresult)atomic_load_explicit(&contained, memory_order_relaxed);
}

uint64_t fence_report_records(void)
{
    return atomic_load_explicit(&records, memory_order_relaxed);
}

static void count_one(struct fence_device *d, struct context *ctx, void *unused)
{
    uint64_t faults = 0, *before = &counted[context_number(ctx)];
    const struct context_copy copy = {d->state + offsetof(struct kfence_state, faults), &faults,
                                      sizeof faults};
    if (context_read(ctx, &copy, 1) || faults < *before)
        return;
    guard_add(GUARD_FENCE_FAULTS, faults - *before);
    *before = faults;
}

void fence_report_count(void)
{
    if (fence_host_on)
        fence_host_each(count_one, NULL);
}

// --- start -------------------------------------------------------------------------------------------------

// Reports what kernels find while they run and the program waits elsewhere.
static void *watch(void *unused)
{
    const struct timespec pause = {.tv_nsec = PAUSE};
    atomic_store_explicit(&watched, true, memory_order_relaxed);
    while (fence_host_on) {
        fence_report_read(false);
        fence_client_write();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

// Registered after the driver's own exit handler, so it runs before the driver shuts down.
static void at_exit(void)
{
    if (owner != getpid())
        return;
    fence_report_read(true);
    fence_report_count();
    fence_client_write();
    fence_host_close();
}

static void first(void)
{
    owner = getpid();
    if (atexit(at_exit))
        guard_report_note("fence: what kernels record last is not reported when the program ends");
    if (!own_thread(watch))
        guard_report_note("fence: no thread: errors are reported when the program launches or waits");
}

void fence_report_start(void)
{
    fence_host_first = first;
    kernel_fault_contained = fence_report_error;
}
