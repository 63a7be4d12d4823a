// SPDX-License-Identifier: MIT
// Modules that the counting pass rewrote, and what they have counted on the device so far.
//
// Each context that a module is in has a table of its own. Into which contexts a library has come nobody tells, so it is
// looked for in all that live (context.h); where it is not, its table is new and holds nothing. A table is read
// when the module, its context or the process is about to end; counters only grow, so it can be read at any
// time, and again.
//
// Reading waits for the context's work, but not forever: a program may leave a kernel running. Where the context is
// in error, or the driver gone, what it counted is lost, and that is said.
#ifndef MOAT_COUNT_COUNT_READ_H
#define MOAT_COUNT_COUNT_READ_H

#include "driver/driver.h"
#include "rewrite/modules.h"

void count_read_start(void);  // once, before all else

// A module or library was loaded; its row is held. NULL: there was no memory for one.
void count_read_add(struct modules_row *row);

// A library is in the context that is current now.
void count_read_used(const void *library);
// A function or kernel of a module or library was found: launches by that handle are its.
void count_read_found(const void *handle, const void *owner, const char *name);

void count_read_ending(const void *handle);  // before the driver unloads it

void count_read_context_ending(CUcontext context);
void count_read_context_ended(CUcontext context);

void count_read_after_fork(void);

#endif
