// SPDX-License-Identifier: MIT
#include "fence/fence_memory.h"

#include <errno.h>
#include <sched.h>

#include "context/context_copy.h"
#include "core/guard.h"
#include "core/index.h"
#include "core/lock.h"
#include "core/slab_pool.h"
#include "fence/fence_host.h"
#include "launch/launch_ring.h"
#include "track/guard_report.h"
#include "track/track.h"

// A buffer. For one that was freed in stream order, `event` says when the stream has reached that.
struct block {
    struct index_item range;  // first member; the buffer, with the size that the program asked for
    struct fence_extent *extent;
    CUdevice device;
    CUcontext context;  // that was current
    CUmemoryPool pool;  // NULL: not stream-ordered memory
    CUevent event;
    struct block *next;
};

// Protects partitions, extents and the list; held over driver calls that map memory.
static struct lock lock = LOCK_INIT(FENCE_MEMORY);
static struct fence_partition partitions[CONTEXT_DEVICES];
static bool failed[CONTEXT_DEVICES];  // there is no partition and will be none
static _Atomic unsigned npartitions;  // partitions
static _Atomic uint64_t bytes_held;   // the memory of all partitions; relaxed: a number that stands alone
static struct block *waiting;         // freed in stream order
static _Atomic uint64_t waits;        // how many; relaxed: a hint
static struct slab_pool pool = SLAB_POOL(struct block);
static struct index blocks = INDEX_INIT;

// A thread that replaces sinks closes the gate; launches that find it closed wait.
static _Atomic bool closed;
static _Atomic uint64_t at_gate;

void fence_memory_after_fork(void)
{
    lock_after_fork(&lock);
    index_after_fork(&blocks);
    slab_pool_after_fork(&pool);
    fence_space_after_fork();
    index_clear(&blocks, NULL, NULL);
    for (unsigned i = 0; i < CONTEXT_DEVICES; i++) {
        fence_partition_forget(&partitions[i]);
        failed[i] = false;
    }
    waiting = NULL;
    waits = 0;
    bytes_held = 0;
    npartitions = 0;
    closed = false;
    at_gate = 0;
}

// --- partitions --------------------------------------------------------------------------------------------

// Requires the lock.
static struct fence_partition *partition_of(struct context *ctx)
{
    if (ctx->device < 0 || ctx->device >= CONTEXT_DEVICES || failed[ctx->device])
        return NULL;
    struct fence_partition *p = &partitions[ctx->device];
    if (p->size)
        return p;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = fence_partition_make(p, ctx);
    context_capture_restore(mode);
    if (!r) {
        atomic_fetch_add_explicit(&npartitions, 1, memory_order_relaxed);
        return p;
    }
    const char *name = driver_result_name(r);
    guard_report_note("fence: no partition on device %d (%s): its kernels cannot be fenced", ctx->device,
                      name ? name : "an unknown error");
    failed[ctx->device] = true;
    fence_partition_forget(p);
    return NULL;
}

const struct fence_partition *fence_memory_partition(struct context *ctx)
{
    lock_take(&lock);
    const struct fence_partition *p = partition_of(ctx);
    lock_give(&lock);
    return p;
}

bool fence_memory_has(uint64_t address)
{
    for (unsigned i = 0; i < CONTEXT_DEVICES; i++)
        if (fence_partition_has(&partitions[i], address))
            return true;
    return false;
}

const struct fence_partition *fence_memory_here(void)
{
    // Relaxed: a second partition is made by a call that comes before a launch with its addresses. The only
    // one is that of every context whose launches are fenced.
    bool one = atomic_load_explicit(&npartitions, memory_order_relaxed) == 1;
    for (unsigned i = 0; i < CONTEXT_DEVICES && one; i++)
        if (partitions[i].size)
            return &partitions[i];
    const struct context *ctx = context_current();
    return ctx && ctx->device >= 0 && ctx->device < CONTEXT_DEVICES && partitions[ctx->device].size
               ? &partitions[ctx->device]
               : NULL;
}

// A partition stays where it is, and its end only moves on, to where no other one ends.
uint64_t fence_memory_version(void)
{
    const struct fence_partition *p = fence_memory_here();
    return p ? p->base + p->size : 0;
}

struct judge_buffer fence_memory_judged(uint64_t pointer, bool *lasts)
{
    const struct fence_partition *p = fence_memory_here();
    if (p && fence_partition_has(p, pointer))
        return (struct judge_buffer){.known = true, .size = p->size, .into = pointer - p->base};
    *lasts = false;
    struct judge_buffer found = {.known = false};
    if (!p || !pointer)
        return found;
    unsigned section = epoch_enter();
    const struct track_block *b = track_live(pointer);
    // The driver lets go of these only when the kernels that were launched before have ended.
    if (b && (b->facts.family == TRACK_MANAGED || b->facts.family == TRACK_PINNED))
        found = (struct judge_buffer){.known = true, .size = b->range.size, .into = pointer - b->range.base};
    epoch_leave(section);
    return found;
}

void fence_memory_gate(void)
{
    // Sequentially consistent, with the stores in close_gate: either this launch sees the gate closed, or
    // close_gate sees the launch under way.
    while (__builtin_expect(atomic_load(&closed), 0)) {
        atomic_fetch_add(&at_gate, 1);
        while (atomic_load(&closed))
            sched_yield();
        atomic_fetch_sub(&at_gate, 1);
    }
}

// Waits until no launch is on its way to the driver, except those that wait at the gate.
static void close_gate(void)
{
    atomic_store(&closed, true);
    for (;;) {
        uint64_t made = atomic_load(&launch_ring.made), gate = atomic_load(&at_gate);
        if (atomic_load(&launch_ring.count) - made <= gate)
            return;
        sched_yield();
    }
}

// Replaces sinks by memory for a buffer, when all kernels have ended. Requires the lock.
static CUresult grow(struct fence_partition *p, struct context *ctx, uint64_t bytes)
{
    uint64_t generation = p->generation;
    CUstreamCaptureMode mode = context_capture_relax();
    close_gate();
    uint64_t held = p->held;
    CUresult r = fence_host_wait_all(ctx);
    if (!r)
        r = fence_partition_grow(p, bytes);
    atomic_fetch_add_explicit(&bytes_held, p->held - held, memory_order_relaxed);
    atomic_store(&closed, false);
    context_capture_restore(mode);
    if (p->generation != generation)
        fence_host_changed();
    return r;
}

// Gives free memory back to the driver beyond what is kept for the next buffers: --fence-keep, or a quarter
// of what buffers have. e: the free extent that a free has made. Requires the lock; ctx is current.
static void give_back(struct fence_partition *p, struct context *ctx, struct fence_extent *e)
{
    uint64_t keep = (uint64_t)guard.options.fence_keep, quarter = p->space.taken / 4;
    uint64_t kept = keep > quarter ? keep : quarter, free = p->held - p->space.taken;
    if (free <= kept || !fence_partition_has_free(p, e, free - kept))
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    close_gate();
    uint64_t given = fence_host_wait_all(ctx) ? 0 : fence_partition_give_back(p, e, free - kept);
    atomic_store(&closed, false);
    context_capture_restore(mode);
    atomic_fetch_sub_explicit(&bytes_held, given, memory_order_relaxed);
    guard_add(GUARD_FENCE_RETURNED, given);
}

// --- buffers -----------------------------------------------------------------------------------------------

static struct block *make(struct context *ctx, uint64_t size, CUresult *r)
{
    struct fence_partition *p = partition_of(ctx);
    struct block *b = p ? slab_pool_get(&pool) : NULL;
    if (!b)
        return NULL;
    struct fence_extent *e = fence_space_take(&p->space, size);
    if (!e) {
        *r = grow(p, ctx, size);
        e = *r ? NULL : fence_space_take(&p->space, size);
    }
    if (!e) {
        slab_pool_put(&pool, b);
        return NULL;
    }
    *b = (struct block){.range = {.base = e->base, .size = size},
                        .extent = e,
                        .device = ctx->device,
                        .context = atomic_load_explicit(&ctx->handle, memory_order_relaxed)};
    if (!index_insert(&blocks, &b->range))
        return b;
    fence_space_give(&p->space, e);
    slab_pool_put(&pool, b);
    return NULL;
}

static void release(struct epoch_node *node)
{
    slab_pool_put(&pool, (char *)node - offsetof(struct block, range.retired));
}

// Requires the lock. Returns the free extent that the buffer is in.
static struct fence_extent *dispose(struct block *b)
{
    struct fence_extent *e = fence_space_give(&partitions[b->device].space, b->extent);
    epoch_retire(&b->range.retired, release);
    return e;
}

static bool pitch_of(const struct mode_alloc *a, struct context *ctx, uint64_t *size)
{
    size_t granule = context_device_pitch(ctx->device), row;
    bool right =
        a->pitch && a->width && a->height && (a->element == 4 || a->element == 8 || a->element == 16);
    if (!right || !granule || __builtin_add_overflow(a->width, granule - 1, &row))
        return false;
    *a->pitch = row & ~(granule - 1);
    return !__builtin_mul_overflow(*a->pitch, a->height, size);
}

bool fence_memory_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    uint64_t size = a->size;
    struct context *ctx = a->kind == MODE_MANAGED || a->kind == MODE_HOST ? NULL : context_current();
    CUcontext current = NULL;
    if (!ctx || (a->kind == MODE_PITCH && !pitch_of(a, ctx, &size)) || !size ||
        guard.real.cuCtxGetCurrent(&current) || !context_hold(ctx, current))
        return false;
    fence_memory_poll();
    CUresult why = CUDA_SUCCESS;
    lock_take(&lock);
    struct block *b = make(ctx, size, &why);
    if (b && a->kind == MODE_POOL)
        b->pool = a->pool;
    lock_give(&lock);
    context_release(ctx);
    guard_count(b ? GUARD_FENCE_BUFFERS : GUARD_FENCE_ELSEWHERE);
    if (!b)
        return false;
    *pointer = b->range.base;
    *r = CUDA_SUCCESS;
    return true;
}

static struct block *take(uint64_t pointer)
{
    struct block *b = (struct block *)index_remove(&blocks, pointer);
    return b;
}

// --- frees -------------------------------------------------------------------------------------------------

static bool is_ours(uint64_t pointer)
{
    unsigned section = epoch_enter();
    const struct index_item *item = index_find(&blocks, pointer);
    bool ours = item && item->base == pointer;
    epoch_leave(section);
    return ours;
}

static CUresult free_now(uint64_t pointer)
{
    struct block *b = take(pointer);
    bool pushed;
    if (!b)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *ctx = context_enter(b->context, &pushed);
    CUresult r = ctx ? context_wait_as_free(ctx) : CUDA_ERROR_INVALID_CONTEXT;
    struct fence_partition *p = &partitions[b->device];
    // After an error of the context, its kernels have ended too.
    lock_take(&lock);
    struct fence_extent *e = dispose(b);
    if (!r)
        give_back(p, ctx, e);
    lock_give(&lock);
    if (ctx)
        context_leave(pushed);
    return r;
}

static CUresult free_in_order(const struct mode_free *f)
{
    __typeof__(cuEventRecord) *record =
        f->per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord;
    CUevent event = NULL;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r =
        record ? guard.real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) : CUDA_ERROR_NOT_SUPPORTED;
    if (!r && (r = record(event, f->stream)))
        guard.real.cuEventDestroy_v2(event);
    context_capture_restore(mode);
    struct block *b = r ? NULL : take(f->pointer);
    if (!b)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    b->event = event;
    lock_take(&lock);
    b->next = waiting;
    waiting = b;
    atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
    lock_give(&lock);
    return CUDA_SUCCESS;
}

bool fence_memory_free(const struct mode_free *f, CUresult *r)
{
    if (f->way == MODE_FREE_HOST || !f->pointer || !is_ours(f->pointer))
        return false;
    // A graph may free again and again what it never allocates again here: the buffer stays.
    *r = f->captured ? CUDA_SUCCESS : f->way == MODE_FREE ? free_now(f->pointer) : free_in_order(f);
    return true;
}

void fence_memory_poll(void)
{
    if (__builtin_expect(!atomic_load_explicit(&waits, memory_order_relaxed), 1))
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    lock_take(&lock);
    for (struct block **at = &waiting; *at;) {
        struct block *b = *at;
        if (guard.real.cuEventQuery(b->event)) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        atomic_fetch_sub_explicit(&waits, 1, memory_order_relaxed);
        guard.real.cuEventDestroy_v2(b->event);
        dispose(b);
    }
    lock_give(&lock);
    context_capture_restore(mode);
}

// --- questions ---------------------------------------------------------------------------------------------

enum mode_what fence_memory_ask(uint64_t address, struct mode_answer *answer)
{
    if (!fence_memory_has(address))
        return MODE_NOT_OURS;
    unsigned section = epoch_enter();
    const struct block *b = (const struct block *)index_find(&blocks, address);
    if (b)
        *answer = (struct mode_answer){.base = b->range.base,
                                       .size = b->range.size,
                                       .mapped = true,
                                       .context = b->context,
                                       .pool = b->pool};
    epoch_leave(section);
    return b ? MODE_BUFFER : MODE_AROUND;
}

uint64_t fence_memory_held(void)
{
    uint64_t held = 0;
    struct context *ctx = context_current();
    lock_take(&lock);
    const struct fence_partition *p =
        ctx && ctx->device >= 0 && ctx->device < CONTEXT_DEVICES ? &partitions[ctx->device] : NULL;
    if (p && p->size)
        held = p->held - p->space.taken;
    lock_give(&lock);
    return held;
}

uint64_t fence_memory_bytes(void)
{
    return atomic_load_explicit(&bytes_held, memory_order_relaxed);
}

struct ending {
    CUcontext context;
    uint64_t base[64];
    unsigned count;
};

static int list_one(struct index_item *item, void *argument)
{
    struct ending *e = argument;
    const struct block *b = (const struct block *)item;
    if (b->context == e->context && e->count < sizeof e->base / sizeof *e->base)
        e->base[e->count++] = item->base;
    return 0;
}

void fence_memory_context_gone(CUcontext context)
{
    struct ending e = {.context = context};
    do {
        e.count = 0;
        unsigned section = epoch_enter();
        index_each(&blocks, list_one, &e);
        epoch_leave(section);
        for (unsigned i = 0; i < e.count; i++) {
            struct block *b = take(e.base[i]);
            lock_take(&lock);
            if (b)
                dispose(b);
            lock_give(&lock);
        }
    } while (e.count);
    lock_take(&lock);
    for (struct block **at = &waiting; *at;) {
        struct block *b = *at;
        if (b->context != context) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        atomic_fetch_sub_explicit(&waits, 1, memory_order_relaxed);
        dispose(b);
    }
    lock_give(&lock);
}
