// SPDX-License-Identifier: MIT
// For tests of the command's parts: folders and files of their own, options, and what goes to a descriptor.
#ifndef MOAT_CLI_CLI_TESTING_H
#define MOAT_CLI_CLI_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/option.h"

// --- a folder of the test's own ---

static char cli_testing_folder[PATH_MAX];

static inline int cli_testing_make_folder(void **state)
{
    strcpy(cli_testing_folder, "/tmp/moat-cli-test-XXXXXX");
    return mkdtemp(cli_testing_folder) ? 0 : -1;
}

static inline int cli_testing_remove(const char *path, const struct stat *s, int type, struct FTW *where)
{
    return remove(path);
}

static inline int cli_testing_remove_folder(void **state)
{
    return nftw(cli_testing_folder, cli_testing_remove, 8, FTW_DEPTH | FTW_PHYS);
}

// Returns the path of a file in the folder; four of them live at a time.
static inline const char *cli_testing_path(const char *name)
{
    static char paths[4][2 * PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", cli_testing_folder, name);
    return path;
}

static inline const char *cli_testing_write(const char *name, const char *text, mode_t mode)
{
    const char *path = cli_testing_path(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

// Reads a whole file, from its beginning; two results live at a time.
static inline const char *cli_testing_read_fd(int fd)
{
    static char texts[2][1 << 20];
    static unsigned next;
    char *text = texts[next++ % 2];
    ssize_t n = pread(fd, text, sizeof texts[0] - 1, 0);
    assert_true(n >= 0);
    text[n] = 0;
    return text;
}

static inline const char *cli_testing_read(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    const char *text = cli_testing_read_fd(fd);
    close(fd);
    return text;
}

static inline unsigned cli_testing_count(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

// --- standard error ---

struct cli_testing_stderr {
    int saved, file;
};

static inline struct cli_testing_stderr cli_testing_take_stderr(void)
{
    struct cli_testing_stderr c = {dup(STDERR_FILENO), open("/tmp", O_RDWR | O_TMPFILE | O_APPEND, 0600)};
    fflush(stderr);
    assert_true(c.saved >= 0 && c.file >= 0);
    dup2(c.file, STDERR_FILENO);
    return c;
}

// Returns what was written since.
static inline const char *cli_testing_give_stderr(struct cli_testing_stderr *c)
{
    fflush(stderr);
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    const char *text = cli_testing_read_fd(c->file);
    close(c->file);
    return text;
}

// --- options, as a command line gives them ---

static struct option_set cli_testing_set;
static struct options cli_testing_options;

static inline void cli_testing_ignore(struct diag_sink *sink, const struct diag *d)
{
}

static inline const struct options *cli_testing_parse(char *first, char *second)
{
    static struct diag_sink sink = {.emit = cli_testing_ignore};
    char *words[] = {first, second};
    int left;
    cli_testing_options = (struct options){.set = &cli_testing_set};
    assert_int_equal(option_init(&cli_testing_set, &option_table, &cli_testing_options, &sink), 0);
    int given = !first ? 0 : second ? 2 : 1;
    assert_int_equal(option_parse_args(&cli_testing_set, given, words, false, &left), 0);
    return &cli_testing_options;
}

static inline void cli_testing_forget(void)
{
    option_free(&cli_testing_set);
}

#endif
