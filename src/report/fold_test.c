// SPDX-License-Identifier: MIT
#include "report/fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "report/report_testing.h"

static void good_equal_reports_fold(void **state)
{
    struct fold_slot slots[8] = {{0}};
    struct fold f;
    fold_init(&f, slots, 8);
    struct report r = testing_overflow().error;
    struct fold_slot *first = fold_find(&f, fold_key(&r));
    assert_int_equal(first->count, 0);
    first->count = 1;
    r.id = 2;
    r.pid++;
    r.address += 64;
    r.place.thread[0] = 5;
    r.device = 3;
    assert_ptr_equal(fold_find(&f, fold_key(&r)), first);
    assert_int_equal(first->count, 1);
    assert_int_equal(f.used, 1);
}

static void bad_different_reports_do_not(void **state)
{
    const struct report base = testing_full().error;
    struct report r[10];
    for (int i = 0; i < 10; i++)
        r[i] = base;
    r[0].type = REPORT_USE_AFTER_FREE;
    r[1].access = REPORT_READ;
    r[2].call = "cuLaunchKernelEx";
    r[3].place.kernel = "other";
    r[4].place.line++;
    r[5].place.ptx_line++;
    r[6].stack.count--;
    r[7].buffers++;
    r[8].place.file = NULL;
    r[9].client++;
    for (int i = 0; i < 10; i++)
        assert_true(fold_key(&r[i]) != fold_key(&base));
    struct report_buffer buffer = base.buffers[0];
    r[0] = base;
    r[0].buffers = &buffer;
    assert_true(fold_key(&r[0]) == fold_key(&base));
    buffer.made_at.count--;
    assert_true(fold_key(&r[0]) != fold_key(&base));
    assert_true(fold_name_key(&r[4], true) != fold_name_key(&base, true));
    assert_true(fold_name_key(&r[4], false) == fold_name_key(&base, false));
    assert_true(fold_name_key(&r[9], true) == fold_name_key(&base, true));
}

// Keys of names survive a new build or another machine.
static void good_names_outlive_addresses(void **state)
{
    struct report a = testing_transfer().error, b = a;
    struct report_frame frames[3] = {testing_launched[0], testing_launched[1], testing_launched[2]};
    frames[0].offset += 16;
    frames[0].object = "/elsewhere/libcudart.so.12";
    frames[1].line++;
    b.stack.frames = frames;
    assert_true(fold_key(&a) != fold_key(&b));
    assert_true(fold_name_key(&a, true) == fold_name_key(&b, true));
    frames[1].function = "other";
    assert_true(fold_name_key(&a, true) != fold_name_key(&b, true));
}

static void bad_table_is_full(void **state)
{
    struct fold_slot slots[2] = {{0}};
    struct fold f;
    fold_init(&f, slots, 2);
    struct report r = testing_overflow().error;
    for (uint32_t i = 0; i < 4; i++) {
        r.place.line = i;
        assert_int_equal(fold_find(&f, fold_key(&r)) != NULL, i < 2);
    }
    assert_int_equal(f.used, 2);
    r.place.line = 0;
    assert_non_null(fold_find(&f, fold_key(&r)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_equal_reports_fold),
        cmocka_unit_test(bad_different_reports_do_not),
        cmocka_unit_test(good_names_outlive_addresses),
        cmocka_unit_test(bad_table_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
