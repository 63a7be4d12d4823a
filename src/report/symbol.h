// SPDX-License-Identifier: MIT
// Maps places in object files to functions and source lines, with libdw: by DWARF where there is some, in the
// file itself or by its build id under /usr/lib/debug; else by the file's symbols. Inlined functions get
// frames of their own; frames in runtimes (report_is_runtime) get functions and no lines. Objects are opened
// when first needed and stay open; only the compilation units that are needed are read.
//
// For the command only: libdw uses the heap.
#ifndef MOAT_REPORT_SYMBOL_H
#define MOAT_REPORT_SYMBOL_H

#include "base/arena.h"
#include "report/report.h"

struct symbols;
struct symbols *symbol_new(void);  // NULL if out of memory
void symbol_free(struct symbols *s);

// Replaces the stacks of an event by ones with functions, files and lines as far as they can be found; new
// memory comes from the arena. Frames that cannot be found, or that have a function already, stay as they
// are; so does everything if out of memory.
void symbol_line(struct symbols *s, struct arena *a, struct report_line *line);
void symbol_stack(struct symbols *s, struct arena *a, struct report_stack *stack);

#endif
