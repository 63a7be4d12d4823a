// SPDX-License-Identifier: MIT
// The libraries that compile kernels at run time, NVRTC and nvJitLink. They return machine code, and moat
// needs the PTX that it was made from (image/ptx_registry.h). So libmoat.so has the functions of
// jit_calls.def: those that return machine code, and those that tell nvJitLink what to link. A program gets
// them as it would get the library's own: by linking, or from dlsym (dl_hook.h). Each calls the library's own
// function first.
//
// A process may have several such libraries, of two toolkits for example. A library's number says which one a
// call is for. A library that has a number stays loaded.
#ifndef MOAT_GUARD_JIT_LIBRARY_H
#define MOAT_GUARD_JIT_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

enum jit_function {
    JIT_NVRTC_CUBIN,
    JIT_LINK_CREATE,
    JIT_LINK_DATA,
    JIT_LINK_FILE,
    JIT_LINK_CUBIN,
    JIT_LINK_DESTROY,
    JIT_FUNCTIONS,
};

enum { JIT_LIBRARIES = 4, JIT_NONE = -1 };

// Returns the function that a symbol names, also one of a version that jit_calls.def does not have; JIT_NONE
// if it is none of them. Calls nothing: dlsym is called before anything is set up.
int jit_library_function(const char *symbol);

// Returns the number of the library that contains an address; JIT_NONE if there is none, if it is moat's, or
// if there are too many.
int jit_library_at(const void *address);

// Returns the number of the library whose function a caller means that is linked with it: the one that the
// caller's file needs, else the first that is loaded. JIT_NONE if there is none.
int jit_library_of_caller(enum jit_function f, const void *return_address);

// Finds a function of a library by its name without a version; NULL if it has none. Stores a pointer to it.
#define JIT_LIBRARY_FIND(number, name, to) jit_library_find(number, name, &(to), sizeof(to))
void jit_library_find(int number, const char *name, void *to, size_t size);

#endif
