// SPDX-License-Identifier: MIT
// Runs a program under the guard: listens, starts it, waits, renders what its processes report, and works out the exit
// status.
#ifndef MOAT_CLI_RUN_WATCHED_H
#define MOAT_CLI_RUN_WATCHED_H

#include "base/option.h"
#include "cli/program_env.h"

// "moat: error: ..."; returns CLI_UNWATCHED.
int run_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Something that is meant to be there is not: a warning, or with --strict an error. CLI_OK or CLI_UNWATCHED.
int run_trouble(const struct options *options, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// path: of the program. Sets env->channel. Returns the exit status, or does not return.
int run_watched(const struct options *options, struct program_env *env, const char *path, int argc,
                char **argv);

#endif
