// SPDX-License-Identifier: MIT
// The way of reports out of a watched process. The command listens on a socket in a private folder and names it in the
// environment (CHANNEL_VARIABLE); a process connects when it has something to say, so that forks, execs and closed
// descriptors do no harm. A line of JSON goes out, one byte comes back once it was rendered: reports stand where they
// belong between the program's own output. Without a listener, text goes to the log file or to standard error.
//
// Process side. No heap, no stdio, no lock: callers serialise per process (guard and heap have a lock of their own).
#ifndef MOAT_REPORT_CHANNEL_H
#define MOAT_REPORT_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "report/report.h"

#define CHANNEL_VARIABLE "MOAT_CHANNEL"

// What the command answers to a report.
enum channel_answer {
    CHANNEL_GO_ON = 'g',
    CHANNEL_SUPPRESSED = 's',  // it does not count
    CHANNEL_NOBODY = 0,        // nobody listens: it was written as text
};

struct channel {
    char path[108];          // of the socket; empty: none
    char log_file[512];      // where text goes then, with %p and %h replaced; empty: standard error
    int fd;                  // -1: not connected
    int owner;               // process that connected: a child connects anew
    uint64_t device, inode;  // of the socket: the program may close fd and use its number
    uint32_t unanswered;     // lines sent whose answer did not come in time
    char *buffer;            // for one line; mapped at the first use
    bool failed;             // the listener went away
    // For threads that do not have the program's descriptors: gives standard error, to be closed again. NULL: it is 2.
    int (*standard_error)(void);
};

// Reads CHANNEL_VARIABLE. log_file may be NULL. Nothing is opened yet.
void channel_init(struct channel *c, const char *log_file);

// Sends an event and waits, at most some seconds, until it was rendered.
enum channel_answer channel_send(struct channel *c, const struct report_line *line);

#endif
