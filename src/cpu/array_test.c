// SPDX-License-Identifier: MIT
// Arrays, their copies, and the textures and surfaces on them, through the driver's calls.
#include <math.h>

#include "base/mem.h"
#include "cpu/whole_testing.h"

static CUcontext ctx;

#define INVALID(call) IS(CUDA_ERROR_INVALID_VALUE, call)
#define NO_HANDLE(call) IS(CUDA_ERROR_INVALID_HANDLE, call)

static int begin(void **state)
{
    ctx = whole_context();
    return 0;
}

static int end(void **state)
{
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}

static CUDA_ARRAY3D_DESCRIPTOR shape(size_t width, size_t height, size_t depth, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags};
}

static CUarray make(size_t width, size_t height, size_t depth, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = shape(width, height, depth, flags), got;
    CUarray a;
    OK(cuArray3DCreate_v2(&a, &d));
    OK(cuArray3DGetDescriptor_v2(&got, a));
    assert_memory_equal(&got, &d, sizeof d);
    return a;
}

static void good_arrays(void **state)
{
    CUarray a = make(10, 0, 0, 0);
    OK(cuArrayDestroy(a));
    a = make(10, 5, 0, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER);
    CUDA_ARRAY_DESCRIPTOR flat;
    OK(cuArrayGetDescriptor_v2(&flat, a));
    assert_int_equal(flat.Width * 100 + flat.Height, 1005);
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(make(10, 5, 3, 0)));
    OK(cuArrayDestroy(make(10, 0, 3, CUDA_ARRAY3D_LAYERED)));
    OK(cuArrayDestroy(make(10, 5, 3, CUDA_ARRAY3D_LAYERED)));
    OK(cuArrayDestroy(make(8, 8, 6, CUDA_ARRAY3D_CUBEMAP)));
    OK(cuArrayDestroy(make(8, 8, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)));
    CUDA_ARRAY_DESCRIPTOR d = {7, 3, CU_AD_FORMAT_HALF, 4};
    OK(cuArrayCreate_v2(&a, &d));
    NO_HANDLE(cuArrayDestroy((CUarray)&d));
    OK(cuArrayDestroy(a));
    NO_HANDLE(cuArrayDestroy(a));
}

static void bad_arrays(void **state)
{
    const CUDA_ARRAY3D_DESCRIPTOR wrong[] = {
        shape(0, 0, 0, 0),
        shape(4, 0, 4, 0),
        shape(8, 4, 6, CUDA_ARRAY3D_CUBEMAP),
        shape(8, 8, 5, CUDA_ARRAY3D_CUBEMAP),
        shape(8, 8, 7, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
        shape(8, 8, 0, CUDA_ARRAY3D_LAYERED),
        shape(8, 8, 8, CUDA_ARRAY3D_TEXTURE_GATHER),
        shape(1 << 20, 0, 0, 0),
        shape(16, 1 << 20, 0, 0),
        shape(8, 8, 0, 1u << 30),
        {4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0},
        {4, 4, 0, (CUarray_format)99, 1, 0},
    };
    CUarray a = NULL;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        INVALID(cuArray3DCreate_v2(&a, &wrong[k]));
    INVALID(cuArray3DCreate_v2(NULL, &wrong[0]));
    INVALID(cuArray3DCreate_v2(&a, NULL));
    INVALID(cuArrayCreate_v2(&a, NULL));
    assert_null(a);
    CUDA_ARRAY3D_DESCRIPTOR d = shape(8, 8, 0, 0);
    for (int n = 0; n < 3; n++) {
        mem_fail_after(n);
        IS(CUDA_ERROR_OUT_OF_MEMORY, cuArray3DCreate_v2(&a, &d));
        mem_fail_after(-1);
    }
}

// --- copies ------------------------------------------------------------------------------------------------

static uint32_t numbers[1000], back[1000];

static void count(void)
{
    for (uint32_t k = 0; k < 1000; k++)
        numbers[k] = k;
    memset(back, 0, sizeof back);
}

static void good_copies(void **state)
{
    CUarray a = make(10, 5, 0, 0), b = make(10, 5, 0, 0);
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 4000));
    count();
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = numbers,
                        .srcPitch = 40,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = a,
                        .WidthInBytes = 40,
                        .Height = 5};
    OK(cuMemcpy2D_v2(&in));
    CUDA_MEMCPY2D across = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                            .srcArray = a,
                            .srcXInBytes = 8,
                            .srcY = 1,
                            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                            .dstArray = b,
                            .dstXInBytes = 4,
                            .dstY = 2,
                            .WidthInBytes = 20,
                            .Height = 3};
    OK(cuMemcpy2DAsync_v2(&across, NULL));
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = b,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = p,
                         .dstPitch = 64,
                         .WidthInBytes = 40,
                         .Height = 5};
    OK(cuMemcpy2DUnaligned_v2(&out));
    OK(cuMemcpyDtoH_v2(back, p, 64 * 5));
    for (unsigned y = 0; y < 5; y++)
        for (unsigned x = 0; x < 10; x++)
            assert_int_equal(back[16 * y + x], x >= 1 && x < 6 && y >= 2 ? (y - 1) * 10 + x + 1 : 0);
    // Offsets count bytes from the start of the first row.
    OK(cuMemcpyHtoA_v2(b, 8, numbers + 500, 12));
    OK(cuMemcpyAtoA_v2(a, 0, b, 4, 16));
    OK(cuMemcpyAtoD_v2(p, a, 0, 16));
    OK(cuMemcpyDtoA_v2(a, 20, p, 8));
    OK(cuMemcpyAtoHAsync_v2(back, a, 0, 40, NULL));
    OK(cuMemcpyHtoAAsync_v2(a, 0, numbers, 4, NULL));
    OK(cuCtxSynchronize());
    const uint32_t row[10] = {0, 500, 501, 502, 4, 0, 500, 7, 8, 9};
    assert_memory_equal(back, row, sizeof row);
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
    OK(cuMemFree_v2(p));
}

static void good_volumes(void **state)
{
    CUarray a = make(5, 4, 3, 0), l = make(5, 0, 3, CUDA_ARRAY3D_LAYERED);
    count();
    CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = numbers,
                        .srcPitch = 20,
                        .srcHeight = 4,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = a,
                        .WidthInBytes = 20,
                        .Height = 4,
                        .Depth = 3};
    OK(cuMemcpy3D_v2(&in));
    CUDA_MEMCPY3D_PEER part = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                               .srcArray = a,
                               .srcXInBytes = 4,
                               .srcY = 2,
                               .srcZ = 1,
                               .dstMemoryType = CU_MEMORYTYPE_HOST,
                               .dstHost = back,
                               .WidthInBytes = 8,
                               .Height = 2,
                               .Depth = 2};
    OK(cuMemcpy3DPeer(&part));
    const uint32_t want[] = {31, 32, 36, 37, 51, 52, 56, 57};
    assert_memory_equal(back, want, sizeof want);
    // Layers of rows are slices.
    in.dstArray = l;
    in.Height = 1;
    in.srcHeight = 1;
    OK(cuMemcpy3DAsync_v2(&in, NULL));
    CUDA_MEMCPY3D row = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = l,
                         .srcZ = 2,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .WidthInBytes = 20,
                         .Height = 1,
                         .Depth = 1};
    OK(cuMemcpy3D_v2(&row));
    assert_int_equal(back[0], 10);
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(l));
}

static void good_batch(void **state)
{
    CUarray a = make(5, 4, 0, 0);
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    count();
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {3, 2, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    op.dst.op.array.array = a;
    op.dst.op.array.offset.x = 1;
    op.dst.op.array.offset.y = 2;
    op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = (uintptr_t)(numbers + 10);
    op.src.op.ptr.rowLength = 5;
    OK(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyAtoH_v2(back, a, 0, 20));
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = a,
                         .srcY = 3,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .WidthInBytes = 20,
                         .Height = 1};
    OK(cuMemcpy2D_v2(&out));
    const uint32_t row[5] = {0, 15, 16, 17, 0};
    assert_memory_equal(back, row, sizeof row);
    op.extent.width = 5;
    INVALID(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
    OK(cuStreamDestroy_v2(s));
    OK(cuArrayDestroy(a));
}

static void bad_copies(void **state)
{
    CUarray a = make(10, 5, 0, 0), gone = make(1, 0, 0, 0);
    OK(cuArrayDestroy(gone));
    INVALID(cuMemcpyHtoA_v2(a, 0, numbers, 44));
    INVALID(cuMemcpyHtoA_v2(a, 40, numbers, 4));
    INVALID(cuMemcpyHtoA_v2(a, 2, numbers, 4));
    INVALID(cuMemcpyHtoA_v2(a, SIZE_MAX - 3, numbers, 8));
    NO_HANDLE(cuMemcpyHtoA_v2(gone, 0, numbers, 4));
    INVALID(cuMemcpyAtoH_v2(numbers, NULL, 0, 4));
    INVALID(cuMemcpyAtoD_v2((CUdeviceptr)(uintptr_t)numbers, a, 0, 4));
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = numbers,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = a,
                        .WidthInBytes = 40,
                        .Height = 6};
    INVALID(cuMemcpy2D_v2(&in));
    in.Height = 5;
    in.dstY = 1;
    INVALID(cuMemcpy2D_v2(&in));
    in.dstY = 0;
    in.dstArray = gone;
    NO_HANDLE(cuMemcpy2D_v2(&in));
    OK(cuArrayDestroy(a));
}

// A copy in a graph fails if its array was destroyed before the launch.
static void graphs(void **state)
{
    CUarray a = make(4, 2, 0, 0);
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUstream s;
    count();
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = numbers + 7,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = a,
                        .dstXInBytes = 4,
                        .dstY = 1,
                        .WidthInBytes = 8,
                        .Height = 1};
    OK(cuMemcpy2DAsync_v2(&in, s));
    OK(cuStreamEndCapture(s, &g));
    size_t one = 1;
    OK(cuGraphGetNodes(g, &n, &one));
    CUDA_MEMCPY3D got;
    OK(cuGraphMemcpyNodeGetParams(n, &got));
    assert_ptr_equal(got.dstArray, a);
    assert_int_equal(got.dstMemoryType, CU_MEMORYTYPE_ARRAY);
    assert_int_equal(got.dstXInBytes * 10 + got.dstY, 41);
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphLaunch(e, s));
    OK(cuStreamSynchronize(s));
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = a,
                         .srcY = 1,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .WidthInBytes = 16,
                         .Height = 1};
    OK(cuMemcpy2D_v2(&out));
    const uint32_t row[4] = {0, 7, 8, 0};
    assert_memory_equal(back, row, sizeof row);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy_v2(s));
    OK(cuArrayDestroy(a));
}

// --- levels ------------------------------------------------------------------------------------------------

static void levels(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR d = shape(20, 9, 0, 0), got;
    CUmipmappedArray m;
    CUarray one, same, other;
    OK(cuMipmappedArrayCreate(&m, &d, 100));
    OK(cuMipmappedArrayGetLevel(&one, m, 2));
    OK(cuMipmappedArrayGetLevel(&same, m, 2));
    assert_ptr_equal(one, same);
    OK(cuArray3DGetDescriptor_v2(&got, one));
    assert_int_equal(got.Width * 100 + got.Height, 502);
    OK(cuMipmappedArrayGetLevel(&other, m, 4));
    INVALID(cuMipmappedArrayGetLevel(&other, m, 5));
    OK(cuMemcpyHtoA_v2(one, 0, numbers, 20));
    NO_HANDLE(cuArrayDestroy(one));
    NO_HANDLE(cuMipmappedArrayDestroy((CUmipmappedArray)one));
    OK(cuMipmappedArrayDestroy(m));
    NO_HANDLE(cuMipmappedArrayDestroy(m));
    NO_HANDLE(cuArray3DGetDescriptor_v2(&got, one));
    INVALID(cuMipmappedArrayCreate(&m, &d, 0));
    // Arrays that a context still holds are freed with it.
    OK(cuMipmappedArrayCreate(&m, &d, 3));
    OK(cuMipmappedArrayGetLevel(&one, m, 1));
}

// --- textures ----------------------------------------------------------------------------------------------

#define KERNELS                                                                                      \
    WHOLE_HEAD                                                                                       \
    ".global .texref image;\n.global .surfref canvas;\n"                                             \
    ".visible .entry look(.param .u64 t, .param .u64 p, .param .f32 x, .param .f32 y)\n"             \
    "{ .reg .b64 %t, %p; .reg .f32 %x, %y, %r<4>; ld.param.u64 %t, [t]; ld.param.u64 %p, [p];\n"     \
    "  ld.param.f32 %x, [x]; ld.param.f32 %y, [y];\n"                                                \
    "  tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y}]; st.global.f32 [%p], %r0; ret; }\n"    \
    ".visible .entry look_up(.param .u64 p, .param .f32 x, .param .f32 y)\n"                         \
    "{ .reg .b64 %p; .reg .f32 %x, %y, %r<4>; ld.param.u64 %p, [p];\n"                               \
    "  ld.param.f32 %x, [x]; ld.param.f32 %y, [y];\n"                                                \
    "  tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [image, {%x, %y}]; st.global.f32 [%p], %r0; ret; }\n" \
    ".visible .entry draw(.param .u32 x, .param .u32 y, .param .f32 v)\n"                            \
    "{ .reg .b32 %x, %y, %v; ld.param.u32 %x, [x]; ld.param.u32 %y, [y]; ld.param.b32 %v, [v];\n"    \
    "  sust.b.2d.b32.trap [canvas, {%x, %y}], %v; ret; }\n"

static CUarray picture(unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {4, 2, 0, CU_AD_FORMAT_FLOAT, 1, flags};
    float texels[8] = {0, 1, 2, 3, 10, 11, 12, 13};
    CUarray a;
    OK(cuArray3DCreate_v2(&a, &d));
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = texels,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = a,
                        .WidthInBytes = 16,
                        .Height = 2};
    OK(cuMemcpy2D_v2(&in));
    return a;
}

static float number_at(CUdeviceptr p)
{
    float f;
    OK(cuMemcpyDtoH_v2(&f, p, sizeof f));
    return f;
}

static const CUDA_TEXTURE_DESC plain = {
    .addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};

static void objects(void **state)
{
    CUarray a = picture(0);
    CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a}, got;
    CUDA_TEXTURE_DESC d = plain, got_d;
    CUDA_RESOURCE_VIEW_DESC view;
    CUtexObject t;
    CUdeviceptr p;
    CUmodule m;
    float x = 2.5f, y = 1.5f;
    OK(cuMemAlloc_v2(&p, 4096));
    OK(cuModuleLoadData(&m, KERNELS));
    d.filterMode = CU_TR_FILTER_MODE_LINEAR;
    OK(cuTexObjectCreate(&t, &r, &d, NULL));
    OK(cuTexObjectGetResourceDesc(&got, t));
    assert_ptr_equal(got.res.array.hArray, a);
    OK(cuTexObjectGetTextureDesc(&got_d, t));
    assert_int_equal(got_d.filterMode, CU_TR_FILTER_MODE_LINEAR);
    INVALID(cuTexObjectGetResourceViewDesc(&view, t));
    void *params[] = {&t, &p, &x, &y};
    OK(whole_launch(whole_function(m, "look"), params));
    assert_true(number_at(p) == 12);
    x = 2.75f;
    OK(whole_launch(whole_function(m, "look"), params));
    assert_true(number_at(p) == 12.25f);
    INVALID(cuSurfObjectDestroy(t));
    OK(cuTexObjectDestroy(t));
    INVALID(cuTexObjectDestroy(t));
    // Pitched memory.
    r = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D};
    r.res.pitch2D.devPtr = p;
    r.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    r.res.pitch2D.numChannels = 1;
    r.res.pitch2D.width = 4;
    r.res.pitch2D.height = 2;
    r.res.pitch2D.pitchInBytes = 64;
    OK(cuTexObjectCreate(&t, &r, &plain, NULL));
    OK(cuTexObjectDestroy(t));
    OK(cuModuleUnload(m));
    OK(cuArrayDestroy(a));
    OK(cuMemFree_v2(p));
}

static void bad_objects(void **state)
{
    CUarray a = picture(0);
    CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a},
                       linear = {.resType = CU_RESOURCE_TYPE_LINEAR};
    CUDA_TEXTURE_DESC d = plain;
    CUtexObject t;
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 4096));
    INVALID(cuTexObjectCreate(NULL, &r, &d, NULL));
    INVALID(cuTexObjectCreate(&t, NULL, &d, NULL));
    INVALID(cuTexObjectCreate(&t, &r, NULL, NULL));
    INVALID(cuSurfObjectCreate(&t, &r));  // the array is not for surfaces
    d.addressMode[1] = (CUaddress_mode)9;
    INVALID(cuTexObjectCreate(&t, &r, &d, NULL));
    d = plain;
    d.flags = 1u << 20;
    INVALID(cuTexObjectCreate(&t, &r, &d, NULL));
    r.res.array.hArray = (CUarray)&d;
    NO_HANDLE(cuTexObjectCreate(&t, &r, &plain, NULL));
    r.resType = (CUresourcetype)7;
    INVALID(cuTexObjectCreate(&t, &r, &plain, NULL));
    linear.res.linear.devPtr = p;
    linear.res.linear.format = CU_AD_FORMAT_FLOAT;
    linear.res.linear.numChannels = 1;
    linear.res.linear.sizeInBytes = 4096;
    OK(cuTexObjectCreate(&t, &linear, &plain, NULL));
    OK(cuTexObjectDestroy(t));
    linear.res.linear.sizeInBytes = 4100;
    INVALID(cuTexObjectCreate(&t, &linear, &plain, NULL));
    linear.res.linear.sizeInBytes = 100;
    linear.res.linear.devPtr = p + 4;
    INVALID(cuTexObjectCreate(&t, &linear, &plain, NULL));
    linear.res.linear.devPtr = (uintptr_t)&d & ~(uintptr_t)511;
    INVALID(cuTexObjectCreate(&t, &linear, &plain, NULL));
    OK(cuArrayDestroy(a));
    OK(cuMemFree_v2(p));
}

// A texture whose array is destroyed ends the kernel that reads it, not the process.
static void bad_lost_array(void **state)
{
    CUcontext other = whole_context();
    CUarray a = picture(0);
    CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
    CUtexObject t;
    CUdeviceptr p;
    CUmodule m;
    float x = 0, y = 0;
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuModuleLoadData(&m, KERNELS));
    OK(cuTexObjectCreate(&t, &r, &plain, NULL));
    OK(cuArrayDestroy(a));
    void *params[] = {&t, &p, &x, &y};
    OK(whole_launch(whole_function(m, "look"), params));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(ctx));
}

static void references(void **state)
{
    CUarray a = picture(CUDA_ARRAY3D_SURFACE_LDST), got;
    CUdeviceptr p;
    CUmodule m;
    CUtexref t, again, own;
    CUsurfref s;
    CUaddress_mode mode;
    OK(cuMemAlloc_v2(&p, 4096));
    OK(cuModuleLoadData(&m, KERNELS));
    OK(cuModuleGetTexRef(&t, m, "image"));
    OK(cuModuleGetTexRef(&again, m, "image"));
    assert_ptr_equal(t, again);
    IS(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, m, "canvas"));
    IS(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, m, "nobody"));
    OK(cuModuleGetSurfRef(&s, m, "canvas"));
    OK(cuTexRefSetAddressMode(t, 0, CU_TR_ADDRESS_MODE_WRAP));
    OK(cuTexRefGetAddressMode(&mode, t, 0));
    assert_int_equal(mode, CU_TR_ADDRESS_MODE_WRAP);
    OK(cuTexRefSetFlags(t, CU_TRSF_NORMALIZED_COORDINATES));
    OK(cuTexRefSetArray(t, a, CU_TRSA_OVERRIDE_FORMAT));
    OK(cuTexRefGetArray(&got, t));
    assert_ptr_equal(got, a);
    OK(cuSurfRefSetArray(s, a, 0));
    OK(cuSurfRefGetArray(&got, s));
    assert_ptr_equal(got, a);
    uint32_t bytes = 4, row = 1;
    float value = 50, x = 1.3f, y = 0.9f;
    void *draw[] = {&bytes, &row, &value}, *look[] = {&p, &x, &y};
    OK(whole_launch(whole_function(m, "draw"), draw));
    OK(whole_launch(whole_function(m, "look_up"), look));
    assert_true(number_at(p) == 50);
    // Linear memory, then pitched memory.
    OK(cuTexRefSetFlags(t, 0));
    OK(cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 1));
    size_t offset = 77;
    OK(cuTexRefSetAddress_v2(&offset, t, p + 512, 64));
    assert_int_equal(offset, 0);
    OK(cuTexRefSetAddress_v2(&offset, t, p + 516, 64));
    assert_int_equal(offset, 4);
    INVALID(cuTexRefSetAddress_v2(NULL, t, p + 516, 64));
    CUDA_ARRAY_DESCRIPTOR rows = {4, 2, CU_AD_FORMAT_FLOAT, 1};
    OK(cuTexRefSetAddress2D_v3(t, &rows, p, 64));
    INVALID(cuTexRefGetArray(&got, t));
    OK(cuTexRefCreate(&own));
    INVALID(cuTexRefDestroy(t));
    OK(cuTexRefDestroy(own));
    INVALID(cuTexRefDestroy(own));
    OK(cuModuleUnload(m));
    INVALID(cuTexRefSetFlags(t, 0));
    INVALID(cuSurfRefSetArray(s, a, 0));
    OK(cuArrayDestroy(a));
    OK(cuMemFree_v2(p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_arrays),  cmocka_unit_test(bad_arrays),     cmocka_unit_test(good_copies),
        cmocka_unit_test(good_volumes), cmocka_unit_test(good_batch),     cmocka_unit_test(bad_copies),
        cmocka_unit_test(graphs),       cmocka_unit_test(levels),         cmocka_unit_test(objects),
        cmocka_unit_test(bad_objects),  cmocka_unit_test(bad_lost_array), cmocka_unit_test(references),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
