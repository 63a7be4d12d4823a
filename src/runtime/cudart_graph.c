// SPDX-License-Identifier: MIT
// Graphs, except for the parameters of their nodes, which are in cudart_graph_node.c.
#include "runtime/rt.h"

RT_THIN(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), cuGraphCreate, graph, flags)
RT_THIN(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy, graph)
RT_THIN(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), cuGraphClone, clone, graph)
RT_THIN(cudaGraphDestroyNode, (cudaGraphNode_t node), cuGraphDestroyNode, node)
RT_THIN(cudaGraphNodeFindInClone, (cudaGraphNode_t * found, cudaGraphNode_t node, cudaGraph_t clone),
        cuGraphNodeFindInClone, found, node, clone)
RT_THIN(cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType *type), cuGraphNodeGetType, node, type)
RT_THIN(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count), cuGraphGetNodes, graph,
        nodes, count)
RT_THIN(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
        cuGraphGetRootNodes, graph, nodes, count)
RT_THIN(cudaGraphGetEdges,
        (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
         size_t *count),
        cuGraphGetEdges_v2, graph, from, to, edges, count)
RT_THIN(cudaGraphNodeGetDependencies,
        (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
        cuGraphNodeGetDependencies_v2, node, nodes, edges, count)
RT_THIN(cudaGraphNodeGetDependentNodes,
        (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
        cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count)
RT_THIN(cudaGraphAddDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
         const cudaGraphEdgeData *edges, size_t count),
        cuGraphAddDependencies_v2, graph, from, to, edges, count)
RT_THIN(cudaGraphRemoveDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
         const cudaGraphEdgeData *edges, size_t count),
        cuGraphRemoveDependencies_v2, graph, from, to, edges, count)
RT_THIN(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned int flags),
        cuGraphDebugDotPrint, graph, path, flags)

RT_THIN(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiateWithFlags, exec, graph, flags)
RT_THIN(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiateWithFlags, exec, graph, flags)
RT_THIN(cudaGraphInstantiateWithParams,
        (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params),
        cuGraphInstantiateWithParams, exec, graph, params)
RT_THIN(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy, exec)
RT_THIN(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags), cuGraphExecGetFlags, exec,
        (cuuint64_t *)flags)
RT_THIN(cudaGraphExecUpdate, (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
        cuGraphExecUpdate_v2, exec, graph, info)
RT_THIN(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch, exec, stream)
RT_THIN(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphUpload, exec, stream)
RT_THIN(cudaGraphNodeGetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *enabled),
        cuGraphNodeGetEnabled, exec, node, enabled)
RT_THIN(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled),
        cuGraphNodeSetEnabled, exec, node, enabled)

RT_THIN(cudaUserObjectCreate,
        (cudaUserObject_t * object, void *pointer, cudaHostFn_t destroy, unsigned int count,
         unsigned int flags),
        cuUserObjectCreate, object, pointer, destroy, count, flags)
RT_THIN(cudaUserObjectRetain, (cudaUserObject_t object, unsigned int count), cuUserObjectRetain, object,
        count)
RT_THIN(cudaUserObjectRelease, (cudaUserObject_t object, unsigned int count), cuUserObjectRelease, object,
        count)
RT_THIN(cudaGraphRetainUserObject,
        (cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags),
        cuGraphRetainUserObject, graph, object, count, flags)
RT_THIN(cudaGraphReleaseUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned int count),
        cuGraphReleaseUserObject, graph, object, count)

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int initial, unsigned int flags)
{
    CUcontext context;

    RT_ENTER();
    RT_TRY(rt_error(RT_RAW(cuCtxGetCurrent, &context)));
    return RT_CALL(cuGraphConditionalHandleCreate, handle, graph, context, initial, flags);
}

// Nodes whose parameters need no conversion.
#define PLACE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count
#define THERE node, graph, dependencies, count

RT_THIN(cudaGraphAddEmptyNode, (PLACE), cuGraphAddEmptyNode, THERE)
RT_THIN(cudaGraphAddChildGraphNode, (PLACE, cudaGraph_t child), cuGraphAddChildGraphNode, THERE, child)
RT_THIN(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *child),
        cuGraphChildGraphNodeGetGraph, node, child)
RT_THIN(cudaGraphExecChildGraphNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child),
        cuGraphExecChildGraphNodeSetParams, exec, node, child)

RT_THIN(cudaGraphAddEventRecordNode, (PLACE, cudaEvent_t event), cuGraphAddEventRecordNode, THERE, event)
RT_THIN(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
        cuGraphEventRecordNodeGetEvent, node, event)
RT_THIN(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventRecordNodeSetEvent, node, event)
RT_THIN(cudaGraphExecEventRecordNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
        cuGraphExecEventRecordNodeSetEvent, exec, node, event)
RT_THIN(cudaGraphAddEventWaitNode, (PLACE, cudaEvent_t event), cuGraphAddEventWaitNode, THERE, event)
RT_THIN(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
        cuGraphEventWaitNodeGetEvent, node, event)
RT_THIN(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventWaitNodeSetEvent, node, event)
RT_THIN(cudaGraphExecEventWaitNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
        cuGraphExecEventWaitNodeSetEvent, exec, node, event)

RT_THIN(cudaGraphAddHostNode, (PLACE, const cudaHostNodeParams *params), cuGraphAddHostNode, THERE, params)
RT_THIN(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, cudaHostNodeParams *params),
        cuGraphHostNodeGetParams, node, params)
RT_THIN(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const cudaHostNodeParams *params),
        cuGraphHostNodeSetParams, node, params)
RT_THIN(cudaGraphExecHostNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams *params),
        cuGraphExecHostNodeSetParams, exec, node, params)

RT_THIN(cudaGraphAddExternalSemaphoresSignalNode,
        (PLACE, const cudaExternalSemaphoreSignalNodeParams *params), cuGraphAddExternalSemaphoresSignalNode,
        THERE, params)
RT_THIN(cudaGraphExternalSemaphoresSignalNodeGetParams,
        (cudaGraphNode_t node, cudaExternalSemaphoreSignalNodeParams *params),
        cuGraphExternalSemaphoresSignalNodeGetParams, node, params)
RT_THIN(cudaGraphExternalSemaphoresSignalNodeSetParams,
        (cudaGraphNode_t node, const cudaExternalSemaphoreSignalNodeParams *params),
        cuGraphExternalSemaphoresSignalNodeSetParams, node, params)
RT_THIN(cudaGraphExecExternalSemaphoresSignalNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaExternalSemaphoreSignalNodeParams *params),
        cuGraphExecExternalSemaphoresSignalNodeSetParams, exec, node, params)
RT_THIN(cudaGraphAddExternalSemaphoresWaitNode, (PLACE, const cudaExternalSemaphoreWaitNodeParams *params),
        cuGraphAddExternalSemaphoresWaitNode, THERE, params)
RT_THIN(cudaGraphExternalSemaphoresWaitNodeGetParams,
        (cudaGraphNode_t node, cudaExternalSemaphoreWaitNodeParams *params),
        cuGraphExternalSemaphoresWaitNodeGetParams, node, params)
RT_THIN(cudaGraphExternalSemaphoresWaitNodeSetParams,
        (cudaGraphNode_t node, const cudaExternalSemaphoreWaitNodeParams *params),
        cuGraphExternalSemaphoresWaitNodeSetParams, node, params)
RT_THIN(cudaGraphExecExternalSemaphoresWaitNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaExternalSemaphoreWaitNodeParams *params),
        cuGraphExecExternalSemaphoresWaitNodeSetParams, exec, node, params)

RT_THIN(cudaGraphAddMemAllocNode, (PLACE, cudaMemAllocNodeParams *params), cuGraphAddMemAllocNode, THERE,
        params)
RT_THIN(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, cudaMemAllocNodeParams *params),
        cuGraphMemAllocNodeGetParams, node, params)
RT_THIN(cudaGraphAddMemFreeNode, (PLACE, void *pointer), cuGraphAddMemFreeNode, THERE, rt_ptr(pointer))
RT_THIN(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *pointer), cuGraphMemFreeNodeGetParams,
        node, (CUdeviceptr *)pointer)

RT_THIN(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t to, cudaGraphNode_t from),
        cuGraphKernelNodeCopyAttributes, to, from)
RT_THIN(cudaGraphKernelNodeGetAttribute,
        (cudaGraphNode_t node, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue *value),
        cuGraphKernelNodeGetAttribute, node, attribute, value)
RT_THIN(cudaGraphKernelNodeSetAttribute,
        (cudaGraphNode_t node, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue *value),
        cuGraphKernelNodeSetAttribute, node, attribute, value)

RT_THIN(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, cudaMemsetParams *params),
        cuGraphMemsetNodeGetParams, node, params)
RT_THIN(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const cudaMemsetParams *params),
        cuGraphMemsetNodeSetParams, node, params)
