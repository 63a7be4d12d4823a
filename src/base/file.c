// SPDX-License-Identifier: MIT
#include "base/file.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

int file_write_all(int fd, struct iovec *parts, int n)
{
    while (n) {
        ssize_t written = writev(fd, parts, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written ? -errno : -EIO;
        for (; n && (size_t)written >= parts->iov_len; parts++, n--)
            written -= (ssize_t)parts->iov_len;
        if (n) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
    return 0;
}

bool file_may_have(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}
