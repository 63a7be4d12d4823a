// SPDX-License-Identifier: MIT
#include "heap/last_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/own_fds.h"
#include "heap/throttle.h"
#include "heap/producer.h"
#include "report/text_buffer.h"

enum { PATIENCE_MS = 200 };

static bool is_ours(pid_t tid)
{
    pid_t tids[OWN_FDS_MOST];
    for (unsigned i = 0, n = own_fds_threads(tids); i < n; i++)
        if (tids[i] == tid)
            return true;
    return false;
}

// Returns whether the thread's record has retired, so that it is likely to end soon. Thread ids are reused,
// so this is a guess.
static bool seems_to_leave(pid_t tid)
{
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed))
        // Sequentially consistent: with the fence in last_thread_leaves. Of two threads that leave, at least
        // one sees the other leave.
        if (atomic_load_explicit(&w->tid, memory_order_relaxed) == tid)
            return atomic_load_explicit(&w->state, memory_order_seq_cst) != PRODUCER_ALIVE;
    return false;
}

// Direct system calls: our threads may have descriptor tables of their own, which ThreadSanitizer does not
// know.
static long read_file(const char *name, char *text, size_t size)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? -errno : syscall(SYS_read, fd, text, size);
    n = fd >= 0 && n < 0 ? -errno : n;
    if (fd >= 0)
        syscall(SYS_close, fd);
    return n;
}

// Parses "4711 (name) S 1 ...": the name may contain anything, so the last bracket is searched for.
static bool has_ended(pid_t tid)
{
    char name[64], text[128];
    struct text_buffer b;
    text_buffer_init(&b, name, sizeof name - 1);
    text_buffer_fmt(&b, "/proc/self/task/%d/stat", (int)tid);
    name[b.len] = 0;
    long n = read_file(name, text, sizeof text);
    const char *bracket = n > 0 ? memrchr(text, ')', (size_t)n) : NULL;
    return n == -ENOENT || n == -ESRCH ||
           (bracket && bracket + 2 < text + n && (bracket[2] == 'Z' || bracket[2] == 'X'));
}

struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static pid_t number(const char *text)
{
    pid_t n = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        n = n * 10 + *text - '0';
    return n;
}

enum rest { NOBODY, ABOUT_TO_LEAVE, STAYS };

// Classifies the program's threads other than `self`. Of several that leave at once, the one with the highest
// id waits for the others.
static enum rest rest_among(const char *entries, long bytes, pid_t self)
{
    enum rest rest = NOBODY;
    for (long at = 0; at < bytes && rest != STAYS;) {
        const struct entry *e = (const struct entry *)(const void *)(entries + at);
        pid_t tid = number(e->name);
        at += e->size;
        if (tid && tid != self && !is_ours(tid) && !has_ended(tid))
            rest = tid < self && seems_to_leave(tid) ? ABOUT_TO_LEAVE : STAYS;
    }
    return rest;
}

static enum rest rest_of(pid_t self)
{
    _Alignas(8) char entries[2048];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum rest rest = NOBODY, found;
    long n = -1;
    while (fd >= 0 && rest != STAYS && (n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        found = rest_among(entries, n, self);
        rest = found > rest ? found : rest;
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    return n < 0 ? STAYS : rest;  // if that cannot be known, nothing is done
}

// Most threads end while others allocate, which is cheap to see without the kernel.
static bool anybody_allocates(void)
{
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed))
        // Sequentially consistent: see seems_to_leave.
        if (atomic_load_explicit(&w->state, memory_order_seq_cst) == PRODUCER_ALIVE)
            return true;
    return false;
}

void last_thread_leaves(void)
{
    static atomic_flag once = ATOMIC_FLAG_INIT;
    pid_t tids[OWN_FDS_MOST], self = (pid_t)syscall(SYS_gettid);
    enum rest rest = ABOUT_TO_LEAVE;
    // Between the end of this thread's record and reading those of others; with seems_to_leave.
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < PATIENCE_MS && rest == ABOUT_TO_LEAVE; i++) {
        if (i)
            throttle_sleep(1000000);
        rest = anybody_allocates() || !own_fds_threads(tids) ? STAYS : rest_of(self);
    }
    if (rest == NOBODY && !atomic_flag_test_and_set(&once))
        exit(0);
}

bool last_thread_has_left(void)
{
    return !anybody_allocates() && rest_of(0) == NOBODY;
}
