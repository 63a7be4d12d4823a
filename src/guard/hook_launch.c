// SPDX-License-Identifier: MIT
// Launches, and calls that wait for them or ask for them and so learn of their faults.
#include "guard/count.h"
#include "guard/guard.h"
#include "guard/hook.h"
#include "guard/kernel_fault.h"
#include "guard/launch_ring.h"
#include "guard/pages.h"

#define LAUNCH(symbol, parameters, arguments)                  \
    CUresult hook_##symbol parameters                          \
    {                                                          \
        launch_ring_note(f);                                   \
        count_launch(f);                                       \
        pages_poll();                                          \
        return kernel_fault_seen(guard.real.symbol arguments); \
    }
#define LAUNCHES(symbol, parameters, arguments) \
    LAUNCH(symbol, parameters, arguments)       \
    LAUNCH(symbol##_ptsz, parameters, arguments)

LAUNCHES(cuLaunchKernel,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
          unsigned shared, CUstream q, void **arguments, void **extra),
         (f, gx, gy, gz, bx, by, bz, shared, q, arguments, extra))
LAUNCHES(cuLaunchCooperativeKernel,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
          unsigned shared, CUstream q, void **arguments),
         (f, gx, gy, gz, bx, by, bz, shared, q, arguments))
LAUNCHES(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra),
         (c, f, arguments, extra))

#define WAIT(symbol, parameters, arguments)       \
    CUresult hook_##symbol parameters             \
    {                                             \
        CUresult r = guard.real.symbol arguments; \
        pages_poll();                             \
        return kernel_fault_seen(r);              \
    }

WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext c), (c))
WAIT(cuStreamSynchronize, (CUstream q), (q))
WAIT(cuStreamSynchronize_ptsz, (CUstream q), (q))
WAIT(cuEventSynchronize, (CUevent e), (e))
WAIT(cuStreamQuery, (CUstream q), (q))
WAIT(cuStreamQuery_ptsz, (CUstream q), (q))
WAIT(cuEventQuery, (CUevent e), (e))
WAIT(cuGraphLaunch, (CUgraphExec g, CUstream q), (g, q))
WAIT(cuGraphLaunch_ptsz, (CUgraphExec g, CUstream q), (g, q))
