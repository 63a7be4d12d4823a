// SPDX-License-Identifier: MIT
// Nodes of graphs whose parameters differ between the runtime and the driver: the runtime names kernels by
// their stubs, copies in elements of arrays, and everything without its context.
#include <string.h>

#include "runtime/rt_copy3d.h"
#include "runtime/rt_registry.h"

static cudaError_t context_now(CUcontext *context)
{
    return rt_error(RT_RAW(cuCtxGetCurrent, context));
}

// Kernels.

static cudaError_t kernel_to_driver(CUDA_KERNEL_NODE_PARAMS *to, const cudaKernelNodeParams *from)
{
    CUkernel kernel;
    cudaError_t error = from ? rt_registry_kernel(from->func, &kernel) : cudaErrorInvalidValue;

    if (error)
        return error;
    *to = (CUDA_KERNEL_NODE_PARAMS){
        .gridDimX = from->gridDim.x,
        .gridDimY = from->gridDim.y,
        .gridDimZ = from->gridDim.z,
        .blockDimX = from->blockDim.x,
        .blockDimY = from->blockDim.y,
        .blockDimZ = from->blockDim.z,
        .sharedMemBytes = from->sharedMemBytes,
        .kernelParams = from->kernelParams,
        .extra = from->extra,
        .kern = kernel,
    };
    return cudaSuccess;
}

static void kernel_from_driver(cudaKernelNodeParams *to, const CUDA_KERNEL_NODE_PARAMS *from)
{
    CUkernel kernel = from->kern ? from->kern : (CUkernel)from->func;

    *to = (cudaKernelNodeParams){
        .func = (void *)(uintptr_t)rt_registry_stub(kernel),
        .gridDim = {from->gridDimX, from->gridDimY, from->gridDimZ},
        .blockDim = {from->blockDimX, from->blockDimY, from->blockDimZ},
        .sharedMemBytes = from->sharedMemBytes,
        .kernelParams = from->kernelParams,
        .extra = from->extra,
    };
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS driver_params;

    RT_ENTER();
    RT_TRY(kernel_to_driver(&driver_params, params));
    return RT_CALL(cuGraphAddKernelNode_v2, node, graph, dependencies, count, &driver_params);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS driver_params;

    RT_ENTER();
    RT_REQUIRE(params);
    RT_TRY(rt_error(RT_RAW(cuGraphKernelNodeGetParams_v2, node, &driver_params)));
    kernel_from_driver(params, &driver_params);
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS driver_params;

    RT_ENTER();
    RT_TRY(kernel_to_driver(&driver_params, params));
    return RT_CALL(cuGraphKernelNodeSetParams_v2, node, &driver_params);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS driver_params;

    RT_ENTER();
    RT_TRY(kernel_to_driver(&driver_params, params));
    return RT_CALL(cuGraphExecKernelNodeSetParams_v2, exec, node, &driver_params);
}

// Copies. Each of three kinds (any, one dimension, to and from a variable) for each of three uses.

static cudaError_t any_copy(CUDA_MEMCPY3D *copy, const cudaMemcpy3DParms *params)
{
    return params ? rt_copy3d_to_driver(copy, params) : cudaErrorInvalidValue;
}

static cudaError_t copy_to(CUDA_MEMCPY3D *copy, const void *symbol, const void *src, size_t size,
                           size_t offset, cudaMemcpyKind kind)
{
    void *address;
    cudaError_t error = rt_copy_symbol(symbol, offset, size, &address);
    return error ? error : rt_copy_line(copy, address, src, size, kind);
}

static cudaError_t copy_from(CUDA_MEMCPY3D *copy, void *dst, const void *symbol, size_t size, size_t offset,
                             cudaMemcpyKind kind)
{
    void *address;
    cudaError_t error = rt_copy_symbol(symbol, offset, size, &address);
    return error ? error : rt_copy_line(copy, dst, address, size, kind);
}

#define COPY_NODE(suffix, parameters, make)                                                          \
    cudaError_t cudaGraphAddMemcpyNode##suffix(cudaGraphNode_t *node, cudaGraph_t graph,             \
                                               const cudaGraphNode_t *dependencies, size_t count,    \
                                               COPY_UNPACK parameters)                               \
    {                                                                                                \
        CUDA_MEMCPY3D copy;                                                                          \
        CUcontext context;                                                                           \
        RT_ENTER();                                                                                  \
        RT_TRY(make);                                                                                \
        RT_TRY(context_now(&context));                                                               \
        return RT_CALL(cuGraphAddMemcpyNode, node, graph, dependencies, count, &copy, context);      \
    }                                                                                                \
    cudaError_t cudaGraphMemcpyNodeSetParams##suffix(cudaGraphNode_t node, COPY_UNPACK parameters)   \
    {                                                                                                \
        CUDA_MEMCPY3D copy;                                                                          \
        RT_ENTER();                                                                                  \
        RT_TRY(make);                                                                                \
        return RT_CALL(cuGraphMemcpyNodeSetParams, node, &copy);                                     \
    }                                                                                                \
    cudaError_t cudaGraphExecMemcpyNodeSetParams##suffix(cudaGraphExec_t exec, cudaGraphNode_t node, \
                                                         COPY_UNPACK parameters)                     \
    {                                                                                                \
        CUDA_MEMCPY3D copy;                                                                          \
        CUcontext context;                                                                           \
        RT_ENTER();                                                                                  \
        RT_TRY(make);                                                                                \
        RT_TRY(context_now(&context));                                                               \
        return RT_CALL(cuGraphExecMemcpyNodeSetParams, exec, node, &copy, context);                  \
    }
#define COPY_UNPACK(...) __VA_ARGS__

COPY_NODE(, (const cudaMemcpy3DParms *params), any_copy(&copy, params))
COPY_NODE(1D, (void *dst, const void *src, size_t size, cudaMemcpyKind kind),
          rt_copy_line(&copy, dst, src, size, kind))
COPY_NODE(ToSymbol, (const void *symbol, const void *src, size_t size, size_t offset, cudaMemcpyKind kind),
          copy_to(&copy, symbol, src, size, offset, kind))
COPY_NODE(FromSymbol, (void *dst, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind),
          copy_from(&copy, dst, symbol, size, offset, kind))

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D copy;

    RT_ENTER();
    RT_REQUIRE(params);
    RT_TRY(rt_error(RT_RAW(cuGraphMemcpyNodeGetParams, node, &copy)));
    return rt_return(rt_copy3d_from_driver(params, &copy));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const cudaMemsetParams *params)
{
    CUcontext context;

    RT_ENTER();
    RT_TRY(context_now(&context));
    return RT_CALL(cuGraphAddMemsetNode, node, graph, dependencies, count, params, context);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams *params)
{
    CUcontext context;

    RT_ENTER();
    RT_TRY(context_now(&context));
    return RT_CALL(cuGraphExecMemsetNodeSetParams, exec, node, params, context);
}

// Nodes of any type.

static cudaError_t special_to_driver(CUgraphNodeParams *to, const cudaGraphNodeParams *from,
                                     CUcontext context)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error;

    switch (from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        error = kernel_to_driver(&kernel, &from->kernel);
        _Static_assert(sizeof kernel == sizeof to->kernel,
                       "the second and third kernel parameters are alike");
        if (!error)
            memcpy(&to->kernel, &kernel, sizeof kernel);
        return error;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        to->memcpy = (CUDA_MEMCPY_NODE_PARAMS){.flags = from->memcpy.flags, .copyCtx = context};
        return rt_copy3d_to_driver(&to->memcpy.copyParams, &from->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: to->memset.ctx = context; return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: to->conditional.ctx = context; return cudaSuccess;
    default: return cudaSuccess;
    }
}

static cudaError_t node_to_driver(CUgraphNodeParams *to, const cudaGraphNodeParams *from)
{
    CUcontext context;
    cudaError_t error = from ? context_now(&context) : cudaErrorInvalidValue;

    if (error)
        return error;
    // All other types have the same layout on both sides.
    _Static_assert(sizeof *to == sizeof *from, "node parameters have one size");
    memcpy(to, from, sizeof *to);
    return special_to_driver(to, from, context);
}

// Copies the results that the driver stores in the parameters.
static void node_results(cudaGraphNodeParams *to, const CUgraphNodeParams *from)
{
    if (to->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        to->alloc.dptr = from->alloc.dptr;
    else if (to->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        to->conditional.phGraph_out = from->conditional.phGraph_out;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             const cudaGraphEdgeData *edges, size_t count, cudaGraphNodeParams *params)
{
    CUgraphNodeParams driver_params;

    RT_ENTER();
    RT_TRY(node_to_driver(&driver_params, params));
    RT_TRY(rt_error(RT_RAW(cuGraphAddNode_v2, node, graph, dependencies, edges, count, &driver_params)));
    node_results(params, &driver_params);
    return cudaSuccess;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *params)
{
    CUgraphNodeParams driver_params;

    RT_ENTER();
    RT_TRY(node_to_driver(&driver_params, params));
    return RT_CALL(cuGraphNodeSetParams, node, &driver_params);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams *params)
{
    CUgraphNodeParams driver_params;

    RT_ENTER();
    RT_TRY(node_to_driver(&driver_params, params));
    return RT_CALL(cuGraphExecNodeSetParams, exec, node, &driver_params);
}
