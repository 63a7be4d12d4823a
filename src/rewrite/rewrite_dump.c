// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/file.h"
#include "base/out.h"
#include "core/guard.h"
#include "pass/pass.h"
#include "track/guard_report.h"

enum {
    MOST_FILES = 1000000,  // most that a process tries to create
    MOST_NAME = 80,        // characters of a module's name in a file's name
};

bool rewrite_dump_on;

static char folder[PATH_MAX];  // an absolute path
// Numbers given out so far. Relaxed: each is independent.
static _Atomic unsigned files, modules;

static void fail(int err)
{
    static _Atomic(bool) noted;
    if (!atomic_exchange_explicit(&noted, true, memory_order_relaxed))
        guard_report_note("--dump-rewritten: %.100s: %s; rewritten modules may be missing there", folder,
                          err == -ENOTDIR || err == -ELOOP ? "it is a link, or no folder" : strerror(-err));
}

// --- the folder ------------------------------------------------------------------------------------------

// Makes the path absolute now, because the program may change its directory before its first module is
// loaded.
static int name_folder(const char *path)
{
    char here[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(here, sizeof here - 1))
        return -errno;
    int len = snprintf(folder, sizeof folder, "%s%s%s", here, here[0] ? "/" : "", path);
    if (len < 0 || (size_t)len >= sizeof folder)
        return -ENAMETOOLONG;
    // A path that ends in "/" or "/." would be opened through a symbolic link.
    while (len > 1 && (folder[len - 1] == '/' || (folder[len - 1] == '.' && folder[len - 2] == '/')))
        folder[--len] = 0;
    return 0;
}

// Returns a descriptor or a negative code. The descriptor is not kept open, because programs close
// descriptors that they do not know.
static int open_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void rewrite_dump_start(void)
{
    const char *path = guard.options.dump_rewritten;
    if (!path)
        return;
    int saved = errno, err = name_folder(path);
    if (!err && mkdir(folder, 0700) && errno != EEXIST)
        err = -errno;
    int fd = err ? err : open_folder(folder);
    if (!err && fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
        err = -errno;
    if (fd >= 0)
        close(fd);
    if (err || fd < 0)
        fail(err ? err : fd);
    rewrite_dump_on = err != -ENAMETOOLONG;
    errno = saved;
}

// --- a file ----------------------------------------------------------------------------------------------

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

void rewrite_dump_name(char name[REWRITE_DUMP_NAME], int pid, unsigned number, const char *module)
{
    const char *slash = strrchr(module, '/');
    const char *from = slash ? slash + 1 : module;
    size_t len = strnlen(from, MOST_NAME);
    if (len > 4 && !memcmp(from + len - 4, ".ptx", 4))
        len -= 4;
    int at = snprintf(name, REWRITE_DUMP_NAME, "%d-%03u-", pid, number);
    for (size_t i = 0; i < len; i++)
        name[at++] = is_plain(from[i]) ? from[i] : '_';
    snprintf(name + at, REWRITE_DUMP_NAME - (size_t)at, "%s.ptx", len ? "" : "module");
}

static int write_in(int dir, const char *name, struct str header, struct str text)
{
    if (!file_may_have(header.len + text.len))
        return -EFBIG;
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    struct iovec parts[] = {{(void *)header.ptr, header.len}, {(void *)text.ptr, text.len}};
    int err = file_write_all(fd, parts, 2);
    if (close(fd) && !err)
        err = -errno;
    // A partial file would be taken for the whole text.
    if (err)
        unlinkat(dir, name, 0);
    return err == -EEXIST ? -EIO : err;
}

int rewrite_dump_write(const char *path, const char *name, struct str header, struct str text)
{
    int dir = open_folder(path);
    if (dir < 0)
        return dir;
    int err = write_in(dir, name, header, text);
    close(dir);
    return err;
}

// --- a text ----------------------------------------------------------------------------------------------

static void put_line(struct out *o, const char *what, const char *value)
{
    out_fmt(o, "// %s: ", what);
    out_clean(o, str_from(value));
    out_char(o, '\n');
}

static void put_header(struct out *o, const struct rewrite_dump *d)
{
    char program[512] = "", passes[128];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    pass_key(d->passes, passes, sizeof passes);
    out_lit(o, "// The code that moat passed to the driver instead of the program's own.\n");
    put_line(o, "program", program);
    out_fmt(o, "// process: %d\n// module: %u, text %u of %u\n", getpid(), d->module, d->text, d->texts);
    put_line(o, "name", d->name);
    put_line(o, "from", d->from);
    put_line(o, "passes", passes);
    out_fmt(o, "// architecture: sm_%u\n//\n", d->arch);
}

// The name may be taken: by an earlier process with the same pid, or by one in another pid namespace.
static int write_new(const char *module, struct str header, struct str text)
{
    char name[REWRITE_DUMP_NAME];
    int err = -EEXIST;
    while (err == -EEXIST) {
        unsigned number = atomic_fetch_add_explicit(&files, 1, memory_order_relaxed) + 1;
        if (number > MOST_FILES)
            return -EMFILE;
        rewrite_dump_name(name, getpid(), number, module);
        err = rewrite_dump_write(folder, name, header, text);
    }
    return err;
}

unsigned rewrite_dump_module(void)
{
    return atomic_fetch_add_explicit(&modules, 1, memory_order_relaxed) + 1;
}

void rewrite_dump(const struct rewrite_dump *d, struct str text)
{
    struct out header;
    int saved = errno;
    // The calls below are cancellation points: a cancelled thread would leave files open.
    cancel_hold();
    int err = out_to_memory(&header);
    if (!err) {
        put_header(&header, d);
        err = header.error ? header.error : write_new(d->name, (struct str){header.buf, header.len}, text);
        out_close(&header);
    }
    if (err)
        fail(err);
    cancel_release();
    errno = saved;
}
