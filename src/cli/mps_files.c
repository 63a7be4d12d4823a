// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/mps_clients.h"

#define ENDED "ended"

// Numbers of a process that has ended come from its file, so that a sum stops where it would come around.
static void add_ended(struct client_file *to, const struct client_file *c)
{
    for (int i = 0; i < CLIENT_VALUES; i++)
        if (client_value_rows[i].counter &&
            __builtin_add_overflow(to->values[i], c->values[i], &to->values[i]))
            to->values[i] = UINT64_MAX;
}

// Returns whether the name of a file is the number of a process.
static bool names_process(const char *name, int *pid)
{
    char *end;
    long n = strtol(name, &end, 10);
    *pid = (int)n;
    return name[0] >= '1' && name[0] <= '9' && !*end && n < INT32_MAX;
}

// Takes a file. Returns whether the sums have changed, so that they must be written before the file goes.
static bool take(struct mps_files *f, int clients, const char *name, int pid)
{
    struct client_file c;
    int err = client_file_read(clients, name, &c);
    if (err || c.pid != pid) {
        // A process that has just made its file has not written it yet.
        f->bad += err != -ENOENT && !client_file_started(pid);
        return false;
    }
    if (client_file_started(pid) == c.start) {
        if (vec_push(&f->live, c))
            f->bad++;
        return false;
    }
    add_ended(&f->ended, &c);
    return true;
}

// Writes the sums beside the old ones and moves them there, so that there is always one of both.
static int write_ended(const struct mps_files *f, int clients)
{
    int fd = openat(clients, ENDED ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int err = fd < 0 ? -errno : client_file_write(fd, &f->ended);
    if (fd >= 0)
        close(fd);
    return err ? err : renameat(clients, ENDED ".new", clients, ENDED) ? -errno : 0;
}

static int read_all(struct mps_files *f, int clients, DIR *dir)
{
    int err = client_file_read(clients, ENDED, &f->ended);
    if (err)
        f->ended = (struct client_file){.pid = 1};
    f->bad += err && err != -ENOENT;
    const struct dirent *e;
    for (int i = 0; i < MPS_FILES_MOST && (e = readdir(dir)); i++) {
        int pid;
        if (!names_process(e->d_name, &pid) || !take(f, clients, e->d_name, pid))
            continue;
        err = write_ended(f, clients);
        if (err)
            return err;
        unlinkat(clients, e->d_name, 0);
    }
    return 0;
}

int mps_files_read(const struct mps_folder *folder, struct mps_files *f)
{
    *f = (struct mps_files){.bad = 0};
    int clients = open(folder->clients, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = clients < 0 ? NULL : fdopendir(clients);
    // Two readers at once would count what has ended twice.
    int err = !dir || flock(clients, LOCK_EX) ? -errno : read_all(f, clients, dir);
    if (dir)
        closedir(dir);
    else if (clients >= 0)
        close(clients);
    if (!err)
        return CLI_OK;
    mps_files_free(f);
    return cli_error("cannot read the share's folder %s: %s", folder->clients, strerror(-err));
}

const struct client_file *mps_files_find(const struct mps_files *f, int pid)
{
    for (size_t i = 0; i < f->live.len; i++)
        if (f->live.items[i].pid == pid)
            return &f->live.items[i];
    return NULL;
}

void mps_files_free(struct mps_files *f)
{
    vec_free(&f->live);
}
