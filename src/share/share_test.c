// SPDX-License-Identifier: MIT
// Offers of memory to other processes: found by their handle, with their descriptor, until they are
// withdrawn.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/share.h"

static int file_with(char c)
{
    int fd = memfd_create("share_test", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, &c, 1) == 1);
    return fd;
}

static char first_of(int fd)
{
    char c = 0;
    return pread(fd, &c, 1, 0) == 1 ? c : 0;
}

static void finds_what_was_offered(void **state)
{
    (void)state;
    CUipcMemHandle a, b, again;
    struct share_memory m;
    assert_false(share_offered(1000, &a));
    assert_int_equal(
        share_offer(
            1000, &(struct share_memory){.offset = 16, .size = 100, .bytes = 4096, .fd = file_with('a')}, &a),
        0);
    assert_int_equal(
        share_offer(2000,
                    &(struct share_memory){.offset = 32, .size = 200, .fd = -1, .handle = {"the driver's"}},
                    &b),
        0);
    assert_true(share_is_ours(&a) && share_is_own(&a));
    assert_true(share_offered(1000, &again));
    assert_memory_equal(&a, &again, sizeof a);

    assert_int_equal(share_ask(&a, &m), 0);
    assert_int_equal(m.offset, 16);
    assert_int_equal(m.size, 100);
    assert_int_equal(m.bytes, 4096);
    assert_int_equal(first_of(m.fd), 'a');
    assert_int_equal(fcntl(m.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(m.fd);
    assert_int_equal(share_ask(&b, &m), 0);
    assert_int_equal(m.fd, -1);
    assert_string_equal(m.handle.reserved, "the driver's");

    share_withdraw(1000);
    assert_int_equal(share_ask(&a, &m), -ENOENT);
    assert_false(share_offered(1000, &again));
    share_withdraw(2000);
}

// A range's offers are withdrawn together; others stay.
static void goes_with_its_range(void **state)
{
    (void)state;
    CUipcMemHandle a[3];
    struct share_memory m;
    int fd[3];
    for (unsigned i = 0; i < 3; i++) {
        fd[i] = file_with('a');
        struct share_memory one = {.size = 1, .bytes = 1, .fd = fd[i]};
        assert_int_equal(share_offer(7000 + 100 * i, &one, &a[i]), 0);
    }
    share_withdraw_within(7000, 200);
    // Checked right away: the answering thread may get the same numbers for its connections.
    assert_true(fcntl(fd[0], F_GETFD) == -1 && fcntl(fd[1], F_GETFD) == -1);
    assert_int_equal(share_ask(&a[0], &m), -ENOENT);
    assert_int_equal(share_ask(&a[1], &m), -ENOENT);
    assert_int_equal(share_ask(&a[2], &m), 0);
    close(m.fd);
    share_withdraw(7200);
    assert_int_equal(fcntl(fd[2], F_GETFD), -1);
}

// Offering the same buffer twice makes one offer, and the second descriptor is closed.
static void offers_once(void **state)
{
    (void)state;
    CUipcMemHandle a, b;
    int second = file_with('2');
    assert_int_equal(
        share_offer(3000, &(struct share_memory){.offset = 0, .size = 1, .bytes = 1, .fd = file_with('1')},
                    &a),
        0);
    assert_int_equal(
        share_offer(3000, &(struct share_memory){.offset = 0, .size = 1, .bytes = 1, .fd = second}, &b), 0);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(fcntl(second, F_GETFD), -1);
    share_withdraw(3000);
}

static bool makes_two(uint64_t buffer, uint64_t size, struct share_memory *memory)
{
    if (size == 99)
        return false;
    *memory =
        (struct share_memory){.offset = buffer, .size = size, .bytes = 10, .fd = file_with('x'), .more = 1};
    memory->fds[0] = file_with('y');
    memory->parts[0] = 4;
    return true;
}

// Descriptors that are made on request are not kept.
static void makes_them_on_request(void **state)
{
    (void)state;
    CUipcMemHandle a, b;
    struct share_memory m, later = {.size = 5, .fd = -1, .on_request = makes_two};
    assert_int_equal(share_offer(5000, &later, &a), 0);
    int before = file_with('z'), after;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(share_ask(&a, &m), 0);
        assert_true(m.offset == 5000 && m.size == 5 && m.bytes == 10 && m.more == 1 && m.parts[0] == 4);
        assert_int_equal(first_of(m.fd), 'x');
        assert_int_equal(first_of(m.fds[0]), 'y');
        share_close_fds(&m);
    }
    later.size = 99;  // cannot be made
    assert_int_equal(share_offer(5100, &later, &b), 0);
    assert_int_not_equal(share_ask(&b, &m), 0);
    share_withdraw_within(5000, 200);
    assert_int_equal(share_ask(&a, &m), -ENOENT);
    close(before);
    // The answering thread closes its descriptors after sending them.
    for (unsigned i = 0; i < 3000; i++) {
        after = file_with('z');
        close(after);
        if (after == before)
            break;
        usleep(10000);
    }
    assert_int_equal(after, before);
}

// Memory in several pieces comes with a descriptor for each, in their order.
static void offers_pieces(void **state)
{
    (void)state;
    struct share_memory made = {.offset = 5,
                                .size = 90,
                                .bytes = 100,
                                .fd = file_with('a'),
                                .more = SHARE_MORE},
                        m;
    CUipcMemHandle a;
    for (unsigned i = 0; i < SHARE_MORE; i++) {
        made.fds[i] = file_with((char)('b' + i));
        made.parts[i] = 1 + i;
    }
    assert_int_equal(share_offer(6000, &made, &a), 0);
    assert_int_equal(share_ask(&a, &m), 0);
    assert_int_equal(m.more, SHARE_MORE);
    assert_int_equal(first_of(m.fd), 'a');
    for (unsigned i = 0; i < SHARE_MORE; i++) {
        assert_int_equal(first_of(m.fds[i]), (char)('b' + i));
        assert_int_equal(m.parts[i], 1 + i);
        assert_int_equal(fcntl(m.fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    share_close_fds(&m);
    share_withdraw(6000);
    assert_int_equal(fcntl(made.fds[SHARE_MORE - 1], F_GETFD), -1);
}

static void refuses_strangers(void **state)
{
    (void)state;
    CUipcMemHandle a, other;
    struct share_memory m;
    assert_int_equal(
        share_offer(4000, &(struct share_memory){.offset = 0, .size = 1, .bytes = 1, .fd = file_with('x')},
                    &a),
        0);
    // The last byte of the key, which is not part of the socket's name.
    other = a;
    other.reserved[55] ^= 1;
    assert_int_equal(share_ask(&other, &m), -ENOENT);
    // Its first byte: nobody listens at that name.
    other = a;
    other.reserved[32] ^= 1;
    assert_int_equal(share_ask(&other, &m), -ECONNREFUSED);
    memset(&other, 7, sizeof other);
    assert_false(share_is_ours(&other));
    share_withdraw(4000);
}

// A forked child asks the parent, and has no offers itself.
static void serves_another_process(void **state)
{
    (void)state;
    CUipcMemHandle a;
    assert_int_equal(
        share_offer(5000, &(struct share_memory){.offset = 0, .size = 1, .bytes = 1, .fd = file_with('p')},
                    &a),
        0);
    pid_t child = fork();
    if (!child) {
        struct share_memory m;
        CUipcMemHandle none;
        share_after_fork();
        bool good =
            !share_is_own(&a) && !share_offered(5000, &none) && !share_ask(&a, &m) && first_of(m.fd) == 'p';
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    share_withdraw(5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_offered),
        cmocka_unit_test(goes_with_its_range),
        cmocka_unit_test(offers_once),
        cmocka_unit_test(offers_pieces),
        cmocka_unit_test(makes_them_on_request),
        cmocka_unit_test(refuses_strangers),
        cmocka_unit_test(serves_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
