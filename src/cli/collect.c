// SPDX-License-Identifier: MIT
#include "cli/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "report/channel.h"

enum { LONGEST_LINE = 16 << 20, READ_SIZE = 64 << 10, FIRST_PEER = 3, DEEPEST = 64 };

// Makes a folder of our own in `parent`. Fails if the name is too long for a socket's address.
static int make_folder(struct collect *c, const char *parent)
{
    if (!parent || !*parent)
        return -ENOENT;
    int n = snprintf(c->path, sizeof c->path, "%s/moat-XXXXXX", parent);
    if (n < 0 || (size_t)n + sizeof "/s" > sizeof c->path)
        return -ENAMETOOLONG;
    return mkdtemp(c->path) ? 0 : -errno;  // with mode 0700
}

static int make_path(struct collect *c)
{
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    int err = 0;
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
        err = make_folder(c, parents[i]);
        if (!err) {
            strcat(c->path, "/s");
            return 0;
        }
    }
    c->path[0] = 0;
    return err;
}

static void remove_path(struct collect *c)
{
    if (!c->path[0])
        return;
    unlink(c->path);
    *strrchr(c->path, '/') = 0;
    rmdir(c->path);
    c->path[0] = 0;
}

static int start_listening(struct collect *c)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, c->path, sizeof address.sun_path);
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->listener < 0 || bind(c->listener, (struct sockaddr *)&address, sizeof address) ||
        listen(c->listener, SOMAXCONN))
        return -errno;
    // Only root's programs can change their user or root. Without this name, those report to standard error.
    if (geteuid() == 0) {
        channel_abstract_name(&address, c->path);
        c->abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (c->abstract >= 0 && (bind(c->abstract, (struct sockaddr *)&address, sizeof address) ||
                                 listen(c->abstract, SOMAXCONN))) {
            close(c->abstract);
            c->abstract = -1;
        }
    }
    return 0;
}

int collect_open(struct collect *c, struct reports *reports, char *why, size_t size)
{
    *c = (struct collect){.reports = reports, .listener = -1, .abstract = -1};
    int err = make_path(c);
    err = err ? err : start_listening(c);
    if (!err)
        return 0;
    snprintf(why, size, "no process can report to the command: %s", strerror(-err));
    collect_close(c);
    return err;
}

static void peer_free(struct collect_peer *p)
{
    close(p->fd);
    vec_free(&p->input);
}

void collect_close(struct collect *c)
{
    for (size_t i = 0; i < c->peers.len; i++)
        peer_free(&c->peers.items[i]);
    vec_free(&c->peers);
    vec_free(&c->polled);
    if (c->listener >= 0)
        close(c->listener);
    if (c->abstract >= 0)
        close(c->abstract);
    c->listener = c->abstract = -1;
    remove_path(c);
}

bool collect_talking(const struct collect *c)
{
    for (size_t i = 0; i < c->peers.len; i++)
        if (!c->peers.items[i].ended)
            return true;
    return false;
}

static int process_of(int fd)
{
    struct ucred who = {0};
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) ? 0 : who.pid;
}

static int parent_of(int process)
{
    char name[32], text[512];
    snprintf(name, sizeof name, "/proc/%d/stat", process);
    FILE *f = fopen(name, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')');  // of the program's name, which may have blanks
    int parent = 0;
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

// Returns whether a process was started by ours or by one of its descendants. Anybody can find an abstract
// name, so only these may report there.
static bool is_descendant(int process)
{
    for (int i = 0; i < DEEPEST && process > 1; i++, process = parent_of(process))
        if (process == getpid())
            return true;
    return false;
}

static void accept_peers(struct collect *c, int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        if ((listener == c->abstract && !is_descendant(process_of(fd))) ||
            vec_push(&c->peers, (struct collect_peer){.fd = fd, .process = process_of(fd)}))
            close(fd);
    c->full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

// --- lines ---

// Answers a line. There is always room for the byte: the process waits for one per line.
static void answer(const struct collect_peer *p, int taken)
{
    char byte = taken == REPORTS_SUPPRESSED ? CHANNEL_SUPPRESSED : CHANNEL_GO_ON;
    while (send(p->fd, &byte, 1, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

// Returns whether no other library of its process is connected. One that has ended stays connected until the
// process ends or becomes another program.
static bool is_alone(const struct collect *c, const struct collect_peer *p)
{
    for (size_t i = 0; i < c->peers.len; i++)
        if (&c->peers.items[i] != p && c->peers.items[i].process == p->process)
            return false;
    return true;
}

static void take_line(struct collect *c, struct collect_peer *p, struct str line)
{
    char why[200] = "", text[300];
    int taken = reports_take(c->reports, line, is_alone(c, p), why, sizeof why);
    if (taken < 0) {
        snprintf(text, sizeof text, "a report of this process cannot be read: %s",
                 taken == -EINVAL ? why : strerror(-taken));
        reports_note(c->reports, p->process, text);
    }
    p->ended = taken >= 0 && c->reports->last_event == REPORT_END;
    answer(p, taken);
}

static void take_lines(struct collect *c, struct collect_peer *p)
{
    size_t start = 0;
    for (const char *nl; (nl = memchr(p->input.items + start, '\n', p->input.len - start));) {
        size_t end = (size_t)(nl - p->input.items);
        take_line(c, p, (struct str){p->input.items + start, end - start});
        start = end + 1;
    }
    p->input.len -= start;
    memmove(p->input.items, p->input.items + start, p->input.len);
}

// Reads from a process. Returns false when the connection is over.
static bool read_peer(struct collect *c, struct collect_peer *p)
{
    if (p->input.len > LONGEST_LINE || vec_reserve(&p->input, READ_SIZE)) {
        reports_note(c->reports, p->process, "a report of this process is too long");
        return false;
    }
    ssize_t n = read(p->fd, p->input.items + p->input.len, READ_SIZE);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    p->input.len += (size_t)n;
    take_lines(c, p);
    return true;
}

// --- waiting ---

static int fill_polled(struct collect *c, int other)
{
    c->polled.len = 0;
    if (vec_reserve(&c->polled, c->peers.len + FIRST_PEER))
        return -ENOMEM;
    struct pollfd *p = c->polled.items;
    p[c->polled.len++] = (struct pollfd){other, POLLIN, 0};
    p[c->polled.len++] = (struct pollfd){c->full ? -1 : c->listener, POLLIN, 0};
    p[c->polled.len++] = (struct pollfd){c->full ? -1 : c->abstract, POLLIN, 0};
    for (size_t i = 0; i < c->peers.len; i++)
        p[c->polled.len++] = (struct pollfd){c->peers.items[i].fd, POLLIN, 0};
    return 0;
}

// Reads from all processes that sent something. Runs from the last to the first, so that removing one does
// not move those that are still to be read.
static bool read_peers(struct collect *c, size_t count)
{
    bool heard = false;
    for (size_t i = count; i-- > 0;) {
        if (!c->polled.items[i + FIRST_PEER].revents)
            continue;
        heard = true;
        struct collect_peer *p = &c->peers.items[i];
        if (!read_peer(c, p)) {
            peer_free(p);
            *p = c->peers.items[--c->peers.len];
            c->full = false;
        }
    }
    return heard;
}

int collect_wait(struct collect *c, int other, int timeout)
{
    // If out of memory for the list, only `other` is waited for.
    struct pollfd alone = {other, POLLIN, 0};
    if (fill_polled(c, other))
        return poll(&alone, 1, timeout) > 0 ? COLLECT_OTHER : 0;
    if (poll(c->polled.items, c->polled.len, timeout) <= 0)
        return 0;
    int happened = c->polled.items[0].revents ? COLLECT_OTHER : 0;
    if (read_peers(c, c->polled.len - FIRST_PEER))
        happened |= COLLECT_HEARD;
    if (c->polled.items[1].revents || c->polled.items[2].revents) {
        c->full = false;
        accept_peers(c, c->listener);
        if (!c->full && c->abstract >= 0)
            accept_peers(c, c->abstract);
        happened |= COLLECT_HEARD;
    }
    return happened;
}
