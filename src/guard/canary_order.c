// SPDX-License-Identifier: MIT
#include "guard/canary_order.h"

#include <pthread.h>

#include "guard/guard.h"

enum { LANDINGS = CANARY_LANDINGS };

struct landing {
    bool used;
    CUevent event;
    enum driver_id call;
    struct canary_relic relic;
};

// Of a home. A landing is taken and given back under the lock; in between it is its taker's or the settler's.
struct field {
    CUevent events[LANDINGS];  // made once each
    struct landing landing[LANDINGS];
    unsigned next;
    _Atomic unsigned waiting;  // relaxed: whether it is worth to look
};

static struct field fields[HOME_CONTEXTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void canary_order_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

void canary_order_context_gone(struct home *home)
{
    pthread_mutex_lock(&lock);
    struct field *f = &fields[home_number(home)];
    f->next = 0;
    atomic_store_explicit(&f->waiting, 0, memory_order_relaxed);
    for (unsigned i = 0; i < LANDINGS; i++) {
        f->events[i] = NULL;
        f->landing[i].used = false;
    }
    pthread_mutex_unlock(&lock);
}

static int take(struct field *f)
{
    int found = -1;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < LANDINGS && found < 0; i++) {
        unsigned k = (f->next + i) % LANDINGS;
        if (f->landing[k].used)
            continue;
        found = (int)k;
        f->landing[k].used = true;
        f->landing[k].event = NULL;  // not to be looked at yet
        f->next = k + 1;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void give(struct field *f, int k)
{
    pthread_mutex_lock(&lock);
    f->landing[k].used = false;
    pthread_mutex_unlock(&lock);
}

CUresult canary_order_read(const struct canary_place *place, CUstream stream, bool per_thread,
                           enum driver_id call)
{
    struct field *f = &fields[home_number(place->slab->home)];
    __typeof__(cuEventRecord) *record = per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord;
    struct canary_landing *landing = canary_scan_landings(place->slab->home);
    int k = landing ? take(f) : -1;
    if (k < 0)
        return CUDA_ERROR_NOT_READY;
    const uint32_t width = canary_scan_width(place);
    CUstreamCaptureMode mode = home_calm();
    CUresult r =
        f->events[k] ? CUDA_SUCCESS : guard.real.cuEventCreate(&f->events[k], CU_EVENT_DISABLE_TIMING);
    if (!r)
        r = home_copy_rows(stream, per_thread, place->base - width, place->size + width, width, 2,
                           landing[k].rows);
    if (!r)
        r = record(f->events[k], stream);
    home_stir(mode);
    if (r) {
        give(f, k);
        return r;
    }
    struct canary_relic relic = canary_scan_relic(place);
    pthread_mutex_lock(&lock);
    f->landing[k].relic = relic;
    f->landing[k].call = call;
    f->landing[k].event = f->events[k];
    pthread_mutex_unlock(&lock);
    atomic_fetch_add_explicit(&f->waiting, 1, memory_order_relaxed);
    return CUDA_SUCCESS;
}

void canary_order_settle(struct home *home)
{
    struct field *f = &fields[home_number(home)];
    const struct canary_landing *landing = canary_scan_landings(home);
    if (!landing || !atomic_load_explicit(&f->waiting, memory_order_relaxed))
        return;
    for (int k = 0; k < LANDINGS; k++) {
        pthread_mutex_lock(&lock);
        CUevent event = f->landing[k].used ? f->landing[k].event : NULL;
        pthread_mutex_unlock(&lock);
        if (!event || guard.real.cuEventQuery(event))
            continue;
        const struct canary_occasion occasion = {
            f->landing[k].call, NULL, "found in the order of the stream, just before the buffer was freed",
            true, true};
        canary_scan_relic_rows(&f->landing[k].relic, landing[k].rows, &occasion);
        atomic_fetch_sub_explicit(&f->waiting, 1, memory_order_relaxed);
        give(f, k);
    }
}
