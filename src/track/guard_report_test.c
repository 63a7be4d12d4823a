// SPDX-License-Identifier: MIT
// Which client an error belongs to. Reports go to a file as text, because there is no listener.
#include "track/guard_report.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/guard.h"
#include "report/channel.h"
#include "track/leak.h"

enum { BASE = 0x10000, STEP = 0x1000 };

static char log_file[] = "/tmp/moat-report.XXXXXX", text[1 << 16];

static int setup(void **state)
{
    unsetenv(CHANNEL_VARIABLE);
    int fd = mkstemp(log_file);
    guard.options.log_file = log_file;
    guard.options.leak_check = true;
    guard_report_init(NULL);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    return unlink(log_file);
}

// Each test reports anew what another has reported before.
static int begin(void **state)
{
    guard_report_after_fork();
    track_client_set(0);
    return truncate(log_file, 0);
}

static const char *said(void)
{
    int fd = open(log_file, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static unsigned count(const char *what)
{
    unsigned n = 0;
    for (const char *p = said(); (p = strstr(p, what)); p++)
        n++;
    return n;
}

static struct track_copy block_of(uint32_t client)
{
    return (struct track_copy){.base = BASE, .size = 16, .facts = {.bytes = 16, .client = client}};
}

static void find(struct guard_finding f)
{
    f.type = REPORT_HEAP_OVERFLOW;
    f.call = DRIVER_cuMemcpyHtoD_v2;
    f.stackless = true;
    guard_report_finding(&f);
}

static void good_the_process_itself_is_not_named(void **state)
{
    find((struct guard_finding){.nbuffers = 1, .buffers = {block_of(0)}});
    assert_int_equal(count("ERROR: moat"), 1);
    assert_int_equal(count("client"), 0);
}

// The client that acts, not the owner of the buffer.
static void good_an_error_is_its_threads_client(void **state)
{
    track_client_set(3);
    find((struct guard_finding){.nbuffers = 1, .buffers = {block_of(5)}});
    assert_int_equal(count("for client 3\n"), 1);
    assert_int_equal(count("client"), 1);
}

static void good_our_own_threads_name_the_buffers_client(void **state)
{
    find((struct guard_finding){.nbuffers = 2, .buffers = {block_of(5), block_of(6)}});
    assert_int_equal(count("for client 5\n"), 1);
}

static void good_a_finding_may_know_better(void **state)
{
    track_client_set(3);
    find((struct guard_finding){.client_known = true, .client = 4});
    assert_int_equal(count("for client 4\n"), 1);
    find((struct guard_finding){.client_known = true, .nbuffers = 1, .buffers = {block_of(5)}});
    assert_int_equal(count("ERROR: moat"), 2);
    assert_int_equal(count("client"), 1);
}

static void good_each_client_is_told(void **state)
{
    for (unsigned i = 0; i < 6; i++) {
        track_client_set(1 + i % 2);
        find((struct guard_finding){.nbuffers = 0});
    }
    assert_int_equal(count("for client 1\n"), 1);
    assert_int_equal(count("for client 2\n"), 1);
    assert_int_equal(count("ERROR: moat"), 2);
}

// --- explanations ---

static const char *explanation;
static unsigned explained;

static void explain(uint64_t address, uint64_t bytes, const char *kernel, char *to, size_t size)
{
    assert_int_equal(address, BASE + 16);
    assert_int_equal(bytes, 4);
    assert_string_equal(kernel, "add");
    explained++;
    snprintf(to, size, "%s", explanation);
}

static void find_explained(const char *by)
{
    static struct driver_fault fault = {.kernel = "add"};
    explanation = by;
    fault.line++;  // each is an error of its own
    guard_report_explain_with(explain);
    guard_report_finding(&(struct guard_finding){
        .type = REPORT_HEAP_OVERFLOW, .in_kernel = true, .address = BASE + 16, .bytes = 4, .fault = &fault});
    guard_report_explain_with(NULL);
}

static void good_an_interpreter_explains(void **state)
{
    find_explained("@inner\tx.py\t7\n@outer\tx.py\t9\nthe tensor is left");
    assert_non_null(strstr(said(), "    #0 inner x.py:7\n    #1 outer x.py:9\n"));
    assert_int_equal(count("note: the tensor is left\n"), 1);
    assert_int_equal(explained, 1);
    find((struct guard_finding){.nbuffers = 0});  // our own threads do not ask
    assert_int_equal(explained, 1);
}

static void bad_explanations(void **state)
{
    static char most[8192], notes[600];
    memset(most, 'x', sizeof most - 1);
    for (size_t i = 0; i < sizeof notes - 2; i += 2)
        memcpy(notes + i, "n\n", 2);
    const char *texts[] = {"", "@", "@a", "@a\tb", "@\t\t", "@a\tb\tc", "\n\n", "@a\tb\t1\n@c", most, notes};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        find_explained(texts[i]);
    assert_int_equal(count("ERROR: moat"), sizeof texts / sizeof *texts);
    assert_int_equal(count("note: n\n"), 8);
}

static void make(uint32_t client, unsigned first, unsigned blocks)
{
    track_client_set(client);
    for (unsigned i = first; i < first + blocks; i++)
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + i * STEP, 16);
}

// Whichever thread checks for leaks.
static void good_leaks_are_their_clients(void **state)
{
    make(0, 0, 1);
    make(1, 1, 2);
    make(2, 3, 3);
    track_client_set(9);
    leak_report(NULL);
    assert_int_equal(count("ERROR: moat: memory-leak"), 3);
    assert_int_equal(count("16 bytes in 1 buffer were never freed"), 1);
    assert_non_null(strstr(said(), "32 bytes in 2 buffers were never freed\nReport 2"));
    assert_non_null(strstr(said(), "48 bytes in 3 buffers were never freed\nReport 3"));
    assert_int_equal(count("for client 1\n"), 1);
    assert_int_equal(count("for client 2\n"), 1);
    assert_int_equal(count("client"), 2);
    for (unsigned i = 0; i < 6; i++)
        assert_true(track_freeing(BASE + i * STEP, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_the_process_itself_is_not_named),
        TEST(good_an_error_is_its_threads_client),
        TEST(good_our_own_threads_name_the_buffers_client),
        TEST(good_a_finding_may_know_better),
        TEST(good_each_client_is_told),
        TEST(good_an_interpreter_explains),
        TEST(bad_explanations),
        TEST(good_leaks_are_their_clients),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
