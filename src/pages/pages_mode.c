// SPDX-License-Identifier: MIT
// --mode=pages as the hooks see it.
#include "core/guard.h"
#include "launch/kernel_fault.h"
#include "mode/mode.h"
#include "pages/pages.h"
#include "pages/pages_pool.h"

static bool start(void)
{
    pages_start();
    kernel_fault_lists_candidates = pages_on;
    return pages_on;
}

static bool alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    CUdeviceptr p = 0;
    bool done = false;
    switch (a->kind) {
    case MODE_PLAIN: done = pages_alloc(&p, a->size, r); break;
    case MODE_PITCH: done = pages_alloc_pitch(&p, a->pitch, a->width, a->height, a->element, r); break;
    case MODE_POOL: done = pages_alloc_async(&p, a->size, a->pool, a->stream, a->per_thread, r); break;
    case MODE_MANAGED:
    case MODE_HOST: break;
    }
    if (done && !*r)
        *pointer = p;
    return done;
}

static bool free_(const struct mode_free *f, CUresult *r)
{
    switch (f->way) {
    case MODE_FREE: return pages_free(f->pointer, f->call, r);
    case MODE_FREE_IN_ORDER:
        return pages_free_async(f->pointer, f->stream, f->per_thread, f->captured, f->call, r);
    case MODE_FREE_HOST: break;
    }
    return false;
}

static bool reclaim(bool at_once)
{
    return !at_once && pages_reclaim();
}

static enum mode_what ask(uint64_t address, struct mode_answer *answer)
{
    return pages_ask(address, answer);
}

static void shares_plain(void)
{
    pages_stop("the program shares memory by cuIpcGetMemHandle, which cannot be mapped");
}

// If a buffer cannot be shared, later ones can be: those are plain.
static CUresult share(const struct mode_answer *answer, CUdeviceptr pointer, CUipcMemHandle *handle)
{
    if (pages_share(pointer, handle)) {
        guard_count(GUARD_IPC_SHARED);
        return CUDA_SUCCESS;
    }
    shares_plain();
    guard_count(GUARD_PAGES_REFUSED);
    return guard.real.cuIpcGetMemHandle(handle, pointer);
}

static void peer(struct context *ctx, const CUmemAccessDesc *desc)
{
    pages_block_set_access(atomic_load_explicit(&ctx->handle, memory_order_relaxed), NULL, desc, 1);
}

static void pool_opened(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
    if (!pool)
        return;
    pages_pool_opened(pool);
    pages_block_set_access(NULL, pool, desc, count);
}

const struct mode pages_mode = {
    .checks_kernels = true,
    .start = start,
    .after_fork = pages_after_fork,
    .alloc = alloc,
    .free = free_,
    .ask = ask,
    .reclaim = reclaim,
    .share = share,
    .shares_plain = shares_plain,
    .peer = peer,
    .pool_made = pages_pool_made,
    .pool_gone = pages_pool_gone,
    .pool_opened = pool_opened,
    .context_ends = pages_context_ends,
    .context_gone = pages_context_gone,
    .poll = pages_poll,
};
