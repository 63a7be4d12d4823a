// SPDX-License-Identifier: MIT
#include "share/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/own_thread.h"
#include "core/slab_pool.h"

enum {
    PATIENCE = 2,  // seconds that either side waits for the other
    WAITING = 64,  // backlog of the listening socket
};

// The contents of our CUipcMemHandle.
struct ticket {
    char magic[16];
    uint32_t pid, unused;
    uint64_t number;  // of the offer
    uint8_t key[24];
};
_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "a ticket fits into a handle");
static const char magic[16] = "moat's own share";

struct answer {
    uint64_t offset, size, bytes;
    uint32_t found, fds;
    CUipcMemHandle handle;
    uint64_t parts[SHARE_MORE];
};

enum { MOST_FDS = 1 + SHARE_MORE };
union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

struct offer {
    struct offer *next;
    uint64_t buffer, number;
    struct share_memory memory;
};

static struct lock lock = LOCK_INIT(SHARE);  // of what follows
static struct slab_pool pool = SLAB_POOL(struct offer);
static struct offer *offers;
static uint64_t numbers;
static struct ticket own;  // pid == 0: not listening
static int listener = -1;
static _Atomic(bool) open_once;  // relaxed: a hint whether to take the lock

static socklen_t address_of(const struct ticket *t, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    // An abstract name: it starts with a zero, stands for no file, and is gone with the process.
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "moat-%u-%02x%02x%02x%02x", t->pid, t->key[0],
                     t->key[1], t->key[2], t->key[3]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void set_timeouts(int fd)
{
    const struct timeval t = {.tv_sec = PATIENCE};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

// Compares in time that does not depend on where the keys differ.
static bool same_key(const struct ticket *a, const struct ticket *b)
{
    unsigned different = 0;
    for (size_t i = 0; i < sizeof a->key; i++)
        different |= (unsigned)(a->key[i] ^ b->key[i]);
    return !different;
}

static struct offer *offer_of(uint64_t buffer)
{
    struct offer *o = offers;
    while (o && o->buffer != buffer)
        o = o->next;
    return o;
}

void share_close_fds(const struct share_memory *m)
{
    if (m->fd >= 0)
        close(m->fd);
    for (unsigned i = 0; i < m->more; i++)
        close(m->fds[i]);
}

// Sends one message with `fds` descriptors.
static bool send_with(int to, const void *bytes, size_t size, const int *fd, unsigned fds)
{
    union control control = {0};
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds) {
        m.msg_control = control.space;
        m.msg_controllen = CMSG_SPACE(fds * sizeof *fd);
        control.header = (struct cmsghdr){CMSG_LEN(fds * sizeof *fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fd, fds * sizeof *fd);
    }
    return sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool receive_with(int from, void *bytes, size_t size, int fd[MOST_FDS], unsigned *fds)
{
    union control control;
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
    *fds = 0;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        *fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof *fd);
        memcpy(fd, CMSG_DATA(c), *fds * sizeof *fd);
    }
    return n == (ssize_t)size;
}

// --- answering ---------------------------------------------------------------------------------------------

// Duplicates the descriptors, since the offer may be withdrawn while they are sent. Returns their number, or
// -1 if there is no room for all of them.
static int copy_fds(const struct share_memory *m, int fd[MOST_FDS])
{
    unsigned count = m->fd < 0 ? 0 : 1 + m->more;
    for (unsigned i = 0; i < count; i++) {
        fd[i] = fcntl(i ? m->fds[i - 1] : m->fd, F_DUPFD_CLOEXEC, 0);
        if (fd[i] >= 0)
            continue;
        while (i--)
            close(fd[i]);
        return -1;
    }
    return (int)count;
}

// Gets descriptors that the caller owns, and what they stand for. Returns their number, or -1. Requires the
// lock, so that the buffer exists.
static int take_fds(const struct offer *o, struct share_memory *m, int fd[MOST_FDS])
{
    if (!o->memory.on_request) {
        *m = o->memory;
        return copy_fds(m, fd);
    }
    if (!o->memory.on_request(o->buffer, o->memory.size, m))
        return -1;
    fd[0] = m->fd;
    memcpy(fd + 1, m->fds, m->more * sizeof *fd);
    return m->fd < 0 ? 0 : (int)(1 + m->more);
}

static void answer_one(int client)
{
    struct ticket asked;
    struct answer a = {0};
    struct share_memory m;
    int fd[MOST_FDS], fds = 0;
    set_timeouts(client);
    if (recv(client, &asked, sizeof asked, 0) != (ssize_t)sizeof asked)
        return;
    lock_take(&lock);
    const struct offer *o = same_key(&asked, &own) ? offers : NULL;
    while (o && o->number != asked.number)
        o = o->next;
    fds = o ? take_fds(o, &m, fd) : -1;
    lock_give(&lock);
    if (fds >= 0) {
        a = (struct answer){.offset = m.offset,
                            .size = m.size,
                            .bytes = m.bytes,
                            .found = true,
                            .fds = (uint32_t)fds,
                            .handle = m.handle};
        memcpy(a.parts, m.parts, sizeof a.parts);
    }
    send_with(client, &a, sizeof a, fd, fds < 0 ? 0 : (unsigned)fds);
    while (fds > 0)
        close(fd[--fds]);
}

static void *answer_all(void *unused)
{
    (void)unused;
    for (;;) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct ucred who;
        socklen_t size = sizeof who;
        if (client < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (client < 0)
            return NULL;
        if (!getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) && (who.uid == geteuid() || !who.uid))
            answer_one(client);
        close(client);
    }
}

// Requires the lock.
static int listen_for_requests(void)
{
    struct sockaddr_un a;
    int err = 0;
    if (own.pid)
        return 0;
    memcpy(own.magic, magic, sizeof magic);
    if (getrandom(own.key, sizeof own.key, 0) != (ssize_t)sizeof own.key)
        return -EAGAIN;
    own.pid = (uint32_t)getpid();
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t size = address_of(&own, &a);
    if (listener < 0 || bind(listener, (const struct sockaddr *)&a, size) || listen(listener, WAITING))
        err = -errno;
    else if (!own_thread(answer_all))
        err = -EAGAIN;
    if (err) {
        if (listener >= 0)
            close(listener);
        listener = -1;
        own.pid = 0;
        return err;
    }
    atomic_store_explicit(&open_once, true, memory_order_relaxed);
    return 0;
}

static void put_ticket(const struct offer *o, CUipcMemHandle *handle)
{
    struct ticket t = own;
    t.number = o->number;
    *handle = (CUipcMemHandle){{0}};
    memcpy(handle, &t, sizeof t);
}

bool share_offered(uint64_t buffer, CUipcMemHandle *handle)
{
    if (!atomic_load_explicit(&open_once, memory_order_relaxed))
        return false;
    lock_take(&lock);
    const struct offer *o = offer_of(buffer);
    if (o)
        put_ticket(o, handle);
    lock_give(&lock);
    return o;
}

int share_offer(uint64_t buffer, const struct share_memory *memory, CUipcMemHandle *handle)
{
    lock_take(&lock);
    int err = listen_for_requests();
    struct offer *o = err ? NULL : offer_of(buffer);
    bool there = o;
    if (!err && !there) {
        o = slab_pool_get(&pool);
        err = o ? 0 : -ENOMEM;
    }
    if (!err && !there) {
        *o = (struct offer){offers, buffer, numbers++, *memory};
        offers = o;
    }
    if (!err)
        put_ticket(o, handle);
    lock_give(&lock);
    if (err || there)
        share_close_fds(memory);
    return err;
}

void share_withdraw(uint64_t buffer)
{
    share_withdraw_within(buffer, 1);
}

void share_withdraw_within(uint64_t base, uint64_t bytes)
{
    struct offer *gone = NULL;
    if (!atomic_load_explicit(&open_once, memory_order_relaxed))
        return;
    lock_take(&lock);
    for (struct offer **link = &offers, *o; (o = *link);) {
        if (o->buffer - base >= bytes) {
            link = &o->next;
            continue;
        }
        *link = o->next;
        o->next = gone;
        gone = o;
    }
    lock_give(&lock);
    for (struct offer *next; gone; gone = next) {
        next = gone->next;
        share_close_fds(&gone->memory);
        slab_pool_put(&pool, gone);
    }
}

// The offers belong to the parent: the child has no thread that would answer.
void share_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
    for (struct offer *o = offers; o; o = o->next)
        share_close_fds(&o->memory);
    if (listener >= 0)
        close(listener);
    listener = -1;
    offers = NULL;
    own = (struct ticket){.pid = 0};
    atomic_store_explicit(&open_once, false, memory_order_relaxed);
}

// --- asking ------------------------------------------------------------------------------------------------

static struct ticket ticket_of(const CUipcMemHandle *handle)
{
    struct ticket t;
    memcpy(&t, handle, sizeof t);
    return t;
}

bool share_is_ours(const CUipcMemHandle *handle)
{
    struct ticket t = ticket_of(handle);
    return !memcmp(t.magic, magic, sizeof magic);
}

bool share_is_own(const CUipcMemHandle *handle)
{
    // Compares the key: in another container, another process may have the same pid.
    struct ticket t = ticket_of(handle);
    lock_take(&lock);
    bool is = own.pid && same_key(&t, &own);
    lock_give(&lock);
    return is && share_is_ours(handle);
}

int share_ask(const CUipcMemHandle *handle, struct share_memory *memory)
{
    struct ticket t = ticket_of(handle);
    struct sockaddr_un a;
    struct answer answer;
    socklen_t size = address_of(&t, &a);
    int fd[MOST_FDS], s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    unsigned fds = 0;
    if (s < 0)
        return -errno;
    set_timeouts(s);
    int err = connect(s, (const struct sockaddr *)&a, size) ? -errno : 0;
    if (!err && (send(s, &t, sizeof t, MSG_NOSIGNAL) != (ssize_t)sizeof t ||
                 !receive_with(s, &answer, sizeof answer, fd, &fds)))
        err = -EIO;
    close(s);
    if (!err && (!answer.found || answer.fds != fds))
        err = -ENOENT;
    if (err) {
        while (fds > 0)
            close(fd[--fds]);
        return err;
    }
    *memory = (struct share_memory){.offset = answer.offset,
                                    .size = answer.size,
                                    .bytes = answer.bytes,
                                    .fd = fds ? fd[0] : -1,
                                    .handle = answer.handle,
                                    .more = fds ? fds - 1 : 0};
    memcpy(memory->fds, fd + 1, memory->more * sizeof *fd);
    memcpy(memory->parts, answer.parts, sizeof memory->parts);
    return 0;
}
