// SPDX-License-Identifier: MIT
// A program may do anything to our descriptor: close it with all others, replace it by a file of its own,
// share it with a child by fork. We use it only in the process that opened it, and only while the number
// still names the socket that was opened.
//
// Answers come in the order of the lines. `unanswered` counts the lines whose answer has not been received;
// while it is not 0, the listener is late and is not waited for again: one delay per program, not one per
// report.
#include "report/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "report/json_out.h"
#include "report/log_name.h"
#include "report/text.h"

enum { LINE_SIZE = 1 << 20, SMALL_SIZE = 64 << 10, TIMEOUT_S = 10 };

void channel_init(struct channel *c, const char *log_file)
{
    *c = (struct channel){.fd = -1};
    const char *path = getenv(CHANNEL_VARIABLE);
    if (path && strlen(path) < sizeof c->path)
        memcpy(c->path, path, strlen(path) + 1);
    if (log_file && strlen(log_file) < sizeof c->log_file)
        memcpy(c->log_file, log_file, strlen(log_file) + 1);
}

// Returns whether the number still names our socket, opened here or in the process that this one was forked
// from.
static bool is_open(const struct channel *c)
{
    struct stat s;
    return c->fd >= 0 && !fstat(c->fd, &s) && s.st_dev == c->device && s.st_ino == c->inode;
}

static void close_connection(struct channel *c)
{
    if (is_open(c))
        close(c->fd);
    c->fd = -1;
    c->unanswered = 0;
}

// Returns a copy of a descriptor with a high number, -1 if there is none: programs expect low ones from 3 on;
// shells use 10 and 255; services often have a limit of 1024.
static int copy_up(int fd)
{
    static const int numbers[] = {900, 200};
    int high = -1;
    for (int i = 0; i < 2 && high < 0; i++)
        high = fcntl(fd, F_DUPFD_CLOEXEC, numbers[i]);
    return high;
}

static int move_up(int fd)
{
    int high = copy_up(fd);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

void channel_prepare(const struct channel *c)
{
    int saved = errno, fd = c->path[0] ? open("/", O_PATH | O_CLOEXEC) : -1;
    if (fd >= 0)
        close(move_up(fd));
    errno = saved;
}

void channel_abstract_name(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strnlen(path, sizeof address->sun_path - 1);
    memcpy(address->sun_path + 1, path, n);
}

static int connect_to(int fd, const struct sockaddr_un *address)
{
    while (connect(fd, (const struct sockaddr *)address, sizeof *address)) {
        if (errno == EISCONN)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

// Connects. Returns 0 or a negative code. Sets `failed` if it is certain that nobody will ever listen again.
static int open_connection(struct channel *c)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, c->path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    fd = move_up(fd);
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    int err = connect_to(fd, &address);
    if (err == -EACCES || err == -ENOENT) {
        channel_abstract_name(&address, c->path);
        err = connect_to(fd, &address);
    }
    struct stat s;
    if (!err && fstat(fd, &s))
        err = -errno;
    if (err) {
        c->failed = err == -ECONNREFUSED || err == -ENOENT;
        close(fd);
        return err;
    }
    c->fd = fd;
    c->owner = getpid();
    c->device = s.st_dev;
    c->inode = s.st_ino;
    c->unanswered = 0;
    return 0;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

// Returns whether to repeat an interrupted call. Signals interrupt even calls that would be restarted,
// because the socket has a time limit.
static bool should_retry(int64_t deadline)
{
    return errno == EINTR && now_ms() < deadline;
}

static int send_all(struct channel *c, const char *text, size_t len, int64_t deadline)
{
    int flags = MSG_NOSIGNAL | (c->unanswered ? MSG_DONTWAIT : 0);
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(c->fd, text + sent, len - sent, flags);
        if (n < 0 && !should_retry(deadline))
            return -errno;
        sent += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

// Returns the answer to the last line, or a negative code. A line that is not answered in time will be
// rendered when the listener gets to it, so that is no failure.
static int receive(struct channel *c, int64_t deadline)
{
    char answer = CHANNEL_GO_ON;
    int flags = c->unanswered ? MSG_DONTWAIT : 0;
    for (c->unanswered++; c->unanswered;) {
        ssize_t n = recv(c->fd, &answer, 1, flags);
        if (n == 0)
            return -EPIPE;
        if (n < 0 && (errno == EAGAIN || (errno == EINTR && !should_retry(deadline))))
            return CHANNEL_GO_ON;
        if (n < 0 && errno != EINTR)
            return -errno;
        c->unanswered -= n > 0;
    }
    return answer == CHANNEL_SUPPRESSED ? CHANNEL_SUPPRESSED : CHANNEL_GO_ON;
}

// Reads late answers that have arrived since.
static void catch_up(struct channel *c)
{
    char answer;
    while (c->unanswered && recv(c->fd, &answer, 1, MSG_DONTWAIT) == 1)
        c->unanswered--;
}

static int talk(struct channel *c, const char *text, size_t len)
{
    catch_up(c);
    int64_t deadline = now_ms() + TIMEOUT_S * 1000;
    int err = send_all(c, text, len, deadline);
    err = err ? err : receive(c, deadline);
    if (err < 0)
        close_connection(c);
    return err;
}

// Connects in a child, before it closes its parent's connection: otherwise the listener might see all
// connections closed.
static int connect_as_child(struct channel *c)
{
    int inherited = is_open(c) ? c->fd : -1;
    c->fd = -1;
    int err = open_connection(c);
    if (inherited >= 0)
        close(inherited);
    return err;
}

// Sends a line and receives the answer. After a broken connection it connects once more: another part of the
// program may have shut the old one down.
static int deliver(struct channel *c, const char *text, size_t len)
{
    if (!c->path[0] || c->failed)
        return -ENOTCONN;
    bool fresh = true;
    int err = 0;
    if (c->owner != getpid())
        err = connect_as_child(c);
    else if (!is_open(c))
        err = open_connection(c);
    else
        fresh = false;
    err = err ? err : talk(c, text, len);
    if (err < 0 && !fresh) {
        err = open_connection(c);
        err = err ? err : talk(c, text, len);
    }
    return err;
}

static int open_log(const struct channel *c)
{
    char name[sizeof c->log_file + 300];
    if (!c->log_file[0] || log_name_expand(c->log_file, getpid(), name, sizeof name))
        return -1;
    return open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
}

// Writes all lines in one call where possible, so that processes which share a file do not interleave.
static void write_text(const struct channel *c, const char *text, size_t len)
{
    int log = open_log(c);
    log = log < 0 && c->standard_error ? c->standard_error() : log;
    int fd = log < 0 ? 2 : log;
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        // Standard error may be non-blocking: another process that shares it can make it so.
        struct pollfd full = {fd, POLLOUT, 0};
        if (n < 0 && errno != EINTR && !(errno == EAGAIN && poll(&full, 1, TIMEOUT_S * 1000) > 0))
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (log >= 0)
        close(log);
}

// Returns room for a line. A process that gets no more memory has a smaller one, which was there from its
// start.
static char *line_room(struct channel *c, size_t *size)
{
    static char small[SMALL_SIZE];
    *size = LINE_SIZE;
    if (!c->buffer) {
        void *p =
            mmap(NULL, LINE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        c->buffer = p != MAP_FAILED ? p : NULL;
    }
    if (c->buffer)
        return c->buffer;
    *size = sizeof small;
    return small;
}

static enum channel_answer send_line(struct channel *c, const struct report_line *line)
{
    struct text_buffer b;
    size_t size;
    char *room = line_room(c, &size);
    text_buffer_init(&b, room, size);
    json_out_line(&b, line);
    int answer = b.len ? deliver(c, b.text, b.len) : -EMSGSIZE;
    if (answer >= 0)
        return (enum channel_answer)answer;
    text_buffer_init(&b, room, size);
    text_render(&b, line, NULL);
    write_text(c, b.text, b.len);
    return CHANNEL_NOBODY;
}

enum channel_answer channel_send(struct channel *c, const struct report_line *line)
{
    int saved = errno;
    // The calls below are cancellation points, and callers hold a lock.
    cancel_hold();
    enum channel_answer answer = send_line(c, line);
    cancel_release();
    errno = saved;
    return answer;
}
