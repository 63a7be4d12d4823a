// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/channel.h"
#include "report/log_name.h"

// A listener in a process of its own: it writes the lines that it receives to a pipe and sends given answers.
struct listener {
    char folder[64], path[80];
    pid_t process;
    int heard;  // end of the pipe
};

enum { CONNECTIONS = 8 };

static void forget(int *peers, int *count, int i)
{
    close(peers[i]);
    peers[i] = peers[--*count];
}

static const char *reply(int peer, const char *text, size_t n, const char *answers)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\n')
            continue;
        if (*answers == '!' || send(peer, answers, 1, MSG_NOSIGNAL) != 1)
            _exit(0);
        answers += answers[1] != 0;
    }
    return answers;
}

// Answers each line by the next byte of `answers`, repeating the last; '!' ends the listener.
static void serve(int listener, int to, const char *answers)
{
    int peers[CONNECTIONS], count = 0;
    for (;;) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(listener, &set);
        for (int i = 0; i < count; i++)
            FD_SET(peers[i], &set);
        select(1000, &set, NULL, NULL, NULL);
        if (FD_ISSET(listener, &set) && count < CONNECTIONS) {
            peers[count++] = accept(listener, NULL, NULL);
            dprintf(to, "connected\n");
            continue;
        }
        for (int i = 0; i < count; i++) {
            char text[4096];
            ssize_t n = FD_ISSET(peers[i], &set) ? read(peers[i], text, sizeof text) : -1;
            if (n == 0)
                forget(peers, &count, i);
            if (n <= 0 || write(to, text, (size_t)n) != n)
                continue;
            answers = reply(peers[i], text, (size_t)n, answers);
        }
    }
}

static void listener_start(struct listener *l, const char *answers)
{
    strcpy(l->folder, "/tmp/channel-XXXXXX");
    assert_non_null(mkdtemp(l->folder));
    snprintf(l->path, sizeof l->path, "%s/s", l->folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, l->path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), ends[2];
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(pipe(ends), 0);
    l->process = fork();
    if (!l->process) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        serve(fd, ends[1], answers);
    }
    close(fd);
    close(ends[1]);
    l->heard = ends[0];
    setenv(CHANNEL_VARIABLE, l->path, 1);
}

// Ends the listener; text receives the lines that it got.
static void listener_stop(struct listener *l, char *text, size_t size)
{
    kill(l->process, SIGKILL);
    waitpid(l->process, NULL, 0);
    size_t len = 0;
    for (ssize_t n; (n = read(l->heard, text + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = 0;
    close(l->heard);
    unlink(l->path);
    rmdir(l->folder);
}

static int occurrences(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static struct report_line note(const char *text)
{
    return (struct report_line){.event = REPORT_NOTE, .note = {getpid(), text}};
}

static enum channel_answer say(struct channel *c, const char *text)
{
    struct report_line line = note(text);
    return channel_send(c, &line);
}

// Sends a line; text receives what is written to standard error meanwhile.
static enum channel_answer say_on_stderr(struct channel *c, const char *what, char *text, size_t size)
{
    int ends[2], old = dup(2);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    enum channel_answer a = say(c, what);
    dup2(old, 2);
    close(old);
    close(ends[1]);
    ssize_t n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = 0;
    close(ends[0]);
    return a;
}

static void test_answers(void **state)
{
    struct listener l;
    struct channel c;
    char heard[4096];
    listener_start(&l, "gsg");
    channel_init(&c, NULL);
    assert_int_equal(say(&c, "one"), CHANNEL_GO_ON);
    assert_int_equal(say(&c, "two"), CHANNEL_SUPPRESSED);
    assert_int_equal(say(&c, "three"), CHANNEL_GO_ON);
    assert_true(fcntl(c.fd, F_GETFD) & FD_CLOEXEC);
    assert_true(c.fd >= 200);
    listener_stop(&l, heard, sizeof heard);
    assert_int_equal(occurrences(heard, "connected"), 1);
    assert_int_equal(occurrences(heard, "\n"), 4);
    assert_non_null(strstr(heard, "three"));
}

static void test_closed_descriptors(void **state)
{
    struct listener l;
    struct channel c;
    char heard[4096];
    listener_start(&l, "g");
    channel_init(&c, NULL);
    assert_int_equal(say(&c, "one"), CHANNEL_GO_ON);
    close(c.fd);
    errno = 1234;
    assert_int_equal(say(&c, "two"), CHANNEL_GO_ON);
    assert_int_equal(errno, 1234);
    // Another file under our number is left alone.
    int number = c.fd, other[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    dup2(other[1], number);
    assert_int_equal(say(&c, "three"), CHANNEL_GO_ON);
    assert_int_not_equal(c.fd, number);
    assert_int_equal(fcntl(number, F_GETFD), 0);
    close(number);
    close(other[1]);
    char byte;
    assert_int_equal(read(other[0], &byte, 1), 0);
    close(other[0]);
    listener_stop(&l, heard, sizeof heard);
    assert_int_equal(occurrences(heard, "connected"), 3);
    assert_int_equal(occurrences(heard, "\n"), 6);
}

// The connection was shut down, but the listener is there.
static void test_shut_down(void **state)
{
    struct listener l;
    struct channel c;
    char heard[4096];
    listener_start(&l, "g");
    channel_init(&c, NULL);
    assert_int_equal(say(&c, "one"), CHANNEL_GO_ON);
    shutdown(c.fd, SHUT_RDWR);
    assert_int_equal(say(&c, "two"), CHANNEL_GO_ON);
    listener_stop(&l, heard, sizeof heard);
    assert_int_equal(occurrences(heard, "connected"), 2);
}

static void test_fork(void **state)
{
    struct listener l;
    struct channel c;
    char heard[4096];
    listener_start(&l, "g");
    channel_init(&c, NULL);
    assert_int_equal(say(&c, "parent"), CHANNEL_GO_ON);
    pid_t child = fork();
    if (!child)
        _exit(say(&c, "child") == CHANNEL_GO_ON ? 7 : 1);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(say(&c, "parent again"), CHANNEL_GO_ON);
    listener_stop(&l, heard, sizeof heard);
    assert_int_equal(occurrences(heard, "connected"), 2);
    assert_non_null(strstr(heard, "parent again"));
}

static void test_listener_gone(void **state)
{
    struct listener l;
    struct channel c;
    char heard[4096], text[4096], log[100];
    listener_start(&l, "g!");
    channel_init(&c, NULL);
    assert_int_equal(say(&c, "one"), CHANNEL_GO_ON);
    // The listener ends after it has read the line. Whether it was rendered is unknown, so we write it as
    // text.
    assert_int_equal(say_on_stderr(&c, "unanswered", text, sizeof text), CHANNEL_NOBODY);
    assert_non_null(strstr(text, "unanswered"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_int_equal(say_on_stderr(&c, "again", text, sizeof text), CHANNEL_NOBODY);
    assert_non_null(strstr(text, "again"));
    assert_true(c.failed);
    listener_stop(&l, heard, sizeof heard);

    snprintf(log, sizeof log, "/tmp/channel-test.%d", getpid());
    channel_init(&c, "/tmp/channel-test.%p");
    assert_int_equal(say_on_stderr(&c, "first", text, sizeof text), CHANNEL_NOBODY);
    assert_string_equal(text, "");
    assert_int_equal(say(&c, "second"), CHANNEL_NOBODY);
    FILE *f = fopen(log, "r");
    assert_non_null(f);
    size_t n = fread(heard, 1, sizeof heard - 1, f);
    heard[n] = 0;
    fclose(f);
    unlink(log);
    assert_int_equal(occurrences(heard, "first"), 1);
    assert_int_equal(occurrences(heard, "second"), 1);
}

static void test_no_channel(void **state)
{
    struct channel c;
    char text[4096];
    unsetenv(CHANNEL_VARIABLE);
    channel_init(&c, "/dev/null/none");
    assert_int_equal(say_on_stderr(&c, "alone", text, sizeof text), CHANNEL_NOBODY);
    assert_non_null(strstr(text, "alone"));
    channel_init(&c, "/tmp/%q");
    assert_int_equal(say_on_stderr(&c, "alone", text, sizeof text), CHANNEL_NOBODY);
    assert_non_null(strstr(text, "alone"));
}

static void on_alarm(int signal)
{
}

// Continuous signals do not end the wait, and the answer is not lost.
static void test_signals(void **state)
{
    struct listener l;
    struct channel c;
    char heard[65536];
    listener_start(&l, "g");
    channel_init(&c, NULL);
    struct sigaction old, quick = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &quick, &old);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 200; i++)
        assert_int_equal(say(&c, "again"), CHANNEL_GO_ON);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    listener_stop(&l, heard, sizeof heard);
    assert_int_equal(occurrences(heard, "connected"), 1);
    assert_int_equal(occurrences(heard, "again"), 200);
}

static void set_patience(const struct channel *c, struct timeval patience)
{
    assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
}

// Waits until so many answers can be read: the listener may be slow.
static void await_answers(const struct channel *c, int n)
{
    int waiting = 0;
    for (int i = 0; i < 60000 && waiting < n; i++) {
        usleep(1000);
        assert_int_equal(ioctl(c->fd, FIONREAD, &waiting), 0);
    }
    assert_int_equal(waiting, n);
}

// A late listener costs one delay, and its late answers are not taken for those of later lines.
static void test_late(void **state)
{
    struct listener l;
    struct channel c;
    char heard[4096];
    listener_start(&l, "gggggs");
    channel_init(&c, NULL);
    assert_int_equal(say(&c, "one"), CHANNEL_GO_ON);
    set_patience(&c, (struct timeval){.tv_usec = 100000});
    kill(l.process, SIGSTOP);
    assert_int_equal(say(&c, "two"), CHANNEL_GO_ON);
    assert_int_equal(c.unanswered, 1);
    for (int i = 0; i < 3; i++)
        say(&c, "meanwhile");
    assert_int_equal(c.unanswered, 4);
    kill(l.process, SIGCONT);
    await_answers(&c, 4);
    set_patience(&c, (struct timeval){.tv_sec = 60});
    assert_int_equal(say(&c, "in time"), CHANNEL_SUPPRESSED);
    assert_int_equal(c.unanswered, 0);
    listener_stop(&l, heard, sizeof heard);
    assert_int_equal(occurrences(heard, "connected"), 1);
    assert_int_equal(occurrences(heard, "meanwhile"), 3);
}

static void *wait_long(void *context)
{
    struct channel *c = context;
    struct report_line line = note("in a thread");
    channel_send(c, &line);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return c;
}

// A thread is not cancelled inside: its caller holds a lock.
static void test_cancel(void **state)
{
    struct listener l;
    struct channel c;
    char heard[4096];
    listener_start(&l, "g");
    channel_init(&c, NULL);
    kill(l.process, SIGSTOP);
    pthread_t t;
    void *result;
    assert_int_equal(pthread_create(&t, NULL, wait_long, &c), 0);
    usleep(50000);
    pthread_cancel(t);
    usleep(50000);
    kill(l.process, SIGCONT);
    pthread_join(t, &result);
    assert_ptr_equal(result, &c);
    assert_int_equal(c.unanswered, 0);
    assert_true(c.fd >= 0);
    listener_stop(&l, heard, sizeof heard);
    assert_int_equal(occurrences(heard, "in a thread"), 1);
}

static void test_log_name(void **state)
{
    char name[40], host[40] = "";
    gethostname(host, sizeof host - 1);
    assert_int_equal(log_name_expand("a.%p.%%p", 12, name, sizeof name), 0);
    assert_string_equal(name, "a.12.%p");
    assert_int_equal(log_name_expand("%h", 12, name, sizeof name), strlen(host) < 39 ? 0 : -ENAMETOOLONG);
    if (strlen(host) < 39)
        assert_string_equal(name, host);
    assert_int_equal(log_name_expand("a%", 12, name, sizeof name), -EINVAL);
    assert_int_equal(log_name_expand("%x", 12, name, sizeof name), -EINVAL);
    assert_int_equal(log_name_expand("0123456789", 1, name, 10), -ENAMETOOLONG);
    assert_int_equal(log_name_expand("012345678", 1, name, 10), 0);
    assert_string_equal(name, "012345678");
    assert_true(log_name_per_process("x%p"));
    assert_false(log_name_per_process("x%%p%h"));
    assert_false(log_name_per_process("x%"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),       cmocka_unit_test(test_closed_descriptors),
        cmocka_unit_test(test_shut_down),     cmocka_unit_test(test_fork),
        cmocka_unit_test(test_listener_gone), cmocka_unit_test(test_no_channel),
        cmocka_unit_test(test_signals),       cmocka_unit_test(test_late),
        cmocka_unit_test(test_cancel),        cmocka_unit_test(test_log_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
