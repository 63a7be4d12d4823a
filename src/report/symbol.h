// SPDX-License-Identifier: MIT
// From places in object files to functions and source lines, with libdw: DWARF where there is some, in the file itself
// or by its build id under /usr/lib/debug; else the file's symbols. Functions that were inlined get frames of their
// own. Objects are opened when first needed and stay open; only the units of code that are asked for are read.
//
// For the command only: libdw takes memory as it likes.
#ifndef MOAT_REPORT_SYMBOL_H
#define MOAT_REPORT_SYMBOL_H

#include "base/arena.h"
#include "report/report.h"

struct symbols;
struct symbols *symbol_new(void);  // NULL without memory
void symbol_free(struct symbols *s);

// Replaces the stacks of an event by ones with functions, files and lines as far as they can be found; new memory comes
// from the arena. What cannot be found, or without memory, stays as it was. Frames that have a function already stay.
void symbol_line(struct symbols *s, struct arena *a, struct report_line *line);
void symbol_stack(struct symbols *s, struct arena *a, struct report_stack *stack);

#endif
