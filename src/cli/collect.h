// SPDX-License-Identifier: MIT
// The command's end of the channel (report/channel.h): listens in a private folder, reads events of any number of
// processes, and answers each when it was rendered.
//
// A process may connect again, come by fork or by exec, and go at any time: what is known of it is kept by its number
// in struct reports, a connection is only bytes.
#ifndef MOAT_CLI_COLLECT_H
#define MOAT_CLI_COLLECT_H

#include <poll.h>

#include "base/vec.h"
#include "cli/reports.h"

struct collect_peer {
    int fd, process;
    bool ended;       // it has said that its process is about to end
    VEC(char) input;  // of a line that is not complete
};

struct collect {
    struct reports *reports;
    int listener;    // -1: nobody can call
    char path[108];  // of the socket; its folder is ours too
    bool full;       // no descriptor left: nobody is let in until somebody has gone
    VEC(struct collect_peer) peers;
    VEC(struct pollfd) polled;
};

// 0, or a negative code with a sentence in why; collect_wait works all the same, but nobody calls.
int collect_open(struct collect *c, struct reports *reports, char *why, size_t size);
void collect_close(struct collect *c);

enum { COLLECT_HEARD = 1, COLLECT_OTHER = 2 };

// Waits until somebody calls, speaks or hangs up, or `other` (-1: none) can be read, or timeout (in ms, -1: none) is
// over; reads and answers. What has happened, or 0.
int collect_wait(struct collect *c, int other, int timeout);

// Whether a process is connected that has not announced its end.
bool collect_talking(const struct collect *c);

#endif
