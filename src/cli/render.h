// SPDX-License-Identifier: MIT
// Renders events in the format and to the place that the user chose. Text and JSON Lines are written as
// events come, SARIF and XML at the end. If the name of the log file contains %p, each process has a file,
// and a document, of its own.
//
// A log that cannot be written is reported once, and its output goes to standard error.
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

// Returns NULL if out of memory.
struct render *render_new(const struct render_setup *setup);

// Opens the log file, or checks that its folder can be written. Returns 0, or a negative code with a sentence
// in why: standard error is then used instead.
int render_open_log(struct render *r, char *why, size_t size);

// Returns the process that an event is about.
int render_pid(const struct report_line *line);

// Renders an event; takes ownership of the arena that the line lives in.
void render_line(struct render *r, struct arena *a, const struct report_line *line);

// Writes documents. exit_code < 0: not known. Returns 0 or the first failure to write.
int render_finish(struct render *r, int exit_code);
void render_free(struct render *r);

#endif
