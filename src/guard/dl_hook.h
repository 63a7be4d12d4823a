// SPDX-License-Identifier: MIT
// Interposes dlopen and dlmopen, so that a program that opens the driver by another name than its SONAME, by
// path, or in a namespace of its own gets the guard. Other names are passed to the C library with the
// caller's return address unchanged, because relative lookups depend on the caller.
//
// Interposes dlsym too, for the functions of compilers (jit_library.h); all other symbols are passed on in
// the same way.
#ifndef MOAT_GUARD_DL_HOOK_H
#define MOAT_GUARD_DL_HOOK_H

#include <stdbool.h>

// Pauses the replacement of names in the calling thread: the guard calls it to open the driver itself.
void dl_hook_pause(bool on);

// Returns the name to open: the name itself, or the guard's SONAME.
const char *dl_hook_name(const char *name);

// The C library's dlsym, which finds functions that dlsym would replace.
void *dl_hook_real_symbol(void *handle, const char *symbol);

// Returns how many drivers were loaded into other namespaces by libraries there; they are not watched.
// Returns 0 also if the C library does not list namespaces.
unsigned dl_hook_other_drivers(void);

#endif
