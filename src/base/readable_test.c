// SPDX-License-Identifier: MIT
#include "base/readable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 100 };

static void good_memory_that_is_there(void **state)
{
    static char bytes[3 * PAGE];
    assert_true(readable_bytes(bytes, sizeof bytes));
    assert_true(readable_bytes(bytes + 5, 1));
    assert_true(readable_surely(bytes + 5, 1));
    assert_true(readable_bytes(bytes, 0));
}

// The hole may be anywhere in a long range.
static void bad_holes(void **state)
{
    char *p = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_true(readable_bytes(p, PAGES * PAGE));
    for (int hole = 0; hole < PAGES; hole += 33) {
        assert_int_equal(mprotect(p + hole * PAGE, PAGE, PROT_NONE), 0);
        errno = 7;
        assert_false(readable_bytes(p, PAGES * PAGE));
        assert_false(readable_bytes(p + hole * PAGE + PAGE - 1, 2));
        assert_int_equal(errno, 7);
        assert_true(readable_bytes(p + (hole + 1) % PAGES * PAGE, PAGE));
        assert_int_equal(mprotect(p + hole * PAGE, PAGE, PROT_READ), 0);
    }
    munmap(p, PAGES * PAGE);
    assert_false(readable_bytes(p, 1));
}

static void bad_addresses(void **state)
{
    assert_false(readable_bytes(NULL, 1));
    assert_false(readable_bytes((void *)UINTPTR_MAX, 2));
    assert_false(readable_bytes((void *)8, 1));
    assert_false(readable_surely((void *)8, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_memory_that_is_there),
        cmocka_unit_test(bad_holes),
        cmocka_unit_test(bad_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
