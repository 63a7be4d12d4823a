// SPDX-License-Identifier: MIT
#include "mps/client_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { DIGITS = 20, START_FIELD = 22 };

static const char first_line[] = "moat-client 1\n";

const struct client_value_row client_value_rows[CLIENT_VALUES] = {
#define COUNTER true
#define GAUGE false
#define CLIENT_VALUE(id, key, counter, help) {key, counter, help},
#include "mps/client_values.def"
#undef CLIENT_VALUE
};

// --- the text ----------------------------------------------------------------------------------------------

static size_t print_line(char *to, const char *key, uint64_t value)
{
    return (size_t)sprintf(to, "%s %0*llu\n", key, DIGITS, (unsigned long long)value);
}

size_t client_file_print(const struct client_file *c, char *text)
{
    size_t n = sizeof first_line - 1;
    memcpy(text, first_line, n);
    n += print_line(text + n, "pid", (uint64_t)c->pid);
    n += print_line(text + n, "start", c->start);
    for (int i = 0; i < CLIENT_VALUES; i++)
        n += print_line(text + n, client_value_rows[i].key, c->values[i]);
    return n;
}

// Takes "KEY DIGITS\n" from the front. Returns false if that is not there, or the number is too large.
static bool take_line(struct str *text, const char *key, uint64_t *value)
{
    size_t len = strlen(key);
    if (text->len < len + 1 + DIGITS + 1 || memcmp(text->ptr, key, len) || text->ptr[len] != ' ' ||
        text->ptr[len + 1 + DIGITS] != '\n')
        return false;
    *value = 0;
    for (const char *c = text->ptr + len + 1; c < text->ptr + len + 1 + DIGITS; c++)
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(*value, 10u, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*c - '0'), value))
            return false;
    *text = str_skip(*text, len + 1 + DIGITS + 1);
    return true;
}

int client_file_parse(struct str text, struct client_file *c)
{
    struct str first = {first_line, sizeof first_line - 1};
    uint64_t pid;
    if (!str_starts(text, first))
        return -EINVAL;
    text = str_skip(text, first.len);
    if (!take_line(&text, "pid", &pid) || !pid || pid > INT_MAX || !take_line(&text, "start", &c->start))
        return -EINVAL;
    c->pid = (int)pid;
    for (int i = 0; i < CLIENT_VALUES; i++)
        if (!take_line(&text, client_value_rows[i].key, &c->values[i]))
            return -EINVAL;
    return text.len ? -EINVAL : 0;
}

// --- processes ---------------------------------------------------------------------------------------------

static ssize_t read_all(int fd, char *to, size_t size)
{
    ssize_t n;
    do
        n = pread(fd, to, size, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

uint64_t client_file_started(int pid)
{
    char name[40], text[1024];
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read_all(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *c = strrchr(text, ')');  // the end of the program's name, which may have blanks
    for (int field = 2; c && field < START_FIELD; field++)
        c = (c = strchr(c, ' ')) ? c + 1 : NULL;
    unsigned long long start;
    return c && sscanf(c, "%20llu", &start) == 1 ? start : 0;
}

// --- files -------------------------------------------------------------------------------------------------

int client_file_open(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/clients/%d", folder, (int)getpid()) >= (int)sizeof path)
        return -ENAMETOOLONG;
    if (!file_may_have(CLIENT_FILE_MOST))
        return -EFBIG;
    unlink(path);  // of an earlier process with this number
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

int client_file_write(int fd, const struct client_file *c)
{
    char text[CLIENT_FILE_MOST];
    size_t n = client_file_print(c, text);
    ssize_t written;
    do
        written = pwrite(fd, text, n, 0);
    while (written < 0 && errno == EINTR);
    return written == (ssize_t)n ? 0 : written < 0 ? -errno : -EIO;
}

int client_file_read(int clients, const char *name, struct client_file *c)
{
    char text[CLIENT_FILE_MOST + 1];
    // A pipe in its place must not stop the reader.
    int fd = openat(clients, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat s;
    if (fd < 0)
        return -errno;
    ssize_t n = fstat(fd, &s) ? -errno : !S_ISREG(s.st_mode) ? -EINVAL : read_all(fd, text, sizeof text);
    close(fd);
    return n < 0 ? (int)n : client_file_parse((struct str){text, (size_t)n}, c);
}
