// SPDX-License-Identifier: MIT
// What stands before each function of jit_calls.def. The first argument is the library's number
// (jit_library.h), the others are the function's own; without a library each returns the library's code for
// an internal error.
#ifndef MOAT_GUARD_JIT_HOOK_H
#define MOAT_GUARD_JIT_HOOK_H

#include <stddef.h>
#include <stdint.h>

int jit_nvrtc_cubin(int library, void *program, char *code);

int jit_link_create(int library, void **handle, uint32_t count, const char **options);
int jit_link_data(int library, void *handle, int type, const void *data, size_t size, const char *name);
int jit_link_file(int library, void *handle, int type, const char *path);
int jit_link_cubin(int library, void *handle, void *code);
int jit_link_destroy(int library, void **handle);

// What dlsym returns for a symbol of the table instead of the library's own function; NULL if dlsym should do
// what it does without moat.
void *jit_hook_symbol(void *handle, const char *symbol);

#endif
