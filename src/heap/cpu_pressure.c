// SPDX-License-Identifier: MIT
#include "heap/cpu_pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/own_fds.h"

enum { WAITED_PERCENT = 5, TEXT = 2048, NAME = 512 };

// --- texts ---

static int64_t number_at(const char *text, const char *end)
{
    int64_t n = 0;
    const char *p = text;
    for (; p < end && *p >= '0' && *p <= '9' && n < INT64_MAX / 100; p++)
        n = n * 10 + *p - '0';
    return p == text ? -1 : n;
}

// "some avg10=0.12 avg60=0.03 avg300=0.00 total=4711", and a line "full" for the times when all wait.
int64_t cpu_pressure_waited(const char *text, size_t len)
{
    static const char some[] = "some ", total[] = " total=";
    if (len < sizeof some - 1 || memcmp(text, some, sizeof some - 1) != 0)
        return -1;
    const char *line_end = memchr(text, '\n', len);
    size_t line = line_end ? (size_t)(line_end - text) : len;
    const char *at = memmem(text, line, total, sizeof total - 1);
    return at ? number_at(at + sizeof total - 1, text + line) : -1;
}

// Three averages, then runnable threads / all threads, then a pid: "0.53 1.37 2.03 3/345 7230".
long cpu_pressure_wanted(const char *text, size_t len)
{
    const char *end = text + len, *at = text;
    for (int field = 0; field < 3; field++) {
        at = memchr(at, ' ', (size_t)(end - at));
        if (!at)
            return -1;
        at++;
    }
    const char *slash = memchr(at, '/', (size_t)(end - at));
    int64_t wanted = slash ? number_at(at, slash) : -1;
    return wanted > 0 ? (long)wanted - 1 : -1;
}

// The line of the only hierarchy that has pressure files: "0::/user.slice/session-1.scope".
int cpu_pressure_name(const char *text, size_t len, const char *mount, char *name, size_t size)
{
    static const char file[] = "/cpu.pressure";
    for (const char *line = text, *end = text + len; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t path = (size_t)((stop ? stop : end) - line), at = strlen(mount);
        if (path > 3 && memcmp(line, "0::", 3) == 0) {
            path -= 3;
            path -= path == 1;  // the root's name is a slash
            if (at + path + sizeof file > size)
                return -ENOENT;
            memcpy(name, mount, at);
            memcpy(name + at, line + 3, path);
            memcpy(name + at + path, file, sizeof file);
            return 0;
        }
        line = stop ? stop + 1 : end;
    }
    return -ENOENT;
}

bool cpu_pressure_is_long(int64_t waited_us, int64_t within_ns)
{
    return waited_us * 1000 * 100 > within_ns * WAITED_PERCENT;
}

// --- files ---

// Direct system calls: ThreadSanitizer takes equal descriptors of two tables for one file.
static int open_file(const char *name)
{
    return (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
}

static long read_file(int fd, char *text, size_t size)
{
    return syscall(SYS_pread64, fd, text, size, 0L);
}

static int open_pressure(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char text[TEXT], name[NAME];
    int groups = open_file("/proc/self/cgroup"), fd = -1;
    long len = groups < 0 ? -1 : read_file(groups, text, sizeof text);
    for (int i = 0; i < 2 && fd < 0 && len > 0; i++)
        if (cpu_pressure_name(text, (size_t)len, mounts[i], name, sizeof name) == 0)
            fd = open_file(name);
    if (groups >= 0)
        syscall(SYS_close, groups);
    return fd < 0 ? open_file("/proc/pressure/cpu") : fd;
}

// Returns whether the file is readable: where pressure is switched off, the files exist but cannot be read.
static bool says_pressure(int fd)
{
    char text[TEXT];
    long n = read_file(fd, text, sizeof text);
    return n > 0 && cpu_pressure_waited(text, (size_t)n) >= 0;
}

void cpu_pressure_open(struct cpu_pressure *c)
{
    cpu_set_t mine;
    *c = (struct cpu_pressure){.fd = -1};
    if (!own_fds_has())
        return;
    c->fd = open_pressure();
    c->pressure = c->fd >= 0 && says_pressure(c->fd);
    if (c->pressure)
        return;
    if (c->fd >= 0)
        syscall(SYS_close, c->fd);
    c->cores = sched_getaffinity(0, sizeof mine, &mine) ? 0 : CPU_COUNT(&mine);
    c->fd = c->cores == sysconf(_SC_NPROCESSORS_ONLN) ? open_file("/proc/loadavg") : -1;
}

static bool has_waited(struct cpu_pressure *c, int64_t now_ns, int64_t waited_us)
{
    bool first = !c->asked_ns;
    int64_t waited = waited_us - c->waited_us, within = now_ns - c->asked_ns;
    c->asked_ns = now_ns;
    c->waited_us = waited_us;
    return !first && cpu_pressure_is_long(waited, within);
}

bool cpu_pressure_is_high(struct cpu_pressure *c, int64_t now_ns)
{
    char text[256];
    long n = c->fd < 0 ? -1 : read_file(c->fd, text, sizeof text);
    if (n <= 0)
        return false;
    if (!c->pressure)
        return cpu_pressure_wanted(text, (size_t)n) >= c->cores;
    int64_t waited = cpu_pressure_waited(text, (size_t)n);
    return waited >= 0 && has_waited(c, now_ns, waited);
}
