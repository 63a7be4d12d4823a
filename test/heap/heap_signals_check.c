// SPDX-License-Identifier: MIT
// heap_signals_check NAME [bug]: a signal comes, right after a write behind a block if there is a bug. Prints
// what the program's own handlers did; they must do the same with and without --heap-signals.
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char *volatile block;
static bool bug;
static sigjmp_buf again;
static char *volatile nowhere;

static void overrun(void)
{
    block = malloc(40);
    if (bug)
        block[40] = 0;
}

static void fault(void)
{
    overrun();
    *nowhere = 1;
}

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

static void leave(int sig)
{
    say("handler\n");
    _exit(5);
}

static void jump(int sig, siginfo_t *info, void *context)
{
    say(info->si_addr == NULL ? "at 0\n" : "elsewhere\n");
    siglongjmp(again, 1);
}

static void note(int sig)
{
    say("noted\n");
}

static void set(int sig, void (*handler)(int), int flags)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags}, old;
    sigaction(sig, &a, &old);
    say(old.sa_handler == SIG_DFL ? "was default\n" : "was not\n");
    sigaction(sig, NULL, &old);
    say(old.sa_handler == handler ? "is set\n" : "is not\n");
}

static void do_default(void)
{
    fault();
}

static void do_abort_sent(void)
{
    overrun();
    raise(SIGABRT);
}

static void do_bus_sent(void)
{
    overrun();
    kill(getpid(), SIGBUS);
}

static void do_handler(void)
{
    set(SIGSEGV, leave, 0);
    fault();
}

static void do_signal_call(void)
{
    say(signal(SIGSEGV, leave) == SIG_DFL ? "was default\n" : "was not\n");
    fault();
}

// The program survives the fault, with the information of the signal.
static void do_jump(void)
{
    struct sigaction a = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    if (sigsetjmp(again, 1) == 0)
        fault();
    say("goes on\n");
    fflush(stdout);
    _exit(0);
}

// A handler for one signal: the second one ends the process.
static void do_once(void)
{
    set(SIGABRT, note, (int)SA_RESETHAND);
    overrun();
    raise(SIGABRT);
    raise(SIGABRT);
}

static void do_ignored(void)
{
    set(SIGABRT, SIG_IGN, 0);
    overrun();
    raise(SIGABRT);
    say("goes on\n");
}

// A small stack for signals has no room for a check, and the handler needs all of it.
static void do_small_stack(void)
{
    static char room[8192];
    stack_t s = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&s, NULL);
    set(SIGSEGV, leave, SA_ONSTACK);
    fault();
}

#define WAY(name)        \
    {                    \
#name, do_##name \
    }
static const struct way {
    const char *name;
    void (*run)(void);
} ways[] = {WAY(default), WAY(abort_sent), WAY(bus_sent), WAY(handler),    WAY(signal_call),
            WAY(jump),    WAY(once),       WAY(ignored),  WAY(small_stack)};

int main(int argc, char **argv)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    bug = argc > 2;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (argc < 2)
            puts(ways[i].name);
        else if (strcmp(argv[1], ways[i].name) == 0)
            ways[i].run();
    return 0;
}
