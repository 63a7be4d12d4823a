// SPDX-License-Identifier: MIT
#include "canary/canary_staging.h"

#include "core/guard.h"

static struct canary_staging stagings[CONTEXT_CONTEXTS];

void canary_staging_context_gone(const struct context *ctx)
{
    stagings[context_number(ctx)] = (struct canary_staging){0};
}

void canary_staging_prepare(struct context *ctx)
{
    struct canary_staging *staging = &stagings[context_number(ctx)];
    CUstreamCaptureMode mode = context_capture_relax();
    void *p = NULL;
    bool made = !guard.real.cuStreamCreate(&staging->stream, CU_STREAM_NON_BLOCKING) &&
                !guard.real.cuStreamCreate(&staging->fill_stream, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < CANARY_BATCHES; i++)
        made = made && !guard.real.cuEventCreate(&staging->read[i], CU_EVENT_DISABLE_TIMING);
    if (!staging->pinned && guard.real.cuMemHostAlloc &&
        !guard.real.cuMemHostAlloc(&p, sizeof *staging->pinned, 0))
        staging->pinned = p;
    context_capture_restore(mode);
    // Release pairs with the acquire in canary_staging_of: whoever sees `ready` sees the members above.
    atomic_store_explicit(&staging->ready, made && staging->pinned && guard.real.cuEventSynchronize,
                          memory_order_release);
    atomic_store_explicit(&staging->prepared, true, memory_order_relaxed);
}

bool canary_staging_prepared(const struct context *ctx)
{
    return atomic_load_explicit(&stagings[context_number(ctx)].prepared, memory_order_relaxed);
}

struct canary_staging *canary_staging_of(const struct context *ctx)
{
    struct canary_staging *staging = &stagings[context_number(ctx)];
    return atomic_load_explicit(&staging->ready, memory_order_acquire) ? staging : NULL;
}

struct canary_readback *canary_staging_readbacks(const struct context *ctx)
{
    const struct canary_staging *staging = canary_staging_of(ctx);
    return staging ? staging->pinned->readback : NULL;
}

int canary_staging_take_rows(struct canary_staging *staging)
{
    // Relaxed except the exchange, whose acquire pairs with the release in canary_staging_give_rows.
    uint32_t taken = atomic_load_explicit(&staging->row_buffers, memory_order_relaxed);
    for (;;) {
        int free = __builtin_ffs(~(int)taken & ((1 << CANARY_ROW_BUFFERS) - 1)) - 1;
        if (free < 0 ||
            atomic_compare_exchange_weak_explicit(&staging->row_buffers, &taken, taken | 1u << free,
                                                  memory_order_acquire, memory_order_relaxed))
            return free;
    }
}

void canary_staging_give_rows(struct canary_staging *staging, int row_buffer)
{
    atomic_fetch_and_explicit(&staging->row_buffers, ~(1u << row_buffer), memory_order_release);
}
