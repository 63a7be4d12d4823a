// SPDX-License-Identifier: MIT
#include "heap/cpu_pressure.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/own_fds.h"
#include "heap/throttle.h"

static int64_t waited(const char *text)
{
    return cpu_pressure_waited(text, strlen(text));
}

static long wanted(const char *text)
{
    return cpu_pressure_wanted(text, strlen(text));
}

static void good_pressure(void **state)
{
    assert_int_equal(waited("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"), 0);
    assert_int_equal(waited("some avg10=26.04 avg60=11.37 avg300=11.51 total=27692397258\n"
                            "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"),
                     27692397258);
}

static void bad_pressure(void **state)
{
    static const char *const texts[] = {"",
                                        "some",
                                        "some total=",
                                        "some avg10=0 total=x",
                                        "some avg10=0\nfull total=4",
                                        "full avg10=0.00 total=7\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(waited(texts[i]), -1);
}

static void good_load(void **state)
{
    assert_int_equal(wanted("0.53 1.37 2.03 3/345 7230\n"), 2);
    assert_int_equal(wanted("0.00 0.01 0.05 128/900 1"), 127);
    assert_int_equal(wanted("0.00 0.01 0.05 1/90 1"), 0);
}

static void bad_load(void **state)
{
    static const char *const texts[] = {"", "0.53 1.37 2.03", "0.53 1.37 2.03 3", "0.53 1.37 2.03 x/3 1",
                                        "a b c /"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(wanted(texts[i]), -1);
}

static int name_of(const char *text, char *name, size_t size)
{
    return cpu_pressure_name(text, strlen(text), "/m", name, size);
}

static void good_groups_have_names(void **state)
{
    char name[64];
    assert_int_equal(name_of("0::/\n", name, sizeof name), 0);
    assert_string_equal(name, "/m/cpu.pressure");
    assert_int_equal(name_of("4:memory:/a\n1:cpu:/b\n0::/user/one.scope\n", name, sizeof name), 0);
    assert_string_equal(name, "/m/user/one.scope/cpu.pressure");
    assert_int_equal(name_of("0::/user/one.scope", name, sizeof name), 0);
    assert_string_equal(name, "/m/user/one.scope/cpu.pressure");
}

static void bad_groups(void **state)
{
    char name[20];
    assert_int_equal(name_of("", name, sizeof name), -ENOENT);
    assert_int_equal(name_of("4:memory:/a\n1:cpu:/b\n", name, sizeof name), -ENOENT);
    assert_int_equal(name_of("0::/longer/than/there/is/room", name, sizeof name), -ENOENT);
    assert_int_equal(name_of("0::/123", name, sizeof name), 0);  // with its end, exactly
    assert_int_equal(name_of("0::/1234", name, sizeof name), -ENOENT);
}

static void good_little_waiting_is_no_crowd(void **state)
{
    assert_false(cpu_pressure_is_long(0, 4000000));
    assert_false(cpu_pressure_is_long(100, 4000000));
    assert_true(cpu_pressure_is_long(300, 4000000));
}

static atomic_bool enough;

static void *spin(void *unused)
{
    // Relaxed: the threads see it eventually.
    while (!atomic_load_explicit(&enough, memory_order_relaxed))
        ;
    return NULL;
}

static void *look(void *seen)
{
    struct cpu_pressure c;
    own_fds_unshare();
    cpu_pressure_open(&c);
    if (!c.pressure)
        *(int *)seen = -1;
    for (int i = 0; i < 1000 && !*(int *)seen; i++) {
        *(int *)seen = cpu_pressure_is_high(&c, throttle_now());
        throttle_sleep(5000000);
    }
    return NULL;
}

// With more threads than cores, some of them always wait.
static void good_crowd_is_seen(void **state)
{
    enum { MOST = 64 };
    pthread_t threads[MOST], looker;
    long n = sysconf(_SC_NPROCESSORS_ONLN) + 1;
    int seen = 0;
    if (n > MOST)
        skip();
    for (long i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spin, NULL), 0);
    pthread_create(&looker, NULL, look, &seen);
    pthread_join(looker, NULL);
    atomic_store_explicit(&enough, true, memory_order_relaxed);
    for (long i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    if (seen < 0)
        skip();  // the kernel has no pressure data
    assert_int_equal(seen, 1);
}

// A thread with the program's descriptors opens nothing.
static void good_takes_no_descriptor(void **state)
{
    struct cpu_pressure c;
    cpu_pressure_open(&c);
    assert_int_equal(c.fd, -1);
    assert_false(cpu_pressure_is_high(&c, throttle_now()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_pressure),
        cmocka_unit_test(bad_pressure),
        cmocka_unit_test(good_load),
        cmocka_unit_test(bad_load),
        cmocka_unit_test(good_groups_have_names),
        cmocka_unit_test(bad_groups),
        cmocka_unit_test(good_little_waiting_is_no_crowd),
        cmocka_unit_test(good_takes_no_descriptor),
        cmocka_unit_test(good_crowd_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
