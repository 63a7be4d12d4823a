// SPDX-License-Identifier: MIT
// Starts a program and waits for it as if it were the command itself: signals sent to the command reach it,
// the command stops and continues with it, and can end as it ended.
//
// The program stays in the command's process group, so that the terminal treats both as one job. Signals of
// the terminal to the group reach the program directly; signals that others send to the command alone are
// forwarded.
#ifndef MOAT_CLI_SUPERVISE_H
#define MOAT_CLI_SUPERVISE_H

#include <stdbool.h>

#include "cli/collect.h"

// Runs a program until it has ended, and waits a short while for reports of other processes that it started.
// *status as of waitpid. Returns 0, or a negative code if it could not be started.
int supervise(const char *path, char **argv, struct collect *c, int *status);

// Ends the command by a signal, so that its parent sees how the program ended. Returns only if that fails.
void supervise_die_by(int signal);

#endif
