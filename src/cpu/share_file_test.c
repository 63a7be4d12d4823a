// SPDX-License-Identifier: MIT
#include "cpu/share_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 1 << 20 };

static void good_ticket(void **state)
{
    struct share_ticket t = {.size = SIZE, .offset = 512, .bytes = 100, .id = 7, .device = 2}, back;
    char handle[64];
    int fd = share_file_new(SIZE);
    assert_true(fd >= 0);
    assert_int_equal(share_file_ticket(&t, SHARE_MEMORY, fd), 0);
    share_file_write(&t, handle);
    assert_true(share_file_read(&back, SHARE_MEMORY, handle));
    assert_memory_equal(&back, &t, sizeof t);
    // Programs compare handles byte by byte.
    memset(&back, 0xee, sizeof back);
    back.size = SIZE, back.offset = 512, back.bytes = 100, back.id = 7, back.device = 2;
    assert_int_equal(share_file_ticket(&back, SHARE_MEMORY, fd), 0);
    assert_memory_equal(&back, &t, sizeof t);
    assert_true(share_file_own(&back));
    assert_false(share_file_read(&back, SHARE_EVENT, handle));
    handle[0] ^= 1;
    assert_false(share_file_read(&back, SHARE_MEMORY, handle));
    close(fd);
}

// Another process finds the bytes while this one keeps the file open, and not afterwards.
static void good_another_process(void **state)
{
    struct share_ticket t = {0};
    int fd = share_file_new(SIZE), status, go[2];
    char c = 0;
    assert_true(fd >= 0 && !pipe(go));
    assert_int_equal(share_file_ticket(&t, SHARE_MEMORY, fd), 0);
    assert_int_equal(pwrite(fd, "here", 4, 100), 4);
    pid_t child = fork();
    if (!child) {
        char bytes[4] = "";
        close(fd);
        int mine = share_file_open(&t);
        bool found = mine >= 0 && !share_file_own(&t) && share_file_fit(mine, SIZE) &&
                     pread(mine, bytes, 4, 100) == 4 && memcmp(bytes, "here", 4) == 0 &&
                     pwrite(mine, "back", 4, 200) == 4;
        bool ready = write(go[1], "x", 1) == 1;
        _exit(found && ready ? 0 : 1);
    }
    assert_true(child > 0 && read(go[0], &c, 1) == 1);
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    char bytes[4];
    assert_true(pread(fd, bytes, 4, 200) == 4 && memcmp(bytes, "back", 4) == 0);
    close(fd);
    assert_int_equal(share_file_open(&t), -ENOENT);
    // The descriptor is another file by then.
    assert_int_equal(dup2(go[0], t.fd), t.fd);
    assert_true(share_file_open(&t) < 0 && !share_file_own(&t));
    int other = share_file_new(SIZE);
    assert_int_equal(dup2(other, t.fd), t.fd);
    assert_true(share_file_open(&t) < 0 && !share_file_own(&t));
    close(t.fd);
    close(other);
    close(go[0]);
    close(go[1]);
}

// A file that may shrink under a mapping is refused.
static void bad_files(void **state)
{
    int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd = share_file_new(SIZE);
    assert_int_equal(ftruncate(loose, SIZE), 0);
    assert_false(share_file_fit(loose, SIZE));
    assert_true(share_file_fit(fd, SIZE));
    assert_false(share_file_fit(fd, SIZE + 1));
    assert_false(share_file_fit(-1, SIZE));
    assert_int_not_equal(ftruncate(fd, SIZE / 2), 0);
    close(loose);
    close(fd);
}

// A limit on the size of files is an error, not the signal that the kernel would send.
static void bad_limit(void **state)
{
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){SIZE / 2, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(share_file_new(SIZE), -ENOMEM);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ticket),
        cmocka_unit_test(good_another_process),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(bad_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
