// SPDX-License-Identifier: MIT
#include "hook/hook_fill.h"

#include <string.h>

#include "context/context_copy.h"

static unsigned char byte(void)
{
    return (unsigned char)guard.options.fill;
}

static void fill(struct context *ctx, enum track_family family, uint64_t base, uint64_t size)
{
    if (family == TRACK_PINNED)
        memset((void *)(uintptr_t)base, byte(), size);
    else if (ctx && (family == TRACK_PLAIN || family == TRACK_PITCH || family == TRACK_MANAGED))
        context_fill(ctx, base, byte(), size);
}

void hook_fill_made(enum track_family family, uint64_t base, uint64_t size)
{
    fill(context_current(), family, base, size);
}

// The block that was freed last at an address. Returns false if it is not known.
static bool find(uint64_t pointer, struct track_copy *copy)
{
    unsigned section = epoch_enter();
    struct track_block *block = track_freed(pointer);
    if (block)
        *copy = track_copy(block, true);
    epoch_leave(section);
    return block && copy->base == pointer;
}

void hook_fill_freed(uint64_t pointer)
{
    struct track_copy block;
    struct context *ctx = context_current();
    if (!ctx || !find(pointer, &block) || context_wait_as_free(ctx))
        return;
    if (block.facts.family == TRACK_POOL)
        context_fill(ctx, block.base, byte(), block.size);
    else
        fill(ctx, block.facts.family, block.base, block.size);
}

void hook_fill_in_order(uint64_t base, uint64_t size, CUstream stream, bool per_thread)
{
    __typeof__(cuMemsetD8Async) *set =
        per_thread ? guard.real.cuMemsetD8Async_ptsz : guard.real.cuMemsetD8Async;
    if (set)
        set(base, byte(), size, stream);
}

void hook_fill_freed_in_order(uint64_t pointer, CUstream stream, bool per_thread)
{
    struct track_copy block;
    if (find(pointer, &block) && block.facts.family == TRACK_POOL)
        hook_fill_in_order(block.base, block.size, stream, per_thread);
}
