// SPDX-License-Identifier: MIT
#include "heap/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/writer.h"
#include "report/text_buffer.h"

static __thread bool apart __attribute__((tls_model("initial-exec")));

// Asked for what there cannot be: a system that knows the call, and lets us, has another answer than these.
static bool is_refused(long result)
{
    return result < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES);
}

// A filter may end the process for a call that it does not know.
static bool can_fetch(void)
{
    return prctl(PR_GET_SECCOMP) != 2 /* filters */ && !is_refused(syscall(SYS_pidfd_open, -1L, 0L)) &&
           !is_refused(syscall(SYS_pidfd_getfd, -1L, 0L, 0L));
}

bool apart_leave(void)
{
    if (!apart)
        apart = can_fetch() && syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) == 0;
    return apart;
}

bool apart_is(void)
{
    return apart;
}

// From the process's first thread.
static int fetch(int number)
{
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0L);
    if (process < 0)
        return -1;
    int fd = (int)syscall(SYS_pidfd_getfd, process, number, 0L);
    close(process);
    return fd;
}

// The first thread may have ended. Another one's descriptors can be opened by name, if they are no sockets.
static int open_by_name(pid_t tid)
{
    char name[64];
    struct text_buffer b;
    text_buffer_init(&b, name, sizeof name - 1);
    text_buffer_fmt(&b, "/proc/self/task/%d/fd/2", (int)tid);
    name[b.len] = 0;
    return open(name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
}

int apart_standard_error(void)
{
    int fd = fetch(STDERR_FILENO);
    for (struct writer *w = writer_all(); fd < 0 && w;
         w = atomic_load_explicit(&w->older, memory_order_relaxed))
        // Relaxed: one that has just ended has no descriptors.
        if (atomic_load_explicit(&w->state, memory_order_relaxed) == WRITER_ALIVE)
            fd = open_by_name(atomic_load_explicit(&w->tid, memory_order_relaxed));
    return fd;
}
