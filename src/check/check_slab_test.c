// SPDX-License-Identifier: MIT
// Slabs of --mode=check on the CPU device, which is linked in: no two live buffers share memory or come
// closer than 256 bytes, no address is given out twice, memory comes back, and any driver call may fail.
#include "check/check_slab.h"

#include <stdlib.h>
#include <string.h>

#include "check/check_host.h"
#include "launch/kernel_fault.h"
#include "mode/mode_testing.h"

enum { BUFFERS = 400, STEPS = 20000 };

void kernel_fault_report(CUresult r)
{
}

unsigned launch_ring_recent(const char **names, unsigned most)
{
    return 0;
}

static unsigned divided;
void check_host_divide(uint64_t address, uint32_t stride)
{
    divided++;
}

WRAP(cuMemAddressReserve, (CUdeviceptr * p, size_t n, size_t a, CUdeviceptr at, unsigned long long f),
     (p, n, a, at, f))
WRAP(cuMemCreate,
     (CUmemGenericAllocationHandle * h, size_t n, const CUmemAllocationProp *p, unsigned long long f),
     (h, n, p, f))
WRAP(cuMemMap, (CUdeviceptr p, size_t n, size_t o, CUmemGenericAllocationHandle h, unsigned long long f),
     (p, n, o, h, f))
WRAP(cuMemSetAccess, (CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t count), (p, n, d, count))

static struct context *ctx;
static uint64_t random_state = 1;

static uint64_t any(uint64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 24) % below;
}

static int setup(void **state)
{
    use_cpu_device();
    REAL(cuMemRelease), REAL(cuMemUnmap), REAL(cuMemGetAllocationGranularity), REAL(cuMemAddressFree);
    TRIED(cuMemAddressReserve), TRIED(cuMemCreate), TRIED(cuMemMap), TRIED(cuMemSetAccess);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return -1;
    ctx = context_current();
    return ctx ? 0 : -1;
}

struct buffer {
    uint64_t base, size;
    unsigned char fill;
};
static struct buffer live[BUFFERS];
static unsigned nlive;

static void forget(unsigned i)
{
    unsigned char byte;
    const struct buffer *b = &live[i];
    // Whoever got the same memory would have changed it.
    for (unsigned end = 0; end < 2; end++) {
        assert_int_equal(cuMemcpyDtoH_v2(&byte, b->base + (end ? b->size - 1 : 0), 1), 0);
        assert_int_equal(byte, b->fill);
    }
    assert_true(check_slab_free(b->base));
    assert_false(check_slab_free(b->base));
    live[i] = live[--nlive];
}

static void take(uint64_t size)
{
    struct buffer *b = &live[nlive++];
    struct check_slab_buffer found;
    *b = (struct buffer){.size = size, .fill = (unsigned char)any(256)};
    assert_int_equal(check_slab_alloc(ctx, size, &b->base), 0);
    assert_int_equal(b->base % 256, 0);
    assert_int_equal(cuMemsetD8_v2(b->base, b->fill, size), 0);
    for (unsigned i = 0; i + 1 < nlive; i++)
        assert_true(b->base >= live[i].base + live[i].size + CHECK_SLAB_APART ||
                    live[i].base >= b->base + size + CHECK_SLAB_APART);
    assert_true(check_slab_find(b->base + size - 1, &found));
    assert_int_equal(found.base, b->base);
    assert_int_equal(found.size, size);
    assert_true(check_slab_find(b->base + size, &found));
    assert_int_equal(found.base, 0);
}

static void random_buffers_share_nothing(void **state)
{
    static const uint64_t sizes[] = {1, 100, 256, 700, 5000, 70000, 300000, CHECK_SLAB_LARGEST};
    size_t before = available();
    nlive = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        if (nlive < BUFFERS && (!nlive || any(100) < (i / 1000 % 2 ? 35 : 65)))
            take(sizes[any(i % 5 ? 4 : 8)]);
        else
            forget((unsigned)any(nlive));
        if (i % 500 == 0)
            assert_true(check_slab_valid());
    }
    while (nlive)
        forget(0);
    assert_true(check_slab_valid());
    assert_true(divided > 8);
    // A slab of each size stays for the next buffer.
    assert_true(before - available() <= (size_t)8 * (2 << 20));
}

// One buffer at a time: every one has an address of its own, until so many were retired.
static void addresses_are_not_used_again(void **state)
{
    enum { SIZE = 200000, PER_SLAB = 10 };
    static uint64_t seen[CHECK_SLAB_RETIRED * 4];
    unsigned n = 0;
    uint64_t reused = guard.counts[GUARD_CHECK_REUSED], p;
    uint32_t per = (2 << 20) / check_slab_stride(SIZE, 512);
    for (; n < CHECK_SLAB_RETIRED * 4 && guard.counts[GUARD_CHECK_REUSED] == reused; n++) {
        assert_int_equal(check_slab_alloc(ctx, SIZE, &p), 0);
        for (unsigned i = 0; i < n; i++)
            assert_true(seen[i] != p);
        seen[n] = p;
        assert_true(check_slab_free(p));
    }
    assert_true(n >= CHECK_SLAB_RETIRED || n == CHECK_SLAB_RETIRED * 4);
    for (; n < (CHECK_SLAB_RETIRED + 2) * per && guard.counts[GUARD_CHECK_REUSED] == reused; n++) {
        assert_int_equal(check_slab_alloc(ctx, SIZE, &p), 0);
        assert_true(check_slab_free(p));
    }
    assert_int_equal(guard.counts[GUARD_CHECK_REUSED], reused + 1);
}

static void frees_in_the_order_of_a_stream(void **state)
{
    uint64_t p;
    struct check_slab_buffer found;
    assert_int_equal(check_slab_alloc(ctx, 3000, &p), 0);
    assert_int_equal(check_slab_free_in_order(p, NULL, false), 0);
    assert_true(check_slab_find(p, &found));
    assert_int_equal(found.base, 0);
    assert_false(check_slab_free(p));
    assert_int_equal(check_slab_free_in_order(p, NULL, false), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuCtxSynchronize(), 0);
    assert_int_equal(check_slab_alloc(ctx, 3000, &p), 0);
    assert_true(check_slab_free(p));
    assert_true(check_slab_valid());
}

static void any_call_may_fail(void **state)
{
    uint64_t p;
    for (int n = 0; n < 40; n++) {
        atomic_store(&calls_left, n);
        int err = check_slab_alloc(ctx, 900 + 90 * (uint64_t)n, &p);
        atomic_store(&calls_left, -1);
        assert_true(check_slab_valid());
        if (!err)
            assert_true(check_slab_free(p));
    }
}

static void strides_leave_room(void **state)
{
    for (uint64_t size = 1; size <= CHECK_SLAB_LARGEST; size += size < 5000 ? 1 : 777) {
        uint32_t stride = check_slab_stride(size, 512);
        assert_int_equal(stride % 512, 0);
        assert_true(stride >= size + CHECK_SLAB_APART && stride <= 1 << 20);
        assert_true(size < 5000 || stride <= (size + CHECK_SLAB_APART) * 5 / 4);
    }
}

static void all_ends_with_the_context(void **state)
{
    uint64_t p;
    struct check_slab_buffer found;
    size_t before = available();
    assert_int_equal(check_slab_alloc(ctx, 100000, &p), 0);
    check_slab_context_gone(context);
    assert_false(check_slab_find(p, &found));
    assert_true(available() >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_leave_room),
        cmocka_unit_test(random_buffers_share_nothing),
        cmocka_unit_test(addresses_are_not_used_again),
        cmocka_unit_test(frees_in_the_order_of_a_stream),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(all_ends_with_the_context),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
