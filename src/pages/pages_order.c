// SPDX-License-Identifier: MIT
#include "pages/pages_order.h"

#include "launch/kernel_fault.h"
#include "core/lock.h"
#include "core/guard.h"

// Freed blocks that wait for their streams, oldest first. The lock is a leaf; a thread that examines a block
// takes it off the list meanwhile.
static struct pages_block *first, **last = &first;
static unsigned examined;  // that are off the list
static struct lock lock = LOCK_INIT(PAGES_ORDER);
// Relaxed: a hint whether there are any.
_Atomic uint64_t pages_order_waiting;

void pages_order_after_fork(void)
{
    lock_after_fork(&lock);
    first = NULL;
    last = &first;
    examined = 0;
    atomic_store_explicit(&pages_order_waiting, 0, memory_order_relaxed);
}

static uint64_t stream_id(CUstream stream, bool per_thread)
{
    unsigned long long id = 0;
    __typeof__(cuStreamGetId) *get = per_thread ? guard.real.cuStreamGetId_ptsz : guard.real.cuStreamGetId;
    // Ids start at 0 or 1. Handles are reused, ids never are.
    return get && !get(stream, &id) ? id + 1 : 0;
}

static void push(struct pages_block *b)
{
    b->next = NULL;
    *last = b;
    last = &b->next;
    atomic_fetch_add_explicit(&pages_order_waiting, 1, memory_order_relaxed);
}

// Takes the first block of the context off the list; context == NULL: of any. Requires the lock.
static struct pages_block *pop(CUcontext context)
{
    struct pages_block **at = &first, *b;
    while (*at && context && (*at)->context != context)
        at = &(*at)->next;
    b = *at;
    if (!b)
        return NULL;
    *at = b->next;
    if (last == &b->next)
        last = at;
    atomic_fetch_sub_explicit(&pages_order_waiting, 1, memory_order_relaxed);
    return b;
}

// Makes the block's context current for a created stream, which knows its context: the driver frees in its
// order even on a thread that has none.
static bool enter_for_stream(const struct pages_block *b, CUstream stream)
{
    CUcontext current = NULL;
    bool pushed = false;
    if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
        !guard.real.cuCtxGetCurrent(&current) && !current)
        context_enter(b->context, &pushed);
    return pushed;
}

CUresult pages_order_free(struct pages_block *b, CUstream stream, bool per_thread, enum driver_id call)
{
    bool pushed = enter_for_stream(b, stream);
    __typeof__(cuEventRecord) *record = per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r =
        record ? guard.real.cuEventCreate(&b->event, CU_EVENT_DISABLE_TIMING) : CUDA_ERROR_NOT_SUPPORTED;
    if (!r && (r = record(b->event, stream)))
        guard.real.cuEventDestroy_v2(b->event);
    if (!r) {
        b->stream = stream_id(stream, per_thread);
        b->freed_by = call;
    }
    context_capture_restore(mode);
    context_leave(pushed);
    if (r)
        return r;
    lock_take(&lock);
    push(b);
    lock_give(&lock);
    return CUDA_SUCCESS;
}

static void finish(struct pages_block *b)
{
    bool pushed;
    struct context *ctx = context_enter(b->context, &pushed);
    if (ctx) {
        pages_block_check(ctx, b, b->freed_by,
                          "found after the buffer was freed in stream order; the write happened earlier");
        guard.real.cuEventDestroy_v2(b->event);
        context_leave(pushed);
    }
    pages_block_dispose(b);
}

void pages_order_unmap(unsigned most, bool wait)
{
    uint64_t waiting = atomic_load_explicit(&pages_order_waiting, memory_order_relaxed);
    CUstreamCaptureMode mode = context_capture_relax();
    for (uint64_t i = 0; i < waiting && i < most; i++) {
        lock_take(&lock);
        struct pages_block *b = pop(NULL);
        examined += b != NULL;
        lock_give(&lock);
        if (!b)
            break;
        CUresult r = wait && guard.real.cuEventSynchronize ? guard.real.cuEventSynchronize(b->event)
                                                           : guard.real.cuEventQuery(b->event);
        if (!r) {
            finish(b);
            lock_take(&lock);
            examined--;
            lock_give(&lock);
            continue;
        }
        // The stream has not reached the free; or the context is in error, and keeps its memory until it is
        // destroyed.
        lock_take(&lock);
        push(b);
        examined--;
        lock_give(&lock);
        if (r != CUDA_ERROR_NOT_READY) {
            kernel_fault_seen(r);
            break;
        }
    }
    context_capture_restore(mode);
}

bool pages_order_holds(uint64_t base, uint64_t end)
{
    lock_take(&lock);
    bool held = examined;
    for (const struct pages_block *b = first; b && !held; b = b->next)
        held = b->base < end && base < b->base + b->size;
    lock_give(&lock);
    return held;
}

bool pages_order_reuse(struct pages_block *same, uint64_t size, const struct context *ctx, CUmemoryPool pool,
                       CUstream stream, bool per_thread)
{
    CUcontext context = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
    uint64_t id =
        atomic_load_explicit(&pages_order_waiting, memory_order_relaxed) ? stream_id(stream, per_thread) : 0;
    struct pages_block *b;
    if (!id)
        return false;
    lock_take(&lock);
    for (b = first; b; b = b->next)
        if (b->stream == id && b->size == size && b->context == context && b->pool == pool &&
            b->memory.handle && !b->memory.slab && !b->memory.view)
            break;
    if (b) {
        *same = (struct pages_block){.memory = b->memory, .seed = b->seed, .head = b->head, .tail = b->tail};
        b->memory = (struct pages_memory){.handle = 0};
    }
    lock_give(&lock);
    return b;
}

void pages_order_context_gone(CUcontext context)
{
    for (;;) {
        lock_take(&lock);
        struct pages_block *b = pop(context);
        lock_give(&lock);
        if (!b)
            return;
        pages_block_dispose(b);
    }
}
