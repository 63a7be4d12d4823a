// SPDX-License-Identifier: MIT
// How many blocks a multiprocessor of an H200 would run. The number of registers is our estimate, so
// registers alone never prevent a block from running.
#include "cpu/module.h"

static unsigned attribute(CUdevice_attribute a)
{
    return (unsigned)device_attribute(a);
}

static uint64_t round_up(uint64_t n, uint64_t step)
{
    return (n + step - 1) / step * step;
}

static unsigned least(unsigned a, uint64_t b)
{
    return b < a ? (unsigned)b : a;
}

// Registers are allocated to warps in units of 256, and to blocks for four warps at a time.
static uint64_t blocks_by_registers(const struct exec_kernel *k, uint64_t warps)
{
    uint64_t per_warp = round_up((uint64_t)k->nregs * 32, 256);
    if (!per_warp)
        return UINT32_MAX;
    uint64_t fit = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / per_warp / 4 * 4;
    uint64_t blocks = fit / round_up(warps, 4);
    return blocks ? blocks : 1;
}

unsigned occupancy_blocks(const struct exec_kernel *k, const struct function_settings *s, uint64_t threads,
                          uint64_t dynamic_shared)
{
    if (!threads || threads > attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ||
        dynamic_shared > (uint64_t)atomic_load(&s->max_dynamic_shared))
        return 0;
    uint64_t warps = round_up(threads, 32) / 32;
    uint64_t shared = k->shared_size + dynamic_shared;
    shared = round_up(shared + attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), 128);
    unsigned n = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    n = least(n, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / 32 / warps);
    n = least(n, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared);
    return least(n, blocks_by_registers(k, warps));
}

static CUresult check(CUfunction handle, struct CUfunc_st **out)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : function_get(handle, ctx, true, out);
}

static CUresult active_blocks(int *blocks, CUfunction handle, int threads, size_t dynamic, unsigned flags)
{
    struct CUfunc_st *f;
    CUresult r = check(handle, &f);
    if (r || !blocks || threads <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *blocks = (int)occupancy_blocks(f->kernel, f->settings, (uint64_t)threads, dynamic);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t dynamic)
{
    return active_blocks(blocks, f, threads, dynamic, 0);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f, int threads,
                                                              size_t dynamic, unsigned int flags)
{
    return active_blocks(blocks, f, threads, dynamic, flags);
}

// Finds the largest block size of those that keep the most threads resident.
static CUresult potential_block(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize size_of,
                                size_t dynamic, int limit, unsigned flags)
{
    struct CUfunc_st *f;
    CUresult r = check(handle, &f);
    if (r || !grid || !block || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    int most = (int)f->kernel->max_threads, best_blocks = 0, best = 0;
    if (limit > 0 && limit < most)
        most = limit;
    for (int warps = (most + 31) / 32; warps > 0; warps--) {
        int threads = warps * 32 < most ? warps * 32 : most;
        size_t bytes = size_of ? size_of(threads) : dynamic;
        int blocks = (int)occupancy_blocks(f->kernel, f->settings, (uint64_t)threads, bytes);
        if (blocks * threads > best_blocks * best) {
            best_blocks = blocks;
            best = threads;
        }
    }
    *block = best;
    *grid = best_blocks * (int)device_sm_count();
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f, CUoccupancyB2DSize size_of,
                                          size_t dynamic, int limit)
{
    return potential_block(grid, block, f, size_of, dynamic, limit, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                   CUoccupancyB2DSize size_of, size_t dynamic, int limit,
                                                   unsigned int flags)
{
    return potential_block(grid, block, f, size_of, dynamic, limit, flags);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks, int threads)
{
    struct CUfunc_st *f;
    CUresult r = check(handle, &f);
    if (r || !bytes || blocks <= 0 || threads <= 0 ||
        (unsigned)blocks > occupancy_blocks(f->kernel, f->settings, (uint64_t)threads, 0))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    size_t share =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / (unsigned)blocks / 128 * 128;
    size_t most = (size_t)atomic_load(&f->settings->max_dynamic_shared);
    share = share > f->kernel->shared_size ? share - f->kernel->shared_size : 0;
    *bytes = share < most ? share : most;
    return CUDA_SUCCESS;
}

static uint64_t resident_blocks(const struct CUfunc_st *f, const CUlaunchConfig *config)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY;
    // Three dimensions of 32 bits could overflow; two such already exceed every block.
    threads = threads > UINT32_MAX ? UINT32_MAX : threads * config->blockDimZ;
    return (uint64_t)occupancy_blocks(f->kernel, f->settings, threads, config->sharedMemBytes) *
           device_sm_count();
}

// 8 blocks work on every GPU that has clusters; 16 on some, for functions that are allowed them.
CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config)
{
    struct CUfunc_st *f;
    CUresult r = check(handle, &f);
    if (r || !size || !config)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    int most = atomic_load(&f->settings->nonportable_cluster) ? 16 : 8;
    uint64_t blocks = resident_blocks(f, config);
    *size = blocks < (uint64_t)most ? (int)blocks : most;
    return CUDA_SUCCESS;
}

static uint64_t cluster_blocks(const struct CUfunc_st *f, const CUlaunchConfig *config)
{
    uint64_t n = 1;
    for (int i = 0; i < 3; i++)
        n *= f->kernel->required_cluster[i] ? f->kernel->required_cluster[i] : 1;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            n = (uint64_t)a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z;
    }
    return n ? n : 1;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
    struct CUfunc_st *f;
    CUresult r = check(handle, &f);
    if (r || !clusters || !config || (config->numAttrs && !config->attrs))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *clusters = (int)(resident_blocks(f, config) / cluster_blocks(f, config));
    return CUDA_SUCCESS;
}
