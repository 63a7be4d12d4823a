// SPDX-License-Identifier: MIT
// Assertions that cost too much for the installed build, such as walks over a whole structure. They are
// evaluated in builds with MOAT_CHECKED: the Makefile defines it for clang's build and for those with
// sanitizers (SAN). All other builds compile the expression and never evaluate it, so it must have no side
// effects.
//
// A failed assertion prints file, line and expression to standard error and ends the process by SIGABRT. It
// takes neither memory nor a lock and calls no function of libc that we wrap, because it may fail inside an
// allocation. It may also fail in a thread of ours, which has all signals blocked and descriptors of its own.
#ifndef MOAT_BASE_CHECKED_H
#define MOAT_BASE_CHECKED_H

#ifdef MOAT_CHECKED

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHECKED = 1 };

#define CHECKED_TEXT_(x) #x
#define CHECKED_TEXT(x) CHECKED_TEXT_(x)
#define checked_assert(e) \
    ((e) ? (void)0 : checked_failed(CHECKED_MESSAGE(#e), sizeof(CHECKED_MESSAGE(#e)) - 1))
#define CHECKED_MESSAGE(e) "moat: " __FILE__ ":" CHECKED_TEXT(__LINE__) ": does not hold: " e "\n"

__attribute__((noreturn, cold, noinline, unused)) static void checked_failed(const char *text, size_t length)
{
    uint64_t abrt = 1ull << (SIGABRT - 1);
    if (write(STDERR_FILENO, text, length) < 0) {
        int theirs = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_CLOEXEC);  // the program's stderr
        if (write(theirs, text, length) < 0) {
            // Nothing is left but the signal.
        }
    }
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &abrt, NULL, sizeof abrt);
    syscall(SYS_tgkill, (long)getpid(), syscall(SYS_gettid), (long)SIGABRT);
    __builtin_trap();  // reached if the program handles the signal
}

#else

enum { CHECKED = 0 };

#define checked_assert(e) ((void)(0 && (e)))

#endif
#endif
