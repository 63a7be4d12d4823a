// SPDX-License-Identifier: MIT
// Assertions that cost too much for the build that is installed, such as walks over a whole structure. They
// are made in builds with MOAT_CHECKED: the Makefile defines it for clang's build and for those with
// sanitizers (SAN). All others compile the expression and never evaluate it: it must have no effects.
//
// A failure prints file, line and expression to standard error and ends the process by SIGABRT. It takes
// neither memory nor a lock and calls no function of libc that we wrap: it may fail inside an allocation. It
// may fail in a thread of ours too, which has all signals blocked and descriptors of its own.
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
        int theirs = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_CLOEXEC);  // the program's
        if (write(theirs, text, length) < 0) {
            // The signal tells as much as can be told.
        }
    }
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &abrt, NULL, sizeof abrt);
    syscall(SYS_tgkill, (long)getpid(), syscall(SYS_gettid), (long)SIGABRT);
    __builtin_trap();  // the program handles the signal
}

#else

enum { CHECKED = 0 };

#define checked_assert(e) ((void)(0 && (e)))

#endif
#endif
