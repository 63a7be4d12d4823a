// SPDX-License-Identifier: MIT
// What becomes of an event on its way from a line of JSON to the renderer: stacks get names and source lines, errors
// that are suppressed or beyond the limit are taken out and counted.
#ifndef MOAT_CLI_REPORTS_H
#define MOAT_CLI_REPORTS_H

#include <stdint.h>

#include "base/vec.h"
#include "cli/render.h"
#include "report/suppress.h"
#include "report/symbol.h"

// A process that reports. After an exec it is another, with the same number. Several libraries may report for it, each
// from its start to its end.
//
//   A library numbers what it finds from 1 on; `given` has them in the order in which they came, and the place there,
//   from 1 on, is the number that people see: one that no other error of the process has.
struct reports_number {
    bool heap;  // which library
    uint64_t id;
};

struct reports_process {
    int pid;
    bool waits;  // its banner: a child that the heap's library watches may have nothing else to say
    struct arena banner_arena;  // then
    struct report_line banner;
    unsigned running;          // libraries that have not said that the end has come
    bool introduced, by_heap;  // whether its banner is out, and whose that was
    VEC(struct reports_number) given;
    uint64_t suppressed[2];  // the guard's, the heap's
    VEC(uint64_t)
    shown;  // ids of errors that were rendered: only these are worth a word when they happen again
};

struct reports {
    struct render *render;
    struct symbols *symbols;
    struct suppress *suppress;
    struct demangler *demangler;
    uint64_t print_limit;  // 0: none
    bool live;             // reports come from libraries just now, not from a file
    bool heap;             // the heap is watched in every process
    bool brief;            // children of which there is nothing to say get one line
    VEC(struct reports_process) processes;
    uint64_t started, watched, errors, suppressed, unprinted;  // watched: whose summary has something in it
    int last_pid;
    enum report_event last_event;
};

// setup->demangle is filled in. 0 or -ENOMEM.
int reports_init(struct reports *r, const struct options *options, struct render_setup *setup);
void reports_free(struct reports *r);

// 0; -EINVAL after reporting to the sink what is wrong with the file: what is right in it holds; or what the system says,
// reported too.
int reports_load_suppressions(struct reports *r, const char *path, struct diag_sink *sink);

enum { REPORTS_SHOWN = 0, REPORTS_SUPPRESSED = 1 };

// One line. fresh: if it is a start, then that of a new process, not of another library in it. REPORTS_SHOWN, REPORTS_SUPPRESSED, or a negative code: with -EINVAL, why says what is wrong.
int reports_take(struct reports *r, struct str line, bool fresh, char *why, size_t size);

// Says something of a process in the renderer's format.
void reports_note(struct reports *r, int pid, const char *text);

// Says which processes live on or have ended without a word. For reports that came from this machine just now.
void reports_note_unended(struct reports *r);

// Says what was left out, and writes documents. 0 or the first failure to write.
int reports_finish(struct reports *r, int exit_code);

#endif
