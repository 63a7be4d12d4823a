// SPDX-License-Identifier: MIT
// The channel that carries reports out of a watched process. The command listens on a socket in a private
// folder and names it in the environment (CHANNEL_VARIABLE). A process connects when it has something to
// report, so that forks, execs and closed descriptors do no harm. It sends a line of JSON and receives one
// byte once the line was rendered, so that reports appear in order with the program's own output. Without a
// listener, text goes to the log file or to standard error.
//
// This is the process's side. It uses no heap, no stdio, no lock: callers serialise per process (guard and
// heap have a lock of their own).
#ifndef MOAT_REPORT_CHANNEL_H
#define MOAT_REPORT_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "report/report.h"

#define CHANNEL_VARIABLE "MOAT_CHANNEL"

// A process that has changed its user or its root cannot reach the path. Where the listener is root, it also
// listens under an abstract name, which is the path behind a zero.
struct sockaddr_un;
void channel_abstract_name(struct sockaddr_un *address, const char *path);

// The command's answer to a report.
enum channel_answer {
    CHANNEL_GO_ON = 'g',
    CHANNEL_SUPPRESSED = 's',  // it does not count
    CHANNEL_NOBODY = 0,        // nobody listens: it was written as text
};

struct channel {
    char path[108];          // of the socket; empty: no listener
    char log_file[512];      // for text without a listener, with %p and %h replaced; empty: standard error
    int fd;                  // -1: not connected
    int owner;               // process that connected; a child connects anew
    uint64_t device, inode;  // of the socket: the program may close fd and reuse its number
    uint32_t unanswered;     // lines sent whose answer has not been received
    char *buffer;            // for one line; mapped at first use
    bool failed;             // the listener is gone
    // For threads that do not share the program's descriptors: returns standard error, to be closed by the
    // caller. NULL: standard error is 2.
    int (*standard_error)(void);
};

// Initialises a channel from CHANNEL_VARIABLE. log_file may be NULL. Opens nothing yet.
void channel_init(struct channel *c, const char *log_file);

// To be called before a process gets its second thread: lets the kernel's table of descriptors grow to where
// the connection will be. In a process with threads the kernel takes 10 ms for that.
void channel_prepare(const struct channel *c);

// Sends an event and waits, at most some seconds, until it has been rendered. Keeps errno.
enum channel_answer channel_send(struct channel *c, const struct report_line *line);

#endif
