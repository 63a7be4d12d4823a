// SPDX-License-Identifier: MIT
#include "fence/fence_handles.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "context/context_copy.h"
#include "context/green.h"
#include "core/guard.h"
#include "fence/fence_host.h"
#include "fence/fence_memory.h"
#include "fence/fence_objects.h"
#include "kfence/kfence_word.h"
#include "track/guard_report.h"

// Copies a place of a context's table to the device, if the context has a state. Requires ctx to be current.
static void write_place(struct context *ctx, unsigned place)
{
    const struct fence_device *d = fence_host_device(context_number(ctx));
    const struct kfence_object *o = fence_objects_table(context_number(ctx));
    if (!d || !o)
        return;
    // The bytes first: a kernel that finds the word finds its bytes.
    CUdeviceptr at = d->state + offsetof(struct kfence_state, objects) + place * sizeof *o;
    const struct context_copy bytes = {at + 8, (void *)(uintptr_t)&o[place].bytes, 8};
    const struct context_copy word = {at, (void *)(uintptr_t)&o[place].word, 8};
    if (!context_write(ctx, &bytes, 1))
        context_write(ctx, &word, 1);
}

// --- textures and surfaces ---------------------------------------------------------------------------------

// A launch has counted on a handle since the last wait: it runs no code that looks for it, so destroying one
// waits for the kernels. Relaxed: a program that launches and destroys orders the two.
static _Atomic bool relied;

struct change {
    uint64_t word;
    bool made, full;
};

static void change(void *argument)
{
    struct change *c = argument;
    CUcontext context = NULL;
    bool pushed;
    unsigned place;
    if (guard.real.cuCtxGetCurrent(&context) || !context)
        return;
    struct context *ctx = context_enter(green_owner(context), &pushed);
    if (!ctx)
        return;
    if (c->made ? fence_objects_add(context_number(ctx), c->word, 0, &place)
                : fence_objects_remove(context_number(ctx), c->word, &place))
        write_place(ctx, place);
    else
        c->full = c->made;
    context_leave(pushed);
}

void fence_handles_object(enum mode_object what, uint64_t handle, bool made)
{
    struct change c = {.made = made};
    if (!fence_host_on)
        return;
    int saved = errno;
    CUstreamCaptureMode mode = context_capture_relax();
    c.word = KFENCE_OBJECT(what == MODE_SURFACE ? KFENCE_SURFACE : KFENCE_TEXTURE, handle);
    fence_host_locked(change, &c);
    struct context *ctx = context_current();
    if (!made && ctx && atomic_exchange_explicit(&relied, false, memory_order_relaxed))
        context_wait_as_free(ctx);
    if (c.full)
        guard_report_note("fence: no room for another texture or surface: kernels that use it end");
    context_capture_restore(mode);
    errno = saved;
}

struct question {
    uint64_t word;
    bool found;
};

static void look_for(void *argument)
{
    struct question *q = argument;
    const struct context *ctx = context_current();
    q->found = ctx && fence_objects_has(context_number(ctx), q->word);
}

bool fence_handles_has(enum mode_object what, uint64_t handle)
{
    struct question q = {.word =
                             KFENCE_OBJECT(what == MODE_SURFACE ? KFENCE_SURFACE : KFENCE_TEXTURE, handle)};
    fence_host_locked(look_for, &q);
    if (q.found)
        atomic_store_explicit(&relied, true, memory_order_relaxed);
    return q.found;
}

// --- tensor maps -------------------------------------------------------------------------------------------

// Adds a map to the tables of all contexts, or removes it.
static void each_context(const struct fence_map *map, bool made)
{
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++) {
        struct context *ctx = context_of_number(i);
        unsigned place;
        bool pushed;
        if (!ctx || !(made ? fence_objects_add(i, map->word, map->box, &place)
                           : fence_objects_remove(i, map->word, &place)))
            continue;
        if (!context_enter(atomic_load_explicit(&ctx->handle, memory_order_relaxed), &pushed))
            continue;
        write_place(ctx, place);
        context_leave(pushed);
    }
}

static void add_map(void *argument)
{
    struct fence_map *map = argument;
    bool inside = map->bytes && fence_memory_has(map->base) && fence_memory_has(map->base + map->bytes - 1);
    if (!inside && !fence_host_is_range(map->base, map->bytes, &map->range))
        return;
    if (fence_objects_keep_map(map))
        each_context(map, true);
}

void fence_handles_tensor(const CUtensorMap *map, const struct mode_tensor *tensor)
{
    struct fence_map m = {0};
    const struct fence_tensor t = {
        .type = tensor->type,
        .rank = tensor->rank,
        .address = tensor->address,
        .dims = tensor->dims,
        .strides = tensor->strides,
        .box = tensor->box,
        .steps = tensor->steps,
        .span = tensor->span,
        .shape = tensor->replaced ? 0 : tensor->rank + (tensor->by_columns ? KFENCE_BY_COLUMNS : 0)};
    if (!fence_host_on || !fence_objects_tensor(&t, &m))
        return;
    int saved = errno;
    CUstreamCaptureMode mode = context_capture_relax();
    m.word = kfence_map_word(map->opaque);
    fence_host_locked(add_map, &m);
    context_capture_restore(mode);
    errno = saved;
}

void fence_handles_range_ends(uint64_t base)
{
    struct fence_map map;
    while (fence_objects_drop_map(base, &map))
        each_context(&map, false);
}
