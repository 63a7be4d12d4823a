// SPDX-License-Identifier: MIT
// Limits of a context. Requests are rounded and clamped as on an H200.
#include "cpu/cpu.h"

enum rule { UNKNOWN, FIXED, CLAMPED, CHECKED };

// value = step * n, least <= value <= most. CLAMPED clamps every request to the range; CHECKED refuses a
// request above it. 0 stays 0 if least is 0.
static const struct {
    enum rule rule;
    size_t initial, step, least, most;
} rules[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = {CHECKED, 1024, 16, 0, 512 << 10},
    [CU_LIMIT_PRINTF_FIFO_SIZE] = {CLAMPED, 8650752, 1, 512 << 10, (size_t)2 << 30},
    [CU_LIMIT_MALLOC_HEAP_SIZE] = {CLAMPED, 8 << 20, 1, 4 << 20, (size_t)1 << 40},
    [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = {UNKNOWN, 0, 0, 0, 0},
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = {CLAMPED, 2048, 1, 32, 599186},
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = {CHECKED, 64, 1, 0, 128},
    [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = {CHECKED, 11796480, 3932160, 0, 39321600},
    [CU_LIMIT_SHMEM_SIZE] = {FIXED, 232448, 1, 0, 0},
    [CU_LIMIT_CIG_ENABLED] = {FIXED, 0, 1, 0, 0},
    [CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED] = {UNKNOWN, 0, 0, 0, 0},
};

_Static_assert(sizeof((struct CUctx_st){0}.limits) / sizeof(size_t) >= CU_LIMIT_MAX, "room for all limits");

void cpu_context_limits_init(struct CUctx_st *ctx)
{
    for (int i = 0; i < CU_LIMIT_MAX; i++)
        atomic_store_explicit(&ctx->limits[i], rules[i].initial, memory_order_relaxed);
}

static CUresult known(CUlimit limit)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return rules[limit].rule == UNKNOWN ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_SUCCESS;
}

CUresult cpu_context_limit(const struct CUctx_st *ctx, CUlimit limit, size_t *value)
{
    CUresult r = known(limit);
    if (r || !value)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *value = cpu_context_limit_now(ctx, limit);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : cpu_context_limit(ctx, limit, value);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (!r)
        r = known(limit);
    if (r)
        return r;
    size_t least = rules[limit].least, most = rules[limit].most, step = rules[limit].step;
    if (rules[limit].rule == FIXED)
        return CUDA_ERROR_NOT_PERMITTED;
    if (rules[limit].rule == CHECKED && value > most)
        return CUDA_ERROR_INVALID_VALUE;
    value = value < least ? least : value > most ? most : value;
    atomic_store_explicit(&ctx->limits[limit], (value + step - 1) / step * step, memory_order_relaxed);
    return CUDA_SUCCESS;
}
