// SPDX-License-Identifier: MIT
// Runs a program under the guard: listens, starts it, waits, renders the reports of its processes, and
// computes the exit status.
#ifndef MOAT_CLI_RUN_WATCHED_H
#define MOAT_CLI_RUN_WATCHED_H

#include "base/option.h"
#include "cli/program_env.h"

// Prints "moat: error: ..."; returns CLI_UNWATCHED.
int run_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Reports that something expected is missing: a warning, or with --strict an error. Returns CLI_OK or
// CLI_UNWATCHED.
int run_trouble(const struct options *options, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Runs the program at `path`. Sets env->channel. Returns the exit status; does not return if the command ends
// by the program's signal.
int run_watched(const struct options *options, struct program_env *env, const char *path, int argc,
                char **argv);

#endif
