// SPDX-License-Identifier: MIT
// Events in the format that the user chose, to where the user wants them. Text and JSON Lines are written as events
// come, SARIF and XML when all is over. Where the name of the log file has %p in it, each process has a file, and a
// document, of its own.
//
// A log that cannot be written is said once, and what was meant for it goes to standard error.
#ifndef MOAT_CLI_RENDER_H
#define MOAT_CLI_RENDER_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/option.h"
#include "report/demangle.h"
#include "report/report.h"

struct render_setup {
    enum option_format format;
    enum option_color color;
    const char *log_file;  // NULL: to fd
    int fd;                // stays open
    struct demangle demangle;
    int argc;  // of the program, for documents; 0: not known
    char **argv;
};

struct render;

// NULL without memory.
struct render *render_new(const struct render_setup *setup);

// Opens the log file, or sees whether its folder can be written. 0, or a negative code with a sentence in why: then
// standard error takes its place.
int render_open_log(struct render *r, char *why, size_t size);

// The process that an event is about.
int render_pid(const struct report_line *line);

// Takes the arena that the line lives in.
void render_line(struct render *r, struct arena *a, const struct report_line *line);

// Writes documents. exit_code < 0: not known. 0 or the first failure to write.
int render_finish(struct render *r, int exit_code);
void render_free(struct render *r);

#endif
