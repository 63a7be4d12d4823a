// SPDX-License-Identifier: MIT
// The registry of modules: what is found while others use it, and when rows are freed. The driver is a
// context that the test sets.
#include "rewrite/modules.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/guard.h"

enum { THREADS = 4, ROUNDS = 20000, HANDLES = 3 };

struct guard guard;

static _Thread_local uintptr_t current;
static unsigned first, second;     // clients
static _Atomic(unsigned) freed;    // data of either client
static _Atomic(unsigned) changes;  // of all data

// Not atomic: a thread that has taken the row has exclusive access.
struct data {
    unsigned changes;
};

static void free_data(void *data)
{
    atomic_fetch_add(&freed, 1);
    atomic_fetch_add(&changes, ((struct data *)data)->changes);
    mem_free(data);
}

static CUresult get_current(CUcontext *c)
{
    *c = (CUcontext)current;
    return CUDA_SUCCESS;
}

static const void *handle(uintptr_t n)
{
    return (const void *)n;
}

static CUcontext context(uintptr_t n)
{
    return (CUcontext)n;
}

static int start(void **state)
{
    guard.real.cuCtxGetCurrent = get_current;
    first = modules_client(free_data);
    second = modules_client(free_data);
    return first == second;
}

static int begin(void **state)
{
    modules_after_fork();
    atomic_store(&freed, 0);
    atomic_store(&changes, 0);
    current = 1;
    return 0;
}

static void *data(void)
{
    struct data *d = mem_zalloc(1, sizeof *d);
    assert_non_null(d);
    return d;
}

static void load(uintptr_t n, bool library)
{
    struct pass_result **parts = mem_zalloc(1, sizeof *parts);
    struct modules_row *row = modules_add(handle(n), library, parts, 1);
    assert_non_null(row);
    modules_set(row, first, data());
    modules_set(row, second, data());
    modules_release(row);
}

static void unload(uintptr_t n)
{
    struct modules_row *row = modules_unloading(handle(n));
    modules_gone(row);
    modules_release(row);
}

static unsigned length(const struct modules_row *rows)
{
    unsigned n = 0;
    for (; rows; rows = rows->more[first])
        n++;
    return n;
}

// --- one thread --------------------------------------------------------------------------------------------

static void taken_once(void **state)
{
    load(1, false);
    struct modules_row *row = modules_take(first, handle(1)), *other = modules_take(second, handle(1));
    assert_non_null(row);
    assert_ptr_equal(row, other);
    assert_null(modules_take(first, handle(1)));
    assert_null(modules_take_all(first));
    assert_true(modules_valid());
    modules_give(first, row);
    assert_null(modules_take(second, handle(1)));
    modules_give(second, other);
    assert_null(modules_take(first, handle(2)));
    row = modules_take(first, handle(1));
    assert_non_null(row);
    modules_give(first, row);
    modules_give(first, NULL);
    unload(1);
    assert_null(modules_take(first, handle(1)));
    assert_int_equal(freed, 2);
    assert_true(modules_valid());
}

// A client that has set no data does not see the row.
static void of_another_client(void **state)
{
    struct modules_row *row = modules_add(handle(1), false, NULL, 0);
    assert_null(modules_take(first, handle(1)));
    modules_set(row, first, data());
    assert_null(modules_take(second, handle(1)));
    assert_null(modules_take_all(second));
    struct modules_row *taken = modules_take(first, handle(1));
    assert_ptr_equal(taken, row);
    modules_give(first, taken);
    modules_release(row);
    unload(1);
    assert_int_equal(freed, 1);
}

static void unloaded_meanwhile(void **state)
{
    load(1, false);
    struct modules_row *row = modules_take(first, handle(1)), *held = modules_hold(handle(1));
    unload(1);
    assert_true(row->gone && modules_valid());
    assert_null(modules_take(second, handle(1)));
    assert_null(modules_take_all(second));
    assert_null(modules_hold(handle(1)));
    assert_null(modules_unloading(handle(1)));
    assert_int_equal(freed, 0);
    assert_non_null(row->data[first]);
    modules_give(first, row);
    assert_int_equal(freed, 0);
    assert_true(modules_valid());
    modules_release(held);
    assert_int_equal(freed, 2);
    assert_true(modules_valid());
}

// A user of the old row keeps it and gives it back; the new row is separate.
static void handle_that_comes_again(void **state)
{
    load(1, false);
    struct modules_row *old = modules_take(first, handle(1));
    unload(1);
    load(1, true);
    struct modules_row *new = modules_take(first, handle(1));
    assert_true(new &&new != old &&new->library &&modules_valid());
    modules_give(first, old);
    assert_int_equal(freed, 2);
    modules_give(first, new);
    unload(1);
    assert_int_equal(freed, 4);
    assert_true(modules_valid());
}

// The driver has unloaded the module and reuses its handle for another load before modules_gone is called.
static void handle_that_comes_before_the_unload(void **state)
{
    load(1, false);
    struct modules_row *row = modules_unloading(handle(1));
    load(1, true);
    assert_true(modules_valid());
    modules_gone(row);
    modules_release(row);
    assert_int_equal(freed, 2);
    row = modules_take(first, handle(1));
    assert_true(row && row->library);
    modules_give(first, row);
    unload(1);
    assert_int_equal(freed, 4);
}

static void unload_that_fails(void **state)
{
    load(1, false);
    modules_release(modules_unloading(handle(1)));
    struct modules_row *row = modules_take(first, handle(1));
    assert_non_null(row);
    modules_give(first, row);
    unload(1);
}

static void all_of_them(void **state)
{
    for (uintptr_t n = 1; n <= 1000; n++)
        load(n, n % 2);
    struct modules_row *one = modules_take(first, handle(500)), *all = modules_take_all(first);
    assert_int_equal(length(all), 999);
    assert_true(modules_valid());
    for (uintptr_t n = 1; n <= 1000; n += 2)
        unload(n);
    assert_true(modules_valid());
    assert_int_equal(freed, 0);
    modules_give(first, all);
    assert_int_equal(freed, 1000);
    modules_give(first, one);
    all = modules_take_all(first);
    assert_int_equal(length(all), 500);
    modules_give(first, all);
    for (uintptr_t n = 1; n <= 1000; n++)
        unload(n);
    assert_int_equal(freed, 2000);
    assert_true(modules_valid());
}

static void contexts_that_end(void **state)
{
    load(1, false);
    load(2, true);
    current = 2;
    load(3, false);
    struct modules_row *row = modules_take(first, handle(1)), *other;
    assert_ptr_equal(row->context, context(1));
    modules_context_gone(context(1));
    assert_true(modules_valid());
    assert_null(modules_hold(handle(1)));
    assert_int_equal(freed, 0);
    modules_give(first, row);
    assert_int_equal(freed, 2);
    assert_non_null(row = modules_take(first, handle(2)));
    assert_null(row->context);
    assert_non_null(other = modules_take(first, handle(3)));
    modules_give(first, row);
    modules_give(first, other);
    modules_context_gone(context(2));
    assert_int_equal(freed, 4);
    unload(2);
    assert_int_equal(freed, 6);
}

static const void *library_of(uintptr_t n)
{
    struct modules_row *row = modules_hold(handle(n));
    const void *found = row ? row->handle : NULL;
    modules_release(row);
    return found;
}

static void libraries_as_modules(void **state)
{
    modules_alias(handle(1), (CUmodule)handle(11));  // nothing is loaded yet
    load(1, true);
    load(2, true);
    load(3, false);
    modules_alias(handle(1), (CUmodule)handle(11));
    modules_alias(handle(3), (CUmodule)handle(13));
    current = 2;
    modules_alias(handle(1), (CUmodule)handle(12));
    assert_ptr_equal(library_of(11), handle(1));
    assert_ptr_equal(library_of(12), handle(1));
    assert_null(library_of(13));
    assert_ptr_equal(library_of(3), handle(3));
    // An alias cannot be used to unload or take either row.
    assert_null(modules_unloading(handle(11)));
    assert_null(modules_take(first, handle(11)));
    assert_true(modules_valid());
    modules_context_gone(context(2));
    assert_null(library_of(12));
    // A library has one alias in each context, and a module belongs to one library.
    current = 1;
    modules_alias(handle(1), (CUmodule)handle(14));
    assert_null(library_of(11));
    modules_alias(handle(2), (CUmodule)handle(14));
    assert_ptr_equal(library_of(14), handle(2));
    assert_true(modules_valid());
    unload(2);
    assert_null(library_of(14));
    current = 0;
    modules_alias(handle(1), (CUmodule)handle(15));
    assert_null(library_of(15));
    unload(1);
    unload(3);
    assert_true(modules_valid());
}

static void without_memory(void **state)
{
    struct pass_result **parts = mem_zalloc(1, sizeof *parts);
    mem_fail_after(0);
    assert_null(modules_add(handle(1), false, parts, 1));
    mem_fail_after(-1);
    assert_true(modules_valid());
    assert_null(modules_hold(handle(1)));
    mem_free(parts);  // they still belong to the caller
    load(2, true);
    mem_fail_after(0);
    modules_alias(handle(2), (CUmodule)handle(3));
    mem_fail_after(-1);
    assert_null(library_of(3));
    assert_true(modules_valid());
    // No other call needs memory.
    mem_fail_after(0);
    struct modules_row *all = modules_take_all(first), *held = modules_hold(handle(2));
    assert_int_equal(length(all), 1);
    unload(2);
    modules_give(first, all);
    modules_release(held);
    mem_fail_after(-1);
    assert_int_equal(freed, 2);
}

// --- several -----------------------------------------------------------------------------------------------

static _Atomic(unsigned) users;  // of the first client's data; at most one in each row

static void *take_one(void *unused)
{
    for (unsigned taken = 0; taken < ROUNDS;) {
        struct modules_row *row = modules_take(first, handle(1));
        if (!row)
            continue;
        assert_int_equal(atomic_fetch_add(&users, 1), 0);
        ((struct data *)row->data[first])->changes++;
        taken++;
        atomic_fetch_sub(&users, 1);
        modules_give(first, row);
    }
    return NULL;
}

static void run(void *(*function)(void *))
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, function, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void two_that_take_the_same(void **state)
{
    load(1, false);
    run(take_one);
    assert_true(modules_valid());
    unload(1);
    assert_int_equal(changes, THREADS * ROUNDS);
}

static _Atomic(unsigned) loads, numbers;

// Each thread loads modules in its own context, and uses those of all.
static void *come_and_go(void *unused)
{
    uintptr_t me = 1 + atomic_fetch_add(&numbers, 1);
    current = me;
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        uintptr_t own = me * HANDLES + i % HANDLES, another = (i * 7) % (THREADS * HANDLES) + HANDLES;
        load(own, i % 2);
        atomic_fetch_add(&loads, 1);
        modules_alias(handle(own), (CUmodule)handle(1000 + own));
        struct modules_row *held = modules_hold(handle(i % 3 ? another : 1000 + another));
        struct modules_row *rows = i % 5 ? modules_take(first, handle(another)) : modules_take_all(first);
        struct modules_row *more = modules_take_all(second);
        for (struct modules_row *row = rows; row; row = row->more[first])
            ((struct data *)row->data[first])->changes++;
        for (struct modules_row *row = more; row; row = row->more[second])
            ((struct data *)row->data[second])->changes++;
        if (i % 50 == 0)
            assert_true(modules_valid());
        if (i % 4)
            unload(own);
        else
            modules_context_gone(context(me));
        modules_give(first, rows);
        modules_give(second, more);
        modules_release(held);
    }
    return NULL;
}

static void several_that_come_and_go(void **state)
{
    atomic_store(&loads, 0);
    atomic_store(&numbers, 0);
    run(come_and_go);
    for (uintptr_t n = HANDLES; n < (THREADS + 1) * HANDLES; n++)
        unload(n);
    assert_true(modules_valid());
    assert_null(modules_take_all(first));
    assert_int_equal(freed, 2 * loads);
}

// The child knows no rows, whatever the parent had taken, and the parent has lost none.
static void after_a_fork(void **state)
{
    load(1, false);
    load(2, true);
    struct modules_row *row = modules_take(first, handle(1));
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        modules_after_fork();
        bool good = modules_valid() && !modules_hold(handle(1)) && !modules_hold(handle(2)) &&
                    !modules_take_all(first) && atomic_load(&freed) == 2;
        load(1, true);
        row = modules_take(first, handle(1));
        good &= row && row->library;
        modules_give(first, row);
        unload(1);
        _exit(good && modules_valid() && atomic_load(&freed) == 4 ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(freed, 0);
    modules_give(first, row);
    unload(1);
    unload(2);
    assert_int_equal(freed, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(taken_once, begin),
        cmocka_unit_test_setup(of_another_client, begin),
        cmocka_unit_test_setup(unloaded_meanwhile, begin),
        cmocka_unit_test_setup(handle_that_comes_again, begin),
        cmocka_unit_test_setup(handle_that_comes_before_the_unload, begin),
        cmocka_unit_test_setup(unload_that_fails, begin),
        cmocka_unit_test_setup(all_of_them, begin),
        cmocka_unit_test_setup(contexts_that_end, begin),
        cmocka_unit_test_setup(libraries_as_modules, begin),
        cmocka_unit_test_setup(without_memory, begin),
        cmocka_unit_test_setup(two_that_take_the_same, begin),
        cmocka_unit_test_setup(several_that_come_and_go, begin),
        cmocka_unit_test_setup(after_a_fork, begin),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
