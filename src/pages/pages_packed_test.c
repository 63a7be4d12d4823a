// SPDX-License-Identifier: MIT
// Packed buffers on the CPU device, which is linked in: addresses are not given out twice, buffers keep their
// distance, memory is used again.
#include "pages/pages_packed.h"

#include <stdlib.h>
#include <string.h>

#include "pages/pages_address.h"
#include "pages/pages_testing.h"
#include "track/track.h"

enum { LIVE = 300, ROUNDS = 20000, KEPT = 1 << 16 };

// What was last said of memory that is cut into slots.
static struct {
    uint64_t base, bytes, stride;
} cut;

static void note_cut(uint64_t base, uint64_t bytes, uint64_t stride)
{
    cut.base = base;
    cut.bytes = bytes;
    cut.stride = stride;
}

static const struct track_listener listener = {.divided = note_cut};

static int setup(void **state)
{
    track_listen(&listener);
    guard.options.pages_small = OPTION_PAGES_SMALL_PACKED;
    return pages_testing_start((uint64_t)1 << 30);
}

struct buffer {
    CUdeviceptr at;
    size_t size;
};

static int by_address(const void *a, const void *b)
{
    const struct buffer *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

// Requires sorted buffers.
static void keep_their_distance(const struct buffer *b, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        assert_true(b[i].at + b[i].size + PAGES_PACKED_GAP <= b[i + 1].at);
}

static int is_wrong(struct index_item *item, void *unused)
{
    return !pages_block_valid((const struct pages_block *)item);
}

static size_t random_size(unsigned *seed)
{
    size_t most = (size_t)1 << (1 + rand_r(seed) % 15);
    return 1 + (size_t)rand_r(seed) % most;
}

// All buffers of the run, living and freed, are apart from each other: no address is given out twice.
static void no_address_serves_twice(void **state)
{
    static struct buffer all[KEPT], live[LIVE];
    size_t n = 0;
    unsigned seed = 4;
    CUresult r;
    size_t before = available();
    memset(live, 0, sizeof live);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct buffer *b = &live[rand_r(&seed) % LIVE];
        if (b->at)
            assert_true(pages_free(b->at, DRIVER_cuMemFree_v2, &r) && !r);
        b->size = random_size(&seed);
        assert_true(pages_alloc(&b->at, b->size, &r));
        assert_int_equal(b->at % 256, 0);
        all[n++] = *b;
        if (i % 1000 == 0)
            assert_true(pages_packed_valid() && !pages_block_each(is_wrong, NULL));
    }
    qsort(all, n, sizeof *all, by_address);
    keep_their_distance(all, n);
    for (unsigned i = 0; i < LIVE; i++)
        if (live[i].at)
            assert_true(pages_free(live[i].at, DRIVER_cuMemFree_v2, &r) && !r);
    assert_true(pages_packed_valid());
    pages_reclaim();
    assert_int_equal(pages_block_count(), 0);
    assert_int_equal(pages_memory_extra(), 0);
    assert_int_equal(available(), before);
}

// One buffer at a time, many times over, takes no more memory than one slab has.
static void memory_is_used_again(void **state)
{
    CUdeviceptr p, last = 0;
    CUresult r;
    assert_true(pages_alloc(&p, 5000, &r));
    size_t left = available();
    for (unsigned i = 0; i < 5000; i++) {
        assert_true(p != last);
        last = p;
        assert_true(pages_free(p, DRIVER_cuMemFree_v2, &r) && pages_alloc(&p, 5000, &r));
        assert_int_equal(available(), left);
    }
    assert_true(pages_free(p, DRIVER_cuMemFree_v2, &r));
    pages_reclaim();
}

// What a buffer holds is its own, though its memory was another buffer's at other addresses.
static void contents_stay(void **state)
{
    enum { N = 700 };
    static CUdeviceptr p[N];
    CUresult r;
    for (unsigned round = 0; round < 4; round++)
        for (unsigned i = 0; i < N; i++) {
            uint64_t mark = (uint64_t)i << 32 | round, seen = 0;
            if (p[i] && i % 3 == round % 3) {
                assert_true(pages_free(p[i], DRIVER_cuMemFree_v2, &r));
                p[i] = 0;
            }
            if (p[i]) {
                assert_int_equal(cuMemcpyDtoH_v2(&seen, p[i] + 4992, sizeof seen), 0);
                assert_int_equal(seen >> 32, i);
            } else {
                assert_true(pages_alloc(&p[i], 5000, &r));
            }
            assert_int_equal(cuMemcpyHtoD_v2(p[i] + 4992, &mark, sizeof mark), 0);
        }
    assert_true(pages_packed_valid());
    for (unsigned i = 0; i < N; i++)
        assert_true(pages_free(p[i], DRIVER_cuMemFree_v2, &r));
    pages_reclaim();
}

// Every driver call fails once: the buffer exists or is left to the driver, and nothing leaks.
static void any_call_may_fail(void **state)
{
    size_t before = available();
    bool done = false;
    for (int n = 0; !done && n < 100; n++) {
        CUdeviceptr p[6] = {0};
        CUresult r;
        atomic_store(&calls_left, n);
        for (unsigned i = 0; i < 6; i++)
            if (!pages_alloc(&p[i], (size_t)300000 * (i + 1) / 2, &r))
                p[i] = 0;
        done = atomic_load(&calls_left) > 0;
        atomic_store(&calls_left, -1);
        assert_true(pages_packed_valid());
        for (unsigned i = 0; i < 6; i++)
            if (p[i])
                assert_true(pages_free(p[i], DRIVER_cuMemFree_v2, &r) && !r);
        pages_reclaim();
        assert_int_equal(pages_memory_extra(), 0);
    }
    assert_true(done);
    assert_int_equal(available(), before);
}

// Every buffer lies in a slot of a range that was announced before.
static void slots_are_announced(void **state)
{
    for (size_t size = 1; size < 1 << 20; size = size * 3 + 1) {
        CUdeviceptr p;
        CUresult r;
        cut.bytes = 0;
        pages_packed_trim();
        assert_true(pages_alloc(&p, size, &r));
        assert_true(cut.bytes && p - cut.base < cut.bytes && cut.base % PAGES_ADDRESS_UNIT == 0);
        assert_int_equal((p - cut.base) % cut.stride, 0);
        assert_true(size + PAGES_PACKED_GAP <= cut.stride);
        assert_true(pages_free(p, DRIVER_cuMemFree_v2, &r) && !r);
        pages_reclaim();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_address_serves_twice), cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(contents_stay),           cmocka_unit_test(slots_are_announced),
        cmocka_unit_test(any_call_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
