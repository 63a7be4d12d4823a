// SPDX-License-Identifier: MIT
#include "check/check_memory.h"

#include "check/check_slab.h"
#include "context/context_copy.h"
#include "core/guard.h"
#include "pages/pages.h"
#include "share/share.h"

extern const struct mode pages_mode;
static _Atomic(bool) stopped;  // the program needs what mapped memory cannot do; relaxed: it stands alone

void check_memory_start(void)
{
    pages_start();
}

void check_memory_after_fork(void)
{
    pages_after_fork();
    check_slab_after_fork();
}

// --- allocations -------------------------------------------------------------------------------------------

// Returns the current context, held (context_hold), if it can have mapped memory; else NULL.
static struct context *enter(void)
{
    CUcontext current = NULL;
    struct context *ctx = atomic_load_explicit(&stopped, memory_order_relaxed) ? NULL : context_current();
    if (!ctx || !context_device_of(ctx->device)->mappable || guard.real.cuCtxGetCurrent(&current) ||
        !context_hold(ctx, current))
        return NULL;
    return ctx;
}

static bool alloc_small(uint64_t size, uint64_t *pointer)
{
    struct context *ctx = enter();
    CUstreamCaptureMode mode = context_capture_relax();
    bool done = ctx && !check_slab_alloc(ctx, size, pointer);
    context_capture_restore(mode);
    if (ctx)
        context_release(ctx);
    if (done)
        guard_count(GUARD_CHECK_PACKED);
    return done;
}

static bool alloc_plain(uint64_t size, uint64_t *pointer, CUresult *r)
{
    bool small = size <= CHECK_SLAB_LARGEST;
    *r = CUDA_SUCCESS;
    return pages_on && size &&
           (small ? alloc_small(size, pointer) : pages_alloc((CUdeviceptr *)pointer, size, r));
}

static bool alloc_pitch(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    bool right =
        a->pitch && a->width && a->height && (a->element == 4 || a->element == 8 || a->element == 16);
    struct context *ctx = right ? context_current() : NULL;
    size_t granule = ctx ? context_device_pitch(ctx->device) : 0, row, size;
    if (!granule || __builtin_add_overflow(a->width, granule - 1, &row))
        return false;
    row &= ~(granule - 1);
    if (__builtin_mul_overflow(row, a->height, &size) || !alloc_plain(size, pointer, r))
        return false;
    *a->pitch = row;
    return true;
}

bool check_memory_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    bool done = false;
    switch (a->kind) {
    case MODE_PLAIN: done = alloc_plain(a->size, pointer, r); break;
    case MODE_PITCH: done = alloc_pitch(a, pointer, r); break;
    case MODE_POOL:
    case MODE_MANAGED:
    case MODE_HOST: break;
    }
    if (!done && (a->size || a->height))
        guard_count(GUARD_CHECK_PLAIN);
    return done;
}

// --- frees -------------------------------------------------------------------------------------------------

static bool free_small(uint64_t pointer, CUresult *r)
{
    struct check_slab_buffer b;
    bool pushed;
    if (!check_slab_find(pointer, &b) || b.base != pointer || !pointer)
        return false;
    struct context *ctx = context_enter(b.context, &pushed);
    *r = ctx ? context_wait_as_free(ctx) : CUDA_ERROR_INVALID_CONTEXT;
    if (ctx)
        context_leave(pushed);
    if (!*r && !check_slab_free(pointer))
        *r = CUDA_ERROR_INVALID_VALUE;  // another thread has freed it meanwhile
    return true;
}

bool check_memory_free(const struct mode_free *f, CUresult *r)
{
    struct check_slab_buffer b;
    if (f->way == MODE_FREE_HOST || !pages_on)
        return false;
    if (f->way == MODE_FREE)
        return free_small(f->pointer, r) || pages_free(f->pointer, f->call, r);
    if (!f->pointer || !check_slab_find(f->pointer, &b) || b.base != f->pointer)
        return pages_free_async(f->pointer, f->stream, f->per_thread, f->captured, f->call, r);
    // A graph cannot unmap it: it stays.
    *r = f->captured ? CUDA_SUCCESS : check_slab_free_in_order(f->pointer, f->stream, f->per_thread);
    return true;
}

// --- queries -----------------------------------------------------------------------------------------------

enum mode_what check_memory_ask(uint64_t address, struct mode_answer *answer)
{
    struct check_slab_buffer b;
    if (!pages_on)
        return MODE_NOT_OURS;
    if (!check_slab_find(address, &b))
        return pages_ask(address, answer);
    *answer = (struct mode_answer){.base = b.base, .size = b.size, .mapped = true, .context = b.context};
    struct context *ctx = b.base ? context_find(b.context) : NULL;
    answer->shareable = ctx && context_device_of(ctx->device)->exportable;
    return b.base ? MODE_BUFFER : MODE_AROUND;
}

bool check_memory_owns(uint64_t address)
{
    struct mode_answer answer;
    return check_memory_ask(address, &answer) != MODE_NOT_OURS;
}

bool check_memory_reclaim(bool at_once)
{
    return !at_once && pages_reclaim();
}

void check_memory_shares_plain(void)
{
    atomic_store_explicit(&stopped, true, memory_order_relaxed);
    pages_stop("the program shares memory by cuIpcGetMemHandle, which cannot be mapped");
}

CUresult check_memory_share(const struct mode_answer *answer, CUdeviceptr pointer, CUipcMemHandle *handle)
{
    struct check_slab_buffer b;
    if (!check_slab_find(pointer, &b))
        return pages_mode.share(answer, pointer, handle);
    struct share_memory m = {.offset = b.offset, .size = b.size, .bytes = CONTEXT_GRANULE, .fd = -1};
    bool done = answer->shareable && handle && b.base &&
                (share_offered(b.base, handle) ||
                 (!guard.real.cuMemExportToShareableHandle(&m.fd, b.handle,
                                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) &&
                  !share_offer(b.base, &m, handle)));
    if (done) {
        guard_count(GUARD_IPC_SHARED);
        return CUDA_SUCCESS;
    }
    check_memory_shares_plain();
    return guard.real.cuIpcGetMemHandle(handle, pointer);
}

void check_memory_peer(struct context *ctx, const CUmemAccessDesc *desc)
{
    check_slab_set_access(atomic_load_explicit(&ctx->handle, memory_order_relaxed), desc);
    pages_mode.peer(ctx, desc);
}

void check_memory_context_gone(CUcontext context)
{
    if (!pages_on || !context)
        return;
    check_slab_context_gone(context);
    pages_context_gone(context);
}
