// SPDX-License-Identifier: MIT
// Where moat's own libraries are: lib/moat beside the folder that holds the command, in the build folder, below a
// PREFIX and in a packed folder alike. Not lib itself: that is searched by others, and there is a libcuda.so.1 in it.
#ifndef MOAT_CLI_LIBDIR_H
#define MOAT_CLI_LIBDIR_H

#include <stddef.h>

#define LIBDIR_GUARD "libmoat.so"
#define LIBDIR_HEAP "libmoat-heap.so"
#define LIBDIR_DRIVER "libmoat-cpu.so"
#define LIBDIR_RUNTIME "libcudart.so.13"
#define LIBDIR_STATIC_RUNTIME "libcudart_static.a"

// The folder as an absolute path if it has all `names` (ends with NULL); else -ENOENT, and why says what is missing.
int libdir_find(char *folder, size_t size, const char *const *names, char *why, size_t why_size);

#endif
