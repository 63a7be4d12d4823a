// SPDX-License-Identifier: MIT
#include "heap/own_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/producer.h"
#include "report/text_buffer.h"

#define BY_THREAD O_EXCL  // PIDFD_THREAD, since Linux 6.9; libc has no name for it yet

static _Atomic pid_t threads[OWN_FDS_MOST];  // relaxed: a reader may miss a thread that has just begun
static _Atomic unsigned nthreads;
static __thread bool has_own_fds __attribute__((tls_model("initial-exec")));
static __thread bool ours __attribute__((tls_model("initial-exec")));

// Returns whether a call with invalid arguments was refused: a system that has the call and allows it gives
// another error than these.
static bool is_refused(long result)
{
    return result < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES);
}

// Returns whether standard error can be fetched. Not tried under a seccomp filter, which may kill the process
// for an unknown call.
static bool can_fetch(void)
{
    return prctl(PR_GET_SECCOMP) != 2 /* filters */ && !is_refused(syscall(SYS_pidfd_open, -1L, 0L)) &&
           !is_refused(syscall(SYS_pidfd_getfd, -1L, 0L, 0L));
}

bool own_fds_unshare(void)
{
    if (!has_own_fds)
        has_own_fds = can_fetch() && syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) == 0;
    return has_own_fds;
}

bool own_fds_has(void)
{
    return has_own_fds;
}

bool own_fds_is_our_thread(void)
{
    return ours;
}

void own_fds_register(void)
{
    ours = true;
    unsigned i = atomic_fetch_add_explicit(&nthreads, 1, memory_order_relaxed);
    if (i < OWN_FDS_MOST)
        atomic_store_explicit(&threads[i], (pid_t)syscall(SYS_gettid), memory_order_relaxed);
}

unsigned own_fds_threads(pid_t *tids)
{
    unsigned n = 0;
    for (unsigned i = 0; i < OWN_FDS_MOST; i++) {
        tids[n] = atomic_load_explicit(&threads[i], memory_order_relaxed);
        n += tids[n] != 0;
    }
    return n;
}

void own_fds_after_fork(void)
{
    for (unsigned i = 0; i < OWN_FDS_MOST; i++)
        atomic_store_explicit(&threads[i], 0, memory_order_relaxed);
    atomic_store_explicit(&nthreads, 0, memory_order_relaxed);
}

static int fetch(pid_t from, unsigned flags)
{
    int pidfd = (int)syscall(SYS_pidfd_open, from, flags);
    if (pidfd < 0)
        return -1;
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, STDERR_FILENO, 0L);
    close(pidfd);
    return fd;
}

// For kernels whose pidfds name processes only; fails if standard error is a socket.
static int open_by_name(pid_t tid)
{
    char name[64];
    struct text_buffer b;
    text_buffer_init(&b, name, sizeof name - 1);
    text_buffer_fmt(&b, "/proc/self/task/%d/fd/2", (int)tid);
    name[b.len] = 0;
    return open(name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
}

int own_fds_standard_error(void)
{
    int fd = fetch(getpid(), 0);
    for (struct producer *w = producer_all(); fd < 0 && w;
         w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        // Relaxed: a thread that has just ended has no descriptors, and the fetch fails.
        if (atomic_load_explicit(&w->state, memory_order_relaxed) != PRODUCER_ALIVE)
            continue;
        pid_t tid = atomic_load_explicit(&w->tid, memory_order_relaxed);
        fd = fetch(tid, BY_THREAD);
        fd = fd < 0 ? open_by_name(tid) : fd;
    }
    return fd;
}
