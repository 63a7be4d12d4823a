// SPDX-License-Identifier: MIT
// Indices that struct kcheck_index accepts are compared with the bytes that they lead to.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "kcheck/kcheck.h"

static uint64_t seed = 1;
static uint64_t draw(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return n ? (seed >> 20) % n : 0;
}

struct access {
    uint64_t base, size, root;  // root: in the block, or its end
    uint32_t span, scale;
    int64_t at;
    bool is_signed;
};

static bool accepts(struct kcheck_index i, uint32_t index)
{
    return (uint32_t)(index + i.more) < i.limit;
}

static bool is_inside(const struct access *a, uint32_t index)
{
    __int128 wide = a->is_signed ? (__int128)(int32_t)index : (__int128)index;
    __int128 first = (__int128)a->root + wide * a->scale + a->at;
    return first >= a->base && first + a->span <= (__int128)a->base + a->size;
}

static void look(const struct access *a, struct kcheck_index i, uint32_t index)
{
    bool all = i.limit == UINT32_MAX && index == (uint32_t)-i.more - 1;  // the one that may be refused
    assert_true(!accepts(i, index) || is_inside(a, index));
    assert_true(accepts(i, index) || !is_inside(a, index) || all);
}

static void compare(const struct access *a)
{
    static const uint32_t ends[] = {0, INT32_MAX, (uint32_t)INT32_MIN, UINT32_MAX};
    struct kcheck_pair pair = kcheck_pair(a->base, a->size, a->span);
    struct kcheck_index i = kcheck_index(pair, a->root, a->scale, a->is_signed, a->at);
    for (uint32_t near = 0; near < 9; near++) {
        for (unsigned e = 0; e < sizeof ends / sizeof *ends; e++)
            look(a, i, ends[e] + near - 4);
        look(a, i, near - 4 - i.more);
        look(a, i, near - 4 - i.more + i.limit);
        // Where the ends of the block are, in steps from the root.
        look(a, i, (uint32_t)((int64_t)(a->base - a->root) / a->scale) + near - 4);
        look(a, i, (uint32_t)((int64_t)(a->base + a->size - a->root) / a->scale) + near - 4);
        look(a, i, (uint32_t)draw((uint64_t)1 << 32));
    }
}

static void good_indices(void **state)
{
    for (unsigned n = 0; n < 200000; n++) {
        struct access a = {.base = 4096 + draw((uint64_t)1 << draw(47)), .is_signed = draw(2)};
        a.size = 1 + draw((uint64_t)1 << draw(46));
        if (a.base + a.size > (uint64_t)1 << KCHECK_ADDRESS_BITS)
            continue;
        a.root = a.base + (draw(2) ? 0 : draw(a.size + 1));
        a.span = 1 + (uint32_t)draw(draw(4) ? 16 : 1 << 20);
        a.scale = 1 + (uint32_t)draw(draw(2) ? 16 : KCHECK_MOST_SCALE);
        int64_t far = draw(3) ? 64 : 2 * KCHECK_MOST_CONSTANT + 1;
        a.at = (int64_t)draw((uint64_t)far) - far / 2;
        compare(&a);
    }
}

static void good_small_blocks(void **state)
{
    for (unsigned n = 0; n < 2000; n++) {
        struct access a = {.base = 4096, .size = draw(64), .span = 1 + (uint32_t)draw(8)};
        a.root = a.base + draw(a.size + 1);
        a.scale = 1 + (uint32_t)draw(12);
        a.at = (int64_t)draw(32) - 16;
        a.is_signed = draw(2);
        struct kcheck_pair pair = kcheck_pair(a.base, a.size, a.span);
        struct kcheck_index i = kcheck_index(pair, a.root, a.scale, a.is_signed, a.at);
        for (uint32_t index = 0; index < 256; index++)
            assert_int_equal(accepts(i, index - 128), is_inside(&a, index - 128));
    }
}

static void bad_pairs(void **state)
{
    static const uint32_t indices[] = {0, 1, INT32_MAX, (uint32_t)INT32_MIN, UINT32_MAX};
    const uint64_t beyond = (uint64_t)1 << KCHECK_ADDRESS_BITS;
    const struct kcheck_index all[] = {
        kcheck_index((struct kcheck_pair){0, 0}, 0, 4, true, 0),                // null
        kcheck_index((struct kcheck_pair){4096, 0}, 4096, 4, true, 0),          // in the heap of malloc
        kcheck_index((struct kcheck_pair){4096, 64}, 4096, 0, true, 0),         // no scale
        kcheck_index((struct kcheck_pair){4096, 64}, beyond, 4, true, 0),       // no address
        kcheck_index((struct kcheck_pair){beyond, 64}, 4096, 4, true, 0),       //
        kcheck_index((struct kcheck_pair){4096, beyond + 1}, 4096, 4, true, 0)  //
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        for (unsigned k = 0; k < sizeof indices / sizeof *indices; k++)
            assert_false(accepts(all[i], indices[k]));
}

static void good_places(void **state)
{
    struct kcheck_pair pair = kcheck_placed((struct kcheck_pair){4096, 61}, 4096, 0, false, -8);
    assert_true(pair.base == 4104 && pair.limit == 61);
    // Floats behind the second one, from the second one on.
    pair = kcheck_placed(kcheck_pair(4096, 64, 4), 4100, 4, true, 4);
    struct kcheck_index index;
    memcpy(&index, &pair, sizeof index);
    assert_true(index.more == 2 && index.limit == 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_indices),
        cmocka_unit_test(good_small_blocks),
        cmocka_unit_test(bad_pairs),
        cmocka_unit_test(good_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
