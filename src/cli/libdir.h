// SPDX-License-Identifier: MIT
// Finds moat's own libraries: lib/moat beside the folder that holds the command, in the build folder, below a
// PREFIX and in a packed folder alike. It is not lib itself, because others search that and it would hold a
// libcuda.so.1.
#ifndef MOAT_CLI_LIBDIR_H
#define MOAT_CLI_LIBDIR_H

#include <stddef.h>

#define LIBDIR_GUARD "libmoat.so"
#define LIBDIR_HEAP "libmoat-heap.so"
#define LIBDIR_DRIVER "libmoat-cpu.so"
#define LIBDIR_RUNTIME "libcudart.so.13"
#define LIBDIR_RUNTIME_12 "libcudart.so.12"
#define LIBDIR_STATIC_RUNTIME "libcudart_static.a"

// Finds the folder as an absolute path. It must have all `names` (NULL-terminated). Returns 0, or -ENOENT
// with a sentence in why that says what is missing.
int libdir_find(char *folder, size_t size, const char *const *names, char *why, size_t why_size);

#endif
