// SPDX-License-Identifier: MIT
// What the registry of modules learns from the hooks, whichever modes are on: here none.
#include "mode/mode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/guard.h"

struct guard guard;

static CUcontext context = (CUcontext)1;
static CUmodule module = (CUmodule)2, alias = (CUmodule)3;
static CUlibrary library = (CUlibrary)4;

static CUresult get_current(CUcontext *c)
{
    *c = context;
    return CUDA_SUCCESS;
}

static int load(void **state)
{
    guard.real.cuCtxGetCurrent = get_current;
    modules_release(modules_add(module, false, NULL, 0));
    modules_release(modules_add(library, true, NULL, 0));
    return 0;
}

static int forget(void **state)
{
    modules_after_fork();
    return 0;
}

static bool is_known(const void *handle)
{
    struct modules_row *row = modules_hold(handle);
    modules_release(row);
    return row;
}

static void context_that_ends(void **state)
{
    mode_library_in_context(library, NULL);
    assert_false(is_known(alias));
    mode_library_in_context(library, alias);
    assert_true(is_known(alias));
    mode_context_gone(NULL);
    assert_true(is_known(alias) && is_known(module));
    mode_context_gone(context);
    assert_false(is_known(alias) || is_known(module));
    assert_true(is_known(library));
}

static void child(void **state)
{
    mode_after_fork();
    assert_false(is_known(module) || is_known(library));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(context_that_ends, load, forget),
        cmocka_unit_test_setup_teardown(child, load, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
