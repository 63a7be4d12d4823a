// SPDX-License-Identifier: MIT
// cuMemAlloc and related calls.
#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/capture.h"
#include "cpu/graph_memory.h"
#include "cpu/memory.h"

struct memory_slabs memory_plain[CONFIG_DEVICES] = {
    [0 ... CONFIG_DEVICES - 1] = {.granule = MEMORY_GRANULE, .chunk = MEMORY_UNIT, .keep = MEMORY_UNIT},
};

static CUresult alloc(struct CUctx_st *ctx, uint64_t size, CUdeviceptr *out)
{
    struct memory_block *b = memory_block_new(MEMORY_PLAIN, ctx);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mutex_lock(&memory_lock);
    struct memory_slabs *slabs = memory_slab_of(memory_plain, b->device);
    b->piece = memory_slab_take(slabs, size, MEMORY_GRANULE);
    if (!b->piece) {
        memory_slab_trim(slabs, 0);
        memory_pool_trim(true);
        b->piece = memory_slab_take(slabs, size, MEMORY_GRANULE);
    }
    CUresult r = b->piece ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (!r) {
        memory_block_add(b, b->piece->base, size);
        *out = b->node.base;
    }
    mutex_unlock(&memory_lock);
    // Once it is added, the block may be freed as soon as the lock is: the end of the context frees it.
    if (r)
        mem_free(b);
    return r;
}

void memory_plain_release(struct memory_block *b)
{
    if (b->exported)
        ipc_memory_freed(b);
    memory_slab_give(memory_slab_of(memory_plain, b->device), b->piece);
    mem_free(b);
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!out || !size)
        return CUDA_ERROR_INVALID_VALUE;
    r = capture_unsafe();
    return r ? r : alloc(ctx, size, out);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t row = (width + MEMORY_GRANULE - 1) & ~(uint64_t)(MEMORY_GRANULE - 1), size;
    if (row < width || __builtin_mul_overflow(row, height, &size))
        return CUDA_ERROR_INVALID_VALUE;
    r = capture_unsafe();
    if (!r)
        r = alloc(ctx, size, out);
    if (!r)
        *pitch = row;
    return r;
}

// Returns the block that cuMemFree frees at p, or NULL.
static struct memory_block *freeable(CUdeviceptr p)
{
    struct memory_block *b = memory_block_at(p);
    bool ours = b && b->node.base == p &&
                (b->kind == MEMORY_PLAIN || b->kind == MEMORY_POOL || b->kind == MEMORY_GRAPH ||
                 (b->kind == MEMORY_MANAGED && b->pages));
    return ours ? b : NULL;
}

static bool release(struct memory_block *b)
{
    if (b->kind == MEMORY_GRAPH)
        return graph_memory_release(b);
    memory_block_remove(b);
    switch (b->kind) {
    case MEMORY_PLAIN: memory_plain_release(b); break;
    case MEMORY_POOL: memory_pool_release(b); break;
    case MEMORY_OPENED: ipc_memory_release(b); break;
    case MEMORY_HOST:
    case MEMORY_MANAGED:
    case MEMORY_REGISTERED: memory_host_release(b); break;
    default: mem_free(b);
    }
    return true;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
    struct CUctx_st *ctx, *owner = NULL;
    CUresult r = cpu_context_current(&ctx);
    if (r || !p)
        return r;
    mutex_lock(&memory_lock);
    struct memory_block *b = freeable(p);
    if (b)
        owner = b->ctx;
    mutex_unlock(&memory_lock);
    if (!b)
        return CUDA_ERROR_INVALID_VALUE;
    r = capture_unsafe();
    if (r)
        return r;
    // Kernels that use the memory run to their end. The lock is not held meanwhile, so the block is looked up
    // again.
    r = cpu_context_wait(ctx);
    if (!r && owner && owner != ctx)
        r = cpu_context_wait(owner);
    if (r)
        return r;
    mutex_lock(&memory_lock);
    b = freeable(p);
    bool done = b && release(b);
    mutex_unlock(&memory_lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    mutex_lock(&memory_lock);
    memory_pool_trim(false);
    uint64_t all = device_memory(), used = memory_slab_used(ctx->device) - memory_plain[ctx->device].empty;
    mutex_unlock(&memory_lock);
    if (available)
        *available = all - used;
    if (total)
        *total = all;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || (!base && !size))
        return r;
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at(p);
    if (b && base)
        *base = b->node.base;
    if (b && size)
        *size = b->node.size;
    mutex_unlock(&memory_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

void memory_context_free(struct CUctx_st *ctx)
{
    mutex_lock(&memory_lock);
    uint64_t from = 0;
    for (struct memory_block *b; (b = memory_block_of(ctx, from));) {
        from = memory_range_end(&b->node);
        release(b);
    }
    mutex_unlock(&memory_lock);
    memory_heap_context_free(ctx);
}
