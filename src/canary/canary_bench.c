// SPDX-License-Identifier: MIT
#include "canary/canary_bench.h"

#include "core/guard.h"

static struct canary_bench benches[HOME_CONTEXTS];

void canary_bench_context_gone(const struct home *home)
{
    benches[home_number(home)] = (struct canary_bench){0};
}

void canary_bench_prepare(struct home *home)
{
    struct canary_bench *b = &benches[home_number(home)];
    CUstreamCaptureMode mode = home_calm();
    void *p = NULL;
    bool made = !guard.real.cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING) &&
                !guard.real.cuStreamCreate(&b->filler, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < CANARY_BATCHES; i++)
        made = made && !guard.real.cuEventCreate(&b->read[i], CU_EVENT_DISABLE_TIMING);
    if (!b->pinned && guard.real.cuMemHostAlloc && !guard.real.cuMemHostAlloc(&p, sizeof *b->pinned, 0))
        b->pinned = p;
    home_stir(mode);
    // Release pairs with the acquire in canary_bench_of: who finds it ready finds what it stands for.
    atomic_store_explicit(&b->ready, made && b->pinned && guard.real.cuEventSynchronize,
                          memory_order_release);
    atomic_store_explicit(&b->asked, true, memory_order_relaxed);
}

bool canary_bench_prepared(const struct home *home)
{
    return atomic_load_explicit(&benches[home_number(home)].asked, memory_order_relaxed);
}

struct canary_bench *canary_bench_of(const struct home *home)
{
    struct canary_bench *b = &benches[home_number(home)];
    return atomic_load_explicit(&b->ready, memory_order_acquire) ? b : NULL;
}

struct canary_landing *canary_bench_landings(const struct home *home)
{
    const struct canary_bench *b = canary_bench_of(home);
    return b ? b->pinned->landing : NULL;
}

int canary_bench_take(struct canary_bench *b)
{
    // Relaxed but for the exchange, whose acquire pairs with the release in canary_bench_give.
    uint32_t taken = atomic_load_explicit(&b->trays, memory_order_relaxed);
    for (;;) {
        int free = __builtin_ffs(~(int)taken & ((1 << CANARY_TRAYS) - 1)) - 1;
        if (free < 0 || atomic_compare_exchange_weak_explicit(&b->trays, &taken, taken | 1u << free,
                                                              memory_order_acquire, memory_order_relaxed))
            return free;
    }
}

void canary_bench_give(struct canary_bench *b, int tray)
{
    atomic_fetch_and_explicit(&b->trays, ~(1u << tray), memory_order_release);
}
