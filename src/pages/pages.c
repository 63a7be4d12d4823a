// SPDX-License-Identifier: MIT
#include "pages/pages.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cancel.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "pages/pages_packed.h"
#include "pages/pages_pool.h"
#include "context/context_copy.h"
#include "share/share.h"

enum {
    SHARE = 8,  // 1/SHARE of a device's memory may be lost to rounding, unless --pages-budget says otherwise
};

bool pages_on;
static _Atomic(bool) stopped;
static _Atomic(bool) used;
static int owner;  // the process that uses the mode

void pages_start(void)
{
    pages_on = guard.watching && guard.options.mode >> OPTION_MODE_PAGES & 1;
    if (pages_on && canary_bytes_init()) {
        guard_report_note("pages: no memory for a key, so buffers are plain");
        pages_on = false;
    }
    owner = getpid();
}

// A driver that was used does not work in a forked child. If the parent has not used it, the child may.
void pages_after_fork(void)
{
    pages_on &= !atomic_load_explicit(&used, memory_order_relaxed);
    owner = getpid();
    pages_memory_after_fork();
    pages_block_after_fork();
    pages_order_after_fork();
    pages_pool_after_fork();
}

struct ending {
    CUcontext context;    // NULL: all
    enum driver_id call;  // the call that destroys it
};

static int check_one(struct index_item *item, void *context)
{
    const struct ending *ending = context;
    struct pages_block *b = (struct pages_block *)item;
    bool pushed, meant = !ending->context || ending->context == b->context;
    struct context *ctx = meant ? context_enter(b->context, &pushed) : NULL;
    if (ctx) {
        pages_block_check(ctx, b, ending->call, "found when the program ended; the write happened earlier");
        context_leave(pushed);
    }
    return 0;
}

// Registered after the driver's own exit handler, so it runs before the driver shuts down.
static void at_exit(void)
{
    if (!pages_on || owner != getpid())
        return;
    pages_order_unmap(UINT32_MAX, false);
    pages_block_each(check_one, &(struct ending){NULL, DRIVER_CALLS});
}

static pthread_once_t first_use = PTHREAD_ONCE_INIT;

static void begin(void)
{
    struct context *ctx = context_current();
    uint64_t memory = ctx ? context_device_of(ctx->device)->memory : 0;
    uint64_t budget = (uint64_t)guard.options.pages_budget;
    pages_memory_init(budget ? budget : memory / SHARE, (uint64_t)guard.options.pages_own);
    atomic_store_explicit(&used, true, memory_order_relaxed);
    if (atexit(at_exit))
        guard_report_note(
            "pages: the bytes around buffers that are never freed are not checked when the program ends");
}

// Returns the context of an allocation, held (context_hold); NULL if the allocation must be plain.
static struct context *ready(size_t size)
{
    CUcontext current = NULL;
    if (!size || atomic_load_explicit(&stopped, memory_order_relaxed))
        return NULL;
    struct context *ctx = context_current();
    if (!ctx || !context_device_of(ctx->device)->mappable || guard.real.cuCtxGetCurrent(&current) ||
        !context_hold(ctx, current))
        return NULL;
    cancel_hold();
    pthread_once(&first_use, begin);
    cancel_release();
    return ctx;
}

static bool publish(struct pages_block *b, CUdeviceptr *pointer)
{
    uint64_t base = b->base;
    enum guard_count kind = b->memory.view   ? GUARD_PAGES_SMALL
                            : b->memory.slab ? GUARD_PAGES_SHARED
                                             : GUARD_PAGES_OWN;
    if (!pages_block_publish(b)) {
        pages_block_dispose(b);
        return false;
    }
    *pointer = base;
    guard_count(kind);
    guard_most(GUARD_PAGES_EXTRA, pages_memory_extra());
    return true;
}

// Leaves a buffer to the driver, which refuses what is larger than the device's memory.
static bool plain(size_t size)
{
    const struct context *ctx = context_current();
    if (!ctx || size <= context_device_of(ctx->device)->memory)
        guard_count(GUARD_UNPAGED);
    return false;
}

static void release(struct context *held)
{
    if (held)
        context_release(held);
}

// Leaves a small buffer to the driver.
static bool packed(struct context *held)
{
    release(held);
    guard_count(GUARD_PAGES_PACKED);
    return false;
}

bool pages_alloc(CUdeviceptr *pointer, size_t size, CUresult *r)
{
    if (!pages_on || !pointer)
        return false;
    pages_poll();
    struct context *ctx = ready(size);
    if (ctx && pages_memory_should_pack(size))
        return packed(ctx);
    struct pages_block *b = ctx ? pages_block_make(ctx, size, NULL) : NULL;
    bool done = b && publish(b, pointer);
    release(ctx);
    if (!done)
        return size ? plain(size) : false;
    *r = CUDA_SUCCESS;
    return true;
}

bool pages_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                       CUresult *r)
{
    bool right = pointer && pitch && width && height && (element == 4 || element == 8 || element == 16);
    struct context *ctx = pages_on && right ? context_current() : NULL;
    size_t granule = ctx ? context_device_pitch(ctx->device) : 0, row, size;
    if (!granule || __builtin_add_overflow(width, granule - 1, &row))
        return pages_on && right ? plain(width) : false;
    row &= ~(granule - 1);
    if (__builtin_mul_overflow(row, height, &size) || !pages_alloc(pointer, size, r))
        return false;
    *pitch = row;
    return true;
}

static bool alloc_in_order(struct context *ctx, CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                           CUstream stream, bool per_thread)
{
    struct pages_block same, *b = NULL;
    if (!pages_pool_usable(ctx->device, &pool))
        return false;
    if (pages_order_reuse(&same, size, ctx, pool, stream, per_thread)) {
        b = pages_block_make(ctx, size, &same);
        if (!b)
            pages_memory_give(&same.memory);
    }
    if (!b)
        b = pages_block_make(ctx, size, NULL);
    if (!b)
        return false;
    b->pool = pool;
    return publish(b, pointer);
}

bool pages_alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream, bool per_thread,
                       CUresult *r)
{
    if (!pages_on || !pointer || !size)
        return false;
    pages_poll();
    struct context *ctx = ready(size);
    if (ctx && pages_memory_should_pack(size))
        return packed(ctx);
    bool done = ctx && alloc_in_order(ctx, pointer, size, pool, stream, per_thread);
    release(ctx);
    *r = CUDA_SUCCESS;
    return done ? true : plain(size);
}

// Withdraws the buffer that starts at `pointer`, and holds its context, if that is not destroyed: *held ==
// NULL. Returns NULL if there is no such buffer, or if its context ends.
static struct pages_block *take(CUdeviceptr pointer, struct context **held)
{
    unsigned section = epoch_enter();
    const struct pages_block *found = pages_block_find(pointer);
    CUcontext context = found ? found->context : NULL;
    epoch_leave(section);
    *held = context ? context_find(context) : NULL;
    if (!found || (*held && !context_hold(*held, context)))
        return NULL;
    struct pages_block *b = pages_block_withdraw(pointer);
    if (!b)
        release(*held);
    return b;
}

bool pages_free(CUdeviceptr pointer, enum driver_id call, CUresult *r)
{
    struct context *held;
    struct pages_block *b = pages_on && pointer ? take(pointer, &held) : NULL;
    bool pushed;
    if (!b)
        return false;
    pages_poll();
    struct context *ctx = context_enter(b->context, &pushed);
    *r = ctx ? context_wait_as_free(ctx) : CUDA_ERROR_INVALID_CONTEXT;
    if (!*r)
        pages_block_check(ctx, b, call, "found when the buffer was freed; the write happened earlier");
    if (ctx)
        context_leave(pushed);
    if (!*r)
        pages_block_dispose(b);
    else if (!pages_block_publish(b))
        guard_count(GUARD_UNTRACKED);
    release(held);
    return true;
}

bool pages_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                      enum driver_id call, CUresult *r)
{
    struct mode_answer answer;
    struct context *held;
    if (!pages_on || !pointer)
        return false;
    if (captured) {
        bool ours = pages_ask(pointer, &answer) == MODE_BUFFER && answer.base == pointer;
        if (ours)
            guard_count(GUARD_PAGES_KEPT);
        *r = CUDA_SUCCESS;
        return ours;
    }
    struct pages_block *b = take(pointer, &held);
    if (!b)
        return false;
    *r = pages_order_free(b, stream, per_thread, call);
    if (*r && !pages_block_publish(b))
        guard_count(GUARD_UNTRACKED);
    release(held);
    pages_poll();
    return true;
}

bool pages_reclaim(void)
{
    uint64_t before = atomic_load_explicit(&pages_order_waiting, memory_order_relaxed);
    if (!pages_on || !atomic_load_explicit(&used, memory_order_relaxed))
        return false;
    pages_order_unmap(UINT32_MAX, true);
    pages_memory_trim();
    pages_packed_trim();
    return before || pages_memory_extra();
}

// As with the driver's own memory, buffers of a pool cannot be shared.
static bool is_shareable(const struct pages_block *b)
{
    return !b->pool && context_device_of(b->device)->exportable;
}

bool pages_share(CUdeviceptr pointer, CUipcMemHandle *handle)
{
    if (!pages_on || !handle)
        return false;
    unsigned section = epoch_enter();
    const struct pages_block *b = pages_block_find(pointer);
    bool may = b && pointer - b->base < b->size && is_shareable(b);
    uint64_t base = may ? b->base : 0;
    struct share_memory m = {.fd = -1};
    CUmemGenericAllocationHandle memory = may ? b->memory.handle : 0;
    if (may)
        m = (struct share_memory){
            .offset = b->memory.offset, .size = b->size, .bytes = b->memory.bytes, .fd = -1};
    epoch_leave(section);
    if (!may || share_offered(base, handle))
        return may;
    return !guard.real.cuMemExportToShareableHandle(&m.fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                    0) &&
           !share_offer(base, &m, handle);
}

void pages_stop(const char *why)
{
    if (pages_on && !atomic_exchange_explicit(&stopped, true, memory_order_relaxed))
        guard_report_note("pages: %s: memory allocated from now on is plain", why);
}

enum mode_what pages_ask(uint64_t address, struct mode_answer *answer)
{
    if (!pages_on)
        return MODE_NOT_OURS;
    unsigned section = epoch_enter();
    const struct pages_block *b = pages_block_find(address);
    enum mode_what what = !b ? MODE_NOT_OURS : address - b->base < b->size ? MODE_BUFFER : MODE_AROUND;
    if (b)
        *answer = (struct mode_answer){
            .base = b->base,
            .size = b->size,
            .mapped = true,
            .context = b->context,
            .pool = b->pool,
            .shareable = is_shareable(b),
        };
    epoch_leave(section);
    return what;
}

void pages_context_ends(CUcontext context, enum driver_id call)
{
    struct ending ending = {context, call};
    if (pages_on && context && pages_block_count() && context_find(context))
        pages_block_each(check_one, &ending);
}

// Unmaps the buffers of a destroyed context. Mapped memory belongs to the process, while plain memory would
// have been freed with its context.
void pages_context_gone(CUcontext context)
{
    struct pages_block *b;
    if (!pages_on || !context)
        return;
    pages_order_context_gone(context);
    while ((b = pages_block_withdraw_any(context)))
        pages_block_dispose(b);
    pages_block_orphan(context);
}
