// SPDX-License-Identifier: MIT
// moat run: puts moat's libraries before a program and becomes it. So its process number, signals, standard streams
// and exit status are the program's own.
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/near.h"
#include "cli/cli.h"
#include "cli/libdir.h"
#include "cli/target.h"
#include "driver/driver.h"

static int no_gpu(char *why, size_t size, const char *reason)
{
    snprintf(why, size, "no GPU can be used: %.200s", reason);
    return -ENODEV;
}

// Whether there is a driver with a GPU.
static int find_gpu(char *why, size_t size)
{
    struct driver d;
    char reason[256];
    if (driver_open(&d, NULL, reason, sizeof reason))
        return no_gpu(why, size, reason);
    int count = 0;
    CUresult r = d.cuInit && d.cuDeviceGetCount ? d.cuInit(0) : CUDA_ERROR_NOT_SUPPORTED;
    r = r ? r : d.cuDeviceGetCount(&count);
    const char *text = driver_result_text(r);
    int err = r        ? no_gpu(why, size, text ? text : "the driver fails")
              : !count ? no_gpu(why, size, "the driver sees none")
                       : 0;
    driver_close(&d);
    return err;
}

// first:second:old, of which old, what the variable holds already, may be nothing.
static int put_before(const char *variable, const char *first, const char *second)
{
    const char *old = getenv(variable);
    struct out o;
    out_to_memory(&o);
    out_cstr(&o, first);
    if (second)
        out_fmt(&o, ":%s", second);
    if (old && *old)
        out_fmt(&o, ":%s", old);
    out_char(&o, 0);
    int err = o.error ? o.error : setenv(variable, o.buf, 1) ? -errno : 0;
    out_close(&o);
    return err;
}

// LD_PRELOAD names files; where a blank in their path would end a name, the loader must find them by LD_LIBRARY_PATH.
static int set_libraries(const char *folder)
{
    char driver[PATH_MAX + 64], runtime[PATH_MAX + 64];
    bool blank = strpbrk(folder, " \t\n");
    snprintf(driver, sizeof driver, "%s%s" LIBDIR_DRIVER, blank ? "" : folder, blank ? "" : "/");
    snprintf(runtime, sizeof runtime, "%s%s" LIBDIR_RUNTIME, blank ? "" : folder, blank ? "" : "/");
    int err = put_before("LD_PRELOAD", driver, runtime);
    return err ? err : put_before("LD_LIBRARY_PATH", folder, NULL);
}

static int unwatched(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int unwatched(const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_error("%s", text);
    return CLI_UNWATCHED;
}

static int use_cpu_device(const struct options *options, struct target *t)
{
    static const char *const names[] = {LIBDIR_DRIVER, LIBDIR_RUNTIME, NULL};
    char folder[PATH_MAX], why[400];
    if (libdir_find(folder, sizeof folder, names, why, sizeof why))
        return unwatched("the CPU device is not there: %s", why);
    if (strpbrk(folder, ":;"))
        return unwatched("the CPU device cannot be loaded from \"%.200s\": a path with a colon or semicolon",
                         folder);
    if (target_check(t, why, sizeof why))
        return unwatched("%s", why);
    if (t->foreign_runtime)
        fprintf(
            stderr,
            "moat: warning: \"%.200s\" has NVIDIA's static CUDA runtime in it, which needs NVIDIA's driver;\n"
            "moat: link it with `-cudart shared`, or again after `eval \"$(moat link-flags)\"`\n",
            t->path);
    int err = set_libraries(folder);
    err = err ? err : cli_export_options(options);
    return err ? unwatched("cannot set the environment: %s", strerror(-err)) : CLI_OK;
}

static int choose_device(const struct options *options, struct target *t)
{
    char why[300];
    if (options->device == OPTION_DEVICE_CPU)
        return use_cpu_device(options, t);
    if (!find_gpu(why, sizeof why))
        return CLI_OK;
    return options->device == OPTION_DEVICE_AUTO ? use_cpu_device(options, t) : unwatched("%s", why);
}

// A misspelled command is taken for a program.
static int not_found(const char *name, const char *why)
{
    struct near near;
    near_init(&near, str_from(name));
    for (int i = 0; i < cli_command_count; i++)
        near_offer(&near, cli_commands[i].name);
    return near.best ? unwatched("%s; did you mean the command \"%s\"?", why, near.best)
                     : unwatched("%s", why);
}

int cmd_run(const struct options *options, int argc, char **argv)
{
    if (!argc)
        return cli_error("no program given; `moat help run` says more");
    struct target t;
    char why[400];
    if (target_find(&t, argv[0], why, sizeof why))
        return not_found(argv[0], why);
    int status = choose_device(options, &t);
    if (status)
        return status;
    argv[argc] = NULL;  // operands were moved to the front
    execv(t.path, argv);
    return unwatched("cannot run \"%.200s\": %s", argv[0], strerror(errno));
}
