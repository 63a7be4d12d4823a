// SPDX-License-Identifier: MIT
#include "heap/safe_read.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// A direct system call: sanitizers intercept the libc function and report races where the kernel's copy is
// meant to race. By the calling thread's id: a process whose first thread has ended cannot be copied from by
// its own id.
static long copy(const struct iovec *from, size_t n, void *to, size_t bytes)
{
    struct iovec target = {to, bytes};
    return syscall(SYS_process_vm_writev, syscall(SYS_gettid), from, n, &target, 1ul, 0ul);
}

bool safe_read_one(const void *from, size_t size, void *to)
{
    struct iovec piece = {(void *)from, size};
    return copy(&piece, 1, to, size) == (long)size;
}

bool safe_read_works(void)
{
    long from = 42, to = 0;
    return safe_read_one(&from, sizeof from, &to) && to == 42;
}

// --- pieces that lie near each other ---

enum { NEAR = 512 };  // bytes between two pieces that are faster copied than skipped

// Extends the last run by the piece, or begins another; returns false if there is no room for it.
static bool add_piece(struct iovec *runs, size_t *n, const char *from, size_t least, size_t *left)
{
    struct iovec *run = *n ? &runs[*n - 1] : NULL;
    size_t reach = run ? (size_t)(from - (const char *)run->iov_base) : SIZE_MAX, more = least;
    bool joins = run && reach <= run->iov_len + NEAR;  // a piece before the run does not join
    if (joins)
        more = reach + least > run->iov_len ? reach + least - run->iov_len : 0;
    if (more > *left)
        return false;
    *left -= more;
    if (joins)
        run->iov_len += more;
    else
        runs[(*n)++] = (struct iovec){(void *)from, least};
    return true;
}

// Sets the results of the pieces of one run, of which `bytes` bytes were read; pieces behind these get none.
// Returns the next piece.
static struct safe_read_piece *place(struct safe_read_piece *p, const struct safe_read_piece *end,
                                     const struct iovec *run, const char *at, size_t bytes)
{
    for (; p < end; p++) {
        size_t reach = (size_t)(p->from - (const char *)run->iov_base);
        if (reach >= run->iov_len)
            break;
        p->at = at + reach;
        p->bytes = bytes > reach ? bytes - reach : 0;
    }
    return p;
}

size_t safe_read_near(struct safe_read_piece *pieces, size_t n, size_t least, char *to, size_t room)
{
    struct iovec runs[SAFE_READ_MOST];
    size_t count = 0, taken = 0, left = room;
    while (taken < n && taken < SAFE_READ_MOST && add_piece(runs, &count, pieces[taken].from, least, &left))
        taken++;
    struct safe_read_piece *p = pieces, *end = pieces + taken;
    for (size_t i = 0; i < count;) {
        long copied = copy(runs + i, count - i, to, (size_t)(room - left));
        size_t bytes = copied > 0 ? (size_t)copied : 0;
        // Complete runs, and the one at which the kernel stopped.
        for (bool whole = true; i < count && whole; i++) {
            whole = bytes >= runs[i].iov_len;
            p = place(p, end, &runs[i], to, whole ? runs[i].iov_len : bytes);
            bytes -= whole ? runs[i].iov_len : 0;
            to += runs[i].iov_len;
            left += runs[i].iov_len;
        }
    }
    return taken;
}

void safe_read_pieces(const char *const *from, size_t n, size_t size, char *to, bool *read)
{
    struct iovec pieces[SAFE_READ_MOST];
    for (size_t i = 0; i < n; i++)
        pieces[i] = (struct iovec){(void *)from[i], size};
    for (size_t done = 0; done < n;) {
        long bytes = copy(pieces + done, n - done, to + done * size, (n - done) * size);
        size_t whole = bytes > 0 ? (size_t)bytes / size : 0;
        for (size_t i = 0; i < whole; i++)
            read[done + i] = true;
        done += whole;
        if (done < n)
            read[done++] = false;  // the piece at which the kernel stopped
    }
}
