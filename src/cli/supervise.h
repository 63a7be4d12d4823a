// SPDX-License-Identifier: MIT
// Starts a program and waits for it as if it stood in the command's place: signals sent to the command reach it, the
// command stops and continues with it, and can end as it ended.
//
// The program stays in the command's process group, so that the terminal treats both as one job. What the terminal sends
// to the group reaches the program without our help; what others send to the command alone is passed on.
#ifndef MOAT_CLI_SUPERVISE_H
#define MOAT_CLI_SUPERVISE_H

#include <stdbool.h>

#include "cli/collect.h"

// Waits until it has ended, and for what other processes that it started say shortly after. *status as of waitpid.
// 0, or a negative code if it could not be started.
int supervise(const char *path, char **argv, struct collect *c, int *status);

// Ends the command by a signal, so that whoever waits for it sees the program's own end. Returns only if that fails.
void supervise_die_by(int signal);

#endif
