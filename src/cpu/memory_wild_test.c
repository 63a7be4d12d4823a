// SPDX-License-Identifier: MIT
// Calls with random arguments: valid, stale and wild ones. Nothing may crash, and nothing may be left when
// everything was freed.
#include <sys/mman.h>

#include "cpu/memory_fake.h"

enum { STEPS = 60000, SEEN = 64, MIB = 1 << 20 };

static char *host;              // the only pageable memory that a copy may hit; a guard follows its two pages
static CUdeviceptr seen[SEEN];  // whatever calls returned, live or not
static CUmemGenericAllocationHandle made[SEEN];
static CUmemoryPool pool;

static uint64_t pick(const uint64_t *from, size_t n)
{
    return from[fake_random() % n];
}

static uint64_t address(void)
{
    const uint64_t wild[] = {0,
                             1,
                             4096,
                             (uint64_t)1 << 46,
                             UINT64_MAX - 7,
                             space.device_base,
                             space.shared_window,
                             space.device_base + space.alias,
                             (uintptr_t)host,
                             (uintptr_t)host + 4000};
    if (fake_random() % 4 == 0)
        return pick(wild, sizeof wild / sizeof *wild);
    static const uint64_t off[] = {0, 0, 0, 0, 4, 99, 512, 4096, MEMORY_UNIT};
    uint64_t a = seen[fake_random() % SEEN];
    if (space_is_device(a))
        return a + pick(off, sizeof off / sizeof *off);
    // Freed host memory of ours may belong to anybody by now.
    return memory_block_at(a) ? a : (uintptr_t)host;
}

static size_t size_of(void)
{
    static const uint64_t sizes[] = {0,           1,
                                     100,         512,
                                     4096,        100000,
                                     MEMORY_UNIT, 2 * MEMORY_UNIT,
                                     3000000,     (uint64_t)1 << 40,
                                     UINT64_MAX,  UINT64_MAX / 2};
    return pick(sizes, sizeof sizes / sizeof *sizes);
}

static CUstream stream(void)
{
    return fake_random() % 8 ? &fake_streams[fake_random() % FAKE_STREAMS]
                             : (CUstream)(uintptr_t)(fake_random() % 4);
}

static void keep(CUresult r, CUdeviceptr p)
{
    if (!r && p)
        seen[fake_random() % SEEN] = p;
}

static void step_alloc(void)
{
    CUdeviceptr p = 0;
    void *h = NULL;
    size_t pitch;
    switch (fake_random() % 6) {
    case 0: keep(cuMemAlloc_v2(&p, size_of()), p); break;
    case 1:
        keep(cuMemAllocPitch_v2(&p, &pitch, size_of(), fake_random() % 8, 1u << fake_random() % 6), p);
        break;
    case 2: keep(cuMemAllocManaged(&p, size_of() % (8 * MIB), fake_random() % 4), p); break;
    case 3: keep(cuMemHostAlloc(&h, size_of() % (8 * MIB), fake_random() % 9), (uintptr_t)h); break;
    case 4: keep(cuMemAllocAsync(&p, size_of(), stream()), p); break;
    default:
        keep(cuMemAllocFromPoolAsync(&p, size_of(), fake_random() % 9 ? pool : (CUmemoryPool)host, stream()),
             p);
    }
}

static void step_free(void)
{
    switch (fake_random() % 5) {
    case 0: cuMemFree_v2(address()); break;
    case 1: cuMemFreeHost((void *)address()); break;
    case 2: cuMemFreeAsync(address(), stream()); break;
    case 3: cuMemHostUnregister((void *)address()); break;
    default: cuMemHostRegister_v2((void *)address(), size_of() % 8192, fake_random() % 17);
    }
}

static void step_map(void)
{
    CUmemAllocationProp prop = {.type = fake_random() % 8 ? CU_MEM_ALLOCATION_TYPE_PINNED : 0,
                                .requestedHandleTypes = fake_random() % 3,
                                .location = {fake_random() % 5, (int)(fake_random() % 2)}};
    CUmemAccessDesc d = {{fake_random() % 4, 0}, fake_random() % 4};
    CUmemGenericAllocationHandle *h = &made[fake_random() % SEEN];
    CUdeviceptr p = 0;
    switch (fake_random() % 8) {
    case 0: keep(cuMemAddressReserve(&p, size_of(), fake_random() % 2 * MEMORY_UNIT, address(), 0), p); break;
    case 1:
        cuMemRelease(*h);
        cuMemCreate(h, size_of() % (8 * MIB), &prop, 0);
        break;
    case 2: cuMemMap(address(), size_of(), 0, *h, 0); break;
    case 3: cuMemUnmap(address(), size_of()); break;
    case 4: cuMemSetAccess(address(), size_of(), &d, fake_random() % 2); break;
    case 5: cuMemAddressFree(address(), size_of()); break;
    case 6:
        cuMemRelease(*h);
        cuMemRetainAllocationHandle(h, (void *)address());
        break;
    default: cuMemRelease(*h);
    }
}

static void step_copy(void)
{
    CUDA_MEMCPY2D flat = {.srcMemoryType = fake_random() % 5,
                          .srcDevice = address(),
                          .srcHost = (void *)address(),
                          .srcPitch = size_of(),
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = address(),
                          .dstPitch = size_of(),
                          .WidthInBytes = size_of(),
                          .Height = fake_random() % 4};
    switch (fake_random() % 6) {
    case 0: cuMemcpyHtoDAsync_v2(address(), (void *)address(), size_of(), stream()); break;
    case 1: cuMemcpyDtoHAsync_v2(host, address(), size_of() % 8192, stream()); break;
    case 2: cuMemcpyDtoD_v2(address(), address(), size_of()); break;
    case 3: cuMemsetD16_v2(address(), 1, size_of()); break;
    case 4: cuMemsetD2D32Async(address(), size_of(), 1, size_of(), fake_random() % 5, stream()); break;
    default: cuMemcpy2DAsync_v2(&flat, stream());
    }
}

static void step_query(void)
{
    uint64_t out[4];
    CUpointer_attribute a = fake_random() % 24;
    CUmemLocation l = {fake_random() % 5, (int)(fake_random() % 2)};
    switch (fake_random() % 6) {
    case 0: cuPointerGetAttribute(out, a, address()); break;
    case 1: cuPointerGetAttributes(1, &a, (void *[]){out}, address()); break;
    case 2: cuMemGetAddressRange_v2((CUdeviceptr *)out, NULL, address()); break;
    case 3: cuMemPrefetchAsync_v2(address(), size_of(), l, 0, stream()); break;
    case 4: cuMemAdvise_v2(address(), size_of(), fake_random() % 8, l); break;
    default: cuMemRangeGetAttribute(out, 4, fake_random() % 10, address(), size_of());
    }
}

static void nothing(void *arg, bool run)
{
}

static void give_everything_back(void)
{
    fake_run(NULL);
    for (struct memory_block *b; (b = memory_block_after(0));) {
        CUdeviceptr p = b->node.base;
        size_t size = b->node.size;
        switch (b->kind) {
        case MEMORY_MAPPED: OK(cuMemUnmap(p, size)); break;
        case MEMORY_HOST: OK(cuMemFreeHost((void *)p)); break;
        case MEMORY_REGISTERED: OK(cuMemHostUnregister((void *)p)); break;
        default: OK(cuMemFree_v2(p));
        }
    }
    for (int i = 0; i < SEEN; i++) {
        while (cuMemRelease(made[i]) == CUDA_SUCCESS)
            continue;
    }
}

static void good_wild(void **state)
{
    static void (*const steps[])(void) = {step_alloc, step_free, step_map, step_copy, step_query};
    host = mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(host, 8192, PROT_READ | PROT_WRITE);
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    size_t before = fake_free_bytes();
    OK(cuMemPoolCreate(&pool, &props));
    for (int i = 0; i < STEPS; i++) {
        steps[fake_random() % 5]();
        if (fake_random() % 16 == 0)
            stream_push(&fake_streams[fake_random() % FAKE_STREAMS], nothing,
                        NULL);  // what follows has to queue
        if (fake_random() % 16 == 0)
            fake_run(&fake_streams[fake_random() % FAKE_STREAMS]);
        if (fake_random() % 100 == 0)
            assert_true(memory_slab_valid(memory_plain));
        if (fake_random() % 1000 == 0)
            give_everything_back();
    }
    give_everything_back();
    OK(cuMemPoolDestroy(pool));
    assert_int_equal(fake_free_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_wild)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
