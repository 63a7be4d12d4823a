// SPDX-License-Identifier: MIT
#include "heap/heap_signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT};
enum { SIGNALS = sizeof signals / sizeof *signals };

static atomic_bool on;
static void (*look_now)(void), (*look_at_end)(void);  // set before our handler
static atomic_flag lock = ATOMIC_FLAG_INIT;           // of `actions`; its holder has all signals blocked
static struct sigaction actions[SIGNALS];             // what the program has set

typedef int set_action(int, const struct sigaction *, struct sigaction *);

static set_action *next_sigaction(void)
{
    static set_action *_Atomic next;
    set_action *f = atomic_load_explicit(&next, memory_order_relaxed);  // relaxed: all threads find the same
    if (!f) {
        f = (set_action *)dlsym(RTLD_NEXT, "sigaction");
        atomic_store_explicit(&next, f, memory_order_relaxed);
    }
    return f;
}

static int number_of(int sig)
{
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i] == sig)
            return i;
    return -1;
}

bool heap_signals_has(int sig)
{
    return atomic_load_explicit(&on, memory_order_acquire) &&
           number_of(sig) >= 0;  // with the start's release
}

static void take_lock(sigset_t *mask)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, mask);
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))  // with release_lock's release
        ;
}

static void release_lock(const sigset_t *mask)
{
    atomic_flag_clear_explicit(&lock, memory_order_release);  // with take_lock's acquire
    sigprocmask(SIG_SETMASK, mask, NULL);
}

// Returns the program's action. One for a single signal becomes the default with that.
static struct sigaction take_action(int number)
{
    sigset_t mask;
    take_lock(&mask);
    struct sigaction a = actions[number];
    if (a.sa_flags & SA_RESETHAND && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN)
        actions[number].sa_handler = SIG_DFL;
    release_lock(&mask);
    return a;
}

// Lets the signal end the process. A fault happens again when the handler returns; another signal is sent
// again, and comes when the handler returns, because it is blocked until then.
static void end_by(int sig, const siginfo_t *info, const struct sigaction *a)
{
    next_sigaction()(sig, a, NULL);
    if (info->si_code <= 0)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
}

static void handle(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    struct sigaction a = take_action(number_of(sig));
    bool sent = info->si_code <= 0;
    if (a.sa_handler == SIG_IGN && sent)
        return;
    bool ends = a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN;
    if (ends)
        look_at_end();
    else
        look_now();
    errno = saved;
    if (ends)
        end_by(sig, info, &a);
    else if (a.sa_flags & SA_SIGINFO)
        a.sa_sigaction(sig, info, context);
    else
        a.sa_handler(sig);
}

// Puts our handler in the place of the program's action, with the same mask and flags.
static int put(int sig, const struct sigaction *a)
{
    struct sigaction ours = *a;
    ours.sa_sigaction = handle;
    ours.sa_flags = (a->sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
    if (a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN)
        ours.sa_flags |= SA_ONSTACK;  // the process may have run out of its stack
    return next_sigaction()(sig, &ours, NULL);
}

int heap_signals_action(int sig, const struct sigaction *act, struct sigaction *old)
{
    sigset_t mask;
    int number = number_of(sig), result = 0;
    take_lock(&mask);
    struct sigaction was = actions[number];
    if (act) {
        result = put(sig, act);
        if (result == 0)
            actions[number] = *act;
    }
    release_lock(&mask);
    if (old && result == 0)
        *old = was;
    return result;
}

void heap_signals_start(void (*look)(void), void (*end)(void))
{
    if (!next_sigaction())
        return;
    look_now = look;
    look_at_end = end;
    for (int i = 0; i < SIGNALS; i++)
        if (next_sigaction()(signals[i], NULL, &actions[i]) == 0)
            put(signals[i], &actions[i]);
    atomic_store_explicit(&on, true, memory_order_release);  // with the acquire in heap_signals_has
}
