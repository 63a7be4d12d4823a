// SPDX-License-Identifier: MIT
#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// How long a process that outlives the program may take after its last report, and all of them together.
enum { GRACE_MS = 1000, MOST_GRACE_MS = 10000 };

// Signals that are forwarded. SIGTTIN and SIGTTOU are not among them: they stop the command together with the
// program. SIGPIPE is not either: it concerns the command's own output.
static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};

struct supervised {
    pid_t child;
    int signals;  // descriptor for reading them
    bool ended;
    int status;
    // State to restore for the program.
    sigset_t old_mask;
    struct sigaction old_child, old_pipe;
    struct rlimit old_files;
};

static void take_signals(struct supervised *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&set, passed_on[i]);
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        sigaddset(&set, i);
    sigprocmask(SIG_BLOCK, &set, &s->old_mask);
    // If SIGCHLD is ignored, a child's status is lost.
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &s->old_child);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &s->old_pipe);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void give_signals_back(const struct supervised *s)
{
    sigaction(SIGCHLD, &s->old_child, NULL);
    sigaction(SIGPIPE, &s->old_pipe, NULL);
    sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

// Raises the limit of descriptors: each reporting process needs one.
static void raise_limit(struct supervised *s)
{
    getrlimit(RLIMIT_NOFILE, &s->old_files);
    struct rlimit most = {s->old_files.rlim_max, s->old_files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
}

// Runs in the child; does only what is allowed between fork and exec.
static void exec_program(const struct supervised *s, const char *path, char **argv, int error_pipe)
{
    setrlimit(RLIMIT_NOFILE, &s->old_files);
    give_signals_back(s);
    execv(path, argv);
    int err = errno;
    ssize_t n = write(error_pipe, &err, sizeof err);
    _exit(n < 0 ? 127 : 126);
}

// Starts the program. A successful exec closes the pipe.
static int start(struct supervised *s, const char *path, char **argv)
{
    int ends[2], err = 0;
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    fflush(NULL);
    s->child = fork();
    if (s->child < 0) {
        err = errno;
        close(ends[0]);
        close(ends[1]);
        return -err;
    }
    if (!s->child)
        exec_program(s, path, argv, ends[1]);
    close(ends[1]);
    ssize_t n;
    do
        n = read(ends[0], &err, sizeof err);
    while (n < 0 && errno == EINTR);
    close(ends[0]);
    if (n != sizeof err)
        return 0;
    waitpid(s->child, NULL, 0);
    return -err;
}

// Stops the command when the program stops, so that the shell sees the job stop; continues the program when
// the command is continued. SIGSTOP is excluded: it is meant for one process, and whoever sent it would
// continue only the program.
static void stop_as_well(const struct supervised *s, int signal)
{
    if (signal == SIGSTOP)
        return;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &one, NULL);  // stops here
    sigprocmask(SIG_BLOCK, &one, NULL);
    kill(s->child, SIGCONT);
}

static void reap(struct supervised *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid != s->child)
            continue;
        if (WIFSTOPPED(status)) {
            stop_as_well(s, WSTOPSIG(status));
        } else {
            s->ended = true;
            s->status = status;
        }
    }
}

static void read_signals(struct supervised *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        // Signals of a terminal come from the kernel, for the whole group, and are not forwarded. An alarm
        // that was set before the command's exec reaches the command alone, and is.
        bool for_us = info.ssi_code <= 0 || info.ssi_signo == SIGALRM;
        if (info.ssi_signo == SIGCHLD)
            reap(s);
        else if (for_us && !s->ended && info.ssi_pid != (uint32_t)s->child)
            kill(s->child, (int)info.ssi_signo);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

// Reads the reports that are still in sockets when the program has ended; its children may be about to end
// too.
static void drain(struct collect *c)
{
    int64_t start = now_ms(), last = start, now = start;
    while (collect_wait(c, -1, 0) & COLLECT_HEARD)
        ;
    while (collect_talking(c) && now - last < GRACE_MS && now - start < MOST_GRACE_MS) {
        if (collect_wait(c, -1, (int)(GRACE_MS - (now - last))) & COLLECT_HEARD)
            last = now_ms();
        now = now_ms();
    }
}

int supervise(const char *path, char **argv, struct collect *c, int *status)
{
    struct supervised s = {.signals = -1};
    take_signals(&s);
    raise_limit(&s);
    int err = s.signals < 0 ? -errno : start(&s, path, argv);
    while (!err && !s.ended)
        if (collect_wait(c, s.signals, -1) & COLLECT_OTHER)
            read_signals(&s);
    if (!err)
        drain(c);
    *status = s.status;
    close(s.signals);
    return err;
}

void supervise_die_by(int signal)
{
    // The program has written a core file if there is to be one.
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    prctl(PR_SET_DUMPABLE, 0);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(signal);
}
