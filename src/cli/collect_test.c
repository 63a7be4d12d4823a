// SPDX-License-Identifier: MIT
// The command's end of the channel; the processes that report are connections of this one.
#include "cli/collect.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli_testing.h"
#include "report/channel.h"

static int out;
static struct reports r;
static struct collect c;

static int setup(void **state)
{
    struct render_setup s = {.format = OPTION_FORMAT_TEXT, .color = OPTION_COLOR_NEVER};
    char why[200];
    s.fd = out = open("/tmp", O_RDWR | O_TMPFILE | O_APPEND, 0600);
    assert_int_equal(reports_init(&r, cli_testing_parse(NULL, NULL), &s), 0);
    r.live = true;
    return collect_open(&c, &r, why, sizeof why);
}

static int teardown(void **state)
{
    char path[sizeof c.path];
    strcpy(path, c.path);
    collect_close(&c);
    assert_int_not_equal(access(path, F_OK), 0);
    reports_free(&r);
    cli_testing_forget();
    return close(out);
}

static int connect_one(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(to.sun_path, c.path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

// Waits until nothing more happens.
static int hear(int other)
{
    int all = 0, heard;
    while ((heard = collect_wait(&c, other, 20)) == COLLECT_HEARD)
        all |= heard;
    return all | heard;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    hear(-1);
}

static int answers(int fd, char *to, size_t size)
{
    ssize_t n = recv(fd, to, size, MSG_DONTWAIT);
    return n > 0 ? (int)n : 0;
}

static const char start[] =
    "{\"event\":\"start\",\"pid\":7,\"parent\":1,\"program\":\"/bin/app\",\"mode\":\"api\"}\n",
                  error[] = "{\"event\":\"error\",\"type\":\"double-free\",\"pid\":7,\"id\":1,\"count\":1}\n",
                  end[] = "{\"event\":\"end\",\"pid\":7,\"errors\":1,\"suppressed\":0,\"watched\":[]}\n";

// Each line is rendered and answered by a byte, however it is cut into pieces.
static void good_lines(void **state)
{
    char bytes[10];
    int fd = connect_one();
    say(fd, start);
    assert_int_equal(answers(fd, bytes, sizeof bytes), 1);
    assert_int_equal(bytes[0], CHANNEL_GO_ON);
    assert_true(collect_talking(&c));
    char first[20] = "";
    memcpy(first, error, sizeof first - 1);
    say(fd, first);
    assert_int_equal(answers(fd, bytes, sizeof bytes), 0);
    say(fd, error + 19);
    assert_int_equal(answers(fd, bytes, sizeof bytes), 1);
    assert_int_equal(r.errors, 1);
    say(fd, end);
    assert_false(collect_talking(&c));
    close(fd);
    hear(-1);
    assert_int_equal(c.peers.len, 0);
    assert_int_equal(cli_testing_count(cli_testing_read_fd(out), "ERROR: moat: double-free"), 1);
}

// Several connections at once, one of which is closed within a line.
static void good_several(void **state)
{
    char bytes[10];
    int a = connect_one(), b = connect_one();
    say(a, start);
    say(b, "{\"event\":");
    close(b);
    hear(-1);
    assert_int_equal(c.peers.len, 1);
    say(a, end);
    assert_int_equal(answers(a, bytes, sizeof bytes), 2);
    close(a);
    hear(-1);
    assert_int_equal(r.started, 1);
}

// What cannot be read is noted and answered: the process must not wait for ever.
static void bad_line(void **state)
{
    char bytes[10];
    int fd = connect_one();
    say(fd, "nonsense\n");
    assert_int_equal(answers(fd, bytes, sizeof bytes), 1);
    assert_int_equal(cli_testing_count(cli_testing_read_fd(out), "a report of this process cannot be read"),
                     1);
    close(fd);
    hear(-1);
}

static void good_other(void **state)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(collect_wait(&c, ends[0], 0), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(collect_wait(&c, ends[0], -1) & COLLECT_OTHER, COLLECT_OTHER);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(good_several, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_line, setup, teardown),
        cmocka_unit_test_setup_teardown(good_other, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
