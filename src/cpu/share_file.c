// SPDX-License-Identifier: MIT
#include "cpu/share_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[6] = "moat-1";

// A file beyond RLIMIT_FSIZE would end the process with a signal.
int share_file_resize(int fd, uint64_t size)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur < size)
        return -ENOMEM;
    return ftruncate(fd, (off_t)size) ? -ENOMEM : 0;
}

int share_file_new(uint64_t size)
{
    int fd = memfd_create("moat-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -ENOMEM;
    if (share_file_resize(fd, size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
        close(fd);
        return -ENOMEM;
    }
    return fd;
}

bool share_file_fit(int fd, uint64_t size)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) && st.st_size >= 0 &&
           (uint64_t)st.st_size == size;
}

int share_file_ticket(struct share_ticket *t, enum share_kind kind, int fd)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    memcpy(t->magic, magic, sizeof magic);
    t->kind = (uint16_t)kind;
    t->pid = (uint32_t)getpid();
    t->fd = fd;
    t->inode = st.st_ino;
    t->zero = 0;
    return 0;
}

bool share_file_read(struct share_ticket *t, enum share_kind kind, const void *handle)
{
    memcpy(t, handle, sizeof *t);
    return memcmp(t->magic, magic, sizeof magic) == 0 && t->kind == kind;
}

void share_file_write(const struct share_ticket *t, void *handle)
{
    memset(handle, 0, 64);
    memcpy(handle, t, sizeof *t);
}

static bool same_file(const struct share_ticket *t, int fd)
{
    struct stat st;
    return !fstat(fd, &st) && st.st_ino == t->inode && fcntl(fd, F_GET_SEALS) >= 0;
}

bool share_file_own(const struct share_ticket *t)
{
    return t->pid == (uint32_t)getpid() && same_file(t, t->fd);
}

int share_file_open(const struct share_ticket *t)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%d", t->pid, t->fd);
    // The descriptor may be a pipe or a terminal by now, or a device that notices when it is opened.
    struct stat st;
    if (stat(path, &st))
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_ino != t->inode)
        return -ENOENT;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (same_file(t, fd))
        return fd;
    close(fd);
    return -ENOENT;
}
