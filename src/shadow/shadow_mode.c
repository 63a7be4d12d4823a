// SPDX-License-Identifier: MIT
// --mode=shadow as the hooks see it: --mode=check, which is on too, with other code in kernels and a
// shadow beside its table.
#include <time.h>

#include "check/check_host.h"
#include "core/guard.h"
#include "kcheck/kcheck_shadow.h"
#include "launch/launch_ring.h"
#include "mode/mode.h"
#include "pages/pages_map.h"
#include "shadow/shadow_room.h"
#include "shadow/shadow_device.h"
#include "shadow/shadow_pool.h"
#include "shadow/shadow_text.h"
#include "track/guard_report.h"

static struct shadow_device devices[CONTEXT_CONTEXTS];

static unsigned shift_of(enum option_shadow_scale scale)
{
    switch (scale) {
    case OPTION_SHADOW_SCALE_128: return 7;
    case OPTION_SHADOW_SCALE_8: return 3;
    default: return 8;
    }
}

static void count(const struct shadow_device *d)
{
    guard_most(GUARD_SHADOW_BYTES, shadow_device_bytes(d));
    guard_most(GUARD_SHADOW_SHARED, shadow_device_shared(d));
    guard_most(GUARD_SHADOW_MAPPINGS, d->mappings);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static CUresult make(unsigned number, struct context *ctx, uint64_t heap, uint64_t bytes, CUdeviceptr *at)
{
    struct shadow_device *d = &devices[number];
    uint64_t start = now();
    CUresult r = shadow_device_make(d, ctx, shift_of(guard.options.shadow_scale), heap, bytes);
    *at = r ? 0 : d->at;
    guard_most(GUARD_SHADOW_MAKING, now() - start);
    if (!r)
        count(d);
    return r;
}

static CUresult change(unsigned number, struct context *ctx, const struct check_shadow_change *c)
{
    struct shadow_device *d = &devices[number];
    CUresult r = shadow_device_change(d, ctx, c);
    count(d);
    return r;
}

static void gone(unsigned number)
{
    shadow_device_drop(&devices[number]);
}

// --- pools -------------------------------------------------------------------------------------------------

static uint64_t launches(void)
{
    return atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
}

// Returns the block at an address, if its shadow can be changed: memory that moat has placed, or that has
// room behind it. A block whose last granule has one byte cannot be one of several pools: the shadow does not
// tell that byte from none. Call it in an epoch section.
static struct track_block *block_of(uint64_t address)
{
    struct track_block *b = track_live(address);
    if (!b || b->range.size % 256 == 1)
        return NULL;
    return pages_map_owns(b->range.base, b->range.size) ||
                   shadow_room_around(b->range.base, b->range.size).size
               ? b
               : NULL;
}

static void set_change(struct check_shadow_change *c, uint64_t base, uint64_t end)
{
    *c = (struct check_shadow_change){.base = base, .size = end - base, .what = CHECK_SHADOW_PIECES};
}

// Makes a pool of a part of the block at `base`, up to `end` at most.
static int make_pool(uint64_t base, uint64_t end, bool whole, uint64_t *pool)
{
    unsigned section = epoch_enter();
    struct track_block *b = block_of(base);
    struct shadow_pool_range range = {base, end};
    if (b) {
        range.base = whole ? b->range.base : base;
        range.end = whole || track_end(b) < end ? track_end(b) : end;
        track_set_pooled(b);
        *pool = base;
    }
    epoch_leave(section);
    return b ? shadow_pool_make(range.base, range.end, launches()) : 0;
}

// Where the block of a pool that ends has others, they are no longer forbidden until their pieces change.
static void end_pool(uint64_t base, struct check_shadow_change *c)
{
    unsigned section = epoch_enter();
    struct track_block *b = block_of(base);
    if (b)
        *c = (struct check_shadow_change){
            .base = b->range.base, .size = b->range.size, .live = true, .again = true};
    epoch_leave(section);
}

static int pool_changed(uint64_t base, uint64_t end, bool is_one, struct check_shadow_change *c,
                        uint64_t *pool)
{
    bool was = shadow_pool_drop(base, end);
    if (!is_one && was)
        end_pool(base, c);
    return is_one ? make_pool(base, end, false, pool) : 0;
}

static int piece(const struct track_copy *b, struct check_shadow_change *c, uint64_t *pool)
{
    struct shadow_pool_range at;
    int err = shadow_pool_find(b->base, &at) ? 0 : make_pool(b->base, 0, true, pool);
    if (!err)
        err = shadow_pool_add(b, launches());
    set_change(c, b->base, b->base + b->size);
    return err;
}

static int taken_back(uint64_t base, uint64_t end, uint32_t stack)
{
    return shadow_pool_remove(base, end, launches(), stack);
}

static bool due(struct check_shadow_change *c)
{
    struct shadow_pool_range range;
    if (!shadow_pool_due(&range))
        return false;
    set_change(c, range.base, range.end);
    return true;
}

static void replaced(uint64_t base, uint64_t end)
{
    shadow_pool_drop(base, end);
}

static struct check_shadow shadow;

static CUdeviceptr at(unsigned number)
{
    return devices[number].at;
}

static void text(uint64_t address, char *to, size_t size)
{
    shadow_text(shadow.shift, address, to, size);
}

static bool start(void)
{
    shadow = (struct check_shadow){.shift = shift_of(guard.options.shadow_scale),
                                   .make = make,
                                   .change = change,
                                   .at = at,
                                   .gone = gone,
                                   .pool = pool_changed,
                                   .piece = piece,
                                   .taken_back = taken_back,
                                   .ended = shadow_pool_ended,
                                   .due = due,
                                   .replaced = replaced,
                                   .near = shadow_pool_near,
                                   .text = text};
    check_host_shadow = &shadow;
    // Pieces of the shadow then describe addresses of --mode=pages only, or none.
    pages_map_align(shadow_device_piece(shadow.shift));
    if (!(guard.options.mode >> OPTION_MODE_PAGES & 1))
        guard_report_note(
            "shadow: only --mode=pages leaves redzones; with another layout, buffers are NOT CHECKED");
    if (guard.options.shadow_load)
        return true;
    guard_report_relabel(GUARD_CHECK_LAUNCHES, "kernel launches that were NOT CHECKED: --shadow-load=off");
    guard_report_note("--shadow-load=off: kernels do not load the shadow, so NOTHING IS CHECKED; "
                      "use it only to measure");
    return true;
}

// --- managed and pinned memory -----------------------------------------------------------------------------

// --mode=canary places them itself.
static bool alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    return !(guard.options.mode >> OPTION_MODE_CANARY & 1) && shadow_room_alloc(a, pointer, r);
}

static bool reclaim(bool at_once)
{
    return !at_once && shadow_room_reclaim();  // frees wait for kernels
}

static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    static const char *const passes[][2] = {[3] = {"shadow_8", "shadow_unloaded_8"},
                                            [7] = {"shadow_128", "shadow_unloaded_128"},
                                            [8] = {"shadow", "shadow_unloaded"}};
    bool alone = shadow.shift == 8 && guard.options.shadow_load && !guard.options.shadow_roots;
    rewrite_plan_add(plan, alone ? "shadow_alone" : passes[shadow.shift][!guard.options.shadow_load], true);
}

const struct mode shadow_mode = {
    .checks_kernels = true,
    .start = start,
    .after_fork = shadow_room_after_fork,
    .alloc = alloc,
    .free = shadow_room_free,
    .reclaim = reclaim,
    .ask = shadow_room_ask,
    .context_gone = shadow_room_context_gone,
    .plan = plan,
};
