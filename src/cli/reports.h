// SPDX-License-Identifier: MIT
// Processes an event between the line of JSON and the renderer: adds names and source lines to stacks, and
// removes and counts errors that are suppressed or beyond the print limit.
#ifndef MOAT_CLI_REPORTS_H
#define MOAT_CLI_REPORTS_H

#include <stdint.h>

#include "base/vec.h"
#include "cli/render.h"
#include "report/suppress.h"
#include "report/symbol.h"

// A process that reports. After an exec it is a new one with the same number. Several libraries may report
// for it, each from its start to its end.
//
//   A library numbers its errors from 1 on. `given` lists the numbers of all libraries in order of arrival;
//   an error's index there, from 1 on, is the number that users see, unique in the process.
struct reports_number {
    bool heap;  // which library
    uint64_t id;
};

struct reports_process {
    int pid, parent;
    bool waits;  // the banner is held back: a child that the heap's library watches may report nothing else
    struct arena banner_arena;  // valid if waits
    struct report_line banner;
    unsigned running;          // libraries that have not reported the end
    bool introduced, by_heap;  // whether it has a banner, and whether the heap's library sent that
    VEC(struct reports_number) given;
    uint64_t suppressed[2];  // the guard's, the heap's
    VEC(uint64_t) shown;     // ids of rendered errors: repeats of others are not reported
};

struct reports {
    struct render *render;
    struct symbols *symbols;
    struct suppress *suppress;
    struct demangler *demangler;
    uint64_t print_limit;  // 0: none
    bool live;             // reports come from running libraries, not from a file
    bool heap;             // the heap is watched in every process
    bool brief;            // children with nothing to report get one line
    VEC(struct reports_process) processes;
    uint64_t started, watched, errors, suppressed, unprinted;  // watched: with a summary that is not empty
    uint64_t ended;                                            // processes that have sent a summary
    uint64_t launches, refused;  // of kernels and graphs; modules and launches that the driver refused
    int last_pid;
    enum report_event last_event;
};

// Initialises r and sets setup->demangle. Returns 0 or -ENOMEM.
int reports_init(struct reports *r, const struct options *options, struct render_setup *setup);
void reports_free(struct reports *r);

// Loads a file of suppressions. Returns 0; -EINVAL after reporting bad lines to the sink (the good ones are
// used); or the system's negative code, reported too.
int reports_load_suppressions(struct reports *r, const char *path, struct diag_sink *sink);

enum { REPORTS_SHOWN = 0, REPORTS_SUPPRESSED = 1 };

// Processes one line. fresh: a start is that of a new process, not of another library in it. Returns
// REPORTS_SHOWN, REPORTS_SUPPRESSED, or a negative code; for -EINVAL, why says what is wrong.
int reports_take(struct reports *r, struct str line, bool fresh, char *why, size_t size);

// Renders a note on a process.
void reports_note(struct reports *r, int pid, const char *text);

// Renders a note on each process that is still running or has ended without a summary. For reports that came
// from this machine just now. status: what wait said of the calling process's only child.
void reports_note_unended(struct reports *r, int status);

// Renders a note on errors that were not printed, and writes documents. Returns 0 or the first failure to
// write.
int reports_finish(struct reports *r, int exit_code);

#endif
