// SPDX-License-Identifier: MIT
#include "cli/mps_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static int choose(struct mps_folder *f, const struct options *options)
{
    char path[PATH_MAX];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = options->share_dir    ? snprintf(path, sizeof path, "%s", options->share_dir)
            : runtime && *runtime ? snprintf(path, sizeof path, "%s/moat-share", runtime)
                                  : snprintf(path, sizeof path, "/tmp/moat-share-%u", (unsigned)geteuid());
    if (path[0] != '/')
        return cli_error("--share-dir=%.200s is no absolute path", path);
    if (n > MPS_FOLDER_MOST)
        return cli_error("the share's folder %.200s is longer than %d bytes: sockets below it would have no "
                         "address; choose another one with --share-dir",
                         path, MPS_FOLDER_MOST);
    strcpy(f->path, path);
    snprintf(f->pipe, sizeof f->pipe, "%s/pipe", f->path);
    snprintf(f->log, sizeof f->log, "%s/log", f->path);
    snprintf(f->clients, sizeof f->clients, "%s/clients", f->path);
    return CLI_OK;
}

static int check(const char *path)
{
    struct stat s;
    if (lstat(path, &s))
        return errno == ENOENT ? cli_error("there is no share in %s: `moat share start` makes one", path)
                               : cli_error("the share's folder %s: %s", path, strerror(errno));
    if (!S_ISDIR(s.st_mode))
        return cli_error("%s is no folder", path);
    if (s.st_uid != geteuid())
        return cli_error("the share's folder %s belongs to another user: a server has one user", path);
    if (s.st_mode & 077)
        return cli_error("others can enter the share's folder %s: it must have mode 0700", path);
    return CLI_OK;
}

int mps_folder_open(struct mps_folder *f, const struct options *options, bool make)
{
    int status = choose(f, options);
    const char *const paths[] = {f->path, f->pipe, f->log, f->clients};
    for (size_t i = 0; !status && i < sizeof paths / sizeof *paths; i++) {
        if (make && mkdir(paths[i], 0700) && errno != EEXIST)
            return cli_error("cannot make %s: %s", paths[i], strerror(errno));
        status = check(paths[i]);
    }
    return status;
}

int mps_folder_export(const struct mps_folder *f)
{
    return setenv("CUDA_MPS_PIPE_DIRECTORY", f->pipe, 1) || setenv("CUDA_MPS_LOG_DIRECTORY", f->log, 1)
               ? -errno
               : 0;
}
