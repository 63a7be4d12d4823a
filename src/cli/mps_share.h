// SPDX-License-Identifier: MIT
// What the subcommands of `moat share` have in common.
#ifndef MOAT_CLI_MPS_SHARE_H
#define MOAT_CLI_MPS_SHARE_H

#include "cli/mps_clients.h"

// Checks that no operand was given, opens the folder and sets its variables. Returns CLI_OK, or CLI_BAD after
// a message.
int mps_share_open(struct mps_folder *f, const struct options *options, bool make, int argc, char **argv);

// Starts the control daemon and waits until it answers. Returns CLI_OK, or CLI_BAD after a message.
int mps_share_start(void);
// Ends the daemon and its servers, which have `seconds` to end by themselves. Returns CLI_OK, or CLI_BAD
// after a message.
int mps_share_quit(int seconds);

// Returns how many of the clients are processes that still run.
size_t mps_share_running(const struct mps_clients *c);

#endif
