// SPDX-License-Identifier: MIT
// Kernels that a mode launches in place of the program's: what the program sets in a kernel is set in its
// variant too, what it asks is answered for the one that needs more, and variants are never listed.
#include <string.h>

#include "context/kernels.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "mode/mode.h"

// Executes what follows for each variant of a kernel, if the program's own call succeeded.
#define EACH_VARIANT(r, handle) \
    const void *variant = NULL; \
    for (unsigned n_ = 0; !(r) && mode_any && (variant = mode_variant(handle, n_)); n_++)

// Evaluates `own`; if it succeeds, also `other` for each variant, whose result nobody sees: a launch that the
// variant does not take is made without it.
#define BOTH(handle, own, other) \
    CUresult r = own;            \
    EACH_VARIANT(r, handle)      \
    (void)other;                 \
    return r

CUresult hook_cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value)
{
    BOTH(f, guard.real.cuFuncSetAttribute(f, a, value),
         guard.real.cuFuncSetAttribute((CUfunction)variant, a, value));
}

CUresult hook_cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
    BOTH(f, guard.real.cuFuncSetCacheConfig(f, config),
         guard.real.cuFuncSetCacheConfig((CUfunction)variant, config));
}

CUresult hook_cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
    BOTH(f, guard.real.cuFuncSetSharedMemConfig(f, config),
         guard.real.cuFuncSetSharedMemConfig((CUfunction)variant, config));
}

CUresult hook_cuKernelSetAttribute(CUfunction_attribute a, int value, CUkernel k, CUdevice device)
{
    BOTH(k, guard.real.cuKernelSetAttribute(a, value, k, device),
         guard.real.cuKernelSetAttribute(a, value, (CUkernel)variant, device));
}

CUresult hook_cuKernelSetCacheConfig(CUkernel k, CUfunc_cache config, CUdevice device)
{
    BOTH(k, guard.real.cuKernelSetCacheConfig(k, config, device),
         guard.real.cuKernelSetCacheConfig((CUkernel)variant, config, device));
}

// --- answers -----------------------------------------------------------------------------------------------

// Evaluates `own`, and `other` into `least`, for each variant; *to becomes the smallest one.
#define LEAST(type, to, handle, own, other) \
    type least;                             \
    CUresult r = own;                       \
    EACH_VARIANT(r, handle)                 \
    if (!other && least < *(to))            \
        *(to) = least;                      \
    return r

CUresult hook_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int block, size_t shared)
{
    LEAST(int, n, f, guard.real.cuOccupancyMaxActiveBlocksPerMultiprocessor(n, f, block, shared),
          guard.real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&least, (CUfunction)variant, block, shared));
}

CUresult hook_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, CUfunction f, int block,
                                                                   size_t shared, unsigned flags)
{
    LEAST(int, n, f,
          guard.real.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, block, shared, flags),
          guard.real.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&least, (CUfunction)variant, block,
                                                                          shared, flags));
}

CUresult hook_cuOccupancyAvailableDynamicSMemPerBlock(size_t *n, CUfunction f, int blocks, int block)
{
    LEAST(size_t, n, f, guard.real.cuOccupancyAvailableDynamicSMemPerBlock(n, f, blocks, block),
          guard.real.cuOccupancyAvailableDynamicSMemPerBlock(&least, (CUfunction)variant, blocks, block));
}

CUresult hook_cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *config)
{
    LEAST(int, n, f, guard.real.cuOccupancyMaxActiveClusters(n, f, config),
          guard.real.cuOccupancyMaxActiveClusters(&least, (CUfunction)variant, config));
}

CUresult hook_cuOccupancyMaxPotentialClusterSize(int *n, CUfunction f, const CUlaunchConfig *config)
{
    LEAST(int, n, f, guard.real.cuOccupancyMaxPotentialClusterSize(n, f, config),
          guard.real.cuOccupancyMaxPotentialClusterSize(&least, (CUfunction)variant, config));
}

// The block of the smallest answer is the one that all can run.
CUresult hook_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f,
                                               CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
    int least;
    CUresult r = guard.real.cuOccupancyMaxPotentialBlockSize(grid, block, f, shared_of, shared, limit);
    EACH_VARIANT(r, f)
    if (!guard.real.cuOccupancyMaxPotentialBlockSize(grid, &least, (CUfunction)variant, shared_of, shared,
                                                     *block) &&
        least < *block)
        *block = least;
    return r;
}

CUresult hook_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                        CUoccupancyB2DSize shared_of, size_t shared,
                                                        int limit, unsigned flags)
{
    int least;
    CUresult r =
        guard.real.cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, f, shared_of, shared, limit, flags);
    EACH_VARIANT(r, f)
    if (!guard.real.cuOccupancyMaxPotentialBlockSizeWithFlags(grid, &least, (CUfunction)variant, shared_of,
                                                              shared, *block, flags) &&
        least < *block)
        *block = least;
    return r;
}

// A program that asks how large its blocks may be launches such blocks. All else is about its own kernel.
#define IS_LIMIT(a) ((a) == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)

CUresult hook_cuFuncGetAttribute(int *value, CUfunction_attribute a, CUfunction f)
{
    LEAST(int, value, f, guard.real.cuFuncGetAttribute(value, a, f),
          (!IS_LIMIT(a) || guard.real.cuFuncGetAttribute(&least, a, (CUfunction)variant)));
}

CUresult hook_cuKernelGetAttribute(int *value, CUfunction_attribute a, CUkernel k, CUdevice device)
{
    LEAST(int, value, k, guard.real.cuKernelGetAttribute(value, a, k, device),
          (!IS_LIMIT(a) || guard.real.cuKernelGetAttribute(&least, a, (CUkernel)variant, device)));
}
