// SPDX-License-Identifier: MIT
// --mode=shadow as the hooks see it: --mode=check, which is on too, with other code in kernels and a
// shadow beside its table.
#include "check/check_host.h"
#include "core/guard.h"
#include "kcheck/kcheck_shadow.h"
#include "mode/mode.h"
#include "pages/pages_map.h"
#include "shadow/shadow_behind.h"
#include "shadow/shadow_device.h"
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

static CUresult make(unsigned number, struct context *ctx, CUdeviceptr *at)
{
    struct shadow_device *d = &devices[number];
    CUresult r = shadow_device_make(d, ctx, shift_of(guard.options.shadow_scale));
    *at = r ? 0 : d->at;
    if (!r)
        guard_most(GUARD_SHADOW_BYTES, shadow_device_bytes(d));
    return r;
}

static CUresult change(unsigned number, struct context *ctx, const struct check_shadow_change *c)
{
    struct shadow_device *d = &devices[number];
    CUresult r = shadow_device_change(d, ctx, c);
    guard_most(GUARD_SHADOW_BYTES, shadow_device_bytes(d));
    return r;
}

static void gone(unsigned number)
{
    shadow_device_drop(&devices[number]);
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
    return !(guard.options.mode >> OPTION_MODE_CANARY & 1) && shadow_behind_alloc(a, pointer, r);
}

struct room {
    uint64_t base, size, room;
};

static void allow(struct check_device *d, struct context *ctx, void *argument)
{
    const struct room *room = argument;
    if (d->shadow)
        shadow_device_allow(&devices[context_number(ctx)], ctx, room->base, room->size, room->room);
}

// Called before the driver's call: once it is made, the memory may be anyone's.
static bool free_(const struct mode_free *f, CUresult *r)
{
    struct room room = {.base = f->pointer};
    if (f->way != MODE_FREE_IN_ORDER && f->pointer)
        room.room = shadow_behind_forget(f->pointer, &room.size);
    if (room.room && check_host_on)
        check_host_each(allow, &room);
    return false;
}

static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    static const char *const passes[][2] = {[3] = {"shadow_8", "shadow_unloaded_8"},
                                            [7] = {"shadow_128", "shadow_unloaded_128"},
                                            [8] = {"shadow", "shadow_unloaded"}};
    rewrite_plan_add(plan, passes[shadow.shift][!guard.options.shadow_load], true);
}

const struct mode shadow_mode = {
    .checks_kernels = true,
    .start = start,
    .after_fork = shadow_behind_after_fork,
    .alloc = alloc,
    .free = free_,
    .ask = shadow_behind_ask,
    .context_gone = shadow_behind_context_gone,
    .plan = plan,
};
