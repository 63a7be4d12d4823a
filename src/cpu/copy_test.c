// SPDX-License-Identifier: MIT
#include <sys/mman.h>

#include "cpu/copy.h"
#include "cpu/memory_fake.h"

static char host[1 << 20];

static const char *at(CUdeviceptr p)
{
    return space_host(p);
}

static void good_lines(void **state)
{
    CUdeviceptr a = fake_alloc(100), b = fake_alloc(100);
    char back[100];
    for (int i = 0; i < 100; i++)
        host[i] = (char)(i * 7);
    OK(cuMemcpyHtoD_v2(a, host, 100));
    OK(cuMemcpyDtoD_v2(b, a, 100));
    OK(cuMemcpyDtoH_v2(back, b, 100));
    assert_memory_equal(back, host, 100);
    OK(cuMemcpy_ptds(b + 50, (uintptr_t)host, 50));
    assert_memory_equal(at(b) + 50, host, 50);
    OK(cuMemcpy(b, a + 10, 10));
    OK(cuMemcpy((uintptr_t)back, b, 10));
    assert_memory_equal(back, host + 10, 10);
    OK(cuMemcpyHtoD_v2(a, (void *)(uintptr_t)b, 4));  // unified addressing finds the device memory
    OK(cuMemcpyPeer(a, NULL, b, NULL, 100));
    assert_int_equal(cuMemcpyPeer(a, (CUcontext)host, b, NULL, 1), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
}

static void bad_bounds(void **state)
{
    CUdeviceptr a = fake_alloc(100), b = fake_alloc(3000000);
    INVALID(cuMemcpyHtoD_v2(a, host, 101));
    INVALID(cuMemcpyHtoD_v2(a + 50, host, 51));
    INVALID(cuMemcpyHtoD_v2(a + 100, host, 1));
    INVALID(cuMemcpyHtoD_v2(a - 1, host, 1));
    INVALID(cuMemcpyHtoD_v2(a, host, SIZE_MAX));
    INVALID(cuMemcpyHtoD_v2(b, host, 3000001));
    INVALID(cuMemcpyDtoH_v2(host, a, 101));
    INVALID(cuMemcpyDtoD_v2(a, b, 101));
    INVALID(cuMemcpyDtoD_v2(b, a, 101));
    INVALID(cuMemcpyDtoD_v2((uintptr_t)host, b, 10));
    INVALID(cuMemcpyDtoH_v2(host, (uintptr_t)host + 100, 4));
    INVALID(cuMemcpyHtoD_v2(0x123400000, host, 4));
    INVALID(cuMemcpyHtoDAsync_v2(a, host, 101, fake_streams));
    OK(cuMemcpyHtoD_v2(0x1234, host, 0));
    OK(cuMemcpyHtoD_v2(a, NULL, 0));
    assert_int_equal(cuMemcpyHtoDAsync_v2(a, host, 1, (CUstream)host), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemFree_v2(a));
    INVALID(cuMemcpyHtoD_v2(a, host, 1));
    OK(cuMemFree_v2(b));
}

// Host memory that is not mapped is an error, not a signal.
static void bad_host(void **state)
{
    CUdeviceptr a = fake_alloc(100000);
    char *p = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p + 4096, 4096, PROT_READ);
    munmap(p + 8192, 4096);
    INVALID(cuMemcpyHtoD_v2(a, NULL, 4));
    INVALID(cuMemcpyDtoH_v2(NULL, a, 4));
    INVALID(cuMemcpyHtoD_v2(a, p, 8193));
    INVALID(cuMemcpyDtoH_v2(p, a, 4097));
    INVALID(cuMemcpyDtoH_v2(p + 8192, a, 1));
    OK(cuMemcpyHtoD_v2(a, p, 8192));
    OK(cuMemcpyDtoH_v2(p, a, 4096));
    INVALID(cuMemcpyDtoH_v2(space_host(a), a, 4));  // the host alias of device memory is not the program's
    INVALID(cuMemcpy((uintptr_t)-8, a, 4));
    munmap(p, 8192);
    OK(cuMemFree_v2(a));
}

static void good_pinned_bounds(void **state)
{
    CUdeviceptr a = fake_alloc(5000);
    char *p;
    OK(cuMemHostAlloc((void **)&p, 100, 0));
    OK(cuMemcpyHtoD_v2(a, p, 100));
    INVALID(cuMemcpyHtoD_v2(a, p, 101));
    INVALID(cuMemcpyDtoH_v2(p, a, 101));
    OK(cuMemcpyHtoD_v2((uintptr_t)p, host, 100));
    OK(cuMemcpyDtoD_v2(a, (uintptr_t)p, 100));
    OK(cuMemsetD8_v2((uintptr_t)p, 7, 100));
    assert_int_equal(p[99], 7);
    OK(cuMemFreeHost(p));
    OK(cuMemFree_v2(a));
}

// --- order -------------------------------------------------------------------------------------------------

static void nothing(void *arg, bool run)
{
}

static void good_order(void **state)
{
    CUdeviceptr a = fake_alloc(sizeof host);
    CUstream s = fake_streams;
    char *pinned;
    OK(cuMemHostAlloc((void **)&pinned, 100, 0));
    OK(cuMemsetD8_v2(a, 0, 1000));
    stream_push(s, nothing, NULL);
    // A small pageable source is read at the call, a pinned one when the stream reaches the copy.
    memset(host, 1, sizeof host);
    memset(pinned, 2, 100);
    OK(cuMemcpyHtoDAsync_v2(a, host, 100, s));
    OK(cuMemcpyHtoDAsync_v2(a + 100, pinned, 100, s));
    memset(host, 3, sizeof host);
    memset(pinned, 4, 100);
    assert_int_equal(at(a)[0], 0);
    fake_run(s);
    assert_int_equal(at(a)[0], 1);
    assert_int_equal(at(a)[100], 4);
    // A copy from large pageable memory is done when the call returns, and so is one to pageable memory.
    stream_push(s, nothing, NULL);
    OK(cuMemcpyHtoDAsync_v2(a, host, sizeof host, s));
    assert_int_equal(at(a)[sizeof host - 1], 3);
    stream_push(s, nothing, NULL);
    OK(cuMemsetD8Async(a, 9, 10, s));
    OK(cuMemcpyDtoHAsync_v2(host, a, 10, s));
    assert_int_equal(host[9], 9);
    assert_int_equal(fake_queued, 0);
    // The call does not wait for a copy to pinned memory.
    stream_push(s, nothing, NULL);
    OK(cuMemcpyDtoHAsync_v2(pinned, a, 10, s));
    assert_int_equal(pinned[0], 4);
    OK(cuMemcpyDtoH_v2(host, a, 1));  // the legacy stream of the fakes waits for all
    assert_int_equal(pinned[0], 9);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree_v2(a));
}

static void bad_context_error(void **state)
{
    CUdeviceptr a = fake_alloc(100);
    CUstream s = fake_streams;
    OK(cuMemsetD8_v2(a, 1, 100));
    stream_push(s, nothing, NULL);
    OK(cuMemsetD8Async(a, 2, 100, s));
    OK(cuMemcpyHtoDAsync_v2(a, host, 100, s));
    fake_state = CUDA_ERROR_ILLEGAL_ADDRESS;
    fake_run(NULL);
    assert_int_equal(at(a)[0], 1);
    assert_int_equal(cuMemsetD8_v2(a, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemcpyHtoD_v2(a, host, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    fake_state = CUDA_SUCCESS;
    OK(cuMemFree_v2(a));
}

// --- memset ------------------------------------------------------------------------------------------------

static void good_sets(void **state)
{
    CUdeviceptr a = fake_alloc(100);
    OK(cuMemsetD8_v2(a, 0, 100));
    OK(cuMemsetD16_v2(a + 2, 0x1234, 3));
    OK(cuMemsetD32_v2_ptds(a + 8, 0x89abcdef, 2));
    static const unsigned char want[17] = {0,    0,    0x34, 0x12, 0x34, 0x12, 0x34, 0x12, 0xef,
                                           0xcd, 0xab, 0x89, 0xef, 0xcd, 0xab, 0x89, 0};
    assert_memory_equal(at(a), want, 17);
    OK(cuMemsetD2D8_v2(a, 60, 5, 40, 2));
    assert_int_equal(at(a)[39] + at(a)[40] + at(a)[60] + at(a)[99], 15);
    OK(cuMemsetD2D32Async(a, 50 - 2, 7, 2, 2, fake_streams));
    assert_int_equal(at(a)[48], 7);
    INVALID(cuMemsetD8_v2(a, 1, 101));
    INVALID(cuMemsetD16_v2(a, 1, 51));
    INVALID(cuMemsetD32_v2(a, 1, SIZE_MAX / 2));
    INVALID(cuMemsetD16_v2(a + 1, 1, 1));
    INVALID(cuMemsetD32_v2(a + 2, 1, 1));
    INVALID(cuMemsetD2D8_v2(a, 9, 1, 10, 10));
    INVALID(cuMemsetD2D8_v2(a, 10, 1, 10, 11));
    INVALID(cuMemsetD2D16_v2(a, 3, 1, 1, 2));
    INVALID(cuMemsetD8_v2((uintptr_t)host, 1, 1));
    OK(cuMemsetD2D8_v2(a, 0, 1, 10, 1));
    OK(cuMemsetD2D8_v2(a, 10, 1, 0, 11));
    OK(cuMemsetD8_v2(0x1000, 1, 0));
    OK(cuMemFree_v2(a));
}

// --- shapes ------------------------------------------------------------------------------------------------

// Boxes of random sizes between random positions are compared byte by byte with the plain definition.
static void good_boxes(void **state)
{
    enum { SIZE = 4096 };
    static char model[SIZE], back[SIZE];
    CUdeviceptr a = fake_alloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        host[i] = (char)fake_random();
    OK(cuMemsetD8_v2(a, 0, SIZE));
    memset(model, 0, SIZE);
    for (int round = 0; round < 300; round++) {
        size_t w = fake_random() % 20, h = fake_random() % 5, d = fake_random() % 5;
        size_t sx = fake_random() % 3, sy = fake_random() % 3, sz = fake_random() % 2;
        size_t dx = fake_random() % 3, dy = fake_random() % 3, dz = fake_random() % 2;
        size_t sp = sx + w + fake_random() % 4, dp = dx + w + fake_random() % 4;
        size_t sh = sy + h + fake_random() % 3, dh = dy + h + fake_random() % 3;
        bool deep = fake_random() % 2, held = fake_random() % 2;
        if (!deep)
            sz = dz = 0, d = 1;
        CUDA_MEMCPY3D c = {sx, sy, sz, 0, CU_MEMORYTYPE_HOST,   host, 0, NULL, NULL, sp, sh,
                           dx, dy, dz, 0, CU_MEMORYTYPE_DEVICE, NULL, a, NULL, NULL, dp, dh,
                           w,  h,  d};
        CUDA_MEMCPY2D flat = {sx,
                              sy,
                              CU_MEMORYTYPE_UNIFIED,
                              NULL,
                              (uintptr_t)host,
                              NULL,
                              sp,
                              dx,
                              dy,
                              CU_MEMORYTYPE_DEVICE,
                              NULL,
                              a,
                              NULL,
                              dp,
                              w,
                              h};
        if (held)
            stream_push(fake_streams, nothing, NULL);
        OK(deep ? cuMemcpy3DAsync_v2(&c, fake_streams) : cuMemcpy2DAsync_v2(&flat, fake_streams));
        fake_run(NULL);
        for (size_t z = 0; z < d; z++) {
            for (size_t y = 0; y < h; y++) {
                for (size_t x = 0; x < w; x++)
                    model[((dz + z) * dh + dy + y) * dp + dx + x] =
                        host[((sz + z) * sh + sy + y) * sp + sx + x];
            }
        }
        OK(cuMemcpyDtoH_v2(back, a, SIZE));
        assert_memory_equal(back, model, SIZE);
    }
    OK(cuMemFree_v2(a));
}

static void bad_boxes(void **state)
{
    CUdeviceptr a = fake_alloc(3000000);
    CUDA_MEMCPY2D k = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = host,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = a,
                       .WidthInBytes = 10,
                       .Height = 3};
    OK(cuMemcpy2D_v2(&k));  // no pitch: no gaps
    k.srcPitch = 9;
    INVALID(cuMemcpy2D_v2(&k));
    k.srcPitch = 10;
    k.srcXInBytes = 1;
    INVALID(cuMemcpy2D_v2(&k));
    k.srcXInBytes = SIZE_MAX;
    INVALID(cuMemcpy2D_v2(&k));
    k.srcXInBytes = 0;
    k.dstPitch = 1000000;
    OK(cuMemcpy2D_v2(&k));
    k.Height = 4;
    INVALID(cuMemcpy2D_v2(&k));
    k.dstPitch = SIZE_MAX / 2;
    INVALID(cuMemcpy2D_v2(&k));
    k.dstPitch = 10;
    k.dstY = SIZE_MAX / 4;
    INVALID(cuMemcpy2D_v2(&k));
    k.dstY = 0;
    k.srcMemoryType = 0;
    INVALID(cuMemcpy2D_v2(&k));
    k.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    INVALID(cuMemcpy2D_v2(&k));
    k.Height = 0;
    OK(cuMemcpy2D_v2(&k));
    INVALID(cuMemcpy2D_v2(NULL));
    CUDA_MEMCPY3D_PEER p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = a,
                            .dstDevice = a,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .WidthInBytes = 1,
                            .Height = 1,
                            .Depth = 1,
                            .dstZ = 5,
                            .dstContext = (CUcontext)host};
    assert_int_equal(cuMemcpy3DPeer(&p), CUDA_ERROR_INVALID_CONTEXT);
    p.dstContext = NULL;
    OK(cuMemcpy3DPeer(&p));
    p.Height = 2;
    p.dstHeight = 1;
    INVALID(cuMemcpy3DPeer(&p));
    INVALID(cuMemcpy3DPeerAsync(NULL, NULL));
    INVALID(cuMemcpy3D_v2(NULL));
    OK(cuMemFree_v2(a));
}

// --- batches -----------------------------------------------------------------------------------------------

static void good_batch(void **state)
{
    CUdeviceptr a = fake_alloc(1000), dst[2] = {a, a + 100},
                src[2] = {(uintptr_t)host, (uintptr_t)host + 200};
    size_t sizes[2] = {10, 10}, first[2] = {0, 1}, fail = 7;
    CUmemcpyAttributes at2[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
                                 {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL}};
    CUstream s = fake_streams;
    memset(host, 1, 1000);
    stream_push(s, nothing, NULL);
    OK(cuMemcpyBatchAsync_v2(dst, src, sizes, 2, at2, first, 2, s));
    memset(host, 2, 1000);
    fake_run(s);
    assert_int_equal(at(a)[0], 2);
    assert_int_equal(at(a)[100], 1);
    INVALID(cuMemcpyBatchAsync_v2(dst, src, sizes, 2, at2, first, 2, NULL));
    INVALID(cuMemcpyBatchAsync_v2(dst, src, sizes, 0, at2, first, 2, s));
    INVALID(cuMemcpyBatchAsync_v2(dst, src, sizes, 2, at2, first, 0, s));
    INVALID(cuMemcpyBatchAsync_v2(dst, src, sizes, 2, at2, first + 1, 1, s));
    sizes[1] = 1000;
    sizes[0] = 5;
    OK(cuMemsetD8_v2(a, 9, 1000));
    INVALID(cuMemcpyBatchAsync(dst, src, sizes, 2, at2, first, 2, &fail, s));
    assert_int_equal(fail, 1);
    assert_int_equal(at(a)[0], 9);  // all or nothing
    CUDA_MEMCPY3D_BATCH_OP op = {.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER},
                                 .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER},
                                 .extent = {10, 3, 2},
                                 .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY};
    op.src.op.ptr.ptr = (uintptr_t)host;
    op.dst.op.ptr.ptr = a;
    op.dst.op.ptr.rowLength = 20;
    OK(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
    assert_int_equal(at(a)[109], 2);
    assert_int_equal(at(a)[110], 9);
    op.dst.op.ptr.rowLength = 5;
    INVALID(cuMemcpy3DBatchAsync(1, &op, &fail, 0, s));
    assert_int_equal(fail, 0);
    OK(cuMemFree_v2(a));
}

static void bad_no_memory(void **state)
{
    CUdeviceptr a = fake_alloc(100);
    stream_push(fake_streams, nothing, NULL);
    for (int n = 0; n < 2; n++) {
        mem_fail_after(n);
        assert_int_equal(cuMemcpyHtoDAsync_v2(a, host, 100, fake_streams), CUDA_ERROR_OUT_OF_MEMORY);
        mem_fail_after(-1);
    }
    OK(cuMemFree_v2(a));
}

// A job that was checked for a capture that has ended is checked again.
static void bad_capture_ended(void **state)
{
    CUdeviceptr a = fake_alloc(512);
    struct CUstream_st *s;
    struct copy_job j = {0};
    CUDA_MEMSET_NODE_PARAMS_v2 p = {.dst = a, .elementSize = 1, .width = 1 << 22, .height = 1};
    OK(stream_get(fake_streams, false, &s));
    OK(copy_set_job(&p, &j));
    OK(copy_run_check(&j, COPY_CAPTURED));
    INVALID(copy_run_submit(&j, s, true));
    p.width = 512;
    OK(copy_set_job(&p, &j));
    OK(copy_run_check(&j, COPY_CAPTURED));
    OK(copy_run_submit(&j, s, true));
    OK(cuMemFree_v2(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_lines),    cmocka_unit_test(bad_bounds),
        cmocka_unit_test(bad_host),      cmocka_unit_test(good_pinned_bounds),
        cmocka_unit_test(good_order),    cmocka_unit_test(bad_context_error),
        cmocka_unit_test(good_sets),     cmocka_unit_test(good_boxes),
        cmocka_unit_test(bad_boxes),     cmocka_unit_test(good_batch),
        cmocka_unit_test(bad_no_memory), cmocka_unit_test(bad_capture_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
