// SPDX-License-Identifier: MIT
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "base/mem.h"

static void good_pieces_are_zeroed_aligned_and_apart(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    char *last = NULL;
    size_t total = 0;
    for (size_t size = 1; size < 3000; size += 7) {
        char *p = arena_alloc(&a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 8, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0x55, size);
        if (last)
            assert_int_equal(last[0], 0x55);
        last = p;
        total += size;
    }
    assert_true(a.used >= total && a.used <= a.reserved);
    arena_free(&a);
    assert_null(a.chunks);
    assert_int_equal(a.used, 0);
}

static void good_large_piece_leaves_the_chunk_in_use(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    char *before = arena_alloc(&a, 8);
    memset(arena_alloc(&a, 4 << 20), 1, 4 << 20);
    char *after = arena_alloc(&a, 8);
    assert_ptr_equal(after, before + 8);
    assert_true(a.used <= a.reserved);
    arena_free(&a);
}

static void good_large_piece_first(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    memset(arena_alloc(&a, 1 << 20), 1, 1 << 20);
    *(char *)arena_alloc(&a, 1) = 1;
    arena_free(&a);
}

static void good_string_is_copied_and_terminated(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    char text[] = "abc";
    struct str s = arena_str(&a, str_from(text));
    text[0] = 'x';
    assert_string_equal(s.ptr, "abc");
    assert_int_equal(s.len, 3);
    assert_string_equal(arena_str(&a, (struct str){"", 0}).ptr, "");
    arena_free(&a);
}

static void bad_size_beyond_the_limit(void **state)
{
    struct arena a;
    arena_init(&a, 64 << 10);
    size_t got = 0;
    while (arena_alloc(&a, 1000))
        got += 1000;
    assert_true(got >= 32 << 10 && got <= 64 << 10);
    assert_true(a.used <= a.reserved && a.reserved <= a.limit);
    assert_null(arena_alloc(&a, 1 << 20));
    arena_free(&a);
}

static void bad_sizes_overflow(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 6));
    assert_null(arena_alloc(&a, SIZE_MAX / 2));
    assert_null(ARENA_ARRAY(&a, uint64_t, SIZE_MAX / 4));
    assert_non_null(ARENA_ARRAY(&a, uint64_t, 4));
    arena_free(&a);
}

static void bad_allocation_jumps(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    jmp_buf out;
    volatile int steps = 0;
    int err = setjmp(out);
    if (!err) {
        a.on_fail = &out;
        mem_fail_after(2);
        for (;; steps++)
            arena_alloc(&a, 1000);
    }
    mem_fail_after(-1);
    assert_int_equal(err, -ENOMEM);
    assert_true(steps > 16);
    arena_free(&a);
}

static void bad_string_without_memory(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    mem_fail_after(0);
    assert_null(arena_str(&a, STR("abc")).ptr);
    mem_fail_after(-1);
    assert_non_null(arena_str(&a, STR("abc")).ptr);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(good_large_piece_leaves_the_chunk_in_use),
        cmocka_unit_test(good_large_piece_first),
        cmocka_unit_test(good_string_is_copied_and_terminated),
        cmocka_unit_test(bad_size_beyond_the_limit),
        cmocka_unit_test(bad_sizes_overflow),
        cmocka_unit_test(bad_allocation_jumps),
        cmocka_unit_test(bad_string_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
