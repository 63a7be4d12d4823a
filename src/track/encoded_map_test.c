// SPDX-License-Identifier: MIT
#include "track/encoded_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct encoded_map matrix(uint64_t address, uint64_t width, uint64_t height, uint64_t pitch)
{
    struct encoded_map m = {
        .address = address, .rank = 2, .element = 4, .size = {width, height}, .stride = {4, pitch}};
    encoded_map_measure(&m);
    return m;
}

static void bytes_of_tensor(void **state)
{
    // The last row ends with its last element.
    assert_int_equal(matrix(0x1000, 10, 3, 64).bytes, 2 * 64 + 40);
    assert_int_equal(matrix(0x1000, 1, 1, 64).bytes, 4);
    // Sizes that wrap around are those of no buffer.
    assert_int_equal(matrix(0x1000, 10, UINT64_C(1) << 40, UINT64_C(1) << 40).bytes, 0);
    assert_int_equal(matrix(0x1000, 0, 3, 64).bytes, 0);
    struct encoded_map packed = matrix(0x1000, 10, 3, 64);
    packed.element = 0;
    encoded_map_measure(&packed);
    assert_int_equal(packed.bytes, 0);
}

static void reach_of_box(void **state)
{
    struct encoded_map m = {.box_bytes = 2048, .box_row = 64, .box_span = encoded_map_span(0)};
    assert_int_equal(encoded_map_reach(&m), 2048);
    m.box_span = encoded_map_span(CU_TENSOR_MAP_SWIZZLE_64B);
    assert_int_equal(encoded_map_reach(&m), 2048);
    // The swizzle's span has each of the 32 rows to itself.
    m.box_span = encoded_map_span(CU_TENSOR_MAP_SWIZZLE_128B);
    assert_int_equal(encoded_map_reach(&m), 31 * 128 + 64);
    m.box_span = encoded_map_span(CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
    assert_int_equal(encoded_map_reach(&m), 31 * 128 + 64);
    m.box_bytes = 0;
    assert_int_equal(encoded_map_reach(&m), 0);
}

static void found_by_bytes(void **state)
{
    unsigned char bytes[ENCODED_MAP_BYTES] = {1, 2, 3}, other[ENCODED_MAP_BYTES] = {1, 2, 4};
    struct encoded_map m = matrix(0x2000, 10, 3, 64), out;
    assert_false(encoded_map_find(bytes, &out));
    encoded_map_add(bytes, &m);
    assert_true(encoded_map_find(bytes, &out));
    assert_int_equal(out.bytes, m.bytes);
    assert_false(encoded_map_find(other, &out));
    // The bit that some libraries clear, and another one.
    bytes[8 + 2] ^= 1 << 5;
    assert_true(encoded_map_find(bytes, &out));
    bytes[8 + 2] ^= 1 << 4;
    assert_false(encoded_map_find(bytes, &out));
}

static void latest_of_address(void **state)
{
    unsigned char bytes[ENCODED_MAP_BYTES] = {7};
    struct encoded_map m = matrix(0x3000, 10, 3, 64), out;
    encoded_map_add(bytes, &m);
    bytes[0] = 8;
    m = matrix(0x3000, 20, 3, 128);
    encoded_map_add(bytes, &m);
    assert_true(encoded_map_find_address(0x3000, &out));
    assert_int_equal(out.size[0], 20);
    assert_false(encoded_map_find_address(0x3001, &out));
}

// Of more maps than there is room for, the newest are kept.
static void many_maps(void **state)
{
    unsigned char bytes[ENCODED_MAP_BYTES] = {0};
    struct encoded_map m = matrix(0x4000, 10, 3, 64), out;
    uint64_t found = 0;
    for (uint64_t i = 0; i < 3 * ENCODED_MAP_MOST; i++) {
        memcpy(bytes + 40, &i, sizeof i);
        m.address = 0x10000 + i;
        encoded_map_add(bytes, &m);
        assert_true(encoded_map_find(bytes, &out));
        assert_int_equal(out.address, m.address);
    }
    for (uint64_t i = 0; i < 3 * ENCODED_MAP_MOST; i++) {
        memcpy(bytes + 40, &i, sizeof i);
        found += encoded_map_find(bytes, &out);
    }
    assert_in_range(found, ENCODED_MAP_MOST / 2, ENCODED_MAP_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_tensor),   cmocka_unit_test(reach_of_box), cmocka_unit_test(found_by_bytes),
        cmocka_unit_test(latest_of_address), cmocka_unit_test(many_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
