// SPDX-License-Identifier: MIT
#include "cpu/memory_fake.h"

enum { MIB = 1 << 20, CHUNK = 32 * MIB };

static cuuint64_t value(CUmemoryPool p, CUmemPool_attribute a)
{
    cuuint64_t v = 0;
    OK(cuMemPoolGetAttribute(p, a, &v));
    return v;
}

static CUmemoryPool make(size_t most)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            .maxSize = most};
    CUmemoryPool p;
    OK(cuMemPoolCreate(&p, &props));
    return p;
}

static void good_default(void **state)
{
    CUmemoryPool a, b, owner;
    CUdeviceptr p, q;
    CUstream s = fake_streams;
    OK(cuDeviceGetDefaultMemPool(&a, 0));
    OK(cuDeviceGetMemPool(&b, 0));
    assert_ptr_equal(a, b);
    OK(cuMemAllocAsync(&p, 100, s));
    OK(cuMemAllocAsync(&q, 100, s));
    assert_int_equal(q - p, 512);
    assert_int_equal(value(a, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), CHUNK);
    assert_int_equal(value(a, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 200);
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_ptr_equal(owner, a);
    OK(cuMemsetD8_v2(p, 1, 100));
    INVALID(cuMemsetD8_v2(p, 1, 101));
    INVALID(cuMemFreeAsync(p + 4, s));
    OK(cuMemFreeAsync(p, s));
    INVALID(cuMemFreeAsync(p, s));
    INVALID(cuMemsetD8_v2(p, 1, 1));
    OK(cuMemFree_v2(q));
    fake_run(NULL);
    assert_int_equal(value(a, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(value(a, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 200);
    assert_false(space_allows(p, 1, SPACE_READ));
    OK(cuMemAllocAsync(&p, 0, s));
    OK(cuMemFreeAsync(0, s));
    INVALID(cuMemAllocAsync(NULL, 4, s));
    INVALID(cuMemFreeAsync((uintptr_t)&p, s));
    INVALID(cuMemPoolDestroy(a));
}

// The stream that freed memory gets it again before the free has run; another stream only afterwards.
static void good_reuse(void **state)
{
    CUmemoryPool pool = make(0);
    CUdeviceptr p, q, r;
    CUstream s = &fake_streams[0], t = &fake_streams[1];
    OK(cuMemAllocFromPoolAsync(&p, 40 * MIB, pool, s));
    for (int i = 0; i < 50; i++) {
        OK(cuMemFreeAsync(p, s));
        OK(cuMemAllocFromPoolAsync(&q, 40 * MIB - i, pool, s));
        assert_int_equal(p, q);
    }
    OK(cuMemFreeAsync(p, s));
    OK(cuMemAllocFromPoolAsync(&r, 40 * MIB, pool, t));
    assert_int_not_equal(p, r);
    // The frees of reused memory do nothing; the last one returns it to the pool.
    fake_run(s);
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 40 * MIB);
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 40 * MIB);
    OK(cuMemFreeAsync(r, t));
    fake_run(NULL);
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    OK(cuMemPoolDestroy(pool));
}

// Out of memory: the call waits for pending frees.
static void good_wait_for_room(void **state)
{
    CUmemoryPool pool = make(0);
    CUdeviceptr p;
    OK(cuMemAllocFromPoolAsync(&p, 200 * MIB, pool, &fake_streams[0]));
    OK(cuMemFreeAsync(p, &fake_streams[0]));
    OK(cuMemAllocFromPoolAsync(&p, 190 * MIB, pool, &fake_streams[1]));
    assert_int_equal(cuMemAlloc_v2(&(CUdeviceptr){0}, 100 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFreeAsync(p, &fake_streams[1]));
    fake_run(NULL);
    CUdeviceptr q = fake_alloc(200 * MIB);  // the pool returns the memory that it keeps
    assert_int_equal(cuMemAllocFromPoolAsync(&p, 100 * MIB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree_v2(q));
    OK(cuMemPoolDestroy(pool));
}

static void good_threshold(void **state)
{
    CUmemoryPool pool = make(0);
    CUdeviceptr p;
    cuuint64_t v = 1000 * MIB;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
    OK(cuMemAllocFromPoolAsync(&p, 100 * MIB, pool, NULL));
    OK(cuMemFreeAsync(p, NULL));
    fake_run(NULL);
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 100 * MIB);
    assert_true(space_allows(p, 100 * MIB, SPACE_WRITE));
    OK(cuMemPoolTrimTo(pool, 200 * MIB));
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 100 * MIB);
    OK(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 100 * MIB);
    INVALID(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &v));
    v = 0;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &v));
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
    INVALID(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &v));
    INVALID(cuMemPoolSetAttribute(pool, 9, &v));
    INVALID(cuMemPoolSetAttribute(pool, 4, NULL));
    INVALID(cuMemPoolGetAttribute(pool, 0, &v));
    int off = 0, got = 7;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &got));
    assert_int_equal(got, 0);
    OK(cuMemPoolDestroy(pool));
}

// A destroyed pool lives until its memory is freed.
static void good_destroy(void **state)
{
    size_t before = fake_free_bytes();
    CUmemoryPool pool = make(0), now;
    CUdeviceptr p, q;
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuMemAllocAsync(&p, 100, NULL));
    OK(cuMemAllocAsync(&q, 100, NULL));
    OK(cuMemPoolDestroy(pool));
    INVALID(cuMemPoolDestroy(pool));
    INVALID(cuMemAllocFromPoolAsync(&q, 4, pool, NULL));
    OK(cuDeviceGetMemPool(&now, 0));
    assert_ptr_not_equal(now, pool);
    OK(cuMemsetD8_v2(p, 1, 100));
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemFree_v2(q));
    fake_run(NULL);
    assert_int_equal(fake_free_bytes(), before);
    INVALID(cuDeviceSetMemPool(0, NULL));
    assert_int_equal(cuDeviceGetMemPool(&now, 7), CUDA_ERROR_INVALID_DEVICE);
}

static void good_limits_and_access(void **state)
{
    CUmemoryPool pool = make(MIB);
    CUdeviceptr p;
    CUmemAccess_flags f;
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    OK(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, NULL));
    assert_int_equal(cuMemAllocFromPoolAsync(&(CUdeviceptr){0}, 40 * MIB, pool, NULL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree_v2(p));
    OK(cuMemPoolGetAccess(&f, pool, &device));
    assert_int_equal(f, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemPoolGetAccess(&f, pool, &host));
    assert_int_equal(f, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    CUmemAccessDesc d = {device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemPoolSetAccess(pool, &d, 1));
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    assert_int_equal(cuMemPoolSetAccess(pool, &d, 1), CUDA_ERROR_NOT_SUPPORTED);
    d.location.id = 5;
    assert_int_equal(cuMemPoolSetAccess(pool, &d, 1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuMemPoolDestroy(pool));
    CUmemPoolProps props = {0};
    INVALID(cuMemPoolCreate(&pool, &props));
    INVALID(cuMemPoolCreate(&pool, NULL));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 3};
    INVALID(cuMemPoolCreate(&pool, &props));
    INVALID(cuMemPoolTrimTo(NULL, 0));
}

static void good_host_pool(void **state)
{
    CUmemoryPool pool;
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUdeviceptr p;
    int type;
    OK(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    OK(cuMemAllocFromPoolAsync(&p, 100, pool, NULL));
    *(char *)(uintptr_t)p = 1;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    OK(cuMemFreeAsync(p, NULL));
    fake_run(NULL);
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_false(space_allows(p, 1, SPACE_READ));
}

// Plain memory may be freed in stream order; managed memory may not.
static void good_plain_async(void **state)
{
    CUdeviceptr p = fake_alloc(8 * MIB), m;
    OK(cuMemFreeAsync(p, fake_streams));
    INVALID(cuMemFree_v2(p));
    OK(cuMemAllocManaged(&m, 10, CU_MEM_ATTACH_GLOBAL));
    assert_int_equal(cuMemFreeAsync(m, fake_streams), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuMemFree_v2(m));
    fake_run(NULL);
    assert_false(space_allows(p, 1, SPACE_READ));
}

// Random allocations and frees in four streams, run at random: live allocations never overlap, and keep what
// their stream wrote after everything before it has run.
static void good_random(void **state)
{
    enum { N = 60, STEPS = 6000 };
    struct live {
        CUdeviceptr p;
        size_t size;
        CUstream stream;
    } live[N] = {0};
    size_t before = fake_free_bytes();
    CUmemoryPool pool = make(0);
    for (int step = 0; step < STEPS; step++) {
        struct live *l = &live[fake_random() % N];
        if (fake_random() % 8 == 0)
            fake_run(&fake_streams[fake_random() % FAKE_STREAMS]);
        if (l->p) {
            OK(cuMemFreeAsync(l->p, l->stream));
            l->p = 0;
            continue;
        }
        l->size = 1 + fake_random() % (fake_random() % 4 ? 5000 : 3 * MIB);
        l->stream = &fake_streams[fake_random() % FAKE_STREAMS];
        OK(cuMemAllocFromPoolAsync(&l->p, l->size, pool, l->stream));
        for (int i = 0; i < N; i++) {
            if (&live[i] != l && live[i].p)
                assert_true(live[i].p + live[i].size <= l->p || l->p + l->size <= live[i].p);
        }
        assert_true(space_allows(l->p, l->size, SPACE_READ | SPACE_WRITE));
    }
    for (int i = 0; i < N; i++)
        OK(cuMemFreeAsync(live[i].p, live[i].p ? live[i].stream : NULL));
    fake_run(NULL);
    assert_int_equal(value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    OK(cuMemPoolDestroy(pool));
    assert_int_equal(fake_free_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_default),       cmocka_unit_test(good_reuse),
        cmocka_unit_test(good_wait_for_room), cmocka_unit_test(good_threshold),
        cmocka_unit_test(good_destroy),       cmocka_unit_test(good_limits_and_access),
        cmocka_unit_test(good_host_pool),     cmocka_unit_test(good_plain_async),
        cmocka_unit_test(good_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
