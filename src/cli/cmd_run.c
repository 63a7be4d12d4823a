// SPDX-License-Identifier: MIT
// moat run: finds the device, preloads moat's libraries and runs a program. If nothing is to be watched
// (--mode=off without --heap), moat becomes the program; otherwise it waits for it and collects the reports
// of its processes (run_watched.h).
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/kernel_name.h"
#include "base/modes.h"
#include "base/near.h"
#include "cli/cli.h"
#include "cli/gpu_probe.h"
#include "cli/libdir.h"
#include "cli/run_watched.h"
#include "cli/target.h"
#include "image/cache.h"

struct plan {
    const struct options *options;
    struct target target;
    struct program_env env;
    char folder[PATH_MAX], driver[PATH_MAX + 64];
};

static int use_cpu_device(struct plan *p)
{
    static const char *const names[] = {LIBDIR_DRIVER, LIBDIR_RUNTIME, NULL};
    char why[400];
    if (libdir_find(p->folder, sizeof p->folder, names, why, sizeof why))
        return run_refuse("the CPU device is not there: %s", why);
    if (strpbrk(p->folder, ":;"))
        return run_refuse("the CPU device cannot be loaded from \"%.200s\": a path with a colon or semicolon",
                          p->folder);
    if (target_check(&p->target, why, sizeof why))
        return run_refuse("%s", why);
    int status =
        p->target.foreign_runtime
            ? run_trouble(
                  p->options,
                  "\"%.200s\" has NVIDIA's static CUDA runtime in it, which needs NVIDIA's driver; link "
                  "it with `-cudart shared`, or again after `eval \"$(moat link-flags)\"`",
                  p->target.path)
            : CLI_OK;
    p->env.cpu = true;
    snprintf(p->driver, sizeof p->driver, "%s/" LIBDIR_DRIVER, p->folder);
    return status;
}

// Checks the driver's path. The loader searches for a name without a folder.
static int check_driver(const struct options *options)
{
    const char *driver = options->driver;
    if (!driver || !strchr(driver, '/') || !access(driver, R_OK))
        return CLI_OK;
    return run_trouble(options, "the driver \"%.200s\" cannot be used: %s", driver, strerror(errno));
}

static bool kernel_name_is_bad(const char *text, char *why, size_t size)
{
    struct kernel_name_pattern *pattern;
    int err = text ? kernel_name_compile(text, &pattern, why, size) : 0;
    if (text)
        kernel_name_free(pattern);
    return err == -EINVAL;
}

static int choose_device(struct plan *p)
{
    char why[300];
    int device = p->options->device;
    int status = check_driver(p->options);
    if (status)
        return status;
    if (device == OPTION_DEVICE_CPU)
        return use_cpu_device(p);
    if (p->options->driver || !gpu_probe(p->driver, sizeof p->driver, why, sizeof why))
        return CLI_OK;
    return device == OPTION_DEVICE_AUTO ? use_cpu_device(p) : run_refuse("%s", why);
}

// Finds a library. Without it the program runs unwatched with a warning, or with --strict not at all.
static int find_library(struct plan *p, const char *name, const char *what, bool *found)
{
    const char *const names[] = {name, NULL};
    char why[400];
    if (libdir_find(p->folder, sizeof p->folder, names, why, sizeof why))
        return run_trouble(p->options, "%s is not there: %s", what, why);
    if (strpbrk(p->folder, ":;"))
        return run_trouble(p->options,
                           "%s cannot be loaded from \"%.200s\": a path with a colon or semicolon", what,
                           p->folder);
    *found = true;
    return CLI_OK;
}

static int choose_watchers(struct plan *p, bool guard)
{
    char why[400];
    int status = guard ? find_library(p, LIBDIR_GUARD, "the guard", &p->env.guard) : CLI_OK;
    if (!status && p->options->heap)
        status = find_library(p, LIBDIR_HEAP, "the heap's monitor", &p->env.heap);
    // A program that cannot be watched itself may start others that can.
    if (!status && !p->env.cpu && target_check(&p->target, why, sizeof why))
        status = run_trouble(p->options, "%s", why);
    // Its runtime ends the process, or crashes, behind a library that has malloc's name too.
    if (!status && p->env.heap && p->target.sanitizer) {
        p->env.heap = false;
        status = run_trouble(p->options,
                             "\"%.200s\" is built with a sanitizer, which has a malloc of its own: "
                             "--heap does not watch it",
                             p->target.path);
    }
    return status;
}

// Checks the cache, only with --strict: without a cache every start compiles anew, and otherwise the guard
// says so in its banner.
static int check_cache(const struct options *options)
{
    struct cache *cache;
    if (!options->strict || !options->cache || !modes_rewrite(options))
        return CLI_OK;
    int err = cache_open(options->cache_dir, (uint64_t)options->cache_size, &cache);
    if (!err)
        err = cache_writable(cache);
    cache_close(cache);
    return err ? run_refuse("the cache of rewritten modules cannot be used: %s%s%s",
                            options->cache_dir ? options->cache_dir : "", options->cache_dir ? ": " : "",
                            cache_why(err))
               : CLI_OK;
}

// Reports a program that is not found: it may be a misspelled command.
static int not_found(const char *name, const char *why)
{
    struct near near;
    near_init(&near, str_from(name));
    for (int i = 0; i < cli_command_count; i++)
        near_offer(&near, cli_commands[i].name);
    return near.best ? run_refuse("%s; did you mean the command \"%s\"?", why, near.best)
                     : run_refuse("%s", why);
}

static int run_as_it_is(const struct plan *p, char **argv)
{
    int err = p->env.cpu ? program_env_set(&p->env, p->options) : 0;
    if (err)
        return run_refuse("cannot set the environment: %s", strerror(-err));
    execv(p->target.path, argv);
    return run_refuse("cannot run \"%.200s\": %s", argv[0], strerror(errno));
}

int cmd_run(const struct options *options, int argc, char **argv)
{
    if (!argc)
        return cli_error("no program given; `moat help %s` says more",
                         options->mode >> OPTION_MODE_EXPLAIN & 1 ? "explain" : "run");
    if (options->tensors && option_parse_environment((struct option_set *)options->set, "--tensors",
                                                     "mode=check:torch-alloc=yes:pages-own=1:pages-align=16"))
        return CLI_BAD;
    if (options->pages_align & (options->pages_align - 1))
        return cli_error("--pages-align=%lld is not a power of two", (long long)options->pages_align);
    bool off = options->mode >> OPTION_MODE_OFF & 1;
    struct plan p = {.options = options};
    p.env.folder = p.folder;
    char why[400];
    if (modes_conflict(options->mode, why, sizeof why))
        return cli_error("%s", why);
    if (kernel_name_is_bad(options->kernel_name, why, sizeof why))
        return cli_error("--kernel-name=%.200s is no regular expression: %s", options->kernel_name, why);
    if (target_find(&p.target, argv[0], why, sizeof why))
        return not_found(argv[0], why);
    int status = choose_device(&p);
    // The guard replaces "auto" too, by the driver that it finds.
    struct options chosen = *options;
    chosen.mode = modes_for_device(options->mode, p.env.cpu);
    p.options = options = &chosen;
    bool watch = !off || options->heap;
    if (!status && watch)
        status = choose_watchers(&p, !off);
    if (!status)
        status = check_cache(options);
    if (status)
        return status;
    p.env.driver = p.driver[0] && !options->driver ? p.driver : NULL;
    argv[argc] = NULL;  // operands were moved to the front
    return watch ? run_watched(options, &p.env, p.target.path, argc, argv) : run_as_it_is(&p, argv);
}
