// SPDX-License-Identifier: MIT
#include "canary/canary_look.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "track/guard_report.h"
#include "launch/launch_ring.h"

enum {
    KERNELS = 6,  // that a report names
    NOTE = 2000,
};

// Kernels up to that one had ended when the last scan of a home began that found nothing, of any kind and of those that look
// at all. Relaxed: for what reports name.
struct clean {
    _Atomic uint64_t any, all;
};

static struct clean cleans[HOME_CONTEXTS];
_Atomic uint64_t canary_look_told;

void canary_look_clean(const struct home *home, uint64_t ended, bool all)
{
    struct clean *c = &cleans[home_number(home)];
    atomic_store_explicit(&c->any, ended, memory_order_relaxed);
    if (all)
        atomic_store_explicit(&c->all, ended, memory_order_relaxed);
}

// A buffer or a byte that not every scan looks at was clean when one last looked at all.
static uint64_t clean_of(const struct home *home, bool all)
{
    const struct clean *c = &cleans[home_number(home)];
    return atomic_load_explicit(all ? &c->all : &c->any, memory_order_relaxed);
}

uint64_t canary_look_clean_so_far(const struct home *home)
{
    return clean_of(home, true);
}

void canary_look_context_gone(const struct home *home)
{
    cleans[home_number(home)] = (struct clean){0};
}

static void add_kernels(char text[NOTE], const char *note, uint64_t since)
{
    const char *names[KERNELS];
    unsigned n = launch_ring_since(since, names, KERNELS);
    launch_ring_print(text, NOTE, (size_t)snprintf(text, NOTE, "%s", note),
                      "; kernels that may have done it, latest first:", names, n);
}

// A side of a buffer that is not as it was made.
struct damage {
    uint64_t buffer,
        base;  // base: of the canary, or of the buffer, where nobody may write into that any more
    const uint8_t *now, *made;
    uint32_t count;
    const struct track_copy *block;  // NULL: what the books know now
    uint64_t clean;                  // kernels up to that one cannot have done it
};

static uint64_t clean_for(const struct canary_slab *s, const struct canary_buffer *b,
                          const struct canary_occasion *o)
{
    return b->withdrawn ? b->clean : clean_of(s->home, o->all);
}

static void report(const struct damage *d, const struct canary_occasion *o)
{
    uint8_t touched[(CANARY_TAIL_MOST + 7) / 8];
    uint32_t first = 0, last = 0;
    bool tail = d->base > d->buffer;
    if (!canary_bytes_compare(d->now, d->made, d->count, touched, &first, &last))
        return;
    char text[NOTE];
    add_kernels(text, o->note, d->clean);
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
    // Of frees too, in any thread: it is taken off what a scan took, and a little too much does no harm. Relaxed.
    uint64_t took = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u + (uint64_t)(to.tv_nsec - from.tv_nsec);
    atomic_fetch_add_explicit(&canary_look_told, took, memory_order_relaxed);
}

bool canary_look_head(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                      const uint8_t *now, const struct canary_occasion *o)
{
    uint8_t made[CANARY_HEAD];
    uint64_t base = canary_slab_base(s, number);
    canary_bytes_head(&b->seed, canary_slab_hidden(s, b->size), made);
    if (memcmp(now, made, CANARY_HEAD) == 0)
        return false;
    if (!canary_slot_tell(s, number, b->told, CANARY_HEAD_SIDE))
        return false;
    report(&(struct damage){base, base - CANARY_HEAD, now, made, CANARY_HEAD, NULL, clean_for(s, b, o)}, o);
    return true;
}

bool canary_look_tail(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                      const uint8_t *now, uint32_t seen, const struct canary_occasion *o)
{
    uint8_t made[CANARY_TAIL_MOST];
    uint32_t count = canary_slab_tail(s, b->size);
    uint64_t base = canary_slab_base(s, number);
    count = seen < count ? seen : count;
    uint32_t phase = canary_slab_phase(s, b->size);
    if (canary_bytes_slot_same(&b->seed, phase, now, count) == count)
        return false;
    if (!canary_slot_tell(s, number, b->told, CANARY_TAIL_SIDE))
        return false;
    canary_bytes_slot(&b->seed, phase, made, count);
    report(&(struct damage){base, base + b->size, now, made, count, NULL, clean_for(s, b, o)}, o);
    return true;
}

bool canary_look_behind(struct canary_slab *s, const struct canary_buffer *b, const uint8_t *now,
                        const uint8_t *made, uint32_t count, const struct canary_occasion *o)
{
    if (memcmp(now, made, count) == 0)
        return false;
    if (!canary_slot_tell(s, 0, b->told, CANARY_TAIL_SIDE))
        return false;
    report(&(struct damage){s->base, (uintptr_t)now, now, made, count, NULL, clean_for(s, b, o)}, o);
    return true;
}

bool canary_look_inside(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                        const uint8_t *now, uint32_t count, const struct canary_occasion *o)
{
    struct canary_print *p = &s->prints[number];
    uint64_t base = canary_slab_base(s, number);
    bool found = p->taken && p->turn == b->turn && memcmp(p->bytes, now, count) != 0 &&
                 canary_slot_tell(s, number, b->told, CANARY_INSIDE);
    if (found)
        report(&(struct damage){base, base, now, p->bytes, count, NULL, clean_of(s->home, true)}, o);
    p->taken = true;
    p->turn = b->turn;
    memcpy(p->bytes, now, count);
    return found;
}

// Of a row that holds a head or a tail.
static uint32_t width_of(uint32_t tail)
{
    return tail < CANARY_HEAD ? CANARY_HEAD : tail;
}

uint32_t canary_look_width(const struct canary_slab *s, uint64_t size)
{
    return width_of(canary_slab_tail(s, size));
}

struct canary_relic canary_look_relic(const struct canary_place *place)
{
    struct canary_relic relic = {
        .slab = place->slab,
        .base = place->base,
        .size = place->size,
        .tail = canary_slab_tail(place->slab, place->size),
        .seed = canary_slab_seed(place),
        .told = canary_slot_told(place->slab, place->number),
        .clean = place->clean,
    };
    unsigned section = epoch_enter();
    struct track_block *t = track_freed(place->base);
    relic.known = t;
    if (t)
        relic.block = track_copy(t, true);
    epoch_leave(section);
    return relic;
}

// Of a place that is kept, the next buffer has the same canaries: it is not to be told of what it got.
static bool is_news(const struct canary_relic *relic, uint32_t side)
{
    if (relic->told & side)
        return false;
    if (relic->slab && !canary_slot_tell(relic->slab, 0, canary_slot_telling(relic->slab, 0), side))
        return false;
    if (relic->remains && *relic->remains & side)
        return false;
    if (relic->remains)
        *relic->remains |= side;
    return true;
}

void canary_look_relic_rows(const struct canary_relic *relic, const uint8_t *rows,
                            const struct canary_occasion *occasion)
{
    const uint8_t *head = rows + width_of(relic->tail) - CANARY_HEAD, *tail = rows + width_of(relic->tail);
    uint8_t made[CANARY_TAIL_MOST];
    const struct track_copy *block = relic->known ? &relic->block : NULL;
    uint64_t base = relic->base;
    canary_bytes_head(&relic->seed, relic->size, made);
    if (memcmp(head, made, CANARY_HEAD) != 0 && is_news(relic, CANARY_HEAD_SIDE))
        report(&(struct damage){base, base - CANARY_HEAD, head, made, CANARY_HEAD, block, relic->clean},
               occasion);
    canary_bytes_tail(&relic->seed, made, relic->tail);
    if (memcmp(tail, made, relic->tail) != 0 && is_news(relic, CANARY_TAIL_SIDE))
        report(&(struct damage){base, base + relic->size, tail, made, relic->tail, block, relic->clean},
               occasion);
}
