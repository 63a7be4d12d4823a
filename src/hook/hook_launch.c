// SPDX-License-Identifier: MIT
// Launches, and calls that wait for them or ask for them and so learn of their faults.
#include "context/green.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "hook/hook_context.h"
#include "launch/kernel_fault.h"
#include "launch/launch_call.h"
#include "launch/launch_ring.h"

#define LAUNCH(symbol, parameters, arguments)              \
    CUresult hook_##symbol parameters                      \
    {                                                      \
        launch_ring_note(f);                               \
        mode_launch(&(struct launch_call){.function = f}); \
        mode_poll();                                       \
        CUresult r = guard.real.symbol arguments;          \
        HOOK_TRY_AGAIN(r, guard.real.symbol arguments);    \
        launch_ring_made();                                \
        return kernel_fault_seen(r);                       \
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

// The oldest way.
LAUNCH(cuLaunch, (CUfunction f), (f))
LAUNCH(cuLaunchGrid, (CUfunction f, int gx, int gy), (f, gx, gy))
LAUNCH(cuLaunchGridAsync, (CUfunction f, int gx, int gy, CUstream q), (f, gx, gy, q))

#define ASK(symbol, parameters, arguments)        \
    CUresult hook_##symbol parameters             \
    {                                             \
        CUresult r = guard.real.symbol arguments; \
        mode_poll();                              \
        return kernel_fault_seen(r);              \
    }
// all: it waits for every kernel that was launched before.
#define WAIT(symbol, all, parameters, arguments)                  \
    CUresult hook_##symbol parameters                             \
    {                                                             \
        uint64_t launches = launch_ring_all_made();               \
        CUresult r = guard.real.symbol arguments;                 \
        mode_poll();                                              \
        mode_waited(DRIVER_##symbol, (all) && !r ? launches : 0); \
        return kernel_fault_seen(r);                              \
    }

// Any context waits for its own only, and so does a green one.
static bool is_alone(void)
{
    return !atomic_load_explicit(&green_used, memory_order_relaxed) && home_only_one();
}

WAIT(cuCtxSynchronize, is_alone(), (void), ())
WAIT(cuCtxSynchronize_v2, false, (CUcontext c), (c))
WAIT(cuStreamSynchronize, false, (CUstream q), (q))
WAIT(cuStreamSynchronize_ptsz, false, (CUstream q), (q))
WAIT(cuEventSynchronize, false, (CUevent e), (e))
ASK(cuStreamQuery, (CUstream q), (q))
ASK(cuStreamQuery_ptsz, (CUstream q), (q))
ASK(cuEventQuery, (CUevent e), (e))

#define LAUNCH_GRAPH(symbol)                            \
    CUresult hook_##symbol(CUgraphExec g, CUstream q)   \
    {                                                   \
        launch_ring_note_graph(graph_names_of(g));      \
        mode_launch(&(struct launch_call){.graph = g}); \
        mode_poll();                                    \
        CUresult r = guard.real.symbol(g, q);           \
        HOOK_TRY_AGAIN(r, guard.real.symbol(g, q));     \
        launch_ring_made();                             \
        return kernel_fault_seen(r);                    \
    }
LAUNCH_GRAPH(cuGraphLaunch)
LAUNCH_GRAPH(cuGraphLaunch_ptsz)
