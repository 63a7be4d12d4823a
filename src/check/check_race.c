// SPDX-License-Identifier: MIT
#include "check/check_race.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "prove/check_prove.h"
#include "context/context.h"
#include "context/green.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "core/lock.h"
#include "launch/launch_call.h"
#include "track/guard_report.h"
#include "track/stack.h"
#include "track/track.h"

enum {
    LAUNCHES = 64,  // that are kept; of those before, nothing is known
    BYTES = 256,    // of parameters; launches with more are not kept
    STREAMS = 16,   // into which kernels were launched that are not plain
    NON_BLOCKING = 1,
};

// A launch of a plain kernel. number == 0: none.
struct launch {
    uint64_t number;  // from the clock
    uint64_t newest;  // serial of a block: the kernel was passed none that was allocated later
    CUstream stream;
    CUcontext context;
    const void *function;
    const struct check_prove *prove;
    enum driver_id call;
    uint32_t stack;
    uint32_t grid[3], block[3], shared, size;
    _Alignas(8) char parameters[BYTES];
};

// The last launch into a stream of a kernel that is not plain: it may tell others how far it is, or wait for
// them, by memory.
struct other {
    CUstream stream;
    uint64_t number;
};

static _Atomic(bool) on;  // relaxed: launches before the first allocation are not kept
// Relaxed, all three: a call that orders a launch and a free happens between them on the host, by the
// program's own synchronization. `clock` counts launches; a launch of number n <= in_order counts as ordered.
static _Atomic uint64_t clock_, in_order;
static _Atomic uint64_t recorded;  // the clock when an event was recorded last
static _Atomic(bool) never;        // nothing is reported any more

static struct lock lock = LOCK_INIT(CHECK_RACE);  // for what follows
static struct launch launches[LAUNCHES];
static unsigned next_launch;
static struct other others[STREAMS];
static unsigned nothers;
static bool others_anywhere;  // kernels that are not plain may run in any stream

void check_race_after_fork(void)
{
    lock_after_fork(&lock);
    on = false;
}

bool check_race_is_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed) &&
           !atomic_load_explicit(&never, memory_order_relaxed);
}

static CUcontext context_now(void)
{
    CUcontext context = NULL;
    return guard.real.cuCtxGetCurrent(&context) ? NULL : context;
}

static uint64_t now(void)
{
    return atomic_load_explicit(&clock_, memory_order_relaxed);
}

// --- order -------------------------------------------------------------------------------------------------

static void raise_to(_Atomic uint64_t *to, uint64_t value)
{
    uint64_t old = atomic_load_explicit(to, memory_order_relaxed);
    while (old < value && !atomic_compare_exchange_weak_explicit(to, &old, value, memory_order_relaxed,
                                                                 memory_order_relaxed))
        ;
}

static void event_used(void)
{
    raise_to(&in_order, atomic_load_explicit(&recorded, memory_order_relaxed));
    lock_take(&lock);
    others_anywhere |= nothers > 0;
    lock_give(&lock);
}

// Launches of other threads may be under way: what is not plain among them is kept.
static void all_ended(void)
{
    uint64_t ended = now();
    raise_to(&in_order, ended);
    lock_take(&lock);
    unsigned kept = 0;
    for (unsigned i = 0; i < nothers; i++)
        if (others[i].number > ended)
            others[kept++] = others[i];
    nothers = kept;
    others_anywhere &= kept > 0;
    lock_give(&lock);
}

void check_race_order(enum mode_order what)
{
    if (!check_race_is_on())
        return;
    int saved = errno;
    switch (what) {
    case MODE_ORDER_RECORD: raise_to(&recorded, now()); break;
    case MODE_ORDER_EVENT: event_used(); break;
    case MODE_ORDER_GRAPHICS:
    case MODE_ORDER_ALL: raise_to(&in_order, now()); break;
    case MODE_ORDER_ENDED: all_ended(); break;
    case MODE_ORDER_NEVER: atomic_store_explicit(&never, true, memory_order_relaxed); break;
    }
    errno = saved;
}

// --- streams -----------------------------------------------------------------------------------------------

static bool is_legacy(CUstream stream, bool per_thread)
{
    return (!stream && !per_thread) || stream == CU_STREAM_LEGACY;
}

// Whether it is the calling thread's own stream, which other threads cannot name.
static bool is_own(CUstream stream, bool per_thread)
{
    return (!stream && per_thread) || stream == CU_STREAM_PER_THREAD;
}

void check_race_alloc(CUstream stream, bool per_thread)
{
    atomic_store_explicit(&on, true, memory_order_relaxed);
    if (is_legacy(stream, per_thread))
        check_race_order(MODE_ORDER_ALL);
}

// --- launches ----------------------------------------------------------------------------------------------

// Requires the lock.
static struct other *find_other(CUstream stream)
{
    for (unsigned i = 0; i < nothers; i++)
        if (others[i].stream == stream)
            return &others[i];
    return NULL;
}

static void keep_other(CUstream stream, bool named, uint64_t number)
{
    lock_take(&lock);
    struct other *o = find_other(stream);
    if (!o && nothers < STREAMS)
        o = &others[nothers++];
    if (o)
        *o = (struct other){stream, number};
    others_anywhere |= !o || !named;
    lock_give(&lock);
}

// Whether all that the kernel is passed and uses as pointers lies in memory that the host does not see.
// Raises *newest to the serials of the blocks.
static bool is_hidden(const struct check_prove *p, const char *parameters, size_t size, uint64_t *newest)
{
    const struct proof *proof = check_prove_proof(p);
    bool hidden = !proof->head->ncalls;
    unsigned section = epoch_enter();
    for (uint32_t i = 0; i < proof->head->nroots && hidden; i++) {
        const struct proof_root *root = &proof->roots[i];
        uint64_t pointer = 0;
        if (root->kind != PROOF_ROOT_PARAM) {
            hidden = root->kind != PROOF_ROOT_GLOBAL;
            continue;
        }
        if (root->at <= size && size - root->at >= sizeof pointer)
            memcpy(&pointer, parameters + root->at, sizeof pointer);
        const struct track_block *b = pointer ? track_live(pointer) : NULL;
        if (b && b->facts.serial > *newest)
            *newest = b->facts.serial;
        hidden = !b ? !root->strong || !pointer
                    : b->facts.family == TRACK_PLAIN || b->facts.family == TRACK_PITCH ||
                          b->facts.family == TRACK_POOL;
    }
    epoch_leave(section);
    return hidden;
}

static void keep_launch(const struct launch_call *l, const struct check_prove *plain, const void *parameters,
                        size_t size, uint64_t number, uint64_t newest)
{
    struct launch new = {.number = number,
                         .newest = newest,
                         .stream = l->stream,
                         .context = context_now(),
                         .function = l->function,
                         .prove = plain,
                         .call = l->call,
                         .stack = stack_capture(NULL, (unsigned)guard.options.stack_depth),
                         .grid = {l->grid[0], l->grid[1], l->grid[2]},
                         .block = {l->block[0], l->block[1], l->block[2]},
                         .shared = l->shared,
                         .size = (uint32_t)size};
    if (size)
        memcpy(new.parameters, parameters, size);
    lock_take(&lock);
    launches[next_launch++ % LAUNCHES] = new;
    lock_give(&lock);
}

void check_race_launch(const struct launch_call *l, const struct check_prove *plain, const void *parameters,
                       size_t size)
{
    if (!check_race_is_on() || l->node)
        return;
    if (!l->function || launch_call_is_captured(l)) {  // a graph may do anything
        check_race_order(l->function ? MODE_ORDER_ALL : MODE_ORDER_NEVER);
        return;
    }
    bool per_thread = launch_call_per_thread(l), legacy = is_legacy(l->stream, per_thread);
    bool named = !legacy && !is_own(l->stream, per_thread);
    // Attributes may record events, and let kernels of one stream overlap.
    bool usual = !l->config || !l->config->numAttrs;
    int saved = errno;
    uint64_t newest = 0, number = atomic_fetch_add_explicit(&clock_, 1, memory_order_relaxed) + 1;
    if (!usual || legacy)
        check_race_order(MODE_ORDER_ALL);
    if (!usual)
        check_race_order(MODE_ORDER_RECORD);
    if (!usual || !plain || !is_hidden(plain, parameters, size, &newest))
        keep_other(l->stream, named, number);
    else if (named && size <= BYTES)
        keep_launch(l, plain, parameters, size, number, newest);
    errno = saved;
}

// --- frees -------------------------------------------------------------------------------------------------

// Returns whether the stream has work that has not ended, and orders with the legacy stream's as `blocking`
// says. Requires that it exists.
static bool is_busy(CUstream stream, bool *blocking)
{
    const struct driver *d = &guard.real;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned flags = 0;
    if (!d->cuStreamGetFlags || !d->cuStreamIsCapturing || !d->cuStreamQuery ||
        d->cuStreamIsCapturing(stream, &status) || status != CU_STREAM_CAPTURE_STATUS_NONE ||
        d->cuStreamGetFlags(stream, &flags))
        return false;
    *blocking = !(flags & NON_BLOCKING);
    return d->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

// What a kernel does with the buffer that is freed.
struct use {
    uint64_t address;
    const struct proof_access *access;
};

// Finds an access of the buffer that some thread of the launch makes for certain: an exact bound has one.
static bool find_use(const struct launch *l, const struct track_copy *b, struct use *use)
{
    const struct proof *p = check_prove_proof(l->prove);
    const struct proof_launch launch = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                                        .block = {l->block[0], l->block[1], l->block[2]},
                                        .dynamic_shared = l->shared,
                                        .params_size = l->size,
                                        .params = l->parameters};
    void *work = mem_alloc(proof_work_size(p) + 16);
    struct proof_bound *bounds = mem_alloc((p->head->naccesses + 1u) * sizeof *bounds);
    bool found = false, done = work && bounds && !proof_eval(p, &launch, work, bounds, NULL);
    for (uint32_t i = 0; done && i < p->head->naccesses && !found; i++) {
        const struct proof_bound *a = &bounds[i];
        uint64_t pointer = 0;
        if (a->verdict != PROOF_BOUNDED || !a->exact || a->root == PROOF_NONE ||
            p->roots[a->root].kind != PROOF_ROOT_PARAM || p->roots[a->root].at > l->size ||
            l->size - p->roots[a->root].at < sizeof pointer)
            continue;
        memcpy(&pointer, l->parameters + p->roots[a->root].at, sizeof pointer);
        *use = (struct use){pointer + (uint64_t)a->lowest, &p->accesses[i]};
        found = use->address - b->base < b->size;
    }
    mem_free(bounds);
    mem_free(work);
    return found;
}

static void report(const struct launch *l, const struct track_copy *b, const struct use *use)
{
    struct driver_fault *fault = mem_zalloc(1, sizeof *fault);
    const char *name = kernels_name(l->function);
    if (!fault)
        return;
    snprintf(fault->kernel, sizeof fault->kernel, "%s", name ? name : "");
    struct guard_finding f = {
        .type = REPORT_USE_AFTER_FREE,
        .call = l->call,
        .launched_at = l->stack,
        .address = use->address,
        .bytes = use->access->bytes,
        .access = use->access->does & PROOF_WRITES ? REPORT_WRITE : REPORT_READ,
        .nbuffers = 1,
        .buffers = {*b},
        .fault = name ? fault : NULL,
        .note = "the kernel had not ended when the buffer was freed in the order of another stream",
        .more = {"nothing orders the two: no event that the other stream waits for, and no wait of the host"},
    };
    guard_report_finding(&f);
    guard_count(GUARD_CHECK_RACES);
    mem_free(fault);
}

// Copies the launches that nothing orders before a free in a stream. Returns how many there are.
static unsigned unordered(CUstream stream, CUcontext context, struct launch out[LAUNCHES])
{
    unsigned n = 0;
    uint64_t from = atomic_load_explicit(&in_order, memory_order_relaxed);
    lock_take(&lock);
    bool others_here = others_anywhere || find_other(stream);
    for (unsigned i = 0; i < LAUNCHES && !others_here; i++) {
        const struct launch *l = &launches[i];
        const struct other *o = l->number > from ? find_other(l->stream) : NULL;
        if (l->number > from && l->stream != stream && l->context == context && (!o || o->number < l->number))
            out[n++] = *l;
    }
    lock_give(&lock);
    return n;
}

static void look(const struct track_copy *b, CUstream stream, bool legacy)
{
    struct launch *list = mem_alloc(LAUNCHES * sizeof *list);
    CUcontext context = context_now();
    unsigned n = list && context ? unordered(stream, context, list) : 0;
    bool found = false, blocking;
    for (unsigned i = 0; i < n && !found; i++) {
        struct use use = {0};
        // Launches into the legacy stream are not kept: one of the two streams may be it, if any.
        // Memory that was freed may be allocated again at once, in another stream too.
        found = b->facts.serial <= list[i].newest && find_use(&list[i], b, &use) &&
                is_busy(list[i].stream, &blocking) && !(legacy && blocking);
        if (found)
            report(&list[i], b, &use);
    }
    mem_free(list);
}

void check_race_free(uint64_t base, CUstream stream, bool per_thread)
{
    bool legacy = is_legacy(stream, per_thread);
    struct track_copy copy;
    bool known = false;
    if (!check_race_is_on())
        return;
    int saved = errno;
    unsigned section = epoch_enter();
    const struct track_block *b = track_freed(base);
    if (b && b->range.base == base) {
        copy = track_copy(b, true);
        known = true;
    }
    epoch_leave(section);
    if (known && !is_own(stream, per_thread) && !atomic_load_explicit(&green_used, memory_order_relaxed)) {
        CUstreamCaptureMode mode = context_capture_relax();
        look(&copy, legacy ? NULL : stream, legacy);
        context_capture_restore(mode);
    }
    if (legacy)
        check_race_order(MODE_ORDER_ALL);
    errno = saved;
}
