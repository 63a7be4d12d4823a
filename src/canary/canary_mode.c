// SPDX-License-Identifier: MIT
// --mode=canary as the hooks see it.
#include "canary/canary.h"
#include "canary/canary_regions.h"
#include "canary/canary_mapped.h"
#include "core/guard.h"
#include "mode/mode.h"
#include "share/share.h"

static bool start(void)
{
    canary_start();
    return canary_on;
}

static bool alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    CUdeviceptr p = 0;
    void *host = NULL;
    bool done = false;
    switch (a->kind) {
    case MODE_PLAIN: done = canary_alloc(&p, a->size, r); break;
    case MODE_PITCH: done = canary_alloc_pitch(&p, a->pitch, a->width, a->height, a->element, r); break;
    case MODE_MANAGED: done = canary_alloc_managed(&p, a->size, *a->flags, r); break;
    case MODE_POOL: done = canary_alloc_async(&p, a->size, a->pool, a->stream, a->per_thread, r); break;
    case MODE_HOST:
        done = canary_alloc_host(&host, a->size, a->flags, r);
        p = (uintptr_t)host;
        break;
    }
    if (done && !*r)
        *pointer = p;
    return done;
}

static void made_elsewhere(void)
{
    if (canary_on)
        guard_count(GUARD_UNGUARDED);
}

static bool free_(const struct mode_free *f, CUresult *r)
{
    switch (f->way) {
    case MODE_FREE: return canary_free(f->pointer, f->call, r);
    case MODE_FREE_HOST: return canary_free_host((void *)(uintptr_t)f->pointer, f->call, r);
    case MODE_FREE_IN_ORDER:
        return canary_free_async(f->pointer, f->stream, f->per_thread, f->captured, f->call, r);
    }
    return false;
}

static enum mode_what ask(uint64_t address, struct mode_answer *answer)
{
    enum mode_what what = canary_ask(address, &answer->base, &answer->size);
    if (what == MODE_BUFFER) {
        unsigned section = epoch_enter();
        answer->mapped = answer->shareable = canary_regions_is_mapped(address, &answer->context);
        epoch_leave(section);
    }
    return what;
}

static bool reclaim(bool at_once)
{
    return at_once ? canary_reclaim_at_once() : canary_reclaim();
}

// --- cuIpcGetMemHandle -------------------------------------------------------------------------------------

// The driver's handle stands for a whole allocation, with canaries and neighbours; ours also says where the
// buffer is.
static bool offer(const struct mode_answer *a, CUipcMemHandle *handle)
{
    struct share_memory m = {.size = a->size, .fd = -1};
    CUdeviceptr base;
    size_t bytes;
    if (share_offered(a->base, handle))
        return true;
    if (a->mapped) {
        m.on_request = canary_mapped_share;
        return canary_mapped_can_share(a->base, m.size) && !share_offer(a->base, &m, handle);
    }
    if (guard.real.cuMemGetAddressRange_v2(&base, &bytes, a->base) ||
        guard.real.cuIpcGetMemHandle(&m.handle, a->base))
        return false;
    m.offset = a->base - base;
    return !share_offer(a->base, &m, handle);
}

static void shares_plain(void)
{
    canary_stop("the program shares memory by cuIpcGetMemHandle, whose handles cover whole allocations");
}

// If a buffer cannot be shared, later ones can be: those are plain.
static CUresult share(const struct mode_answer *answer, CUdeviceptr pointer, CUipcMemHandle *handle)
{
    const struct context *ctx = answer->mapped ? context_find(answer->context) : NULL;
    if (offer(answer, handle)) {
        guard_count(GUARD_IPC_SHARED);
        return CUDA_SUCCESS;
    }
    guard_count(GUARD_CANARY_REFUSED);
    if (!answer->mapped)
        shares_plain();
    else if (ctx)
        canary_mapped_disable(
            ctx,
            "a buffer that the program shares by cuIpcGetMemHandle lies in more pieces than can be sent");
    return CUDA_ERROR_NOT_SUPPORTED;
}

// --- the rest ----------------------------------------------------------------------------------------------

static void peer(struct context *ctx, const CUmemAccessDesc *desc)
{
    canary_mapped_set_access(atomic_load_explicit(&ctx->handle, memory_order_relaxed), desc);
}

const struct mode canary_mode = {
    .checks_kernels = true,
    .start = start,
    .after_fork = canary_after_fork,
    .aborts = canary_aborts,
    .alloc = alloc,
    .made_elsewhere = made_elsewhere,
    .free = free_,
    .ask = ask,
    .reclaim = reclaim,
    .held = canary_reclaimable,
    .share = share,
    .shares_plain = shares_plain,
    .peer = peer,
    .pool_ends = canary_pool_ends,
    .context_ends = canary_context_ends,
    .context_stays = canary_context_stays,
    .context_gone = canary_context_gone,
    .waited = canary_synced,
};
