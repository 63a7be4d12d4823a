// SPDX-License-Identifier: MIT
#include "cli/program_env.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/out.h"
#include "cli/cli.h"
#include "cli/libdir.h"
#include "cli/pools.h"
#include "cli/python_env.h"
#include "report/channel.h"

static int set_and_close(const char *variable, struct out *o)
{
    out_char(o, 0);
    int err = o->error ? o->error : setenv(variable, o->buf, 1) ? -errno : 0;
    out_close(o);
    return err;
}

static void add_old(const char *variable, struct out *o)
{
    const char *old = getenv(variable);
    if (old && *old)
        out_fmt(o, "%s%s", o->len ? ":" : "", old);
}

// Appends a library to LD_PRELOAD, by path. A blank in the path would end the name there, so then the loader
// must find the library through LD_LIBRARY_PATH.
static void add_library(const struct program_env *p, const char *name, struct out *o)
{
    if (o->len)
        out_char(o, ':');
    if (!strpbrk(p->folder, " \t\n"))
        out_fmt(o, "%s/", p->folder);
    out_cstr(o, name);
}

static bool has_library(const struct program_env *p, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", p->folder, name);
    return n < (int)sizeof path && access(path, R_OK) == 0;
}

// Both CUDA runtimes are loaded by path, because a library with a DT_RPATH, as those of PyTorch's wheels, has
// the loader find NVIDIA's before it looks into LD_LIBRARY_PATH.
static int set_preload(const struct program_env *p)
{
    struct out o;
    out_to_memory(&o);
    if (p->heap)
        add_library(p, LIBDIR_HEAP, &o);
    if (p->guard)
        add_library(p, LIBDIR_GUARD, &o);
    if (p->cpu && !p->guard)  // with the guard, the guard opens it
        add_library(p, LIBDIR_DRIVER, &o);
    if (p->cpu) {
        add_library(p, LIBDIR_RUNTIME, &o);
        if (has_library(p, LIBDIR_RUNTIME_12))
            add_library(p, LIBDIR_RUNTIME_12, &o);
    }
    add_old("LD_PRELOAD", &o);
    return set_and_close("LD_PRELOAD", &o);
}

static int set_library_path(const struct program_env *p)
{
    if (!p->cpu && !strpbrk(p->folder, " \t\n"))
        return 0;
    struct out o;
    out_to_memory(&o);
    out_cstr(&o, p->folder);
    add_old("LD_LIBRARY_PATH", &o);
    return set_and_close("LD_LIBRARY_PATH", &o);
}

// AddressSanitizer's runtime, where it is a shared library, refuses to start behind other libraries. Ours
// intercept nothing that it needs; only the heap's monitor would take its malloc, so there it must refuse.
// The user's own settings come behind and win.
static int let_sanitizer_follow(const struct program_env *p)
{
    if (p->heap)
        return 0;
    struct out o;
    out_to_memory(&o);
    out_lit(&o, "verify_asan_link_order=0");
    add_old("ASAN_OPTIONS", &o);
    return set_and_close("ASAN_OPTIONS", &o);
}

// Appends an option after those set already, so that it wins.
static void add_option(struct out *o, const char *key, const char *value)
{
    out_fmt(o, "%s%s=", o->len ? ":" : "", key);
    for (; *value; value++) {
        if (*value == ':' || *value == '\\')
            out_char(o, '\\');
        out_char(o, *value);
    }
}

// Appends a log file's name as an absolute one: the program may change its folder. A percent sign in the
// folder's own name must not be read as one of the log's.
static void add_log_file(struct out *o, const char *log)
{
    char folder[PATH_MAX], path[3 * PATH_MAX];
    size_t len = 0;
    if (log[0] == '/' || !getcwd(folder, sizeof folder))
        return;
    for (const char *c = folder; *c; c++) {
        if (*c == '%')
            path[len++] = '%';
        path[len++] = *c;
    }
    snprintf(path + len, sizeof path - len, "/%s", log);
    add_option(o, "log-file", path);
}

static int set_options(const struct program_env *p, const struct options *options)
{
    int err = cli_export_options(options);
    if (err || !(p->guard || p->heap))
        return err;
    struct out o;
    out_to_memory(&o);
    add_old("MOAT_OPTIONS", &o);
    if (p->cpu)
        add_option(&o, "device", "cpu");
    if (p->driver)
        add_option(&o, "driver", p->driver);
    if (options->log_file)
        add_log_file(&o, options->log_file);
    return set_and_close("MOAT_OPTIONS", &o);
}

int program_env_set(const struct program_env *p, const struct options *options)
{
    int err = set_preload(p);
    err = err ? err : set_library_path(p);
    err = err ? err : let_sanitizer_follow(p);
    err = err ? err : set_options(p, options);
    if (!err && p->guard)
        err = pools_set(p->folder, options);
    if (!err && (p->guard || p->cpu))
        err = python_env_set(p->folder, options, p->cpu);
    if (err || !(p->guard || p->heap))
        return err;
    if (p->channel)
        return setenv(CHANNEL_VARIABLE, p->channel, 1) ? -errno : 0;
    unsetenv(CHANNEL_VARIABLE);
    return 0;
}
