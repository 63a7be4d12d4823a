// SPDX-License-Identifier: MIT
#include "fence/fence_client.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/guard.h"
#include "core/lock.h"
#include "fence/fence_memory.h"
#include "fence/fence_report.h"
#include "mps/client_file.h"
#include "track/guard_report.h"

static struct lock lock = LOCK_INIT(FENCE_CLIENT);
static int fd = -1;
static bool failed;
static uint64_t device, inode;  // of the file: the program may close fd and use its number again
static struct client_file last;

static uint64_t count_of(enum guard_count which)
{
    return atomic_load_explicit(&guard.counts[which], memory_order_relaxed);
}

static void fill(struct client_file *c)
{
    c->values[CLIENT_FENCED] = count_of(GUARD_FENCE_LAUNCHES);
    c->values[CLIENT_MASKED] = count_of(GUARD_FENCE_MASKED);
    c->values[CLIENT_PROVED] = count_of(GUARD_FENCE_PROVED);
    c->values[CLIENT_UNCOVERED] = count_of(GUARD_FENCE_UNCOVERED);
    c->values[CLIENT_REFUSED] = count_of(GUARD_FENCE_REFUSED);
    uint64_t faults = count_of(GUARD_FENCE_FAULTS), records = fence_report_records();
    c->values[CLIENT_CONTAINED] = faults > records ? faults : records;
    c->values[CLIENT_BUFFERS] = count_of(GUARD_FENCE_BUFFERS);
    c->values[CLIENT_RETURNED] = count_of(GUARD_FENCE_RETURNED);
    c->values[CLIENT_HELD] = fence_memory_bytes();
}

static bool is_still_open(void)
{
    struct stat s;
    return fd >= 0 && !fstat(fd, &s) && s.st_dev == device && s.st_ino == inode;
}

// Opens the process's file. Requires the lock.
static bool open_file(void)
{
    struct stat s;
    if (is_still_open())
        return true;
    fd = failed ? -1 : client_file_open(guard.options.share_dir);
    if (fd >= 0 && !fstat(fd, &s)) {
        device = s.st_dev;
        inode = s.st_ino;
        last = (struct client_file){.pid = getpid(), .start = client_file_started(getpid())};
        return true;
    }
    if (!failed)
        guard_report_note("fence: no file in %s/clients (%s): `moat share` does not know this process",
                          guard.options.share_dir, strerror(fd < 0 ? -fd : errno));
    failed = true;
    fd = -1;
    return false;
}

void fence_client_write(void)
{
    int saved = errno;
    if (!guard.options.share_dir || !lock_try(&lock))
        return;
    struct client_file now;
    bool first = fd < 0;
    if (open_file()) {
        now = last;
        fill(&now);
        if (first || memcmp(&now, &last, sizeof now)) {
            failed = client_file_write(fd, &now) != 0;
            last = now;
        }
    }
    lock_give(&lock);
    errno = saved;
}

void fence_client_start(void)
{
    fence_client_write();
}

// The child gets a file of its own when it first has something to say.
void fence_client_after_fork(void)
{
    lock_after_fork(&lock);
    if (is_still_open())
        close(fd);
    fd = -1;
}
