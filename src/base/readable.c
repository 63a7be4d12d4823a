// SPDX-License-Identifier: MIT
#include "base/readable.h"

#include <errno.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

// Reads one byte of each page, many pages per call. Returns `unknown` if the system denies the call.
static bool probe(const void *p, size_t n, bool unknown)
{
    enum { PAGE = 4096, BATCH = 64 };
    uintptr_t at = (uintptr_t)p, end;
    int saved = errno;
    bool right = true;
    if (!p || __builtin_add_overflow(at, n, &end))
        return false;
    while (right && at < end) {
        char bytes[BATCH];
        struct iovec remote[BATCH], local = {bytes, 0};
        for (; local.iov_len < BATCH && at < end; at = (at / PAGE + 1) * PAGE)
            remote[local.iov_len++] = (struct iovec){(void *)at, 1};
        ssize_t got = process_vm_readv(getpid(), &local, 1, remote, local.iov_len, 0);
        if (got < 0 && errno != EFAULT) {  // denied, as by a sandbox
            right = unknown;
            break;
        }
        right = got == (ssize_t)local.iov_len;
    }
    errno = saved;
    return right;
}

bool readable_bytes(const void *p, size_t n)
{
    return probe(p, n, true);
}

bool readable_surely(const void *p, size_t n)
{
    return probe(p, n, false);
}
