// SPDX-License-Identifier: MIT
#include "canary/canary_order.h"

#include <assert.h>

#include "base/checked.h"
#include "canary/canary_staging.h"
#include "context/context_copy.h"
#include "core/lock.h"
#include "core/guard.h"

enum {
    READBACKS = CANARY_READBACKS,
    // Most operations in the side stream, which waits for the program's streams. At about 1,000 the driver of
    // an H200 blocks whoever adds one, and the program's stream may be waiting for that thread.
    MOST_SIDE_OPS = 900,
};

// What readbacks of one closed slab share. Under the lock, except `reported`, which belongs to the verifying
// thread.
struct closed_slab {
    unsigned readbacks;
    uint32_t reported;
    uint64_t late_pass;  // see must_wait
};

struct readback {
    CUevent event;     // created once, recorded behind the copy
    uint64_t side_op;  // number of the operation in the side stream; 0: it is in the program's stream
    // Neighbours among the pending readbacks; newer: also the next on the free list.
    struct readback *older, *newer;
    struct closed_slab *closed;  // NULL: its slab is not closed
    enum driver_id call;
    struct canary_snapshot snapshot;
};

// The readbacks of a context. A readback is taken, handed over and given back under the lock; in between it
// belongs to the thread that took it, and then to the verifying thread. Its neighbours, `closed` and the
// snapshot's slab are always under the lock.
//
// Whenever the lock is free:
//
//   pending + free <= high_water <= READBACKS; others below high_water belong to the threads that took them,
//           or are lost because a failed copy may still write to them
//   oldest to newest is one list in both directions; both ends are NULL or neither is
//   closed.readbacks == pending readbacks that point to it
//   for each pending one: slab.pending_reads > 0 and closed == NULL, or slab == NULL and closed != NULL
//   side_done <= side_ops, and side_op <= side_ops for each pending readback
struct readbacks {
    struct readback readback[READBACKS];
    struct closed_slab closed[READBACKS];
    struct readback *oldest, *newest;  // pending, in the order in which they were handed over
    struct readback *free_list;        // linked by `newer`
    unsigned high_water;               // readbacks from this index on have never been used
    uint64_t pass;                     // number of verifying passes so far
    uint64_t side_ops, side_done;      // operations put into the side stream; known to have ended
    _Atomic(CUstream) side_stream;     // NULL: not created yet
};

static struct readbacks all_readbacks[CONTEXT_CONTEXTS];
static struct lock lock = LOCK_INIT(CANARY_ORDER);

void canary_order_after_fork(void)
{
    lock_after_fork(&lock);
}

void canary_order_context_gone(struct context *ctx)
{
    lock_take(&lock);
    struct readbacks *set = &all_readbacks[context_number(ctx)];
    set->oldest = set->newest = set->free_list = NULL;
    set->high_water = 0;
    set->side_ops = set->side_done = 0;
    atomic_store_explicit(&set->side_stream, NULL, memory_order_relaxed);
    for (unsigned i = 0; i < READBACKS; i++) {
        set->readback[i].event = NULL;
        set->closed[i].readbacks = 0;
    }
    lock_give(&lock);
}

static bool readback_valid(const struct readbacks *set, const struct readback *rb)
{
    const struct canary_slab *s = rb->snapshot.slab;
    bool has_place = s && !rb->closed && atomic_load_explicit(&s->pending_reads, memory_order_relaxed);
    bool has_none =
        !s && rb->closed && rb->snapshot.closed_reported == &rb->closed->reported && rb->closed->readbacks;
    return rb >= set->readback && rb < set->readback + set->high_water && rb->side_op <= set->side_ops &&
           (has_place || has_none) && (rb->newer ? rb->newer->older == rb : set->newest == rb);
}

// Requires the lock.
static bool is_valid(const struct readbacks *set)
{
    unsigned count = 0, readbacks = 0, detached = 0;
    if (set->high_water > READBACKS || set->side_done > set->side_ops || !set->oldest != !set->newest ||
        (set->oldest && set->oldest->older))
        return false;
    for (const struct readback *rb = set->oldest; rb; rb = rb->newer) {
        if (!readback_valid(set, rb) || ++count > set->high_water)
            return false;
        detached += rb->closed != NULL;
    }
    for (const struct readback *rb = set->free_list; rb; rb = rb->newer)
        if (++count > set->high_water)
            return false;
    for (unsigned i = 0; i < READBACKS; i++)
        readbacks += set->closed[i].readbacks;
    return readbacks == detached;
}

bool canary_order_valid(const struct context *ctx)
{
    lock_take(&lock);
    bool valid = is_valid(&all_readbacks[context_number(ctx)]);
    lock_give(&lock);
    return valid;
}

bool canary_order_number(struct canary_stream in, uint64_t *number)
{
    const struct driver *d = &guard.real;
    __typeof__(cuStreamGetId) *ask = in.per_thread ? d->cuStreamGetId_ptsz : d->cuStreamGetId;
    unsigned long long id = 0;
    if (!ask || ask(in.stream, &id))
        return false;
    *number = id;
    return true;
}

// Enters the context itself, since the current one may be a green context, which is destroyed before it.
static CUstream make_side_stream(const struct context *ctx)
{
    CUstream stream = NULL;
    bool pushed;
    if (!context_enter(atomic_load_explicit(&ctx->handle, memory_order_relaxed), &pushed))
        return NULL;
    if (guard.real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        stream = NULL;
    context_leave(pushed);
    return stream;
}

static CUstream side_stream_of(const struct context *ctx)
{
    struct readbacks *set = &all_readbacks[context_number(ctx)];
    // The acquire loads and the release exchange pair with each other: a thread sees only a stream that is
    // complete.
    CUstream stream = atomic_load_explicit(&set->side_stream, memory_order_acquire), none = NULL;
    if (stream || !(stream = make_side_stream(ctx)))
        return stream;
    if (atomic_compare_exchange_strong_explicit(&set->side_stream, &none, stream, memory_order_release,
                                                memory_order_acquire))
        return stream;
    if (guard.real.cuStreamDestroy_v2)
        guard.real.cuStreamDestroy_v2(stream);
    return none;
}

// Requires the lock.
static bool side_is_full(const struct readbacks *set)
{
    return set->side_ops - set->side_done >= MOST_SIDE_OPS;
}

bool canary_order_side_is_full(const struct context *ctx)
{
    lock_take(&lock);
    bool full = side_is_full(&all_readbacks[context_number(ctx)]);
    lock_give(&lock);
    return full;
}

// Counts an operation that is about to be put into the side stream.
static void count_side_op(struct readbacks *set)
{
    lock_take(&lock);
    set->side_ops++;
    lock_give(&lock);
}

// Takes a readback. Returns NULL if there is none left, or if on_side and the side stream is full.
static struct readback *take(struct readbacks *set, bool on_side)
{
    lock_take(&lock);
    bool room = !on_side || !side_is_full(set);
    struct readback *rb = room ? set->free_list : NULL;
    if (rb)
        set->free_list = rb->newer;
    else if (room && set->high_water < READBACKS)
        rb = &set->readback[set->high_water++];
    if (rb)
        rb->side_op = on_side ? ++set->side_ops : 0;
    lock_give(&lock);
    return rb;
}

// Requires the lock.
static void put_back(struct readbacks *set, struct readback *rb)
{
    checked_assert(lock_is_held(&lock));
    assert(rb >= set->readback && rb < set->readback + set->high_water);
    rb->newer = set->free_list;
    set->free_list = rb;
}

static void give(struct readbacks *set, struct readback *rb)
{
    lock_take(&lock);
    put_back(set, rb);
    lock_give(&lock);
}

static uint8_t *rows_of(const struct context *ctx, const struct readback *rb)
{
    return canary_staging_readbacks(ctx)[rb - all_readbacks[context_number(ctx)].readback].rows;
}

static CUresult record(CUevent event, struct canary_stream in)
{
    return (in.per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord)(event, in.stream);
}

// Records an event behind all that is in the stream. An event that fails, of a destroyed or another context,
// is destroyed, and created anew next time.
static CUresult record_own(CUevent *event, struct canary_stream in)
{
    CUresult r = *event ? CUDA_SUCCESS : guard.real.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    if (!r)
        r = record(*event, in);
    if (r && *event) {
        guard.real.cuEventDestroy_v2(*event);
        *event = NULL;
    }
    return r;
}

// Enqueues the copy of the rows and the event behind it. *begun: the copy may arrive even if this fails.
// tried: the stream is known to accept events of this context.
static CUresult enqueue(struct readback *rb, const struct canary_place *place, struct canary_stream in,
                        bool tried, bool *begun)
{
    const uint32_t width = canary_verify_width(place->slab, place->size);
    CUresult r = tried ? CUDA_SUCCESS : record_own(&rb->event, in);
    if (!r)
        r = context_copy_rows(in.stream, in.per_thread, place->base - width, place->size + width, width, 2,
                              rows_of(place->slab->ctx, rb));
    *begun = !r;
    return r ? r : record_own(&rb->event, in);
}

// Makes a readback pending; from now on it may be verified.
static void hand_over(struct readbacks *set, struct readback *rb, const struct canary_place *place,
                      enum driver_id call)
{
    struct canary_snapshot snapshot = canary_verify_snapshot(place);
    // Release pairs with the acquire loads of pending_reads.
    atomic_fetch_add_explicit(&place->slab->pending_reads, 1, memory_order_release);
    lock_take(&lock);
    rb->snapshot = snapshot;
    rb->call = call;
    rb->closed = NULL;
    rb->newer = NULL;
    rb->older = set->newest;
    *(set->newest ? &set->newest->newer : &set->oldest) = rb;
    set->newest = rb;
    checked_assert(is_valid(set));
    lock_give(&lock);
}

CUresult canary_order_mark(const struct canary_slab *s, struct canary_stream in)
{
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = record(s->ready, in);
    context_capture_restore(mode);
    return r;
}

// Replaces *in by the side stream, and makes that wait for what the program's stream holds now, by the
// place's event.
static CUresult use_side_stream(const struct canary_slab *s, struct canary_stream *in)
{
    CUstream side = guard.real.cuStreamWaitEvent ? side_stream_of(s->ctx) : NULL;
    CUresult r = side ? canary_order_mark(s, *in) : CUDA_ERROR_OUT_OF_MEMORY;
    *in = (struct canary_stream){side, false};
    return r ? r : guard.real.cuStreamWaitEvent(side, s->ready, 0);
}

CUresult canary_order_read(const struct canary_place *place, struct canary_stream in, bool on_side,
                           enum driver_id call)
{
    struct canary_slab *s = place->slab;
    struct readbacks *set = &all_readbacks[context_number(s->ctx)];
    bool fits =
        canary_staging_readbacks(s->ctx) && canary_verify_width(s, place->size) <= CANARY_READBACK_ROW;
    struct readback *rb = fits ? take(set, on_side) : NULL;
    if (!rb)
        return CUDA_ERROR_NOT_READY;
    CUstreamCaptureMode mode = context_capture_relax();
    bool begun = false;
    CUresult r = on_side ? use_side_stream(s, &in) : CUDA_SUCCESS;
    if (!r)
        r = enqueue(rb, place, in, on_side, &begun);
    context_capture_restore(mode);
    if (!r)
        hand_over(set, rb, place, call);
    else if (!begun)
        give(set, rb);
    return r;
}

CUresult canary_order_side_follow(const struct canary_place *place, struct canary_stream in)
{
    count_side_op(&all_readbacks[context_number(place->slab->ctx)]);
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = use_side_stream(place->slab, &in);
    context_capture_restore(mode);
    return r;
}

CUresult canary_order_side_free(struct context *ctx, CUdeviceptr memory)
{
    count_side_op(&all_readbacks[context_number(ctx)]);
    CUstreamCaptureMode mode = context_capture_relax();
    CUstream stream = side_stream_of(ctx);
    CUresult r = stream ? guard.real.cuMemFreeAsync(memory, stream) : CUDA_ERROR_NOT_READY;
    context_capture_restore(mode);
    return r;
}

void canary_order_side_wait(struct context *ctx)
{
    CUstreamCaptureMode mode = context_capture_relax();
    CUstream stream =
        atomic_load_explicit(&all_readbacks[context_number(ctx)].side_stream, memory_order_acquire);
    if (stream)
        guard.real.cuStreamSynchronize(stream);
    context_capture_restore(mode);
}

// Returns an unused record. There are as many as readbacks, each of which refers to one at most.
static struct closed_slab *new_closed_slab(struct readbacks *set, uint32_t reported)
{
    struct closed_slab *r = set->closed;
    while (r->readbacks)
        r++;
    r->reported = reported;
    r->late_pass = 0;
    return r;
}

void canary_order_forget(struct canary_slab *slab)
{
    struct closed_slab *closed = NULL;
    struct readbacks *set = &all_readbacks[context_number(slab->ctx)];
    if (!atomic_load_explicit(&slab->pending_reads, memory_order_acquire))
        return;
    lock_take(&lock);
    for (struct readback *rb = set->oldest; rb; rb = rb->newer)
        if (rb->snapshot.slab == slab) {
            if (!closed)
                closed = new_closed_slab(set, canary_slot_reported(slab, 0));
            closed->readbacks++;
            rb->closed = closed;
            rb->snapshot.slab = NULL;
            rb->snapshot.closed_reported = &closed->reported;
            // Relaxed: nobody takes a place that is being closed.
            atomic_fetch_sub_explicit(&slab->pending_reads, 1, memory_order_relaxed);
        }
    checked_assert(is_valid(set));
    lock_give(&lock);
}

// Gives a verified readback back; its place no longer waits for it.
static void retire_readback(struct readbacks *set, struct readback *rb)
{
    lock_take(&lock);
    struct canary_slab *s = rb->snapshot.slab;
    // Release pairs with the acquire in canary_cache.c: if no readback is pending, all that was reported is
    // visible.
    if (s)
        atomic_fetch_sub_explicit(&s->pending_reads, 1, memory_order_release);
    assert(!rb->closed || rb->closed->readbacks);
    if (rb->closed)
        rb->closed->readbacks--;
    set->side_done = rb->side_op > set->side_done ? rb->side_op : set->side_done;
    *(rb->older ? &rb->older->newer : &set->oldest) = rb->newer;
    *(rb->newer ? &rb->newer->older : &set->newest) = rb->older;
    put_back(set, rb);
    checked_assert(is_valid(set));
    lock_give(&lock);
}

// Returns the pending readback behind rb, or the oldest if rb == NULL.
static struct readback *next_of(const struct readbacks *set, const struct readback *rb)
{
    lock_take(&lock);
    struct readback *next = rb ? rb->newer : set->oldest;
    lock_give(&lock);
    return next;
}

// Returns whether a readback must wait: if it is late itself, or an older readback of the same place is,
// since the damage it shows may be the older buffer's. Records the pass that found a readback of the place
// late.
static bool must_wait(struct readbacks *set, const struct readback *rb, bool late)
{
    lock_take(&lock);
    uint64_t *pass = rb->snapshot.slab ? &rb->snapshot.slab->late_pass
                     : rb->closed      ? &rb->closed->late_pass
                                       : NULL;
    if (late && pass)
        *pass = set->pass;
    bool wait = late || (pass && *pass == set->pass);
    lock_give(&lock);
    return wait;
}

// Returns whether the copy has not completed. Copies in the side stream complete in order: once one of them
// is late, which *side_late records, so are the others.
static bool is_late(const struct readback *rb, bool *side_late)
{
    bool late = (rb->side_op && *side_late) || guard.real.cuEventQuery(rb->event) != CUDA_SUCCESS;
    *side_late |= rb->side_op && late;
    return late;
}

// Updates side_done from the state of the whole side stream, since operations other than readbacks have no
// event.
static void catch_up(struct readbacks *set)
{
    CUstream side = atomic_load_explicit(&set->side_stream, memory_order_acquire);
    lock_take(&lock);
    uint64_t side_ops = set->side_ops;
    lock_give(&lock);
    if (side && (!guard.real.cuStreamQuery || guard.real.cuStreamQuery(side)))
        return;
    lock_take(&lock);
    set->side_done = side_ops > set->side_done ? side_ops : set->side_done;
    lock_give(&lock);
}

static bool has_work(const struct readbacks *set)
{
    lock_take(&lock);
    bool work = set->oldest || set->side_ops != set->side_done;
    lock_give(&lock);
    return work;
}

// Verifies the completed readbacks. all == false: up to the first late one.
static void verify_readbacks(struct context *ctx, bool all)
{
    struct readbacks *set = &all_readbacks[context_number(ctx)];
    bool side_late = false;
    if (!has_work(set))
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    set->pass++;
    // Visits all that are pending now: a thread that verifies before a free must not miss those it waited
    // for. No other thread removes any.
    for (struct readback *rb = next_of(set, NULL), *next; rb; rb = next) {
        next = next_of(set, rb);
        bool late = is_late(rb, &side_late);
        if (late && !all)
            break;
        if (must_wait(set, rb, late))
            continue;
        lock_take(&lock);
        struct canary_snapshot snapshot = rb->snapshot;
        lock_give(&lock);
        const struct canary_occasion occasion = {
            rb->call, NULL, "found in stream order, just before the buffer was freed", true, true};
        canary_verify_snapshot_rows(&snapshot, rows_of(ctx, rb), &occasion);
        retire_readback(set, rb);
    }
    if (!side_late && all)
        catch_up(set);
    context_capture_restore(mode);
}

void canary_order_verify(struct context *ctx)
{
    verify_readbacks(ctx, true);
}

void canary_order_make_room(struct context *ctx)
{
    verify_readbacks(ctx, false);
}
