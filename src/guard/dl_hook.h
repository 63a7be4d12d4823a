// SPDX-License-Identifier: MIT
// dlopen and dlmopen, so that a program that opens the driver by another name than its SONAME, by path, or in a namespace
// of its own gets the guard. Other names pass to the C library with the caller's return address in place: relative
// lookups depend on who asks.
#ifndef MOAT_GUARD_DL_HOOK_H
#define MOAT_GUARD_DL_HOOK_H

#include <stdbool.h>

// Whether the calling thread means files as it names them: the guard itself does while it opens the driver.
void dl_hook_pause(bool on);

// What is opened for a name: the name itself, or the SONAME that the guard has.
const char *dl_hook_name(const char *name);

// Drivers that libraries in other namespaces brought along, which nobody watches. 0 too if the C library does not tell.
unsigned dl_hook_other_drivers(void);

#endif
