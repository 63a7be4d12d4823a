// SPDX-License-Identifier: MIT
// The folder of a cache. It is opened anew for every call, and checked before it is trusted.
#include "image/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/vec.h"

enum {
    MEASURE_AFTER = 64,   // entries of ours until the folder is measured again: others write too
    STALE_SECONDS = 3600  // age from which an unfinished file's process is taken to have ended
};
static const char unfinished[] = ".new-", lock[] = ".lock-";

_Static_assert(sizeof((struct cache_size){0}.folder) == PATH_MAX, "a path fits");

struct cache {
    uint64_t size;
    // Counters that threads add to. They are independent of each other, so the order is relaxed everywhere.
    _Atomic uint64_t taken;       // bytes in the folder as far as we know; UINT64_MAX: never measured
    _Atomic uint64_t unmeasured;  // entries that we wrote since the last measurement
    _Atomic uint64_t names;       // number of names for unfinished files so far
    _Atomic uint64_t hits, misses, broken, stored, evicted;
    char folder[PATH_MAX];
};

static void count(_Atomic uint64_t *n, uint64_t more)
{
    atomic_fetch_add_explicit(n, more, memory_order_relaxed);
}

static uint64_t value(const _Atomic uint64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

// --- the folder --------------------------------------------------------------------------------------------

// Finds the default folder. A program with more rights than its user must not follow that user's environment.
static int default_folder(char *path, size_t size)
{
    const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int len;
    if (xdg && xdg[0] == '/')
        len = snprintf(path, size, "%s/moat", xdg);
    else if (home && home[0] == '/')
        len = snprintf(path, size, "%s/.cache/moat", home);
    else
        return -EDESTADDRREQ;
    return (size_t)len < size ? 0 : -ENAMETOOLONG;
}

static int make_folder(char *path)
{
    if (!mkdir(path, 0700) || errno == EEXIST)
        return 0;
    char *slash = strrchr(path, '/');
    if (errno != ENOENT || slash == path)
        return -errno;
    *slash = 0;
    int err = mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
    *slash = '/';
    if (err)
        return err;
    return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

// Opens the folder, which must be a directory and ours alone. Returns a descriptor or a negative code.
static int open_folder(const struct cache *c)
{
    struct stat st;
    int fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
    int err = 0;
    if (fstat(fd, &st))
        err = -errno;
    else if (st.st_uid != geteuid() || st.st_mode & 077)
        err = -EPERM;
    if (!err)
        return fd;
    close(fd);
    return err;
}

static int name_folder(struct cache *c, const char *folder)
{
    if (!folder)
        return default_folder(c->folder, sizeof c->folder);
    if (folder[0] != '/' || strlen(folder) >= sizeof c->folder)
        return -EINVAL;
    strcpy(c->folder, folder);
    return 0;
}

int cache_open(const char *folder, uint64_t size, struct cache **out)
{
    struct cache *c = *out = mem_zalloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->size = size ? size : CACHE_SIZE;
    atomic_init(&c->taken, UINT64_MAX);
    int err = name_folder(c, folder);
    if (!err)
        err = make_folder(c->folder);
    int fd = err ? err : open_folder(c);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    mem_free(c);
    *out = NULL;
    return fd;
}

void cache_close(struct cache *c)
{
    mem_free(c);
}

const char *cache_folder(const struct cache *c)
{
    return c->folder;
}

int cache_writable(const struct cache *c)
{
    return access(c->folder, W_OK | X_OK) ? -errno : 0;
}

const char *cache_why(int err)
{
    switch (err) {
    case -EPERM: return "the folder is not the user's alone";
    case -EINVAL: return "its name must be a full path";
    case -EDESTADDRREQ: return "neither XDG_CACHE_HOME nor HOME says where";
    case -ENOENT: return "no folder can be made there";
    default: return strerror(-err);
    }
}

struct cache_counts cache_counts(const struct cache *c)
{
    return (struct cache_counts){.hits = value(&c->hits),
                                 .misses = value(&c->misses),
                                 .broken = value(&c->broken),
                                 .stored = value(&c->stored),
                                 .evicted = value(&c->evicted)};
}

// --- reading -----------------------------------------------------------------------------------------------

static int read_all(int fd, char *to, size_t len)
{
    while (len) {
        ssize_t n = read(fd, to, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -EBADMSG;
        to += n;
        len -= (size_t)n;
    }
    return 0;
}

// Reads a file instead of mapping it: if somebody truncated a mapped file, an access would raise SIGBUS.
static int read_file(int fd, uint64_t most, struct cache_entry *e)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size <= 0 || (uint64_t)st.st_size > most)
        return -EBADMSG;
    size_t len = (size_t)st.st_size;
    void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -ENOMEM;
    *e = (struct cache_entry){.map = map, .map_len = len};
    return read_all(fd, map, len);
}

static int read_entry(int fd, uint64_t most, const struct cache_header *wanted, struct cache_entry *e)
{
    int err = read_file(fd, most, e);
    if (!err && !cache_format_read((struct str){e->map, e->map_len}, wanted, &e->image, &e->about))
        err = -EBADMSG;
    if (err)
        cache_entry_free(e);
    return err;
}

static int get(struct cache *c, int folder, const struct cache_header *wanted, struct cache_entry *out)
{
    char name[CACHE_NAME + 1];
    cache_format_name(wanted, name);
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    int err = fd < 0 ? -errno : read_entry(fd, c->size + sizeof *wanted, wanted, out);
    if (err == -EBADMSG || err == -ELOOP) {
        unlinkat(folder, name, 0);
        count(&c->broken, 1);
        err = -ENOENT;
    }
    if (!err)
        futimens(fd, NULL);  // last use, for evict
    if (fd >= 0)
        close(fd);
    count(err ? &c->misses : &c->hits, 1);
    return err;
}

int cache_get(struct cache *c, const struct cache_key *key, struct cache_entry *out)
{
    struct cache_header wanted;
    *out = (struct cache_entry){0};
    int err = cache_format_header(key, STR(""), STR(""), &wanted);
    if (err)
        return err;
    int folder = open_folder(c);
    if (folder < 0)
        return folder;
    err = get(c, folder, &wanted, out);
    close(folder);
    return err;
}

void cache_entry_free(struct cache_entry *e)
{
    if (e->map)
        munmap(e->map, e->map_len);
    *e = (struct cache_entry){0};
}

// --- room --------------------------------------------------------------------------------------------------

struct found {
    struct timespec used;
    uint64_t size;
    char name[CACHE_NAME + 1];
};

struct listing {
    VEC(struct found) files;
    uint64_t taken;
};

static bool is_entry_name(const char *name)
{
    return strlen(name) == CACHE_NAME && !strcmp(name + 32, ".mod") && strspn(name, "0123456789abcdef") == 32;
}

static void drop_stale(int folder, const char *name, const struct stat *st)
{
    struct timespec now;
    if (!clock_gettime(CLOCK_REALTIME, &now) && now.tv_sec - st->st_mtim.tv_sec > STALE_SECONDS)
        unlinkat(folder, name, 0);
}

// Adds a file to the list. Files that are not ours by name are kept and not counted.
static int list_file(int folder, const char *name, struct listing *l)
{
    struct stat st;
    bool entry = is_entry_name(name);
    bool new = !strncmp(name, unfinished, sizeof unfinished - 1) || !strncmp(name, lock, sizeof lock - 1);
    if ((!entry && !new) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
        return 0;
    if (new) {
        drop_stale(folder, name, &st);
        return 0;
    }
    struct found f = {.used = st.st_mtim, .size = (uint64_t)st.st_size};
    strcpy(f.name, name);
    l->taken += f.size;
    return vec_push(&l->files, f);
}

// The format of getdents64. opendir would take memory from the program's malloc.
struct kernel_dirent {
    uint64_t inode;
    int64_t offset;
    uint16_t len;
    uint8_t type;
    char name[];
};

static int list_folder(int folder, struct listing *l)
{
    char buffer[8192] __attribute__((aligned(8)));
    if (lseek(folder, 0, SEEK_SET))
        return -errno;
    for (;;) {
        long n = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
        if (n <= 0)
            return n ? -errno : 0;
        for (long at = 0; at < n;) {
            const struct kernel_dirent *d = (const struct kernel_dirent *)(buffer + at);
            int err = list_file(folder, d->name, l);
            if (err)
                return err;
            at += d->len;
        }
    }
}

int cache_measure(const char *folder, struct cache_size *out)
{
    *out = (struct cache_size){.there = false};
    struct cache *c = mem_zalloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    struct listing l = {.taken = 0};
    int err = name_folder(c, folder), fd = err ? err : open_folder(c);
    if (!err)
        memcpy(out->folder, c->folder, sizeof out->folder);
    if (fd >= 0) {
        out->there = true;
        err = list_folder(fd, &l);
        close(fd);
    } else {
        err = fd == -ENOENT && !err ? 0 : fd;
    }
    out->entries = l.files.len;
    out->bytes = l.taken;
    vec_free(&l.files);
    mem_free(c);
    return err;
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct found *)a)->used, *y = &((const struct found *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

// Removes the least recently used entries until a tenth of the size is free, so that not every new entry has
// to measure. A process that is reading a removed entry can still read it to its end.
static void evict(struct cache *c, int folder)
{
    struct listing l = {.taken = 0};
    int err = list_folder(folder, &l);
    if (!err && l.taken > c->size) {
        uint64_t keep = c->size - c->size / 10;
        qsort(l.files.items, l.files.len, sizeof *l.files.items, by_use);
        for (size_t i = 0; i + 1 < l.files.len && l.taken > keep; i++) {
            if (unlinkat(folder, l.files.items[i].name, 0) && errno != ENOENT)
                continue;
            l.taken -= l.files.items[i].size;
            count(&c->evicted, 1);
        }
    }
    if (!err) {
        atomic_store_explicit(&c->taken, l.taken, memory_order_relaxed);
        atomic_store_explicit(&c->unmeasured, 0, memory_order_relaxed);
    }
    vec_free(&l.files);
}

static void make_room(struct cache *c, int folder, uint64_t added)
{
    uint64_t taken = value(&c->taken);
    if (taken != UINT64_MAX)
        count(&c->taken, added);
    count(&c->unmeasured, 1);
    if (taken == UINT64_MAX || taken + added > c->size || value(&c->unmeasured) >= MEASURE_AFTER)
        evict(c, folder);
}

// --- writing -----------------------------------------------------------------------------------------------

// Writes an entry's file. It is not synced to the disk: a file that a power failure leaves incomplete has
// wrong sums.
static int write_entry(int folder, const char *as, const struct cache_header *h, struct str image,
                       struct str about)
{
    int fd = openat(folder, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    struct iovec parts[] = {
        {(void *)h, sizeof *h}, {(void *)image.ptr, image.len}, {(void *)about.ptr, about.len}};
    int err = file_write_all(fd, parts, 3);
    if (close(fd) && !err)
        err = -errno;
    return err;
}

static int put(struct cache *c, int folder, const struct cache_header *h, struct str image, struct str about)
{
    char name[CACHE_NAME + 1], new[64];
    struct timespec now = {0};
    cache_format_name(h, name);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(new, sizeof new, "%s%lx-%lx-%llx", unfinished, (unsigned long)getpid(),
             (unsigned long)now.tv_sec * 1000000000ul + (unsigned long)now.tv_nsec,
             (unsigned long long)atomic_fetch_add_explicit(&c->names, 1, memory_order_relaxed));
    int err = write_entry(folder, new, h, image, about);
    if (!err && renameat(folder, new, folder, name))
        err = -errno;
    if (err) {
        if (err != -EEXIST)
            unlinkat(folder, new, 0);
        return err;
    }
    count(&c->stored, 1);
    return 0;
}

int cache_put(struct cache *c, const struct cache_key *key, struct str image, struct str about)
{
    struct cache_header h;
    int err = cache_format_header(key, image, about, &h);
    uint64_t size = sizeof h + image.len + about.len;
    if (err)
        return err;
    if (size > c->size || !file_may_have(size))
        return -EFBIG;
    int folder = open_folder(c);
    if (folder < 0)
        return folder;
    err = put(c, folder, &h, image, about);
    if (!err)
        make_room(c, folder, size);
    close(folder);
    return err;
}

// --- claims -----------------------------------------------------------------------------------------------

enum { POLL_NS = 10000000 };

// Whoever has a claim removes its file at the end, so a lock may be that of a file without a name.
static bool is_file_at(int folder, const struct cache_claim *claim)
{
    struct stat st;
    return !fstatat(folder, claim->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == claim->device &&
           st.st_ino == claim->inode;
}

// Returns 0 with the lock; -EAGAIN if somebody else has it, or the system's negative code, and no descriptor.
static int try_lock(int folder, struct cache_claim *claim)
{
    struct stat st;
    int fd = openat(folder, claim->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return -errno;
    int err = flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) ? -errno : 0;
    if (!err) {
        claim->fd = fd;
        claim->device = st.st_dev;
        claim->inode = st.st_ino;
        if (is_file_at(folder, claim))
            return 0;
        err = -EAGAIN;
    }
    close(fd);
    claim->fd = -1;
    return err;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void cache_claim(struct cache *c, const struct cache_key *key, unsigned most, struct cache_claim *claim)
{
    struct cache_header h;
    char name[CACHE_NAME + 1];
    *claim = (struct cache_claim){.fd = -1};
    int folder = cache_format_header(key, STR(""), STR(""), &h) ? -1 : open_folder(c);
    if (folder < 0)
        return;
    cache_format_name(&h, name);
    snprintf(claim->name, sizeof claim->name, "%s%.32s", lock, name);
    uint64_t until = now_ns() + (uint64_t)most * 1000000;
    while (try_lock(folder, claim) == -EAGAIN && now_ns() < until)
        nanosleep(&(struct timespec){0, POLL_NS}, NULL);
    close(folder);
}

void cache_unclaim(struct cache *c, struct cache_claim *claim)
{
    struct stat st;
    int folder = claim->fd < 0 ? -1 : open_folder(c);
    if (folder >= 0 && is_file_at(folder, claim))
        unlinkat(folder, claim->name, 0);
    if (folder >= 0)
        close(folder);
    // A process that was forked meanwhile has the lock too, unless it is given up.
    if (claim->fd >= 0 && !fstat(claim->fd, &st) && st.st_dev == claim->device && st.st_ino == claim->inode &&
        !flock(claim->fd, LOCK_UN))
        close(claim->fd);
    claim->fd = -1;
}
