// SPDX-License-Identifier: MIT
// Captures: modes must not do what a capture forbids without the driver. Kernel nodes: modes see them.
// Executable graphs: the names of their kernels are collected here, for reports. Launches of graphs are in
// hook_launch.c.
#include "context/capture_rule.h"
#include "launch/graph_names.h"
#include "launch/launch_call.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "hook/hook_node.h"

#define BEGIN(symbol, mode, parameters, arguments) \
    CUresult hook_##symbol parameters              \
    {                                              \
        capture_rule_begins();                     \
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

#define MADE(symbol, flags, parameters, arguments)      \
    CUresult hook_##symbol parameters                   \
    {                                                   \
        CUresult r = guard.real.symbol arguments;       \
        HOOK_TRY_AGAIN(r, guard.real.symbol arguments); \
        if (!r && guard.watching) {                     \
            graph_names_made(*e, g);                    \
            mode_graph_made(*e, g, flags);              \
        }                                               \
        return r;                                       \
    }
MADE(cuGraphInstantiate, 0, (CUgraphExec * e, CUgraph g, CUgraphNode *node, char *log, size_t n),
     (e, g, node, log, n))
MADE(cuGraphInstantiate_v2, 0, (CUgraphExec * e, CUgraph g, CUgraphNode *node, char *log, size_t n),
     (e, g, node, log, n))
MADE(cuGraphInstantiateWithFlags, flags, (CUgraphExec * e, CUgraph g, unsigned long long flags),
     (e, g, flags))
// Parameters may be missing where a driver allows it.
#define FLAGS(p) ((p) ? (p)->flags : 0)
MADE(cuGraphInstantiateWithParams, FLAGS(p), (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p),
     (e, g, p))
MADE(cuGraphInstantiateWithParams_ptsz, FLAGS(p),
     (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), (e, g, p))

#define CHANGED(symbol, change, parameters, arguments) \
    CUresult hook_##symbol parameters                  \
    {                                                  \
        CUresult r = guard.real.symbol arguments;      \
        if (!r && guard.watching)                      \
            change;                                    \
        return r;                                      \
    }
static void updated(CUgraphExec e, CUgraph g)
{
    graph_names_made(e, g);
    mode_graph_updated(e, NULL, g);
}

void hook_graph_child_set(CUgraphExec e, CUgraphNode node, CUgraph g)
{
    graph_names_add_graph(e, g);
    mode_graph_updated(e, node, g);
}
CHANGED(cuGraphExecUpdate, updated(e, g),
        (CUgraphExec e, CUgraph g, CUgraphNode *node, CUgraphExecUpdateResult *result), (e, g, node, result))
CHANGED(cuGraphExecUpdate_v2, updated(e, g), (CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *result),
        (e, g, result))
CHANGED(cuGraphExecChildGraphNodeSetParams, hook_graph_child_set(e, node, g),
        (CUgraphExec e, CUgraphNode node, CUgraph g), (e, node, g))

// Called before the driver's call, because afterwards another thread may get the same handle.
CUresult hook_cuGraphExecDestroy(CUgraphExec e)
{
    graph_names_forget(e);
    CUgraph graph = mode_exec_ends(e);
    CUresult r = guard.real.cuGraphExecDestroy(e);
    if (graph)
        guard.real.cuGraphDestroy(graph);
    return r;
}

CUresult hook_cuGraphDestroy(CUgraph g)
{
    CUresult r;
    return mode_graph_ends(g, &r) ? r : guard.real.cuGraphDestroy(g);
}

CUresult hook_cuGraphDestroyNode(CUgraphNode node)
{
    mode_node_ends(node);
    return guard.real.cuGraphDestroyNode(node);
}

// Kernel nodes: the arguments after `arguments` fill the struct launch_node. kernel: used if there is no
// function.
#define NODE(symbol, kernel, then, parameters, arguments, ...)                                          \
    __attribute__((noinline)) static CUresult shown_##symbol parameters                                 \
    {                                                                                                   \
        HOOK_NODE_BODY(symbol, arguments, p, p->func ? (void *)p->func : (void *)(kernel), .params = p, \
                       __VA_ARGS__);                                                                    \
    }                                                                                                   \
    CUresult hook_##symbol parameters                                                                   \
    {                                                                                                   \
        CUresult r = p && mode_any ? shown_##symbol arguments : guard.real.symbol arguments;            \
        if (!r && p && guard.watching)                                                                  \
            then;                                                                                       \
        return r;                                                                                       \
    }
#define NODES(suffix, type, kernel)                                                                         \
    NODE(cuGraphAddKernelNode##suffix, kernel, (void)0,                                                     \
         (CUgraphNode * node, CUgraph g, const CUgraphNode *after, size_t count, const type *p),            \
         (node, g, after, count, p), .made = node, .graph = g, .after = after, .count = count)              \
    NODE(cuGraphKernelNodeSetParams##suffix, kernel, (void)0, (CUgraphNode node, const type *p), (node, p), \
         .node = node)                                                                                      \
    NODE(cuGraphExecKernelNodeSetParams##suffix, kernel, graph_names_add_kernel(e, p->func, kernel),        \
         (CUgraphExec e, CUgraphNode node, const type *p), (e, node, p), .exec = e, .node = node)
NODES(, CUDA_KERNEL_NODE_PARAMS_v1, NULL)
NODES(_v2, CUDA_KERNEL_NODE_PARAMS, p->kern)

// Returns the program's own kernel for a node whose kernel a mode has replaced. Hidden parameters come after
// those that the program reads.
CUresult hook_cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUresult r = guard.real.cuGraphKernelNodeGetParams(node, p);
    const void *handle = r ? NULL : p->func;
    enum kernels_kind kind;
    if (handle && launch_call_own(&handle, &kind))
        p->func = (CUfunction)handle;
    return r;
}

CUresult hook_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p)
{
    CUresult r = guard.real.cuGraphKernelNodeGetParams_v2(node, p);
    const void *handle = r ? NULL : p->func ? (const void *)p->func : (const void *)p->kern;
    enum kernels_kind kind;
    if (handle && launch_call_own(&handle, &kind)) {
        p->func = kind == KERNELS_KERNEL ? NULL : (CUfunction)handle;
        p->kern = kind == KERNELS_KERNEL ? (CUkernel)handle : NULL;
    }
    return r;
}
