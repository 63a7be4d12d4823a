// SPDX-License-Identifier: MIT
// Two- and three-dimensional copies, one by one, in batches, and as nodes of graphs.
#include "hook/bounds.h"
#include "hook/bounds_array.h"
#include "launch/graph_names.h"
#include "launch/launch_call.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "hook/hook_node.h"
#include "track/track.h"

// One side as the structures for two and three dimensions describe it.
struct corner {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    uint64_t x, y, z, pitch, height;  // pitch, height: 0 means no gaps
};

struct extent {
    uint64_t width, height, depth;
};

// The driver refuses sums and products that overflow.
static CUresult check_corner(enum driver_id call, const struct corner *c, const struct extent *e,
                             enum report_access access)
{
    if (c->type == CU_MEMORYTYPE_ARRAY) {
        struct bounds_box box = {c->x, c->y, c->z, e->width, e->height, e->depth, false};
        return bounds_array(call, c->array, &box, access);
    }
    uint64_t pitch = c->pitch ? c->pitch : c->x + e->width;
    uint64_t slice, down, back, at = c->type == CU_MEMORYTYPE_HOST ? (uintptr_t)c->host : c->device;
    if (__builtin_mul_overflow(pitch, c->height ? c->height : c->y + e->height, &slice) ||
        __builtin_mul_overflow(pitch, c->y, &down) || __builtin_mul_overflow(slice, c->z, &back) ||
        __builtin_add_overflow(at, c->x, &at) || __builtin_add_overflow(at, down, &at) ||
        __builtin_add_overflow(at, back, &at))
        return CUDA_SUCCESS;
    struct bounds_range first = {at, e->width, access, c->type == CU_MEMORYTYPE_DEVICE};
    return bounds_check_rows(call, &first, pitch, e->height, slice, e->depth);
}

static CUresult check_corners(enum driver_id call, const struct corner *to, const struct corner *from,
                              const struct extent *e)
{
    guard_count(GUARD_TRANSFERS);
    if (!e->width || !e->height || !e->depth)
        return CUDA_SUCCESS;
    CUresult r = check_corner(call, from, e, REPORT_READ);
    return r ? r : check_corner(call, to, e, REPORT_WRITE);
}

#define SRC_CORNER(c, z, h)                                                                              \
    &(struct corner)                                                                                     \
    {                                                                                                    \
        (c)->srcMemoryType, (c)->srcHost, (c)->srcDevice, (c)->srcArray, (c)->srcXInBytes, (c)->srcY, z, \
            (c)->srcPitch, h                                                                             \
    }
#define DST_CORNER(c, z, h)                                                                              \
    &(struct corner)                                                                                     \
    {                                                                                                    \
        (c)->dstMemoryType, (c)->dstHost, (c)->dstDevice, (c)->dstArray, (c)->dstXInBytes, (c)->dstY, z, \
            (c)->dstPitch, h                                                                             \
    }

static CUresult check_2d(enum driver_id call, const CUDA_MEMCPY2D *c)
{
    if (!c)
        return CUDA_SUCCESS;
    return check_corners(call, DST_CORNER(c, 0, 0), SRC_CORNER(c, 0, 0),
                         &(struct extent){c->WidthInBytes, c->Height, 1});
}

static CUresult check_3d(enum driver_id call, const CUDA_MEMCPY3D *c)
{
    if (!c)
        return CUDA_SUCCESS;
    return check_corners(call, DST_CORNER(c, c->dstZ, c->dstHeight), SRC_CORNER(c, c->srcZ, c->srcHeight),
                         &(struct extent){c->WidthInBytes, c->Height, c->Depth});
}

static CUresult check_peer(enum driver_id call, const CUDA_MEMCPY3D_PEER *c)
{
    if (!c)
        return CUDA_SUCCESS;
    return check_corners(call, DST_CORNER(c, c->dstZ, c->dstHeight), SRC_CORNER(c, c->srcZ, c->srcHeight),
                         &(struct extent){c->WidthInBytes, c->Height, c->Depth});
}

// refused: what the hook returns if the check's result is r.
#define SHAPE(symbol, refused, check, parameters, arguments)             \
    CUresult hook_##symbol parameters                                    \
    {                                                                    \
        CUresult r = check(DRIVER_##symbol, c);                          \
        return r ? (refused) : bounds_done(guard.real.symbol arguments); \
    }
#define SHAPES(symbol, variant, check, parameters, arguments)                              \
    SHAPE(symbol, bounds_refused(r, BOUNDS_STREAM##variant), check, parameters, arguments) \
    SHAPE(symbol##variant, bounds_refused(r, BOUNDS_STREAM##variant), check, parameters, arguments)

SHAPES(cuMemcpy2D_v2, _ptds, check_2d, (const CUDA_MEMCPY2D *c), (c))
SHAPES(cuMemcpy2DUnaligned_v2, _ptds, check_2d, (const CUDA_MEMCPY2D *c), (c))
SHAPES(cuMemcpy2DAsync_v2, _ptsz, check_2d, (const CUDA_MEMCPY2D *c, CUstream q), (c, q))
SHAPES(cuMemcpy3D_v2, _ptds, check_3d, (const CUDA_MEMCPY3D *c), (c))
SHAPES(cuMemcpy3DAsync_v2, _ptsz, check_3d, (const CUDA_MEMCPY3D *c, CUstream q), (c, q))
SHAPES(cuMemcpy3DPeer, _ptds, check_peer, (const CUDA_MEMCPY3D_PEER *c), (c))
SHAPES(cuMemcpy3DPeerAsync, _ptsz, check_peer, (const CUDA_MEMCPY3D_PEER *c, CUstream q), (c, q))

// For pointers, rowLength and layerHeight of an operand count elements of 1 byte.
static struct corner corner_of(const CUmemcpy3DOperand *o)
{
    if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return (struct corner){.type = CU_MEMORYTYPE_ARRAY,
                               .array = o->op.array.array,
                               .x = o->op.array.offset.x,
                               .y = o->op.array.offset.y,
                               .z = o->op.array.offset.z};
    return (struct corner){.type = CU_MEMORYTYPE_UNIFIED,
                           .device = o->op.ptr.ptr,
                           .pitch = o->op.ptr.rowLength,
                           .height = o->op.ptr.layerHeight};
}

// With an array on a side, widths count its elements; such an operation is only checked by the driver.
static CUresult check_batch(enum driver_id call, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count)
{
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; !r && ops && i < count; i++) {
        if (ops[i].src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
            ops[i].dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
            continue;
        struct corner to = corner_of(&ops[i].dst), from = corner_of(&ops[i].src);
        struct extent e = {ops[i].extent.width, ops[i].extent.height, ops[i].extent.depth};
        r = check_corners(call, &to, &from, &e);
    }
    return r;
}

#define BATCH(symbol, parameters, arguments)                                        \
    CUresult hook_##symbol parameters                                               \
    {                                                                               \
        CUresult r = check_batch(DRIVER_##symbol, ops, n);                          \
        return r ? bounds_refused(r, q) : bounds_done(guard.real.symbol arguments); \
    }

BATCH(cuMemcpy3DBatchAsync,
      (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, unsigned long long flags, CUstream q),
      (n, ops, failed, flags, q))
BATCH(cuMemcpy3DBatchAsync_ptsz,
      (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, unsigned long long flags, CUstream q),
      (n, ops, failed, flags, q))
BATCH(cuMemcpy3DBatchAsync_v2, (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream q),
      (n, ops, flags, q))
BATCH(cuMemcpy3DBatchAsync_v2_ptsz,
      (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream q), (n, ops, flags, q))

// Nodes of graphs: what a graph will access is known when the node is added.

static CUresult check_memset(enum driver_id call, const CUDA_MEMSET_NODE_PARAMS *p)
{
    if (!p)
        return CUDA_SUCCESS;
    guard_count(GUARD_TRANSFERS);
    struct bounds_range row = {p->dst, p->width * p->elementSize, REPORT_WRITE, true};
    return bounds_check_rows(call, &row, p->pitch, p->height, 0, 1);
}

static CUresult check_node(enum driver_id call, const CUgraphNodeParams *p)
{
    if (!p)
        return CUDA_SUCCESS;
    if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return check_3d(call, &p->memcpy.copyParams);
    if (p->type == CU_GRAPH_NODE_TYPE_MEMSET)
        return check_memset(call, &(CUDA_MEMSET_NODE_PARAMS){p->memset.dst, p->memset.pitch, p->memset.value,
                                                             p->memset.elementSize, p->memset.width,
                                                             p->memset.height});
    return CUDA_SUCCESS;
}

static CUresult node_done(enum driver_id call, const struct launch_node *n, CUresult r,
                          const CUgraphNodeParams *p)
{
    if (r || !guard.watching)
        return r;
    if (n->made && p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        track_made_in_graph(call, p->alloc.dptr, p->alloc.bytesize);
    else if (n->exec && p->type == CU_GRAPH_NODE_TYPE_KERNEL)
        graph_names_add_kernel(n->exec, p->kernel.func, p->kernel.kern);
    else if (n->exec && p->type == CU_GRAPH_NODE_TYPE_GRAPH)
        hook_graph_child_set(n->exec, n->node, p->graph.graph);
    return r;
}

CUresult hook_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
                                     CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    CUresult r = guard.real.cuGraphAddMemAllocNode(node, g, after, n, p);
    HOOK_TRY_AGAIN(r, guard.real.cuGraphAddMemAllocNode(node, g, after, n, p));
    if (!r && guard.watching)
        track_made_in_graph(DRIVER_cuGraphAddMemAllocNode, p->dptr, p->bytesize);
    return r;
}

SHAPE(cuGraphAddMemcpyNode, r, check_3d,
      (CUgraphNode * node, CUgraph g, const CUgraphNode *after, size_t n, const CUDA_MEMCPY3D *c,
       CUcontext x),
      (node, g, after, n, c, x))
SHAPE(cuGraphMemcpyNodeSetParams, r, check_3d, (CUgraphNode node, const CUDA_MEMCPY3D *c), (node, c))
SHAPE(cuGraphExecMemcpyNodeSetParams, r, check_3d,
      (CUgraphExec g, CUgraphNode node, const CUDA_MEMCPY3D *c, CUcontext x), (g, node, c, x))
SHAPE(cuGraphAddMemsetNode, r, check_memset,
      (CUgraphNode * node, CUgraph g, const CUgraphNode *after, size_t n, const CUDA_MEMSET_NODE_PARAMS *c,
       CUcontext x),
      (node, g, after, n, c, x))
SHAPE(cuGraphMemsetNodeSetParams, r, check_memset, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *c),
      (node, c))
SHAPE(cuGraphExecMemsetNodeSetParams, r, check_memset,
      (CUgraphExec g, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *c, CUcontext x), (g, node, c, x))

// Returns whether modes see the node: they may change one that runs a kernel.
static bool is_shown(const CUgraphNodeParams *c)
{
    return mode_any && c && c->type == CU_GRAPH_NODE_TYPE_KERNEL;
}

// The arguments after `arguments` fill the struct launch_node.
#define NODE(symbol, parameters, arguments, ...)                                                       \
    __attribute__((noinline)) static CUresult shown_##symbol parameters                                \
    {                                                                                                  \
        const CUDA_KERNEL_NODE_PARAMS_v3 *k = &c->kernel;                                              \
        HOOK_NODE_BODY(symbol, arguments, k, k->func ? (void *)k->func : (void *)k->kern, .params = c, \
                       __VA_ARGS__);                                                                   \
    }                                                                                                  \
    CUresult hook_##symbol parameters                                                                  \
    {                                                                                                  \
        const struct launch_node made_or_set = {.params = c, __VA_ARGS__};                             \
        CUresult r = check_node(DRIVER_##symbol, c);                                                   \
        if (r)                                                                                         \
            return r;                                                                                  \
        bool shown = is_shown(c);                                                                      \
        r = shown ? shown_##symbol arguments : guard.real.symbol arguments;                            \
        if (made_or_set.made && !shown)                                                                \
            HOOK_TRY_AGAIN(r, guard.real.symbol arguments);                                            \
        return node_done(DRIVER_##symbol, &made_or_set, bounds_done(r), c);                            \
    }

NODE(cuGraphAddNode,
     (CUgraphNode * node, CUgraph g, const CUgraphNode *after, size_t n, CUgraphNodeParams *c),
     (node, g, after, n, c), .made = node, .graph = g, .after = after, .count = n)
NODE(cuGraphAddNode_v2,
     (CUgraphNode * node, CUgraph g, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n,
      CUgraphNodeParams *c),
     (node, g, after, edges, n, c), .made = node, .graph = g, .after = after, .edges = edges, .count = n)
NODE(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams *c), (node, c), .node = node)
NODE(cuGraphExecNodeSetParams, (CUgraphExec g, CUgraphNode node, CUgraphNodeParams *c), (g, node, c),
     .exec = g, .node = node)
