// SPDX-License-Identifier: MIT
#include "cli/mps_control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "mps/mps_answer.h"

enum { LOOK_MS = 20 };  // between two looks whether the program has ended, while it prints nothing

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

// --- the process -------------------------------------------------------------------------------------------

struct child {
    pid_t pid;
    int in, out;
};

static void close_both(const int *ends)
{
    close(ends[0]);
    close(ends[1]);
}

// Runs in the child; does only what is allowed between fork and exec.
static void exec_child(char *const argv[], int in, int out)
{
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0)
        execvp(argv[0], argv);
    _exit(errno == ENOENT ? 127 : 126);
}

static int start(struct child *c, char *const argv[])
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC))
        return -errno;
    if (pipe2(out, O_CLOEXEC)) {
        int err = -errno;
        close_both(in);
        return err;
    }
    c->pid = fork();
    if (!c->pid)
        exec_child(argv, in[0], out[1]);
    int err = c->pid < 0 ? -errno : 0;
    close(in[0]);
    close(out[1]);
    *c = (struct child){c->pid, in[1], out[0]};
    if (err) {
        close(c->in);
        close(c->out);
        return err;
    }
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    return 0;
}

// Writes the command, which fits into an empty pipe. A program that does not read it ends without it.
static void give_input(struct child *c, const char *input)
{
    struct sigaction old;
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &old);
    if (input && write(c->in, input, strlen(input)) < 0 && errno != EPIPE)
        cli_warning("cannot write to the control program: %s", strerror(errno));
    close(c->in);
    sigaction(SIGPIPE, &old, NULL);
}

// --- what it prints ----------------------------------------------------------------------------------------

// Takes what there is. Returns -EOVERFLOW if it is more than fits.
static int take(int fd, struct mps_answer *a)
{
    for (;;) {
        char more;
        bool full = a->len == sizeof a->text;
        ssize_t n = read(fd, full ? &more : a->text + a->len, full ? 1 : sizeof a->text - a->len);
        if (n > 0 && full)
            return -EOVERFLOW;
        if (n > 0)
            a->len += (size_t)n;
        else if (!n || errno != EINTR)
            return 0;
    }
}

// Waits until the program has ended, not until its output is closed: a daemon that it has started may keep
// it.
static int wait_for(struct child *c, struct mps_answer *a, int seconds)
{
    long long end = now_ms() + seconds * 1000ll;
    for (;;) {
        struct pollfd p = {c->out, POLLIN, 0};
        int status, err = 0;
        pid_t ended = waitpid(c->pid, &status, WNOHANG);
        err = take(c->out, a);
        if (ended == c->pid && !err) {
            a->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            return 0;
        }
        if (!err && now_ms() >= end)
            err = -ETIMEDOUT;
        if (err) {
            if (ended != c->pid) {
                kill(c->pid, SIGKILL);
                waitpid(c->pid, &status, 0);
            }
            return err;
        }
        if (poll(&p, 1, LOOK_MS) > 0 && !(p.revents & POLLIN))
            poll(NULL, 0, LOOK_MS);  // it has closed its output and runs on
    }
}

int mps_control_run(char *const argv[], const char *input, int seconds, struct mps_answer *a)
{
    struct child c = {.pid = -1};
    a->len = 0;
    a->status = 0;
    int err = start(&c, argv);
    if (err)
        return err;
    give_input(&c, input);
    err = wait_for(&c, a, seconds);
    close(c.out);
    return !err && a->status == 127 && !a->len ? -ENOENT : err;
}

// --- the control program -----------------------------------------------------------------------------------

#define CONTROL "nvidia-cuda-mps-control"

static int run_control(struct mps_answer *a, int seconds, const char *command)
{
    static char name[] = CONTROL;
    char *const argv[] = {name, NULL};
    return mps_control_run(argv, command, seconds, a);
}

static int refused(const struct mps_answer *a, const char *command)
{
    struct out line;
    out_to_memory(&line);
    struct str last = mps_answer_last_line(mps_answer_text(a));
    out_clean(&line, (struct str){last.ptr, last.len < 200 ? last.len : 200});
    out_char(&line, 0);
    int status = cli_error(CONTROL " refuses \"%.*s\" (status %d)%s%s", (int)strcspn(command, "\n"), command,
                           a->status, last.len && !line.error ? ": " : "", line.error ? "" : line.buf);
    out_close(&line);
    return status;
}

int mps_control_ask(struct mps_answer *a, int seconds, const char *fmt, ...)
{
    char command[200];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(command, sizeof command - 1, fmt, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof command - 1)
        return cli_error("a command for " CONTROL " is too long");
    strcat(command, "\n");
    int err = run_control(a, seconds, command);
    if (err == -ENOENT)
        return cli_error("there is no " CONTROL " in PATH: it comes with NVIDIA's driver");
    if (err == -ETIMEDOUT)
        return cli_error(CONTROL " has not answered \"%.*s\" for %d seconds", n, command, seconds);
    if (err == -EOVERFLOW)
        return cli_error(CONTROL " answers \"%.*s\" with more than %d bytes", n, command, MPS_ANSWER_MOST);
    if (err)
        return cli_error("cannot run " CONTROL ": %s", strerror(-err));
    return a->status ? refused(a, command) : CLI_OK;
}

bool mps_control_answers(struct mps_answer *a)
{
    return !run_control(a, MPS_SECONDS, "get_server_list\n") && !a->status;
}
