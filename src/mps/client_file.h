// SPDX-License-Identifier: MIT
// The file of a fenced process: FOLDER/clients/PID. The process writes it (--share-dir), and `moat share`
// reads it.
//
// It is text of a fixed length, so that one write replaces all of it:
//
//   moat-client 1
//   pid          PID, 20 digits
//   start        when the process started, as in /proc/PID/stat: a number that a later process has not
//   KEY          one line for each row of client_values.def, in their order, 20 digits
//
// A reader takes nothing in it for granted: the process that it describes may have written anything.
#ifndef MOAT_MPS_CLIENT_FILE_H
#define MOAT_MPS_CLIENT_FILE_H

#include <stdint.h>

#include "base/str.h"

enum client_value {
#define CLIENT_VALUE(id, ...) CLIENT_##id,
#include "mps/client_values.def"
#undef CLIENT_VALUE
    CLIENT_VALUES
};

struct client_file {
    int pid;
    uint64_t start;
    uint64_t values[CLIENT_VALUES];
};

struct client_value_row {
    const char *key;
    bool counter;
    const char *help;
};
extern const struct client_value_row client_value_rows[CLIENT_VALUES];

enum { CLIENT_FILE_MOST = 2048 };  // bytes that a file of a process can have

// Writes the text. Returns its length; `text` has room for CLIENT_FILE_MOST bytes.
size_t client_file_print(const struct client_file *c, char *text);
// Returns 0, or -EINVAL if the text is not what client_file_print writes.
int client_file_parse(struct str text, struct client_file *c);

// Returns when a process started, or 0 if there is none, or it cannot be seen.
uint64_t client_file_started(int pid);

// Opens the calling process's file below a share's folder. Returns a descriptor or a negative code.
int client_file_open(const char *folder);
int client_file_write(int fd, const struct client_file *c);  // 0 or a negative code

// Reads a file of a folder that is open. Returns 0 or a negative code.
int client_file_read(int clients, const char *name, struct client_file *c);

#endif
