// SPDX-License-Identifier: MIT
#include "canary/canary_verify.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "track/guard_report.h"
#include "launch/launch_ring.h"
#include "context/kernel_filter.h"

enum {
    KERNELS = 6,  // that a report names at most
    NOTE = 2000,
};

// Kernels up to this number had ended when the last clean scan of a context began: of any scan, and of those
// that verify everything. Relaxed: only reports use it.
struct clean {
    _Atomic uint64_t any, all;
};

static struct clean cleans[CONTEXT_CONTEXTS];
_Atomic uint64_t canary_verify_report_ns;

void canary_verify_clean(const struct context *ctx, uint64_t ended, bool all)
{
    struct clean *c = &cleans[context_number(ctx)];
    atomic_store_explicit(&c->any, ended, memory_order_relaxed);
    if (all)
        atomic_store_explicit(&c->all, ended, memory_order_relaxed);
}

// What not every scan verifies was clean at the last clean scan that verified everything.
static uint64_t clean_of(const struct context *ctx, bool all)
{
    const struct clean *c = &cleans[context_number(ctx)];
    return atomic_load_explicit(all ? &c->all : &c->any, memory_order_relaxed);
}

uint64_t canary_verify_clean_so_far(const struct context *ctx)
{
    return clean_of(ctx, true);
}

void canary_verify_context_gone(const struct context *ctx)
{
    cleans[context_number(ctx)] = (struct clean){0};
}

// Returns how many kernels there are that may have done it.
static unsigned add_kernels(char text[NOTE], const char *note, uint64_t since, const char *names[KERNELS])
{
    unsigned n = launch_ring_since(since, names, KERNELS);
    launch_ring_print(text, NOTE, (size_t)snprintf(text, NOTE, "%s", note),
                      "; kernels that may have done it, latest first:", names, n);
    return n;
}

// A side of a buffer that differs from what was written.
struct damage {
    uint64_t buffer;
    uint64_t base;  // of the canary, or of a freed buffer, into which nobody may write any more
    const uint8_t *now, *made;
    uint32_t count;
    const struct track_copy *block;  // NULL: look it up
    uint64_t clean;                  // kernels up to this one cannot have done it
};

static uint64_t clean_for(const struct canary_slab *s, const struct canary_buffer *b,
                          const struct canary_occasion *o)
{
    return b->withdrawn ? b->clean : clean_of(s->ctx, o->all);
}

static void report(const struct damage *d, const struct canary_occasion *o)
{
    uint8_t touched[(CANARY_TAIL_MOST + 7) / 8];
    uint32_t first = 0, last = 0;
    bool tail = d->base > d->buffer;
    if (!canary_bytes_compare(d->now, d->made, d->count, touched, &first, &last))
        return;
    char text[NOTE];
    const char *names[KERNELS];
    unsigned suspects = add_kernels(text, o->note, d->clean, names);
    if (!kernel_filter_any(names, suspects)) {
        guard_count(GUARD_ERRORS_UNWANTED);
        return;
    }
    bool inside = d->base == d->buffer;
    struct guard_finding f = {
        .type = inside ? REPORT_USE_AFTER_FREE
                : tail ? REPORT_HEAP_OVERFLOW
                       : REPORT_HEAP_UNDERFLOW,
        .call = o->call < DRIVER_CALLS ? o->call : 0,
        .call_name = o->call_name,
        .in_kernel = o->call == DRIVER_CALLS && !o->call_name,
        .stackless = o->ours,

        .address =
            d->base + (tail || inside ? first : canary_bytes_run(touched, last)),  // nearest to the buffer

        .suspects = names,
        .nsuspects = suspects,
        .note = text,
        .corrupted = {.base = d->base, .count = d->count, .bytes = d->now, .touched = touched},
    };
    unsigned section = epoch_enter();
    struct timespec from, to;
    struct track_block *t = d->block ? NULL : track_live(d->buffer);
    bool freed = !t;
    if (d->block)
        f.buffers[f.nbuffers++] = *d->block;
    else if (t || (t = track_freed(d->buffer)))
        f.buffers[f.nbuffers++] = track_copy(t, freed);
    epoch_leave(section);
    clock_gettime(CLOCK_MONOTONIC, &from);
    guard_report_finding(&f);
    clock_gettime(CLOCK_MONOTONIC, &to);
    // This includes reports of frees, in any thread: it is subtracted from the duration of scans, and a
    // little too much does no harm. Relaxed.
    uint64_t took = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u + (uint64_t)(to.tv_nsec - from.tv_nsec);
    atomic_fetch_add_explicit(&canary_verify_report_ns, took, memory_order_relaxed);
}

bool canary_verify_head(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                        const uint8_t *now, const struct canary_occasion *o)
{
    uint8_t made[CANARY_HEAD];
    uint64_t base = canary_slab_base(s, number);
    canary_bytes_head(&b->seed, canary_slab_head_number(s, b->size), made);
    if (memcmp(now, made, CANARY_HEAD) == 0)
        return false;
    if (!canary_slot_mark_reported(s, number, b->reported, CANARY_HEAD_SIDE))
        return false;
    report(&(struct damage){base, base - CANARY_HEAD, now, made, CANARY_HEAD, NULL, clean_for(s, b, o)}, o);
    return true;
}

bool canary_verify_tail(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                        const uint8_t *now, uint32_t seen, const struct canary_occasion *o)
{
    uint8_t made[CANARY_TAIL_MOST];
    uint32_t count = canary_slab_tail(s, b->size);
    uint64_t base = canary_slab_base(s, number);
    count = seen < count ? seen : count;
    uint32_t phase = canary_slab_phase(s, b->size);
    if (canary_bytes_slot_same(&b->seed, phase, now, count) == count)
        return false;
    if (!canary_slot_mark_reported(s, number, b->reported, CANARY_TAIL_SIDE))
        return false;
    canary_bytes_slot(&b->seed, phase, made, count);
    report(&(struct damage){base, base + b->size, now, made, count, NULL, clean_for(s, b, o)}, o);
    return true;
}

bool canary_verify_behind(struct canary_slab *s, const struct canary_buffer *b, const uint8_t *now,
                          const uint8_t *made, uint32_t count, const struct canary_occasion *o)
{
    if (memcmp(now, made, count) == 0)
        return false;
    if (!canary_slot_mark_reported(s, 0, b->reported, CANARY_TAIL_SIDE))
        return false;
    report(&(struct damage){s->base, (uintptr_t)now, now, made, count, NULL, clean_for(s, b, o)}, o);
    return true;
}

bool canary_verify_inside(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                          const uint8_t *now, uint32_t count, const struct canary_occasion *o)
{
    struct canary_fingerprint *p = &s->fingerprints[number];
    uint64_t base = canary_slab_base(s, number);
    bool found = p->taken && p->seq == b->seq && memcmp(p->bytes, now, count) != 0 &&
                 canary_slot_mark_reported(s, number, b->reported, CANARY_INSIDE);
    if (found)
        report(&(struct damage){base, base, now, p->bytes, count, NULL, clean_of(s->ctx, true)}, o);
    p->taken = true;
    p->seq = b->seq;
    memcpy(p->bytes, now, count);
    return found;
}

// Width of a row that holds a head or a tail.
static uint32_t width_of(uint32_t tail)
{
    return tail < CANARY_HEAD ? CANARY_HEAD : tail;
}

uint32_t canary_verify_width(const struct canary_slab *s, uint64_t size)
{
    return width_of(canary_slab_tail(s, size));
}

struct canary_snapshot canary_verify_snapshot(const struct canary_place *place)
{
    struct canary_snapshot snapshot = {
        .slab = place->slab,
        .base = place->base,
        .size = place->size,
        .tail = canary_slab_tail(place->slab, place->size),
        .seed = canary_slab_seed(place),
        .reported = canary_slot_reported(place->slab, place->number),
        .clean = place->clean,
    };
    unsigned section = epoch_enter();
    struct track_block *t = track_freed(place->base);
    snapshot.known = t;
    if (t)
        snapshot.block = track_copy(t, true);
    epoch_leave(section);
    return snapshot;
}

// Returns whether a side has not been reported yet, and marks it. In a place that is kept the next buffer has
// the same canaries, and must not be blamed for inherited damage.
static bool is_news(const struct canary_snapshot *snapshot, uint32_t side)
{
    if (snapshot->reported & side)
        return false;
    if (snapshot->slab &&
        !canary_slot_mark_reported(snapshot->slab, 0, canary_slot_report_state(snapshot->slab, 0), side))
        return false;
    if (snapshot->closed_reported && *snapshot->closed_reported & side)
        return false;
    if (snapshot->closed_reported)
        *snapshot->closed_reported |= side;
    return true;
}

void canary_verify_snapshot_rows(const struct canary_snapshot *snapshot, const uint8_t *rows,
                                 const struct canary_occasion *occasion)
{
    const uint8_t *head = rows + width_of(snapshot->tail) - CANARY_HEAD,
                  *tail = rows + width_of(snapshot->tail);
    uint8_t made[CANARY_TAIL_MOST];
    const struct track_copy *block = snapshot->known ? &snapshot->block : NULL;
    uint64_t base = snapshot->base;
    canary_bytes_head(&snapshot->seed, snapshot->size, made);
    if (memcmp(head, made, CANARY_HEAD) != 0 && is_news(snapshot, CANARY_HEAD_SIDE))
        report(&(struct damage){base, base - CANARY_HEAD, head, made, CANARY_HEAD, block, snapshot->clean},
               occasion);
    canary_bytes_tail(&snapshot->seed, made, snapshot->tail);
    if (memcmp(tail, made, snapshot->tail) != 0 && is_news(snapshot, CANARY_TAIL_SIDE))
        report(
            &(struct damage){base, base + snapshot->size, tail, made, snapshot->tail, block, snapshot->clean},
            occasion);
}
