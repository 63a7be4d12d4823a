// SPDX-License-Identifier: MIT
#include "cli/run_watched.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/collect.h"
#include "cli/supervise.h"

enum { MESSAGE = 400 };

int run_refuse(const char *fmt, ...)
{
    char text[MESSAGE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_error("%s", text);
    return CLI_UNWATCHED;
}

int run_trouble(const struct options *options, const char *fmt, ...)
{
    char text[MESSAGE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (options->strict)
        return run_refuse("%s", text);
    cli_warning("%s", text);
    return CLI_OK;
}

// Opens the log and loads suppressions. Unless --strict, a bad line is only a warning.
static int prepare_reports(struct reports *r, const struct options *options)
{
    char why[MESSAGE];
    if (render_open_log(r->render, why, sizeof why))
        return cli_error("%s", why);
    if (!options->suppressions)
        return CLI_OK;
    struct diag_printer printer;
    diag_printer_init(&printer, 20);
    int err = reports_load_suppressions(r, options->suppressions, &printer.sink);
    diag_printer_finish(&printer);
    if (!err)
        return CLI_OK;
    // A file that cannot be read is an error of the user; a line that cannot be parsed leaves the others
    // valid.
    return err == -EINVAL ? run_trouble(options, "not all suppressions can be used") : CLI_BAD;
}

// Says why "0 errors" would mislead, if it would. A program that has failed itself keeps its status, unless
// --strict. Returns CLI_OK if something was watched.
static int unwatched(const struct options *options, const struct reports *r, int status)
{
    const char *why = NULL;
    if (!r->started)
        why = options->heap
                  ? "nothing was watched: no process of the program could be reached"
                  : "nothing was watched: no process of the program has used CUDA where moat could see it";
    else if (r->ended && !r->watched)  // of a process without a summary nothing is known
        why = "nothing was watched: the program has made no allocation, transfer or launch";
    else if (r->refused && !r->launches && !options->heap)
        why = "no kernel has run: the driver has refused every module or launch; --api-errors says why";
    if (!why)
        return CLI_OK;
    if (status && !options->strict) {
        cli_warning("%s", why);
        return status;
    }
    return run_refuse("%s", why);
}

// Returns the exit status, by precedence: errors found in any process, the program's own end by a signal,
// that nothing was watched, the program's own status.
static int exit_status(const struct options *options, const struct reports *r, int status)
{
    if (r->errors && options->error_exitcode)
        return (int)options->error_exitcode;
    if (WIFSIGNALED(status)) {
        unwatched(options, r, 128 + WTERMSIG(status));
        supervise_die_by(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    int other = unwatched(options, r, WEXITSTATUS(status));
    return other ? other : WEXITSTATUS(status);
}

static int start_and_wait(struct reports *r, struct collect *c, const char *path, char **argv, int *status)
{
    int err = supervise(path, argv, c, status);
    collect_close(c);
    if (err)
        return run_refuse("cannot run \"%.200s\": %s", argv[0], strerror(-err));
    reports_note_unended(r, *status);
    err = reports_finish(r, WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status));
    if (err)
        cli_error("not all reports could be written: %s", strerror(-err));
    return CLI_OK;
}

static int listen_and_run(const struct options *options, struct reports *r, struct program_env *env,
                          const char *path, char **argv)
{
    struct collect c;
    char why[MESSAGE];
    int end, status = CLI_OK;
    if (collect_open(&c, r, why, sizeof why))
        status = run_trouble(options, "%s%s", why, options->strict ? "" : "; each writes for itself");
    env->channel = c.listener < 0 ? NULL : c.path;
    int err = status ? 0 : program_env_set(env, options);
    if (err)
        status = run_refuse("cannot set the environment: %s", strerror(-err));
    if (status) {
        collect_close(&c);
        return status;
    }
    status = start_and_wait(r, &c, path, argv, &end);
    return status ? status : exit_status(options, r, end);
}

int run_watched(const struct options *options, struct program_env *env, const char *path, int argc,
                char **argv)
{
    struct render_setup setup = {.format = (enum option_format)options->format,
                                 .color = (enum option_color)options->color,
                                 .log_file = options->log_file,
                                 .fd = STDERR_FILENO,
                                 .argc = argc,
                                 .argv = argv};
    struct reports r;
    int status;
    if (reports_init(&r, options, &setup))
        status = run_refuse("out of memory");
    else
        status = prepare_reports(&r, options);
    r.live = true;
    r.heap = env->heap;
    status = status ? status : listen_and_run(options, &r, env, path, argv);
    reports_free(&r);
    return status;
}
