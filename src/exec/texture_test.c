// SPDX-License-Identifier: MIT
#include "exec/texture.h"

#include "base/mem.h"
#include "exec/exec_testing.h"

static void handles(void **state)
{
    enum { N = 200 };
    uint64_t h[N];
    for (unsigned k = 0; k < N; k++) {
        struct texture t = {.array = true, .nlevels = 1, .level = {{.at = 4096 + k * 16, .width = k}}};
        h[k] = texture_add(&t);
        assert_true(h[k] && !space_is_device(h[k]));
        for (unsigned j = 0; j < k; j++)
            assert_true(h[j] != h[k]);
    }
    for (unsigned k = 0; k < N; k++)
        assert_int_equal(texture_get(h[k])->level[0].width, k);
    texture_remove(h[7]);
    texture_remove(h[7]);
    assert_null(texture_get(h[7]));
    // The slot is reused with another handle.
    struct texture t = {.nlevels = 1};
    uint64_t again = texture_add(&t);
    assert_true(again != h[7]);
    assert_null(texture_get(h[7]));
    assert_non_null(texture_get(again));
    texture_remove(again);
    // The memory of some arrays is freed.
    texture_lose(4096 + 10 * 16, 2 * 16);
    for (unsigned k = 0; k < N; k++)
        assert_int_equal(texture_get(h[k]) == NULL, k == 7 || k == 10 || k == 11);
    for (unsigned k = 0; k < N; k++)
        texture_remove(h[k]);
}

static void wild(void **state)
{
    static const uint64_t values[] = {0,           1,          1u << 20,         (1u << 20) - 1,
                                      0x123456789, UINT64_MAX, UINT64_C(1) << 63};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        assert_null(texture_find(values[k]));
        texture_remove(values[k]);
    }
    assert_null(texture_find(space.device_base + 1));
    assert_null(texture_find(space.device_base + EXEC_TESTING_MEMORY));
}

// A reference is memory that holds a handle.
static void references(void **state)
{
    struct texture t = {.nlevels = 1};
    uint64_t h = texture_add(&t), at = space.device_base + 64;
    memcpy(space_host(at), &h, sizeof h);
    assert_ptr_equal(texture_find(at), texture_get(h));
    texture_remove(h);
    assert_null(texture_find(at));
}

static void out_of_memory(void **state)
{
    struct texture t = {.nlevels = 1};
    uint64_t h[1000];
    unsigned n = 0;
    mem_fail_after(0);
    while (n < 1000 && (h[n] = texture_add(&t)))
        n++;
    mem_fail_after(-1);
    assert_in_range(n, 0, 999);
    h[n] = texture_add(&t);
    assert_true(h[n]);
    for (unsigned k = 0; k <= n; k++)
        texture_remove(h[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles),
        cmocka_unit_test(wild),
        cmocka_unit_test(references),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
