// SPDX-License-Identifier: MIT
// The command: one row of cmds.def and one cmd_*.c file for each subcommand.
#ifndef MOAT_CLI_CLI_H
#define MOAT_CLI_CLI_H

#include "base/option.h"
#include "base/out.h"

// Exit statuses. CLI_BAD: bad usage or bad input; CLI_FOUND: memory errors were found; CLI_UNWATCHED: the
// program was not run, because it cannot be run or watched, or it ran and nothing of it was watched.
enum { CLI_OK = 0, CLI_BAD = 2, CLI_FOUND = 97, CLI_UNWATCHED = 98 };

// A command. argv: the words after the command's first one, without options. Returns the exit status.
typedef int cli_function(const struct options *options, int argc, char **argv);

#define COMMAND(name, function, ...) cli_function function;
#include "cli/cmds.def"
#undef COMMAND

struct cli_command {
    const char *name;
    cli_function *run;
    const char *synopsis, *help;
};

extern const struct cli_command cli_commands[];
extern const int cli_command_count;

// Prints "moat: error: ..." to stderr. Returns CLI_BAD.
int cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Prints "moat: warning: ..." to stderr.
void cli_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Closes the output of a command that would end with `status`. Returns that, or CLI_BAD with a message if
// closing fails.
int cli_close(struct out *o, int status);

// Sets MOAT_OPTIONS to the options, wherever they came from, for libraries that read it. Returns 0 or a
// negative code.
int cli_export_options(const struct options *options);

// Prints that there is no such command, and which one may have been meant. Returns CLI_BAD.
int cli_unknown(const char *name);

#endif
