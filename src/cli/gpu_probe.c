// SPDX-License-Identifier: MIT
#include "cli/gpu_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"

// The answer of the probing process: '+' and the driver's path, or '-' and a reason.
struct answer {
    char text[PATH_MAX + 2];
};

static void no_gpu(struct answer *a, const char *reason)
{
    snprintf(a->text, sizeof a->text, "-no GPU can be used: %.200s", reason);
}

// Returns whether the kernel has made devices for the driver; it is then taken to have a GPU, because the
// driver takes a sixth of a second to start, and again in every run.
static bool has_device(void)
{
    glob_t found;
    bool any = !glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found);
    if (any)
        globfree(&found);
    return any;
}

static CUresult count_devices(const struct driver *d, int *count)
{
    *count = 1;
    if (has_device())
        return CUDA_SUCCESS;
    CUresult r = d->cuInit && d->cuDeviceGetCount ? d->cuInit(0) : CUDA_ERROR_NOT_SUPPORTED;
    return r ? r : d->cuDeviceGetCount(count);
}

static void ask_driver(struct answer *a)
{
    struct driver d;
    char reason[256];
    if (driver_open(&d, NULL, reason, sizeof reason)) {
        no_gpu(a, reason);
        return;
    }
    int count;
    CUresult r = count_devices(&d, &count);
    const char *text = driver_result_text(r);
    struct link_map *map = NULL;
    if (r)
        no_gpu(a, text ? text : "the driver fails");
    else if (!count)
        no_gpu(a, "the driver sees none");
    else if (dlinfo(d.handle, RTLD_DI_LINKMAP, &map) || !map->l_name)
        no_gpu(a, "the driver's file is not known");
    else
        snprintf(a->text, sizeof a->text, "+%s", map->l_name);
}

static void say(int to)
{
    struct answer a = {""};
    ask_driver(&a);
    ssize_t n = write(to, a.text, strlen(a.text));
    _exit(n < 0);
}

static size_t listen_to(int from, struct answer *a)
{
    size_t len = 0;
    for (ssize_t n; len < sizeof a->text - 1; len += (size_t)n) {
        do
            n = read(from, a->text + len, sizeof a->text - 1 - len);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
            break;
    }
    a->text[len] = 0;
    return len;
}

int gpu_probe(char *path, size_t path_size, char *why, size_t why_size)
{
    struct answer a = {""};
    int ends[2];
    pid_t child = pipe(ends) ? -1 : fork();
    if (child < 0) {
        snprintf(why, why_size, "cannot look for a GPU: %s", strerror(errno));
        return -ENODEV;
    }
    if (!child)
        say(ends[1]);
    close(ends[1]);
    if (!listen_to(ends[0], &a))
        no_gpu(&a, "the driver ended the process that asked it");
    close(ends[0]);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    bool found = a.text[0] == '+';
    snprintf(found ? path : why, found ? path_size : why_size, "%s", a.text + 1);
    return found ? 0 : -ENODEV;
}
