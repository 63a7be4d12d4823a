// SPDX-License-Identifier: MIT
#include "mps/client_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client_file example(void)
{
    struct client_file c = {.pid = 4711, .start = UINT64_MAX};
    for (int i = 0; i < CLIENT_VALUES; i++)
        c.values[i] = i % 2 ? UINT64_MAX - (uint64_t)i : (uint64_t)i;
    return c;
}

static void good_what_is_printed_is_read(void **state)
{
    struct client_file c = example(), d;
    char text[CLIENT_FILE_MOST];
    size_t n = client_file_print(&c, text);
    assert_true(n < sizeof text);
    assert_int_equal(client_file_parse((struct str){text, n}, &d), 0);
    assert_int_equal(d.pid, c.pid);
    assert_true(d.start == c.start);
    assert_memory_equal(d.values, c.values, sizeof c.values);
}

static void bad_bytes(void **state)
{
    struct client_file c = example(), d;
    char text[CLIENT_FILE_MOST];
    size_t n = client_file_print(&c, text);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(client_file_parse((struct str){text, i}, &d), -EINVAL);
        char old = text[i];
        text[i] = '/';  // the byte before '0'
        assert_int_equal(client_file_parse((struct str){text, n}, &d), -EINVAL);
        text[i] = old;
    }
    text[n] = '\n';
    assert_int_equal(client_file_parse((struct str){text, n + 1}, &d), -EINVAL);
    char *start = strstr(text, "start ");
    memcpy(start, "start 18446744073709551616\n", 27);  // 2^64
    assert_int_equal(client_file_parse((struct str){text, n}, &d), -EINVAL);
}

static void good_start_of_a_process(void **state)
{
    assert_true(client_file_started(getpid()) > 0);
    assert_true(client_file_started(getpid()) == client_file_started(getpid()));
    assert_int_equal(client_file_started(-1), 0);
}

static void good_files(void **state)
{
    char folder[] = "/tmp/moat-mps-test-XXXXXX", clients[64], path[80], name[16];
    struct client_file c = example(), d;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(client_file_open(folder), -ENOENT);
    snprintf(clients, sizeof clients, "%s/clients", folder);
    snprintf(name, sizeof name, "%d", (int)getpid());
    snprintf(path, sizeof path, "%s/%s", clients, name);
    assert_int_equal(mkdir(clients, 0700), 0);
    assert_int_equal(symlink("/dev/null", path), 0);  // what lies there is not followed
    int fd = client_file_open(folder), dir = open(clients, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0 && dir >= 0);
    assert_int_equal(client_file_read(dir, name, &d), -EINVAL);  // empty so far
    assert_int_equal(client_file_write(fd, &c), 0);
    c.values[0]++;
    assert_int_equal(client_file_write(fd, &c), 0);
    assert_int_equal(client_file_read(dir, name, &d), 0);
    assert_true(d.values[0] == c.values[0]);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(client_file_read(dir, name, &d), -EINVAL);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(client_file_read(dir, name, &d), -ELOOP);
    unlink(path);
    close(fd);
    close(dir);
    rmdir(clients);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_what_is_printed_is_read),
        cmocka_unit_test(bad_bytes),
        cmocka_unit_test(good_start_of_a_process),
        cmocka_unit_test(good_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
