// SPDX-License-Identifier: MIT
// What is written to a shadow when blocks come and go.
#include <string.h>

#include "context/context_copy.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "kcheck/kcheck_shadow.h"
#include "pages/pages_map.h"
#include "shadow/shadow_device.h"
#include "shadow/shadow_pool.h"
#include "shadow/shadow_room.h"
#include "track/track.h"

enum { SMALL = 4096 };  // bytes of the shadow that are copied rather than filled

static CUdeviceptr written_at(const struct shadow_device *d, uint64_t byte)
{
    return d->write + (uint64_t)(d->slots[byte / SHADOW_PAGE] - 1) * SHADOW_PAGE + byte % SHADOW_PAGE;
}

static CUresult fill_part(struct context *ctx, CUdeviceptr to, uint8_t byte, uint64_t count,
                          const struct check_shadow_change *c)
{
    const struct driver *real = &guard.real;
    char bytes[SMALL];
    if (c->ordered)
        return (c->per_thread ? real->cuMemsetD8Async_ptsz : real->cuMemsetD8Async)(to, byte, count,
                                                                                    c->stream);
    if (count > SMALL)
        return context_fill(ctx, to, byte, count);
    memset(bytes, byte, count);
    return context_write(ctx, &(struct context_copy){to, bytes, (uint32_t)count}, 1);
}

// Sets bytes [first, end) of the shadow, whose pages are real.
static CUresult fill(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t end, uint8_t byte,
                     const struct check_shadow_change *c)
{
    CUresult r = CUDA_SUCCESS;
    while (first < end && !r) {
        uint64_t left = SHADOW_PAGE - first % SHADOW_PAGE, now = end - first < left ? end - first : left;
        r = fill_part(ctx, written_at(d, first), byte, now, c);
        first += now;
    }
    return r;
}

// Allows bytes [first, last) of the shadow, and sets that at `last`: by one copy where they are few.
static CUresult allow_until(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t last,
                            uint8_t byte, const struct check_shadow_change *c)
{
    char bytes[SMALL] = {0};
    uint64_t count = last - first + 1;
    if (count <= SMALL && first / SHADOW_PAGE == last / SHADOW_PAGE) {
        bytes[last - first] = (char)byte;
        return context_write(ctx, &(struct context_copy){written_at(d, first), bytes, (uint32_t)count}, 1);
    }
    CUresult r = fill(d, ctx, first, last, 0, c);
    return r ? r : fill(d, ctx, last, last + 1, byte, c);
}

// A buffer that --mode=pages has placed starts at a multiple of a granule, and no other one is in its last.
static CUresult change_placed(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c, bool *can)
{
    uint64_t rest = c->size & (((uint64_t)1 << d->shift) - 1);
    uint64_t first = c->base >> d->shift, last = (c->base + c->size - 1) >> d->shift;
    // Where --mode=pages got few addresses at once, others may have memory in the same piece.
    *can = shadow_device_owns(d, first / d->piece) && shadow_device_owns(d, last / d->piece);
    CUresult r = *can ? shadow_device_prepare(d, ctx, first, last, can) : CUDA_SUCCESS;
    if (r || !*can)
        return r;
    if (c->live && !c->again)
        shadow_empty_made(&d->empty, first / SHADOW_PAGE, last / SHADOW_PAGE);
    else if (!c->live)
        shadow_empty_freed(&d->empty, first / SHADOW_PAGE, last / SHADOW_PAGE);
    if (c->live && rest)
        return allow_until(d, ctx, first, last, kcheck_shadow_byte(d->shift, (uint32_t)rest), c);
    return fill(d, ctx, first, last + 1, c->live ? 0 : KCHECK_SHADOW_POISON, c);
}

// Allows bytes [first, past) of the shadow. Where a page could not be given memory nothing was forbidden.
static CUresult allow(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t past)
{
    const struct check_shadow_change now = {.ordered = false};
    CUresult r = CUDA_SUCCESS;
    for (uint64_t at = first, end; at < past && !r; at = end) {
        end = (at / SHADOW_PAGE + 1) * SHADOW_PAGE < past ? (at / SHADOW_PAGE + 1) * SHADOW_PAGE : past;
        if (d->slots[at / SHADOW_PAGE])
            r = fill(d, ctx, at, end, 0, &now);
    }
    return r;
}

// Writes bytes [first, first + count), of which runs are equal.
struct run {
    uint64_t first;
    uint32_t count;
    char bytes[SMALL];
};

static CUresult write_run(struct shadow_device *d, struct context *ctx, struct run *run)
{
    const struct context_copy copy = {written_at(d, run->first), run->bytes, run->count};
    CUresult r = run->count ? context_write(ctx, &copy, 1) : CUDA_SUCCESS;
    run->first += run->count;
    run->count = 0;
    return r;
}

// Adds equal bytes, which lie in one page.
static CUresult add_run(struct shadow_device *d, struct context *ctx, struct run *run, uint64_t count,
                        uint8_t byte)
{
    const struct check_shadow_change now = {.ordered = false};
    CUresult r = CUDA_SUCCESS;
    if (run->count + count > SMALL)
        r = write_run(d, ctx, run);
    if (!r && count > SMALL) {
        r = fill(d, ctx, run->first, run->first + count, byte, &now);
        run->first += count;
        return r;
    }
    memset(run->bytes + run->count, byte, count);
    run->count += (uint32_t)count;
    return r;
}

// The granules of a pool that nothing else is in: all that are whole, and the last one of its block.
static void pool_granules(unsigned shift, const struct shadow_pool_range *pool, uint64_t *first,
                          uint64_t *past)
{
    uint64_t mask = ((uint64_t)1 << shift) - 1;
    unsigned section = epoch_enter();
    const struct track_block *b = track_live(pool->base);
    bool ends = b && track_end(b) == pool->end;
    epoch_leave(section);
    *first = (pool->base + mask) >> shift;
    *past = (ends ? pool->end + mask : pool->end) >> shift;
}

// Makes bytes of the shadow of a pool anew.
static CUresult change_pieces(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c, bool *can)
{
    struct shadow_pool_range pool;
    struct run run = {.count = 0};
    uint64_t first, past, at = c->base >> d->shift, end = ((c->base + c->size - 1) >> d->shift) + 1;
    if (!shadow_pool_find(c->base, &pool))
        return CUDA_SUCCESS;
    pool_granules(d->shift, &pool, &first, &past);
    at = at > first ? at : first;
    end = end < past ? end : past;
    CUresult r = at < end ? shadow_device_prepare(d, ctx, at, end - 1, can) : CUDA_SUCCESS;
    run.first = at;
    while (at < end && !r && *can) {
        uint64_t page = (at / SHADOW_PAGE + 1) * SHADOW_PAGE, stop = page < end ? page : end;
        while (at < stop && !r) {
            uint8_t byte;
            uint64_t to = shadow_pool_run(d->shift, at << d->shift, stop << d->shift, &byte) >> d->shift;
            r = add_run(d, ctx, &run, to - at, byte);
            at = to;
        }
        if (!r)
            r = write_run(d, ctx, &run);
    }
    return r;
}

// Forbids memory of the driver's, or allows it again: whole granules.
static CUresult change_range(struct shadow_device *d, struct context *ctx,
                             const struct check_shadow_change *c, bool *can)
{
    uint64_t mask = ((uint64_t)1 << d->shift) - 1;
    uint64_t first = (c->base + mask) >> d->shift, past = (c->base + c->size) >> d->shift;
    if (c->live)
        return allow(d, ctx, first, past);
    CUresult r = first < past ? shadow_device_prepare(d, ctx, first, past - 1, can) : CUDA_SUCCESS;
    return r || !*can ? r : fill(d, ctx, first, past, KCHECK_SHADOW_POISON, c);
}

// A buffer with room around it, in memory of the driver: the room is forbidden.
static CUresult forbid_room(struct shadow_device *d, struct context *ctx, const struct check_shadow_change *c,
                            const struct shadow_room *room, bool *can)
{
    uint64_t rest = c->size & (((uint64_t)1 << d->shift) - 1), end = (c->base + c->size) >> d->shift;
    uint64_t front = room->base >> d->shift, first = c->base >> d->shift;
    uint64_t past = (room->base + room->size) >> d->shift;
    CUresult r = shadow_device_prepare(d, ctx, front, first - 1, can);
    if (!r && *can)
        r = fill(d, ctx, front, first, KCHECK_SHADOW_POISON, c);
    if (!r && *can)
        r = shadow_device_prepare(d, ctx, end, past - 1, can);
    if (r || !*can)
        return r;
    r = allow(d, ctx, first, end);
    if (!r && rest)
        r = fill(d, ctx, end, end + 1, kcheck_shadow_byte(d->shift, (uint32_t)rest), c);
    return r ? r : fill(d, ctx, end + (rest != 0), past, KCHECK_SHADOW_POISON, c);
}

static CUresult change_block(struct shadow_device *d, struct context *ctx,
                             const struct check_shadow_change *c, bool *can)
{
    struct shadow_room room = shadow_room_around(c->base, c->size);
    uint64_t end = room.size ? room.base + room.size : c->base + c->size;
    if (c->base & (((uint64_t)1 << d->shift) - 1) || end >> SHADOW_MEMORY_BITS)
        return CUDA_SUCCESS;
    if (pages_map_owns(c->base, c->size))
        return change_placed(d, ctx, c, can);
    return room.size && c->live ? forbid_room(d, ctx, c, &room, can) : CUDA_SUCCESS;
}

CUresult shadow_device_change(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c)
{
    bool can = true;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = c->what == CHECK_SHADOW_PIECES  ? change_pieces(d, ctx, c, &can)
                 : c->what == CHECK_SHADOW_RANGE ? change_range(d, ctx, c, &can)
                                                 : change_block(d, ctx, c, &can);
    context_capture_restore(mode);
    if (!r && !can)
        guard_count(GUARD_SHADOW_OUTSIDE);
    return r;
}
