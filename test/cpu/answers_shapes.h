// SPDX-License-Identifier: MIT
// Groups of answers.c: copies of rectangles and boxes, copies in batches, copies between contexts.
#ifndef ANSWERS_SHAPES_H
#define ANSWERS_SHAPES_H

#include "answers.h"

// --- rectangles -------------------------------------------------------------------------------------------

// From the host to the device, 10 bytes of 3 rows.
static CUDA_MEMCPY2D answers_rectangle(void)
{
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = pageable;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = large;
    c.WidthInBytes = 10;
    c.Height = 3;
    return c;
}

#define ASK_RECTANGLE(...)                                             \
    do {                                                               \
        CUDA_MEMCPY2D c = answers_rectangle();                         \
        __VA_ARGS__;                                                   \
        ASK_AS("cuMemcpy2D_v2 with " #__VA_ARGS__, cuMemcpy2D_v2(&c)); \
    } while (0)

static void group_rectangles(void)
{
    answers_start();
    ASK_RECTANGLE((void)0);
    ASK_RECTANGLE(c.srcPitch = 10, c.dstPitch = 10);
    ASK_RECTANGLE(c.srcPitch = 9);
    ASK_RECTANGLE(c.srcPitch = 10, c.srcXInBytes = 1);
    ASK_RECTANGLE(c.srcPitch = 11, c.srcXInBytes = 1);
    ASK_RECTANGLE(c.Height = 1, c.srcXInBytes = 1);
    ASK_RECTANGLE(c.Height = 1, c.srcPitch = (size_t)1 << 31);
    ASK_RECTANGLE(c.Height = 1, c.srcPitch = 0x7fffffff);
    ASK_RECTANGLE(c.srcPitch = c.dstPitch = 1000000);
    ASK_RECTANGLE(c.srcPitch = c.dstPitch = 1000000, c.Height = 4);
    ASK_RECTANGLE(c.srcPitch = c.dstPitch = 1000000, c.Height = 4, c.WidthInBytes = 0);
    ASK_RECTANGLE(c.Height = 0);
    ASK_RECTANGLE(c.Height = 0, c.dstDevice = 0);
    ASK_RECTANGLE(c.srcMemoryType = (CUmemorytype)0);
    ASK_RECTANGLE(c.srcMemoryType = CU_MEMORYTYPE_ARRAY);
    ASK_RECTANGLE(c.srcMemoryType = CU_MEMORYTYPE_UNIFIED);
    ASK_RECTANGLE(c.srcMemoryType = CU_MEMORYTYPE_UNIFIED, c.srcDevice = AS_ADDRESS(pageable));
    ASK_RECTANGLE(c.srcHost = NULL);
    ASK(cuMemcpy2D_v2(NULL));
    CUDA_MEMCPY2D c = answers_rectangle();
    ASK_AS("cuMemcpy2DUnaligned_v2", cuMemcpy2DUnaligned_v2(&c));
}

// --- boxes ------------------------------------------------------------------------------------------------

// From the host to the device, 10 bytes of 2 rows of 2 layers.
static CUDA_MEMCPY3D answers_box(void)
{
    CUDA_MEMCPY3D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = pageable;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = large;
    c.WidthInBytes = 10;
    c.Height = c.Depth = 2;
    return c;
}

#define ASK_BOX(...)                                                   \
    do {                                                               \
        CUDA_MEMCPY3D c = answers_box();                               \
        __VA_ARGS__;                                                   \
        ASK_AS("cuMemcpy3D_v2 with " #__VA_ARGS__, cuMemcpy3D_v2(&c)); \
    } while (0)

static void group_boxes(void)
{
    answers_start();
    ASK_BOX((void)0);
    ASK_BOX(c.srcPitch = c.dstPitch = 10);
    ASK_BOX(c.srcPitch = c.dstPitch = 10, c.srcHeight = c.dstHeight = 2);
    ASK_BOX(c.srcPitch = c.dstPitch = 10, c.srcHeight = 1);
    ASK_BOX(c.srcPitch = c.dstPitch = 10, c.srcHeight = 1, c.Depth = 1);
    ASK_BOX(c.srcPitch = 9, c.Depth = 1);
    ASK_BOX(c.Height = 1, c.Depth = 1);
    ASK_BOX(c.srcLOD = 1);
    ASK_BOX(c.Depth = 0);
    ASK_BOX(c.reserved0 = pageable);
    ASK_BOX(c.dstPitch = 1000000, c.dstHeight = 2);
    ASK(cuMemcpy3D_v2(NULL));
}

// --- batches ----------------------------------------------------------------------------------------------

static void group_batches(void)
{
    CUdeviceptr to[2], from[2] = {AS_ADDRESS(pageable), AS_ADDRESS(pageable) + 200};
    size_t sizes[2] = {10, 10}, first[1] = {0};
    CUmemcpyAttributes how[1];
    memset(how, 0, sizeof how);
    how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    answers_start();
    CUstream stream = answers_stream();
    to[0] = large;
    to[1] = large + 100;
    ASK(cuMemcpyBatchAsync_v2(to, from, sizes, 2, how, first, 1, stream));
    ASK(cuMemcpyBatchAsync_v2(to, from, sizes, 2, how, first, 1, NULL));
    ASK(cuMemcpyBatchAsync_v2(to, from, sizes, 0, how, first, 1, stream));
    ASK(cuMemcpyBatchAsync_v2(to, from, sizes, 2, how, first, 0, stream));
    how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    ASK_AS("a batch of no order", cuMemcpyBatchAsync_v2(to, from, sizes, 2, how, first, 1, stream));
    how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    first[0] = 1;
    ASK_AS("a batch whose attributes start late",
           cuMemcpyBatchAsync_v2(to, from, sizes, 2, how, first, 1, stream));
    first[0] = 0;
    sizes[1] = 0;
    ASK_AS("a batch with an empty copy", cuMemcpyBatchAsync_v2(to, from, sizes, 2, how, first, 1, stream));
    sizes[1] = 8 * MIB;
    ASK_AS("a batch with a copy that is too long",
           cuMemcpyBatchAsync_v2(to, from, sizes, 2, how, first, 1, stream));
    ASK(cuStreamSynchronize(stream));
}

// --- between contexts -------------------------------------------------------------------------------------

static void group_peers(void)
{
    CUcontext second;
    int value = 7;
    answers_start();
    CUdeviceptr other = answers_alloc(3000000);
    ASK(cuDeviceCanAccessPeer(&value, 0, 0));
    SHOW(value);
    ASK(cuDeviceCanAccessPeer(&value, 0, 1));
    ASK(cuDeviceCanAccessPeer(NULL, 0, 0));
    ASK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 0));
    ASK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1));
    ASK(cuCtxEnablePeerAccess(context, 0));
    ASK(cuCtxDisablePeerAccess(context));
    ASK(cuCtxEnablePeerAccess(NULL, 0));
    NEED(cuCtxCreate_v2(&second, 0, 0));
    ASK_AS("from another context", cuCtxEnablePeerAccess(context, 0));
    ASK_AS("from another context", cuCtxDisablePeerAccess(context));
    ASK(cuMemcpyPeer(large, context, other, context, 100));
    ASK(cuMemcpyPeer(large, second, other, context, 100));
    ASK(cuMemcpyPeer(large, NULL, other, context, 100));
    ASK(cuMemcpyPeer(large, context, other, context, 8 * MIB));
    ASK(cuMemFree_v2(other));
}

#endif
