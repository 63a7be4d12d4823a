// SPDX-License-Identifier: MIT
#include <sys/mman.h>

#include "cpu/memory_fake.h"

enum { RW = SPACE_READ | SPACE_WRITE, MIB = 1 << 20 };

// --- trees -------------------------------------------------------------------------------------------------

// Ranges are taken and given back at random and compared with a map of the owner of each cell.
static void good_ranges(void **state)
{
    enum { CELLS = 300, HELD = 40, STEPS = 4000 };
    struct memory_tree t = {0};
    struct memory_range *all = mem_zalloc(1, sizeof *all), *held[HELD] = {0};
    bool taken[CELLS] = {0};
    all->base = 1000;
    all->size = CELLS;
    memory_range_insert(&t, all);
    for (int step = 0; step < STEPS; step++) {
        unsigned i = fake_random() % HELD;
        if (held[i]) {
            memset(&taken[held[i]->base - 1000], 0, held[i]->size);
            memory_range_give(&t, held[i], 0, UINT64_MAX);
            held[i] = NULL;
        } else {
            uint64_t size = 1 + fake_random() % 20, align = (uint64_t)1 << fake_random() % 5, at = 0,
                     want = 0;
            for (uint64_t a = 0; a + size <= CELLS && !want; a++)
                want = (1000 + a) % align == 0 && !memchr(&taken[a], 1, size) ? 1000 + a : 0;
            struct memory_range *r = memory_range_fit(&t, size, align, &at);
            assert_int_equal(r ? at : 0, want);
            if (r) {
                held[i] = memory_range_take(&t, r, at, size);
                memset(&taken[at - 1000], 1, size);
            }
        }
        assert_true(memory_range_valid(&t));
        uint64_t probe = 1000 + fake_random() % CELLS;
        assert_int_equal(memory_range_at(&t, probe) != NULL, !taken[probe - 1000]);
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i])
            memory_range_give(&t, held[i], 0, UINT64_MAX);
    }
    assert_int_equal(t.root->size, CELLS);
    mem_free(t.root);
}

// --- plain -------------------------------------------------------------------------------------------------

static void good_layout(void **state)
{
    CUdeviceptr a = fake_alloc(100), b = fake_alloc(100), c = fake_alloc(3000000), d = fake_alloc(3000000);
    assert_int_equal(b - a, 512);
    assert_int_equal(d - c, 4 * MIB);
    assert_int_equal(c % (2 * MIB), 0);
    assert_true(space_allows(a, 2 * MIB - 1024, RW));  // the whole slab, as on a GPU
    assert_true(space_is_device(a));
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(c));
    assert_false(space_allows(c, 1, SPACE_READ));
    OK(cuMemFree_v2(b));
    OK(cuMemFree_v2(d));
    OK(cuMemFree_v2(0));
}

static void bad_alloc_and_free(void **state)
{
    CUdeviceptr p = fake_alloc(100);
    INVALID(cuMemAlloc_v2(NULL, 4));
    INVALID(cuMemAlloc_v2(&p, 0));
    assert_int_equal(cuMemAlloc_v2(&(CUdeviceptr){0}, fake_total + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(&(CUdeviceptr){0}, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    INVALID(cuMemFree_v2(p + 4));
    INVALID(cuMemFree_v2(p + 512));
    INVALID(cuMemFree_v2(0x1234));
    INVALID(cuMemFree_v2((uintptr_t)&p));
    OK(cuMemFree_v2(p));
    INVALID(cuMemFree_v2(p));
    fake_state = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemAlloc_v2(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    fake_state = CUDA_SUCCESS;
}

static void good_pitch(void **state)
{
    CUdeviceptr p;
    size_t pitch, size;
    OK(cuMemAllocPitch_v2(&p, &pitch, 513, 2, 8));
    assert_int_equal(pitch, 1024);
    OK(cuMemGetAddressRange_v2(&p, &size, p + 2047));
    assert_int_equal(size, 2048);
    assert_int_equal(cuMemGetAddressRange_v2(&p, &size, p + 2048), CUDA_ERROR_NOT_FOUND);
    OK(cuMemGetAddressRange_v2(NULL, NULL, p));
    OK(cuMemFree_v2(p));
    INVALID(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 3));
    INVALID(cuMemAllocPitch_v2(&p, &pitch, 0, 10, 4));
    INVALID(cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX - 5, 10, 4));
    INVALID(cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX / 2, 10, 4));
    INVALID(cuMemAllocPitch_v2(&p, NULL, 10, 10, 4));
}

static void good_limit(void **state)
{
    size_t before = fake_free_bytes();
    CUdeviceptr p[32];
    unsigned n = 0;
    while (n < 32 && cuMemAlloc_v2(&p[n], 16 * MIB) == CUDA_SUCCESS)
        n++;
    assert_in_range(n, 14, 16);
    assert_in_range(fake_free_bytes(), 0, 32 * MIB);
    for (unsigned i = 0; i < n; i++)
        OK(cuMemFree_v2(p[i]));
    assert_int_equal(fake_free_bytes(), before);
}

// Freed memory is returned to the system.
static void good_given_back(void **state)
{
    CUdeviceptr p = fake_alloc(8 * MIB);
    memset(space_host(p), 1, 8 * MIB);
    OK(cuMemFree_v2(p));
    unsigned char there = 1;
    assert_int_equal(mincore(space_host(p) + 4 * MIB, 4096, &there), 0);
    assert_int_equal(there & 1, 0);
    assert_int_equal(space_host(p)[4 * MIB], 0);  // still mapped: a kernel that is late must not fault
}

// --- host --------------------------------------------------------------------------------------------------

static void good_host(void **state)
{
    char *p;
    unsigned flags;
    CUdeviceptr d;
    OK(cuMemHostAlloc((void **)&p, 5000, CU_MEMHOSTALLOC_PORTABLE));
    memset(p, 7, 5000);
    assert_int_equal((uintptr_t)p % 4096, 512);  // as where a driver packs small buffers
    assert_true(space_allows((uintptr_t)p, 8192 - 512, RW));
    assert_false(space_allows((uintptr_t)p, 8193 - 512, RW));
    OK(cuMemHostGetDevicePointer_v2(&d, p + 5, 0));
    assert_int_equal(d, (uintptr_t)p + 5);
    OK(cuMemHostGetFlags(&flags, p + 100));
    assert_int_equal(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    INVALID(cuMemHostGetDevicePointer_v2(&d, p + 5000, 0));
    INVALID(cuMemFreeHost(p + 4));
    INVALID(cuMemHostUnregister(p));
    INVALID(cuMemFree_v2((uintptr_t)p));
    OK(cuMemFreeHost(p));
    INVALID(cuMemFreeHost(p));
    OK(cuMemFreeHost(NULL));
    assert_false(space_allows((uintptr_t)p, 1, SPACE_READ));
    assert_false(space_allows((uintptr_t)p - 512, 1, SPACE_READ));
    OK(cuMemHostAlloc((void **)&p, 2 * MIB, 0));
    assert_int_equal((uintptr_t)p % 4096, 0);
    OK(cuMemFreeHost(p));
    OK(cuMemHostAlloc((void **)&p, 0, 0));
    INVALID(cuMemHostAlloc((void **)&p, 10, 8));
    assert_int_equal(cuMemHostAlloc((void **)&p, (size_t)1 << 46, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void good_registered(void **state)
{
    char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t a = (uintptr_t)p;
    OK(cuMemHostRegister_v2(p + 10, 100, 0));
    OK(cuMemHostRegister_v2(p + 200, 8000, 0));
    assert_true(space_allows(a, 12288, RW));
    assert_false(space_allows(a, 12289, SPACE_READ));
    assert_int_equal(cuMemHostRegister_v2(p + 50, 100, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    INVALID(cuMemHostUnregister(p + 11));
    OK(cuMemHostUnregister(p + 10));
    assert_true(space_allows(a, 12288, RW));  // the other block still has the page
    assert_int_equal(cuMemHostUnregister(p + 10), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostRegister_v2(p + 12288, 10, CU_MEMHOSTREGISTER_READ_ONLY));
    assert_true(space_allows(a + 12288, 4096, SPACE_READ));
    assert_false(space_allows(a + 12288, 1, SPACE_WRITE));
    OK(cuMemHostUnregister(p + 200));
    assert_false(space_allows(a, 1, SPACE_READ));
    OK(cuMemHostUnregister(p + 12288));
    assert_false(space_allows(a + 12288, 1, SPACE_READ));
    munmap(p, 65536);
}

static void bad_registered(void **state)
{
    CUdeviceptr d = fake_alloc(100);
    char *none = mmap(NULL, 12288, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(none + 4096, 4096, PROT_READ);
    INVALID(cuMemHostRegister_v2(NULL, 10, 0));
    INVALID(cuMemHostRegister_v2((void *)0x10000, 10, 0));
    INVALID(cuMemHostRegister_v2(none, 10, 0));
    INVALID(cuMemHostRegister_v2(none + 4096, 10, 0));
    OK(cuMemHostRegister_v2(none + 4096, 10, CU_MEMHOSTREGISTER_READ_ONLY));
    OK(cuMemHostUnregister(none + 4096));
    INVALID(cuMemHostRegister_v2((void *)(uintptr_t)d, 10, 0));
    INVALID(cuMemHostRegister_v2(&d, 0, 0));
    INVALID(cuMemHostRegister_v2(&d, 8, 0x10));
    INVALID(cuMemHostRegister_v2(&d, SIZE_MAX, 0));
    munmap(none, 12288);
    OK(cuMemFree_v2(d));
}

static void good_managed(void **state)
{
    CUdeviceptr m;
    int v[3];
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    OK(cuMemAllocManaged(&m, 100, CU_MEM_ATTACH_GLOBAL));
    ((char *)(uintptr_t)m)[99] = 1;
    assert_true(space_allows(m, 100, RW));
    OK(cuMemPrefetchAsync_v2(m, 100, device, 0, NULL));
    INVALID(cuMemPrefetchAsync_v2(m, 101, device, 0, NULL));
    INVALID(cuMemPrefetchAsync(0x1000, 4, 0, NULL));
    assert_int_equal(cuMemPrefetchAsync(m, 100, 5, NULL), CUDA_ERROR_INVALID_DEVICE);
    OK(cuMemPrefetchAsync(m, 100, CU_DEVICE_CPU, NULL));
    OK(cuMemAdvise_v2(m, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    OK(cuMemAdvise_v2(m, 50, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    OK(cuMemAdvise_v2(m, 100, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    INVALID(cuMemAdvise(m, 100, CU_MEM_ADVISE_SET_ACCESSED_BY, 5));
    INVALID(cuMemAdvise(m, 100, 9, 0));
    static const int want[] = {0, 1, -1, 0, -1, 2, -1, 2, -1};
    for (int a = 1; a <= 8; a++) {
        OK(cuMemRangeGetAttribute(v, a == 3 ? 12 : 4, a, m, 100));
        assert_int_equal(v[0], want[a]);
    }
    OK(cuMemRangeGetAttribute(v, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, 100));
    assert_int_equal(v[1], -2);
    INVALID(cuMemRangeGetAttribute(v, 8, 1, m, 100));
    INVALID(cuMemRangeGetAttribute(v, 4, 9, m, 100));
    INVALID(cuMemRangeGetAttribute(v, 4, 1, m, 101));
    INVALID(cuMemFreeHost((void *)(uintptr_t)m));
    OK(cuMemFree_v2(m));
    INVALID(cuMemAllocManaged(&m, 100, 0));
    INVALID(cuMemAllocManaged(&m, 0, 1));
}

// --- pointers ----------------------------------------------------------------------------------------------

static void good_pointers(void **state)
{
    CUdeviceptr p = fake_alloc(100), q;
    void *ctx;
    int n;
    OK(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p + 99));
    assert_ptr_equal(ctx, &fake_ctx);
    OK(cuPointerGetAttribute(&q, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 99));
    assert_int_equal(q, p);
    OK(cuPointerGetAttribute(&q, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p));
    assert_int_equal(q, 2 * MIB);
    OK(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    assert_int_equal(n, CU_MEMORYTYPE_DEVICE);
    INVALID(cuPointerGetAttribute(&q, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
    INVALID(cuPointerGetAttribute(&q, CU_POINTER_ATTRIBUTE_CONTEXT, p + 100));
    INVALID(cuPointerGetAttribute(&q, 99, p));
    INVALID(cuPointerGetAttribute(NULL, 1, p));
    CUpointer_attribute a[] = {1, 2, 9, 8, 4};
    int type = 7, device = 7, managed = 7;
    void *host = &q, *out[] = {&ctx, &type, &device, &managed, &host};
    OK(cuPointerGetAttributes(5, a, out, (uintptr_t)&n));
    assert_ptr_equal(ctx, NULL);
    assert_int_equal(type, 0);
    assert_int_equal(device, -2);
    assert_int_equal(managed, 0);
    assert_ptr_equal(host, NULL);
    OK(cuPointerGetAttributes(5, a, out, p));
    assert_int_equal(device, 0);
    INVALID(cuPointerGetAttributes(0, a, out, p));
    a[3] = 99;
    INVALID(cuPointerGetAttributes(5, a, out, p));
    OK(cuPointerSetAttribute(&(int){0}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 8));
    OK(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    assert_int_equal(n, 0);
    INVALID(cuPointerSetAttribute(&n, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    OK(cuMemFree_v2(p));
}

// --- internal memory ---------------------------------------------------------------------------------------

static void good_internal(void **state)
{
    uint64_t a = memory_internal_alloc(100, 4), b = memory_internal_alloc(4096, 4096);
    uint64_t c = memory_internal_alloc(5 * MIB, 256), m = memory_internal_managed(10, 8);
    assert_true(a && b && c && m && b % 4096 == 0 && !space_is_device(m));
    for (int i = 0; i < 100; i++)
        assert_int_equal(space_host(a)[i], 0);
    memory_internal_protect(b, 4096, false);
    assert_false(space_allows(b, 1, SPACE_WRITE));
    assert_true(space_allows(b, 4096, SPACE_READ));
    INVALID(cuMemFree_v2(a));
    INVALID(cuMemsetD8_v2(a, 1, 1));
    assert_int_equal(memory_track_variable(&fake_ctx, a, 100, false), 0);
    OK(cuMemsetD8_v2(a, 1, 100));
    INVALID(cuMemsetD8_v2(a, 1, 101));
    INVALID(cuMemFree_v2(a));
    memory_untrack_variable(a);
    INVALID(cuMemsetD8_v2(a, 1, 100));
    assert_int_equal(memory_track_variable(&fake_ctx, m, 10, true), 0);
    INVALID(cuMemFree_v2(m));
    memory_untrack_variable(m);
    memory_internal_free(b);
    assert_true(space_allows(b, 4096, RW));
    memory_internal_free(a);
    assert_int_equal(memory_internal_alloc(100, 4), a);
    assert_int_equal(space_host(a)[99], 0);  // zeroed again
    memory_internal_free(a);
    memory_internal_free(c);
    memory_internal_free(m);
    assert_false(space_allows(m, 1, SPACE_READ));
    assert_int_equal(memory_internal_alloc(fake_total * 2, 8), 0);
}

static void good_heap(void **state)
{
    enum { N = 500 };
    uint64_t at[N] = {0}, sizes[N];
    fake_ctx.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 4 * MIB;
    for (int step = 0; step < 20000; step++) {
        unsigned i = fake_random() % N;
        if (at[i]) {
            assert_false(fake_heap_free(&fake_ctx, at[i] + 1));
            assert_true(fake_heap_free(&fake_ctx, at[i]));
            assert_false(fake_heap_free(&fake_ctx, at[i]));
            at[i] = 0;
            continue;
        }
        sizes[i] = 1 + fake_random() % 20000;
        at[i] = fake_heap_alloc(&fake_ctx, sizes[i]);
        if (at[i])
            memset(space_host(at[i]), (int)i, sizes[i]);
        assert_int_equal(at[i] % 16, 0);
    }
    for (int i = 0; i < N; i++) {
        for (uint64_t k = 0; at[i] && k < sizes[i]; k += 512)
            assert_int_equal((unsigned char)space_host(at[i])[k], i % 256);
    }
    assert_int_equal(fake_heap_alloc(&fake_ctx, 5 * MIB), 0);
    assert_int_equal(fake_heap_alloc(&fake_ctx, UINT64_MAX), 0);
    INVALID(cuMemFree_v2(fake_heap_alloc(&fake_ctx, 1)));
    memory_context_free(&fake_ctx);
    assert_false(fake_heap_free(&fake_ctx, at[0]));
}

static void good_context_end(void **state)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *h;
    size_t before = fake_free_bytes();
    CUdeviceptr p = fake_alloc(5 * MIB), m;
    OK(cuMemAllocManaged(&m, 100, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAllocHost_v2(&h, 100));
    OK(cuMemHostRegister_v2(page, 100, 0));
    memory_context_free(&fake_ctx);
    assert_int_equal(fake_free_bytes(), before);
    assert_false(space_allows(p, 1, SPACE_READ) || space_allows(m, 1, SPACE_READ) ||
                 space_allows((uintptr_t)h, 1, SPACE_READ) || space_allows((uintptr_t)page, 1, SPACE_READ));
    INVALID(cuMemFree_v2(p));
    INVALID(cuMemFree_v2(m));
    munmap(page, 4096);
}

// --- threads -----------------------------------------------------------------------------------------------

static void *busy(void *arg)
{
    unsigned mine = (unsigned)(uintptr_t)arg;
    uintptr_t wrong = 0;
    for (unsigned i = 0; i < 400; i++) {
        CUdeviceptr p, a;
        unsigned back[16] = {0};
        size_t size = i % 7 ? 64 + i : 3 * MIB;
        void *h;
        wrong += cuMemAlloc_v2(&p, size) || cuMemAllocAsync(&a, size, NULL) || cuMemHostAlloc(&h, 100, 0);
        wrong += cuMemsetD32_v2(p, mine, 16) || cuMemcpyDtoD_v2(a, p, 64) || cuMemcpyDtoH_v2(back, a, 64);
        wrong += back[0] != mine || back[15] != mine;
        uint64_t v = fake_heap_alloc(&fake_ctx, 100), w = memory_internal_alloc(100, 16);
        wrong += !v || !w || !fake_heap_free(&fake_ctx, v);
        memory_internal_free(w);
        wrong += cuMemFree_v2(p) || cuMemFree_v2(a) || cuMemFreeHost(h);
    }
    return (void *)wrong;
}

static void good_threads(void **state)
{
    enum { THREADS = 4 };
    pthread_t t[THREADS];
    size_t before = fake_free_bytes();
    fake_ctx.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 4 * MIB;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, busy, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(t[i], &wrong);
        assert_ptr_equal(wrong, NULL);
    }
    memory_context_free(&fake_ctx);
    assert_int_equal(fake_free_bytes(), before);
}

// Every call that runs out of memory of ours returns an error and leaves everything as it was.
static void bad_no_memory(void **state)
{
    size_t before = fake_free_bytes();
    for (int n = 0; n < 12; n++) {
        CUdeviceptr p = 0, m = 0, a = 0;
        void *h = NULL;
        mem_fail_after(n);
        CUresult r[] = {cuMemAlloc_v2(&p, 3 * MIB), cuMemAllocManaged(&m, 10, 1), cuMemHostAlloc(&h, 10, 0),
                        cuMemAllocAsync(&a, 100, NULL)};
        mem_fail_after(-1);
        assert_int_equal(p ? 0 : CUDA_ERROR_OUT_OF_MEMORY, r[0]);
        assert_int_equal(m ? 0 : CUDA_ERROR_OUT_OF_MEMORY, r[1]);
        assert_int_equal(h ? 0 : CUDA_ERROR_OUT_OF_MEMORY, r[2]);
        assert_int_equal(a ? 0 : CUDA_ERROR_OUT_OF_MEMORY, r[3]);
        OK(cuMemFree_v2(p));
        OK(cuMemFree_v2(m));
        OK(cuMemFreeHost(h));
        OK(cuMemFree_v2(a));
        assert_int_equal(fake_free_bytes(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ranges),        cmocka_unit_test(good_layout),
        cmocka_unit_test(bad_alloc_and_free), cmocka_unit_test(good_pitch),
        cmocka_unit_test(good_limit),         cmocka_unit_test(good_given_back),
        cmocka_unit_test(good_host),          cmocka_unit_test(good_registered),
        cmocka_unit_test(bad_registered),     cmocka_unit_test(good_managed),
        cmocka_unit_test(good_pointers),      cmocka_unit_test(good_internal),
        cmocka_unit_test(good_heap),          cmocka_unit_test(good_context_end),
        cmocka_unit_test(bad_no_memory),      cmocka_unit_test(good_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
