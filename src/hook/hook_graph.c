// SPDX-License-Identifier: MIT
// Captures: what they forbid must not be done without the driver. Executable graphs: which kernels they run is learnt here, for
// reports to name them. Their launches are in hook_launch.c.
#include "context/capture_rule.h"
#include "launch/graph_names.h"
#include "core/guard.h"
#include "hook/hook.h"

#define BEGIN(symbol, mode, parameters, arguments) \
    CUresult hook_##symbol parameters              \
    {                                              \
        CUresult r = guard.real.symbol arguments;  \
        if (!r && guard.watching)                  \
            capture_rule_begun(q, mode);           \
        return r;                                  \
    }
#define END(symbol)                                \
    CUresult hook_##symbol(CUstream q, CUgraph *g) \
    {                                              \
        CUresult r = guard.real.symbol(q, g);      \
        capture_rule_ended(q);                     \
        return r;                                  \
    }
#define CAPTURE(suffix)                                                                             \
    BEGIN(cuStreamBeginCapture##suffix, CU_STREAM_CAPTURE_MODE_GLOBAL, (CUstream q), (q))           \
    BEGIN(cuStreamBeginCapture_v2##suffix, mode, (CUstream q, CUstreamCaptureMode mode), (q, mode)) \
    BEGIN(cuStreamBeginCaptureToGraph##suffix, mode,                                                \
          (CUstream q, CUgraph g, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n, \
           CUstreamCaptureMode mode),                                                               \
          (q, g, after, edges, n, mode))                                                            \
    END(cuStreamEndCapture##suffix)
CAPTURE()
CAPTURE(_ptsz)

#define MADE(symbol, parameters, arguments)             \
    CUresult hook_##symbol parameters                   \
    {                                                   \
        CUresult r = guard.real.symbol arguments;       \
        HOOK_TRY_AGAIN(r, guard.real.symbol arguments); \
        if (!r && guard.watching)                       \
            graph_names_made(*e, g);                    \
        return r;                                       \
    }
MADE(cuGraphInstantiate, (CUgraphExec * e, CUgraph g, CUgraphNode *node, char *log, size_t n),
     (e, g, node, log, n))
MADE(cuGraphInstantiate_v2, (CUgraphExec * e, CUgraph g, CUgraphNode *node, char *log, size_t n),
     (e, g, node, log, n))
MADE(cuGraphInstantiateWithFlags, (CUgraphExec * e, CUgraph g, unsigned long long flags), (e, g, flags))
MADE(cuGraphInstantiateWithParams, (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), (e, g, p))
MADE(cuGraphInstantiateWithParams_ptsz, (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p),
     (e, g, p))

#define CHANGED(symbol, change, parameters, arguments) \
    CUresult hook_##symbol parameters                  \
    {                                                  \
        CUresult r = guard.real.symbol arguments;      \
        if (!r && guard.watching)                      \
            change;                                    \
        return r;                                      \
    }
CHANGED(cuGraphExecUpdate, graph_names_made(e, g),
        (CUgraphExec e, CUgraph g, CUgraphNode *node, CUgraphExecUpdateResult *result), (e, g, node, result))
CHANGED(cuGraphExecUpdate_v2, graph_names_made(e, g),
        (CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *result), (e, g, result))
CHANGED(cuGraphExecKernelNodeSetParams, graph_names_add_kernel(e, p->func, NULL),
        (CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p), (e, node, p))
CHANGED(cuGraphExecKernelNodeSetParams_v2, graph_names_add_kernel(e, p->func, p->kern),
        (CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p), (e, node, p))
CHANGED(cuGraphExecChildGraphNodeSetParams, graph_names_add_graph(e, g),
        (CUgraphExec e, CUgraphNode node, CUgraph g), (e, node, g))

// Before the call: after it another thread may have got the same handle.
CUresult hook_cuGraphExecDestroy(CUgraphExec e)
{
    graph_names_forget(e);
    return guard.real.cuGraphExecDestroy(e);
}
