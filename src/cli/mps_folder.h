// SPDX-License-Identifier: MIT
// The folder of a share, which only its user can enter: --share-dir, else moat-share in $XDG_RUNTIME_DIR,
// else /tmp/moat-share-UID.
//
//   FOLDER/pipe      CUDA_MPS_PIPE_DIRECTORY
//   FOLDER/log       CUDA_MPS_LOG_DIRECTORY
//   FOLDER/clients   a file of each fenced process (mps/client_file.h), and `ended`, the sums of those that
//                    have ended
#ifndef MOAT_CLI_MPS_FOLDER_H
#define MOAT_CLI_MPS_FOLDER_H

#include <stdbool.h>

#include "base/option.h"

// Sockets lie in FOLDER/pipe, and their paths have 107 bytes at most.
enum { MPS_FOLDER_MOST = 72 };

struct mps_folder {
    char path[MPS_FOLDER_MOST + 1];
    char pipe[MPS_FOLDER_MOST + 16], log[MPS_FOLDER_MOST + 16], clients[MPS_FOLDER_MOST + 16];
};

// Finds the folder, or makes it. Returns CLI_OK, or CLI_BAD after a message: it is not there, or others can
// write to it.
int mps_folder_open(struct mps_folder *f, const struct options *options, bool make);

// Sets the variables by which CUDA programs and the control program find the share. Returns 0 or a negative
// code.
int mps_folder_export(const struct mps_folder *f);

#endif
