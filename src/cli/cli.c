// SPDX-License-Identifier: MIT
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"

const struct cli_command cli_commands[] = {
#define COMMAND(name, function, synopsis, help) {name, function, synopsis, help},
#include "cli/cmds.def"
};
const int cli_command_count = sizeof cli_commands / sizeof *cli_commands;

static void print_message(enum diag_severity severity, const char *fmt, va_list args)
{
    struct diag d = {.severity = severity, .source.name = "moat"};
    vsnprintf(d.message, sizeof d.message, fmt, args);
    diag_print(stderr, &d);
}

int cli_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(DIAG_ERROR, fmt, args);
    va_end(args);
    return CLI_BAD;
}

void cli_warning(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(DIAG_WARNING, fmt, args);
    va_end(args);
}

int cli_close(struct out *o, int status)
{
    int err = out_close(o);
    return err ? cli_error("cannot write the output: %s", strerror(-err)) : status;
}

int cli_export_options(const struct options *options)
{
    struct out o;
    out_to_memory(&o);
    option_print_environment(options->set, &o);
    out_char(&o, 0);
    int err = o.error ? o.error : setenv("MOAT_OPTIONS", o.buf, 1) ? -errno : 0;
    out_close(&o);
    return err;
}

int cli_unknown(const char *name)
{
    struct near near;
    near_init(&near, str_from(name));
    for (int i = 0; i < cli_command_count; i++)
        near_offer(&near, cli_commands[i].name);
    if (near.best)
        return cli_error("unknown command \"%.60s\"; did you mean \"%s\"?", name, near.best);
    return cli_error("unknown command \"%.60s\"; `moat help` lists them all", name);
}
