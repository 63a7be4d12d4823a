// SPDX-License-Identifier: MIT
// The command's end of the channel (report/channel.h): listens in a private folder, reads events of any
// number of processes, and answers each when it has been rendered.
//
// A process may connect again, come by fork or by exec, and go at any time: struct reports keeps its state by
// its number; a connection is only a stream of bytes.
#ifndef MOAT_CLI_COLLECT_H
#define MOAT_CLI_COLLECT_H

#include <poll.h>

#include "base/vec.h"
#include "cli/reports.h"

struct collect_peer {
    int fd, process;
    bool ended;       // its last line was the end of a process
    VEC(char) input;  // bytes of an incomplete line
};

struct collect {
    struct reports *reports;
    int listener;    // -1: nobody can connect
    int abstract;    // the same under an abstract name, for processes that have changed user or root; or -1
    char path[108];  // of the socket; its folder is ours too
    bool full;       // no descriptor is left: no connection is accepted until one has closed
    VEC(struct collect_peer) peers;
    VEC(struct pollfd) polled;
};

// Starts to listen. Returns 0, or a negative code with a sentence in why: collect_wait still works, but
// nobody connects.
int collect_open(struct collect *c, struct reports *reports, char *why, size_t size);
void collect_close(struct collect *c);

enum { COLLECT_HEARD = 1, COLLECT_OTHER = 2 };

// Waits until a process connects, sends or disconnects, or `other` (-1: none) can be read, or timeout (in ms,
// -1: none) has passed; reads and answers. Returns what has happened, COLLECT_*, or 0.
int collect_wait(struct collect *c, int other, int timeout);

// Returns whether a process is connected that has not announced its end.
bool collect_talking(const struct collect *c);

#endif
