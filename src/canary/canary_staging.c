// SPDX-License-Identifier: MIT
#include "canary/canary_staging.h"

#include "core/guard.h"

static struct canary_staging benches[CONTEXT_CONTEXTS];

void canary_staging_context_gone(const struct context *ctx)
{
    benches[context_number(ctx)] = (struct canary_staging){0};
}

void canary_staging_prepare(struct context *ctx)
{
    struct canary_staging *b = &benches[context_number(ctx)];
    CUstreamCaptureMode mode = context_capture_relax();
    void *p = NULL;
    bool made = !guard.real.cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING) &&
                !guard.real.cuStreamCreate(&b->filler, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < CANARY_BATCHES; i++)
        made = made && !guard.real.cuEventCreate(&b->read[i], CU_EVENT_DISABLE_TIMING);
    if (!b->pinned && guard.real.cuMemHostAlloc && !guard.real.cuMemHostAlloc(&p, sizeof *b->pinned, 0))
        b->pinned = p;
    context_capture_restore(mode);
    // Release pairs with the acquire in canary_staging_of: who finds it ready finds what it stands for.
    atomic_store_explicit(&b->ready, made && b->pinned && guard.real.cuEventSynchronize,
                          memory_order_release);
    atomic_store_explicit(&b->asked, true, memory_order_relaxed);
}

bool canary_staging_prepared(const struct context *ctx)
{
    return atomic_load_explicit(&benches[context_number(ctx)].asked, memory_order_relaxed);
}

struct canary_staging *canary_staging_of(const struct context *ctx)
{
    struct canary_staging *b = &benches[context_number(ctx)];
    return atomic_load_explicit(&b->ready, memory_order_acquire) ? b : NULL;
}

struct canary_landing *canary_staging_landings(const struct context *ctx)
{
    const struct canary_staging *b = canary_staging_of(ctx);
    return b ? b->pinned->landing : NULL;
}

int canary_staging_take(struct canary_staging *b)
{
    // Relaxed but for the exchange, whose acquire pairs with the release in canary_staging_give.
    uint32_t taken = atomic_load_explicit(&b->trays, memory_order_relaxed);
    for (;;) {
        int free = __builtin_ffs(~(int)taken & ((1 << CANARY_TRAYS) - 1)) - 1;
        if (free < 0 || atomic_compare_exchange_weak_explicit(&b->trays, &taken, taken | 1u << free,
                                                              memory_order_acquire, memory_order_relaxed))
            return free;
    }
}

void canary_staging_give(struct canary_staging *b, int tray)
{
    atomic_fetch_and_explicit(&b->trays, ~(1u << tray), memory_order_release);
}
