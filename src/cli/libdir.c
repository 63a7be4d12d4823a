// SPDX-License-Identifier: MIT
#include "cli/libdir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int libdir_find(char *folder, size_t size, const char *const *names, char *why, size_t why_size)
{
    char self[PATH_MAX], wanted[PATH_MAX + 32], file[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = 0;
    }
    // What `make install LIBDIR=` allows. Where there is none, the error is about the first.
    static const char *const folders[] = {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"};
    for (size_t i = sizeof folders / sizeof *folders; i-- > 0;) {
        snprintf(wanted, sizeof wanted, "%s/%s/moat", self, folders[i]);
        if (!access(wanted, X_OK))
            break;
    }
    for (int i = 0; names[i]; i++) {
        snprintf(file, sizeof file, "%s/%s", wanted, names[i]);
        if (access(file, R_OK)) {
            snprintf(why, why_size, "%.300s: %s", file, strerror(errno));
            return -ENOENT;
        }
    }
    if ((size_t)snprintf(folder, size, "%s", wanted) >= size) {
        snprintf(why, why_size, "the path of moat's libraries is too long");
        return -ENOENT;
    }
    return 0;
}
