// SPDX-License-Identifier: MIT
// Who shares a GPU: the clients that the MPS servers of a share name, and the fenced processes that have a
// file in its folder.
#ifndef MOAT_CLI_MPS_CLIENTS_H
#define MOAT_CLI_MPS_CLIENTS_H

#include "base/vec.h"
#include "cli/mps_control.h"
#include "cli/mps_folder.h"
#include "mps/client_file.h"

enum {
    MPS_SERVERS_MOST = 64,
    MPS_CLIENTS_MOST = 1024,  // of a server
    MPS_FILES_MOST = 4096,    // in the folder: what is beyond is not read
};

struct mps_client {
    int pid, server;
    bool memory_known;
    uint64_t memory;
    char program[32];  // as the kernel knows it; empty: the process cannot be seen
};

struct mps_clients {
    int servers[MPS_SERVERS_MOST];
    int nservers;
    VEC(struct mps_client) all;
};

// Asks the servers. Returns CLI_OK, or CLI_BAD after a message.
int mps_clients_ask(struct mps_clients *c);
// Returns the client with this number, or NULL.
const struct mps_client *mps_clients_find(const struct mps_clients *c, int pid);
void mps_clients_free(struct mps_clients *c);

struct mps_files {
    VEC(struct client_file) live;
    struct client_file ended;  // sums of the counters of all that ended
    unsigned bad;              // files that are not as they should be
};

// Reads the files of fenced processes. Those of processes that ended become part of `ended`, on disk too.
// Returns CLI_OK, or CLI_BAD after a message.
int mps_files_read(const struct mps_folder *folder, struct mps_files *f);
const struct client_file *mps_files_find(const struct mps_files *f, int pid);
void mps_files_free(struct mps_files *f);

// The name of a process's program; empty if it cannot be seen.
void mps_program(int pid, char *name, size_t size);

#endif
