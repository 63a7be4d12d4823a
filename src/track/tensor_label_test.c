// SPDX-License-Identifier: MIT
// Which tensor an address belongs to, and at which index.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "track/tensor_label.h"

enum { BASE = 0x10000, SIZE = 4000 };

static void set(uint64_t address, const char *name, int64_t rows, int64_t columns, int64_t row,
                int64_t column)
{
    struct tensor_label l = {.address = address,
                             .element = 4,
                             .dimensions = 2,
                             .shape = {rows, columns},
                             .strides = {row, column},
                             .type = "float32"};
    strcpy(l.name, name);
    tensor_label_set(&l);
}

static void says_of(uint64_t address, uint64_t bytes, const char *what)
{
    char text[400];
    assert_true(tensor_label_describe(BASE, SIZE, address, bytes, text, sizeof text));
    if (!strstr(text, what))
        fail_msg("\"%s\" is not in \"%s\"", what, text);
}

static void says(uint64_t address, const char *what)
{
    says_of(address, 0, what);
    says_of(address, 1, what);
}

static void good_places(void **state)
{
    set(BASE, "`x`, argument p", 25, 40, 40, 1);
    says(BASE + 4000,
         "the nearest tensor is `x`, argument p: float32, shape [25, 40], strides [40, 1]; the access is at "
         "index [25, 0], outside of it");
    says(BASE + 4004, "at index [25, 1], outside");
    says(BASE + 4 * 83, "inside of it, at index [2, 3]");
    says(BASE - 4, "is 1 element before its first");
    says(BASE - 5, "is 2 elements before its first");
}

static void good_an_access_leaves(void **state)
{
    says_of(BASE + 4 * 83, 4, "; the access is inside of it, at index [2, 3]");
    says_of(BASE + 4 * 83, 4 * 917, "; the access is inside of it, at index [2, 3]");
    says_of(BASE + 4 * 83, 4 * 917 + 1,
            "; the access begins inside of it, at index [2, 3], and ends at index [25, 0], outside of it");
    says_of(BASE + 4000, 8, "; the access is at index [25, 0], outside of it");
    says_of(BASE - 4, 8, "is 1 element before its first");
    says_of(BASE + 4, UINT64_MAX, "; the access is inside of it, at index [0, 1]");
}

static void good_strides(void **state)
{
    set(BASE + 400, "transposed", 5, 7, 1, 5);
    says(BASE + 400 + 4 * 13,
         "transposed: float32, shape [5, 7], strides [1, 5]; the access is inside of it, "
         "at index [3, 2]");
    set(BASE + 600, "expanded", 3, 4, 0, 1);
    says(BASE + 600 + 4 * 2, "at index [0, 2]");
    set(BASE + 800, "empty", 0, 4, 4, 1);
    says(BASE + 800, "the access is");
}

static void good_the_nearest_is_named(void **state)
{
    set(BASE + 2000, "left", 1, 10, 10, 1);
    set(BASE + 3000, "right", 1, 10, 10, 1);
    // x of good_places covers all of the buffer; what is inside of two is the newer one's.
    says(BASE + 3004, "right");
    says(BASE + 2004, "left");
    set(BASE + 2000, "renamed", 1, 10, 10, 1);
    says(BASE + 2004, "renamed");
    char name[8];
    assert_true(tensor_label_name(BASE + 2000, name, sizeof name));
    assert_string_equal(name, "renamed");
    assert_false(tensor_label_name(BASE + 2004, name, sizeof name));
}

static void good_the_buffer_is_smaller(void **state)
{
    set(BASE + 3996, "large", 5, 10, 10, 1);
    says(BASE + 3996, "`x`, argument p");
    // A buffer in which nothing else is: it was resized.
    char text[400];
    assert_true(tensor_label_describe(BASE + 3996, 4, BASE + 4000, 4, text, sizeof text));
    assert_non_null(strstr(text, "large"));
    assert_non_null(strstr(text, "inside of it, at index [0, 1], but it is larger than the buffer"));
}

static void bad_labels(void **state)
{
    char text[8];
    struct tensor_label none = {.address = 0x900000, .dimensions = 1};
    struct tensor_label many = {.address = 0x900000, .element = 4, .dimensions = 9};
    tensor_label_set(&none);
    tensor_label_set(&many);
    assert_false(tensor_label_describe(0x900000, 100, 0x900000, 4, text, sizeof text));
    assert_true(tensor_label_describe(BASE, SIZE, BASE, 4, text, sizeof text));
    assert_int_equal(strlen(text), sizeof text - 1);
}

static void good_old_labels_make_room(void **state)
{
    for (uint64_t i = 0; i < 100000; i++)
        set(0x1000000 + 256 * i, "one of many", 1, 10, 10, 1);
    set(BASE + 100, "the last", 1, 10, 10, 1);
    says(BASE + 104, "the last");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_places),
        cmocka_unit_test(good_an_access_leaves),
        cmocka_unit_test(good_strides),
        cmocka_unit_test(good_the_nearest_is_named),
        cmocka_unit_test(good_the_buffer_is_smaller),
        cmocka_unit_test(bad_labels),
        cmocka_unit_test(good_old_labels_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
