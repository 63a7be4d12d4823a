// SPDX-License-Identifier: MIT
#include "canary/canary_managed.h"

#include "canary/canary_verify.h"
#include "core/guard.h"

enum {
    PAGE = 4096,
    FAR = 1024,  // in the page behind a buffer: beyond the canary that may start there
};

_Static_assert((int)FAR >= (int)CANARY_TAIL_MOST && (int)FAR + CANARY_HEAD <= (int)PAGE,
               "behind what canary_slab_tail gives, and in the page");

static uint64_t pages(uint64_t size)
{
    return canary_suballoc_round(size, PAGE);
}

// The buffer's pages, and one behind them.
static uint64_t bytes_of(uint64_t size)
{
    return pages(size) + PAGE;
}

static uint8_t *more(const struct canary_slab *s, uint64_t size)
{
    return (uint8_t *)(uintptr_t)(s->base + pages(size) + FAR);
}

static void write_more(const struct canary_place *place)
{
    struct canary_seed seed = canary_slab_seed(place);
    canary_bytes_far(&seed, more(place->slab, place->size));
}

static bool verify_more(struct canary_slab *s, const struct canary_buffer *b, const struct canary_occasion *o)
{
    uint8_t made[CANARY_HEAD];
    canary_bytes_far(&b->seed, made);
    return canary_verify_behind(s, b, more(s, b->size), made, CANARY_HEAD, o);
}

static bool take(uint64_t bytes, CUdeviceptr *real)
{
    const struct driver *d = &guard.real;
    return d->cuMemAllocManaged && !d->cuMemAllocManaged(real, bytes, CU_MEM_ATTACH_GLOBAL);
}

// Advises the driver that both host and device read the canaries' pages.
static void placed(const struct context *ctx, CUdeviceptr base, uint64_t size)
{
    const struct driver *d = &guard.real;
    if (d->cuMemAdvise) {
        d->cuMemAdvise(base - PAGE, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, ctx->device);
        d->cuMemAdvise(base + pages(size), PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, ctx->device);
    }
    if (d->cuMemPrefetchAsync)
        d->cuMemPrefetchAsync(base, size, ctx->device, NULL);
}

static const struct canary_memory memory = {
    .kind = CANARY_SEPARATE,
    .offset = PAGE,
    .bytes = bytes_of,
    .direct = true,
    // The tail starts in the buffer's last page, which a read by the host would migrate from the device.
    .tails_rarely = true,
    .write_more = write_more,
    .verify_more = verify_more,
    .take = take,
    .placed = placed,
};

const struct canary_memory *canary_managed_chosen(void)
{
    return guard.options.canary_scan == OPTION_CANARY_SCAN_MANAGED ? &memory : NULL;
}
