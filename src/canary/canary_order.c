// SPDX-License-Identifier: MIT
#include "canary/canary_order.h"

#include <assert.h>

#include "base/checked.h"
#include "canary/canary_bench.h"
#include "context/home_copy.h"
#include "core/lock.h"
#include "core/guard.h"

enum {
    LANDINGS = CANARY_LANDINGS,
    // Operations in the stream of our own, which waits for the program's: with about 1,000 the driver of an H200 makes whoever
    // adds one wait too, and the program's stream may be waiting for him.
    MOST_ASIDE = 900,
};

// What readings of one place have told, that no longer is one. Under the lock, but for `told`, which is the settler's.
struct remains {
    unsigned readings;
    uint32_t told;
    uint64_t late;  // see waits
};

struct landing {
    CUevent event;   // made once, and behind the reading
    uint64_t aside;  // which operation it is in the stream of our own; 0: it is read in the program's
    struct landing *older,
        *newer;  // among those that wait to be looked at; newer: the next of those that nobody has
    struct remains *remains;  // NULL: its place is still there, or had no other reading
    enum driver_id call;
    struct canary_relic relic;
};

// Of a home. A landing is taken, handed over and given back under the lock; in between it is its taker's or
// the settler's, but for its neighbours, remains and the relic's slab, which are under the lock.
//
// Whenever the lock is free:
//
//   waiting + returned <= fresh <= LANDINGS: the others that somebody had are their takers', or lost, where a
//                                            copy into one may come at any time
//   oldest to newest is one list in both directions, empty at both ends or at none
//   remains.readings == waiting landings that point to it
//   of one that waits: its place is there, and slab.unread > 0; or relic.slab == NULL, and it has remains
//   done <= asked, and aside <= asked of every landing that waits
struct field {
    struct landing landing[LANDINGS];
    struct remains remains[LANDINGS];
    struct landing *oldest, *newest;  // that wait, in the order in which they were handed over
    struct landing *returned;         // that somebody had
    unsigned fresh;                   // from there on nobody had them
    uint64_t pass;                    // of the settler, so far
    uint64_t asked, done;     // operations in the stream of our own, and how many are known to have ended
    _Atomic(CUstream) aside;  // that stream; NULL: not made yet
};

static struct field fields[HOME_CONTEXTS];
static struct lock lock = LOCK_INIT(CANARY_ORDER);

void canary_order_after_fork(void)
{
    lock_after_fork(&lock);
}

void canary_order_context_gone(struct home *home)
{
    lock_take(&lock);
    struct field *f = &fields[home_number(home)];
    f->oldest = f->newest = f->returned = NULL;
    f->fresh = 0;
    f->asked = f->done = 0;
    atomic_store_explicit(&f->aside, NULL, memory_order_relaxed);
    for (unsigned i = 0; i < LANDINGS; i++) {
        f->landing[i].event = NULL;
        f->remains[i].readings = 0;
    }
    lock_give(&lock);
}

static bool landing_valid(const struct field *f, const struct landing *l)
{
    const struct canary_slab *s = l->relic.slab;
    bool has_place = s && !l->remains && atomic_load_explicit(&s->unread, memory_order_relaxed);
    bool has_none = !s && l->remains && l->relic.remains == &l->remains->told && l->remains->readings;
    return l >= f->landing && l < f->landing + f->fresh && l->aside <= f->asked && (has_place || has_none) &&
           (l->newer ? l->newer->older == l : f->newest == l);
}

// Under the lock.
static bool is_valid(const struct field *f)
{
    unsigned count = 0, readings = 0, told = 0;
    if (f->fresh > LANDINGS || f->done > f->asked || !f->oldest != !f->newest ||
        (f->oldest && f->oldest->older))
        return false;
    for (const struct landing *l = f->oldest; l; l = l->newer) {
        if (!landing_valid(f, l) || ++count > f->fresh)
            return false;
        told += l->remains != NULL;
    }
    for (const struct landing *l = f->returned; l; l = l->newer)
        if (++count > f->fresh)
            return false;
    for (unsigned i = 0; i < LANDINGS; i++)
        readings += f->remains[i].readings;
    return readings == told;
}

bool canary_order_valid(const struct home *home)
{
    lock_take(&lock);
    bool valid = is_valid(&fields[home_number(home)]);
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

// The context that is current may be a green one, which goes before the home does.
static CUstream make_aside(const struct home *home)
{
    CUstream stream = NULL;
    bool pushed;
    if (!home_enter(atomic_load_explicit(&home->context, memory_order_relaxed), &pushed))
        return NULL;
    if (guard.real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        stream = NULL;
    home_leave(pushed);
    return stream;
}

static CUstream aside_of(const struct home *home)
{
    struct field *f = &fields[home_number(home)];
    // Acquire and release pair with each other: a thread uses only a stream that is made.
    CUstream stream = atomic_load_explicit(&f->aside, memory_order_acquire), none = NULL;
    if (stream || !(stream = make_aside(home)))
        return stream;
    if (atomic_compare_exchange_strong_explicit(&f->aside, &none, stream, memory_order_release,
                                                memory_order_acquire))
        return stream;
    if (guard.real.cuStreamDestroy_v2)
        guard.real.cuStreamDestroy_v2(stream);
    return none;
}

// Under the lock.
static bool is_crowded(const struct field *f)
{
    return f->asked - f->done >= MOST_ASIDE;
}

bool canary_order_is_crowded(const struct home *home)
{
    lock_take(&lock);
    bool crowded = is_crowded(&fields[home_number(home)]);
    lock_give(&lock);
    return crowded;
}

// An operation is about to go into the stream of our own.
static void note_aside(struct field *f)
{
    lock_take(&lock);
    f->asked++;
    lock_give(&lock);
}

// NULL: there is no room.
static struct landing *take(struct field *f, bool aside)
{
    lock_take(&lock);
    bool room = !aside || !is_crowded(f);
    struct landing *l = room ? f->returned : NULL;
    if (l)
        f->returned = l->newer;
    else if (room && f->fresh < LANDINGS)
        l = &f->landing[f->fresh++];
    if (l)
        l->aside = aside ? ++f->asked : 0;
    lock_give(&lock);
    return l;
}

// Under the lock.
static void put_back(struct field *f, struct landing *l)
{
    checked_assert(lock_is_held(&lock));
    assert(l >= f->landing && l < f->landing + f->fresh);
    l->newer = f->returned;
    f->returned = l;
}

static void give(struct field *f, struct landing *l)
{
    lock_take(&lock);
    put_back(f, l);
    lock_give(&lock);
}

static uint8_t *rows_of(const struct home *home, const struct landing *l)
{
    return canary_bench_landings(home)[l - fields[home_number(home)].landing].rows;
}

static CUresult record(CUevent event, struct canary_stream in)
{
    return (in.per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord)(event, in.stream);
}

// An event that the stream takes, behind all that is in it. One of a context that is gone, or another's, is made anew next time.
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

// The rows into a landing, in the order of a stream, and an event behind it. *begun: they may come even where that fails. tried:
// the stream is known to take events of this context.
static CUresult enqueue(struct landing *l, const struct canary_place *place, struct canary_stream in,
                        bool tried, bool *begun)
{
    const uint32_t width = canary_look_width(place->slab, place->size);
    CUresult r = tried ? CUDA_SUCCESS : record_own(&l->event, in);
    if (!r)
        r = home_copy_rows(in.stream, in.per_thread, place->base - width, place->size + width, width, 2,
                           rows_of(place->slab->home, l));
    *begun = !r;
    return r ? r : record_own(&l->event, in);
}

// It is read, or will be: from now on it may be looked at.
static void hand_over(struct field *f, struct landing *l, const struct canary_place *place,
                      enum driver_id call)
{
    struct canary_relic relic = canary_look_relic(place);
    // Release pairs with the acquire of who finds that nothing is unread, in canary_order_settle's last step.
    atomic_fetch_add_explicit(&place->slab->unread, 1, memory_order_release);
    lock_take(&lock);
    l->relic = relic;
    l->call = call;
    l->remains = NULL;
    l->newer = NULL;
    l->older = f->newest;
    *(f->newest ? &f->newest->newer : &f->oldest) = l;
    f->newest = l;
    checked_assert(is_valid(f));
    lock_give(&lock);
}

CUresult canary_order_mark(const struct canary_slab *s, struct canary_stream in)
{
    CUstreamCaptureMode mode = home_calm();
    CUresult r = record(s->ready, in);
    home_stir(mode);
    return r;
}

// The stream to read in is ours from here on, and waits until the program's has come so far. The place's event is used for it.
static CUresult step_aside(const struct canary_slab *s, struct canary_stream *in)
{
    CUstream aside = guard.real.cuStreamWaitEvent ? aside_of(s->home) : NULL;
    CUresult r = aside ? canary_order_mark(s, *in) : CUDA_ERROR_OUT_OF_MEMORY;
    *in = (struct canary_stream){aside, false};
    return r ? r : guard.real.cuStreamWaitEvent(aside, s->ready, 0);
}

CUresult canary_order_read(const struct canary_place *place, struct canary_stream in, bool aside,
                           enum driver_id call)
{
    struct canary_slab *s = place->slab;
    struct field *f = &fields[home_number(s->home)];
    bool fits = canary_bench_landings(s->home) && canary_look_width(s, place->size) <= CANARY_LANDING;
    struct landing *l = fits ? take(f, aside) : NULL;
    if (!l)
        return CUDA_ERROR_NOT_READY;
    CUstreamCaptureMode mode = home_calm();
    bool begun = false;
    CUresult r = aside ? step_aside(s, &in) : CUDA_SUCCESS;
    if (!r)
        r = enqueue(l, place, in, aside, &begun);
    home_stir(mode);
    if (!r)
        hand_over(f, l, place, call);
    else if (!begun)
        give(f, l);
    return r;
}

CUresult canary_order_follow(const struct canary_place *place, struct canary_stream in)
{
    note_aside(&fields[home_number(place->slab->home)]);
    CUstreamCaptureMode mode = home_calm();
    CUresult r = step_aside(place->slab, &in);
    home_stir(mode);
    return r;
}

CUresult canary_order_free_aside(struct home *home, CUdeviceptr memory)
{
    note_aside(&fields[home_number(home)]);
    CUstreamCaptureMode mode = home_calm();
    CUstream stream = aside_of(home);
    CUresult r = stream ? guard.real.cuMemFreeAsync(memory, stream) : CUDA_ERROR_NOT_READY;
    home_stir(mode);
    return r;
}

void canary_order_wait_aside(struct home *home)
{
    CUstreamCaptureMode mode = home_calm();
    CUstream stream = atomic_load_explicit(&fields[home_number(home)].aside, memory_order_acquire);
    if (stream)
        guard.real.cuStreamSynchronize(stream);
    home_stir(mode);
}

// There are as many as landings, each of which has one at most.
static struct remains *new_remains(struct field *f, uint32_t told)
{
    struct remains *r = f->remains;
    while (r->readings)
        r++;
    r->told = told;
    r->late = 0;
    return r;
}

void canary_order_forget(struct canary_slab *slab)
{
    struct remains *remains = NULL;
    struct field *f = &fields[home_number(slab->home)];
    if (!atomic_load_explicit(&slab->unread, memory_order_acquire))
        return;
    lock_take(&lock);
    for (struct landing *l = f->oldest; l; l = l->newer)
        if (l->relic.slab == slab) {
            if (!remains)
                remains = new_remains(f, canary_slot_told(slab, 0));
            remains->readings++;
            l->remains = remains;
            l->relic.slab = NULL;
            l->relic.remains = &remains->told;
            // Relaxed: nobody takes a place because of it that is being forgotten.
            atomic_fetch_sub_explicit(&slab->unread, 1, memory_order_relaxed);
        }
    checked_assert(is_valid(f));
    lock_give(&lock);
}

// The landing is looked at no more; nor is its place, if that is kept, held up by it.
static void settled(struct field *f, struct landing *l)
{
    lock_take(&lock);
    struct canary_slab *s = l->relic.slab;
    // Release: who finds that nothing is unread sees what was told.
    if (s)
        atomic_fetch_sub_explicit(&s->unread, 1, memory_order_release);
    assert(!l->remains || l->remains->readings);
    if (l->remains)
        l->remains->readings--;
    f->done = l->aside > f->done ? l->aside : f->done;
    *(l->older ? &l->older->newer : &f->oldest) = l->newer;
    *(l->newer ? &l->newer->older : &f->newest) = l->older;
    put_back(f, l);
    checked_assert(is_valid(f));
    lock_give(&lock);
}

// The oldest if l is NULL.
static struct landing *next_of(const struct field *f, const struct landing *l)
{
    lock_take(&lock);
    struct landing *next = l ? l->newer : f->oldest;
    lock_give(&lock);
    return next;
}

// Of a place of which an older reading is not there yet, those that follow wait for it: what they found may be the older
// buffer's. late: this one is such. Whether it has to wait.
static bool waits(struct field *f, const struct landing *l, bool late)
{
    lock_take(&lock);
    uint64_t *pass = l->relic.slab ? &l->relic.slab->late : l->remains ? &l->remains->late : NULL;
    if (late && pass)
        *pass = f->pass;
    bool wait = late || (pass && *pass == f->pass);
    lock_give(&lock);
    return wait;
}

// Whether its reading is still to come. Those in the stream of our own come one after the other.
static bool is_late(const struct landing *l, bool *aside)
{
    bool late = (l->aside && *aside) || guard.real.cuEventQuery(l->event) != CUDA_SUCCESS;
    *aside |= l->aside && late;
    return late;
}

// What else is in the stream of our own has no event: whether all of that has ended.
static void catch_up(struct field *f)
{
    CUstream aside = atomic_load_explicit(&f->aside, memory_order_acquire);
    lock_take(&lock);
    uint64_t asked = f->asked;
    lock_give(&lock);
    if (aside && (!guard.real.cuStreamQuery || guard.real.cuStreamQuery(aside)))
        return;
    lock_take(&lock);
    f->done = asked > f->done ? asked : f->done;
    lock_give(&lock);
}

static bool has_work(const struct field *f)
{
    lock_take(&lock);
    bool work = f->oldest || f->asked != f->done;
    lock_give(&lock);
    return work;
}

// all: otherwise up to the first that is late.
static void settle(struct home *home, bool all)
{
    struct field *f = &fields[home_number(home)];
    bool aside = false;
    if (!has_work(f))
        return;
    CUstreamCaptureMode mode = home_calm();
    f->pass++;
    // All that were there: who settles before a free must not miss what he waited for. Nobody else takes any away.
    for (struct landing *l = next_of(f, NULL), *next; l; l = next) {
        next = next_of(f, l);
        bool late = is_late(l, &aside);
        if (late && !all)
            break;
        if (waits(f, l, late))
            continue;
        lock_take(&lock);
        struct canary_relic relic = l->relic;
        lock_give(&lock);
        const struct canary_occasion occasion = {
            l->call, NULL, "found in stream order, just before the buffer was freed", true, true};
        canary_look_relic_rows(&relic, rows_of(home, l), &occasion);
        settled(f, l);
    }
    if (!aside && all)
        catch_up(f);
    home_stir(mode);
}

void canary_order_settle(struct home *home)
{
    settle(home, true);
}

void canary_order_make_room(struct home *home)
{
    settle(home, false);
}
