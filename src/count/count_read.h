// SPDX-License-Identifier: MIT
// Modules that the counting pass rewrote, and what they have counted on the device so far.
//
// Each context that a module is in has a table of its own. Nothing says into which contexts a library has
// been loaded, so the search covers all live ones (context.h); where it was not loaded, its table is new
// and holds nothing. A table is read when the module, its context or the process is about to end; counters
// only grow, so it can be read at any time, and again.
//
// Reading waits for the context's work, but not for ever: a program may leave a kernel running. If the
// context is in error, or the driver has shut down, the counts are lost, and a note says so.
#ifndef MOAT_COUNT_COUNT_READ_H
#define MOAT_COUNT_COUNT_READ_H

#include "driver/driver.h"
#include "rewrite/modules.h"

void count_read_start(void);  // called once, before all else

// A module or library was loaded; the caller holds its row. NULL: no memory for a row.
void count_read_add(struct modules_row *row);

// A library was loaded into the current context.
void count_read_used(const void *library);
// A function or kernel of a module or library was looked up: launches by that handle are counted for its
// name.
void count_read_found(const void *handle, const void *owner, const char *name);

void count_read_ending(const void *handle);  // before the driver unloads it

void count_read_context_ending(CUcontext context);
void count_read_context_ended(CUcontext context);

void count_read_after_fork(void);

#endif
