// SPDX-License-Identifier: MIT
// Handles that come and go, as kernels look them up; sizes of tensors.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fence/fence_objects.h"
#include "kfence/kfence_word.h"

enum { CONTEXT = 3, HANDLES = 3000, ROUNDS = 40000 };

// What a kernel does (kfence_judge_object).
static bool has(uint64_t word, uint64_t *bytes)
{
    const struct kfence_object *t = fence_objects_table(CONTEXT);
    uint64_t place = kfence_hash(word);
    for (unsigned i = 0; t && i < KFENCE_OBJECTS; i++, place++) {
        const struct kfence_object *o = &t[place % KFENCE_OBJECTS];
        *bytes = o->bytes;
        if (o->word == word || !o->word)
            return o->word == word;
    }
    return false;
}

// Random handles come and go; kernels find those that are there, and no others.
static void finds_what_is_there(void **state)
{
    static bool there[HANDLES];
    uint64_t bytes;
    unsigned place;
    srand(7);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n = (unsigned)rand() % HANDLES;
        uint64_t word = KFENCE_OBJECT(n % 2 ? KFENCE_TEXTURE : KFENCE_SURFACE, n / 2 << 7);
        assert_true(has(word, &bytes) == there[n]);
        if (there[n])
            assert_true(fence_objects_remove(CONTEXT, word, &place));
        else
            assert_true(fence_objects_add(CONTEXT, word, n, &place));
        there[n] = !there[n];
        assert_true(place < KFENCE_OBJECTS);
        assert_true(has(word, &bytes) == there[n] && (!there[n] || bytes == n));
        assert_false(has(KFENCE_OBJECT(KFENCE_MAP, n / 2 << 7), &bytes));
    }
    fence_objects_forget(CONTEXT);
    assert_false(has(KFENCE_OBJECT(KFENCE_TEXTURE, 0), &bytes));
}

static void refuses_more_than_fit(void **state)
{
    unsigned place, n = 0;
    uint64_t bytes;
    while (fence_objects_add(CONTEXT, KFENCE_OBJECT(KFENCE_TEXTURE, 1000 + n), 0, &place))
        n++;
    assert_true(n > KFENCE_OBJECTS / 2 && n < KFENCE_OBJECTS);
    assert_false(has(KFENCE_OBJECT(KFENCE_TEXTURE, 1000 + n), &bytes));
    assert_true(has(KFENCE_OBJECT(KFENCE_TEXTURE, 1000 + n - 1), &bytes));
    fence_objects_forget(CONTEXT);
}

static void knows_sizes_of_tensors(void **state)
{
    const cuuint64_t dims[] = {100, 70, 3}, strides[] = {448, 448 * 70};
    const cuuint32_t box[] = {32, 16, 2}, steps[] = {1, 2, 1};
    struct fence_tensor t = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, 0x10000, dims, strides, box, steps, 3, 0};
    struct fence_map map;
    assert_true(fence_objects_tensor(&t, &map));
    assert_int_equal(map.base, 0x10000);
    assert_int_equal(map.bytes, 2 * 448 * 70 + 69 * 448 + 400);
    assert_true(map.box == KFENCE_MAP_OF(32 * 8 * 2 * 4, 3, t.type));
    assert_int_equal((uint32_t)map.box, 32 * 8 * 2 * 4);
    t.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B;
    assert_true(fence_objects_tensor(&t, &map));
    assert_int_equal(map.bytes, 2 * 448 * 70 + 69 * 448 + 50);
    assert_true(map.box == KFENCE_MAP_OF(32 * 8 * 2, 3, t.type));
    t.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    t.span = 128;
    assert_true(fence_objects_tensor(&t, &map));
    assert_true(map.box == KFENCE_MAP_OF(32 * 8 * 2 * 4, 3, t.type));
    const cuuint32_t narrow[] = {4, 16, 2}, longest[] = {4, 256, 256};
    t.box = narrow;
    assert_true(fence_objects_tensor(&t, &map));
    assert_true(map.box == KFENCE_MAP_OF(8 * 2 * 16, 3, t.type) + KFENCE_MAP_GAPS(8 * 2 * 7));
    t.box = longest;
    assert_true(fence_objects_tensor(&t, &map));
    assert_int_equal(map.box >> KFENCE_GAPS_AT, KFENCE_GAPS_MOST);
    t.type = 99;
    assert_false(fence_objects_tensor(&t, &map));
    const cuuint64_t huge[] = {UINT64_MAX, UINT64_MAX, 3};
    t.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
    t.dims = huge;
    assert_false(fence_objects_tensor(&t, &map));
}

static void keeps_maps_for_contexts_to_come(void **state)
{
    struct fence_map map = {.word = KFENCE_OBJECT(KFENCE_MAP, 5), .box = 64, .range = 0x7000}, dropped;
    uint64_t bytes;
    assert_true(fence_objects_keep_map(&map));
    assert_true(has(map.word, &bytes));
    assert_int_equal(bytes, 64);
    assert_false(fence_objects_drop_map(0x8000, &dropped));
    assert_true(fence_objects_drop_map(0x7000, &dropped));
    assert_true(dropped.word == map.word);
    assert_false(fence_objects_drop_map(0x7000, &dropped));
    fence_objects_forget(CONTEXT);
    assert_false(has(map.word, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_there),
        cmocka_unit_test(refuses_more_than_fit),
        cmocka_unit_test(knows_sizes_of_tensors),
        cmocka_unit_test(keeps_maps_for_contexts_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
