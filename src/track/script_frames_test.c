// SPDX-License-Identifier: MIT
// Frames of an interpreter take the place of a stack's own, on the thread that has them, and are found again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "track/script_frames.h"
#include "track/stack.h"

static void is_frame(uint64_t pc, const char *function, const char *file, uint32_t line)
{
    struct script_frame f;
    assert_true(script_frames_find(pc, &f));
    assert_string_equal(f.function, function);
    assert_string_equal(f.file, file);
    assert_int_equal(f.line, line);
}

static void *other_thread(void *unused)
{
    uint64_t pc;
    return (void *)(uintptr_t)script_frames_get(&pc, 1);
}

static void good_frames_are_the_threads_own(void **state)
{
    uint64_t pcs[SCRIPT_FRAMES_MOST];
    pthread_t thread;
    void *others;
    script_frames_set("inner\tx.py\t7\nouter\ty.py\t9");
    assert_int_equal(script_frames_get(pcs, SCRIPT_FRAMES_MOST), 2);
    is_frame(pcs[0], "inner", "x.py", 7);
    is_frame(pcs[1], "outer", "y.py", 9);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &others), 0);
    assert_null(others);
    script_frames_set(NULL);
    assert_int_equal(script_frames_get(pcs, SCRIPT_FRAMES_MOST), 0);
}

static void good_equal_frames_are_one(void **state)
{
    uint64_t first, second, third;
    script_frames_set("f\tx.py\t1");
    assert_int_equal(script_frames_get(&first, 1), 1);
    script_frames_set("f\tx.py\t2");
    assert_int_equal(script_frames_get(&second, 1), 1);
    script_frames_set("f\tx.py\t1\n");
    assert_int_equal(script_frames_get(&third, 1), 1);
    assert_true(first == third && first != second);
    script_frames_set(NULL);
}

static void good_stacks_consist_of_them(void **state)
{
    uint64_t pcs[STACK_DEPTH_MAX];
    assert_int_equal(stack_init(1 << 20), 0);
    uint32_t plain = stack_capture(NULL, STACK_DEPTH_MAX);
    script_frames_set("inner\tx.py\t7\nouter\ty.py\t9");
    uint32_t both = stack_capture(NULL, STACK_DEPTH_MAX), one = stack_capture(NULL, 1);
    script_frames_set(NULL);
    assert_int_equal(stack_frames(both, pcs, STACK_DEPTH_MAX), 2);
    is_frame(pcs[1], "outer", "y.py", 9);
    assert_int_equal(stack_frames(one, pcs, STACK_DEPTH_MAX), 1);
    is_frame(pcs[0], "inner", "x.py", 7);
    assert_true(stack_capture(NULL, STACK_DEPTH_MAX) != both && plain != both);
    stack_forget();
}

static void bad_lines_are_ignored(void **state)
{
    static const char *const texts[] = {"", "\n\n", "f", "f\tx.py", "\t", "f\nx.py\n3"};
    uint64_t pcs[SCRIPT_FRAMES_MOST];
    struct script_frame f;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        script_frames_set(texts[i]);
        assert_int_equal(script_frames_get(pcs, SCRIPT_FRAMES_MOST), 0);
    }
    assert_false(script_frames_find(0x1000, &f));
    assert_false(script_frames_find(UINT64_MAX, &f));
}

static void good_there_may_be_too_many(void **state)
{
    char text[4096] = "";
    size_t used = 0;
    uint64_t pcs[2 * SCRIPT_FRAMES_MOST];
    for (int i = 0; i < 2 * SCRIPT_FRAMES_MOST; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "f\tx.py\t%d\n", i);
    script_frames_set(text);
    assert_int_equal(script_frames_get(pcs, 2 * SCRIPT_FRAMES_MOST), SCRIPT_FRAMES_MOST);
    // The table is full at some time; then further frames are left out.
    for (int i = 0; i < 40000; i++) {
        snprintf(text, sizeof text, "g\tx.py\t%d", i);
        script_frames_set(text);
    }
    assert_int_equal(script_frames_get(pcs, 1), 0);
    script_frames_set("f\tx.py\t1");
    assert_int_equal(script_frames_get(pcs, 1), 1);
    script_frames_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_frames_are_the_threads_own), cmocka_unit_test(good_equal_frames_are_one),
        cmocka_unit_test(good_stacks_consist_of_them),     cmocka_unit_test(bad_lines_are_ignored),
        cmocka_unit_test(good_there_may_be_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
