// SPDX-License-Identifier: MIT
// The calls that add nodes of each type and return their parameters.
#include "cpu/graphs.h"

// --- adding ------------------------------------------------------------------------------------------------

static CUresult add(CUgraphNode *out, CUgraph g, const CUgraphNode *after, const CUgraphEdgeData *edges,
                    size_t n, CUgraphNodeParams *p)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    r = out && graph_is(g) ? graph_node_add(g, after, edges, n, p, NULL, out) : CUDA_ERROR_INVALID_VALUE;
    graph_leave();
    return r;
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n, CUgraphNodeParams *p)
{
    return p ? add(out, g, after, NULL, n, p) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                           const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *p)
{
    return p ? add(out, g, after, edges, n, p) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                                  CUgraph child)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                             .kernel = {p->func, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
                                        p->blockDimY, p->blockDimZ, p->sharedMemBytes, p->kernelParams,
                                        p->extra, NULL, NULL}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                                 const CUDA_KERNEL_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                             .kernel = {p->func, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
                                        p->blockDimY, p->blockDimZ, p->sharedMemBytes, p->kernelParams,
                                        p->extra, p->kern, p->ctx}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                              const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *p}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .memset = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, ctx}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                            const CUDA_HOST_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {p->fn, p->userData}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                                   CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                                 CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                                CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                             .alloc = {p->poolProps, p->accessDescs, p->accessDescCount, p->bytesize, 0}};
    CUresult r = add(out, g, after, NULL, n, &all);
    p->dptr = r ? 0 : all.alloc.dptr;
    return r;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr p)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {p}};
    return add(out, g, after, NULL, n, &all);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                             .memOp = {p->ctx, p->count, p->paramArray, p->flags}};
    return add(out, g, after, NULL, n, &all);
}

// --- queries -----------------------------------------------------------------------------------------------

static CUresult ask(CUgraphNode n, CUgraphNodeType type, const void *out, CUgraphNodeParams *all)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!out || !graph_node_is(n) || n->work.type != type)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        graph_work_params(&n->work, all);
    graph_leave();
    return r;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_KERNEL, out, &all);
    const CUDA_KERNEL_NODE_PARAMS_v3 *k = &all.kernel;
    if (!r)
        *out = (CUDA_KERNEL_NODE_PARAMS_v1){k->func ? k->func : (CUfunction)(void *)k->kern,
                                            k->gridDimX,
                                            k->gridDimY,
                                            k->gridDimZ,
                                            k->blockDimX,
                                            k->blockDimY,
                                            k->blockDimZ,
                                            k->sharedMemBytes,
                                            k->kernelParams,
                                            k->extra};
    return r;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_KERNEL, out, &all);
    const CUDA_KERNEL_NODE_PARAMS_v3 *k = &all.kernel;
    if (!r)
        *out = (CUDA_KERNEL_NODE_PARAMS){k->func,         k->gridDimX,  k->gridDimY,  k->gridDimZ,
                                         k->blockDimX,    k->blockDimY, k->blockDimZ, k->sharedMemBytes,
                                         k->kernelParams, k->extra,     k->kern,      k->ctx};
    return r;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode n, CUDA_MEMCPY3D *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_MEMCPY, out, &all);
    if (!r)
        *out = all.memcpy.copyParams;
    return r;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_MEMSET, out, &all);
    if (!r)
        *out = (CUDA_MEMSET_NODE_PARAMS){all.memset.dst,         all.memset.pitch, all.memset.value,
                                         all.memset.elementSize, all.memset.width, all.memset.height};
    return r;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode n, CUDA_HOST_NODE_PARAMS *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_HOST, out, &all);
    if (!r)
        *out = (CUDA_HOST_NODE_PARAMS){all.host.fn, all.host.userData};
    return r;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_GRAPH, out, &all);
    if (!r)
        *out = all.graph.graph;
    return r;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode n, CUevent *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out, &all);
    if (!r)
        *out = all.eventRecord.event;
    return r;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode n, CUevent *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out, &all);
    if (!r)
        *out = all.eventWait.event;
    return r;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_MEM_ALLOC, out, &all);
    if (!r)
        *out = (CUDA_MEM_ALLOC_NODE_PARAMS){all.alloc.poolProps, all.alloc.accessDescs,
                                            all.alloc.accessDescCount, all.alloc.bytesize, all.alloc.dptr};
    return r;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode n, CUdeviceptr *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_MEM_FREE, out, &all);
    if (!r)
        *out = all.free.dptr;
    return r;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode n, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
    CUgraphNodeParams all;
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, out, &all);
    if (!r)
        *out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){all.memOp.ctx, all.memOp.count, all.memOp.paramArray,
                                               all.memOp.flags};
    return r;
}

// --- memory of all graphs ----------------------------------------------------------------------------------

static CUresult check_attribute(CUdevice device, const void *value)
{
    CUresult r = device_check(device);
    return r ? r : value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute a, void *value)
{
    CUresult r = check_attribute(device, value);
    if (r)
        return r;
    struct graph_memory_use use;
    graph_memory_use(device, &use);
    cuuint64_t *out = value;
    switch ((int)a) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *out = use.used; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *out = use.used_high; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *out = use.reserved; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *out = use.reserved_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

// The high-water marks can be reset to the current values.
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute a, void *value)
{
    CUresult r = check_attribute(device, value);
    if (r)
        return r;
    bool used = a == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, reserved = a == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if ((!used && !reserved) || *(cuuint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    graph_memory_reset_high(device, used, reserved);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult r = device_check(device);
    if (!r)
        graph_memory_trim(device);
    return r;
}
